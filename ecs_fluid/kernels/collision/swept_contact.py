"""Where straight paths meet the surfaces of bodies, in axes that go with each body.

A ball has no axes of its own here, so that its spin carries nothing along. Containers are met from inside.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contacts import BALL, CONTAINER, touch_of
from ecs_fluid.kernels.bodies.polytope import Hulls, plane_bound
from ecs_fluid.kernels.bodies.rotation import turn_of
from ecs_fluid.kernels.collision.swept_bodies import Obstacles

Vector = tuple[float, float, float]
"""Places and directions are three numbers: an array of them would take longer to make than all else here."""


@njit(cache=True, error_model="numpy")
def dot(a: Vector, b: Vector) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, error_model="numpy")
def plus(a: Vector, s: float, b: Vector) -> Vector:
    """a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@njit(cache=True, error_model="numpy")
def minus(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(cache=True, error_model="numpy")
def row_of(rows: np.ndarray, i: int) -> Vector:
    """Row i of an array (n, 3) or wider."""
    return rows[i, 0], rows[i, 1], rows[i, 2]


@njit(cache=True, error_model="numpy")
def center_at(obstacles: Obstacles, i: int, t: float) -> Vector:
    """Centre of body i at part t of the tick."""
    x0, x1, s = obstacles.x0, obstacles.x1, 1.0 - t
    return s * x0[i, 0] + t * x1[i, 0], s * x0[i, 1] + t * x1[i, 1], s * x0[i, 2] + t * x1[i, 2]


@njit(cache=True, error_model="numpy")
def _numbers(turn: np.ndarray, i: int) -> tuple[float, ...]:
    m = turn[i]
    return m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2]


@njit(cache=True, error_model="numpy")
def pose_at(obstacles: Obstacles, i: int, t: float) -> tuple[Vector, tuple[float, ...]]:
    """Centre and rotation matrix, row after row, of body i at part t of the tick."""
    if t <= 0.0:
        return row_of(obstacles.x0, i), _numbers(obstacles.turn0, i)
    if t >= 1.0:
        return row_of(obstacles.x1, i), _numbers(obstacles.turn1, i)
    a, b = obstacles.q0[i], obstacles.q1[i]
    sign = 1.0 if a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] >= 0.0 else -1.0
    r, s = 1.0 - t, t * sign
    turn = turn_of(r * a[0] + s * b[0], r * a[1] + s * b[1], r * a[2] + s * b[2], r * a[3] + s * b[3])
    return center_at(obstacles, i, t), turn


@njit(cache=True, error_model="numpy")
def local(obstacles: Obstacles, i: int, t: float, p: Vector) -> Vector:
    """A place in body i's axes; a ball has none, so that its spin carries nothing along."""
    if obstacles.shape[i] == BALL:
        return minus(p, center_at(obstacles, i, t))
    center, m = pose_at(obstacles, i, t)
    x, y, z = minus(p, center)
    return (
        m[0] * x + m[3] * y + m[6] * z,
        m[1] * x + m[4] * y + m[7] * z,
        m[2] * x + m[5] * y + m[8] * z,
    )


@njit(cache=True, error_model="numpy")
def outward(obstacles: Obstacles, i: int, t: float, r: Vector) -> tuple[Vector, Vector]:
    """A place r and the same as a direction, from body i's axes to the world's."""
    if obstacles.shape[i] == BALL:
        return plus(center_at(obstacles, i, t), 1.0, r), r
    center, m = pose_at(obstacles, i, t)
    way = (
        m[0] * r[0] + m[1] * r[1] + m[2] * r[2],
        m[3] * r[0] + m[4] * r[1] + m[5] * r[2],
        m[6] * r[0] + m[7] * r[1] + m[8] * r[2],
    )
    return plus(center, 1.0, way), way


@njit(cache=True, error_model="numpy")
def passes_by(obstacles: Obstacles, i: int, t: float, p: Vector, b: Vector, reach: float) -> bool:
    """Whether the path from p (at part t) to b stays farther than `reach` from the centre of body i."""
    ww, dw, dd = 0.0, 0.0, 0.0
    for k in range(3):
        d = p[k] - (obstacles.x0[i, k] + t * (obstacles.x1[i, k] - obstacles.x0[i, k]))
        w = b[k] - obstacles.x1[i, k] - d
        ww, dw, dd = ww + w * w, dw + d * w, dd + d * d
    s = min(max(-dw / ww, 0.0), 1.0) if ww > 0.0 else 0.0
    return dd + s * (2.0 * dw + s * ww) > reach * reach


@njit(cache=True, error_model="numpy")
def _meets_ball(a: Vector, b: Vector, radius: float) -> tuple[float, Vector]:
    """(Part of the path a b at which it enters the ball, 2 if it does not; the normal there)."""
    inside = dot(a, a) <= radius * radius
    if inside and dot(b, b) > radius * radius:
        return 2.0, a
    way = minus(b, a)
    s = 0.0 if inside else touch_of(a[0], a[1], a[2], way[0], way[1], way[2], radius)
    if s > 1.0:
        return 2.0, a
    place = plus(a, s, way)
    size = math.sqrt(dot(place, place))
    if size > 0.0:
        return s, (place[0] / size, place[1] / size, place[2] / size)
    return s, (0.0, 0.0, 1.0)


@njit(cache=True, error_model="numpy")
def _meets_solid(hulls: Hulls, hull: int, a: Vector, b: Vector, pad: float) -> tuple[float, Vector]:
    """(Part of the path a b at which it enters the polytope grown by `pad`, the face's normal)."""
    enter, leave, face = -1.0, 1.0, -1
    depth, nearest = -math.inf, -1
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        p = hulls.planes[k]
        ga = p[0] * a[0] + p[1] * a[1] + p[2] * a[2] - p[3] - pad
        gb = p[0] * b[0] + p[1] * b[1] + p[2] * b[2] - p[3] - pad
        if ga > depth:
            depth, nearest = ga, k
        if ga > 0.0 and gb > 0.0:
            return 2.0, a
        if ga > 0.0:
            s = ga / (ga - gb)
            if s > enter:
                enter, face = s, k
        elif gb > 0.0:
            leave = min(leave, ga / (ga - gb))
    if face < 0:
        # It was inside all along: out by the nearest face, unless it comes out by itself.
        if leave < 1.0:
            return 2.0, a
        enter, face = 0.0, nearest
    if enter > leave:
        return 2.0, a
    return enter, row_of(hulls.planes, face)


@njit(cache=True, error_model="numpy")
def _meets_wall(hulls: Hulls, hull: int, a: Vector, b: Vector, pad: float) -> tuple[float, Vector]:
    """(Part of the path a b at which it leaves the container shrunk by `pad`, the inward normal)."""
    first, deepest, n = 2.0, 0.0, (0.0, 0.0, 0.0)
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        p = hulls.planes[k]
        gb = p[0] * b[0] + p[1] * b[1] + p[2] * b[2] - p[3] + pad
        if gb <= 0.0:
            continue
        ga = p[0] * a[0] + p[1] * a[1] + p[2] * a[2] - p[3] + pad
        s = ga / (ga - gb) if ga < 0.0 else 0.0
        # Of walls passed together, the one left farthest behind.
        if s < first or (s == first and gb > deepest):
            first, deepest = s, gb
            n = (-p[0], -p[1], -p[2])
    return first, n


@njit(cache=True, error_model="numpy")
def meets(
    obstacles: Obstacles, hulls: Hulls, i: int, a: Vector, b: Vector, pad: float
) -> tuple[float, Vector]:
    """(Part of the path a b, in body i's axes, at which it meets the surface, the normal there).

    The part is 2, and the normal says nothing, where the path does not meet it.
    """
    if obstacles.shape[i] == BALL:
        return _meets_ball(a, b, obstacles.radius[i] + pad)
    if obstacles.shape[i] == CONTAINER:
        return _meets_wall(hulls, obstacles.hull[i], a, b, pad)
    return _meets_solid(hulls, obstacles.hull[i], a, b, pad)


@njit(cache=True, error_model="numpy")
def missing(obstacles: Obstacles, hulls: Hulls, i: int, r: Vector, n: Vector, pad: float) -> float:
    """How far r has to move along n, a normal of body i, to be `pad` away from the surface n belongs to."""
    along = dot(r, n)
    if obstacles.shape[i] == BALL:
        return obstacles.radius[i] + pad - along
    best, offset = -math.inf, 0.0
    sign = -1.0 if obstacles.shape[i] == CONTAINER else 1.0
    for k in range(hulls.plane_start[obstacles.hull[i]], hulls.plane_start[obstacles.hull[i] + 1]):
        same = sign * dot(row_of(hulls.planes, k), n)
        if same > best:
            best, offset = same, sign * hulls.planes[k, 3]
    return offset + pad - along


@njit(cache=True, error_model="numpy")
def shrunk(hulls: Hulls, hull: int, r: Vector, pad: float) -> Vector:
    """The point on the way from r to the centre of the hull that first is `pad` inside it."""
    part = 1.0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        along = dot(row_of(hulls.planes, k), r)
        room = max(hulls.planes[k, 3] - pad, 0.0)
        if along > room:
            part = min(part, room / along)
    return part * r[0], part * r[1], part * r[2]


@njit(cache=True, error_model="numpy")
def overlap(obstacles: Obstacles, hulls: Hulls, i: int, p: Vector) -> float:
    """How deep p is in body i, or outside container i, at the end of the tick, m; negative where it fits."""
    if obstacles.shape[i] == BALL:
        d = minus(p, row_of(obstacles.x1, i))
        return obstacles.radius[i] - math.sqrt(dot(d, d))
    r = local(obstacles, i, 1.0, p)
    bound = plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0]
    return bound if obstacles.shape[i] == CONTAINER else -bound


@njit(cache=True, error_model="numpy")
def holds(obstacles: Obstacles, hulls: Hulls, i: int, t: float, p: Vector, slack: float) -> bool:
    """Whether p is inside container i, or at most `slack` outside."""
    r = local(obstacles, i, t, p)
    return plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0] <= slack
