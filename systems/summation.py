"""The Biot-Savart sum over one set of vortons, by interchangeable solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Sources

if TYPE_CHECKING:
    from ecs_fluid.kernels.blocks import Blocks
    from ecs_fluid.kernels.supervortons import Tree

ANGLES = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Opening angles that ``auto`` tries, widest first; below the last the direct sum is as fast."""

FEW_PAIRS = 2**25
"""Up to this many pairs of target and vorton ``auto`` does not even look at the tree."""

SAMPLE_BLOCKS = 6
"""Blocks of neighbouring targets on which ``auto`` measures the tree against the direct sum."""


class Summation:
    """Velocity of one set of vortons at any targets.

    Args:
        sources: the sorted vortons.
        sigma: their core radii (n,) m, in place of those in `sources` (they may be widened).
        code: number of the regularisation.
        criterion: how the tree opens clusters (``tree.BOX`` or ``tree.ANGLE``), with `opening` the margin in
            cells or the angle.
        originals: whether the vortons themselves stand at the leaves.
        tolerance: largest RMS error of ``auto``, relative to the RMS velocity.
    """

    def __init__(
        self,
        sources: Sources,
        sigma: Array,
        code: int,
        criterion: int,
        opening: float,
        originals: bool,
        tolerance: float,
    ) -> None:
        self.sources, self.sigma, self.code = sources, sigma, code
        self.criterion, self.opening, self.originals = criterion, opening, originals
        self.tolerance = tolerance
        self._tree: Tree | None = None

    def velocity(
        self,
        solver: str,
        targets: Array,
        u: Array,
        du: Array | None = None,
        points: tuple[int, ...] | None = None,
    ) -> None:
        """Fill u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3).

        `points` is the shape of the grid when the targets are all its points, in C order.
        """
        if solver == "direct" or len(self.sigma) == 0:
            self._direct(targets, u, du)
            return
        from ecs_fluid.kernels import tree
        from ecs_fluid.kernels.blocks import grid_blocks, point_blocks

        if solver == "tree":
            blocks = grid_blocks(points) if points else point_blocks(targets)
            self._by_tree(targets, u, du, blocks, self.criterion, self.opening, self.originals)
            return
        if len(targets) * len(self.sigma) > FEW_PAIRS:
            blocks = grid_blocks(points) if points else point_blocks(targets)
            angle = self._angle(targets, blocks)
            if angle is not None:
                self._by_tree(targets, u, du, blocks, tree.ANGLE, angle, True)
                return
        self._direct(targets, u, du)

    def at_sources(self, solver: str, x: Array, u: Array, du: Array | None) -> None:
        """Fill u (n, 3) and, unless None, du (n, 3, 3) at the vortons, x (n, 3) in sorted order."""
        from ecs_fluid.kernels import symmetric

        if solver == "direct" and du is None and symmetric.applies(self.sigma):
            symmetric.velocity(self.code, self.sources.x, self.sources.alpha, float(self.sigma[0]), u)
        else:
            self.velocity(solver, x, u, du)

    def _direct(self, targets: Array, u: Array, du: Array | None) -> None:
        from ecs_fluid.kernels import direct

        x, alpha = self.sources.x, self.sources.alpha
        if du is None:
            direct.velocity(self.code, targets, x, alpha, self.sigma, u)
        else:
            direct.velocity_gradient(self.code, targets, x, alpha, self.sigma, u, du)

    def _by_tree(
        self,
        targets: Array,
        u: Array,
        du: Array | None,
        blocks: Blocks,
        criterion: int,
        opening: float,
        originals: bool,
    ) -> None:
        from ecs_fluid.kernels import supervortons, tree

        if self._tree is None:
            s = self.sources
            self._tree = supervortons.build(s.origin, s.spacing, s.cells, s.start, s.x, s.alpha, self.sigma)
        how: dict[str, Any] = {
            "blocks": blocks,
            "criterion": criterion,
            "opening": opening,
            "originals": originals,
        }
        if du is None:
            tree.velocity(self.code, targets, self._tree, u, **how)
        else:
            tree.velocity_gradient(self.code, targets, self._tree, u, du, **how)

    def _angle(self, targets: Array, blocks: Blocks) -> float | None:
        """Widest angle of ANGLES that keeps the tolerance on a sample of the targets, None if none does.

        The sample is whole blocks of neighbours, since a block walks the tree as one. A margin of 2 covers
        the sample's scatter.
        """
        from ecs_fluid.kernels import tree

        order, starts = blocks
        chosen = np.unique(np.linspace(0, len(starts) - 2, SAMPLE_BLOCKS).astype(np.int64))
        parts = [order[starts[b] : starts[b + 1]] for b in chosen]
        sample = np.ascontiguousarray(targets[np.concatenate(parts)])
        ends = np.cumsum([0, *(len(part) for part in parts)])
        own = (np.arange(len(sample), dtype=np.int64), ends.astype(np.int64))
        exact, near = np.empty_like(sample), np.empty_like(sample)
        self._direct(sample, exact, None)
        scale = float(np.sqrt(np.mean(exact.astype(np.float64) ** 2)))
        for angle in ANGLES:
            self._by_tree(sample, near, None, own, tree.ANGLE, angle, True)
            error = float(np.sqrt(np.mean((near.astype(np.float64) - exact) ** 2)))
            if 2.0 * error <= self.tolerance * scale:
                return angle
        return None
