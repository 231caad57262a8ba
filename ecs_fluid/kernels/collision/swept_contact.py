"""Where straight paths meet the surfaces of bodies, in axes that move with each body.

The axes of a ball do not turn, so that its spin carries nothing along. Containers are met from inside.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

from numba import njit

from ecs_fluid.kernels.bodies.contacts import first_touch
from ecs_fluid.kernels.bodies.polytope import Hulls, plane_bound, plane_gap
from ecs_fluid.kernels.bodies.rotation import rotation_of
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Matrix,
    Vector,
    add_scaled,
    divided,
    dot,
    length,
    matrix_at,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)


@njit(cache=True, error_model="numpy")
def center_at(obstacles: Obstacles, i: int, t: float) -> Vector:
    """Centre of body i at the fraction t of the tick."""
    x0, x1, s = obstacles.x0, obstacles.x1, 1.0 - t
    return s * x0[i, 0] + t * x1[i, 0], s * x0[i, 1] + t * x1[i, 1], s * x0[i, 2] + t * x1[i, 2]


@njit(cache=True, error_model="numpy")
def pose_at(obstacles: Obstacles, i: int, t: float) -> tuple[Vector, Matrix]:
    """Centre and rotation matrix, row after row, of body i at the fraction t of the tick."""
    if t <= 0.0:
        return row_of(obstacles.x0, i), matrix_at(obstacles.turn0, i)
    if t >= 1.0:
        return row_of(obstacles.x1, i), matrix_at(obstacles.turn1, i)
    a, b = obstacles.q0[i], obstacles.q1[i]
    sign = 1.0 if a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] >= 0.0 else -1.0
    r, s = 1.0 - t, t * sign
    mean = r * a[0] + s * b[0], r * a[1] + s * b[1], r * a[2] + s * b[2], r * a[3] + s * b[3]
    return center_at(obstacles, i, t), rotation_of(mean)


@njit(cache=True, error_model="numpy")
def to_body_axes(obstacles: Obstacles, i: int, t: float, p: Vector) -> Vector:
    """A place in body i's axes; a ball has none, so that its spin carries nothing along."""
    if obstacles.shape[i] == BALL:
        return minus(p, center_at(obstacles, i, t))
    center, turn = pose_at(obstacles, i, t)
    return rotated_back(turn, minus(p, center))


@njit(cache=True, error_model="numpy")
def to_world_axes(obstacles: Obstacles, i: int, t: float, r: Vector) -> tuple[Vector, Vector]:
    """A place r and the same as a direction, from body i's axes to the world's."""
    if obstacles.shape[i] == BALL:
        return add_scaled(center_at(obstacles, i, t), 1.0, r), r
    center, turn = pose_at(obstacles, i, t)
    way = rotated(turn, r)
    return add_scaled(center, 1.0, way), way


@njit(**INLINE_EXACT)
def passes_by(obstacles: Obstacles, i: int, t: float, p: Vector, b: Vector, reach: float) -> bool:
    """Whether the path from p (at part t) to b stays farther than `reach` from the centre of body i."""
    x0, x1 = row_of(obstacles.x0, i), row_of(obstacles.x1, i)
    d = minus(p, add_scaled(x0, t, minus(x1, x0)))
    way = minus(minus(b, x1), d)
    ww, dw = dot(way, way), dot(d, way)
    s = min(max(-dw / ww, 0.0), 1.0) if ww > 0.0 else 0.0
    return dot(d, d) + s * (2.0 * dw + s * ww) > reach * reach


@njit(cache=True, error_model="numpy")
def _meets_ball(a: Vector, b: Vector, radius: float) -> tuple[float, Vector]:
    """(Part of the path a b at which it enters the ball, 2 if it does not; the normal there)."""
    inside = dot(a, a) <= radius * radius
    if inside and dot(b, b) > radius * radius:
        return 2.0, a
    way = minus(b, a)
    s = 0.0 if inside else first_touch(a, way, radius)
    if s > 1.0:
        return 2.0, a
    place = add_scaled(a, s, way)
    return s, divided(place, length(place)) if length(place) > 0.0 else (1.0, 0.0, 0.0)


@njit(cache=True, error_model="numpy")
def _meets_solid(hulls: Hulls, hull: int, a: Vector, b: Vector, pad: float) -> tuple[float, Vector]:
    """(Part of the path a b at which it enters the polytope grown by `pad`, the face's normal)."""
    enter, leave, face = -1.0, 1.0, -1
    depth, nearest = -math.inf, -1
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        ga, gb = plane_gap(hulls.planes, k, a) - pad, plane_gap(hulls.planes, k, b) - pad
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
        # The path starts inside: leave by the nearest face, unless the path leaves by itself.
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
        gb = plane_gap(hulls.planes, k, b) + pad
        if gb <= 0.0:
            continue
        ga = plane_gap(hulls.planes, k, a) + pad
        s = ga / (ga - gb) if ga < 0.0 else 0.0
        # Of walls passed at the same time, take the one passed by most.
        if s < first or (s == first and gb > deepest):
            first, deepest, n = s, gb, scaled(-1.0, row_of(hulls.planes, k))
    return first, n


@njit(cache=True, error_model="numpy")
def meets(
    obstacles: Obstacles, hulls: Hulls, i: int, a: Vector, b: Vector, pad: float
) -> tuple[float, Vector]:
    """(Part of the path a b, in body i's axes, at which it meets the surface, the normal there).

    If the path does not meet it, the fraction is 2, and the normal is meaningless.
    """
    if obstacles.shape[i] == BALL:
        return _meets_ball(a, b, obstacles.radius[i] + pad)
    if obstacles.shape[i] == CONTAINER:
        return _meets_wall(hulls, obstacles.hull[i], a, b, pad)
    return _meets_solid(hulls, obstacles.hull[i], a, b, pad)


@njit(cache=True, error_model="numpy")
def distance_to_clear(obstacles: Obstacles, hulls: Hulls, i: int, r: Vector, n: Vector, pad: float) -> float:
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
def pulled_inside(hulls: Hulls, hull: int, r: Vector, pad: float) -> Vector:
    """The point on the way from r to the centre of the hull that first is `pad` inside it."""
    part = 1.0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        along = dot(row_of(hulls.planes, k), r)
        room = max(hulls.planes[k, 3] - pad, 0.0)
        if along > room:
            part = min(part, room / along)
    return scaled(part, r)


@njit(cache=True, error_model="numpy")
def overlap(obstacles: Obstacles, hulls: Hulls, i: int, p: Vector) -> float:
    """How deep p is in body i, or outside container i, at the end of the tick, m; negative where it fits."""
    if obstacles.shape[i] == BALL:
        return obstacles.radius[i] - length(minus(p, row_of(obstacles.x1, i)))
    bound = plane_bound(hulls, obstacles.hull[i], to_body_axes(obstacles, i, 1.0, p))[0]
    return bound if obstacles.shape[i] == CONTAINER else -bound


@njit(cache=True, error_model="numpy")
def contains(obstacles: Obstacles, hulls: Hulls, i: int, t: float, p: Vector, slack: float) -> bool:
    """Whether p is inside container i, or at most `slack` outside."""
    return plane_bound(hulls, obstacles.hull[i], to_body_axes(obstacles, i, t, p))[0] <= slack
