"""Keeps the last good state of a tick and finds who broke it; catches undeclared access in debug worlds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Component, RowId, finite
from ecs_fluid.errors import DivergedError, ScheduleError

if TYPE_CHECKING:
    from ecs_fluid.system import System
    from ecs_fluid.world import World

MANY = 2**15
"""Numbers from which on a column is copied and looked at by all threads."""

Saved = dict[str, dict[type[Component], dict[str, Array]]]


Place = tuple[int, str, int, str]
"""Where something is not finite: number of the entity, label of the column, row, name of the entity."""


def _bad_row(world: World, number: int, name: str, table: Component) -> Iterator[Place]:
    """The first place in each column of a table that is not finite."""
    for field, array in table.items():
        if not finite(array):
            flat = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
            row = int(np.flatnonzero(~np.isfinite(flat).all(axis=1))[0])
            yield number, field.label, world.processes.placed(world[name])[0] + row, name


def _copy(array: Array, old: Array) -> None:
    from ecs_fluid.kernels.compiled.copying import copy

    copy(array, old)


def _fine(array: Array) -> bool:
    """`finite` of a column."""
    if array.size < MANY or array.dtype.kind != "f":
        return finite(array)
    from ecs_fluid.kernels.compiled.reduce import all_finite

    return all_finite(array)


def _said(place: Place | None) -> str | None:
    return None if place is None else f"entity {place[3]!r}: {place[1]} row {place[2]}"


class Guard:
    """One copy of the state at the start of the tick, with the clock and the row counter."""

    def __init__(self) -> None:
        self._saved: Saved = {}
        self._clock = (0, 0)
        self._bounds: dict[str, Array] = {}
        self.replaying = False

    def keep(self, world: World) -> None:
        """Copy the state; buffers are reused while shapes stay."""
        self._clock = (world.tick, world.next_row_id)
        self._bounds = dict(world.processes.bounds)
        for entity, tables in world.tables:
            saved = self._saved.setdefault(entity, {})
            for kind, table in tables.items():
                if kind.derived:
                    continue
                columns, arrays = saved.setdefault(kind, {}), table.__dict__
                for name in kind.columns:
                    array, old = arrays[name], columns.get(name)
                    if kind is RowId:
                        columns[name] = array  # its rows come and go, but none of them ever changes
                    elif old is None or old.shape != array.shape or old.dtype != array.dtype:
                        columns[name] = array.copy()
                    elif array.size < MANY:
                        old[...] = array
                    else:
                        _copy(array, old)

    def restore(self, world: World) -> None:
        """Put the kept state back."""
        world.tick, world.next_row_id = self._clock
        world.processes.bounds.update(self._bounds)
        for entity in world.entities:
            saved = self._saved.get(entity.name, {})
            for kind in [kind for kind in entity.tables if not kind.derived and kind not in saved]:
                world._drop(entity, kind)
            for kind, columns in saved.items():
                table = entity.tables[kind]
                for name, array in columns.items():
                    table.__dict__[name] = array.copy()
        world._attach_derived()

    def first_bad(self, world: World) -> str | None:
        """Place of the first state column that holds a non-finite number, or None."""
        return self._bad(world, lambda kind: not kind.derived)

    def _bad(self, world: World, wanted: Any) -> str | None:
        bad = None if self._all_finite(world, wanted) else next(self._bad_rows(world, wanted), None)
        return _said(world.processes.first(bad))

    def _all_finite(self, world: World, wanted: Any) -> bool:
        """Whether there is nothing to look for in order: what every good tick asks."""
        return all(
            _fine(table.__dict__[name])
            for _, tables in world.tables
            for kind, table in tables.items()
            if wanted(kind)
            for name in kind.columns
        )

    def _bad_rows(self, world: World, wanted: Any) -> Iterator[Place]:
        for number, (entity, tables) in enumerate(world.tables):
            for kind in sorted(tables, key=lambda kind: kind.__name__):
                if wanted(kind):
                    yield from _bad_row(world, number, entity, tables[kind])

    # ------------------------------------------------------------------ who did it

    @contextmanager
    def replay(self) -> Iterator[None]:
        """While active, a tick that failed runs again, and every system is checked right after it ran."""
        self.replaying = True
        try:
            yield
        finally:
            self.replaying = False

    def check(self, world: World, system: System) -> None:
        """Raise DivergedError when this system left something non-finite behind."""
        touched = {*system.writes, *system.adds}
        bad = self._bad(world, lambda kind: not kind.derived or kind in touched)
        if bad is not None:
            raise self.error(world, bad, type(system).__name__)

    def check_written(self, world: World, system: System) -> None:
        """Raise DivergedError, with the state put back, when an observer wrote something non-finite."""
        for kind in system.writes:
            for entity, (table,) in world.entities_with(kind) if not kind.derived else ():
                bad = _said(world.processes.first(next(_bad_row(world, 0, entity.name, table), None)))
                if bad is not None:
                    self.restore(world)
                    raise self.error(world, bad, type(system).__name__)

    def check_start(self, world: World) -> None:
        """Raise DivergedError when the restored state was not finite to begin with."""
        bad = self.first_bad(world)
        if bad is not None:
            raise DivergedError(
                f"tick {world.tick + 1} (t = {world.time:.6g} s): {bad} was not finite before the tick "
                "began; no system did it, so look at what was assigned between two ticks"
            )

    def error(self, world: World, bad: str, who: str) -> DivergedError:
        """The error that names place, culprit and cure."""
        tick = self._clock[0]
        return DivergedError(
            f"tick {tick + 1} (t = {tick * world.dt:.6g} s): {who} made {bad} non-finite; the world is back "
            "at its last good state, the start of that tick; use a smaller dt, a larger core radius or a "
            "higher viscosity"
        )

    # ------------------------------------------------------------------ debug worlds

    def poison(self, world: World) -> None:
        """Fill derived tables (but rates, which start at zero) with NaN."""
        for _, tables in world.tables:
            for kind, table in tables.items():
                if kind.derived and kind.rate_of is None:
                    for field, array in table.items():
                        if field.kind == "float":
                            array.fill(np.nan)

    @contextmanager
    def watch(self, world: World, system: System) -> Iterator[None]:
        """Raise ScheduleError when `system` changes a table it did not declare."""
        if system.integrates:
            yield
            return
        before = self._sums(world, system)
        yield
        after = self._sums(world, system)
        for (entity, kind), value in before.items():
            if after.get((entity, kind), value) != value:
                raise ScheduleError(
                    f"{type(system).__name__} changed {kind.__name__} of entity {entity!r} without declaring "
                    f"it; add {kind.__name__} to its writes or adds"
                )

    def _sums(self, world: World, system: System) -> dict[tuple[str, type[Component]], int]:
        sums = {}
        for entity, tables in world.tables:
            for kind, table in tables.items():
                if kind not in system.writes and kind not in system.adds:
                    value = 0
                    for _, array in table.items():
                        value = zlib.crc32(array.tobytes(), value)
                    sums[entity, kind] = value
        return sums
