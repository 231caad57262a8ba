"""The ranks of a world: the rows that each holds, calls that all make, and the rows that systems see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ecs_fluid.component import Array, Component, Tables
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError
from ecs_fluid.ranks.comm import Comm
from ecs_fluid.ranks.work import SharedWork
from ecs_fluid.runs.estimate import peak_memory
from ecs_fluid.system import System
from ecs_fluid.world import World

UNEVEN = 0.1
"""Rows move between ranks when one rank has more than the mean by this fraction of it."""


class GatheredTables(dict[type[Component], Component]):
    """Tables of a population with the rows of all ranks; each is gathered on first access."""

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
        """Like `get` of a dict; the table is gathered."""
        return self[kind] if dict.__contains__(self, kind) else default

    def _all(self) -> Tables:
        # By name: all ranks must gather in the same order, and those of their dicts may differ.
        return {kind: self[kind] for kind in sorted(self, key=lambda kind: kind.__name__)}

    def items(self) -> Any:
        """All types and tables, gathered."""
        return self._all().items()

    def values(self) -> Any:
        """All tables, gathered."""
        return self._all().values()


class DistributedColumn:
    """A column of a population that the ranks hold together; as an array it is gathered on rank 0."""

    def __init__(self, entity: Entity, label: str, own: Array) -> None:
        self._world, self._at = entity.world, (entity.name, label)
        self.dtype, self.ndim = own.dtype, own.ndim
        self.shape: tuple[int, ...] = (len(entity), *own.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole: Array = self._world._gathered_column(*self._at)
        return whole if dtype is None else whole.astype(dtype)

    def tobytes(self) -> bytes:
        """Its bytes in C order."""
        return np.asarray(self).tobytes()


class Ranks(SharedWork):
    """The ranks of one world, as one of them sees them."""

    def __init__(self, comm: Comm, bounds: dict[str, Array]) -> None:
        super().__init__(comm, bounds)
        self.scopes = (self._scope,)
        self.ended = False
        """Whether the other ranks have left, so that only the rows of this one remain"""

    # ------------------------------------------------------------------ calls

    def call(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Make a call with all ranks: announced to the others, unless they are within a call already."""
        if self.comm.at_work:
            return method(world, *arguments, **named)
        if self.ended:
            raise FluidError(f"{method.__name__}: the ranks that shared this world have ended")
        self.comm.broadcast((method.__name__, arguments, named))
        return self.work(world, method, arguments, named)

    def work(self, world: World, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Carry out a call that all ranks carry out."""
        self.comm.at_work = True
        try:
            return method(world, *arguments, **named)
        except FluidError:
            raise  # on all ranks, since errors of one rank are shared
        except BaseException as error:
            self.comm.abort(error)
        finally:
            self.comm.at_work = False

    def check_change(self, what: str) -> None:
        """Raise FluidError for a change outside of the calls that all ranks make."""
        if not self.comm.at_work:
            raise FluidError(
                f"{what} was called on a world that {self.comm.size} ranks share; make all entities and "
                "systems before it is shared, and change rows in a system of your own"
            )

    # ------------------------------------------------------------------ rows

    def rows(self, entity: Entity) -> int:
        """Rows of an entity as the running system sees it."""
        if entity.name not in self.bounds:
            return entity.rows_here
        own = self.own_rows(entity.name)
        return own.stop - own.start if self.local else int(self.bounds[entity.name][-1])

    def visible_rows(self, name: str) -> slice:
        """The rows of this rank among those that the running system sees."""
        return slice(None) if self.local or name not in self.bounds else self.own_rows(name)

    def appends_new_rows(self, name: str) -> bool:
        """Whether this rank adds the new rows: the last one does, or every rank for what all ranks hold."""
        return name not in self.bounds or self.comm.rank == self.comm.size - 1

    def stored_column(self, entity: Entity, label: str, array: Array) -> Any:
        """The column as rank 0 writes or hashes it; gathered when it is used as an array."""
        shared = entity.name in self.bounds and label in entity.columns()
        return DistributedColumn(entity, label, array) if shared else array

    def column(self, entity: Entity, label: str) -> Array:
        """A column: on rank 0 with the rows of all ranks, on the others with their own rows."""
        array = super().column(entity, label)
        whole = self.comm.rows_to_first(array, self.row_counts(entity.name))
        return array if whole is None else whole

    def whole_table(self, name: str, table: Component) -> Component:
        """The table with the rows of all ranks."""
        counts = self.row_counts(name)
        return table.unchecked(**{f.name: self.comm.gather_rows(array, counts) for f, array in table.items()})

    # ------------------------------------------------------------------ systems

    @contextmanager
    def _scope(self, world: World, system: System) -> Iterator[None]:
        """The rows that `system` sees while it runs, by its `distribution`."""
        if system.integrates or system.distribution == "rows":
            # No messages while the system runs, so an error on one rank is shared afterwards.
            error: FluidError | None = None
            with self._visible(world, world._tables_by_number, local=True):
                try:
                    yield
                except FluidError as raised:
                    error = raised
            self.comm.share_error(error)
        elif system.distribution == "ranks":
            with self._visible(world, world._tables_by_number, local=True):
                yield
        else:
            with self.all_rows(world):
                yield
                self._write_back(world, {*system.writes, *system.adds})

    def all_rows(self, world: World) -> AbstractContextManager[None]:
        """Show tables with the rows of all ranks, gathered on first access."""
        own = world._tables_by_number
        shown = {
            entity.number: GatheredTables(own[entity.number], self, entity.name)
            if entity.name in self.bounds
            else own[entity.number]
            for entity in world.entities
        }
        return self._visible(world, shown, local=False)

    @contextmanager
    def _visible(self, world: World, tables: Mapping[int, Tables], local: bool) -> Iterator[None]:
        """Show these tables; may be nested, where one system calls another."""
        former = self.local, world._visible_tables
        self.local, world._visible_tables = local, tables
        try:
            yield
        finally:
            self.local, world._visible_tables = former

    def _write_back(self, world: World, touched: set[type[Component]]) -> None:
        """Copy this rank's rows of gathered tables that the system may have changed into its own tables."""
        for entity in world.entities:
            tables = world._visible_tables[entity.number]
            if isinstance(tables, GatheredTables):
                for kind in tables.gathered & touched:
                    for field, array in tables[kind].items():
                        tables.own[kind].__dict__[field.name][...] = array[self.own_rows(entity.name)]

    def abort(self, error: BaseException) -> None:
        """End all ranks: the others may not have failed, so they cannot be asked what is wrong."""
        self.comm.abort(error)

    def union(self, names: set[str]) -> set[str]:
        """All names that any rank has."""
        return {name for found in self.comm.gather_values(names or None) for name in found or ()}

    def first_place(self, place: Any) -> Any:
        """The least of the places of all ranks; None if none has one."""
        return min((found for found in self.comm.gather_values(place) if found is not None), default=None)

    def statistics(self) -> list[dict[str, Any]]:
        """For every rank: rows it holds, largest memory so far and present memory, sums, traffic."""
        mine = {
            "rows": {name: self.own_rows(name).stop - self.own_rows(name).start for name in self.bounds},
            "memory": memory(),
            "work": {
                name: {"rounds": done.rounds, "pairs": done.pairs, "seconds": done.seconds}
                for name, done in sorted(self._balances.items())
            },
            "traffic": {purpose: asdict(traffic) for purpose, traffic in sorted(self.comm.traffic.items())},
        }
        return self.comm.gather_values(mine)

    # ------------------------------------------------------------------ structural changes

    def rebalance_rows(self, world: World, name: str) -> None:
        """After rows were added and removed, count them, and even them out between ranks if needed."""
        entity = world[name]
        counts = self.comm.gather_numbers(np.int64(entity.rows_here))
        edges = np.concatenate([[0], np.cumsum(counts)])
        total = int(edges[-1])
        if counts.max() > (1.0 + UNEVEN) * total / self.comm.size + 1:
            edges = self._redistribute(entity, edges, even_blocks(total, self.comm.size))
        self.bounds[name] = edges

    def _redistribute(self, entity: Entity, old: Array, new: Array) -> Array:
        """Send rows so that the blocks end at `new`; returns it."""
        rank, size = self.comm.rank, self.comm.size

        def overlap(a: Array, i: int, b: Array, j: int) -> tuple[int, int]:
            return max(int(a[i]), int(b[j])), min(int(a[i + 1]), int(b[j + 1]))

        sent = [overlap(old, rank, new, other) for other in range(size)]
        received = [overlap(old, other, new, rank) for other in range(size)]
        counts = [max(last - first, 0) for first, last in received]
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
    """Memory of this process, bytes: peak, and present with its share of shared memory (else the peak)."""
    most = peak_memory()
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
        now = next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        now = most
    return {"most": most, "now": now}


def even_blocks(total: int, size: int) -> Array:
    """Edges (size + 1,) of equal blocks."""
    return np.arange(size + 1, dtype=np.int64) * total // size
