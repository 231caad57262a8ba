"""The influence tree: a cluster of vortons that is far enough away acts as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ecs_fluid.components import Grid, Sources
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.tree_build import Tree


class TreeSolver(Solver):
    """A cluster of vortons that is far enough away acts as one supervorton; others are opened.

    Targets walk the tree in blocks of neighbours. `opening` "angle" takes a cluster of radius b at distance
    d from the block when b / d < `angle`; "box" takes it when the block lies outside the cluster's box
    widened by `margin` cells. Source: Fluid Simulation for Video Games, part 3.
    """

    sums_pairs = divides_targets = True
    dimensions = (2, 3)
    needs_all_sources = False
    opening: Literal["angle", "box"]
    angle: float
    margin: float
    leaf: Literal["vortons", "supervortons"]
    multipole: Literal["monopole", "dipole"]

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons; the tree is built when it is first walked."""
        self._sources = sources
        self._tree: Tree | None = None

    def fill(self, targets: Targets) -> None:
        """Walk the tree once for each block of targets, and sum over the clusters and vortons taken."""
        self.counted(targets)

    def counted(self, targets: Targets) -> float:
        """Like `fill`; returns the number of pairs of target and cluster or vorton, on all processes."""
        from ecs_fluid.kernels.biot_savart.tree import ANGLE, BOX, uses_originals, velocity

        processes, vortons = self.world.processes, len(self._sources.sigma)
        if self._tree is None:
            self._tree = processes.tree(self._sources)
        if targets.blocks is None:
            targets.blocks = processes.blocks(targets)
        by_angle = self.opening == "angle"
        walk: dict[str, Any] = {
            "criterion": ANGLE if by_angle else BOX,
            "opening": self.angle if by_angle else self.margin,
            "originals": uses_originals(self._tree, self.leaf == "vortons"),
        }
        part = processes.part("tree", targets, vortons, self._tree, **walk)
        walk["dipoles"] = self.multipole == "dipole"
        pairs = velocity(self.code, part.x, self._tree, part.u, part.du, blocks=part.blocks, **walk)
        processes.join(targets, part, pairs)
        return float(pairs if part is targets else processes.summed(np.array([pairs], np.float64))[0])

    def lint(self) -> list[str]:
        """Warn of openings and leaves with large errors."""
        texts = []
        if self.opening == "box" and self.margin < 1e-4:
            texts.append(
                f"VelocitySystem: margin = {self.margin:g} lets a target sit on a cluster's box, with large "
                "errors; use margin >= 1e-4"
            )
        if self.system.at == "vortons" and self.leaf == "supervortons":
            texts.append(
                "VelocitySystem: with leaf = 'supervortons' a vorton is pushed by its own cluster; use "
                "leaf = 'vortons' when at = 'vortons'"
            )
        return texts
