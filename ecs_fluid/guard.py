"""Keeps the last good state of a tick and finds who broke it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array, Component, RowId
from ecs_fluid.errors import DivergedError

if TYPE_CHECKING:
    from ecs_fluid.system import System
    from ecs_fluid.world import World

MANY = 2**15
"""Numbers from which on a column is copied and looked at by all threads."""


def finite(array: Array) -> bool:
    """Whether no number of the array is NaN or infinite; whole numbers never are."""
    if array.size < MANY or array.dtype.kind != "f":
        return bool(np.isfinite(array).all())
    from ecs_fluid.kernels.compiled.reduce import all_finite

    return all_finite(array)


def _first_row(world: World, entity: str, array: Array) -> int:
    """The first row, of those on all processes, that is not finite."""
    bad = ~np.isfinite(np.atleast_1d(array))
    return world.processes.placed(world[entity], len(bad))[0] + int(np.argwhere(bad)[0, 0])


class Guard:
    """One copy of the state at the start of the tick, with the clock and the row counter."""

    def __init__(self) -> None:
        self._saved: dict[str, dict[type[Component], dict[str, Array]]] = {}
        self._clock = (0, 0)
        self._bounds: dict[str, Array] = {}

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
                        from ecs_fluid.kernels.compiled.copying import copy

                        copy(array, old)

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

    def first_bad(self, world: World, wanted: Callable[[type[Component]], bool] | None = None) -> str | None:
        """Place of the first non-finite number in the state, or in the components `wanted`; None without."""
        places = [
            (number, f"{kind.__name__}.{column}", _first_row(world, entity, array), entity)
            for number, (entity, tables) in enumerate(world.tables)
            for kind, table in tables.items()
            if (wanted(kind) if wanted else not kind.derived)
            for column, array in table.__dict__.items()
            if not finite(array)
        ]
        first = world.processes.first(min(places, default=None))
        return None if first is None else f"entity {first[3]!r}: {first[1]} row {first[2]}"

    # ------------------------------------------------------------------ who did it

    def check(self, world: World, system: System) -> None:
        """Raise DivergedError when this system left something non-finite behind."""
        touched = {*system.writes, *system.adds}
        bad = self.first_bad(world, lambda kind: not kind.derived or kind in touched)
        if bad is not None:
            raise self.error(world, bad, type(system).__name__)

    def check_observer(self, world: World, system: System) -> None:
        """Raise DivergedError, with the state put back, when an observer wrote something non-finite."""
        written = {kind for kind in system.writes if not kind.derived}
        bad = self.first_bad(world, written.__contains__) if written else None
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
