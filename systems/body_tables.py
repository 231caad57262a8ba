"""All bodies of a world in one table of plain float64 arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, RowId
from ecs_fluid.components.bodies import FREE, BallShape, Body, HullShape, HullTable, Pose, RigidMotion
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError

if TYPE_CHECKING:
    from ecs_fluid.kernels.contact_solver import Bodies
    from ecs_fluid.kernels.polytope import Hulls
    from ecs_fluid.world import World

SHAPES = (BallShape, HullShape)


def body_entities(world: World) -> list[Entity]:
    """Entities whose rows are bodies.

    Raises FluidError when one of them lacks a component of a body, or has not exactly one shape.
    """
    found = []
    for entity in world.entities:
        tables = entity.tables
        if Pose not in tables:
            continue
        for needed in (RigidMotion, Body):
            if needed not in tables:
                raise FluidError(
                    f"entity {entity.name!r} has a Pose but no {needed.__name__}; bodies need both"
                )
        if (BallShape in tables) == (HullShape in tables):
            raise FluidError(
                f"entity {entity.name!r} has a Pose; exactly one of BallShape and HullShape is needed"
            )
        if HullShape in tables and HullTable not in tables:
            raise FluidError(f"entity {entity.name!r} has a HullShape but no HullTable of polytopes")
        found.append(entity)
    return found


def gathered(entities: list[Entity]) -> tuple[Bodies, Hulls]:
    """Copies of all bodies' tables laid end to end, in entity order, and the polytopes they refer to."""
    from ecs_fluid.kernels.contact_solver import Bodies
    from ecs_fluid.kernels.contacts import BALL, CONTAINER, SOLID
    from ecs_fluid.kernels.polytope import joined_hulls

    parts: list[Hulls] = []
    columns: dict[str, list[Any]] = {name: [] for name in Bodies._fields}
    first = 0
    for entity in entities:
        pose, motion, body = entity[Pose], entity[RigidMotion], entity[Body]
        moving = (body.motion != 0)[:, None]
        rows = len(pose.x)
        if BallShape in entity:
            shape, hull = np.full(rows, BALL), np.zeros(rows, np.int64)
            radius = entity[BallShape].radius
        else:
            hulls = _hulls_of(entity)
            own = entity[HullShape]
            if len(own.hull) and own.hull.max() >= len(hulls.radius):
                raise FluidError(
                    f"entity {entity.name!r}: HullShape.hull is {own.hull.max()}; its HullTable holds "
                    f"{len(hulls.radius)} polytopes, from 0 on"
                )
            shape = np.where(own.container == 1, CONTAINER, SOLID)
            hull, radius = own.hull + first, hulls.radius[own.hull]
            first += len(hulls.radius)
            parts.append(hulls)
        for name, values in {
            "x": pose.x, "q": pose.q, "v": motion.v * moving, "spin": motion.spin * moving, "mass": body.mass,
            "inertia": body.inertia, "motion": body.motion, "restitution": body.restitution,
            "friction": body.friction, "shape": shape, "radius": radius, "hull": hull,
        }.items():  # fmt: skip
            columns[name].append(values)
    whole = {"motion": np.int64, "shape": np.int64, "hull": np.int64}
    joined = {
        name: np.ascontiguousarray(np.concatenate(arrays).astype(whole.get(name, np.float64)))
        for name, arrays in columns.items()
    }
    return Bodies(**joined), joined_hulls(parts)


def _hulls_of(entity: Entity) -> Hulls:
    from ecs_fluid.kernels.polytope import Hulls

    table = entity[HullTable]
    planes = table.planes.astype(np.float64)
    # Normals of a single-precision world are of length 1 to 1e-7 only.
    planes /= np.linalg.norm(planes[:, :3], axis=1, keepdims=True)
    return Hulls(**{**{name: getattr(table, name) for name in Hulls._fields}, "planes": planes})


def row_ids(entities: Iterable[Entity]) -> Array:
    """RowId of every body, in the order of `gathered`; rising within each entity."""
    return np.concatenate([np.zeros(0, np.int64), *(entity[RowId].id for entity in entities)])


def write_back(entities: list[Entity], bodies: Bodies) -> None:
    """Write poses and velocities of moving bodies into their tables; free bodies get theirs from impulses."""
    first = 0
    for entity in entities:
        last = first + len(entity)
        moved = entity[Body].motion != 0
        free = entity[Body].motion == FREE
        pose, motion = entity[Pose], entity[RigidMotion]
        pose.x[moved] = bodies.x[first:last][moved]
        pose.q[moved] = bodies.q[first:last][moved]
        motion.v[free] = bodies.v[first:last][free]
        motion.spin[free] = bodies.spin[first:last][free]
        first = last
