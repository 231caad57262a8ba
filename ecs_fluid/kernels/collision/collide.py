"""Collisions of particles with bodies and containers, continuous in time.

During a tick a particle moves straight from one place to another, and a body from one pose to another. In
axes that move with the body the particle's path is taken as straight. Both its ends are exact, so a particle
never comes out on the other side, at any speed. Where the path meets the surface, the rest of it loses its
component into the surface (or is reflected, times the restitution), and continues from there; the earliest
surface comes first. At the end the place of every particle is checked again, in its own precision.

A particle belongs to the containers that it was in when the tick began.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.table import CONTAINER
from ecs_fluid.kernels.collision.broad_phase import (
    MOST_VISITED,
    cells_of_path,
    far_from_all,
    far_outside,
    well_inside,
)
from ecs_fluid.kernels.collision.early_rejection import BLOCK, REJECTED, ROWS, few_bodies, reject
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.collision.swept_contact import (
    center_at,
    contains,
    distance_to_clear,
    meets,
    overlap,
    passes_by,
    pulled_inside,
    to_body_axes,
    to_world_axes,
)
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import Vector, add_scaled, cross_of, dot, minus, row_of, scaled

MOST_NEAR = 64
"""Most bodies near one path that are listed; if there are more, all bodies are examined."""

MOST_SURFACES = 8
"""Most surfaces that one particle meets in a tick; after that it is only moved to a place where it fits."""

MOST_ROUNDS = 16


@njit(cache=True, error_model="numpy")
def _bodies_near(obstacles: Obstacles, a: Vector, b: Vector, pad: float, out: Array) -> int:
    """Fill out (64,) with bodies whose swept balls may meet the path a b; returns their number, -1 for
    all."""
    number, i0, i1, j0, j1, k0, k1 = cells_of_path(obstacles, a, b, pad)
    if number > MOST_VISITED:
        return -1
    count = 0
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                c = (i * obstacles.cells[1] + j) * obstacles.cells[2] + k
                for s in range(obstacles.start[c], obstacles.start[c + 1]):
                    body = obstacles.near[s]
                    known = False
                    for m in range(count):
                        known = known or out[m] == body
                    if known:
                        continue
                    if count == MOST_NEAR:
                        return -1
                    out[count] = body
                    count += 1
    return count


@njit(cache=True, error_model="numpy")
def _fits(obstacles: Obstacles, hulls: Hulls, p: Vector, held: Array, pad: float) -> bool:
    """Whether p keeps `pad` from all solids and from the walls of the containers that hold it."""
    for i in range(len(obstacles.shape)):
        if obstacles.shape[i] == CONTAINER:
            continue
        d = minus(p, row_of(obstacles.x1, i))
        near = dot(d, d) <= (obstacles.radius[i] + pad) ** 2
        if near and overlap(obstacles, hulls, i, p) > -pad:
            return False
    for k in range(len(held)):
        if held[k] and overlap(obstacles, hulls, obstacles.containers[k], p) > -pad:
            return False
    return True


@njit(cache=True, error_model="numpy")
def _push_out(
    obstacles: Obstacles, hulls: Hulls, p: Vector, held: Array, pad: float, margin: float, near: Array
) -> tuple[bool, Vector]:
    """Move p out of all that it is in at the end of the tick, each the nearest way: (whether it fits, p).

    near (MOST_NEAR,) int64 is scratch.
    """
    for turn in range(MOST_ROUNDS):
        moved = False
        count = _bodies_near(obstacles, p, p, pad, near)
        number = count if count >= 0 else len(obstacles.shape)
        for k in range(number + len(held)):
            i = near[k] if count >= 0 and k < number else k
            if k >= number:
                if not held[k - number]:
                    continue
                i = obstacles.containers[k - number]
            elif obstacles.shape[i] == CONTAINER:
                continue
            if overlap(obstacles, hulls, i, p) <= -pad:
                continue
            r = to_body_axes(obstacles, i, 1.0, p)
            grown = pad + margin
            if obstacles.shape[i] == CONTAINER and turn >= 2:
                # In a sharp edge moving from wall to wall takes many rounds; moving to the centre takes one.
                p = to_world_axes(obstacles, i, 1.0, pulled_inside(hulls, obstacles.hull[i], r, grown))[0]
                moved = True
                continue
            s, n = meets(obstacles, hulls, i, r, r, grown)
            if s <= 1.0:
                r = add_scaled(r, distance_to_clear(obstacles, hulls, i, r, n, grown), n)
                p = to_world_axes(obstacles, i, 1.0, r)[0]
                moved = True
        if not moved:
            return True, p
    return _fits(obstacles, hulls, p, held, pad), p


@njit(cache=True, error_model="numpy")
def _search_free_place(
    obstacles: Obstacles, hulls: Hulls, p: Vector, start: Vector, held: Array, pad: float
) -> tuple[bool, Vector]:
    """Search around p, in 26 directions and ever farther, for a place that fits: (whether found, the
    place)."""
    if _fits(obstacles, hulls, start, held, pad):
        return True, start
    size = 0.0
    for i in range(len(obstacles.radius)):
        size = max(size, obstacles.radius[i])
    step = 1e-3 * size
    while step < 4.0 * size:
        for c in range(27):
            spot = (p[0] + step * (c // 9 - 1), p[1] + step * (c // 3 % 3 - 1), p[2] + step * (c % 3 - 1))
            if c != 13 and _fits(obstacles, hulls, spot, held, pad):
                return True, spot
        step *= 1.25
    return False, p


@njit(cache=True, error_model="numpy")
def _trace_path(
    obstacles: Obstacles,
    hulls: Hulls,
    start: Vector,
    end: Vector,
    velocity: Vector,
    gain: Vector,
    dt: float,
    held: Array,
    pad: float,
    margin: float,
    bounce: float,
    near: Array,
) -> tuple[int, Vector, Vector]:
    """Take a particle along its path, from surface to surface: (body it met first or -1, end, velocity).

    Its velocity is that at the end of the tick of `dt` s, in which it gained `gain` m/s. So it met a surface
    at the time t with velocity - (1 - t) gain, and the rest of its path is bent by as much.
    near (MOST_NEAR,) int64 is scratch.
    """
    best_n = start
    p, t, met = start, 0.0, -1
    for _ in range(MOST_SURFACES):
        count = _bodies_near(obstacles, p, end, pad + margin, near)
        number = count if count >= 0 else len(obstacles.shape)
        # Of a literal -1 numba would compile what is called with it once more.
        first, hit = 2.0, int(np.int64(-1))
        for k in range(number + len(held)):
            i = near[k] if count >= 0 and k < number else k
            if k >= number:
                i = obstacles.containers[k - number]
                if not held[k - number]:
                    continue
                d = minus(end, row_of(obstacles.x1, i))
                room = hulls.inner[obstacles.hull[i]] - pad - margin
                if room > 0.0 and dot(d, d) < room * room:
                    continue
            elif obstacles.shape[i] == CONTAINER or passes_by(
                obstacles, i, t, p, end, obstacles.radius[i] + pad + margin
            ):
                continue
            a, b = to_body_axes(obstacles, i, t, p), to_body_axes(obstacles, i, 1.0, end)
            s, n = meets(obstacles, hulls, i, a, b, pad)
            if s < first:
                first, hit, best_n = s, i, n
        if hit < 0:
            break
        if met < 0:
            met = hit
        a, b = to_body_axes(obstacles, hit, t, p), to_body_axes(obstacles, hit, 1.0, end)
        place = add_scaled(a, first, minus(b, a))
        t += first * (1.0 - t)
        p, n = to_world_axes(obstacles, hit, t, place)[0], to_world_axes(obstacles, hit, t, best_n)[1]
        lack = max(distance_to_clear(obstacles, hulls, hit, b, best_n, pad), 0.0)
        bend = 0.5 * (1.0 - t) ** 2 * dt * dot(gain, n)
        b = add_scaled(b, max((1.0 + bounce) * (lack + bend), lack) + margin, best_n)
        end = to_world_axes(obstacles, hit, 1.0, b)[0]
        velocity = _rebound(obstacles, hit, t, p, n, velocity, gain, bounce)
    return met, end, velocity


@njit(cache=True, error_model="numpy")
def _rebound(
    obstacles: Obstacles,
    i: int,
    t: float,
    p: Vector,
    n: Vector,
    velocity: Vector,
    gain: Vector,
    bounce: float,
) -> Vector:
    """A particle's own velocity at the end without what pointed into body i, relative to the body's surface.

    If it points there again at the end, the particle stays at the surface.
    """
    turning = cross_of(row_of(obstacles.angular_velocity, i), minus(p, center_at(obstacles, i, t)))
    surface = add_scaled(row_of(obstacles.v, i), 1.0, turning)
    into = dot(minus(add_scaled(velocity, -(1.0 - t), gain), surface), n)
    if into < 0.0:
        velocity = add_scaled(velocity, -((1.0 + bounce) * into), n)
    if bounce > 0.0:
        velocity = add_scaled(velocity, max(-dot(minus(velocity, surface), n), 0.0), n)
    return velocity


@parallel("min(CHUNKS, (x.shape[0] + BLOCK - 1) // BLOCK)", error_model="numpy")
def _collide(
    chunk: int,
    obstacles: Obstacles,
    hulls: Hulls,
    widest: float,
    bodies: tuple[Array, Array, Array, float],
    former: Array,
    x: Array,
    velocity: Array,
    acceleration: Array,
    dt: float,
    clearance: float,
    bounce: float,
    rounding: float,
    counts: Array,
    touched: Array,
) -> None:
    rows, boxes = x.shape[0], len(obstacles.containers)
    first_plane, balls, planes, reach = bodies
    blocks = (rows + BLOCK - 1) // BLOCK
    chunks = min(CHUNKS, blocks)
    lanes = np.empty((ROWS, BLOCK), np.float32)
    held, near = np.zeros(boxes, np.bool_), np.empty(MOST_NEAR, np.int64)
    for block in range(chunk * blocks // chunks, (chunk + 1) * blocks // chunks):
        first, last = block * BLOCK, min((block + 1) * BLOCK, rows)
        touched[first:last], left = -1, last - first
        if len(first_plane):
            ends = former[first:last], x[first:last]
            left = reject(
                obstacles.shape, first_plane, balls, planes, reach, clearance, rounding, *ends, lanes
            )
        if left == 0:
            continue
        for row in range(first, last):
            if len(first_plane) and lanes[REJECTED, row - first] > 0.0:
                continue
            start, target = row_of(former, row), row_of(x, row)
            own_velocity, gain = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            # A position that is not finite is the guard's business.
            if not math.isfinite(start[0] + start[1] + start[2] + target[0] + target[1] + target[2]):
                continue
            size = widest
            for k in range(3):
                size = max(size, abs(start[k]), abs(target[k]))
            margin = 16.0 * rounding * size
            pad = clearance + margin
            if far_from_all(obstacles, hulls, start, target, pad) and well_inside(
                obstacles, hulls, target, pad
            ):
                continue
            for k in range(boxes):
                i = obstacles.containers[k]
                held[k] = not far_outside(obstacles, hulls, i, start, margin) and contains(
                    obstacles, hulls, i, 0.0, start, margin
                )
            if len(velocity):
                own_velocity = row_of(velocity, row)
            if len(acceleration):
                gain = scaled(dt, row_of(acceleration, row))
            touched[row], moved, own_velocity = _trace_path(
                obstacles,
                hulls,
                start,
                target,
                own_velocity,
                gain,
                dt,
                held,
                clearance,
                margin,
                bounce,
                near,
            )
            met = touched[row] >= 0
            for k in range(3):
                x[row, k] = moved[k]
            end = row_of(x, row)
            fits, end = _push_out(obstacles, hulls, end, held, 0.25 * margin, margin, near)
            if not fits:
                counts[chunk, 1] += 1
                fits, end = _search_free_place(obstacles, hulls, end, start, held, margin)
                if not fits:
                    counts[chunk, 2] += 1
                met = True
            if not met and end == target:
                continue
            counts[chunk, 0] += 1
            for k in range(3):
                x[row, k] = end[k]
            if len(velocity):
                for k in range(3):
                    velocity[row, k] = own_velocity[k]


@njit(cache=True, error_model="numpy")
def collide(
    obstacles: Obstacles,
    hulls: Hulls,
    former: Array,
    x: Array,
    velocity: Array,
    acceleration: Array,
    dt: float,
    clearance: float,
    bounce: float,
    rounding: float,
    counts: Array,
    touched: Array,
) -> None:
    """Keep particles out of bodies and in containers.

    Args:
        obstacles, hulls: the bodies of the tick.
        former, x: places (n, 3) at the start and the end of the tick, m; x is changed.
        velocity: own velocities (n, 3) as the tick ends, m/s, changed; (0, 3) where particles have none.
        acceleration: of these (n, 3) m/s^2, steady in the tick of `dt` s; (0, 3) without.
        clearance: distance kept from surfaces, m.
        bounce: restitution of the particles, 1.
        rounding: relative rounding error of the numbers in x, 1.
        counts: (CHUNKS, 3) int64, gets particles that met a body, that were squeezed, that are trapped.
        touched: (n,) int64, filled with the body that each particle met first, -1 for none.
    """
    widest = 0.0
    for i in range(len(obstacles.radius)):
        widest = max(widest, obstacles.radius[i])
    bodies, law = few_bodies(obstacles, hulls), (dt, clearance, bounce, rounding)
    _collide(obstacles, hulls, widest, bodies, former, x, velocity, acceleration, *law, counts, touched)


@parallel(error_model="numpy")
def misplaced(chunk: int, obstacles: Obstacles, hulls: Hulls, x: Array, out: Array) -> None:
    """Depth (n,) m by which each of x (n, 3) is inside a body or outside all containers; else at most 0.

    Poses are those of the end of the tick. Without containers everything outside the bodies is in place.
    """
    rows, boxes = x.shape[0], len(obstacles.containers)
    near = np.empty(MOST_NEAR, np.int64)
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        p = row_of(x, row)
        worst = -math.inf
        count = _bodies_near(obstacles, p, p, 0.0, near)
        for k in range(count if count >= 0 else len(obstacles.shape)):
            i = near[k] if count >= 0 else k
            if obstacles.shape[i] != CONTAINER:
                worst = max(worst, overlap(obstacles, hulls, i, p))
        least = math.inf
        for k in range(boxes):
            least = min(least, overlap(obstacles, hulls, obstacles.containers[k], p))
        if boxes:
            worst = max(worst, least)
        out[row] = worst
