"""How systems join a world: all at once, and none of them if one is refused."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from typing import TYPE_CHECKING

from ecs_fluid.errors import FluidError, ScheduleError, UnknownEntityError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.periodic import check_periodic
from ecs_fluid.plane import check_dimension
from ecs_fluid.plugins import users_method
from ecs_fluid.system import System

if TYPE_CHECKING:
    from ecs_fluid.world import World


def join(world: World, systems: Sequence[System]) -> None:
    """Add systems to the world; if one of them requires another one of the list, it gets that one."""
    for number, system in enumerate(systems):
        _check_system(world, system)
        if system._world is not None or any(system is other for other in systems[:number]):
            raise ScheduleError(f"{type(system).__name__} is already in a world; make a new one")
        check_dimension(type(system), world, ScheduleError)
        check_periodic(type(system), world)
    backup, adder = _Backup(world), world._joining_system
    implied = adder is not None
    classes = {type(system) for system in systems}
    # A system that another one brought along gives way to one of its kind that the user chose.
    remaining = [
        other for other in world._systems if implied or not (other._implied and type(other) in classes)
    ]
    world._systems, world._schedule = [*remaining, *systems], None
    world._ticker.new_systems = True
    for system in systems:
        system._world, system._implied = weakref.ref(world), implied
        system._user_defined = not is_shipped(type(system))
    try:
        _set_up(world, systems)
    except BaseException as error:
        # A refused system must not run after all, nor leave what it has made.
        with world._active():
            backup.restore(world)
        for system in systems:
            system._world = None
        if adder is None or not isinstance(error, FluidError):
            raise
        raise type(error)(
            f"{error}; {type(adder).__name__} adds this system to a world that has none, so add your own "
            "before it, or both at once by add_systems"
        ) from error.__cause__
    finally:
        world._joining_system = adder


@contextmanager
def rejoin(world: World, systems: Sequence[System]) -> Iterator[None]:
    """Surround a change of what `systems` depend on: afterwards they do again what they do when they join.

    If that adds entities or tables, all other systems do so too. If the change or a system is refused,
    everything is put back as it was.
    """
    backup, adder, visible = _Backup(world), world._joining_system, (world._running, world._visible_tables)
    try:
        yield
        # Declarations of the system that made the change do not bind those that join.
        world._running, world._visible_tables = None, world._tables_by_number
        _set_up(world, systems)
        if backup.has_less_than(world):
            _set_up(world, [system for system in world._systems if system not in systems])
        if backup.declarations_changed():
            world._schedule = None
    except BaseException:
        backup.restore(world)
        raise
    finally:
        world._joining_system, (world._running, world._visible_tables) = adder, visible


class _Backup:
    """What a world was: its systems with their attributes, its tables with their columns.

    Arrays are kept without a copy, so systems that join must assign columns, and change none in place.
    """

    def __init__(self, world: World) -> None:
        self._systems = [(system, vars(system).copy()) for system in world._systems]
        self._tables = {
            entity.name: [
                (table, vars(table).copy()) for table in world._tables_by_number[entity.number].values()
            ]
            for entity in world.entities
        }
        self._next_row_id = world._next_row_id

    def has_less_than(self, world: World) -> bool:
        """Whether the world has entities or tables now that it did not have."""
        return any(
            {*entity.tables} - {type(table) for table, _ in self._tables.get(entity.name, ())}
            for entity in world.entities
        )

    def declarations_changed(self) -> bool:
        """Whether a system now declares other components or systems."""
        return any(
            vars(system).get(name) != attributes.get(name)
            for system, attributes in self._systems
            for name in ("reads", "may_read", "writes", "adds", "asks")
        )

    def restore(self, world: World) -> None:
        """Make the world, which must be active, what it was; only esper's numbers of entities go on."""
        world._systems, world._schedule = [system for system, _ in self._systems], None
        for system, attributes in self._systems:
            vars(system).clear()
            vars(system).update(attributes)
        for entity in world.entities:
            if entity.name not in self._tables:
                world._delete_entity(entity.name)
                continue
            tables = self._tables[entity.name]
            if list(entity.tables.values()) != [table for table, _ in tables]:
                for kind in [*entity.tables]:
                    world._remove_table(entity, kind)
                for table, _ in tables:
                    world._add_table(entity, table)
            for table, columns in tables:
                vars(table).update(columns)
        world._next_row_id = self._next_row_id


def _set_up(world: World, systems: Sequence[System]) -> None:
    """Let systems make their entities, check their parameters, and bring what they need."""
    for system in systems:
        world._joining_system = system
        with users_method(type(system), "spawns"):
            system.spawns(world)
    for system in systems:
        world._joining_system = system
        on = getattr(system, "on", ())
        with _telling_where(system):
            for name in on if isinstance(on, tuple) else ():
                world[name]  # an error without one
            with users_method(type(system), "added"):
                system.added(world)
    for system in systems:
        with _telling_where(system), users_method(type(system), "must_hold"):
            system.must_hold(world)


NAMING = ("on", "into", "attached", "name", "wake", "hydrostatic", "body")
"""Parameters by which systems name entities, also in tables within their parameters."""


def system_naming(systems: Sequence[System], name: str) -> str | None:
    """The first system that names an entity in a parameter, as text."""
    for system in systems:
        if any(name == other for other, _ in _named_entities(system.parameters.model_dump())):
            return type(system).__name__
    return None


@contextmanager
def _telling_where(system: System) -> Iterator[None]:
    """Say which parameter of the system names an entity that the world does not have."""
    try:
        yield
    except UnknownEntityError as error:
        for name, where in _named_entities(system.parameters.model_dump()):
            if name == error.name:
                raise UnknownEntityError(f"{type(system).__name__}: {where}: {error}") from error.__cause__
        raise


def _named_entities(values: object, key: str = "", owner: str = "") -> Iterator[tuple[str, str]]:
    """Names of entities in the parameters of a system, and in tables within these, and where they stand."""
    if isinstance(values, dict):
        owner = f" of {values['name']!r}" if isinstance(values.get("name"), str) else owner
        for inner, value in values.items():
            yield from _named_entities(value, inner, owner)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _named_entities(value, key, owner)
    elif key in NAMING and isinstance(values, str):
        yield values, f"{key} = {values!r}{'' if key == 'name' else owner}"


def _check_system(world: World, system: System) -> None:
    """Raise ScheduleError for what is not a system, or cannot run."""
    if not isinstance(system, System):
        raise ScheduleError(f"{system!r} is not a system; pass an instance of an ecs_fluid.System")
    if "_world" not in vars(system):
        raise ScheduleError(f"{type(system).__name__}.__init__ must call super().__init__()")
    try:
        signature(system.process).bind(world.dt)
    except TypeError:
        raise ScheduleError(f"{type(system).__name__} needs a method process(self, dt)") from None
    if any(lazy(system.process) for lazy in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)):
        raise ScheduleError(
            f"{type(system).__name__}.process has a yield or is async, so a call of it would do nothing; "
            "a plain method is needed"
        )
