"""What bodies add to the compression of liquid near them, and the forces that follow from it.

A wall of a solid body takes the place of the layers of a lattice that lie behind it. At the distance d, in
spacings, these add S(d), and pull by S'(d). G is the function of third degree with G = S and G' = 2 S' where
a lattice next to the wall has its layers, at 1/2 and 3/2 (twice, since pressure acts between two particles by
the gradients of both and on a wall by that of one); it falls to 0 beyond like (1 - d / D)^3, rises so below
1/2, and goes straight on below 1/4. The force - P grad G has a potential: bodies at rest neither heat nor
cool the liquid. Several bodies add up.

So do containers that have no images (`kernels.sph.images`). Of several walls of one, with G_1 >= G_2 >= ...,
outward normals n_k and F = max(1 - G, 0),

    G = G_1 + s_2 G_2 F_1 + s_3 G_3 F_1 F_2 + ...,     s_k = prod_{l < k} (1 - max(n_k . n_l, 0)).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, closest
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.triples import (
    Vector,
    cross_of,
    dot,
    length,
    matrix_at,
    minus,
    row_of,
    scaled,
    turned,
    turned_back,
)
from ecs_fluid.kernels.sph.forces import lattice_weight
from ecs_fluid.kernels.sph.images import container_planes

TOUCHED = 4
"""Bodies at most that press on one particle at a time."""

NEAREST = 6
"""Walls of one container at most that press on one particle."""


STRAIGHT = 0.25
"""Distance in spacings below which G goes on straight, since a steeper wall would need shorter steps."""


class WallLaw(NamedTuple):
    """G and dG/dd at 1/2 and at 3/2 spacings, and the distance in spacings where G ends."""

    first: float
    first_slope: float
    second: float
    second_slope: float
    reach: float


@lru_cache
def wall_law(support: float) -> WallLaw:
    """The wall's part in the compression, for a kernel that reaches `support` spacings."""
    (first, second), (pull, second_pull) = beyond(np.array([0.5, 1.5]), support)
    return WallLaw(first, 2 * pull, second, 2 * second_pull, 1.5 - 1.5 * second / second_pull)


def beyond(depth: Array, support: float) -> tuple[Array, Array]:
    """S and dS/dd (n,) at depths d (n,), in spacings, below the upper surface of a lattice: what nu lacks
    there."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    across = np.hypot(k[:, None], k).ravel()
    z = depth[:, None, None] + np.arange(0.5, support + 1)[:, None]
    u = np.maximum(1 - np.hypot(across, z) / support, 0.0)
    weight = lattice_weight(support)
    lacks = weight * (u**4 * (5 - 4 * u)).sum(axis=(1, 2))
    return lacks, -20 * weight / support**2 * (u**3 * z).sum(axis=(1, 2))


@njit(forceinline=True, error_model="numpy")
def wall_part(d: float, law: WallLaw) -> tuple[float, float]:
    """G and dG/dd of a wall at the signed distance d, in spacings."""
    near = max(d, STRAIGHT)
    t, value, slope = near - 0.5, law.first, law.first_slope
    if 0.0 < t < 1.0:
        s = 1.0 - t
        rise, fall = law.second - value, law.second_slope
        return (
            value + t * t * (3.0 - 2.0 * t) * rise + t * s * (s * slope - t * fall),
            6.0 * t * s * rise + s * (s - 2.0 * t) * slope + t * (t - 2.0 * s) * fall,
        )
    if t >= 1.0:
        t, value, slope = t - 1.0, law.second, law.second_slope
    rest = 1.0 + t * slope / (3.0 * value)
    if rest <= 0.0:
        return 0.0, 0.0
    slope *= rest**2
    return value * rest**3 + slope * (d - near), slope


@njit(forceinline=True, error_model="numpy")
def combined(part: Array, normal: Array, number: int, rate: Array) -> float:
    """G of several walls with parts G_1 >= G_2 >= ...; ``rate`` (k,) gets its derivatives by them."""
    total, left = 0.0, 1.0
    for k in range(number):
        rate[k] = 0.0
    for k in range(number):
        own = left
        for m in range(k):
            own *= 1.0 - max(dot(row_of(normal, k), row_of(normal, m)), 0.0)
        total += own * part[k]
        rate[k] += own
        for m in range(k):
            # Here left > 0 only if all earlier parts are below 1.
            if left > 0.0:
                rate[m] -= own * part[k] / (1.0 - part[m])
        left *= max(1.0 - part[k], 0.0)
    return total


@njit(forceinline=True, error_model="numpy")
def _container(
    planes: Array, first: int, last: int, p: Vector, spacing: float, law: WallLaw, slope: Array,
    part: Array, fall: Array, normal: Array, rate: Array,
) -> float:  # fmt: skip
    """G of the walls first:last of ``planes`` of a container at p m, and its gradient [1/m]; 0
    for what is two spacings outside.

    Planes as ``container_planes`` gives them.
    """
    number, reach = 0, law.reach * spacing
    for k in range(first, last):
        gap = planes[k, 3] - planes[k, 0] * p[0] - planes[k, 1] * p[1] - planes[k, 2] * p[2]
        if gap >= reach:
            continue
        if gap < -2.0 * spacing:
            return 0.0
        value, steep = wall_part(gap / spacing, law)
        if number == NEAREST and value <= part[NEAREST - 1]:
            continue
        at = min(number, NEAREST - 1)
        while at > 0 and part[at - 1] < value:
            part[at], fall[at] = part[at - 1], fall[at - 1]
            for c in range(3):
                normal[at, c] = normal[at - 1, c]
            at -= 1
        part[at], fall[at] = value, steep
        for c in range(3):
            normal[at, c] = planes[k, c]
        number = min(number + 1, NEAREST)
    if number == 0:
        return 0.0
    total = combined(part, normal, number, rate)
    for c in range(3):
        slope[c] = 0.0
        for k in range(number):
            slope[c] -= rate[k] * fall[k] / spacing * normal[k, c]
    return total


@parallel(error_model="numpy")
def walls(
    chunk: int,
    obstacles: Obstacles, hulls: Hulls, x: Array, spacing: float, law: WallLaw, wall: Array,
    body: Array, slope: Array,
) -> None:  # fmt: skip
    """Part of bodies in the compression of every particle, body by body.

    Args:
        obstacles: bodies where they are now (``x1``, ``turn1``), with a clearance of two spacings or more.
        x: (n, 3) m.
        spacing: edge of the cube that a particle takes up, m. law: as ``wall_law`` gives it.
        wall: (n,) filled with G.
        body: (n, TOUCHED) filled with the numbers of the bodies that have a part in it, then -1.
        slope: (n, TOUCHED, 3) filled with the gradients of their parts, 1/m.
    """
    rows, reach = x.shape[0], law.reach * spacing
    centre, turn, shape = obstacles.x1, obstacles.turn1, obstacles.shape
    radius, hull, containers = obstacles.radius, obstacles.hull, obstacles.containers
    planes, first_plane = container_planes(obstacles, hulls)
    many = len(containers)
    # Fields read in the loop would be counted as used, by all threads at one counter, for every particle.
    origin, edge, cells = obstacles.origin, obstacles.edge, obstacles.cells
    start, near = obstacles.start, obstacles.near
    own = np.empty(3)
    part, fall, rate = np.empty(NEAREST), np.empty(NEAREST), np.empty(NEAREST)
    normal = np.empty((NEAREST, 3))
    begin, end = chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS
    # Most particles are far from all planes of containers: loops that are vectors tell which.
    gap = np.full(end - begin, np.inf)
    for k in range(len(planes)):
        n0, n1, n2, away = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3]
        for s in range(end - begin):
            row = begin + s
            gap[s] = min(gap[s], away - n0 * x[row, 0] - n1 * x[row, 1] - n2 * x[row, 2])
    for row in range(begin, end):
        wall[row] = 0.0
        for s in range(TOUCHED):
            body[row, s] = -1
        place = row_of(x, row)
        first, last = listed_at(origin, edge, cells, start, place)
        count = last - first
        found = 0
        for s in range(count + (many if gap[row - begin] < reach else 0)):
            i = near[first + s] if s < count else containers[s - count]
            d = minus(place, row_of(centre, i))
            far, value = length(d), 0.0
            if shape[i] == CONTAINER:
                a, b = first_plane[s - count], first_plane[s - count + 1]
                value = _container(planes, a, b, place, spacing, law, own, part, fall, normal, rate)
            elif far - radius[i] < reach:
                if shape[i] == BALL:
                    value, steep = wall_part((far - radius[i]) / spacing, law)
                    own[0], own[1], own[2] = scaled(steep / (spacing * max(far, 1e-12)), d)
                else:
                    m = matrix_at(turn, i)
                    gap_here, outward, _ = closest(hulls, hull[i], turned_back(m, d))
                    value, steep = wall_part(gap_here / spacing, law)
                    own[0], own[1], own[2] = turned(m, scaled(steep / spacing, outward))
            if value <= 0.0 or found == TOUCHED:
                continue
            wall[row] += value
            body[row, found] = i
            for k in range(3):
                slope[row, found, k] = own[k]
            found += 1


@parallel()
def wall_forces(
    chunk: int,
    x: Array, pressure: Array, body: Array, slope: Array, centre: Array,
    force: Array, loads: Array,
) -> None:  # fmt: skip
    """Add -P grad G to ``force`` (n, 3) N, and the reaction to the ``loads`` (CHUNKS, bodies, 6) of the
    bodies.

    ``pressure`` (n,) is P [J]; loads are force [N] and torque [N m] about ``centre`` (bodies, 3) m.
    """
    rows = x.shape[0]
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        if pressure[row] <= 0.0:
            continue
        for s in range(TOUCHED):
            i = body[row, s]
            if i < 0:
                break
            p = pressure[row]
            push = p * slope[row, s, 0], p * slope[row, s, 1], p * slope[row, s, 2]
            moment = cross_of(minus(row_of(x, row), row_of(centre, i)), push)
            for k in range(3):
                force[row, k] -= push[k]
                loads[chunk, i, k] += push[k]
                loads[chunk, i, 3 + k] += moment[k]
