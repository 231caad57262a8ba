"""Contact points of two bodies: balls, convex polytopes, and containers (polytopes inside out).

A contact is (x, y, z, nx, ny, nz, gap): a place, the normal from the first body to the second, and the
distance still open along it, m; negative where they overlap. `shift` is how far each body is about to move:
balls are followed along it, so that the normal is that of the moment of the impact, or, where they pass each
other, of that when they are closest: on that normal's account no ball that misses ever has to slow down.
Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.manifold import hull_contacts
from ecs_fluid.kernels.bodies.polytope import Hulls, closest
from ecs_fluid.kernels.bodies.rotation import matrix_of, times, times_transposed, turn_of

BALL, SOLID, CONTAINER = 0, 1, 2
"""Shapes of bodies."""

NEAR = 0.01
"""Gap, as a part of a ball's radius, up to which a contact is kept though nothing closes it by itself."""

PASSES = 24
"""Halvings of the way of a ball past a polytope, to find where it is closest."""

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
        return ball_ball(x, radius, shift, a, b, out)
    if shape[a] == BALL:
        return _hull_ball(hulls, hull[b], x[b], q[b], x[a], radius[a], shift[a] - shift[b], -1.0, out)
    if shape[b] == BALL:
        way = shift[b] - shift[a]
        if shape[a] == CONTAINER:
            return container_ball(hulls, hull, radius, x, q, a, b, slack, out)
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
def touch_of(dx: float, dy: float, dz: float, wx: float, wy: float, wz: float, radius: float) -> float:
    """Part s >= 0 of the way (wx, wy, wz) after which d + s way first has length `radius`; 2 if never.

    d lies outside the ball of that radius.
    """
    dd, dw, ww = dx * dx + dy * dy + dz * dz, dx * wx + dy * wy + dz * wz, wx * wx + wy * wy + wz * wz
    spare = dd - radius * radius
    root = dw * dw - ww * spare
    if dw >= 0.0 or root < 0.0:
        return 2.0
    # The quotient of this form loses no digits where the other root's would.
    return max(spare, 0.0) / (-dw + math.sqrt(root))


@njit(cache=True, error_model="numpy", forceinline=True)
def ball_ball(x: np.ndarray, radius: np.ndarray, shift: np.ndarray, a: int, b: int, out: np.ndarray) -> int:
    """Fill out[0] with the contact of balls a and b; returns 1, or 0 if they do not meet."""
    ra, rb = radius[a], radius[b]
    dx, dy, dz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    size = math.sqrt(dx * dx + dy * dy + dz * dz)
    nx, ny, nz = 0.0, 0.0, 1.0
    if size > 0.0:
        nx, ny, nz = dx / size, dy / size, dz / size
    if size > ra + rb:
        wx, wy, wz = shift[b, 0] - shift[a, 0], shift[b, 1] - shift[a, 1], shift[b, 2] - shift[a, 2]
        s = touch_of(dx, dy, dz, wx, wy, wz, ra + rb)
        if s > 1.0:
            if size - ra - rb > NEAR * min(ra, rb):
                return 0
            dw, ww = dx * wx + dy * wy + dz * wz, wx * wx + wy * wy + wz * wz
            s = min(-dw / ww, 1.0) if dw < 0.0 else 0.0
        nx, ny, nz = dx + s * wx, dy + s * wy, dz + s * wz
        size = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = nx / size, ny / size, nz / size
    gap = (dx * nx + dy * ny + dz * nz) - ra - rb
    reach = ra + 0.5 * gap
    out[0, 0], out[0, 1], out[0, 2] = x[a, 0] + reach * nx, x[a, 1] + reach * ny, x[a, 2] + reach * nz
    out[0, 3], out[0, 4], out[0, 5], out[0, 6] = nx, ny, nz, gap
    return 1


@njit(cache=True, error_model="numpy")
def _nearest_pass(
    hulls: Hulls,
    hull: int,
    start: np.ndarray,
    path: np.ndarray,
    before: tuple[float, float, float, float, float, float, float],
) -> tuple[float, float, float, float, float, float, float]:
    """What `closest` gives at the point of start + s path, 0 <= s <= 1, that is closest to the polytope.

    The distance is a convex function of s, so its slope, path times the normal, is halved down to its sign.
    before: the same at the start.
    """
    found = before
    if path[0] * found[1] + path[1] * found[2] + path[2] * found[3] >= 0.0:
        return found
    low, high, at = 0.0, 1.0, 1.0
    for _ in range(PASSES):
        found = closest(
            hulls, hull, start[0] + at * path[0], start[1] + at * path[1], start[2] + at * path[2]
        )
        if path[0] * found[1] + path[1] * found[2] + path[2] * found[3] > 0.0:
            high = at
        elif at == 1.0:
            break
        else:
            low = at
        at = 0.5 * (low + high)
    return found


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
        # Newton's method: the gap is a convex function of s, so it never jumps over the first touch.
        near, meets = found, True
        for _ in range(64):
            gap = near[0] - radius
            if gap <= 1e-10 * radius:
                break
            closing = -(path[0] * near[1] + path[1] * near[2] + path[2] * near[3])
            if gap > (1.0 - s) * closing:
                meets = False
                break
            s += gap / closing
            near = closest(
                hulls, hull, start[0] + s * path[0], start[1] + s * path[1], start[2] + s * path[2]
            )
        if meets:
            found = near
        elif now > NEAR * radius:
            return 0
        else:
            found = _nearest_pass(hulls, hull, start, path, found)
    normal, place = np.array([found[1], found[2], found[3]]), np.array([found[4], found[5], found[6]])
    gap = ((start - place) * normal).sum() - radius
    if found[0] < 0.0:
        gap = found[0] - radius
    else:
        # Below the centre as it is now, not where the ball will touch: a push along the normal has no arm.
        place = start - (radius + gap) * normal
    _put(out, 0, x + times(turn, place), sign * times(turn, normal), gap)
    return 1


@njit(cache=True, error_model="numpy", forceinline=True)
def container_ball(
    hulls: Hulls,
    hull: np.ndarray,
    radius: np.ndarray,
    x: np.ndarray,
    q: np.ndarray,
    a: int,
    b: int,
    slack: float,
    out: np.ndarray,
) -> int:
    """Fill out (64, 7) with the contacts of ball b inside container a: one for every wall within reach."""
    planes, first, last = hulls.planes, hulls.plane_start[hull[a]], hulls.plane_start[hull[a] + 1]
    t = turn_of(q[a, 0], q[a, 1], q[a, 2], q[a, 3])
    dx, dy, dz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    lx, ly, lz = (
        t[0] * dx + t[3] * dy + t[6] * dz,
        t[1] * dx + t[4] * dy + t[7] * dz,
        t[2] * dx + t[5] * dy + t[8] * dz,
    )
    count = 0
    for k in range(first, last):
        nx, ny, nz = planes[k, 0], planes[k, 1], planes[k, 2]
        gap = planes[k, 3] - (nx * lx + ny * ly + nz * lz) - radius[b]
        if gap <= slack and count < MOST_CONTACTS:
            for i in range(3):
                normal = t[3 * i] * nx + t[3 * i + 1] * ny + t[3 * i + 2] * nz
                out[count, i] = x[b, i] + (radius[b] + gap) * normal
                out[count, 3 + i] = -normal
            out[count, 6] = gap
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
