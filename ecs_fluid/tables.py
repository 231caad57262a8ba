"""Checks on tables that become an entity, or are added to one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ecs_fluid.component import Array, Component, RowId, Tables
from ecs_fluid.entity import Entity
from ecs_fluid.errors import ComponentError
from ecs_fluid.fluid import Fluid
from ecs_fluid.plugins import users_method


def checked_tables(
    name: str,
    components: tuple[Component | type[Component], ...],
    dtype: type[np.floating],
    beside: Tables | None = None,
    given: bool = True,
) -> Tables:
    """Copies of the tables for entity `name` in precision `dtype`; a class stands for its default values.

    Raises ComponentError when a table is derived, comes twice, has another length than the first, holds
    numbers that the precision cannot, or contradicts itself, the others, or those `beside` them. `given` is
    False for tables that systems have filled, whose values may have left their range.
    """
    tables: Tables = {}
    rows: int | None = None
    first = ""
    blanks: list[type[Component]] = []
    for item in components:
        kind = item if isinstance(item, type) else type(item)
        if not issubclass(kind, Component):
            raise ComponentError(f"entity {name!r}: {item!r} is not a component")
        if kind.derived:
            raise ComponentError(
                f"entity {name!r}: {kind.__name__} is derived; systems fill it, so it cannot be spawned"
            )
        if kind is Fluid and name != "fluid":
            raise ComponentError(
                f"entity {name!r}: only the entity 'fluid' has a Fluid; change it by World.set_fluid"
            )
        if kind in tables or kind in blanks:
            raise ComponentError(f"entity {name!r}: {kind.__name__} was given twice")
        if isinstance(item, type):
            blanks.append(kind)
            continue
        if kind.per_row:
            if rows is not None and item.rows != rows:
                raise ComponentError(
                    f"entity {name!r}: {kind.__name__} has {item.rows} rows, but {first} has {rows}; "
                    "all components of an entity need the same number of rows"
                )
            rows, first = item.rows, first or kind.__name__
        tables[kind] = _cast_copy(name, item, dtype)
    for kind in blanks:
        missing = [field for field in kind.columns.values() if field.default is None]
        if missing and rows:
            raise ComponentError(
                f"entity {name!r}: {missing[0].label} has no default; pass a {kind.__name__} with values"
            )
        tables[kind] = kind.blank(rows or 0, dtype)
    for kind in tables:
        if given or not kind.may_leave_range:
            refuse_contradiction(name, kind, {**(beside or {}), **tables})
    return tables


def within_range(kind: type[Component], columns: Mapping[str, Array]) -> dict[str, Array]:
    """Those stored columns of a component that are out of range, and may be, clipped to it; without others.

    Rounding, or exchange between particles, leaves a species at -1e-13, say.
    """
    found: dict[str, Array] = {}
    if kind.may_leave_range:
        for key, array in columns.items():
            field = kind.columns[key]
            low, high = field.minimum, field.maximum
            if field.above is not None:
                low = np.nextafter(array.dtype.type(field.above), np.inf)
            if (low is not None or high is not None) and np.isfinite(array).all():
                inside = np.clip(array, low, high)
                if not np.array_equal(inside, array):
                    found[key] = inside
    return found


def refuse_contradiction(name: str, kind: type[Component], tables: Tables) -> None:
    """Raise ComponentError if the columns of that table of entity `name` do not `agree`."""
    try:
        with users_method(kind, "agree"):
            tables[kind].agree(tables)
    except ComponentError as error:
        raise ComponentError(f"entity {name!r}: {error}") from None


def _cast_copy(name: str, item: Component, dtype: type[np.floating]) -> Component:
    """A copy in the world's precision, with its values checked."""
    place = f"entity {name!r}"
    columns: dict[str, Array] = {}
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for field, given in item.items():
            number = dtype if field.kind == "float" else given.dtype
            columns[field.name] = np.array(given, number, order="C")
    for field, array in zip(item.columns.values(), columns.values(), strict=True):
        try:
            field.check_values(array, place)
        except ComponentError as error:
            field.check_values(item.__dict__[field.name], place)
            raise ComponentError(
                f"{error} (rounded to float32; use precision = 'double' for such values)"
            ) from None
    return item.unchecked(**columns)


def checked_rows(entity: Entity, components: tuple[Component, ...]) -> tuple[Tables, int]:
    """Tables of new rows of an entity, with defaults for what is not given, and the number of rows."""
    name, dtype = entity.name, entity.world.dtype
    # Not only those it declares: a system that spawns rows need not declare what these must agree with.
    every = entity.world._tables_by_number[entity.number]
    shared = {kind: table for kind, table in every.items() if not kind.per_row}
    tables = checked_tables(name, components, dtype, shared)
    tables.pop(RowId, None)
    rows = next((t.rows or 0 for t in tables.values()), 0)
    full: Tables = {}
    missing: list[type[Component]] = []
    for kind in entity.tables:
        if kind.derived or not kind.per_row or kind is RowId:
            continue
        if kind not in tables:
            if any(field.default is None for field in kind.columns.values()):
                raise ComponentError(f"entity {name!r}: new rows need {kind.__name__}")
            missing.append(kind)
        else:
            full[kind] = tables.pop(kind)
    if tables:
        extra = next(iter(tables)).__name__
        raise ComponentError(f"entity {name!r} has no {extra}, so new rows cannot have it either")
    for kind in missing:
        full[kind] = kind.blank_beside(full, rows, dtype)
    return full, rows
