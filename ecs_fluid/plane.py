"""Two-dimensional worlds: which classes they allow, and the check that all vectors stay in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Component
from ecs_fluid.errors import ComponentError, FluidError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.periodic import AXES

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.world import World


def impulse_factors(world: World) -> tuple[float, float]:
    """Factors by which 1/2 sum x cross alpha is the impulse, 1/3 sum x cross (x cross alpha) the angular one.

    In a plane, vortex lines are not closed: the sums have the factors 1 and 1/2 (Saffman, chapter 3).
    """
    return (2.0, 1.5) if world.dimension == 2 else (1.0, 1.0)


def check_dimension(kind: type[Any], world: World, error: type[FluidError], name: str = "") -> None:
    """Raise `error` if a class of systems, recipes or solvers does not list the world's dimension."""
    if world.dimension in kind.dimensions:
        return
    own = (
        "" if is_shipped(kind) else f", or set {kind.__name__}.dimensions = (2, 3) if it is right in a plane"
    )
    raise error(
        f"{name or kind.__name__} works only in a world of dimension = {kind.dimensions[0]}, but this one "
        f"has dimension = {world.dimension}; leave it out, or change the dimension{own}"
    )


def check_plane(world: World) -> None:
    """Raise ComponentError for the first vector of a two-dimensional world that leaves its plane."""
    across = world.across
    if across is None:
        return
    departures = []
    for entity in world.entities:
        for kind, table in entity.tables.items():
            departures += _out_of_plane(entity, kind, vars(table), across)
    first = world.processes.first_place(min(departures, default=None))
    if first is not None:
        _, place, value, rule = first
        raise ComponentError(f"{place} is {value:g}; {rule}")


def rule_of_plane(world: World, across: int, in_plane: bool) -> str:
    """What is allowed, in a world of two dimensions, of vectors that lie in its plane, or across it."""
    part = "0" if in_plane else "the part"
    return (
        f"in a world of dimension = 2 in the plane {world.options.plane} only {part} along {AXES[across]} is "
        "allowed"
    )


def _out_of_plane(
    entity: Entity, kind: type[Component], columns: dict[str, Any], across: int
) -> list[tuple[int, str, float, str]]:
    """(row among all processes, place, value, rule) of each column's first vectors that leave the plane."""
    departures = []
    for name, field in kind.columns.items():
        if field.plane is None:
            continue
        rule = rule_of_plane(entity.world, across, field.plane == "in")
        for axis in range(3):
            values = columns[name][:, axis]
            if (axis == across) == (field.plane == "in") and values.any():
                row = int(np.flatnonzero(values)[0])
                number = entity.world.processes.placed(entity, len(values))[0] + row
                place = f"entity {entity.name!r}: {field.label} row {number} along {AXES[axis]}"
                departures.append((number, place, float(values[row]), rule))
    return departures
