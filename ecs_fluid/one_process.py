"""The processes that hold a world's rows: in the plain case one, which holds them all and does all the work.

Systems and engine ask `World.processes` for what may depend on other processes, and read the same in both
cases. `ecs_fluid.ranks` has the form for many processes, with the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Column, Component

if TYPE_CHECKING:
    from ecs_fluid.components import Sources
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.biot_savart.blocks import Blocks
    from ecs_fluid.kernels.biot_savart.tree_build import Tree
    from ecs_fluid.kernels.fmm.fast_multipole import Split
    from ecs_fluid.kernels.vorticity.exchange import Sorting
    from ecs_fluid.system import System
    from ecs_fluid.world import World

Evaluate = Callable[[Array, Array, Array | None, "Blocks | None"], int]
"""Fills u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3) in blocks; returns the pairs it summed."""

Population = tuple["Entity", Array, Array | None]
"""Vortons, with the velocities (m, 3) and their gradients (m, 3, 3) at the rows that this process holds."""

_NOTHING: AbstractContextManager[None] = nullcontext()


class OneProcess:
    """What systems and engine need to know of the processes of a world, where there is only this one."""

    def __init__(self) -> None:
        self.bounds: dict[str, Array] = {}
        """Of each population whose rows several processes hold: edges (processes + 1,) of their blocks."""
        self._sorting: Sorting | None = None

    # ------------------------------------------------------------------ the world between ticks

    def call(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Call a method of the world on all processes; returns what it gives on this one."""
        return method(world, *arguments, **named)

    def check_change(self, what: str) -> None:
        """Raise FluidError where the world's entities and systems can no longer be changed by `what`."""

    def about(self) -> list[dict[str, Any]]:
        """Of each of several processes: rows it holds, memory, sums, traffic."""
        return []

    def stored(self, entity: Entity, field: Column, array: Array) -> Any:
        """What stands for a column with the rows of all processes in hashes and files."""
        return array

    def stored_columns(self, entity: Entity) -> dict[str, Any]:
        """What stands for each per-row column of an entity, by label."""
        return entity.columns()

    def column(self, entity: Entity, kind: str, name: str) -> Array:
        """A column with the rows of all processes, on the first of them."""
        array: Array = entity.tables[Component.registry[kind]].__dict__[name]
        return array

    # ------------------------------------------------------------------ the running system

    def scope(self, world: World, system: System) -> AbstractContextManager[None]:
        """While active, tables hold the rows that the system asks for by its `distribution`."""
        return _NOTHING

    def all_rows(self, world: World) -> AbstractContextManager[None]:
        """While active, tables hold the rows of all processes, to read."""
        return _NOTHING

    def stumbled(self, error: BaseException) -> None:
        """Raise an error that nobody foresaw, where other processes would wait for this one for ever."""

    def first(self, place: Any) -> Any:
        """The least of the places that the processes found, or None."""
        return place

    # ------------------------------------------------------------------ rows

    def rows(self, name: str) -> int | None:
        """Rows of a population as the running system sees it; None: as many as its tables have."""
        return None

    def placed(self, entity: Entity) -> tuple[int, int, int]:
        """First and behind the last of the rows that this process holds, and rows on all processes."""
        rows = len(entity)
        return 0, rows, rows

    def total(self, entity: Entity) -> int:
        """Rows of a population on all processes."""
        return len(entity)

    def seen(self, name: str) -> slice:
        """The rows of this process among those that the running system sees."""
        return slice(None)

    def takes_new(self, name: str) -> bool:
        """Whether new rows of a population begin on this process."""
        return True

    def any_of(self, names: set[str]) -> set[str]:
        """What any process names."""
        return names

    def settle(self, world: World, name: str) -> None:
        """Count a population's rows after some came or went, and even them out among the processes."""

    # ------------------------------------------------------------------ numbers of all processes

    def summed(self, values: Array) -> Array:
        """The sums over all rows of whole numbers that are sums over the rows that the system sees."""
        return values

    def largest(self, values: Sequence[float]) -> Sequence[float]:
        """The largest of each of these numbers on all processes."""
        return values

    def enclosing(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The box around the boxes of all processes."""
        return low, high

    def gathered(self, entities: Sequence[Entity], columns: Sequence[Array]) -> Sequence[Array]:
        """Columns (n, ...) of populations laid end to end, with all rows, on a process that `once` asks."""
        return columns

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

    def exchanged(
        self,
        entities: Sequence[Entity],
        x: Array,
        values: Array,
        eps: Array,
        volume: Array,
        diffusivity: float,
        order: int,
        dimension: int,
    ) -> tuple[Array, Array]:
        """Rates (n, k) of extensive `values` (n, k) by exchange between neighbours, and losses in 1/s.

        The rows are those of this process, of the populations `entities` laid end to end; the largest loss of
        all processes is among the losses. The rest as in `kernels.vorticity.exchange.exchange_rows`.
        """
        from ecs_fluid.kernels.vorticity.exchange import Sorting, exchange_rows

        if self._sorting is None:  # viscosity and conduction between the same vortons sort them once
            self._sorting = Sorting()
        return exchange_rows(x, values, eps, volume, diffusivity, order, dimension, self._sorting)

    # ------------------------------------------------------------------ vortons

    def sorted_vortons(
        self,
        name: str,
        entities: Sequence[Entity],
        columns: tuple[Array, Array, Array],
        grid: tuple[Array, Array, Array],
        divisible: Callable[[], bool] | None = None,
    ) -> Sequence[Array]:
        """All vortons sorted by the cells of a grid: start, order, x, alpha, sigma of `Sources`.

        Args:
            name: of the sorting; a later one of that name takes its place.
            entities, columns: populations, and their positions, strengths and core radii laid end to end, of
                the rows that the running system sees.
            grid: origin (3,) m, spacing (3,) m and number (3,) of cells.
            divisible: whether each of several machines may do with a part of them; None: never.
        """
        from ecs_fluid.kernels.grids.partition import gather_sorted, partition

        x, alpha, sigma = columns
        start, order = partition(x, *grid)
        return start, order, gather_sorted(x, order), gather_sorted(alpha, order), gather_sorted(sigma, order)

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
