"""Particles against bodies and containers, continuous in time.

During a tick a particle goes straight from one place to another, and a body from one pose to another. In
axes that go with the body the particle's path is taken as straight: both its ends are exact, so nothing
ever comes out on the other side, whatever the speed. Where the path meets the surface, the rest of it loses
what points into the surface (or gets it back times the restitution), and goes on from there; the earliest
surface comes first. At the end every particle is looked at once more where it is, in its own precision.

A particle belongs to the containers that it was in when the tick began.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS
from ecs_fluid.kernels.contacts import BALL, CONTAINER, first_touch
from ecs_fluid.kernels.obstacles import Obstacles, cell_of
from ecs_fluid.kernels.polytope import Hulls, plane_bound
from ecs_fluid.kernels.rotation import cross, matrix_of, times, times_transposed

MOST_NEAR = 64
"""Bodies near one path that are told apart; where there are more, all bodies are looked at."""

MOST_VISITED = 64
"""Cells of one path that are looked into; a longer path looks at all bodies."""

PIECES = 8
"""Surfaces that one particle may meet in a tick before it is merely put where it fits."""

ROUNDS = 16


@njit(cache=True)
def _nearby(obstacles: Obstacles, a: np.ndarray, b: np.ndarray, pad: float, out: np.ndarray) -> int:
    """Bodies whose swept balls may meet the path from a to b: fills out (64,); -1 says all of them."""
    first, last = np.empty(3, np.int64), np.empty(3, np.int64)
    visited = 1
    for k in range(3):
        first[k] = max(cell_of(min(a[k], b[k]) - pad, obstacles.origin[k], obstacles.edge[k]), 0)
        last[k] = cell_of(max(a[k], b[k]) + pad, obstacles.origin[k], obstacles.edge[k])
        last[k] = min(last[k], obstacles.cells[k] - 1)
        if last[k] < first[k]:
            return 0
        visited *= last[k] - first[k] + 1
    if visited > MOST_VISITED:
        return -1
    count = 0
    for i in range(first[0], last[0] + 1):
        for j in range(first[1], last[1] + 1):
            for k in range(first[2], last[2] + 1):
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


@njit(cache=True)
def _pose(obstacles: Obstacles, i: int, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Centre and rotation matrix of body i at part t of the tick."""
    if t <= 0.0:
        return obstacles.x0[i], obstacles.turn0[i]
    if t >= 1.0:
        return obstacles.x1[i], obstacles.turn1[i]
    sign = 1.0 if (obstacles.q0[i] * obstacles.q1[i]).sum() >= 0.0 else -1.0
    center = (1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i]
    return center, matrix_of((1.0 - t) * obstacles.q0[i] + (t * sign) * obstacles.q1[i])


@njit(cache=True)
def _local(obstacles: Obstacles, i: int, t: float, p: np.ndarray) -> np.ndarray:
    """A place in body i's axes; a ball has none, so that its spin carries nothing along."""
    if obstacles.shape[i] == BALL:
        return p - ((1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i])
    center, turn = _pose(obstacles, i, t)
    return times_transposed(turn, p - center)


@njit(cache=True)
def _outward(obstacles: Obstacles, i: int, t: float, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A place r and the same as a direction, from body i's axes to the world's."""
    if obstacles.shape[i] == BALL:
        return (1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i] + r, r
    center, turn = _pose(obstacles, i, t)
    way = times(turn, r)
    return center + way, way


@njit(cache=True)
def _passes_by(obstacles: Obstacles, i: int, t: float, p: np.ndarray, b: np.ndarray, reach: float) -> bool:
    """Whether the path from p (at part t) to b stays farther than `reach` from the centre of body i."""
    ww, dw, dd = 0.0, 0.0, 0.0
    for k in range(3):
        d = p[k] - (obstacles.x0[i, k] + t * (obstacles.x1[i, k] - obstacles.x0[i, k]))
        w = b[k] - obstacles.x1[i, k] - d
        ww, dw, dd = ww + w * w, dw + d * w, dd + d * d
    s = min(max(-dw / ww, 0.0), 1.0) if ww > 0.0 else 0.0
    return dd + s * (2.0 * dw + s * ww) > reach * reach


@njit(cache=True)
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


@njit(cache=True)
def _meets_solid(
    hulls: Hulls, hull: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray
) -> float:
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


@njit(cache=True)
def _meets_wall(
    hulls: Hulls, hull: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray
) -> float:
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


@njit(cache=True)
def _meets(
    obstacles: Obstacles, hulls: Hulls, i: int, a: np.ndarray, b: np.ndarray, pad: float, n: np.ndarray
) -> float:
    if obstacles.shape[i] == BALL:
        return _meets_ball(a, b, obstacles.radius[i] + pad, n)
    if obstacles.shape[i] == CONTAINER:
        return _meets_wall(hulls, obstacles.hull[i], a, b, pad, n)
    return _meets_solid(hulls, obstacles.hull[i], a, b, pad, n)


@njit(cache=True)
def _holds(obstacles: Obstacles, hulls: Hulls, i: int, t: float, p: np.ndarray, slack: float) -> bool:
    """Whether p is inside container i, or at most `slack` outside."""
    r = _local(obstacles, i, t, p)
    return plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0] <= slack


@njit(cache=True)
def _overlap(obstacles: Obstacles, hulls: Hulls, i: int, p: np.ndarray) -> float:
    """How deep p is in body i, or outside container i, at the end of the tick, m; negative where it fits."""
    if obstacles.shape[i] == BALL:
        d = p - obstacles.x1[i]
        return obstacles.radius[i] - math.sqrt((d * d).sum())
    r = _local(obstacles, i, 1.0, p)
    bound = plane_bound(hulls, obstacles.hull[i], r[0], r[1], r[2])[0]
    return bound if obstacles.shape[i] == CONTAINER else -bound


@njit(cache=True)
def _fits(obstacles: Obstacles, hulls: Hulls, p: np.ndarray, held: np.ndarray, pad: float) -> bool:
    """Whether p keeps `pad` from all solids and from the walls of the containers that hold it."""
    for i in range(len(obstacles.shape)):
        if obstacles.shape[i] == CONTAINER:
            continue
        d = p - obstacles.x1[i]
        if (d * d).sum() <= (obstacles.radius[i] + pad) ** 2:
            if _overlap(obstacles, hulls, i, p) > -pad:
                return False
    for k in range(len(held)):
        if held[k] and _overlap(obstacles, hulls, obstacles.containers[k], p) > -pad:
            return False
    return True


@njit(cache=True)
def _shrunk(hulls: Hulls, hull: int, r: np.ndarray, pad: float) -> np.ndarray:
    """The point on the way from r to the centre of the hull that first is `pad` inside it."""
    part = 1.0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        along = (hulls.planes[k, :3] * r).sum()
        if along > hulls.planes[k, 3] - pad:
            part = min(part, max(hulls.planes[k, 3] - pad, 0.0) / along)
    return part * r


@njit(cache=True)
def _push_out(
    obstacles: Obstacles, hulls: Hulls, p: np.ndarray, held: np.ndarray, pad: float, margin: float
) -> bool:
    """Move p out of all that it is in at the end of the tick, each by the nearest way; whether it then fits."""
    n = np.empty(3)
    near = np.empty(MOST_NEAR, np.int64)
    for turn in range(ROUNDS):
        moved = False
        count = _nearby(obstacles, p, p, pad, near)
        number = count if count >= 0 else len(obstacles.shape)
        for k in range(number + len(held)):
            i = near[k] if count >= 0 and k < number else k
            if k >= number:
                if not held[k - number]:
                    continue
                i = obstacles.containers[k - number]
            elif obstacles.shape[i] == CONTAINER:
                continue
            if _overlap(obstacles, hulls, i, p) <= -pad:
                continue
            r = _local(obstacles, i, 1.0, p)
            grown = pad + margin
            if obstacles.shape[i] == CONTAINER and turn >= 2:
                # A sharp edge takes many turns from wall to wall; towards the centre it takes one.
                p[:] = _outward(obstacles, i, 1.0, _shrunk(hulls, obstacles.hull[i], r, grown))[0]
                moved = True
            elif _meets(obstacles, hulls, i, r, r, grown, n) <= 1.0:
                r = r + _missing(obstacles, hulls, i, r, n, grown) * n
                p[:] = _outward(obstacles, i, 1.0, r)[0]
                moved = True
        if not moved:
            return True
    return _fits(obstacles, hulls, p, held, pad)


@njit(cache=True)
def _missing(
    obstacles: Obstacles, hulls: Hulls, i: int, r: np.ndarray, n: np.ndarray, pad: float
) -> float:
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


@njit(cache=True)
def _search(
    obstacles: Obstacles, hulls: Hulls, p: np.ndarray, start: np.ndarray, held: np.ndarray, pad: float
) -> bool:
    """Look for a place that fits ever farther around p, in 26 directions; p gets it."""
    if _fits(obstacles, hulls, start, held, pad):
        p[:] = start
        return True
    size = 0.0
    for i in range(len(obstacles.radius)):
        size = max(size, obstacles.radius[i])
    step = 1e-3 * size
    spot = np.empty(3)
    while step < 4.0 * size:
        for c in range(27):
            spot[0] = p[0] + step * (c // 9 - 1)
            spot[1] = p[1] + step * (c // 3 % 3 - 1)
            spot[2] = p[2] + step * (c % 3 - 1)
            if c != 13 and _fits(obstacles, hulls, spot, held, pad):
                p[:] = spot
                return True
        step *= 1.25
    return False


@njit(cache=True)
def _follow(
    obstacles: Obstacles,
    hulls: Hulls,
    start: np.ndarray,
    end: np.ndarray,
    velocity: np.ndarray,
    held: np.ndarray,
    pad: float,
    margin: float,
    bounce: float,
) -> bool:
    """Take a particle along its path, from surface to surface; changes `end` and `velocity`. Whether any."""
    n, best_n = np.empty(3), np.empty(3)
    near = np.empty(MOST_NEAR, np.int64)
    p, t, met = start.copy(), 0.0, False
    for _ in range(PIECES):
        count = _nearby(obstacles, p, end, pad + margin, near)
        number = count if count >= 0 else len(obstacles.shape)
        first, who = 2.0, -1
        for k in range(number + len(held)):
            i = near[k] if count >= 0 and k < number else k
            if k >= number:
                i = obstacles.containers[k - number]
                if not held[k - number]:
                    continue
                d = end - obstacles.x1[i]
                room = hulls.inner[obstacles.hull[i]] - pad - margin
                if room > 0.0 and (d * d).sum() < room * room:
                    continue
            elif obstacles.shape[i] == CONTAINER or _passes_by(
                obstacles, i, t, p, end, obstacles.radius[i] + pad + margin
            ):
                continue
            a, b = _local(obstacles, i, t, p), _local(obstacles, i, 1.0, end)
            s = _meets(obstacles, hulls, i, a, b, pad, n)
            if s < first:
                first, who = s, i
                best_n[:] = n
        if who < 0:
            break
        met = True
        a, b = _local(obstacles, who, t, p), _local(obstacles, who, 1.0, end)
        place = a + first * (b - a)
        t += first * (1.0 - t)
        lack = max(_missing(obstacles, hulls, who, b, best_n, pad), 0.0)
        b = b + ((1.0 + bounce) * lack + margin) * best_n
        p = _outward(obstacles, who, t, place)[0]
        end[:] = _outward(obstacles, who, 1.0, b)[0]
        _rebound(obstacles, who, t, p, _outward(obstacles, who, t, best_n)[1], velocity, bounce)
    return met


@njit(cache=True)
def _well_inside(obstacles: Obstacles, hulls: Hulls, p: np.ndarray, pad: float) -> bool:
    """Whether p is in the inner ball of every container at the end of the tick."""
    for i in obstacles.containers:
        room, d = hulls.inner[obstacles.hull[i]] - pad, 0.0
        for k in range(3):
            d += (p[k] - obstacles.x1[i, k]) ** 2
        if room <= 0.0 or d >= room * room:
            return False
    return True


@njit(cache=True)
def _rebound(
    obstacles: Obstacles,
    i: int,
    t: float,
    p: np.ndarray,
    n: np.ndarray,
    velocity: np.ndarray,
    bounce: float,
) -> None:
    """Turn back what of a particle's own velocity points into body i, relative to the body's surface."""
    center = (1.0 - t) * obstacles.x0[i] + t * obstacles.x1[i]
    surface = obstacles.v[i] + cross(obstacles.spin[i], p - center)
    into = ((velocity - surface) * n).sum()
    if into < 0.0:
        velocity[:] = velocity - ((1.0 + bounce) * into) * n


@njit(parallel=True, cache=True)
def collide(
    obstacles: Obstacles,
    hulls: Hulls,
    former: np.ndarray,
    x: np.ndarray,
    velocity: np.ndarray,
    clearance: float,
    bounce: float,
    rounding: float,
    counts: np.ndarray,
) -> None:
    """Keep particles out of bodies and in containers.

    Args:
        obstacles, hulls: the bodies of the tick.
        former, x: places (n, 3) at the start and the end of the tick, m; x is changed.
        velocity: own velocities (n, 3), m/s, changed; (0, 3) where particles have none.
        clearance: distance kept from surfaces, m.
        bounce: restitution of the particles, 1.
        rounding: relative rounding error of the numbers in x, 1.
        counts: (CHUNKS, 3) int64, gets particles that met a body, that were squeezed, that are trapped.
    """
    rows, boxes = x.shape[0], len(obstacles.containers)
    widest = 0.0
    for i in range(len(obstacles.radius)):
        widest = max(widest, obstacles.radius[i])
    for chunk in prange(CHUNKS):
        start, end, moved = np.empty(3), np.empty(3), np.empty(3)
        own, held = np.zeros(3), np.zeros(boxes, np.bool_)
        near, stored = np.empty(MOST_NEAR, np.int64), np.empty(3, x.dtype)
        for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            size = widest
            for k in range(3):
                start[k], end[k] = former[row, k], x[row, k]
                size = max(size, abs(start[k]), abs(end[k]))
            # A position that is not finite is the guard's business.
            if not size < math.inf:
                continue
            margin = 16.0 * rounding * size
            if _nearby(obstacles, start, end, clearance + margin, near) == 0:
                if _well_inside(obstacles, hulls, end, clearance + margin):
                    continue
            for k in range(boxes):
                held[k] = _holds(obstacles, hulls, obstacles.containers[k], 0.0, start, margin)
            if len(velocity):
                for k in range(3):
                    own[k] = velocity[row, k]
            moved[:] = end
            met = _follow(obstacles, hulls, start, moved, own, held, clearance, margin, bounce)
            for k in range(3):
                stored[k] = moved[k]
                end[k] = stored[k]
            if not _push_out(obstacles, hulls, end, held, 0.25 * margin, margin):
                counts[chunk, 1] += 1
                if not _search(obstacles, hulls, end, start, held, margin):
                    counts[chunk, 2] += 1
                met = True
            for k in range(3):
                met = met or end[k] != x[row, k]
            if not met:
                continue
            counts[chunk, 0] += 1
            for k in range(3):
                x[row, k] = end[k]
            if len(velocity):
                for k in range(3):
                    velocity[row, k] = own[k]


@njit(parallel=True, cache=True)
def misplaced(obstacles: Obstacles, hulls: Hulls, x: np.ndarray, out: np.ndarray) -> None:
    """Depth (n,) m by which each of x (n, 3) is inside a body, or outside all containers; at most 0 if neither.

    Poses are those of the end of the tick. Without containers everything outside the bodies is in place.
    """
    rows, boxes = x.shape[0], len(obstacles.containers)
    for chunk in prange(CHUNKS):
        p, near = np.empty(3), np.empty(MOST_NEAR, np.int64)
        for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            for k in range(3):
                p[k] = x[row, k]
            worst = -math.inf
            count = _nearby(obstacles, p, p, 0.0, near)
            for k in range(count if count >= 0 else len(obstacles.shape)):
                i = near[k] if count >= 0 else k
                if obstacles.shape[i] != CONTAINER:
                    worst = max(worst, _overlap(obstacles, hulls, i, p))
            least = math.inf
            for k in range(boxes):
                least = min(least, _overlap(obstacles, hulls, obstacles.containers[k], p))
            if boxes:
                worst = max(worst, least)
            out[row] = worst
