"""The processes that share a world's rows: usually one, which holds them all.

Systems and engine call methods of `World.processes` wherever other processes may matter, so their own code is
the same for one process and for many. The class for many processes, with the same methods, is in
`ecs_fluid.ranks`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ecs_fluid import threads
from ecs_fluid.component import Array
from ecs_fluid.errors import STOPS, raise_sentence
from ecs_fluid.targets import Population, Targets

if TYPE_CHECKING:
    from ecs_fluid.components import Sources
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.biot_savart.target_blocks import Blocks
    from ecs_fluid.kernels.biot_savart.tree_build import Tree
    from ecs_fluid.kernels.fmm.fast_multipole import SharedLeaves
    from ecs_fluid.system import System
    from ecs_fluid.world import World

F = TypeVar("F", bound=Callable[..., Any])


class OneProcess:
    """What systems and engine need to know of the processes of a world, if this is the only one."""

    def __init__(self) -> None:
        self.bounds: dict[str, Array] = {}
        """For each population whose rows are shared out: edges (processes + 1,) of the blocks of rows"""

    # ------------------------------------------------------------------ the world between ticks

    def call(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Call a method of the world on all processes; return the result of this one."""
        try:
            return method(world, *arguments, **named)
        except STOPS as error:  # ranks end together
            raise_sentence(error)

    def check_change(self, what: str) -> None:
        """Raise FluidError if `what` changes entities or systems, and the world is shared out already."""

    def statistics(self) -> list[dict[str, Any]]:
        """Rows, memory, sums and traffic of each process; empty for a single one."""
        return []

    def stored_column(self, entity: Entity, label: str, array: Array) -> Any:
        """A column for hashes and files, or an object that stands for the rows of all processes."""
        return array

    def stored_columns(self, entity: Entity) -> dict[str, Any]:
        """Each per-row column of an entity, by label, as `stored_column` returns it."""
        return {label: self.stored_column(entity, label, array) for label, array in entity.columns().items()}

    def column(self, entity: Entity, label: str) -> Array:
        """A per-row column; on the first process it has the rows of all processes."""
        return entity.columns()[label]

    # ------------------------------------------------------------------ the running system

    scopes: tuple[Callable[[World, System], AbstractContextManager[None]], ...] = ()
    """Context managers in which tables hold the rows that a system's `distribution` asks for"""

    def all_rows(self, world: World) -> AbstractContextManager[None]:
        """While active, tables hold the rows of all processes, to read."""
        return nullcontext()

    def abort(self, error: BaseException) -> None:
        """End the other processes after an unexpected error; they would wait for this one for ever."""

    def first_place(self, place: Any) -> Any:
        """The least of the places that the processes pass, or None."""
        return place

    # ------------------------------------------------------------------ rows

    def rows(self, entity: Entity) -> int:
        """Number of rows of an entity that the running system sees: of all processes, or of this one."""
        return entity.rows_here

    def placed(self, entity: Entity, rows: int) -> tuple[int, int, int]:
        """Where this process's `rows` stand among all: first, one past the last, and the number of all."""
        return 0, rows, rows

    def total(self, entities: Sequence[Entity], rows: int) -> int:
        """Number of rows of populations on all processes; `rows` of them are on this one."""
        return rows

    def visible_rows(self, name: str) -> slice:
        """The rows of this process among those that the running system sees."""
        return slice(None)

    def appends_new_rows(self, name: str) -> bool:
        """Whether new rows of a population begin on this process."""
        return True

    def union(self, names: set[str]) -> set[str]:
        """The names that any process passes."""
        return names

    def rebalance_rows(self, world: World, name: str) -> None:
        """Count a population's rows after some came or went, and even them out among the processes."""

    # ------------------------------------------------------------------ numbers of all processes

    def summed(self, values: Array) -> Array:
        """Sums of whole numbers over all rows, from the sums over the rows that the running system sees."""
        return values

    def largest(self, values: Sequence[float]) -> Sequence[float]:
        """The largest of each of these numbers on all processes."""
        return values

    def enclosing(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The box around the boxes of all processes."""
        return low, high

    def gathered(self, entities: Sequence[Entity], columns: Sequence[Array]) -> Sequence[Array]:
        """Columns (n, ...) of populations laid end to end; with all rows on processes that `once` asks."""
        return columns

    def some_rows(self, entity: Entity, columns: Sequence[Array], rows: Array) -> Sequence[Array]:
        """The `rows` (k,), ascending numbers among all rows, of columns of a population; on all processes."""
        return [column.take(rows, axis=0) for column in columns]

    def at_rows(
        self, entity: Entity, rows: Targets, fill: Callable[[Targets], None], some: Array | None = None
    ) -> None:
        """Fill velocities at this process's rows of a population; only at rows of the mask `some`, if given.

        ``fill`` is called with those rows of all processes.
        """
        if some is None:
            fill(rows)
        else:
            rows.fill_rows(some, fill)

    # ------------------------------------------------------------------ work

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> Sequence[Array]:
        """Arrays, to read, that `make` returns on one process of each machine, under a name of their own."""
        return make()

    def result_array(
        self, name: str, former: Array, shape: tuple[int, ...], dtype: Any, shared: bool = True
    ) -> Array:
        """An array for results that every process reads; it may be `former`, the one used before.

        `shared`: whether `join` brings the parts of all processes into it; otherwise each process fills it.
        """
        return former if former.shape == shape else np.empty(shape, dtype)

    def blocks(self, targets: Targets) -> Blocks:
        """Blocks of neighbours among targets."""
        from ecs_fluid.kernels.biot_savart.target_blocks import grid_blocks, point_blocks, some_grid_blocks

        if targets.read is not None:
            return some_grid_blocks(targets.read)
        return grid_blocks(targets.points) if targets.points else point_blocks(targets.x)

    def part(
        self, work: str, targets: Targets, sources: int, tree: Tree | None = None, **walk: Any
    ) -> Targets:
        """The targets that this process has to fill in a sum that the processes share; call `join` after it.

        The value at a target must depend on nothing but the target's block.

        Args:
            work: name of the kind of sum; times of earlier sums of that name decide how large the parts are.
            targets: the same on all processes; blocks stay together.
            sources: number of vortons that are summed.
            tree, walk: the tree that will be walked, and how its nodes are opened, see `tree.velocity`.
        """
        return targets

    def join(self, targets: Targets, part: Targets, pairs: int) -> None:
        """Bring the parts together; for its own, this process summed `pairs` pairs of target and vorton."""

    def shared_leaves(self, work: str, targets: Targets, sources: int) -> SharedLeaves | None:
        """How the processes share a fast multipole sum (see `part`); None if this one does all of it."""
        return None

    def exchanged(
        self,
        entities: Sequence[Entity],
        rows: Array,
        number: Array,
        x: Array,
        values: Array,
        eps: Array,
        volume: Array,
        diffusivity: float,
        order: int,
        dimension: int,
    ) -> tuple[Array, Array]:
        """Rates (n, k) of extensive `values` (n, k) by exchange between neighbours, and losses (n,) in 1/s.

        ``rows`` (n,) are some of this process's rows of the populations `entities`, laid end to end, and then
        those of which images follow. ``number`` (n,) is 0 for the rows, ascending there, and counts the
        images of each, by which they are sorted, those of one number by their rows; what images get is of no
        use. For the rest see `kernels.vorticity.strength_exchange.exchange_rows`.
        """
        from ecs_fluid.kernels.vorticity.strength_exchange import exchange_rows

        return exchange_rows(x, values, eps, volume, diffusivity, order, dimension, rated=number == 0)

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
            name: name of the sorting; a later one of the same name replaces it.
            entities, columns: populations, and their positions, strengths and core radii laid end to end, for
                the rows that the running system sees.
            grid: origin (3,) m, spacing (3,) m and number (3,) of cells.
            divisible: tells whether each of several machines may hold only a part of them; None means never.
        """
        from ecs_fluid.kernels.grids.partition import gather_sorted, partition

        x, alpha, sigma = columns
        start, order = partition(x, *grid)
        return start, order, gather_sorted(x, order), gather_sorted(alpha, order), gather_sorted(sigma, order)

    def holds_part(self, sources: Sources) -> bool:
        """Whether only a part of the sorted vortons is here, so that sums over all need other machines."""
        return False

    def tree(self, sources: Sources) -> Tree:
        """The influence tree over sorted vortons."""
        from ecs_fluid.kernels.biot_savart import tree_build

        s = sources
        return tree_build.build(s.origin, s.spacing, s.cells, s.start, s.x, s.alpha, s.sigma)

    def vorton_targets(self, sources: Sources, populations: Sequence[Population]) -> Array:
        """Positions (n, 3) m of the sorted vortons, as targets; `to_rows` takes the sums back to the rows."""
        return np.ascontiguousarray(sources.x.T)

    def to_rows(self, order: Array, populations: Sequence[Population], vortons: Targets) -> None:
        """Copy velocities (and gradients) at the sorted vortons to the rows of this process.

        Sorted vorton k is row order[k] of the populations laid end to end.
        """
        first = 0
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        for entity, _, u, du in populations:
            start, stop, total = self.placed(entity, len(u))
            rows = place[first + start : first + stop]
            np.take(vortons.u, rows, axis=0, out=u, mode="clip")
            if vortons.du is not None:
                np.take(vortons.du, rows, axis=0, out=du, mode="clip")
            first += total


def collective(method: F) -> F:
    """Decorate a method of World: when rank 0 calls it, all ranks do; rank 0's result is returned."""

    @functools.wraps(method)
    def call(world: World, *arguments: Any, **named: Any) -> Any:
        threads.check_not_forked()
        return world.processes.call(world, method, arguments, named)

    return call  # type: ignore[return-value]


def before_sharing(method: F) -> F:
    """Decorate a method of World that changes entities or systems: refused once ranks share the rows."""

    @functools.wraps(method)
    def call(world: World, *arguments: Any, **named: Any) -> Any:
        world.processes.check_change(method.__name__)
        return method(world, *arguments, **named)

    return call  # type: ignore[return-value]
