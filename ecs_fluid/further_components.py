"""Components that a world file gives to an entity beside those of its recipe: ``[[entity.component]]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ecs_fluid.component import Component
from ecs_fluid.errors import ComponentError, RecipeError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import kind_of, without_kind
from ecs_fluid.validation_errors import nearest, shown
from ecs_fluid.world import World

CARRIED = "ecs_fluid.components.particles"
"""Module of the components that tables name without a module."""


def component_of(table: Any, place: str, allow_code: bool = False) -> type[Component]:
    """The class that a table names; RecipeError if a column is unknown or missing.

    Components that particles carry are named without a module, ``kind = "Temperature"``. Those of bodies,
    liquids and grids are refused: their rows refer to one another, so only recipes and systems make them.
    """
    known = {
        name: kind
        for name, kind in Component.registry.items()
        if kind.__module__ == CARRIED and not kind.derived
    }
    kind = kind_of(table, place, Component, known, allow_code)
    if is_shipped(kind) and kind not in known.values():
        # It was named by its import path, which is always allowed for a module that is loaded already.
        raise RecipeError(
            f"{place}: kind = {shown(table['kind'])} can be made by recipes and systems only; "
            f"{nearest('', known)}"
        )
    columns, place = without_kind(table), f"{place} {shown(table['kind'])}"
    for name in columns:
        if name not in kind.columns:
            raise RecipeError(f"{place}: unknown column {name!r}; {nearest(name, kind.columns)}")
    for name, column in kind.columns.items():
        if name not in columns and column.default is None:
            raise RecipeError(
                f"{place}: the column {name!r} is missing (unit {column.unit}); give it beside kind, or "
                "give it a default in its class"
            )
    return kind


def classes_of(
    tables: Iterable[dict[str, Any]], place: str, own: tuple[type[Component], ...]
) -> list[tuple[type[Component], dict[str, Any]]]:
    """Classes and tables of components that particles get when born; RecipeError if one is in `own`."""
    # Modules were imported when the world file was read, if that was allowed.
    found = [(component_of(table, place), table) for table in tables]
    for kind, _ in found:
        if kind in own:
            raise RecipeError(f"{place} sets {kind.__name__} by its own parameters; use those")
    return found


def attach_component(world: World, entity: str, table: dict[str, Any], place: str) -> None:
    """Give an entity the component of a table; each value is for all rows, or a list of one per row.

    Raises:
        RecipeError: the recipe made no such entity, or a list has another length.
        ComponentError: a value is of the wrong kind or out of range, or the entity has the component already.
    """
    if entity not in world:
        raise RecipeError(f"{place}: this kind makes no entity {entity!r} that could hold it")
    # Tables of a file have been checked when it was read; those of Python may import what they name.
    kind = component_of(table, place, allow_code=True)
    world.attach(entity, component_from(kind, table, len(world[entity]), place, f"{entity!r} has"))


def component_from(
    kind: type[Component], table: dict[str, Any], rows: int, place: str, whose: str
) -> Component | type[Component]:
    """The component that a table describes, with that many rows; its class if all values are the default.

    Each value is for all rows, or a list of one per row. `whose` says for messages whose rows they are.
    """
    given = without_kind(table)
    for name, value in given.items():
        try:
            array = np.asarray(value)
        except ValueError:  # lists of several lengths, which the component refuses
            continue
        if not kind.per_row:
            continue
        if array.shape == kind.columns[name].shape:
            given[name] = np.broadcast_to(array, (rows, *array.shape))
        elif array.ndim and array.shape[1:] == kind.columns[name].shape and len(array) != rows:
            raise RecipeError(
                f"{place} {shown(table['kind'])}: {name} has length {len(array)}, "
                f"but {whose} {rows} rows; one value for all rows or {rows} are needed"
            )
    try:
        return kind(**given) if given else kind
    except ComponentError as error:
        raise ComponentError(f"{place}: {error}") from None


def refuse_lists(kind: type[Component], table: dict[str, Any], place: str, whose: str) -> None:
    """Refuse lists of one value per row, since rows come in any number, and values out of their range."""
    for rows in (0, 1):
        component_from(kind, table, rows, place, whose)
