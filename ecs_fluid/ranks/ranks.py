"""What a rank knows of the others while its world runs: their rows, and the scope of the running system."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array, Column, Component
from ecs_fluid.components import CoreRadius, Position, Sources, Strength
from ecs_fluid.errors import FluidError
from ecs_fluid.integrator import Tables
from ecs_fluid.kernels.biot_savart import tree_build
from ecs_fluid.kernels.biot_savart.blocks import Blocks, block_boxes
from ecs_fluid.one_process import Evaluate, OneProcess, Population
from ecs_fluid.ranks import near, sums
from ecs_fluid.ranks.balance import Balance
from ecs_fluid.ranks.comm import Comm
from ecs_fluid.ranks.machine import Machine
from ecs_fluid.ranks.parts import Parts, Rows

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.system import System
    from ecs_fluid.world import World

UNEVEN = 0.1
"""Rows move between ranks when one has so much more than the mean."""

SHARED_PAIRS = 2**16
"""From this many pairs of target and vorton on, ranks share a sum out."""

SHARED_BLOCKS = 2**12
"""From this many targets on, one rank of each machine groups them in blocks."""


class AtVortons(NamedTuple):
    """The sum of which the targets are the vortons themselves."""

    x: Array
    """(n, 3) m, its targets; without values where machines have parts of them"""
    keep: sums.Keep
    """who gets which results"""
    parts: Parts | None


class WholeTables(dict[type[Component], Component]):
    """Tables of a population with the rows of all ranks, gathered one by one when they are asked for."""

    def __init__(self, tables: Tables, ranks: Ranks, name: str) -> None:
        super().__init__(tables)
        self._ranks, self._name = ranks, name
        self.gathered: set[type[Component]] = set()

    def __getitem__(self, kind: type[Component]) -> Component:
        table = super().__getitem__(kind)
        if kind.per_row and kind not in self.gathered:
            table = self._ranks.gathered(self._name, table)
            super().__setitem__(kind, table)
            self.gathered.add(kind)
        return table

    def get(self, kind: Any, default: Any = None) -> Any:
        """Like that of a dict."""
        return self[kind] if dict.__contains__(self, kind) else default

    def _all(self) -> Tables:
        # By name: the ranks must gather in one order, and that of the dict depends on how it was made.
        return {kind: self[kind] for kind in sorted(self, key=lambda kind: kind.__name__)}

    def items(self) -> Any:
        """All of them."""
        return self._all().items()

    def values(self) -> Any:
        """All of them."""
        return self._all().values()


class SpreadColumn:
    """A column of a population that the ranks hold together; as an array it is gathered on rank 0."""

    def __init__(self, world: World, entity: str, kind: type[Component], name: str) -> None:
        self._world, self._at = world, (entity, kind.__name__, name)
        array: Array = world[entity].tables[kind].__dict__[name]
        self.dtype = array.dtype
        self.shape: tuple[int, ...] = (len(world[entity]), *array.shape[1:])
        self.ndim = array.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole: Array = self._world._gathered_column(*self._at)
        return whole if dtype is None else whole.astype(dtype)

    def tobytes(self) -> bytes:
        """Its bytes in C order."""
        return np.asarray(self).tobytes()


class Ranks(OneProcess):
    """Which rows of every population this rank holds, and what the running system sees of them.

    Populations are the entities with a Position; each rank holds one block of their rows, and the blocks
    follow one another in the order of the ranks. Everything else is the same on all ranks.
    """

    def __init__(self, comm: Comm, bounds: dict[str, Array]) -> None:
        self.comm = comm
        self.bounds = bounds
        self.local = False
        """Whether the running system sees this rank's rows only."""
        self.machine = Machine(comm)
        self.parts: Parts | None = None
        """The vortons of the running stage, where each machine has its part of them only"""
        self._balances: dict[str, Balance] = {}
        self._at_vortons: AtVortons | None = None
        self._sent = False
        """Whether results of the last sum at the vortons are with the rows already"""

    # ------------------------------------------------------------------ rows

    def own(self, name: str) -> slice:
        """The rows of a population that this rank holds."""
        edges = self.bounds[name]
        return slice(int(edges[self.comm.rank]), int(edges[self.comm.rank + 1]))

    def rows(self, name: str) -> int | None:
        """Rows of a population as the running system sees it; None for what every rank holds."""
        if name not in self.bounds:
            return None
        own = self.own(name)
        return own.stop - own.start if self.local else self.total(name)

    def total(self, name: str) -> int:
        """Rows of a population on all ranks."""
        return int(self.bounds[name][-1])

    def counts(self, name: str) -> list[int]:
        """Rows on every rank."""
        return [int(count) for count in np.diff(self.bounds[name])]

    def seen(self, name: str) -> slice:
        """The rows of this rank among those that the running system sees."""
        return slice(None) if self.local or name not in self.bounds else self.own(name)

    def takes_new(self, name: str) -> bool:
        """Whether new rows begin on this rank: behind the last, or everywhere for what every rank holds."""
        return name not in self.bounds or self.comm.rank == self.comm.size - 1

    def spread(self, entity: Entity, field: Column, array: Array) -> Any:
        """The column as rank 0 may write or hash it: gathered when it is asked for."""
        if entity.name not in self.bounds or not Component.registry[field.component].per_row:
            return array
        return SpreadColumn(entity.world, entity.name, Component.registry[field.component], field.name)

    def spread_columns(self, entity: Entity) -> dict[str, Any]:
        """Per-row columns of an entity by label, for rank 0 to write."""
        return {
            field.label: self.spread(entity, field, array)
            for _, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__)
            if type(table).per_row
            for field, array in table.items()
        }

    def column(self, entity: Entity, kind: str, name: str) -> Array:
        """A column with the rows of all ranks; on rank 0 alone, the others give their own."""
        array: Array = entity.tables[Component.registry[kind]].__dict__[name]
        whole = self.comm.to_first(array, self.counts(entity.name))
        return array if whole is None else whole

    def gathered(self, name: str, table: Component) -> Component:
        """The table with the rows of all ranks."""
        whole = type(table).__new__(type(table))
        for field, array in table.items():
            whole.__dict__[field.name] = self.comm.join(array, self.counts(name))
        return whole

    # ------------------------------------------------------------------ systems

    @contextmanager
    def scope(self, world: World, system: System) -> Iterator[None]:
        """What `system` asked for by its `distribution`, while it runs."""
        if system.integrates or system.distribution == "rows":
            yield from self._rows()
        elif system.distribution == "ranks":
            self.local = True
            try:
                yield
            finally:
                self.local = False
        else:
            yield from self._whole(world, system)

    def _rows(self) -> Iterator[None]:
        """No message passes while the system runs, so an error on one rank is shared after it."""
        self.local = True
        error: FluidError | None = None
        try:
            yield
        except FluidError as raised:
            error = raised
        finally:
            self.local = False
        self.share_error(error)

    def _whole(self, world: World, system: System) -> Iterator[None]:
        former = world._tables_of
        world._tables_of = {
            entity.number: WholeTables(former[entity.number], self, entity.name)
            if entity.name in self.bounds
            else former[entity.number]
            for entity in world.entities
        }
        try:
            yield
            touched = {*system.writes, *system.adds}
            for entity in world.entities:
                tables = world._tables_of[entity.number]
                if isinstance(tables, WholeTables):
                    for kind in tables.gathered & touched:
                        for field, array in tables[kind].items():
                            getattr(former[entity.number][kind], field.name)[...] = array[
                                self.own(entity.name)
                            ]
        finally:
            world._tables_of = former

    def share_error(self, error: FluidError | None) -> None:
        """Raise on all ranks what one of them ran into."""
        first = next((text for text in self.comm.every(error) if text is not None), None)
        if first is not None:
            raise first

    def own_vortons(self, world: World) -> Rows:
        """The vortons that this rank holds; for a system that spans ranks."""
        names, tables = [], []
        for entity, found in world.entities_with(Position, Strength, CoreRadius):
            names.append(entity.name)
            tables.append([next(iter(table.items()))[1] for table in found])
        x, alpha, sigma = (
            columns[0] if len(columns) == 1 else np.concatenate(columns)
            for columns in zip(*tables, strict=True)
        )
        return Rows(x, alpha, sigma, self.numbers(names))

    def exchanged(self, names: list[str], *what: Any) -> tuple[Array, float]:
        """Exchange between neighbours among these populations, see `ecs_fluid.ranks.near.exchanged`."""
        return near.exchanged(self.comm, self.numbers(names), *what)

    def take_parts(self, rows: Rows, total: int, grid: tuple[Array, Array, Array]) -> Parts:
        """Sort all vortons, a part on each machine, see `ecs_fluid.ranks.parts`."""
        self.parts = Parts(self.comm, self.machine, rows, total, grid)
        return self.parts

    def gathered_vortons(self, world: World) -> tuple[Array, Array, Array]:
        """Positions, strengths, core radii of all vortons, for a machine's leader; else of this rank's."""
        parts: list[list[Array]] = [[], [], []]
        for entity, tables in world.entities_with(Position, Strength, CoreRadius):
            columns = [next(iter(table.items()))[1] for table in tables]
            if entity.name in self.bounds and not isinstance(entity.tables, WholeTables):
                found = [self.machine.gathered(array, self.counts(entity.name)) for array in columns]
                columns = [a if b is None else b for a, b in zip(columns, found, strict=True)]
            for part, array in zip(parts, columns, strict=True):
                part.append(array)
        shapes = ((0, 3), (0, 3), (0,))
        x, alpha, sigma = (
            np.concatenate(part) if part else np.empty(shape, world.dtype)
            for part, shape in zip(parts, shapes, strict=True)
        )
        return x, alpha, sigma

    def any_of(self, names: set[str]) -> set[str]:
        """What any rank names."""
        return {name for found in self.comm.every(names or None) if found is not None for name in found}

    def first(self, place: Any) -> Any:
        """The least of the places that ranks found, or None."""
        return min((found for found in self.comm.every(place) if found is not None), default=None)

    # ------------------------------------------------------------------ sums

    def placed(self, entity: Entity) -> tuple[int, int, int]:
        """First and behind the last of this rank's rows, and rows on all ranks."""
        if entity.name not in self.bounds:
            return super().placed(entity)
        own = self.own(entity.name)
        return own.start, own.stop, self.total(entity.name)

    def at_rows(self, entity: Entity, x: Array, u: Array, fill: Callable[[Array, Array], None]) -> None:
        """All ranks' rows are gathered, so that blocks of them are those of one process."""
        every = self.comm.join(x, self.counts(entity.name))
        found = np.empty_like(every)
        fill(every, found)
        u[...] = found[self.own(entity.name)]

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> Sequence[Array]:
        """Arrays in shared memory, which the first rank of each machine makes."""
        return self.machine.once(name, make)

    def result(
        self, name: str, former: Array, shape: tuple[int, ...], dtype: Any, shared: bool = True
    ) -> Array:
        """What is shared out lies in shared memory, of which one rank writes."""
        if shared:
            return self.machine.array(name, shape, dtype)
        return super().result(name, former, shape, dtype)

    def blocks(self, targets: Array, points: tuple[int, ...] | None) -> Blocks:
        """Many targets are grouped once for each machine; vortons in parts have blocks of their own."""
        at = self._at_vortons
        if at is not None and targets is at.x and at.parts is not None:
            return np.empty(0, np.int64), np.zeros(1, np.int64)
        if len(targets) < SHARED_BLOCKS:
            return super().blocks(targets, points)
        order, starts = self.machine.once("blocks", lambda: super(Ranks, self).blocks(targets, points))
        return order, starts

    def share(
        self,
        work: str,
        targets: Array,
        u: Array,
        du: Array | None,
        sources: int,
        evaluate: Evaluate,
        blocks: Blocks | None = None,
        tree: tree_build.Tree | None = None,
        **walk: Any,
    ) -> None:
        """Like that of one process; results at the vortons go to the ranks that hold their rows."""
        at = self._at_vortons if self._at_vortons is not None and targets is self._at_vortons.x else None
        parts = self.parts if self.parts is not None and self.parts.grown is tree is not None else None
        fetch: sums.Fetch | None = None if parts is None else partial(parts.fetch, **walk)
        if at is not None:
            self._sent = at.parts is not None or self._many(targets, sources)
        if at is not None and at.parts is not None and fetch is not None:
            balance = self.balance(f"{work}, at vortons")
            sums.at_vortons(self.comm, balance, at.parts, du is not None, evaluate, at.keep, fetch)
        elif self._many(targets, sources):
            balance = self.balance(f"{work}, at {'points' if at is None else 'vortons'}")
            keep = None if at is None else at.keep
            where = self.comm, self.machine, balance
            sums.on_all(*where, targets, u, du, blocks, evaluate, keep, fetch)
        else:
            if fetch is not None and blocks is not None:
                fetch(*block_boxes(targets[blocks[0]], blocks[1]))
            evaluate(targets, u, du, blocks)

    def _many(self, targets: Array, sources: int) -> bool:
        """Whether a sum is long enough to be shared out."""
        return len(targets) * sources >= SHARED_PAIRS

    def split(self, work: str, targets: Array, sources: int) -> sums.Split | None:
        """What shares out the pieces of a fast multipole sum that is long enough."""
        at = self._at_vortons is not None and targets is self._at_vortons.x
        self._sent = self._sent and not at
        if not self._many(targets, sources):
            return None
        return sums.Split(self.comm, self.balance(f"{work}, at {'vortons' if at else 'points'}"))

    def tree(self, sources: Sources, sigma: Array) -> tree_build.Tree:
        """Its nodes lie in shared memory; of sources in parts each machine has its own nodes."""
        if self.parts is not None and sources.x is self.parts.x and sigma is sources.sigma:
            return self.parts.tree
        name = "tree" if sigma is sources.sigma else "widened tree"
        nodes = self.machine.once(name, lambda: super(Ranks, self).tree(sources, sigma)[: tree_build.NODES])
        return tree_build.Tree._make([*nodes, sources.start, sources.x, sources.alpha, sigma])

    def vorton_targets(self, sources: Sources, populations: Sequence[Population]) -> Array:
        """In shared memory; where machines have parts of the vortons, an array that nobody fills."""
        parts = self.parts if self.parts is not None and sources.x is self.parts.x else None
        if parts is None:
            (x,) = self.machine.once("vortons", lambda: [sources.x.T])
        else:
            x = np.empty_like(sources.x.T)
        names = [entity.name for entity, *_ in populations]
        keep = self._keep(sources.order, names, partial(self._store, populations))
        self._at_vortons, self._sent = AtVortons(x, keep, parts), False
        return x

    def to_rows(self, order: Array, populations: Sequence[Population], u: Array, du: Array | None) -> None:
        """Nothing is left to do where `share` sent each rank what belongs to its rows."""
        if not self._sent:
            super().to_rows(order, populations, u, du)
        self._at_vortons = None

    def _keep(self, row: Array, names: list[str], store: Any) -> sums.Keep:
        """Sends results at these populations' rows to their holders."""
        ends = np.cumsum([0, *(self.total(name) for name in names)])
        firsts = [end + self.bounds[name][:-1] for end, name in zip(ends[:-1], names, strict=True)]
        holders = np.tile(np.arange(self.comm.size), len(names))
        return sums.Keep(row, np.concatenate([ends[:0], *firsts]), holders, store)

    def _store(self, populations: Sequence[Population], rows: Array, u: Array, du: Array | None) -> None:
        """Velocities and gradients of rows that this rank holds, numbered through all populations."""
        first = 0
        for entity, velocity, gradient in populations:
            start, stop, total = self.placed(entity)
            chosen = (rows >= first + start) & (rows < first + stop)
            velocity[rows[chosen] - (first + start)] = u[chosen]
            if du is not None and gradient is not None:
                gradient[rows[chosen] - (first + start)] = du[chosen]
            first += total

    # ------------------------------------------------------------------ numbers of all ranks

    def numbers(self, names: list[str]) -> Array:
        """This rank's rows of some populations, numbered through all rows of these, laid end to end."""
        first, found = 0, [np.empty(0, np.uint32)]
        for name in names:
            own = self.own(name)
            found.append(np.arange(first + own.start, first + own.stop, dtype=np.uint32))
            first += self.total(name)
        return np.concatenate(found)

    def enclosing(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The box around the boxes of all ranks."""
        boxes = self.comm.numbers(np.stack([low, high]))
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)

    def about(self) -> list[dict[str, Any]]:
        """Of every rank: rows it holds, largest memory so far and present memory, sums, traffic."""
        mine = {
            "rows": {name: self.own(name).stop - self.own(name).start for name in self.bounds},
            "memory": memory(),
            "work": {
                name: {"rounds": done.rounds, "pairs": done.pairs, "seconds": done.seconds}
                for name, done in sorted(self._balances.items())
            },
            "traffic": {purpose: asdict(traffic) for purpose, traffic in sorted(self.comm.traffic.items())},
        }
        return self.comm.every(mine)

    def balance(self, work: str) -> Balance:
        """How that work is shared out at present."""
        return self._balances.setdefault(work, Balance(self.comm))

    # ------------------------------------------------------------------ structural changes

    def settle(self, world: World, name: str) -> None:
        """After rows came and went: count them, and move some where the ranks have become uneven."""
        entity = world[name]
        mine = next((table.rows or 0 for kind, table in entity.tables.items() if kind.per_row), 0)
        counts = self.comm.numbers(np.int64(mine))
        edges = np.concatenate([[0], np.cumsum(counts)])
        total = int(edges[-1])
        if counts.max() > (1.0 + UNEVEN) * total / self.comm.size + 1:
            edges = self._move(entity, edges, even(total, self.comm.size))
        self.bounds[name] = edges

    def _move(self, entity: Entity, old: Array, new: Array) -> Array:
        """Send rows so that the blocks end at `new`; returns it."""
        rank, size = self.comm.rank, self.comm.size

        def overlap(a: Array, i: int, b: Array, j: int) -> tuple[int, int]:
            return max(int(a[i]), int(b[j])), min(int(a[i + 1]), int(b[j + 1]))

        sent = [overlap(old, rank, new, other) for other in range(size)]
        taken = [overlap(old, other, new, rank) for other in range(size)]
        counts = [max(last - first, 0) for first, last in taken]
        for kind in sorted(entity.tables, key=lambda kind: kind.__name__):
            if not kind.per_row:
                continue
            table = entity.tables[kind]
            for field, array in table.items():
                first = int(old[rank])
                parts = [array[a - first : max(b, a) - first] for a, b in sent]
                table.__dict__[field.name] = np.concatenate(self.comm.exchange(parts, counts))
        return new


def memory() -> dict[str, int]:
    """Bytes of memory of this process: the most so far, and now, with its part of what it shares with others.

    Where the system does not tell the present ones, they are those of the most.
    """
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    try:
        told = Path("/proc/self/smaps_rollup").read_text().splitlines()
        now = next(1024 * int(line.split()[1]) for line in told if line.startswith("Pss:"))
    except (OSError, StopIteration):
        now = most
    return {"most": most, "now": now}


def even(total: int, size: int) -> Array:
    """Edges (size + 1,) of equal blocks."""
    return np.arange(size + 1, dtype=np.int64) * total // size


def shared(tables: Tables) -> bool:
    """Whether an entity with these tables is a population whose rows the ranks share out."""
    return Position in tables
