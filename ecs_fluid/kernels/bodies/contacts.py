"""Contact points of two bodies: balls, convex polytopes, and containers (polytopes inside out).

A contact is (x, y, z, nx, ny, nz, gap): a place, the normal from the first body to the second, and the
distance still open along it, m, negative where they overlap. `shift` is how far each body is about to move.
Balls are followed along it, so that the normal is that at the moment of the impact, or, if they pass each
other, at the moment when they are closest: with that normal, a ball that misses is never slowed down.
Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contact_manifold import MOST_CONTACTS, hull_contacts, put_contact
from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_gap
from ecs_fluid.kernels.bodies.rotation import rotation_at
from ecs_fluid.kernels.bodies.seams import has_parts, is_on_surface, reaches_beyond
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    Vector,
    add_scaled,
    divided,
    dot,
    length,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)

NEAR = 0.01
"""A contact is kept up to this gap, as a fraction of a ball's radius, even if the bodies do not approach."""

PASSES = 24
"""Number of bisections of a ball's path past a polytope, to find where it is closest."""


@njit(cache=True, error_model="numpy")
def contacts_of_pair(
    bodies: Bodies, hulls: Hulls, shift: Array, a: int, b: int, slack: float, out: Array
) -> int:
    """Fill out (64, 7) with the contacts of bodies a and b, normal from a to b; returns their number.

    `slack` is the distance that the two may come closer by, m.
    """
    if bodies.shape[a] == BALL and bodies.shape[b] == BALL:
        return ball_ball(bodies.x, bodies.radius, shift, a, b, out)
    if bodies.shape[a] == BALL:
        return _hull_ball(bodies, hulls, shift, b, a, -1.0, out)
    if bodies.shape[a] == CONTAINER and bodies.shape[b] == BALL:
        return container_ball(hulls, bodies.hull, bodies.radius, bodies.x, bodies.q, a, b, slack, out)
    if bodies.shape[b] == BALL:
        return _hull_ball(bodies, hulls, shift, a, b, 1.0, out)
    if bodies.shape[a] == CONTAINER:
        return _container_hull(bodies, hulls, a, b, slack, out)
    count = hull_contacts(bodies, hulls, a, b, slack, out)
    if has_parts(bodies, a):
        count = _on_surface(bodies, hulls, a, 1.0, count, out)
    if has_parts(bodies, b):
        count = _on_surface(bodies, hulls, b, -1.0, count, out)
    return count


@njit(cache=True, error_model="numpy")
def _on_surface(bodies: Bodies, hulls: Hulls, i: int, sign: float, count: int, out: Array) -> int:
    """Keep of contacts (count, 7) those on the surface of the body that part i is of; returns their number.

    `sign` is 1 if normals point away from part i, else -1.
    """
    x, turn, kept = row_of(bodies.x, i), rotation_at(bodies.q, i), 0
    for k in range(count):
        normal = out[k, 3], out[k, 4], out[k, 5]
        place = minus(add_scaled(row_of(out, k), -0.5 * sign * out[k, 6], normal), x)
        outward = scaled(sign, rotated_back(turn, normal))
        if is_on_surface(bodies, hulls, i, rotated_back(turn, place), outward):
            for j in range(7):
                out[kept, j] = out[k, j]
            kept += 1
    return kept


@njit(cache=True, error_model="numpy", forceinline=False)
def first_touch(d: Vector, path: Vector, radius: float) -> float:
    """Fraction s >= 0 of the way at which d + s way first has the length `radius`; 2 if never.

    d lies outside the ball of that radius.
    """
    dw, ww = dot(d, path), dot(path, path)
    spare = dot(d, d) - radius * radius
    root = dw * dw - ww * spare
    if dw >= 0.0 or root < 0.0:
        return 2.0
    # This form of the root loses no digits where the usual one would.
    return max(spare, 0.0) / (-dw + math.sqrt(root))


@njit(cache=True, error_model="numpy", forceinline=True)
def ball_ball(x: Array, radius: Array, shift: Array, a: int, b: int, out: Array) -> int:
    """Fill out[0] with the contact of balls a and b; returns 1, or 0 if they do not meet."""
    ra, rb = radius[a], radius[b]
    d = minus(row_of(x, b), row_of(x, a))
    size, normal = length(d), (0.0, 0.0, 1.0)
    if size > 0.0:
        normal = divided(d, size)
    if size > ra + rb:
        path = minus(row_of(shift, b), row_of(shift, a))
        s = first_touch(d, path, ra + rb)
        if s > 1.0:
            if size - ra - rb > NEAR * min(ra, rb):
                return 0
            s = min(-dot(d, path) / dot(path, path), 1.0) if dot(d, path) < 0.0 else 0.0
        normal = add_scaled(d, s, path)
        normal = divided(normal, length(normal))
    gap = dot(d, normal) - ra - rb
    put_contact(out, 0, add_scaled(row_of(x, a), ra + 0.5 * gap, normal), normal, gap)
    return 1


@njit(cache=True, error_model="numpy")
def _nearest_pass(
    hulls: Hulls, hull: int, start: Vector, path: Vector, before: tuple[float, Vector, Vector]
) -> tuple[float, Vector, Vector]:
    """The result of `closest` at the point of start + s path, 0 <= s <= 1, that is closest to the polytope.

    The distance is a convex function of s, so the sign change of its derivative, path times normal, is found
    by bisection. before: the result at the start.
    """
    nearest = before
    if dot(path, nearest[1]) >= 0.0:
        return nearest
    low, high, at = 0.0, 1.0, 1.0
    for _ in range(PASSES):
        nearest = closest(hulls, hull, add_scaled(start, at, path))
        if dot(path, nearest[1]) > 0.0:
            high = at
        elif at == 1.0:
            break
        else:
            low = at
        at = 0.5 * (low + high)
    return nearest


@njit(cache=True, error_model="numpy")
def _hull_ball(bodies: Bodies, hulls: Hulls, shift: Array, a: int, b: int, sign: float, out: Array) -> int:
    """Ball b against solid polytope a; the normal points from the polytope times `sign`."""
    hull, x, radius = bodies.hull[a], row_of(bodies.x, a), bodies.radius[b]
    turn = rotation_at(bodies.q, a)
    start = rotated_back(turn, minus(row_of(bodies.x, b), x))
    path = rotated_back(turn, minus(row_of(shift, b), row_of(shift, a)))
    speed = length(path)
    nearest = closest(hulls, hull, start)
    gap_now, s = nearest[0] - radius, 0.0
    if gap_now > speed and gap_now > NEAR * radius:
        return 0
    if gap_now > 0.0:
        # Newton's method: the gap is a convex function of s, so it never jumps over the first touch.
        near, meets = nearest, True
        for _ in range(64):
            gap = near[0] - radius
            if gap <= 1e-10 * radius:
                break
            closing = -dot(path, near[1])
            if gap > (1.0 - s) * closing:
                meets = False
                break
            s += gap / closing
            near = closest(hulls, hull, add_scaled(start, s, path))
        if meets:
            nearest = near
        elif gap_now > NEAR * radius:
            return 0
        else:
            nearest = _nearest_pass(hulls, hull, start, path, nearest)
    distance, normal, place = nearest
    if distance > 0.0 and has_parts(bodies, a) and reaches_beyond(bodies, hulls, a, place, normal):
        return 0
    gap = dot(minus(start, place), normal) - radius
    if distance < 0.0:
        gap = distance - radius
    else:
        # Below the present centre, not where the ball will touch: so an impulse along the normal has no arm.
        place = add_scaled(start, -(radius + gap), normal)
    put_contact(out, 0, add_scaled(x, 1.0, rotated(turn, place)), scaled(sign, rotated(turn, normal)), gap)
    return 1


@njit(cache=True, error_model="numpy", forceinline=True)
def container_ball(
    hulls: Hulls, hull: Array, radius: Array, x: Array, q: Array, a: int, b: int, slack: float, out: Array
) -> int:
    """Fill out (64, 7) with the contacts of ball b inside container a: one for every wall within reach."""
    planes, first, last = hulls.planes, hulls.plane_start[hull[a]], hulls.plane_start[hull[a] + 1]
    turn, ball = rotation_at(q, a), row_of(x, b)
    place = rotated_back(turn, minus(ball, row_of(x, a)))
    count = 0
    for k in range(first, last):
        gap = -plane_gap(planes, k, place) - radius[b]
        if gap <= slack and count < MOST_CONTACTS:
            normal = rotated(turn, row_of(planes, k))
            put_contact(out, count, add_scaled(ball, radius[b] + gap, normal), scaled(-1.0, normal), gap)
            count += 1
    return count


@njit(cache=True, error_model="numpy")
def _container_hull(bodies: Bodies, hulls: Hulls, a: int, b: int, slack: float, out: Array) -> int:
    """Polytope b inside container a: its corners against every wall within reach."""
    outer, hull, x = bodies.hull[a], bodies.hull[b], row_of(bodies.x, b)
    turn_a, turn_b = rotation_at(bodies.q, a), rotation_at(bodies.q, b)
    apart = minus(x, row_of(bodies.x, a))
    count = 0
    for k in range(hulls.plane_start[outer], hulls.plane_start[outer + 1]):
        normal = rotated(turn_a, row_of(hulls.planes, k))
        room = hulls.planes[k, 3] - dot(normal, apart)
        if room - hulls.radius[hull] > slack:
            continue
        for v in range(hulls.vertex_start[hull], hulls.vertex_start[hull + 1]):
            corner = rotated(turn_b, row_of(hulls.vertices, v))
            gap = room - dot(normal, corner)
            if gap > slack:
                continue
            slot = count
            if count == MOST_CONTACTS:
                slot = int(np.argmax(out[:, 6]))
                if gap >= out[slot, 6]:
                    continue
            else:
                count += 1
            put_contact(out, slot, add_scaled(x, 1.0, corner), scaled(-1.0, normal), gap)
    return count
