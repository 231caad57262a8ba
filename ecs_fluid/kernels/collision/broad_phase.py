"""Paths that surely meet no body: what most particles do, told without looking closer.

All functions are inlined into the loop that calls them: passing the tables of bodies to a function costs more
than the few tens of nanoseconds that are spent here.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contacts import BALL
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles

MOST_VISITED = 64
"""Cells of one path that are looked into; a longer path looks at all bodies."""


@njit(forceinline=True, error_model="numpy")
def _cell(x: float, origin: float, inverse: float, cells: int) -> int:
    """Cell along one axis, kept to the grid and one cell more on each side; -1 for NaN."""
    s = (x - origin) * inverse
    if not s >= 0.0:
        return -1
    if s >= cells:
        return cells
    return int(s)


@njit(forceinline=True, error_model="numpy")
def _in_axes(x: np.ndarray, turn: np.ndarray, i: int, px: float, py: float, pz: float, k: int) -> float:
    """Coordinate k of a place in body i's axes, with the bodies' centres x and matrices."""
    return turn[i, 0, k] * (px - x[i, 0]) + turn[i, 1, k] * (py - x[i, 1]) + turn[i, 2, k] * (pz - x[i, 2])


@njit(forceinline=True, error_model="numpy")
def _ball_misses(
    obstacles: Obstacles,
    i: int,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    reach: float,
) -> bool:
    """Whether the path stays farther than `reach` from the centre of body i, as both move."""
    dx, dy, dz = ax - obstacles.x0[i, 0], ay - obstacles.x0[i, 1], az - obstacles.x0[i, 2]
    wx = bx - obstacles.x1[i, 0] - dx
    wy = by - obstacles.x1[i, 1] - dy
    wz = bz - obstacles.x1[i, 2] - dz
    ww = wx * wx + wy * wy + wz * wz
    dw = dx * wx + dy * wy + dz * wz
    s = min(max(-dw / ww, 0.0), 1.0) if ww > 0.0 else 0.0
    return dx * dx + dy * dy + dz * dz + s * (2.0 * dw + s * ww) > reach * reach


@njit(forceinline=True, error_model="numpy")
def _one_plane_parts(
    obstacles: Obstacles,
    hulls: Hulls,
    i: int,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    pad: float,
) -> bool:
    """Whether one plane of polytope i has both ends of the path outside, by more than `pad`."""
    a0 = _in_axes(obstacles.x0, obstacles.turn0, i, ax, ay, az, 0)
    a1 = _in_axes(obstacles.x0, obstacles.turn0, i, ax, ay, az, 1)
    a2 = _in_axes(obstacles.x0, obstacles.turn0, i, ax, ay, az, 2)
    b0 = _in_axes(obstacles.x1, obstacles.turn1, i, bx, by, bz, 0)
    b1 = _in_axes(obstacles.x1, obstacles.turn1, i, bx, by, bz, 1)
    b2 = _in_axes(obstacles.x1, obstacles.turn1, i, bx, by, bz, 2)
    hull = obstacles.hull[i]
    planes = hulls.planes
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        n0, n1, n2, d = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3] + pad
        if n0 * a0 + n1 * a1 + n2 * a2 > d and n0 * b0 + n1 * b1 + n2 * b2 > d:
            return True
    return False


@njit(forceinline=True, error_model="numpy")
def far_from_all(
    obstacles: Obstacles,
    hulls: Hulls,
    inverse: np.ndarray,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    pad: float,
) -> bool:
    """Whether a path surely keeps `pad` from all solids: what most paths do, told in some tens of ns.

    Every body near it is passed by at the distance of its ball, or has one plane that the path stays above.
    """
    cells = obstacles.cells
    i0 = max(_cell(min(ax, bx) - pad, obstacles.origin[0], inverse[0], cells[0]), 0)
    i1 = min(_cell(max(ax, bx) + pad, obstacles.origin[0], inverse[0], cells[0]), cells[0] - 1)
    j0 = max(_cell(min(ay, by) - pad, obstacles.origin[1], inverse[1], cells[1]), 0)
    j1 = min(_cell(max(ay, by) + pad, obstacles.origin[1], inverse[1], cells[1]), cells[1] - 1)
    k0 = max(_cell(min(az, bz) - pad, obstacles.origin[2], inverse[2], cells[2]), 0)
    k1 = min(_cell(max(az, bz) + pad, obstacles.origin[2], inverse[2], cells[2]), cells[2] - 1)
    if i1 < i0 or j1 < j0 or k1 < k0:
        return True
    if (i1 - i0 + 1) * (j1 - j0 + 1) * (k1 - k0 + 1) > MOST_VISITED:
        return False
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                c = (i * cells[1] + j) * cells[2] + k
                for s in range(obstacles.start[c], obstacles.start[c + 1]):
                    body = obstacles.near[s]
                    reach = obstacles.radius[body] + pad
                    if _ball_misses(obstacles, body, ax, ay, az, bx, by, bz, reach):
                        continue
                    if obstacles.shape[body] == BALL:
                        return False
                    if not _one_plane_parts(obstacles, hulls, body, ax, ay, az, bx, by, bz, pad):
                        return False
    return True


@njit(forceinline=True, error_model="numpy")
def well_inside(obstacles: Obstacles, hulls: Hulls, x: float, y: float, z: float, pad: float) -> bool:
    """Whether a place is `pad` inside all planes of every container at the end of the tick."""
    for i in obstacles.containers:
        hull = obstacles.hull[i]
        room = hulls.inner[hull] - pad
        dx, dy, dz = x - obstacles.x1[i, 0], y - obstacles.x1[i, 1], z - obstacles.x1[i, 2]
        if room > 0.0 and dx * dx + dy * dy + dz * dz < room * room:
            continue
        p0 = _in_axes(obstacles.x1, obstacles.turn1, i, x, y, z, 0)
        p1 = _in_axes(obstacles.x1, obstacles.turn1, i, x, y, z, 1)
        p2 = _in_axes(obstacles.x1, obstacles.turn1, i, x, y, z, 2)
        planes = hulls.planes
        for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
            if planes[k, 0] * p0 + planes[k, 1] * p1 + planes[k, 2] * p2 > planes[k, 3] - pad:
                return False
    return True
