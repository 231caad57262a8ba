"""Walls of containers in gradients of the fluid: as mirrors, or as barriers to gradients along their
normal."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import HullShape, Pose
from ecs_fluid.systems.shared.body_tables import body_entities, corners_of, gathered, planes_of

if TYPE_CHECKING:
    from ecs_fluid.world import World

MOST_PLANES = 64
"""Most walls of a container that are mirrors; with more, each has so little fluid that there are no
mirrors."""

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
        cosines = np.abs(self.normals @ self.normals.T)
        even = np.minimum(cosines, np.abs(1 - cosines)).max(axis=1, initial=0.0) < EVEN
        return Walls(self.normals[even], self.offsets[even], np.inf, np.zeros((0, 3)))

    def continues_evenly(self, x: Array, reach: float) -> bool:
        """Whether images of the particles x (n, 3) m have mirrored surroundings, as far as `reach` m.

        So it is in a box that holds all particles and is wider than the reach: the neighbours of an image are
        then the images of the neighbours.
        """
        cosines = np.abs(self.normals @ self.normals.T)
        least = (self.corners @ self.normals.T).min(axis=0) if len(self.corners) else -np.inf
        widths = self.offsets - least
        box = np.minimum(cosines, np.abs(1 - cosines)).max() < EVEN and widths.min() > reach
        return bool(box and self.inside(x).all())

    def gap(self, other: Walls) -> float:
        """Distance, m, to another container along the best wall normal; never more than the true distance."""
        ways = ((self, other), (other, self))
        return max(float((b.corners @ a.normals.T - a.offsets).min(axis=0).max()) for a, b in ways)


def containers(world: World) -> list[Walls]:
    """The walls of every container."""
    if not any(HullShape in entity and Pose in entity for entity in world.entities):
        return []
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import CONTAINER

    bodies, hulls = gathered(body_entities(world))
    found = []
    for i in np.flatnonzero(bodies.shape == CONTAINER):
        h = bodies.hull[i]
        planes, vertices = planes_of(hulls, h), corners_of(hulls, h)
        turn = matrix_of(bodies.q[i]).T
        normals = planes[:, :3] @ turn
        offsets, corners = planes[:, 3] + normals @ bodies.x[i], vertices @ turn + bodies.x[i]
        found.append(Walls(normals, offsets, _volume(vertices.astype(np.float64).tobytes()), corners))
    return found


def outside_all(walls: list[Walls], x: Array) -> int:
    """Number of the places x (n, 3) m that lie outside all containers; 0 without containers."""
    return int((~np.any([wall.inside(x) for wall in walls], axis=0)).sum()) if walls else 0


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


def mirrored(walls: list[Walls], x: Array, reach: float, turned: bool = True) -> tuple[Array, Array, Array]:
    """The `images_behind` each of the walls, of all particles x (n, 3) m inside of it."""
    found = [images_behind(wall, x, np.flatnonzero(wall.inside(x)), reach, turned) for wall in walls]
    none = np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3, 3))
    rows, places, turns = (np.concatenate(parts) for parts in zip(none, *found, strict=True))
    return rows, places, turns


def images_behind(
    wall: Walls, x: Array, held: Array, reach: float, turned: bool = True, deep: float = 0.0
) -> tuple[Array, Array, Array]:
    """Mirror images, behind the walls, of those particles x (n, 3) m that are within `reach` m of them.

    `held` (k,) are the rows of the particles inside, or up to `deep` m outside. Returns the rows (m,) of the
    particles, the places (m, 3) m of their images, and, if `turned`, the linear parts (m, 3, 3) of the maps
    from particle to image (else an empty array). A particle at an edge or corner has images of its images
    too, as long as these lie outside the container: with right angles that continues the fluid evenly.
    Between parallel walls there are images of images up to the reach. Behind blunt edges images would
    overlap, in a round container thousands of times. So where walls meet at more than 90 degrees there are no
    images of images, and at more than 120 degrees a wall has images only above its own face.
    """
    cosines = wall.normals @ wall.normals.T
    rows, at, real = held, x[held].astype(np.float64), len(held)
    turn = np.broadcast_to(np.eye(3), (real if turned else 0, 3, 3))
    for k in range(len(wall.offsets)):
        facing = np.flatnonzero(cosines[k, :k] < EVEN - 1.0)
        plane, other, first = k, facing[0] if len(facing) else None, 0
        while first < len(at):
            again, image = _reflected(wall, plane, cosines[plane], at, first, real, reach, deep)
            first = len(at)
            rows, at = np.append(rows, rows[again]), np.concatenate([at, image])
            if turned:
                n = wall.normals[plane]
                turn = np.concatenate([turn, (np.eye(3) - 2 * np.outer(n, n)) @ turn[again]])
            if other is None:
                break
            plane, other = other, plane
    return rows[real:], at[real:], turn[real:]


def _reflected(
    wall: Walls, k: int, cosines: Array, at: Array, first: int, real: int, reach: float, deep: float
) -> tuple[Array, Array]:
    """Rows (m,) of those places `at` (n, 3) m, from `first` on, that have an image in plane k, and these.

    The first `real` places are those of particles, the others of images; `cosines` (planes,) are those
    between the plane's normal and all others.
    """
    n, d = wall.normals[k], wall.offsets[k]
    gap = d - along(at[first:], n)
    close = np.flatnonzero((gap > -deep) & (gap < reach))
    gap, close = gap[close, None], close + first
    beside = (cosines > EVEN) & (np.arange(len(cosines)) != k)
    if beside.any():
        foot = at[close] + gap * n
        blunt = cosines[beside] > np.where(close < real, BLUNT, EVEN)[:, None]
        above = ~(blunt & (foot @ wall.normals[beside].T > wall.offsets[beside])).any(axis=1)
        gap, close = gap[above], close[above]
    image = at[close] + 2 * gap * n
    out = ~wall.inside(image, deep)
    return close[out], image[out]


def poison(walls: list[Walls], x: Array, reach: Array, slope: Array) -> None:
    """Remove from the gradients `slope` (n, 3), in place, their parts along normals of walls within reach
    (n,) m."""
    for wall in walls:
        inside = wall.inside(x)
        for n, d in zip(wall.normals, wall.offsets, strict=True):
            close = inside & (d - x @ n < reach)
            normal = n.astype(slope.dtype)
            slope[close] -= (slope[close] @ normal)[:, None] * normal
