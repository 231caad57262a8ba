"""The entities of a world: populations, their tables of components, and the rows in these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import esper
import numpy as np

from ecs_fluid.component import Array, Component, RowId, Tables, refuse_no_component
from ecs_fluid.contexts import active_context, new_context
from ecs_fluid.entity import Entity
from ecs_fluid.errors import ComponentError, FluidError, UnknownEntityError
from ecs_fluid.joining import system_naming
from ecs_fluid.one_process import OneProcess, before_sharing
from ecs_fluid.periodic import wrapped
from ecs_fluid.schedule import REPEATED, Schedule
from ecs_fluid.system import Queries, System
from ecs_fluid.tables import checked_rows, checked_tables
from ecs_fluid.ticker import Ticker
from ecs_fluid.validation_errors import LONGEST_NAME, NAME, nearest, shown, unfit_for_files

if TYPE_CHECKING:
    from ecs_fluid.row_changes import NewRows
    from ecs_fluid.world import World


class Entities(Queries):
    """The part of a World that holds its entities; the first is the `fluid` entity."""

    dtype: type[np.floating]
    periods: Array
    processes: OneProcess
    recipe: dict[str, Any] | None
    _systems: list[System]
    _schedule: Schedule | None
    _ticker: Ticker

    def __init__(self) -> None:
        self._context = new_context(self)
        self._entities: dict[str, Entity] = {}
        self._tables_by_number: dict[int, Tables] = {}
        # The tables that users and systems see: all, or those of the running system (debug, or many ranks).
        self._visible_tables: Mapping[int, Tables] = self._tables_by_number
        self._running: System | None = None  # in debug worlds only
        self._next_row_id = 0

    @property
    def _world(self) -> World:
        """This object, for type checkers: World is the one subclass."""
        return cast("World", self)

    def _active(self) -> AbstractContextManager[None]:
        """While active, esper is switched to this world, and other threads wait."""
        return active_context(self._context)

    def _create(self, name: str, tables: Tables) -> Entity:
        with self._active():
            number = esper.create_entity(*tables.values())
            entity = self._entities[name] = Entity(self._world, number, name)
            self._refresh_tables(number)
        return entity

    def _refresh_tables(self, number: int) -> None:
        # A new dict each time, so that loops over the former one are not disturbed.
        tables: tuple[Component, ...] = esper.components_for_entity(number)
        self._tables_by_number[number] = {type(table): table for table in tables}

    def _add_table(self, entity: Entity, table: Component) -> None:
        with self._active():
            esper.add_component(entity.number, table)
            self._refresh_tables(entity.number)

    def _remove_table(self, entity: Entity, kind: type[Component]) -> None:
        with self._active():
            esper.remove_component(entity.number, kind)
            self._refresh_tables(entity.number)

    @property
    def entities(self) -> list[Entity]:
        """All entities in the order in which they were made; the first is the `fluid` entity."""
        return list(self._entities.values())

    def __getitem__(self, name: str) -> Entity:
        if isinstance(name, Entity):
            raise FluidError(f"entities are found by their names; write {name.name!r} in place of {name!r}")
        if not isinstance(name, str) or name not in self._entities:
            error = UnknownEntityError(
                f"the world has no entity {name!r}; {nearest(str(name), self._entities)}"
            )
            error.name = str(name)
            raise error
        return Entity(self._world, self._entities[name].number, name, keep_world=True)

    def __contains__(self, name: str) -> bool:
        return isinstance(name, str) and name in self._entities

    def __iter__(self) -> Iterator[str]:
        """The names of all entities."""
        return iter([*self._entities])

    def _ipython_key_completions_(self) -> list[str]:
        return [*self]

    @before_sharing
    def spawn(self, name: str, *components: Component | type[Component]) -> Entity:
        """Make an entity, a population whose rows are the particles.

        Args:
            name: letters, digits, "-" and "_", starting with a letter; unique in the world, and not by small
                and capital letters alone, since files are named after it.
            components: tables of equal length; a class stands for a table of its default values.

        Raises:
            ComponentError: lengths differ, a component comes twice or is derived, the name is taken.
        """
        with self._active():
            self._ticker.between_ticks(f"spawn of an entity {name!r}")
            if not (isinstance(name, str) and re.fullmatch(NAME, name) and len(name) <= LONGEST_NAME):
                raise ComponentError(
                    f"entity name {shown(name)}: up to {LONGEST_NAME} letters, digits, '-' and '_' are "
                    "allowed, starting with a letter"
                )
            if name in self._entities:
                wanted = self._advice_to_look(f"{name!r} not in world") or "choose another name"
                raise ComponentError(f"the world already has an entity {name!r}; {wanted}")
            if reason := unfit_for_files(name, self._entities):
                raise ComponentError(f"entity name {name!r} {reason}")
            tables = checked_tables(name, components, self.dtype)
            self._wrap(tables)
            if RowId in tables:
                raise ComponentError(f"entity {name!r}: the world assigns RowId, so leave it out")
            rows = next((table.rows for kind, table in tables.items() if kind.per_row), None)
            if rows is not None:
                tables[RowId] = RowId(self._new_ids(rows))
            self._schedule = None
            self._create(name, tables)
        return self[name]

    @property
    def _named_tables(self) -> list[tuple[str, Tables]]:
        """Name and tables by type of every entity, with the rows that this process holds."""
        return [(name, self._visible_tables[entity.number]) for name, entity in self._entities.items()]

    def _wrap(self, *every: Tables) -> None:
        """Move positions in these tables (all, if none is passed) by whole periods into the box."""
        if self.periods.any():
            for tables in every or self._tables_by_number.values():
                for kind, table in tables.items():
                    if kind.__name__ == "Position":
                        vars(table)["x"] = wrapped(vars(table)["x"], self.periods)

    def _new_ids(self, count: int) -> Array:
        ids = np.arange(self._next_row_id, self._next_row_id + count, dtype=np.int64)
        self._next_row_id += count
        return ids

    def _advice_to_look(self, condition: str) -> str:
        """Advice to a system that, while it joins, makes what exists already; "" if none is joining."""
        adder = self._world._joining_system
        if adder is None:
            return ""
        return (
            f"{type(adder).__name__} makes it each time it joins a world, which also happens when a "
            f"parameter is set later and when a world is resumed; let it check first: if {condition}"
        )

    @before_sharing
    def attach(self, name: str, component: Component | type[Component]) -> None:
        """Add a component to an existing entity; a class stands for a table of its default values."""
        with self._active():
            self._ticker.between_ticks(f"attach to entity {name!r}", "observe")
            entity = self[name]
            kind = component if isinstance(component, type) else type(component)
            tables = self._tables_by_number[entity.number]
            if kind in tables:
                look = self._advice_to_look(f"{kind.__name__} not in world[{name!r}]")
                wanted = look or "set its columns"
                raise ComponentError(f"entity {name!r} already has a {kind.__name__}; {wanted}")
            # With the row ids beside it, a class gets as many rows as the entity has.
            ids = (tables[RowId],) if RowId in tables else ()
            checked = checked_tables(name, (*ids, component), self.dtype, tables)[kind]
            if kind.per_row and not ids:
                self._add_table(entity, RowId(self._new_ids(checked.rows or 0)))
            self._add_table(entity, checked)
            self._schedule = None

    def _attach_missing(self, name: str, kind: type[Component]) -> None:
        """Attach a component with its default values, unless the entity has it."""
        if kind not in self[name]:
            self.attach(name, kind)

    @before_sharing
    def remove(self, entity: Entity | str) -> None:
        """Remove an entity with all its rows from the world; a new one may take its name.

        Raises:
            FluidError: it is the fluid, a system names it, or the world has no such entity.
        """
        found = self[entity.name if isinstance(entity, Entity) else entity]
        name = found.name
        if isinstance(entity, Entity):
            entity.tables  # noqa: B018  (refused where another one has its name by now)
            if entity.world is not found.world:
                raise FluidError(f"entity {name!r} belongs to another world; remove it there")
        with self._active():
            self._ticker.between_ticks(f"remove of entity {name!r}")
            if name == "fluid":
                raise FluidError("the entity 'fluid' cannot be removed; set_fluid changes it")
            if named_by := system_naming(self._systems, name):
                raise FluidError(
                    f"entity {name!r} cannot be removed, because {named_by} names it; kill its rows to "
                    "empty it"
                )
            self._delete_entity(name)
            if self.recipe is not None:
                entries = self.recipe.get("entity", [])
                self.recipe["entity"] = [table for table in entries if table.get("name") != name]

    def _delete_entity(self, name: str) -> None:
        """Delete an entity of the active world, even if a system names it."""
        number = self._entities.pop(name).number
        esper.delete_entity(number, immediate=True)
        del self._tables_by_number[number]
        self._ticker.forget(name)
        self._schedule = None

    @before_sharing
    def spawn_rows(self, name: str, *components: Component, where_free: bool = False) -> NewRows:
        """Add rows to entity `name`; during a tick they appear when it ends, in the order of the calls.

        Columns of components that are not given get their default; one without a default must be given. With
        `where_free`, rows that a CollisionSystem finds in a body, or outside all containers, do not appear.
        Returns the new rows; their `ids` are known once they have appeared.
        """
        if self._ticker.phase in REPEATED and not self._ticker.stage.last:
            raise FluidError(
                f"rows of {name!r} are spawned in the phase prepare or rates, which every stage of the "
                "integrator repeats; spawn them where world.stage.last is true, or in another phase"
            )
        with self._active():
            tables, rows = checked_rows(self[name], components)
            batch = self._ticker.row_changes.spawn(name, tables, rows, where_free)
            if not self._ticker.phase:
                self._ticker.apply_row_changes(self._world)
            return batch

    def _pending_rows(self, name: str) -> tuple[Array | None, list[NewRows]]:
        """Rows of an entity that will be removed, as a mask (None for none), and rows that will be added."""
        return self._ticker.row_changes.pending(name)

    def _drop_new_rows(self, misplaced: Callable[[NewRows], Array]) -> dict[str, tuple[int, int]]:
        """Drop rows spawned `where_free` that `misplaced` masks; returns (dropped, all) by entity."""
        return self._ticker.row_changes.drop(misplaced)

    @before_sharing
    def kill_rows(self, name: str, rows: Any) -> None:
        """Remove rows of entity `name`, given as a mask (n,) or as row numbers."""
        with self._active():
            self._ticker.row_changes.kill(name, rows, len(self[name]), self.processes.visible_rows(name))
            if not self._ticker.phase:
                self._ticker.apply_row_changes(self._world)

    def entities_with(self, *types: type[Component]) -> Iterator[tuple[Entity, Any]]:
        """Pairs (entity, tables) of entities that have all the `types`, in the order of creation."""
        refuse_no_component(*types)
        if self._running is not None:
            for kind in types:
                self._running.check_declared(kind)
        return iter(self._holding(types))

    def _holding(self, types: tuple[type[Component], ...]) -> list[tuple[Entity, Any]]:
        """`entities_with`, for types that were checked."""
        wanted = set(types)
        return [
            (entity, tuple([tables[kind] for kind in types]))
            for entity in self._entities.values()
            if wanted <= (tables := self._visible_tables[entity.number]).keys()
        ]

    _found = entities_with
