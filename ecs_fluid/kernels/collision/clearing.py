"""Paths that surely meet none of a few bodies, told for many particles at a time.

Most particles are far from all bodies, or beyond one plane of each. Where there are few bodies and planes,
looking at all of them in wide vectors costs a tenth of finding out which are near. It is done in the
world's axes (planes are turned, not particles) and in single precision, with room for its rounding: a path
that is not surely clear is looked at again by others.

First the ends of a block of paths are looked at, with room for the longest of them; then, if that leaves many
of the block, the paths.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contacts import BALL, CONTAINER
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled.vectors import wide_vectors

FEW_BODIES, FEW_PLANES = 8, 64
"""Bodies, and planes of all of them, up to which paths are looked at this way."""

BLOCK = 256
"""Particles that are looked at together."""

MANY = 24
"""Particles of a block that its ends leave, from which on its paths are looked at together too."""

PAD, FREE, CLEAR, MIDDLE, ROUND, ROWS = 6, 7, 8, 9, 12, 13
"""Rows of `lanes`: first both ends of the path; what is kept free around it, room at one body, the answer;
the middle of the path, and the radius of a ball around it that holds the path and what is kept free."""

ROUNDING = 8e-6
"""What single precision can be off, as a part of the largest number: about 2e-6 in the worst case."""

UP = 1.0 + 1e-6
"""Factor by which a number grows that must not become smaller in single precision."""

FAR = np.float32(1e15)
"""m; squares of what is nearer have room in single precision."""

HALF, INF = np.float32(0.5), np.float32(math.inf)


@njit(cache=True, error_model="numpy")
def few_bodies(obstacles: Obstacles, hulls: Hulls) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(first, balls, planes, widest) of bodies in the world's axes, in single precision.

    balls (n, 4): the middle of the way of each body's centre, and the radius of a ball around it that the
    body does not leave, m. planes (p, 10), body i's from first[i] to first[i + 1]: n and d of n . x <= d at
    the start of the tick, n and d at its end; what n . x - d changes by at most, m, at a place in that ball,
    and by how much more per metre outside. widest: largest number in all that, m. Where there are many
    bodies or planes, first is empty.
    """
    n, widest = len(obstacles.shape), 0.0
    first = np.zeros(n + 1 if n <= FEW_BODIES else 0, np.int64)
    for i in range(len(first) - 1):
        hull = obstacles.hull[i]
        own = hulls.plane_start[hull + 1] - hulls.plane_start[hull] if obstacles.shape[i] != BALL else 0
        first[i + 1] = first[i] + own
    if len(first) == 0 or first[n] > FEW_PLANES:
        return first[:0], np.empty((0, 4), np.float32), np.empty((0, 10), np.float32), widest
    balls, planes = np.empty((n, 4), np.float32), np.empty((first[n], 10), np.float32)
    for i in range(n):
        half = 0.0
        for j in range(3):
            a, b = obstacles.x0[i, j], obstacles.x1[i, j]
            balls[i, j] = 0.5 * (a + b)
            # Half the way is no longer than half the sum of its three parts.
            half += 0.5 * abs(b - a)
            widest = max(widest, abs(a) + obstacles.radius[i], abs(b) + obstacles.radius[i])
        balls[i, 3] = UP * (obstacles.radius[i] + half)
        for k in range(first[i], first[i + 1]):
            plane = hulls.planes[hulls.plane_start[obstacles.hull[i]] + k - first[i]]
            d0, d1, along, turned = plane[3], plane[3], 0.0, 0.0
            for j in range(3):
                n0, n1 = 0.0, 0.0
                for m in range(3):
                    n0 += obstacles.turn0[i, j, m] * plane[m]
                    n1 += obstacles.turn1[i, j, m] * plane[m]
                d0 += n0 * obstacles.x0[i, j]
                d1 += n1 * obstacles.x1[i, j]
                planes[k, j], planes[k, 4 + j] = n0, n1
                along += n0 * (obstacles.x1[i, j] - obstacles.x0[i, j])
                turned += abs(n1 - n0)
            planes[k, 3], planes[k, 7] = d0, d1
            # Of a place r from the centre at the end: n0 . (r + way) - n1 . r, and |r| <= radius + 2 half.
            planes[k, 8] = UP * (abs(along) + turned * (obstacles.radius[i] + 2.0 * half))
            planes[k, 9] = UP * turned
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
def load(former: np.ndarray, x: np.ndarray, lanes: np.ndarray) -> None:
    """Both ends of the paths of a block of particles, all rows of `former` and `x`."""
    wide_vectors()
    for c in range(3):
        a, b = lanes[c], lanes[3 + c]
        for p in range(len(x)):
            a[p] = np.float32(former[p, c])
        for p in range(len(x)):
            b[p] = np.float32(x[p, c])


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


@njit(inline="always", error_model="numpy")
def _largest(former: np.ndarray, x: np.ndarray) -> tuple[np.float32, np.float32]:
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
    planes: np.ndarray, first: int, last: int, room: np.float32, lanes: np.ndarray, count: int
) -> None:
    """Row FREE becomes positive where the end of a path is beyond one plane by its shift and `room`."""
    bx, by, bz, out = lanes[3], lanes[4], lanes[5], lanes[FREE]
    for k in range(first, last):
        l1, m1, n1 = planes[k, 4], planes[k, 5], planes[k, 6]
        d1 = planes[k, 7] + planes[k, 8] + planes[k, 9] * room + room
        for p in range(count):
            beyond, so_far = (l1 * bx[p] - d1) + m1 * by[p] + n1 * bz[p], out[p]
            out[p] = beyond if beyond > so_far else so_far


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def look_at_ends(
    shape: np.ndarray,
    first: np.ndarray,
    balls: np.ndarray,
    planes: np.ndarray,
    widest: float,
    clearance: float,
    rounding: float,
    former: np.ndarray,
    x: np.ndarray,
    lanes: np.ndarray,
) -> int:
    """Like `look_at`, from the ends of the paths and the longest of them: how many are not clear.

    former, x: (count, 3) ends of the paths, count <= BLOCK. No path is farther from its end, in any place,
    than the longest is long; so an end that is farther from everything by that much has a clear path.
    """
    wide_vectors()
    count = len(x)
    bx, by, bz, free, clear = lanes[3], lanes[4], lanes[5], lanes[FREE], lanes[CLEAR]
    longest, size = _largest(former.reshape(-1), x.reshape(-1))
    size = max(size, np.float32(widest)) + longest
    if not size < FAR:
        clear[:] = np.float32(0.0)
        return count
    pad = np.float32(UP * clearance) + np.float32(16.0 * rounding + ROUNDING) * size
    # The length of a path is at most sqrt(3) times its longest part.
    room = np.float32(1.7321) * longest + pad
    for c in range(3):
        row = lanes[3 + c]
        for p in range(count):
            row[p] = np.float32(x[p, c])
    clear[:] = INF
    for i in range(len(shape)):
        if shape[i] == CONTAINER:
            for k in range(first[i], first[i + 1]):
                l1, m1, n1, d1 = planes[k, 4], planes[k, 5], planes[k, 6], planes[k, 7] - pad
                for p in range(count):
                    inside, so_far = (d1 - l1 * bx[p]) - m1 * by[p] - n1 * bz[p], clear[p]
                    clear[p] = inside if inside < so_far else so_far
            continue
        cx, cy, cz, reach = balls[i, 0], balls[i, 1], balls[i, 2], balls[i, 3] + room
        reach *= reach
        if shape[i] == BALL:
            for p in range(count):
                dx, dy, dz, so_far = bx[p] - cx, by[p] - cy, bz[p] - cz, clear[p]
                away = (dx * dx - reach) + dy * dy + dz * dz
                clear[p] = away if away < so_far else so_far
            continue
        for p in range(count):
            dx, dy, dz = bx[p] - cx, by[p] - cy, bz[p] - cz
            free[p] = (dx * dx - reach) + dy * dy + dz * dz
        # Where the ball does not clear a path, its end is in the ball, or as near to it as `room`.
        _ends_beyond_planes(planes, first[i], first[i + 1], room, lanes, count)
        for p in range(count):
            away, so_far = free[p], clear[p]
            clear[p] = away if away < so_far else so_far
    left = 0
    for p in range(count):
        left += 0 if clear[p] > np.float32(0.0) else 1
    return left
