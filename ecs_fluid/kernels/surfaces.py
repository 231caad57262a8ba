"""Where straight paths meet the surfaces of bodies, in axes that go with each body.

A ball has no axes of its own here, so that its spin carries nothing along. Containers are met from inside.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.contacts import BALL, CONTAINER, first_touch
from ecs_fluid.kernels.obstacles import Obstacles
from ecs_fluid.kernels.polytope import Hulls, plane_bound
from ecs_fluid.kernels.rotation import matrix_of, times, times_transposed


@njit(cache=True, error_model="numpy")
def pose_at(obstacles: Obstacles, i: int, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Centre and rotation matrix of body i at part t of the tick."""
    if t <= 0.0:
        return obstacles.x0[i], obstacles.turn0[i]
    if t >= 1.0:
        return obstacles.x1[i], obstacles.turn1[i]
    sign = 1.0 if (obstacles.q0[i] * obstacles.q1[i]).sum() >= 0.0 else -1.0
    center = (1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i]
    return center, matrix_of((1.0 - t) * obstacles.q0[i] + (t * sign) * obstacles.q1[i])


@njit(cache=True, error_model="numpy")
def local(obstacles: Obstacles, i: int, t: float, p: np.ndarray) -> np.ndarray:
    """A place in body i's axes; a ball has none, so that its spin carries nothing along."""
    if obstacles.shape[i] == BALL:
        return p - ((1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i])
    center, turn = pose_at(obstacles, i, t)
    return times_transposed(turn, p - center)


@njit(cache=True, error_model="numpy")
def outward(obstacles: Obstacles, i: int, t: float, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A place r and the same as a direction, from body i's axes to the world's."""
    if obstacles.shape[i] == BALL:
        return (1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i] + r, r
    center, turn = pose_at(obstacles, i, t)
    way = times(turn, r)
    return center + way, way


@njit(cache=True, error_model="numpy")
def passes_by(obstacles: Obstacles, i: int, t: float, p: np.ndarray, b: np.ndarray, reach: float) -> bool:
    """Whether the path from p (at part t) to b stays farther than `reach` from the centre of body i."""
    ww, dw, dd = 0.0, 0.0, 0.0
    for k in range(3):
        d = p[k] - (obstacles.x0[i, k] + t * (obstacles.x1[i, k] - obstacles.x0[i, k]))
        w = b[k] - obstacles.x1[i, k] - d
        ww, dw, dd = ww + w * w, dw + d * w, dd + d * d
    s = min(max(-dw / ww, 0.0), 1.0) if ww > 0.0 else 0.0
    return dd + s * (2.0 * dw + s * ww) > reach * reach


@njit(cache=True, error_model="numpy")
def _meets_ball(a: np.ndarray, b: np.ndarray, radius: float, n: np.ndarray) -> float:
    """Part of the path a b at which it enters the ball, 2 if it does not; n gets the normal there."""
    inside = (a * a).sum() <= radius * radius
    if inside and (b * b).sum() > radius * radius:
        return 2.0
    s = 0.0 if inside else first_touch(a, b - a, radius)
    if s > 1.0:
        return 2.0
    place = a + s * (b - a)
    size = math.sqrt((place * place).sum())
    if size > 0.0:
        n[:] = place / size
    else:
        n[:] = np.array([0.0, 0.0, 1.0])
    return s


@njit(cache=True, error_model="numpy")
def _meets_solid(hulls: Hulls, hull: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray) -> float:
    """Part of the path a b at which it enters the polytope grown by `pad`; n gets the face's normal."""
    enter, leave, face = -1.0, 1.0, -1
    depth, nearest = -math.inf, -1
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        p = hulls.planes[k]
        ga = p[0] * a[0] + p[1] * a[1] + p[2] * a[2] - p[3] - pad
        gb = p[0] * b[0] + p[1] * b[1] + p[2] * b[2] - p[3] - pad
        if ga > depth:
            depth, nearest = ga, k
        if ga > 0.0 and gb > 0.0:
            return 2.0
        if ga > 0.0:
            s = ga / (ga - gb)
            if s > enter:
                enter, face = s, k
        elif gb > 0.0:
            leave = min(leave, ga / (ga - gb))
    if face < 0:
        # It was inside all along: out by the nearest face, unless it comes out by itself.
        if leave < 1.0:
            return 2.0
        enter, face = 0.0, nearest
    if enter > leave:
        return 2.0
    n[:] = hulls.planes[face, :3]
    return enter


@njit(cache=True, error_model="numpy")
def _meets_wall(hulls: Hulls, hull: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray) -> float:
    """Part of the path a b at which it leaves the container shrunk by `pad`; n gets the inward normal."""
    first, deepest = 2.0, 0.0
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
            n[:] = -hulls.planes[k, :3]
    return first


@njit(cache=True, error_model="numpy")
def meets(
    obstacles: Obstacles, hulls: Hulls, i: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray
) -> float:
    if obstacles.shape[i] == BALL:
        return _meets_ball(a, b, obstacles.radius[i] + pad, n)
    if obstacles.shape[i] == CONTAINER:
        return _meets_wall(hulls, obstacles.hull[i], a, b, pad, n)
    return _meets_solid(hulls, obstacles.hull[i], a, b, pad, n)


@njit(cache=True, error_model="numpy")
def missing(obstacles: Obstacles, hulls: Hulls, i: int, r: np.ndarray, n: np.ndarray, pad: float) -> float:
    """How far r has to move along n, a normal of body i, to be `pad` away from the surface n belongs to."""
    along = (r * n).sum()
    if obstacles.shape[i] == BALL:
        return obstacles.radius[i] + pad - along
    best, offset = -math.inf, 0.0
    sign = -1.0 if obstacles.shape[i] == CONTAINER else 1.0
    for k in range(hulls.plane_start[obstacles.hull[i]], hulls.plane_start[obstacles.hull[i] + 1]):
        same = sign * (hulls.planes[k, :3] * n).sum()
        if same > best:
            best, offset = same, sign * hulls.planes[k, 3]
    return offset + pad - along


@njit(cache=True, error_model="numpy")
def shrunk(hulls: Hulls, hull: int, r: np.ndarray, pad: float) -> np.ndarray:
    """The point on the way from r to the centre of the hull that first is `pad` inside it."""
    part = 1.0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        along = (hulls.planes[k, :3] * r).sum()
        room = max(hulls.planes[k, 3] - pad, 0.0)
        if along > room:
            part = min(part, room / along)
    return part * r


@njit(cache=True, error_model="numpy")
def overlap(obstacles: Obstacles, hulls: Hulls, i: int, p: np.ndarray) -> float:
    """How deep p is in body i, or outside container i, at the end of the tick, m; negative where it fits."""
    if obstacles.shape[i] == BALL:
        d = p - obstacles.x1[i]
        return obstacles.radius[i] - math.sqrt((d * d).sum())
    r = local(obstacles, i, 1.0, p)
    bound = plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0]
    return bound if obstacles.shape[i] == CONTAINER else -bound


@njit(cache=True, error_model="numpy")
def holds(obstacles: Obstacles, hulls: Hulls, i: int, t: float, p: np.ndarray, slack: float) -> bool:
    """Whether p is inside container i, or at most `slack` outside."""
    r = local(obstacles, i, t, p)
    return plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0] <= slack
