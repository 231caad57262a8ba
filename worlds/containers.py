"""The space of a container or a body of the world, for recipes that fill it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import BallShape, BodyPart, HullShape, HullTable, Pose
from ecs_fluid.errors import RecipeError
from ecs_fluid.systems.shared.body_tables import corners_of, planes_of
from ecs_fluid.systems.shared.walls import hull_volume
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World
from ecs_fluid.worlds.space import Space, ball


class Inside(NamedTuple):
    """What a container holds, in the container's own axes about its centre.

    corners (n, 3) m. planes (m, 4): outward normals and offsets of the walls, m. origin (3,) m and axes
    (3, 3), orthonormal rows: where the container stands.
    """

    corners: Array
    planes: Array
    origin: Array
    axes: Array

    @property
    def volume(self) -> float:
        """Volume, m^3."""
        return hull_volume(self.corners)

    def space(self, margin: float = 0.0) -> Space:
        """The places inside that are at least `margin` m from each wall, to rounding."""
        low, high = self.corners.min(axis=0), self.corners.max(axis=0)
        least = margin - 1e-9 * float((high - low).max())

        def holds(local: Array) -> Array:
            return np.asarray((self.planes[:, 3] - local @ self.planes[:, :3].T).min(axis=1) > least)

        return Space(low, high, holds, self.origin, self.axes)


def is_container(world: World, name: str) -> bool:
    """Whether the world has a container of that name."""
    return name in world and HullShape in world[name] and bool(world[name][HullShape].container[0])


def inside(world: World, name: str) -> Inside:
    """What the container `name` holds; RecipeError if no container of that name stands before this entity."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    if not is_container(world, name):
        known = [entity.name for entity in world.entities if is_container(world, entity.name)]
        other = "; for the shape of a body use solid" if name in world else ""
        raise RecipeError(
            f"fills = {name!r} names no container that stands before this entity; "
            f"{nearest(name, known)}{other}"
        )
    entity = world[name]
    pose, table, hull = entity[Pose], entity[HullTable], int(entity[HullShape].hull[0])
    corners, planes = (part(table, hull).astype(np.float64) for part in (corners_of, planes_of))
    return Inside(corners, planes, pose.x[0].astype(np.float64), matrix_of(pose.q[0].astype(np.float64)).T)


def of_body(world: World, name: str) -> Space:
    """The space that the body `name` fills, in its axes; RecipeError if it is not one body."""
    posed = [entity.name for entity in world.entities if Pose in entity]
    known = [one for one in posed if not is_container(world, one)]
    if name not in known:
        raise RecipeError(
            f"skin without solid is around the body that attached names, but {name!r} names none that stands "
            f"before this entity ({nearest(name, known)}); give the solid too"
        )
    entity = world[name]
    if len(entity) != 1 and (BodyPart not in entity or entity[BodyPart].leaders().any()):
        raise RecipeError(
            f"skin without solid is around the body that attached names, but {name!r} has several; give the "
            "solid too"
        )
    if BallShape in entity:
        return ball(float(entity[BallShape].radius[0]))
    table, numbers = entity[HullTable], entity[HullShape].hull
    walls = [planes_of(table, int(hull)).astype(np.float64) for hull in numbers]
    corners = np.concatenate([corners_of(table, int(hull)) for hull in numbers]).astype(np.float64)

    def holds(local: Array) -> Array:
        inside = [(local @ planes[:, :3].T <= planes[:, 3]).all(axis=1) for planes in walls]
        return np.asarray(np.any(inside, axis=0))

    return Space(corners.min(axis=0), corners.max(axis=0), holds)
