"""The processes that hold a world's rows: in the plain case one, which holds them all and does all the work.

Systems and engine ask `World.processes` for what depends on other processes, and read the same in both cases.
`ecs_fluid.ranks` has the form for many processes, with the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.components import Sources
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.biot_savart.blocks import Blocks
    from ecs_fluid.kernels.biot_savart.tree_build import Tree
    from ecs_fluid.kernels.fmm.fast_multipole import Split

Evaluate = Callable[[Array, Array, Array | None, "Blocks | None"], int]
"""Fills u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3) in blocks; returns the pairs it summed."""

Population = tuple["Entity", Array, Array | None]
"""Vortons, with the velocities (m, 3) and their gradients (m, 3, 3) at the rows that this process holds."""


class OneProcess:
    """What a system needs to know of the processes of its world, where there is only this one."""

    # ------------------------------------------------------------------ rows

    def placed(self, entity: Entity) -> tuple[int, int, int]:
        """First and behind the last of the rows that this process holds, and rows on all processes."""
        rows = len(entity)
        return 0, rows, rows

    def at_rows(self, entity: Entity, x: Array, u: Array, fill: Callable[[Array, Array], None]) -> None:
        """Fill u (m, 3) at this process's rows x (m, 3) of a population; `fill` gets the rows of all."""
        fill(x, u)

    # ------------------------------------------------------------------ work

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> Sequence[Array]:
        """Arrays, to read, that `make` returns on one process of each machine, under a name of their own."""
        return make()

    def result(
        self, name: str, former: Array, shape: tuple[int, ...], dtype: Any, shared: bool = True
    ) -> Array:
        """An array for results that every process reads; `former` is the one used before.

        `shared` tells whether `share` fills it; otherwise each process does.
        """
        return former if former.shape == shape else np.empty(shape, dtype)

    def blocks(self, targets: Array, points: tuple[int, ...] | None) -> Blocks:
        """Blocks of neighbours among targets (m, 3), which may be all points of a grid of that shape."""
        from ecs_fluid.kernels.biot_savart.blocks import grid_blocks, point_blocks

        return grid_blocks(points) if points else point_blocks(targets)

    def share(
        self,
        work: str,
        targets: Array,
        u: Array,
        du: Array | None,
        sources: int,
        evaluate: Evaluate,
        blocks: Blocks | None = None,
        tree: Tree | None = None,
        **walk: Any,
    ) -> None:
        """Fill u (m, 3) and, unless None, du (m, 3, 3) by `evaluate`, each process some of the targets.

        Args:
            work: name of the kind of sum; how much of it each process gets follows from the times before.
            targets: positions (m, 3) m, the same on all processes.
            sources: number of vortons that are summed.
            evaluate: its value at a target must depend on nothing but the target's block.
            blocks: blocks of targets that stay together.
            tree, walk: the tree that `evaluate` walks, and how its nodes are opened, see `tree.velocity`.
        """
        evaluate(targets, u, du, blocks)

    def split(self, work: str, targets: Array, sources: int) -> Split | None:
        """What shares out the pieces of a fast multipole sum, see `share`; None: all are this process's."""
        return None

    # ------------------------------------------------------------------ vortons

    def tree(self, sources: Sources, sigma: Array) -> Tree:
        """The influence tree over sorted vortons with core radii `sigma` (n,) m."""
        from ecs_fluid.kernels.biot_savart import tree_build

        s = sources
        return tree_build.build(s.origin, s.spacing, s.cells, s.start, s.x, s.alpha, sigma)

    def vorton_targets(self, sources: Sources, populations: Sequence[Population]) -> Array:
        """Positions (n, 3) m of the sorted vortons as targets; `to_rows` takes what is summed there."""
        return np.ascontiguousarray(sources.x.T)

    def to_rows(self, order: Array, populations: Sequence[Population], u: Array, du: Array | None) -> None:
        """Give velocities (n, 3) and gradients (n, 3, 3) at the sorted vortons to the rows of this process.

        Sorted vorton k is row order[k] of the populations laid end to end.
        """
        first = 0
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        for entity, velocity, gradient in populations:
            start, stop, total = self.placed(entity)
            rows = place[first + start : first + stop]
            np.take(u, rows, axis=0, out=velocity)
            if du is not None:
                np.take(du, rows, axis=0, out=gradient)
            first += total
