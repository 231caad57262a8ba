"""Debug worlds: systems see and change what they declare, and other systems answer under declarations too."""

from __future__ import annotations

import functools
import inspect
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Component
from ecs_fluid.errors import ScheduleError
from ecs_fluid.schedule import named

if TYPE_CHECKING:
    from ecs_fluid.integrator import Tables
    from ecs_fluid.system import System
    from ecs_fluid.world import World


@contextmanager
def running(world: World, system: System) -> Iterator[None]:
    """While active, tables and other systems are checked against what `system` declares.

    The system that integrates every rate sees everything.
    """
    former = world._running, world._shown
    every = former[1].every if isinstance(former[1], Shown) else former[1]
    world._running, world._shown = (None, every) if system.integrates else (system, Shown(every, system))
    world._found.clear()
    try:
        yield
    finally:
        world._running, world._shown = former
        world._found.clear()


@contextmanager
def undeclared_changes(world: World, system: System) -> Iterator[None]:
    """Raise ScheduleError when `system` has changed a table that it did not declare."""
    if system.integrates:
        yield
        return
    before = _checksums(world, system)
    yield
    after = _checksums(world, system)
    for (entity, kind), value in before.items():
        if after.get((entity, kind), value) != value:
            raise ScheduleError(
                f"{type(system).__name__} changed {kind.__name__} of entity {entity!r} without declaring "
                f"it; add {kind.__name__} to its writes or adds"
            )


def _checksums(world: World, system: System) -> dict[tuple[str, type[Component]], int]:
    """Of all columns of each table that the system may not change."""
    return {
        (entity, kind): zlib.crc32(b"".join(array.tobytes() for _, array in table.items()))
        for entity, tables in world.tables
        for kind, table in tables.items()
        if kind not in system.writes and kind not in system.adds
    }


def poison(world: World) -> None:
    """Fill derived tables (but rates, which start at zero) with NaN, before systems refill them."""
    for _, tables in world.tables:
        for kind, table in tables.items():
            if kind.derived and kind.rate_of is None:
                for field, array in table.items():
                    if field.kind == "float":
                        array.fill(np.nan)


class Shown(Mapping[int, "Tables"]):
    """Tables of all entities, by their numbers, as a running system sees them."""

    def __init__(self, every: Mapping[int, Tables], system: System) -> None:
        self.every, self._system = every, system

    def __getitem__(self, number: int) -> Any:
        return DeclaredTables(self.every[number], self._system)

    def __iter__(self) -> Iterator[int]:
        return iter(self.every)

    def __len__(self) -> int:
        return len(self.every)


class DeclaredTables(Mapping[type[Component], Component]):
    """Tables of an entity for a system that must have declared what it looks at, or whether it is there.

    Which components there are it may list.
    """

    def __init__(self, tables: Tables, system: System) -> None:
        self._tables, self._system = tables, system

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """That of the tables, so that nobody needs to know of the check."""
        return type(self._tables)

    def _check(self, kind: object) -> None:
        if isinstance(kind, type) and issubclass(kind, Component):
            self._system.check_declared(kind)

    def __getitem__(self, kind: type[Component]) -> Component:
        self._check(kind)
        return self._tables[kind]

    def __contains__(self, kind: object) -> bool:
        self._check(kind)
        return kind in self._tables

    def __iter__(self) -> Iterator[type[Component]]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def copy(self) -> Tables:
        """All of them, as a dict."""
        return dict(self)

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**other, **self}


class Asked:
    """A system as another one sees it: parameters as they are, methods under declarations of their own."""

    def __init__(self, world: World, system: System) -> None:
        object.__setattr__(self, "_asked", (world, system))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """That of the system, for isinstance."""
        return type(self._asked[1])

    def __getattr__(self, name: str) -> Any:
        world, system = self._asked
        with running(world, system):
            value = getattr(system, name)
        if not inspect.ismethod(value):
            return value

        @functools.wraps(value)
        def answer(*arguments: Any, **named_ones: Any) -> Any:
            asker = world._running
            if asker is not None and not any(named(system, other) for other in asker.asks):
                asked = type(system).__name__
                raise ScheduleError(
                    f"{type(asker).__name__} asks {asked} for {name} but does not declare it; add {asked} to "
                    "its asks"
                )
            with running(world, system):
                return value(*arguments, **named_ones)

        return answer

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._asked[1], name, value)


def as_asked(world: World, system: System | None) -> Any:
    """The system, as the one that runs sees it."""
    asker = world._running
    return system if asker is None or system is None or system is asker else Asked(world, system)
