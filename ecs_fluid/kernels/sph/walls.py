"""What walls add to the compression of liquid near them, and the forces that follow from it.

A wall at the distance d, in spacings, takes the place of the layers of a lattice that lie behind it:
G(d) = v (1 - (d - 1/2) / D)^3 for 1/4 < d < 1/2 + D, 0 beyond, and straight on below. The force - P grad G
has a potential: walls at rest neither heat nor cool the liquid. Of several walls of a container, with
G_1 >= G_2 >= ..., outward normals n_k and F = max(1 - G, 0),

    G = G_1 + s_2 G_2 F_1 + s_3 G_3 F_1 F_2 + ...,     s_k = prod_{l < k} (1 - max(n_k . n_l, 0));

several bodies add up. Where v, D and this sum come from: docs/notes/liquids.md.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.bodies.polytope import Hulls, closest
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
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

TOUCHED = 4
"""Bodies at most that press on one particle at a time."""

NEAREST = 6
"""Walls of one container at most that press on one particle."""


STRAIGHT = 0.25
"""Distance in spacings below which G goes on straight, since a steeper wall would need shorter steps."""


@lru_cache
def wall_law(support: float) -> tuple[float, float]:
    """v and D of the wall's part in the compression, for a kernel that reaches `support` spacings."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    x, y, z = np.meshgrid(k, k, k, indexing="ij")
    q = np.sqrt(x * x + y * y + z * z) / support
    u = np.maximum(1.0 - q, 0.0)
    weight = lattice_weight(support)
    missing = weight * float((u**4 * (4.0 * q + 1.0))[z < 0].sum())
    pull = 20.0 * weight / support**2 * float((u**3 * z)[z > 0].sum())
    return missing, 3.0 * missing / (2.0 * pull)


@njit(forceinline=True, error_model="numpy")
def wall_part(d: float, law: tuple[float, float]) -> tuple[float, float]:
    """G and dG/dd of a wall at the signed distance d, in spacings."""
    near = max(d, STRAIGHT)
    rest = 1.0 - (near - 0.5) / law[1]
    if rest <= 0.0:
        return 0.0, 0.0
    slope = -3.0 * law[0] / law[1] * rest**2
    return law[0] * rest**3 + slope * (d - near), slope


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
    planes: Array, first: int, last: int, p: Vector, spacing: float, law: tuple[float, float], slope: Array,
    part: Array, fall: Array, normal: Array, rate: Array,
) -> float:  # fmt: skip
    """G of the walls first:last of ``planes`` (k, 4) of a container at p m, and its gradient [1/m].

    Planes of the world: outward normal and distance from the origin.
    """
    number, reach = 0, (0.5 + law[1]) * spacing
    for k in range(first, last):
        gap = planes[k, 3] - planes[k, 0] * p[0] - planes[k, 1] * p[1] - planes[k, 2] * p[2]
        if gap >= reach:
            continue
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


@njit
def _container_planes(obstacles: Obstacles, hulls: Hulls) -> tuple[Array, Array]:
    """Planes (k, 4) of all containers as they stand in the world, and where those of each begin."""
    many = len(obstacles.containers)
    first = np.zeros(many + 1, np.int64)
    for c in range(many):
        h = obstacles.hull[obstacles.containers[c]]
        first[c + 1] = first[c] + hulls.plane_start[h + 1] - hulls.plane_start[h]
    planes = np.empty((first[many], 4))
    for c in range(many):
        i = obstacles.containers[c]
        start = hulls.plane_start[obstacles.hull[i]]
        for k in range(first[c], first[c + 1]):
            own = row_of(hulls.planes, start + k - first[c])
            along = turned(matrix_at(obstacles.turn1, i), own)
            planes[k, 0], planes[k, 1], planes[k, 2] = along
            away = hulls.planes[start + k - first[c], 3]
            for axis in range(3):
                away += along[axis] * obstacles.x1[i, axis]
            planes[k, 3] = away
    return planes, first


@njit(parallel=True, cache=True, error_model="numpy")
def walls(
    obstacles: Obstacles, hulls: Hulls, x: Array, spacing: float, law: tuple[float, float], wall:
    Array, body: Array, slope: Array,
) -> None:  # fmt: skip
    """Wall part of the compression of every particle, body by body.

    Args:
        obstacles: bodies where they are now (``x1``, ``turn1``), with a clearance of two spacings or more.
        x: (n, 3) m.
        spacing: edge of the cube that a particle takes up, m. law: as ``wall_law`` gives it.
        wall: (n,) filled with G.
        body: (n, TOUCHED) filled with the numbers of the bodies that have a part in it, then -1.
        slope: (n, TOUCHED, 3) filled with the gradients of their parts, 1/m.
    """
    rows, reach = x.shape[0], (0.5 + law[1]) * spacing
    centre, turn, shape = obstacles.x1, obstacles.turn1, obstacles.shape
    radius, hull, containers = obstacles.radius, obstacles.hull, obstacles.containers
    planes, first_plane = _container_planes(obstacles, hulls)
    many = len(containers)
    # Fields read in the loop would be counted as used, by all threads at one counter, for every particle.
    origin, edge, cells = obstacles.origin, obstacles.edge, obstacles.cells
    start, near = obstacles.start, obstacles.near
    for chunk in prange(CHUNKS):
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


@njit(parallel=True, cache=True)
def wall_forces(
    x: Array, pressure: Array, body: Array, slope: Array, centre: Array,
    force: Array, loads: Array,
) -> None:  # fmt: skip
    """Add -P grad G to ``force`` (n, 3) N, and the reaction to the ``loads`` (CHUNKS, bodies, 6) of the
    bodies.

    ``pressure`` (n,) is P [J]; loads are force [N] and torque [N m] about ``centre`` (bodies, 3) m.
    """
    rows = x.shape[0]
    for chunk in prange(CHUNKS):
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
