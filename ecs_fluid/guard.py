"""The guard around a tick: a copy of the state at its start, and which system made numbers non-finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.errors import DivergedError
from ecs_fluid.schedule import named
from ecs_fluid.system import System

if TYPE_CHECKING:
    from ecs_fluid.world import World


class Guard:
    """One copy of the state at the start of the tick, with the clock and the row counter."""

    def __init__(self) -> None:
        self._saved: dict[str, dict[type[Component], dict[str, Array]]] = {}
        self._clock = (0, 0)
        self._bounds: dict[str, Array] = {}

    def keep(self, world: World) -> None:
        """Copy the state."""
        self._clock = (world.tick, world._next_row_id)
        self._bounds = dict(world.processes.bounds)
        self._saved = {}  # the former copy is freed before there is another one
        self._saved = {
            entity: {
                kind: {name: array.copy() for name, array in vars(table).items()}
                for kind, table in tables.items()
                if not kind.derived
            }
            for entity, tables in world._named_tables
        }

    def restore(self, world: World) -> None:
        """Put the kept state back."""
        world.tick, world._next_row_id = self._clock
        world.processes.bounds.update(self._bounds)
        for entity in world.entities:
            saved = self._saved.get(entity.name, {})
            for kind in [kind for kind in entity.tables if not kind.derived and kind not in saved]:
                world._remove_table(entity, kind)
            for kind, columns in saved.items():
                table = entity.tables[kind]
                for name, array in columns.items():
                    table.__dict__[name] = array.copy()
        world._attach_derived()

    def first_non_finite(
        self, world: World, wanted: Callable[[type[Component]], bool] | None = None
    ) -> str | None:
        """Place, as text, of the first non-finite number in the state or the `wanted` components; or None."""
        places = [
            (number, f"{kind.__name__}.{column}", _first_row(world, entity, array), entity)
            for number, (entity, tables) in enumerate(world._named_tables)
            for kind, table in tables.items()
            if (wanted(kind) if wanted else not kind.derived)
            for column in kind.columns
            if not is_finite(array := table.__dict__[column])
        ]
        first = world.processes.first_place(min(places, default=None))
        return None if first is None else f"entity {first[3]!r}: {first[1]} row {first[2]}"

    # ------------------------------------------------------------------ the responsible system

    def check(self, world: World, system: System) -> None:
        """Raise DivergedError when this system left something non-finite behind."""
        touched = {*system.writes, *system.adds}
        bad = self.first_non_finite(world, lambda kind: not kind.derived or kind in touched)
        if bad is not None:
            raise self.error(world, bad, system)

    def check_observer(self, world: World, system: System) -> None:
        """Raise DivergedError, with the state put back, when an observer wrote something non-finite."""
        written = {kind for kind in system.writes if not kind.derived}
        bad = self.first_non_finite(world, written.__contains__) if written else None
        if bad is not None:
            self.restore(world)
            raise self.error(world, bad, system)

    def check_start(self, world: World) -> None:
        """Raise DivergedError when the restored state was not finite to begin with."""
        bad = self.first_non_finite(world)
        if bad is not None:
            raise DivergedError(
                f"tick {world.tick + 1} (t = {world.time:.6g} s): {bad} was not finite before the tick "
                "began; no system caused it, so check what was assigned between two ticks"
            )

    def error(self, world: World, bad: str, system: System | None) -> DivergedError:
        """The error that names the place, the responsible system, if one was found, and what to change."""
        tick, culprit = self._clock[0], type(system).__name__ if system else "the end of the tick"
        own = system is not None and system._user_defined
        remedy = "check what it computes, or use a smaller dt" if own else _remedy(world)
        return DivergedError(
            f"tick {tick + 1} (t = {tick * world.dt:.6g} s): {culprit} made {bad} non-finite; the world is "
            f"back at its last good state, the start of that tick; {remedy}"
        )


def is_finite(array: Array) -> bool:
    """Whether no number of the array is NaN or infinite; whole numbers never are."""
    if array.dtype.kind != "f":
        return True
    if array.ndim == 0:  # a constant of the fluid
        return math.isfinite(array)
    return bool(np.isfinite(array).all())


def _remedy(world: World) -> str:
    """What keeps light bodies and strengths from running away, of what the world does not have yet."""
    ways = ["a smaller dt"]
    if named(world.systems, "BodySystem"):
        ways.append("heavier free bodies")
    if any(kind.__name__ == "Strength" for _, tables in world._named_tables for kind in tables):
        ways += _ways_of_vortons(world)
    return f"use {', '.join(ways[:-1])}, or {ways[-1]}" if ways[1:] else f"use {ways[0]}"


def _ways_of_vortons(world: World) -> list[str]:
    ways = ["a larger core radius", "a higher viscosity, also of small eddies"]
    lone = "[fluid] diffusion = { method = 'core_spreading' }"  # exchange ends where vortons drift apart
    exchanging = any(one.method != "core_spreading" for one in named(world.systems, "DiffusionSystem"))
    if not (named(world.systems, "ReformulationSystem") and named(world.systems, "SubfilterSystem")):
        ways.append(f"reformulation and subfilter together{f' with {lone}' if exchanging else ''}")
    elif exchanging:
        ways.append(lone)
    stretching = [system for system in named(world.systems, "StretchSystem") if system.scheme != "none"]
    if stretching and named(world.systems, "BoundarySystem"):
        ways.append("behind bodies [fluid] stretch = { scheme = 'none' }")
    return ways


def _first_row(world: World, entity: str, array: Array) -> int:
    """Number, among the rows of all processes, of this array's first row that is not finite."""
    bad = ~np.isfinite(np.atleast_1d(array))
    return world.processes.placed(world[entity], len(bad))[0] + int(np.argwhere(bad)[0, 0])
