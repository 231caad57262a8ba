"""What a rank knows of the others while its world runs: their rows, and the scope of the running system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Column, Component
from ecs_fluid.components import Position
from ecs_fluid.errors import FluidError
from ecs_fluid.integrator import Tables
from ecs_fluid.ranks.work import SharedWork
from ecs_fluid.runs.estimate import peak_memory

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.ranks.comm import Comm
    from ecs_fluid.system import System
    from ecs_fluid.world import World

UNEVEN = 0.1
"""Rows move between ranks when one has so much more than the mean."""


class GatheredTables(dict[type[Component], Component]):
    """Tables of a population with the rows of all ranks, gathered one by one when they are asked for."""

    def __init__(self, tables: Tables, ranks: Ranks, name: str) -> None:
        super().__init__(tables)
        self.own, self._ranks, self._name = tables, ranks, name
        self.gathered: set[type[Component]] = set()

    def __getitem__(self, kind: type[Component]) -> Component:
        table = super().__getitem__(kind)
        if kind.per_row and kind not in self.gathered:
            table = self._ranks.whole_table(self._name, table)
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


class DistributedColumn:
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


class Ranks(SharedWork):
    """The ranks of one world, as one of them sees them: calls, rows, and what the running system sees."""

    def __init__(self, comm: Comm, bounds: dict[str, Array]) -> None:
        super().__init__(comm, bounds)
        self.scopes = (self._scope,)
        self.over = False
        """Whether the other ranks take no more part; this one has its own rows only."""

    # ------------------------------------------------------------------ calls

    def call(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Between ticks the others are told to make the same call; within a call they do already."""
        if self.comm.at_work:
            return method(world, *arguments, **named)
        if self.over:
            raise FluidError(f"{method.__name__}: the ranks that shared this world no longer do")
        self.comm.broadcast((method.__name__, arguments, named))
        return self.work(world, method, arguments, named)

    def work(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Make a call that all ranks make."""
        self.comm.at_work = True
        try:
            return method(world, *arguments, **named)
        except FluidError:
            raise  # on all ranks, then: errors of one rank are shared
        except BaseException as error:
            self.comm.give_up(error)
        finally:
            self.comm.at_work = False

    def check_change(self, what: str) -> None:
        """The world can be changed within calls only, which all ranks make."""
        if not self.comm.at_work:
            raise FluidError(
                f"{what} was called on a world that {self.comm.size} ranks share; make "
                "all entities and systems before, and change rows in a system of your own"
            )

    # ------------------------------------------------------------------ rows

    def rows(self, entity: Entity) -> int:
        """Rows of an entity as the running system sees it."""
        if entity.name not in self.bounds:
            return entity.rows_here
        own = self.own(entity.name)
        return own.stop - own.start if self.local else int(self.bounds[entity.name][-1])

    def seen(self, name: str) -> slice:
        """The rows of this rank among those that the running system sees."""
        return slice(None) if self.local or name not in self.bounds else self.own(name)

    def takes_new(self, name: str) -> bool:
        """Whether new rows begin on this rank: behind the last, or everywhere for what every rank holds."""
        return name not in self.bounds or self.comm.rank == self.comm.size - 1

    def stored(self, entity: Entity, field: Column, array: Array) -> Any:
        """The column as rank 0 may write or hash it: gathered when it is asked for."""
        if entity.name not in self.bounds or not Component.registry[field.component].per_row:
            return array
        return DistributedColumn(entity.world, entity.name, Component.registry[field.component], field.name)

    def stored_columns(self, entity: Entity) -> dict[str, Any]:
        """Per-row columns of an entity by label, for rank 0 to write."""
        return {
            field.label: self.stored(entity, field, array)
            for _, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__)
            if type(table).per_row
            for field, array in table.items()
        }

    def column(self, entity: Entity, kind: str, name: str) -> Array:
        """A column with the rows of all ranks; on rank 0 alone, the others give their own."""
        array: Array = entity.tables[Component.registry[kind]].__dict__[name]
        whole = self.comm.rows_to_first(array, self.counts(entity.name))
        return array if whole is None else whole

    def whole_table(self, name: str, table: Component) -> Component:
        """The table with the rows of all ranks."""
        whole = type(table).__new__(type(table))
        for field, array in table.items():
            whole.__dict__[field.name] = self.comm.gather_rows(array, self.counts(name))
        return whole

    # ------------------------------------------------------------------ systems

    @contextmanager
    def _scope(self, world: World, system: System) -> Iterator[None]:
        """What `system` asked for by its `distribution`, while it runs."""
        if system.integrates or system.distribution == "rows":
            # No message passes while the system runs, so an error on one rank is shared after it.
            error: FluidError | None = None
            with self._showing(world, world._tables_of, local=True):
                try:
                    yield
                except FluidError as raised:
                    error = raised
            self.comm.share_error(error)
        elif system.distribution == "ranks":
            with self._showing(world, world._tables_of, local=True):
                yield
        else:
            with self.all_rows(world):
                yield
                self._write_back(world, {*system.writes, *system.adds})

    def all_rows(self, world: World) -> AbstractContextManager[None]:
        """Tables are gathered from all ranks when they are asked for."""
        own = world._tables_of
        shown = {
            entity.number: GatheredTables(own[entity.number], self, entity.name)
            if entity.name in self.bounds
            else own[entity.number]
            for entity in world.entities
        }
        return self._showing(world, shown, local=False)

    @contextmanager
    def _showing(self, world: World, tables: Mapping[int, Tables], local: bool) -> Iterator[None]:
        """Other tables for a while, also within a system that sees others and asks this one."""
        former = self.local, world._shown, world._found
        self.local = local
        if tables is not world._shown:
            world._shown, world._found = tables, {}  # answers that hold these tables
        try:
            yield
        finally:
            self.local, world._shown, world._found = former

    def _write_back(self, world: World, touched: set[type[Component]]) -> None:
        """Put this rank's rows of gathered tables that the running system filled where they belong."""
        for entity in world.entities:
            tables = world._shown[entity.number]
            if isinstance(tables, GatheredTables):
                for kind in tables.gathered & touched:
                    for field, array in tables[kind].items():
                        tables.own[kind].__dict__[field.name][...] = array[self.own(entity.name)]

    def give_up(self, error: BaseException) -> None:
        """Ranks need not have stumbled together, so nobody may ask the others what is wrong."""
        self.comm.give_up(error)

    def any_of(self, names: set[str]) -> set[str]:
        """What any rank names."""
        return {name for found in self.comm.gather_values(names or None) for name in found or ()}

    def first(self, place: Any) -> Any:
        """The least of the places that ranks found, or None."""
        return min((found for found in self.comm.gather_values(place) if found is not None), default=None)

    def statistics(self) -> list[dict[str, Any]]:
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
        return self.comm.gather_values(mine)

    # ------------------------------------------------------------------ structural changes

    def settle(self, world: World, name: str) -> None:
        """After rows came and went: count them, and move some where the ranks have become uneven."""
        entity = world[name]
        mine = next((table.rows or 0 for kind, table in entity.tables.items() if kind.per_row), 0)
        counts = self.comm.gather_numbers(np.int64(mine))
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
    most = peak_memory()
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
