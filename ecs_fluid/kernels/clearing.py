"""Paths that surely meet none of a few bodies, told for many particles at a time.

Most particles are far from all bodies, or beyond one plane of each. Where there are few bodies and planes,
looking at all of them in wide vectors costs a quarter of finding out which are near. It is done in the
world's axes (planes are turned, not particles) and in single precision, with room for its rounding: a path
that is not surely clear is looked at again by others.
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

PAD, FREE, CLEAR, MIDDLE, ROUND, ROWS = 6, 7, 8, 9, 12, 13
"""Rows of `lanes`: first both ends of the path; what is kept free around it, room at one body, the answer;
the middle of the path, and the radius of a ball around it that holds the path and what is kept free."""

ROUNDING = 8e-6
"""What single precision can be off, as a part of the largest number: about 2e-6 in the worst case."""

UP = 1.0 + 1e-6
"""Factor by which a number grows that must not become smaller in single precision."""

HALF, INF = np.float32(0.5), np.float32(math.inf)


@njit(cache=True, error_model="numpy")
def few_bodies(obstacles: Obstacles, hulls: Hulls) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(first, balls, planes, widest) of bodies in the world's axes, in single precision.

    balls (n, 4): the middle of the way of each body's centre, and the radius of a ball around it that the
    body does not leave, m. planes (p, 8), body i's from first[i] to first[i + 1]: n and d of n . x <= d at
    the start of the tick, and at its end. widest: largest number in all that, m. Where there are many bodies
    or planes, first is empty.
    """
    n, widest = len(obstacles.shape), 0.0
    first = np.zeros(n + 1 if n <= FEW_BODIES else 0, np.int64)
    for i in range(len(first) - 1):
        hull = obstacles.hull[i]
        own = hulls.plane_start[hull + 1] - hulls.plane_start[hull] if obstacles.shape[i] != BALL else 0
        first[i + 1] = first[i] + own
    if len(first) == 0 or first[n] > FEW_PLANES:
        return first[:0], np.empty((0, 4), np.float32), np.empty((0, 8), np.float32), widest
    balls, planes = np.empty((n, 4), np.float32), np.empty((first[n], 8), np.float32)
    for i in range(n):
        radius = obstacles.radius[i]
        for j in range(3):
            a, b = obstacles.x0[i, j], obstacles.x1[i, j]
            balls[i, j] = 0.5 * (a + b)
            # Half the way is no longer than half the sum of its three parts.
            radius += 0.5 * abs(b - a)
            widest = max(widest, abs(a) + obstacles.radius[i], abs(b) + obstacles.radius[i])
        balls[i, 3] = UP * radius
        for k in range(first[i], first[i + 1]):
            plane = hulls.planes[hulls.plane_start[obstacles.hull[i]] + k - first[i]]
            d0, d1 = plane[3], plane[3]
            for j in range(3):
                n0, n1 = 0.0, 0.0
                for m in range(3):
                    n0 += obstacles.turn0[i, j, m] * plane[m]
                    n1 += obstacles.turn1[i, j, m] * plane[m]
                d0 += n0 * obstacles.x0[i, j]
                d1 += n1 * obstacles.x1[i, j]
                planes[k, j], planes[k, 4 + j] = n0, n1
            planes[k, 3], planes[k, 7] = d0, d1
    return first, balls, planes, widest


@njit(inline="always", error_model="numpy")
def _pass_ball(ball: np.ndarray, lanes: np.ndarray, count: int) -> None:
    """Row FREE is positive where the ball around the path stays off that around a body's way."""
    mx, my, mz, size, out = lanes[MIDDLE], lanes[MIDDLE + 1], lanes[MIDDLE + 2], lanes[ROUND], lanes[FREE]
    cx, cy, cz, radius = ball[0], ball[1], ball[2], ball[3]
    for p in range(count):
        dx, dy, dz, reach = mx[p] - cx, my[p] - cy, mz[p] - cz, radius + size[p]
        out[p] = dx * dx + dy * dy + dz * dz - reach * reach


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
            before = l0 * ax[p] + m0 * ay[p] + n0 * az[p] - d0
            after = l1 * bx[p] + m1 * by[p] + n1 * bz[p] - d1
            least = (before if before < after else after) - pad[p]
            out[p] = least if least > out[p] else out[p]


@njit(inline="always", error_model="numpy")
def _inside_walls(planes: np.ndarray, first: int, last: int, lanes: np.ndarray, count: int) -> None:
    """Row FREE: by how much the end of the path is farther inside all walls of a container than needed."""
    bx, by, bz, pad, out = lanes[3], lanes[4], lanes[5], lanes[PAD], lanes[FREE]
    for p in range(count):
        out[p] = INF
    for k in range(first, last):
        l1, m1, n1, d1 = planes[k, 4], planes[k, 5], planes[k, 6], planes[k, 7]
        for p in range(count):
            room = d1 - (l1 * bx[p] + m1 * by[p] + n1 * bz[p]) - pad[p]
            out[p] = room if room < out[p] else out[p]


@njit(cache=True, error_model="numpy")
def load(former: np.ndarray, x: np.ndarray, first: int, count: int, lanes: np.ndarray) -> None:
    """Both ends of the paths of `count` particles, rows of `former` and `x` from row `first` on."""
    wide_vectors()
    for c in range(3):
        a, b = lanes[c], lanes[3 + c]
        for p in range(count):
            a[p] = np.float32(former[first + p, c])
        for p in range(count):
            b[p] = np.float32(x[first + p, c])


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def look_at(
    shape: np.ndarray,
    first: np.ndarray,
    balls: np.ndarray,
    planes: np.ndarray,
    widest: float,
    clearance: float,
    rounding: float,
    lanes: np.ndarray,
    count: int,
) -> None:
    """Row CLEAR of `lanes` (ROWS, BLOCK): 1 for particles whose path surely meets nothing, 0 for others.

    Their paths stay away from the ball around each solid, or beyond one of its planes, and end inside all
    containers, by `clearance` m and 16 times the `rounding` of the largest number, 1. Those with a number
    that is not finite are not clear. `first` to `widest` are those of `few_bodies`.
    """
    wide_vectors()
    free, clear, pad, size = lanes[FREE], lanes[CLEAR], lanes[PAD], lanes[ROUND]
    kept, part = np.float32(UP * clearance), np.float32(16.0 * rounding + ROUNDING)
    for p in range(count):
        pad[p], clear[p] = np.float32(widest), np.float32(0.0)
    for c in range(6):
        row = lanes[c]
        for p in range(count):
            number = abs(row[p])
            clear[p] += number
            pad[p] = number if number > pad[p] else pad[p]
    for p in range(count):
        pad[p] = kept + part * pad[p]
        clear[p] = np.float32(1.0) if clear[p] < INF else np.float32(0.0)
        size[p] = pad[p]
    for c in range(3):
        a, b, middle = lanes[c], lanes[3 + c], lanes[MIDDLE + c]
        for p in range(count):
            middle[p] = HALF * (a[p] + b[p])
            size[p] += HALF * abs(b[p] - a[p])
    for i in range(len(shape)):
        if shape[i] == CONTAINER:
            _inside_walls(planes, first[i], first[i + 1], lanes, count)
        else:
            _pass_ball(balls[i], lanes, count)
            if shape[i] != BALL:
                _pass_planes(planes, first[i], first[i + 1], lanes, count)
        for p in range(count):
            clear[p] = clear[p] if free[p] > np.float32(0.0) else np.float32(0.0)
