"""Checks of worlds with debug=True: systems may read and change only the components they declare."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Component, Tables
from ecs_fluid.errors import ScheduleError
from ecs_fluid.row_changes import RowChanges
from ecs_fluid.schedule import may_ask

if TYPE_CHECKING:
    from ecs_fluid.system import System
    from ecs_fluid.world import World


@contextmanager
def checked_access(world: World, system: System) -> Iterator[None]:
    """While active, access to tables and other systems is checked against what `system` declares.

    The system that integrates the rates may access everything.
    """
    former = world._running, world._visible_tables
    every = former[1].every if isinstance(former[1], CheckedTables) else former[1]
    world._running, world._visible_tables = (
        (None, every) if system.integrates else (system, CheckedTables(every, system))
    )
    try:
        yield
    finally:
        world._running, world._visible_tables = former


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


def _checksum(table: Component) -> int:
    value = 0
    for _, array in table.items():
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


def _checksums(world: World, system: System) -> dict[tuple[str, type[Component]], int]:
    """Checksums of each table that the system may not change."""
    return {
        (entity, kind): _checksum(table)
        for entity, tables in world._named_tables
        for kind, table in tables.items()
        if kind not in system.writes and kind not in system.adds
    }


def check_additions(world: World, system: System) -> None:
    """Raise ScheduleError when `system` overwrites derived tables that it declares only to add to.

    Once, before the system first runs on rows of such tables, a copy of it runs with these tables filled with
    NaN: numbers that are finite afterwards were set, not added. What the copy changes is undone. Not checked
    are tables that the system also reads, observers, which may change the world, and worlds on several
    processes.
    """
    only = {kind for kind in system.adds if kind.derived}
    only = only.difference(system.reads, system.may_read, system.writes)
    both = {*system.writes, *system.adds}
    changed = [
        (name, tables[kind]) for name, tables in world._named_tables for kind in both if kind in tables
    ]
    added = [
        (vars(table), field, name)
        for name, table in changed
        if type(table) in only and table.rows
        for field in type(table).columns.values()
        if field.kind != "int"
    ]
    if not added or system._probed or system.phase == "observe" or world.processes.scopes:
        return
    system._probed = True
    row_changes = world._ticker.row_changes
    saved = [(vars(table), vars(table).copy()) for _, table in changed]
    try:
        world._ticker.row_changes = RowChanges()
        for columns, former in saved:
            columns.update(copy.deepcopy(former))
        for columns, field, _ in added:
            columns[field.name].fill(np.nan)
        # What breaks the copy breaks the system too, or comes from the NaN.
        with warnings.catch_warnings(action="ignore"), suppress(Exception):
            copy.deepcopy(system, {id(world): world}).process(world.dt)
        for columns, field, name in added:
            if np.isfinite(columns[field.name]).any():
                raise ScheduleError(
                    f"{type(system).__name__} declares only to add to {field.label}, but overwrites it in "
                    f"entity {name!r}; write += in place of =, or move {field.component} from its adds to "
                    "its writes"
                )
    finally:
        world._ticker.row_changes = row_changes
        for columns, former in saved:
            columns.update(former)


def poison(world: World) -> None:
    """Fill derived tables with NaN before systems refill them; except rates, which start at zero."""
    every = (table for _, tables in world._named_tables for table in tables.values())
    for table in (each for each in every if each.derived and each.rate_of is None):
        for field, array in table.items():
            if field.kind == "float":
                array.fill(np.nan)


class CheckedTables(Mapping[int, "Tables"]):
    """Tables of all entities, by their numbers, as a running system sees them."""

    def __init__(self, every: Mapping[int, Tables], system: System) -> None:
        self.every, self._system = every, system

    def __getitem__(self, number: int) -> Any:
        return CheckedEntityTables(self.every[number], self._system)

    def __iter__(self) -> Iterator[int]:
        return iter(self.every)

    def __len__(self) -> int:
        return len(self.every)


class CheckedEntityTables(Mapping[type[Component], Component]):
    """Tables of an entity; to read one, or to ask whether it is there, the system must declare it.

    Listing the components needs no declaration.
    """

    def __init__(self, tables: Tables, system: System) -> None:
        self._tables, self._system = tables, system

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the tables themselves, for isinstance."""
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


class CheckedSystem:
    """A system as another one sees it: its methods run under its own declarations, not the caller's."""

    def __init__(self, world: World, system: System) -> None:
        object.__setattr__(self, "_target", (world, system))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the system, for isinstance."""
        return type(self._target[1])

    def __getattr__(self, name: str) -> Any:
        world, system = self._target
        with checked_access(world, system):
            value = getattr(system, name)
        if not inspect.ismethod(value):
            return value

        @functools.wraps(value)
        def call(*arguments: Any, **keywords: Any) -> Any:
            caller = world._running
            if caller is not None and not may_ask(caller, system):
                called = type(system).__name__
                raise ScheduleError(
                    f"{type(caller).__name__} calls {called}.{name} without declaring it; add {called} to "
                    "its asks"
                )
            with checked_access(world, system):
                result = value(*arguments, **keywords)
            return self._checked_items(result) if inspect.isgenerator(result) else result

        return call

    def _checked_items(self, items: Iterator[Any]) -> Iterator[Any]:
        """Items of a generator of the system, whose body also runs under the system's declarations."""
        while True:
            with checked_access(*self._target):
                item = next(items, self)
            if item is self:  # the end
                return
            yield item

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target[1], name, value)


def checked_system(world: World, system: System) -> Any:
    """The system as the running one sees it; itself if none runs."""
    caller = world._running
    return system if caller is None or system is caller else CheckedSystem(world, system)
