"""Early rejection: paths that surely meet none of a few bodies, found for a block of particles at a time.

No point of a path is farther from its end than the length of the longest path of its block. So a particle
that ends that far from all bodies has met none, and only the others need the broad phase. The tests use wide
vectors, single precision with a margin for rounding, and the world's axes: planes are turned, not particles.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors

FEW_BODIES, FEW_PLANES = 8, 64
"""Most bodies, and most planes of all bodies, for which this pays."""

BLOCK = 256
"""Number of particles in a block."""

REJECTED, GAP, ROWS = 3, 4, 5
"""Rows of `lanes` after the three of the ends: positive for paths that meet nothing; room at one body."""

ROUNDING = 8e-6
"""Bound of the error of single precision, relative to the largest number: about 2e-6 in the worst case."""

ROUND_UP = 1.0 + 1e-6
"""Factor by which a number grows that must not become smaller in single precision."""

FAR = np.float32(1e15)
"""m; squares of what is nearer have room in single precision."""

INF = np.float32(math.inf)


@njit(cache=True, error_model="numpy")
def few_bodies(obstacles: Obstacles, hulls: Hulls) -> tuple[Array, Array, Array, float]:
    """(first, balls, planes, widest) of bodies in the world's axes, in single precision.

    balls (n, 4): the middle of the way of each body's centre, and the radius of a ball around it that the
    body does not leave, m. planes (p, 6), body i's from first[i] to first[i + 1]: n and d of n . x <= d at
    the end of the tick; what n . x - d changes by at most in it, m, at a place in that ball, and by how much
    more per metre outside. widest: largest number in all that, m. Where there are many bodies or planes,
    first is empty.
    """
    n, widest = len(obstacles.shape), 0.0
    first = np.zeros(n + 1 if n <= FEW_BODIES else 0, np.int64)
    for i in range(len(first) - 1):
        hull = obstacles.hull[i]
        own = hulls.plane_start[hull + 1] - hulls.plane_start[hull] if obstacles.shape[i] != BALL else 0
        first[i + 1] = first[i] + own
    if len(first) == 0 or first[n] > FEW_PLANES:
        return first[:0], np.empty((0, 4), np.float32), np.empty((0, 6), np.float32), widest
    balls, planes = np.empty((n, 4), np.float32), np.empty((first[n], 6), np.float32)
    for i in range(n):
        half = 0.0
        for j in range(3):
            a, b = obstacles.x0[i, j], obstacles.x1[i, j]
            balls[i, j] = 0.5 * (a + b)
            # Half the way is no longer than half the sum of its three parts.
            half += 0.5 * abs(b - a)
            widest = max(widest, abs(a) + obstacles.radius[i], abs(b) + obstacles.radius[i])
        balls[i, 3] = ROUND_UP * (obstacles.radius[i] + half)
        for k in range(first[i], first[i + 1]):
            plane = hulls.planes[hulls.plane_start[obstacles.hull[i]] + k - first[i]]
            d1, along, turned = plane[3], 0.0, 0.0
            for j in range(3):
                n0, n1 = 0.0, 0.0
                for m in range(3):
                    n0 += obstacles.turn0[i, j, m] * plane[m]
                    n1 += obstacles.turn1[i, j, m] * plane[m]
                d1 += n1 * obstacles.x1[i, j]
                planes[k, j] = n1
                along += n0 * (obstacles.x1[i, j] - obstacles.x0[i, j])
                turned += abs(n1 - n0)
            planes[k, 3] = d1
            # Of a place r from the centre at the end: n0 . (r + way) - n1 . r, and |r| <= radius + 2 half.
            planes[k, 4] = ROUND_UP * (abs(along) + turned * (obstacles.radius[i] + 2.0 * half))
            planes[k, 5] = ROUND_UP * turned
    return first, balls, planes, widest


@njit(inline="always", error_model="numpy")
def _largest(former: Array, x: Array) -> tuple[np.float32, np.float32]:
    """Largest absolute values of x - former and x, (count,); what is not finite is larger than all else.

    Without their sign, the bits of numbers stand in the order of the numbers, and unlike these they have no
    NaN that keeps their largest from being found in wide vectors.
    """
    way, size = np.int32(0), np.int32(0)
    for p in range(len(x)):
        one = np.int32(np.float32(x[p] - former[p]).view(np.int32) & np.int32(0x7FFFFFFF))
        two = np.int32(np.float32(x[p]).view(np.int32) & np.int32(0x7FFFFFFF))
        way = one if one > way else way
        size = two if two > size else size
    longest, largest = np.int32(way), np.int32(size)
    return longest.view(np.float32), largest.view(np.float32)


@njit(inline="always", error_model="numpy")
def _ends_beyond_planes(
    planes: Array, first: int, last: int, room: np.float32, lanes: Array, count: int
) -> None:
    """Row GAP becomes positive where the end of a path is beyond one plane by its shift and `room`."""
    bx, by, bz, out = lanes[0], lanes[1], lanes[2], lanes[GAP]
    for k in range(first, last):
        l1, m1, n1 = planes[k, 0], planes[k, 1], planes[k, 2]
        d1 = planes[k, 3] + planes[k, 4] + planes[k, 5] * room + room
        for p in range(count):
            beyond, so_far = (l1 * bx[p] - d1) + m1 * by[p] + n1 * bz[p], out[p]
            out[p] = beyond if beyond > so_far else so_far


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def reject(
    shape: Array,
    first: Array,
    balls: Array,
    planes: Array,
    widest: float,
    clearance: float,
    rounding: float,
    former: Array,
    x: Array,
    lanes: Array,
) -> int:
    """Make row REJECTED of `lanes` (ROWS, BLOCK) positive for paths that meet nothing; counts all others.

    Such a path ends off the ball around each solid, or beyond one of its planes, and inside all containers,
    by the longest path, `clearance` m and 16 times the `rounding` of the largest number, 1. A block with a
    number that is not finite has none. `first` to `widest` are those of `few_bodies`; former, x: (count, 3)
    ends of the paths, count <= BLOCK.
    """
    wide_vectors()
    count = len(x)
    bx, by, bz, gap, rejected = lanes[0], lanes[1], lanes[2], lanes[GAP], lanes[REJECTED]
    longest, size = _largest(former.reshape(-1), x.reshape(-1))
    size = max(size, np.float32(widest)) + longest
    if not size < FAR:
        rejected[:] = np.float32(0.0)
        return count
    pad = np.float32(ROUND_UP * clearance) + np.float32(16.0 * rounding + ROUNDING) * size
    # The length of a path is at most sqrt(3) times its longest part.
    room = np.float32(1.7321) * longest + pad
    for c in range(3):
        row = lanes[c]
        for p in range(count):
            row[p] = np.float32(x[p, c])
    rejected[:] = INF
    for i in range(len(shape)):
        if shape[i] == CONTAINER:
            for k in range(first[i], first[i + 1]):
                l1, m1, n1, d1 = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3] - pad
                for p in range(count):
                    inside, so_far = (d1 - l1 * bx[p]) - m1 * by[p] - n1 * bz[p], rejected[p]
                    rejected[p] = inside if inside < so_far else so_far
            continue
        cx, cy, cz, reach = balls[i, 0], balls[i, 1], balls[i, 2], balls[i, 3] + room
        reach *= reach
        for p in range(count):
            dx, dy, dz = bx[p] - cx, by[p] - cy, bz[p] - cz
            gap[p] = (dx * dx - reach) + dy * dy + dz * dz
        if shape[i] != BALL:
            # If the ball does not reject a path, its end is in the ball, or within `room` of it.
            _ends_beyond_planes(planes, first[i], first[i + 1], room, lanes, count)
        for p in range(count):
            away, so_far = gap[p], rejected[p]
            rejected[p] = away if away < so_far else so_far
    left = 0
    for p in range(count):
        left += 0 if rejected[p] > np.float32(0.0) else 1
    return left
