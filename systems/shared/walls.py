"""Walls of containers in gradients of the fluid: as mirrors, or as barriers to gradients along their
normal."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import HullShape, Pose
from ecs_fluid.input_limits import check_memory
from ecs_fluid.keyframes import varies
from ecs_fluid.schedule import named
from ecs_fluid.systems.shared.body_tables import (
    body_entities,
    corners_of,
    gathered,
    move_to_stage,
    planes_of,
)

if TYPE_CHECKING:
    from ecs_fluid.world import World

MOST_PLANES = 64
"""Most walls of a container that are mirrors; with more, each has so little fluid that there are no
mirrors."""

IMAGE = 300
"""Bytes that an image takes while fields are made of it."""

REMEDY = "use smaller cells, or a smaller dt if particles were thrown far away"
"""What to do about too many images: cells, and so the reach, are wide where particles are far apart."""

FULL = 0.9
"""From this fraction of a container's volume on, its particles fill it: it then holds no ambient fluid."""

EVEN = 1e-5
"""Largest cosine of an angle that counts as a right angle: normals of single precision are rounded."""

BLUNT = 0.5 + EVEN
"""Above this cosine of the angle between two normals, walls meet at more than 120 degrees: images in both
would overlap behind their edge."""


def along(v: Array, normal: Array) -> Array:
    """Components of v (..., 3) along a normal; summed in a fixed order, as a matrix product is not."""
    return np.asarray(v[..., 0] * normal[0] + v[..., 1] * normal[1] + v[..., 2] * normal[2])


def skewness(normals: Array) -> Array:
    """Cosine (k,) by which each unit normal (k, 3) is off being parallel, or at right angles, to others."""
    cosines = np.abs(normals @ normals.T)
    return np.asarray(np.minimum(cosines, np.abs(1 - cosines)).max(axis=1, initial=0.0))


class Walls(NamedTuple):
    """Walls of a container: outward normals (k, 3), offsets (k,) m, volume in m^3 and corners (m, 3) m.

    Planes that enclose nothing have an infinite volume and no corners.
    """

    normals: Array
    offsets: Array
    volume: float
    corners: Array

    def inside(self, x: Array, margin: float | Array = 0.0) -> Array:
        """Mask (n,) of the places x (n, 3) m inside, `margin` m from all walls: n . x <= d - margin."""
        within = np.ones(len(x), bool)
        for n, d in zip(self.normals, self.offsets, strict=True):
            within &= along(x, n) - d <= -margin
        return within

    def at_right_angles(self) -> Walls:
        """Those planes, without end, that are parallel or at right angles to all others; all those of a box.

        Images behind them fill the space there exactly once.
        """
        even = skewness(self.normals) < EVEN
        return Walls(self.normals[even], self.offsets[even], np.inf, np.zeros((0, 3)))

    def continues_evenly(self, x: Array, reach: float) -> bool:
        """Whether images of the particles x (n, 3) m have mirrored surroundings, as far as `reach` m.

        So it is in a box that holds all particles and is wider than the reach: the neighbours of an image are
        then the images of the neighbours.
        """
        least = (self.corners @ self.normals.T).min(axis=0) if len(self.corners) else -np.inf
        widths = self.offsets - least
        box = skewness(self.normals).max() < EVEN and widths.min() > reach
        return bool(box and self.inside(x).all())

    def gap(self, other: Walls) -> float:
        """Distance, m, to another container along the best wall normal; never more than the true distance."""
        ways = ((self, other), (other, self))
        return max(float((b.corners @ a.normals.T - a.offsets).min(axis=0).max()) for a, b in ways)


def shaken_containers(world: World) -> list[str]:
    """Names of the containers whose centre moves by keys, and so may accelerate."""
    keyed = [
        script.name
        for system in named(world.systems, "BodySystem")
        for script in getattr(system, "scripts", ())
        if varies(script.center)
    ]
    return [
        entity.name
        for entity in world.entities
        if entity.name in keyed and HullShape in entity and entity[HullShape].container.any()
    ]


def containers(world: World) -> list[Walls]:
    """The walls of every container, where they are at the time of the integrator's stage."""
    hulled = [entity for entity in world.entities if HullShape in entity and Pose in entity]
    if not any(entity[HullShape].container.any() for entity in hulled):
        return []
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import CONTAINER

    entities = body_entities(world)
    bodies, hulls = gathered(entities)
    if world.stage.c:
        move_to_stage(world, entities, bodies)
    found = []
    for i in np.flatnonzero(bodies.shape == CONTAINER):
        h = bodies.hull[i]
        planes, vertices = planes_of(hulls, h), corners_of(hulls, h)
        turn = matrix_of(bodies.q[i]).T
        normals = planes[:, :3] @ turn
        offsets, corners = planes[:, 3] + normals @ bodies.x[i], vertices @ turn + bodies.x[i]
        found.append(Walls(normals, offsets, hull_volume(vertices), corners))
    return found


def vortex_walls(world: World) -> list[Walls]:
    """Walls behind which the flow has images of the vortons: the VelocitySystem's, or its solver's."""
    return [wall for velocity in named(world.systems, "VelocitySystem") for wall in velocity.image_walls]


def outside_all(walls: list[Walls], x: Array) -> int:
    """Number of the places x (n, 3) m that lie outside all containers; 0 without containers."""
    return int((~np.any([wall.inside(x) for wall in walls], axis=0)).sum()) if walls else 0


def hull_volume(corners: Array) -> float:
    """Volume, m^3, of the convex hull of corners (m, 3) m."""
    return _volume(corners.astype(np.float64).tobytes())


@lru_cache(maxsize=64)
def _volume(vertices: bytes) -> float:
    from scipy.spatial import ConvexHull

    return float(ConvexHull(np.frombuffer(vertices).reshape(-1, 3)).volume)


def is_filled(wall: Walls, volume: Array) -> bool:
    """Whether particles of these volumes (n,) m^3 fill a container."""
    return float(volume.sum(dtype=np.float64)) >= FULL * wall.volume


def fillers(walls: list[Walls], x: Array, volume: Array, margin: float) -> Array:
    """Mask (n,) of the particles x (n, 3) m in filled containers, each taken as `margin` m wider."""
    found = np.zeros(len(x), bool)
    for wall in walls:
        if is_filled(wall, volume[wall.inside(x)]):
            found |= wall.inside(x, -margin)
    return found


def mirrors(walls: list[Walls]) -> list[Walls]:
    """The containers with few enough walls for these to be mirrors."""
    return [wall for wall in walls if len(wall.offsets) <= MOST_PLANES]


class Images(NamedTuple):
    """Mirror images of particles."""

    shown: Array
    """(m,) row of the particle that each image shows"""
    places: Array
    """(m, 3) m"""
    turns: Array
    """(m, 3, 3) linear part of the map from particle to image"""
    planes: Array
    """(m,) number of planes in which the particle is mirrored"""


def mirrored(walls: list[Walls], x: Array, reach: float) -> Images:
    """The `images_behind` each of the walls, of all particles x (n, 3) m inside of it."""
    none = Images(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3, 3)), np.zeros(0, np.int64))
    found = [images_behind(wall, x, np.flatnonzero(wall.inside(x)), reach) for wall in walls]
    return Images(*(np.concatenate(parts) for parts in zip(none, *found, strict=True)))


def images_behind(wall: Walls, x: Array, held: Array, reach: float, deep: float = 0.0) -> Images:
    """Mirror images, behind the walls, of those particles x (n, 3) m that are within `reach` m of them.

    `held` (k,) are the rows of the particles inside, or up to `deep` m outside. A particle at an edge or
    corner has images of its images too, as long as these lie outside the container: with right angles that
    continues the fluid evenly. Between parallel walls there are images of images up to the reach. Behind
    blunt edges images would overlap, in a round container thousands of times. So where walls meet at more
    than 90 degrees there are no images of images, and at more than 120 degrees a wall has images only above
    its own face.
    """
    from ecs_fluid.kernels.grids.wall_images import composed, reflect

    normals, offsets = wall.normals.astype(np.float64), wall.offsets.astype(np.float64)
    cosines = normals @ normals.T
    others = ~np.eye(len(normals), dtype=bool)
    beside = np.stack([(cosines > BLUNT) & others, (cosines > EVEN) & others], axis=1)
    count = real = len(held)
    at, original, plane = x[held].astype(np.float64), np.full(real, -1), np.zeros(real, np.int64)
    for k in range(len(offsets)):
        facing = np.flatnonzero(cosines[k, :k] < EVEN - 1.0)
        this, other, first = k, facing[0] if len(facing) else None, 0
        while first < count:
            if 2 * count - first > len(at):
                check_memory(
                    IMAGE, 2 * len(at), f"images of particles, up to {reach:.3g} m behind walls,", REMEDY
                )
                longer = (np.concatenate([column, column]) for column in (at, original, plane))
                at, original, plane = longer
            last = count
            count = reflect(
                at, original, plane, first, last, this, normals, offsets, beside[this], reach, deep
            )
            first = last
            if other is None:
                break
            this, other = other, this
    shown, turns, planes = composed(original[:count], plane[:count], normals, real)
    return Images(held[shown], at[real:count].copy(), turns, planes)


def poison(walls: list[Walls], x: Array, reach: Array, slope: Array) -> None:
    """Remove from the gradients `slope` (n, 3), in place, their parts along normals of walls within reach
    (n,) m."""
    for wall in walls:
        inside = wall.inside(x)
        for n, d in zip(wall.normals, wall.offsets, strict=True):
            close = inside & (d - x @ n < reach)
            normal = n.astype(slope.dtype)
            slope[close] -= (slope[close] @ normal)[:, None] * normal
