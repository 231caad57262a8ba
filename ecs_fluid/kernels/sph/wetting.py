"""Contact angles of liquid at walls: what walls add to the forces of its surface.

A wall that liquid meets at the angle theta pulls the edge of the liquid by sigma cos(theta) per length: its
energy is -sigma cos(theta) per wetted area (Young). The energy of surface and walls together is

    E = sigma (A - cos(theta) B),    B = sum_walls int K(d) dV,    K(d) = (2 / h) (1 - d / h) for d < h,

with A the area of the mesh of `kernels.sph.surface_tension`, d the distance from the wall, and h `DEPTH`
spacings: B is the wetted area, smoothed over h. So each corner of the mesh is pushed outward, by
sigma cos(theta) K(d) times its share in the area.

Where walls draw the surface hollow, the pressure below it is negative, but particles do not pull at each
other. So, if theta is below 90 degrees, air presses on the whole surface with `AMBIENT` sigma cos(theta) / a,
a the spacing, and the pressure of the liquid is as much higher.

Liquid goes on as images behind planes of containers that mirror (`kernels.sph.mirror_images`); without the
push they would meet the surface at 90 degrees. For the surface alone all other walls have images too: a
particle at x whose closest point of the wall is y has one at 2 y - x. Of the other planes of a container, and
of the parts of a body, only the nearest counts. A wall gets minus the push on corners near it, and the forces
of the surface on its images, so momentum and angular momentum are conserved to rounding.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    dot,
    minus,
    row_of,
)
from ecs_fluid.kernels.sph.mirror_images import find_containers, walls_of_containers
from ecs_fluid.kernels.sph.surface_tension import surface_tension
from ecs_fluid.kernels.sph.wall_pressure import gap_to

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.step import LiquidLaw, Surroundings

DEPTH = 2.0
"""h, the distance from a wall up to which it pushes the surface, in spacings. With 1.2 and 3 angles differ by
1.5 degrees."""

AMBIENT = 0.5
"""Pressure of the air over sigma cos(theta) / a, a the spacing: what a meniscus takes off in a tube that is
eight spacings wide."""

LACK = 5 / 48
"""Pairs push each other less along a surface than below it, by this times the reach times the pressure
(docs/notes/liquids.md): it counts as tension, whose energy is the work of the air's pressure."""

MOST_WALLS = 6
"""Largest number of walls that act on one place."""


class NearWalls(NamedTuple):
    """Walls near n places.

    body (n, MOST_WALLS): rows of their bodies, filled up with -1. gap (n, MOST_WALLS): signed distance, m,
    positive where liquid is. normal (n, MOST_WALLS, 3): unit vectors from the wall to the place. mirrors (n,
    MOST_WALLS): whether the wall is a plane that mirrors.
    """

    body: Array
    gap: Array
    normal: Array
    mirrors: Array


@parallel(error_model="numpy")
def _find_walls(
    chunk: int, obstacles: Obstacles, hulls: Hulls, planes: Array, first: Array, mirroring: Array,
    container: Array, solid: int, x: Array, reach: float, found: NearWalls,
) -> None:  # fmt: skip
    """Fill ``found`` with the walls nearer than ``reach`` m to the places ``x`` (n, 3) m.

    Solid bodies count for the first ``solid`` places. ``container`` (n,) holds each place, ``planes`` and
    ``first`` are those of `container_planes`; ``mirroring`` (planes,) tells which mirror.
    """
    rows = len(x)
    body, gaps, normals, mirrors = found.body, found.gap, found.normal, found.mirrors
    centre, turn, shape = obstacles.x1, obstacles.turn1, obstacles.shape
    radius, hull, leader = obstacles.radius, obstacles.hull, obstacles.leader
    origin, edge, cells = obstacles.origin, obstacles.edge, obstacles.cells
    start, near, containers = obstacles.start, obstacles.near, obstacles.containers
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        p, c, count = row_of(x, row), container[row], 0
        for s in range(MOST_WALLS):
            body[row, s] = -1
        if c >= 0:
            nearest, least = -1, reach
            for k in range(first[c], first[c + 1]):
                gap = planes[k, 3] - dot(row_of(planes, k), p)
                if mirroring[k]:
                    if abs(gap) < reach and count < MOST_WALLS:
                        body[row, count], gaps[row, count], mirrors[row, count] = containers[c], gap, True
                        for axis in range(3):
                            normals[row, count, axis] = -planes[k, axis]
                        count += 1
                elif gap < least:
                    nearest, least = k, gap
            if nearest >= 0 and least > -reach and count < MOST_WALLS:
                body[row, count], gaps[row, count], mirrors[row, count] = containers[c], least, False
                for axis in range(3):
                    normals[row, count, axis] = -planes[nearest, axis]
                count += 1
        if row >= solid:
            continue
        begin, end = listed_at(origin, edge, cells, start, p)
        walls = count
        for s in range(begin, end):
            i = near[s]
            gap, normal = gap_to(shape, radius, turn, hull, hulls, i, minus(p, row_of(centre, i)), reach)
            if abs(gap) >= reach:
                continue
            to = walls
            while to < count and leader[body[row, to]] != leader[i]:
                to += 1
            if to == MOST_WALLS or (to < count and gaps[row, to] <= gap):
                continue
            body[row, to], gaps[row, to], mirrors[row, to] = i, gap, False
            for axis in range(3):
                normals[row, to, axis] = normal[axis]
            count = max(count, to + 1)


class Walls(NamedTuple):
    """Bodies and containers around liquid: obstacles, hulls, and of containers the planes, the first plane of
    each, and whether a plane mirrors, as in `kernels.sph.mirror_images`."""

    obstacles: Obstacles
    hulls: Hulls
    planes: Array
    first: Array
    mirroring: Array

    def near(self, x: Array, container: Array, solid: int, reach: float) -> NearWalls:
        """The walls nearer than ``reach`` m to ``x`` (n, 3) m; the other arguments are those of
        `_find_walls`."""
        n = len(x)
        found = NearWalls(
            np.empty((n, MOST_WALLS), np.int64), np.empty((n, MOST_WALLS)), np.empty((n, MOST_WALLS, 3)),
            np.empty((n, MOST_WALLS), np.bool_),
        )  # fmt: skip
        _find_walls(
            self.obstacles, self.hulls, self.planes, self.first, self.mirroring, container, solid,
            x.astype(np.float64), reach, found,
        )  # fmt: skip
        return found

    def holding(self, x: Array, reach: float) -> Array:
        """The containers (n,) that hold ``x`` (n, 3) m, or are nearer than ``reach`` m; -1 for none."""
        container, depth = np.full(len(x), -1), np.empty(len(x))
        if len(self.obstacles.containers):
            find_containers(self.planes, self.first, x.astype(np.float64), 2 * reach, container, depth)
        return container


def wetting_kernel(near: NearWalls, depth: float) -> Array:
    """K [1/m] of each of the walls ``near``, on both sides of it, for h = ``depth`` m, or 0."""
    gap = np.where(near.body >= 0, np.abs(near.gap), depth)
    return np.asarray(2 / depth * np.maximum(1 - gap / depth, 0.0))


def _add_loads(loads: Array, body: Array, x: Array, force: Array, centre: Array) -> None:
    """Add to ``loads`` (bodies, 6) N and N m the forces (k, 3) N at ``x`` (k, 3) m on the bodies ``body``.

    ``body`` (k,) are rows of ``loads``; the moments are about ``centre`` (bodies, 3) m.
    """
    both = np.hstack([force, np.cross(x - centre[body], force)])
    for k in range(6):
        loads[:, k] += np.bincount(body, both[:, k], len(loads))


def surface_forces(
    law: LiquidLaw, near: Surroundings, n: int, obstacles: Obstacles | None, hulls: Hulls | None
) -> tuple[Array, Array | float, float]:
    """Forces of the surface of a liquid, and its energy, with that of walls, J.

    The forces are those on its ``n`` particles (n, 3) N and on bodies (bodies, 6) N and N m. ``near`` are the
    surroundings of the particles; ``obstacles`` and ``hulls`` the bodies where they are now, or None.
    """
    spacing, images = law.reach / law.support, near.images
    if obstacles is None or hulls is None:
        found = surface_tension(images.x, n, spacing, law.support, law.tension)
        return found.force[:n].astype(images.x.dtype), 0.0, found.energy
    walls = Walls(obstacles, hulls, *walls_of_containers(obstacles, hulls))
    container = walls.holding(images.x[:n], law.reach)
    container = np.concatenate([container, container[images.owner]])
    x, body = images.x, obstacles.containers[container[n:]]
    loads, tension, wetted, push = np.zeros((len(obstacles.x1), 6)), law.tension, 0.0, None
    if law.wetting is not None:
        depth, pull = DEPTH * spacing, law.tension * law.wetting
        around = walls.near(x, container, n, law.reach)
        wetted = law.volume * float(wetting_kernel(around, depth)[:n].sum())
        row, wall = np.nonzero((around.body >= 0) & ~around.mirrors)
        more = x[row] - 2 * around.gap[row, wall, None] * around.normal[row, wall]
        x, body = np.concatenate([x, more.astype(x.dtype)]), np.concatenate([body, around.body[row, wall]])
        ambient = AMBIENT * max(pull, 0.0) / spacing
        tension -= LACK * law.reach * ambient

        def push(corner: Array, outward: Array) -> Array:
            close = walls.near(corner, walls.holding(corner, law.reach), len(corner), depth)
            pressure = pull * wetting_kernel(close, depth)
            row, wall = np.nonzero(close.body >= 0)
            reaction = -pressure[row, wall, None] * outward[row]
            _add_loads(loads, close.body[row, wall], corner[row], reaction, obstacles.x1)
            return np.asarray((pressure.sum(axis=1) - ambient)[:, None] * outward / tension)

    found = surface_tension(x, n, spacing, law.support, tension, push)
    _add_loads(loads, body, x[n:], found.force[n:], obstacles.x1)
    energy = found.energy * (law.tension / tension) - law.tension * (law.wetting or 0.0) * wetted
    return found.force[:n].astype(x.dtype), loads, energy
