"""Friction of liquid at walls, as if the liquid continued behind the wall and stuck to it.

A particle at the distance d from a wall moves along it at the velocity u relative to the wall. Imagine layers
of a lattice behind the wall, at the depths d' = 1/2, 3/2, ... spacings, that continue a shear flow which is 0
at the wall: their velocity is -u d' / d. The friction of pairs of `kernels.sph.forces`, averaged over
positions in a layer and over directions along it, then gives the force

    F = - m n k(d) u,    k = 200 w_0 / R^2 sum_layers (1 + d' / d) s(d + d'),

    s(z) = pi / a^2 int (1 - q)^3 r^3 / (r^2 + z^2) dr,    q^2 R^2 = r^2 + z^2,

with n the kinematic viscosity and a the spacing. Behind planes that mirror there are images already, which
move along with the liquid as if there were no friction, at +u d' / d in a shear flow. The force only has to
make up the difference: there k has 2 d' / d in place of 1 + d' / d.

Each wall exerts its force independently of the others, so that each takes energy whatever the motion. Its
reaction acts on the wall at the position of the particle, so momentum and angular momentum are conserved.
A body that turns as a whole with its liquid feels no friction. Of the planes of a container that do not
mirror only the nearest acts. Source of the shear flow behind a wall: Morris, Fox and Zhu, J. Comput.
Phys. 136 (1997).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    Vector,
    add_scaled,
    cross_of,
    dot,
    minus,
    row_of,
    scaled,
)
from ecs_fluid.kernels.sph.forces import lattice_weight
from ecs_fluid.kernels.sph.mirror_images import find_containers, walls_of_containers
from ecs_fluid.kernels.sph.wall_pressure import distance_to, gap_to

NEAREST_WALL = 0.134
"""Distance from a wall, in reaches, below which friction grows no further (0.4 spacings at the default
reach): in a corner of three walls it would overshoot within one step."""

POINTS = 512
"""Number of entries in the table of k, from distance 0 to the reach."""


@lru_cache
def friction_table(support: float) -> Array:
    """k R^2 (2, `POINTS`) at distances from 0 to the reach: of planes that mirror, then of other walls.

    ``support`` is the reach divided by the spacing.
    """
    d = support * np.maximum(np.linspace(0.0, 1.0, POINTS), NEAREST_WALL)
    behind = np.arange(0.5, support + 1)
    across = np.linspace(0.0, support, 2001)
    z = (d[:, None] + behind)[..., None]
    square = across**2 + z**2
    inside = np.maximum(1 - np.sqrt(square) / support, 0.0) ** 3 * across**3 / square
    layer = np.pi * np.trapezoid(inside, across, axis=2)
    ratio = behind / d[:, None]
    sums = [(layer * part).sum(axis=1) for part in (2 * ratio, 1 + ratio)]
    return np.asarray(200 * lattice_weight(support) * np.array(sums))


@njit(forceinline=True, error_model="numpy")
def _friction_of_wall(
    table: Array, kind: int, distance: float, reach: float, normal: Vector, rate: float, p: Vector,
    u: Vector, velocity: Vector, spin: Vector, centre: Vector,
) -> tuple[float, Vector, Vector]:  # fmt: skip
    """Friction of one wall on a particle at ``p`` m with the velocity ``u`` m/s.

    Returns k n [1/s], the velocity of the particle along the wall relative to it [m/s], and the position of
    the particle relative to the ``centre`` of the wall's body [m]. ``table`` is `friction_table`, ``kind``
    its row; ``rate`` is n / R^2 [1/s]; ``velocity`` and ``spin`` are those of the body.
    """
    arm = minus(p, centre)
    along = minus(u, add_scaled(velocity, 1.0, cross_of(spin, arm)))
    along = add_scaled(along, -dot(along, normal), normal)
    at = max(distance, 0.0) / reach * (POINTS - 1)
    k = min(int(at), POINTS - 2)
    part = at - k
    return rate * ((1 - part) * table[kind, k] + part * table[kind, k + 1]), along, arm


@njit(forceinline=True, error_model="numpy")
def _apply_friction(
    strength: float, along: Vector, arm: Vector, row: int, i: int, force: Array, loads: Array
) -> float:
    """Add the force -``strength`` ``along`` [N] to a particle, and its reaction to the body ``i``.

    ``strength`` is m k n [kg/s], ``along`` and ``arm`` are from `_friction_of_wall`. Returns the power that
    it takes [W].
    """
    push = scaled(strength, along)
    moment = cross_of(arm, push)
    for k in range(3):
        force[row, k] -= push[k]
        loads[i, k] += push[k]
        loads[i, 3 + k] += moment[k]
    return dot(push, along)


@njit(cache=True, error_model="numpy")
def _has_nearer_part(
    obstacles: Obstacles, hulls: Hulls, rows: Array, i: int, gap: float, reach: float, p: Vector
) -> bool:
    """Whether another part, among ``rows``, of the body of part ``i`` is nearer to ``p`` than ``gap`` m.

    ``gap`` is less than ``reach``, m.
    """
    for k in range(len(rows)):
        j = rows[k]
        if j == i or obstacles.leader[j] != obstacles.leader[i]:
            continue
        other = distance_to(obstacles, hulls, j, p, reach)
        if other < gap or (other == gap and j < i):
            return True
    return False


@parallel(error_model="numpy")
def _friction(
    chunk: int,
    obstacles: Obstacles, hulls: Hulls, planes: Array, first: Array, mirroring: Array, container: Array,
    depth_inside: Array, x: Array, v: Array, mass: Array, reach: float, rate: float, table: Array,
    force: Array, loads: Array, lost: Array,
) -> None:  # fmt: skip
    """Fill ``force`` (n, 3) N on particles and ``lost`` (CHUNKS,) W; add to ``loads`` (CHUNKS, bodies, 6).

    ``loads`` are in N and N m. ``planes`` and ``first`` are from ``container_planes``, ``container`` and
    ``depth_inside`` from ``find_containers``; ``mirroring`` tells which planes mirror.
    """
    rows, total = x.shape[0], 0.0
    centre, turn, shape = obstacles.x1, obstacles.turn1, obstacles.shape
    speed, spin = obstacles.v, obstacles.angular_velocity
    radius, hull, containers = obstacles.radius, obstacles.hull, obstacles.containers
    origin, edge, cells = obstacles.origin, obstacles.edge, obstacles.cells
    start, near = obstacles.start, obstacles.near
    own_loads = loads[chunk]
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        p, u, m = row_of(x, row), row_of(v, row), float(mass[row])
        for k in range(3):
            force[row, k] = 0.0
        c = container[row]
        if c >= 0 and depth_inside[row] < reach:
            i, nearest_plane, nearest = containers[c], -1, reach
            for k in range(first[c], first[c + 1]):
                normal = row_of(planes, k)
                gap = planes[k, 3] - dot(normal, p)
                if mirroring[k] and gap < reach:
                    friction_rate, along, arm = _friction_of_wall(
                        table, 0, gap, reach, normal, rate, p, u, row_of(speed, i), row_of(spin, i),
                        row_of(centre, i),
                    )  # fmt: skip
                    total += _apply_friction(m * friction_rate, along, arm, row, i, force, own_loads)
                elif gap < nearest:
                    nearest_plane, nearest = k, gap
            if nearest_plane >= 0:
                friction_rate, along, arm = _friction_of_wall(
                    table, 1, nearest, reach, row_of(planes, nearest_plane), rate, p, u, row_of(speed, i),
                    row_of(spin, i), row_of(centre, i),
                )  # fmt: skip
                total += _apply_friction(m * friction_rate, along, arm, row, i, force, own_loads)
        begin, end = listed_at(origin, edge, cells, start, p)
        for s in range(begin, end):
            i = near[s]
            gap, normal = gap_to(shape, radius, turn, hull, hulls, i, minus(p, row_of(centre, i)), reach)
            if gap >= reach or _has_nearer_part(obstacles, hulls, near[begin:end], i, gap, reach, p):
                continue
            friction_rate, along, arm = _friction_of_wall(
                table, 1, gap, reach, normal, rate, p, u, row_of(speed, i), row_of(spin, i),
                row_of(centre, i),
            )  # fmt: skip
            total += _apply_friction(m * friction_rate, along, arm, row, i, force, own_loads)
    lost[chunk] = total


def wall_friction(
    obstacles: Obstacles | None, hulls: Hulls | None, x: Array, v: Array, mass: Array, reach: float,
    support: float, viscosity: float,
) -> tuple[Array, Array, float]:  # fmt: skip
    """Friction of all walls: (force (n, 3) N, loads (bodies, 6) N and N m on the bodies, power taken W).

    ``x``, ``v`` (n, 3) m and m/s, ``mass`` (n,) kg; ``obstacles`` and ``hulls`` are the bodies where they are
    now, or None. ``reach`` of the kernel in m, ``support`` the reach divided by the spacing, ``viscosity``
    m^2/s.
    """
    force = np.zeros_like(x)
    if obstacles is None or hulls is None:
        return force, np.zeros((0, 6)), 0.0
    planes, first, mirroring = walls_of_containers(obstacles, hulls)
    container, depth_inside = np.full(len(x), -1), np.empty(len(x))
    if len(obstacles.containers):
        find_containers(planes, first, x, reach, container, depth_inside)
    loads, lost = np.zeros((CHUNKS, len(obstacles.x1), 6)), np.zeros(CHUNKS)
    _friction(
        obstacles, hulls, planes, first, mirroring, container, depth_inside, x, v, mass, reach,
        viscosity / reach**2, friction_table(support), force, loads, lost,
    )  # fmt: skip
    return force, loads.sum(axis=0), float(lost.sum())
