"""Queued changes of rows: spawns and kills of a tick, applied at its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Column, Component, RowId, Tables
from ecs_fluid.errors import ComponentError

if TYPE_CHECKING:
    from ecs_fluid.world import World


SPARE = 16
"""Columns that grow get room for a further 1/16 of their rows."""

Key = tuple[str, type[Component], str]
"""Entity, component and column."""


class ColumnMemory:
    """Memory of columns with room behind the last row, so that adding rows copies none of the old ones.

    A column that gains rows at its end and loses them at its start, as an emitter's does, is a window that
    moves along a buffer. Its rows are copied to a new buffer when the old one is full, when less than half of
    it is in use, when rows go from the middle, or when the column was replaced by another array.
    """

    def __init__(self) -> None:
        self._buffers: dict[Key, tuple[Array, Array, int]] = {}
        """For each column: the buffer, the window that is the column, and where the window begins"""

    def rebuilt(self, key: Key, array: Array, keep: Any, new: list[Any], counts: list[int]) -> Array:
        """The rows `keep` (None for all, a slice, or numbers) of a column, followed by the `new` ones.

        Item i of `new` fills counts[i] rows: it is an array of them, or one value for all.
        """
        start, stop = (keep.start, keep.stop) if isinstance(keep, slice) else (0, len(array))
        kept_count = stop - start if keep is None or isinstance(keep, slice) else len(keep)
        total = kept_count + sum(counts)
        buffer, window, first = self._buffers.get(key, (array, None, 0))
        first += start
        if window is not array or kept_count != stop - start or not first + total <= len(buffer) <= 2 * total:
            first, room = 0, total + (total // SPARE if new else 0)
            buffer = np.empty((room, *array.shape[1:]), array.dtype)
            if isinstance(keep, np.ndarray):
                np.take(array, keep, axis=0, out=buffer[:kept_count], mode="clip")
            else:
                buffer[:kept_count] = array[start:stop]
        end = first + kept_count
        for rows, count in zip(new, counts, strict=True):
            buffer[end : end + count] = rows
            end += count
        window = buffer[first:end]
        self._buffers[key] = (buffer, window, first)
        return window

    def forget(self, name: str) -> None:
        """Free the memory of an entity's columns."""
        self._buffers = {key: buffer for key, buffer in self._buffers.items() if key[0] != name}


@dataclasses.dataclass
class NewRows:
    """New rows of an entity; `where_free`: those in a body, or outside all containers, are dropped."""

    name: str
    tables: Tables
    where_free: bool
    kept_rows: Array
    """numbers (rows,), among the rows that were asked for, of those that were not dropped"""
    ids: Array = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))
    """RowIds (rows,), once they are there"""

    @property
    def rows(self) -> int:
        """Number of rows that were not dropped."""
        return len(self.kept_rows)


class RowChanges:
    """Kills and spawns per entity, in the order of the calls."""

    def __init__(self) -> None:
        self.queued: set[str] = set()
        """Entities whose rows are to change"""
        self._killed: dict[str, Array] = {}
        self._spawned: list[NewRows] = []
        self._memory = ColumnMemory()

    def clear(self) -> None:
        """Forget everything queued."""
        self.queued.clear()
        self._killed.clear()
        self._spawned.clear()

    def forget(self, name: str) -> None:
        """Free the memory of an entity that was removed."""
        self._memory.forget(name)

    def spawn(self, name: str, tables: Tables, rows: int, where_free: bool = False) -> NewRows:
        """Queue `rows` new rows."""
        batch = NewRows(name, tables, where_free, np.arange(rows))
        if rows:
            self.queued.add(name)
            self._spawned.append(batch)
        return batch

    def drop(self, misplaced: Callable[[NewRows], Array]) -> dict[str, tuple[int, int]]:
        """Drop rows spawned `where_free` that `misplaced` masks; returns (dropped, all) by entity."""
        counts: dict[str, tuple[int, int]] = {}
        for batch in self._spawned:
            if not batch.where_free:
                continue
            keep = ~misplaced(batch)
            dropped, total = counts.get(batch.name, (0, 0))
            counts[batch.name] = dropped + int(np.count_nonzero(~keep)), total + batch.rows
            if not keep.all():
                batch.kept_rows = batch.kept_rows[keep]
                batch.tables = {
                    kind: kind.unchecked(**{name: array[keep] for name, array in table.__dict__.items()})
                    for kind, table in batch.tables.items()
                }
        return counts

    def pending(self, name: str) -> tuple[Array | None, list[NewRows]]:
        """Mask of the rows of an entity that will be removed (None for none), and its new rows."""
        return self._killed.get(name), [batch for batch in self._spawned if batch.name == name]

    def kill(self, name: str, rows: Any, count: int, own: slice = slice(None)) -> None:
        """Queue the removal of rows given as a mask (count,) or as row numbers below `count`.

        Only the mask of the `own` rows is kept: with many ranks, others hold the rest.
        """
        try:
            chosen = np.asarray(rows)
        except ValueError:
            chosen = np.array([None])  # lists of unequal length
        if np.ma.is_masked(rows):
            raise ComponentError(
                f"entity {name!r}: some rows to kill are masked; fill them or leave them out"
            )
        if chosen.dtype == np.bool_:
            if chosen.shape != (count,):
                raise ComponentError(
                    f"entity {name!r}: the kill mask has shape {chosen.shape}; shape ({count},) is needed"
                )
            if not chosen.any():
                return
        elif chosen.size and chosen.dtype.kind not in "iu":
            raise ComponentError(
                f"entity {name!r}: rows to kill have dtype {chosen.dtype}; a mask or row numbers are allowed"
            )
        elif chosen.size and not ((chosen >= 0) & (chosen < count)).all():
            worst = int(chosen[(chosen < 0) | (chosen >= count)].flat[0])
            raise ComponentError(f"entity {name!r}: row {worst} cannot be killed; there are {count} rows")
        if chosen.dtype != np.bool_:
            numbers, chosen = chosen.astype(np.int64), np.zeros(count, dtype=bool)
            chosen[numbers] = True
        mask = chosen[own].copy()
        self.queued.add(name)
        former = self._killed.get(name)
        self._killed[name] = mask if former is None else former | mask

    def apply(self, world: World, names: set[str]) -> None:
        """Carry out all kills, then all spawns, of these entities; tables are compacted once."""
        try:
            for name in [entity.name for entity in world.entities if entity.name in names]:
                self._rebuild(world, name)
                world.processes.rebalance_rows(world, name)
        finally:
            self.clear()
        if world._schedule is None:  # otherwise the derived tables have followed the changes above
            world._attach_derived()

    def _rebuild(self, world: World, name: str) -> None:
        """Take the killed rows out of all per-row tables of an entity, and append the new ones."""
        entity, (killed, born) = world[name], self.pending(name)
        keep = None if killed is None else _surviving_rows(killed)
        if keep is None and not born:
            return
        for batch in born:
            batch.ids = world._new_ids(batch.rows)
        if not world.processes.appends_new_rows(name):
            born = []
        counts, fresh = [batch.rows for batch in born], [batch.ids for batch in born]
        for kind, table in entity.tables.items():
            if not kind.per_row:
                continue
            for column, field in kind.columns.items():
                # Derived tables change too, so that observers see the values of these rows; new rows have 0.
                new = fresh if kind is RowId else [_new_values(batch.tables, kind, field) for batch in born]
                old = table.__dict__[column]
                table.__dict__[column] = self._memory.rebuilt((name, kind, column), old, keep, new, counts)


def _new_values(tables: Tables, kind: type[Component], field: Column) -> Any:
    """New rows of a column; its default, one value for all, if `tables` lacks the component."""
    return tables[kind].__dict__[field.name] if kind in tables else field.default or 0


def _surviving_rows(killed: Array) -> Any:
    """Rows that stay: None for all, a slice if they are one block, else their numbers."""
    lost = int(np.count_nonzero(killed))
    if not lost:
        return None
    first, count = int(killed.argmin()), len(killed)
    if lost < count:
        last = count - int(killed[::-1].argmin())
        if last - first == count - lost:  # the oldest die first: one block stays
            return slice(first, last)
    return np.flatnonzero(~killed)
