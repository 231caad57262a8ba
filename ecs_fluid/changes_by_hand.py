"""Checks of what users change between ticks in the tables of a world, whose arrays are open to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import DTYPES, Component, RowId, Tables
from ecs_fluid.errors import ComponentError, FluidError
from ecs_fluid.fluid import Fluid, check_fluid
from ecs_fluid.plugins import users_method
from ecs_fluid.system import System
from ecs_fluid.tables import refuse_contradiction

if TYPE_CHECKING:
    from ecs_fluid.world import World


class ChangesByHand:
    """Checks the tables of one world; costly checks run only for tables that have changed since the last."""

    def __init__(self) -> None:
        self._agreed: dict[tuple[str, type[Component]], list[bytes]] = {}
        """Columns of tables, by entity, when they last agreed"""
        self._fluid: list[bytes] = []
        """Columns of the Fluid when they were last checked"""

    def check(self, world: World) -> None:
        """Raise ComponentError for a state that a world could neither be given nor resume: users changed it.

        That is: columns out of their range, if systems keep it; tables that do not `agree`; and what systems
        refuse to go on with (`System.must_hold`).
        """
        check_columns(world, "before the tick")
        fault: tuple[int, str] | None = None
        passed = 0  # entities and systems, which have one order on all processes
        try:
            for entity, tables in world._named_tables:
                self._check_entity(entity, tables)
                passed += 1
            for system in world._systems:
                if type(system).must_hold is not System.must_hold:
                    with users_method(type(system), "must_hold"):
                        system.must_hold(world)
                passed += 1
        except FluidError as error:
            fault = passed, str(error)
        if first := world.processes.first_place(fault):
            raise ComponentError(first[1])

    def _check_entity(self, entity: str, tables: Tables) -> None:
        """Check the ranges of an entity's tables, and whether tables agree if they have changed."""
        for kind, table in tables.items():
            if kind.derived or kind.may_leave_range:
                continue
            for name, field in kind.columns.items():
                if field.has_range and not field.allows(table.__dict__[name]):
                    field.check_values(table.__dict__[name], f"entity {entity!r}", given=True)
            if kind.agree is Component.agree:
                continue
            now = [array.tobytes() for _, array in table.items()]
            if self._agreed.get((entity, kind)) != now:
                for field, array in table.items():
                    field.check_values(array, f"entity {entity!r}", given=True)
                refuse_contradiction(entity, kind, tables)
                self._agreed[entity, kind] = now

    def check_fluid(self, world: World) -> None:
        """Raise RecipeError for constants of the fluid that are out of range, or contradict each other."""
        fluid = world.fluid[Fluid]
        if self._fluid != (now := [column.tobytes() for column in vars(fluid).values()]):
            check_fluid(fluid, "Fluid before the tick")
            self._fluid = now

    def forget(self, name: str) -> None:
        """Drop what is kept of an entity that was removed."""
        self._agreed = {place: columns for place, columns in self._agreed.items() if place[0] != name}


def check_columns(world: World, when: str) -> None:
    """Raise ComponentError if the shape of a column does not fit its rows, or if its dtype has changed.

    Kernels would read an array that was resized in place beyond its end. `when` is for the message.
    """
    for entity, tables in world._named_tables:
        rows = len(tables[RowId].__dict__["id"]) if RowId in tables else 0
        for kind, table in tables.items():
            for name, field in kind.columns.items() if kind.per_row else ():
                array = table.__dict__[name]
                if array.shape != (rows, *field.shape):
                    raise ComponentError(
                        f"entity {entity!r}: {field.label} has shape {array.shape} {when}, but RowId has "
                        f"{rows} rows; add rows by spawn, remove them by kill, and resize no array"
                    )
                needed = np.dtype(world.dtype if field.kind == "float" else DTYPES[field.kind])
                if array.dtype != needed:
                    raise ComponentError(
                        f"entity {entity!r}: {field.label} has dtype {array.dtype} {when}; {needed} is "
                        "needed, since the dtype of a column must not change"
                    )
