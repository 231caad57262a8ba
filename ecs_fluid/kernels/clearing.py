"""Paths that surely meet none of a few bodies, told for many particles at a time.

Most particles are far from all bodies, or beyond one plane of each. Where there are few bodies and planes,
looking at all of them in wide vectors costs a third of finding out which are near. Everything is float64,
and in the world's axes: planes are turned, not particles.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.contacts import BALL, CONTAINER
from ecs_fluid.kernels.obstacles import Obstacles
from ecs_fluid.kernels.polytope import Hulls
from ecs_fluid.kernels.vectors import wide_vectors

FEW_BODIES, FEW_PLANES = 8, 64
"""Bodies, and planes of all of them, up to which paths are looked at this way."""

BLOCK = 256
"""Particles that are looked at together."""

ROWS, PAD, FREE, CLEAR = 9, 6, 7, 8
"""Rows of `lanes`: both ends of the path, what is kept free around it, room at one body, the answer."""


@njit(cache=True, error_model="numpy")
def world_planes(obstacles: Obstacles, hulls: Hulls) -> tuple[np.ndarray, np.ndarray]:
    """(first, planes): planes of the polytopes in the world's axes, those of body i from first[i] on.

    planes (p, 8): n and d of n . x <= d at the start of the tick, and at its end. Where there are many,
    first is empty; otherwise it is of the shape (n + 1,).
    """
    n, many = len(obstacles.shape), (np.empty(0, np.int64), np.empty((0, 8)))
    if n > FEW_BODIES:
        return many
    first = np.zeros(n + 1, np.int64)
    for i in range(n):
        hull = obstacles.hull[i]
        own = hulls.plane_start[hull + 1] - hulls.plane_start[hull] if obstacles.shape[i] != BALL else 0
        first[i + 1] = first[i] + own
    if first[n] > FEW_PLANES:
        return many
    planes = np.zeros((first[n], 8))
    for i in range(n):
        for k in range(first[i], first[i + 1]):
            plane = hulls.planes[hulls.plane_start[obstacles.hull[i]] + k - first[i]]
            planes[k, 3], planes[k, 7] = plane[3], plane[3]
            for j in range(3):
                for m in range(3):
                    planes[k, j] += obstacles.turn0[i, j, m] * plane[m]
                    planes[k, 4 + j] += obstacles.turn1[i, j, m] * plane[m]
                planes[k, 3] += planes[k, j] * obstacles.x0[i, j]
                planes[k, 7] += planes[k, 4 + j] * obstacles.x1[i, j]
    return first, planes


@njit(inline="always", error_model="numpy")
def _pass_ball(obstacles: Obstacles, i: int, lanes: np.ndarray, count: int) -> None:
    """Row FREE: squared distance of the path from the centre of body i, as both move, less what it needs."""
    x0, y0, z0 = obstacles.x0[i, 0], obstacles.x0[i, 1], obstacles.x0[i, 2]
    x1, y1, z1 = obstacles.x1[i, 0], obstacles.x1[i, 1], obstacles.x1[i, 2]
    radius = obstacles.radius[i]
    ax, ay, az, bx, by, bz, pad, out = (
        lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[PAD], lanes[FREE],
    )  # fmt: skip
    for p in range(count):
        dx, dy, dz = ax[p] - x0, ay[p] - y0, az[p] - z0
        wx, wy, wz = bx[p] - x1 - dx, by[p] - y1 - dy, bz[p] - z1 - dz
        ww = wx * wx + wy * wy + wz * wz
        dw = dx * wx + dy * wy + dz * wz
        s = -dw / ww if ww > 0.0 else 0.0
        s = 0.0 if s < 0.0 else s
        s = 1.0 if s > 1.0 else s
        reach = radius + pad[p]
        out[p] = dx * dx + dy * dy + dz * dz + s * (2.0 * dw + s * ww) - reach * reach


@njit(inline="always", error_model="numpy")
def _pass_planes(planes: np.ndarray, first: int, last: int, lanes: np.ndarray, count: int) -> None:
    """Row FREE becomes positive where both ends of the path are beyond one plane by more than the pad."""
    ax, ay, az, bx, by, bz, pad, out = (
        lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[PAD], lanes[FREE],
    )  # fmt: skip
    for k in range(first, last):
        l0, m0, n0, d0 = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3]
        l1, m1, n1, d1 = planes[k, 4], planes[k, 5], planes[k, 6], planes[k, 7]
        for p in range(count):
            before = l0 * ax[p] + m0 * ay[p] + n0 * az[p] - d0 - pad[p]
            after = l1 * bx[p] + m1 * by[p] + n1 * bz[p] - d1 - pad[p]
            least = before if before < after else after
            out[p] = least if least > out[p] else out[p]


@njit(inline="always", error_model="numpy")
def _inside_walls(planes: np.ndarray, first: int, last: int, lanes: np.ndarray, count: int) -> None:
    """Row FREE: by how much the end of the path is farther inside all walls of a container than needed."""
    bx, by, bz, pad, out = lanes[3], lanes[4], lanes[5], lanes[PAD], lanes[FREE]
    for p in range(count):
        out[p] = math.inf
    for k in range(first, last):
        l1, m1, n1, d1 = planes[k, 4], planes[k, 5], planes[k, 6], planes[k, 7]
        for p in range(count):
            room = d1 - (l1 * bx[p] + m1 * by[p] + n1 * bz[p]) - pad[p]
            out[p] = room if room < out[p] else out[p]


@njit(cache=True, error_model="numpy")
def load(
    former: np.ndarray,
    x: np.ndarray,
    first: int,
    count: int,
    clearance: float,
    rounding: float,
    widest: float,
    lanes: np.ndarray,
) -> None:
    """Rows up to PAD of `lanes`, and in row CLEAR 1 where all numbers of a particle are finite, else 0.

    The particles are `count` rows of `former` and `x` from row `first` on. Bodies are to be passed by at the
    distance `clearance` and 16 times the `rounding` of the largest number, `widest` m or more.
    """
    wide_vectors()
    for p in range(count):
        for c in range(3):
            lanes[c, p] = former[first + p, c]
            lanes[3 + c, p] = x[first + p, c]
    pad, finite = lanes[PAD], lanes[CLEAR]
    for p in range(count):
        pad[p], finite[p] = widest, 0.0
    for c in range(6):
        row = lanes[c]
        for p in range(count):
            size = abs(row[p])
            finite[p] += size
            pad[p] = size if size > pad[p] else pad[p]
    for p in range(count):
        pad[p] = clearance + 16.0 * rounding * pad[p]
        finite[p] = 1.0 if finite[p] < math.inf else 0.0


@njit(cache=True, error_model="numpy")
def look_at(
    obstacles: Obstacles, first: np.ndarray, planes: np.ndarray, lanes: np.ndarray, count: int
) -> None:
    """Row CLEAR of `lanes` (ROWS, BLOCK): 1 for particles whose path surely meets nothing, 0 for others.

    Their paths stay away from the ball around each solid, or beyond one of its planes, and end inside all
    containers, by the row PAD. `first` and `planes` are those of `world_planes`.
    """
    wide_vectors()
    free, clear = lanes[FREE], lanes[CLEAR]
    for i in range(len(obstacles.shape)):
        if obstacles.shape[i] == CONTAINER:
            _inside_walls(planes, first[i], first[i + 1], lanes, count)
        else:
            _pass_ball(obstacles, i, lanes, count)
            if obstacles.shape[i] != BALL:
                _pass_planes(planes, first[i], first[i + 1], lanes, count)
        for p in range(count):
            clear[p] = clear[p] if free[p] > 0.0 else 0.0
