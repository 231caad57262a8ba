"""All bodies of a world in one table of plain float64 arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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

MOST_SEEN = 8
"""Sets of polytopes that are remembered, of all worlds of the process."""

_seen: dict[tuple[tuple[str, bytes], ...], Hulls] = {}
"""Polytopes by all numbers of the tables they come from, so whoever changes a table gets what it says."""


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
    """Copies of all bodies' tables laid end to end, in entity order, and the polytopes they refer to.

    The polytopes are shared by all who ask and only read.
    """
    from ecs_fluid.kernels.contacts import BALL, CONTAINER, SOLID

    bodies = _blank(sum(len(entity[Pose].x) for entity in entities))
    hulls = _joined([entity[HullTable] for entity in entities if HullShape in entity])
    first, known = 0, 0
    for entity in entities:
        tables = entity.tables
        pose, motion, body = entity[Pose], entity[RigidMotion], entity[Body]
        rows = slice(first, first + len(pose.x))
        bodies.x[rows], bodies.q[rows] = pose.x, pose.q
        moving = (body.motion != 0)[:, None]
        np.multiply(motion.v, moving, out=bodies.v[rows])
        np.multiply(motion.spin, moving, out=bodies.spin[rows])
        bodies.mass[rows], bodies.inertia[rows], bodies.motion[rows] = body.mass, body.inertia, body.motion
        bodies.restitution[rows], bodies.friction[rows] = body.restitution, body.friction
        if BallShape in tables:
            bodies.shape[rows], bodies.hull[rows] = BALL, 0
            bodies.radius[rows] = entity[BallShape].radius
        else:
            own, polytopes = entity[HullShape], len(entity[HullTable].radius)
            if len(own.hull) and own.hull.max() >= polytopes:
                raise FluidError(
                    f"entity {entity.name!r}: HullShape.hull is {own.hull.max()}; its HullTable holds "
                    f"{polytopes} polytopes, from 0 on"
                )
            bodies.shape[rows] = np.where(own.container == 1, CONTAINER, SOLID)
            bodies.hull[rows] = own.hull + known
            bodies.radius[rows] = hulls.radius[bodies.hull[rows]]
            known += polytopes
        first = rows.stop
    return bodies, hulls


def _blank(n: int) -> Bodies:
    """A table of n bodies that is still to be filled."""
    from ecs_fluid.kernels.contact_solver import Bodies

    return Bodies(
        x=np.empty((n, 3)), q=np.empty((n, 4)), v=np.empty((n, 3)), spin=np.empty((n, 3)), mass=np.empty(n),
        inertia=np.empty((n, 3, 3)), motion=np.empty(n, np.int64), restitution=np.empty(n),
        friction=np.empty(n), shape=np.empty(n, np.int64), radius=np.empty(n), hull=np.empty(n, np.int64),
    )  # fmt: skip


def _joined(tables: list[HullTable]) -> Hulls:
    """All polytopes of the tables; worked out anew only where a number in them has changed."""
    from ecs_fluid.kernels.polytope import joined_hulls

    key = tuple((array.dtype.char, array.tobytes()) for table in tables for _, array in table.items())
    found = _seen.get(key)
    if found is None:
        if len(_seen) >= MOST_SEEN:
            _seen.clear()
        found = _seen[key] = joined_hulls([_exact(table) for table in tables])
    return found


def _exact(table: HullTable) -> Hulls:
    from ecs_fluid.kernels.polytope import Hulls

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
        rows = slice(first, first + len(entity[Pose].x))
        first = rows.stop
        kinds = entity[Body].motion
        moved = kinds != 0
        if not moved.any():
            continue
        free = kinds == FREE
        pose, motion = entity[Pose], entity[RigidMotion]
        pose.x[moved], pose.q[moved] = bodies.x[rows][moved], bodies.q[rows][moved]
        motion.v[free], motion.spin[free] = bodies.v[rows][free], bodies.spin[rows][free]
