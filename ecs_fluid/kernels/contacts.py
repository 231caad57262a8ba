"""Contact points of two bodies: balls, convex polytopes, and containers (polytopes inside out).

A contact is (x, y, z, nx, ny, nz, gap): a place, the normal from the first body to the second, and the
distance still open along it, m; negative where they overlap. `shift` is how far each body is about to move:
balls are followed along it, so that the normal is that of the moment of the impact. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.manifold import hull_contacts
from ecs_fluid.kernels.polytope import Hulls, closest
from ecs_fluid.kernels.rotation import matrix_of, times, times_transposed

BALL, SOLID, CONTAINER = 0, 1, 2
"""Shapes of bodies."""

NEAR = 0.01
"""Gap, as a part of a ball's radius, up to which a contact is kept though nothing closes it by itself."""

MOST_CONTACTS = 64
"""Contacts of one pair of bodies; a polytope of more corners in a container has the deepest ones."""


@njit(cache=True, error_model="numpy")
def contacts_of_pair(
    hulls: Hulls,
    shape: np.ndarray,
    radius: np.ndarray,
    hull: np.ndarray,
    x: np.ndarray,
    q: np.ndarray,
    shift: np.ndarray,
    a: int,
    b: int,
    slack: float,
    out: np.ndarray,
) -> int:
    """Fill out (64, 7) with the contacts of bodies a and b, normal from a to b; returns their number.

    `slack` is the distance that the two may come closer by, m.
    """
    if shape[a] == BALL and shape[b] == BALL:
        return _ball_ball(x[a], radius[a], x[b], radius[b], shift[b] - shift[a], out)
    if shape[a] == BALL:
        return _hull_ball(hulls, hull[b], x[b], q[b], x[a], radius[a], shift[a] - shift[b], -1.0, out)
    if shape[b] == BALL:
        way = shift[b] - shift[a]
        if shape[a] == CONTAINER:
            return _container_ball(hulls, hull[a], x[a], q[a], x[b], radius[b], slack, out)
        return _hull_ball(hulls, hull[a], x[a], q[a], x[b], radius[b], way, 1.0, out)
    if shape[a] == CONTAINER:
        return _container_hull(hulls, hull[a], x[a], q[a], hull[b], x[b], q[b], slack, out)
    return hull_contacts(hulls, hull[a], x[a], q[a], hull[b], x[b], q[b], slack, out)


@njit(cache=True, error_model="numpy")
def _put(out: np.ndarray, k: int, point: np.ndarray, normal: np.ndarray, gap: float) -> None:
    out[k, :3] = point
    out[k, 3:6] = normal
    out[k, 6] = gap


@njit(cache=True, error_model="numpy")
def first_touch(d: np.ndarray, way: np.ndarray, radius: float) -> float:
    """Part s >= 0 of `way` (3,) after which d + s way first has length `radius`; 2 if it never has.

    d (3,) lies outside the ball of that radius.
    """
    dd, dw, ww = 0.0, 0.0, 0.0
    for k in range(3):
        dd, dw, ww = dd + d[k] * d[k], dw + d[k] * way[k], ww + way[k] * way[k]
    spare = dd - radius * radius
    root = dw * dw - ww * spare
    if dw >= 0.0 or root < 0.0:
        return 2.0
    # The quotient of this form loses no digits where the other root's would.
    return max(spare, 0.0) / (-dw + math.sqrt(root))


@njit(cache=True, error_model="numpy")
def _ball_ball(xa: np.ndarray, ra: float, xb: np.ndarray, rb: float, way: np.ndarray, out: np.ndarray) -> int:
    d = xb - xa
    size = math.sqrt((d * d).sum())
    normal = d / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    if size > ra + rb:
        s = first_touch(d, way, ra + rb)
        if s <= 1.0:
            normal = (d + s * way) / (ra + rb)
        elif size - ra - rb > NEAR * min(ra, rb):
            return 0
    gap = (d * normal).sum() - ra - rb
    _put(out, 0, xa + (ra + 0.5 * gap) * normal, normal, gap)
    return 1


@njit(cache=True, error_model="numpy")
def _hull_ball(
    hulls: Hulls,
    hull: int,
    x: np.ndarray,
    q: np.ndarray,
    center: np.ndarray,
    radius: float,
    way: np.ndarray,
    sign: float,
    out: np.ndarray,
) -> int:
    """Ball against solid polytope; the normal points from the polytope times `sign`."""
    turn = matrix_of(q)
    start, path = times_transposed(turn, center - x), times_transposed(turn, way)
    speed = math.sqrt((path * path).sum())
    found = closest(hulls, hull, start[0], start[1], start[2])
    now, s = found[0] - radius, 0.0
    if now > speed and now > NEAR * radius:
        return 0
    if now > 0.0:
        # Forward by what is free of all obstacles, until the ball touches or has come all the way.
        near = found
        for _ in range(64):
            s += (near[0] - radius) / speed if speed > 0.0 else 2.0
            if s > 1.0:
                break
            near = closest(
                hulls, hull, start[0] + s * path[0], start[1] + s * path[1], start[2] + s * path[2]
            )
            if near[0] - radius <= 1e-10 * radius:
                break
        if s <= 1.0:
            found = near
        elif now > NEAR * radius:
            return 0
    normal, place = np.array([found[1], found[2], found[3]]), np.array([found[4], found[5], found[6]])
    gap = ((start - place) * normal).sum() - radius
    if found[0] < 0.0:
        gap = found[0] - radius
    _put(out, 0, x + times(turn, place), sign * times(turn, normal), gap)
    return 1


@njit(cache=True, error_model="numpy")
def _container_ball(
    hulls: Hulls,
    hull: int,
    x: np.ndarray,
    q: np.ndarray,
    center: np.ndarray,
    radius: float,
    slack: float,
    out: np.ndarray,
) -> int:
    """Ball inside a container: one contact for every wall within reach."""
    turn = matrix_of(q)
    local = times_transposed(turn, center - x)
    count = 0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        normal = hulls.planes[k, :3]
        gap = hulls.planes[k, 3] - (normal * local).sum() - radius
        if gap <= slack and count < MOST_CONTACTS:
            out_normal = times(turn, normal)
            _put(out, count, center + (radius + gap) * out_normal, -out_normal, gap)
            count += 1
    return count


@njit(cache=True, error_model="numpy")
def _container_hull(
    hulls: Hulls,
    outer: int,
    xa: np.ndarray,
    qa: np.ndarray,
    hull: int,
    xb: np.ndarray,
    qb: np.ndarray,
    slack: float,
    out: np.ndarray,
) -> int:
    """Polytope inside a container: its corners against every wall within reach."""
    ta, tb = matrix_of(qa), matrix_of(qb)
    count = 0
    for k in range(hulls.plane_start[outer], hulls.plane_start[outer + 1]):
        normal = times(ta, hulls.planes[k, :3])
        room = hulls.planes[k, 3] - (normal * (xb - xa)).sum()
        if room - hulls.radius[hull] > slack:
            continue
        for v in range(hulls.vertex_start[hull], hulls.vertex_start[hull + 1]):
            corner = times(tb, hulls.vertices[v])
            gap = room - (normal * corner).sum()
            if gap > slack:
                continue
            slot = count
            if count == MOST_CONTACTS:
                slot = int(np.argmax(out[:, 6]))
                if gap >= out[slot, 6]:
                    continue
            else:
                count += 1
            _put(out, slot, xb + corner, -normal, gap)
    return count
