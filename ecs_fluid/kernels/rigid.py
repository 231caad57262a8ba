"""Rigid bodies as plain arrays, and one substep of their motion under gravity and contacts.

In a substep of h seconds

1. velocities get gravity, v += g h;
2. contacts are found, those too that are still a gap away but may close within h;
3. impulses make every contact keep its gap open, v_n h >= -gap, with Coulomb's friction;
4. bodies move, x += v h, less g h^2/2 where nothing touches, which is the exact parabola, and turn freely;
5. impulses are corrected for the velocities at the end of the substep. A contact that closed fast gets its
   rebound here, e sqrt(v_n^2 + 2 g_n gap); impacts of balls have been taken out before, see `impacts`.

Contacts are solved one after the other in a fixed order, forth and back (Gauss-Seidel), so the result
depends on nothing but the state. Everything is float64.

Source of small substeps with a correction after the move: Macklin et al., "Small steps in physics
simulation", SCA 2019.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.contacts import BALL, CONTAINER, contacts_of_pair
from ecs_fluid.kernels.polytope import Hulls
from ecs_fluid.kernels.rotation import (
    cross,
    free_rotation,
    matrix_of,
    product,
    quaternion_of,
    times,
)

PUSH = 0.2
"""Part of a penetration that one substep takes back."""

SETTLED = 1e-13
"""Change of a contact's velocity, m/s, below which the impulse solver stops."""

SAME_PLACE = 0.2
"""Part of the smaller body's radius by which a contact may have moved and still be the same."""

LIKE_A_BALL = 1e-12
"""Relative difference of the moments of inertia below which a free spin keeps its axis."""


class Memory(NamedTuple):
    """Forces of the last contacts, from which the next solution starts.

    who (c, 2): rows of the two bodies, in rising order; place (c, 3) m; force (c, 3): on the second body, N.
    """

    who: np.ndarray
    place: np.ndarray
    force: np.ndarray


class Bodies(NamedTuple):
    """Bodies of a world in one table: arrays of n rows, float64 and int64.

    shape: 0 ball, 1 polytope, 2 container. radius: of the ball, or of the ball round the polytope, m.
    hull: number in `Hulls`. motion: 2 for bodies that impulses move. inertia (n, 3, 3): body axes, kg m^2.
    """

    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    spin: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    motion: np.ndarray
    restitution: np.ndarray
    friction: np.ndarray
    shape: np.ndarray
    radius: np.ndarray
    hull: np.ndarray


@njit(cache=True)
def close_pairs(x: np.ndarray, reach: np.ndarray, shape: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """Pairs (m, 2) of bodies whose balls of radius `reach` meet, one of them free; sweep along x.

    Containers pair with every free body. The order depends on the rows and positions only.
    """
    n = len(x)
    order = np.argsort(x[:, 0] - reach, kind="mergesort")
    pairs = np.empty((max(64, 4 * n), 2), np.int64)
    count = 0
    for k in range(n):
        a = order[k]
        if shape[a] == CONTAINER:
            continue
        for m in range(k + 1, n):
            b = order[m]
            if x[b, 0] - reach[b] > x[a, 0] + reach[a]:
                break
            if shape[b] == CONTAINER or (motion[a] != 2 and motion[b] != 2):
                continue
            total = reach[a] + reach[b]
            d = (x[a, 0] - x[b, 0]) ** 2 + (x[a, 1] - x[b, 1]) ** 2 + (x[a, 2] - x[b, 2]) ** 2
            if d > total * total:
                continue
            if count == len(pairs):
                more = np.empty((2 * count, 2), np.int64)
                more[:count] = pairs
                pairs = more
            pairs[count, 0], pairs[count, 1] = min(a, b), max(a, b)
            count += 1
    for a in range(n):
        if shape[a] != CONTAINER:
            continue
        for b in range(n):
            if b == a or shape[b] == CONTAINER or (motion[a] != 2 and motion[b] != 2):
                continue
            if count == len(pairs):
                more = np.empty((2 * count, 2), np.int64)
                more[:count] = pairs
                pairs = more
            pairs[count, 0], pairs[count, 1] = a, b
            count += 1
    # In the order of the rows: the sweep's own order would change with every body that overtakes another.
    return pairs[np.argsort(pairs[:count, 0] * n + pairs[:count, 1], kind="mergesort")]


@njit(cache=True)
def _inverse_inertia(bodies: Bodies) -> np.ndarray:
    """Inverse tensors in world axes (n, 3, 3); zero for bodies that impulses do not move."""
    n = len(bodies.x)
    out = np.zeros((n, 3, 3))
    for i in range(n):
        if bodies.motion[i] == 2:
            turn = matrix_of(bodies.q[i])
            out[i] = turn @ np.linalg.inv(bodies.inertia[i]) @ turn.T
    return out


@njit(cache=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True)
def _across(n: np.ndarray) -> np.ndarray:
    """A unit vector across the unit vector n."""
    other = np.zeros(3)
    k = 0
    for i in range(1, 3):
        if abs(n[i]) < abs(n[k]):
            k = i
    other[k] = 1.0
    first = cross(n, other)
    return first / math.sqrt(_dot(first, first))


@njit(cache=True)
def contact_rows(bodies: Bodies, who: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows J (c, 3, 12) that take both bodies' velocities to the contact's, and M^-1 J (c, 3, 12).

    Directions 0, 1, 2 are the normal and two tangents; columns 0 to 5 belong to the first body (v, spin),
    6 to 11 to the second.
    """
    inverse = _inverse_inertia(bodies)
    rows, weighted = np.empty((len(who), 3, 12)), np.zeros((len(who), 3, 12))
    for c in range(len(who)):
        normal = points[c, 3:6]
        tangent = _across(normal)
        for d in range(3):
            way = normal if d == 0 else tangent if d == 1 else cross(normal, tangent)
            for side in range(2):
                i = who[c, side]
                sign = 1.0 if side else -1.0
                arm = sign * cross(points[c, :3] - bodies.x[i], way)
                rows[c, d, 6 * side : 6 * side + 3] = sign * way
                rows[c, d, 6 * side + 3 : 6 * side + 6] = arm
                if bodies.motion[i] == 2:
                    weighted[c, d, 6 * side : 6 * side + 3] = (sign / bodies.mass[i]) * way
                    weighted[c, d, 6 * side + 3 : 6 * side + 6] = times(inverse[i], arm)
    return rows, weighted


@njit(cache=True)
def contact_speed(row: np.ndarray, bodies: Bodies, a: int, b: int) -> float:
    """Relative velocity of the second body along the direction of `row` (12,), m/s."""
    total = 0.0
    for k in range(3):
        total += row[k] * bodies.v[a, k] + row[k + 3] * bodies.spin[a, k]
        total += row[k + 6] * bodies.v[b, k] + row[k + 9] * bodies.spin[b, k]
    return total


@njit(cache=True)
def _push(row: np.ndarray, bodies: Bodies, a: int, b: int, impulse: float) -> None:
    """Apply an impulse along the direction of the weighted `row` (12,)."""
    for k in range(3):
        bodies.v[a, k] += impulse * row[k]
        bodies.spin[a, k] += impulse * row[k + 3]
        bodies.v[b, k] += impulse * row[k + 6]
        bodies.spin[b, k] += impulse * row[k + 9]


@njit(cache=True)
def solve(
    bodies: Bodies,
    who: np.ndarray,
    rows: np.ndarray,
    weighted: np.ndarray,
    target: np.ndarray,
    friction: np.ndarray,
    gained: np.ndarray,
    sweeps: int,
) -> None:
    """Gauss-Seidel sweeps, forth and back: v_n >= target with impulse >= 0, and Coulomb's cone.

    gained (c, 3): impulses so far along the normal and two tangents, kg m/s; changed in place with the
    velocities of the bodies.
    """
    count = len(who)
    soft = np.empty((count, 3))
    for c in range(count):
        for d in range(3):
            soft[c, d] = (rows[c, d] * weighted[c, d]).sum()
    for sweep in range(sweeps):
        largest = 0.0
        for step in range(count):
            c = step if sweep % 2 == 0 else count - 1 - step
            a, b = who[c, 0], who[c, 1]
            speed = contact_speed(rows[c, 0], bodies, a, b)
            total = max(gained[c, 0] + (target[c] - speed) / soft[c, 0], 0.0)
            change = total - gained[c, 0]
            gained[c, 0] = total
            _push(weighted[c, 0], bodies, a, b, change)
            largest = max(largest, abs(change) * soft[c, 0])
            if friction[c] == 0.0 or (total == 0.0 and gained[c, 1] == 0.0 and gained[c, 2] == 0.0):
                continue
            p1 = gained[c, 1] - contact_speed(rows[c, 1], bodies, a, b) / soft[c, 1]
            p2 = gained[c, 2] - contact_speed(rows[c, 2], bodies, a, b) / soft[c, 2]
            size, most = math.sqrt(p1 * p1 + p2 * p2), friction[c] * total
            if size > most:
                p1, p2 = p1 * most / size, p2 * most / size
            largest = max(largest, abs(p1 - gained[c, 1]) * soft[c, 1], abs(p2 - gained[c, 2]) * soft[c, 2])
            _push(weighted[c, 1], bodies, a, b, p1 - gained[c, 1])
            _push(weighted[c, 2], bodies, a, b, p2 - gained[c, 2])
            gained[c, 1], gained[c, 2] = p1, p2
        if largest < SETTLED:
            break


@njit(cache=True)
def _recall(
    bodies: Bodies,
    memory: Memory,
    who: np.ndarray,
    points: np.ndarray,
    rows: np.ndarray,
    weighted: np.ndarray,
    gained: np.ndarray,
    h: float,
) -> None:
    """Start each contact from the force that the same place of the same two bodies had before."""
    old = len(memory.who)
    if old == 0:
        return
    n = len(bodies.x)
    keys = memory.who[:, 0] * n + memory.who[:, 1]
    for c in range(len(who)):
        a, b = who[c, 0], who[c, 1]
        near = (SAME_PLACE * min(bodies.radius[a], bodies.radius[b])) ** 2
        best = -1
        m = np.searchsorted(keys, a * n + b)
        while m < old and keys[m] == a * n + b:
            away = 0.0
            for j in range(3):
                away += (memory.place[m, j] - points[c, j]) ** 2
            if away <= near:
                near, best = away, m
            m += 1
        if best < 0:
            continue
        for d in range(3):
            along = 0.0
            for j in range(3):
                along += rows[c, d, 6 + j] * memory.force[best, j]
            gained[c, d] = h * along
        if gained[c, 0] <= 0.0:
            gained[c] = 0.0
            continue
        for d in range(3):
            _push(weighted[c, d], bodies, a, b, gained[c, d])


@njit(cache=True)
def _turn(bodies: Bodies, i: int, h: float) -> None:
    """Turn body i for h seconds, freely if it is free."""
    inertia = bodies.inertia[i]
    mean = (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / 3.0
    uneven = 0.0
    for j in range(3):
        for k in range(3):
            uneven = max(uneven, abs(inertia[j, k] - (mean if j == k else 0.0)))
    if bodies.motion[i] == 2 and uneven > LIKE_A_BALL * mean:
        q, spin = free_rotation(bodies.q[i], bodies.spin[i], inertia, np.linalg.inv(inertia), h)
        bodies.q[i] = q
        bodies.spin[i] = spin
    else:
        bodies.q[i] = product(quaternion_of(h * bodies.spin[i]), bodies.q[i])


@njit(cache=True)
def find_contacts(bodies: Bodies, hulls: Hulls, shift: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """(who (c, 2), points (c, 7)) of all contacts that may close while bodies move by `shift` (n, 3) m."""
    n = len(bodies.x)
    reach = np.empty(n)
    for i in range(n):
        spin = math.sqrt(_dot(bodies.spin[i], bodies.spin[i]))
        reach[i] = 1.01 * bodies.radius[i] + math.sqrt(_dot(shift[i], shift[i]))
        if bodies.shape[i] != BALL:
            reach[i] += min(spin * h, 2.0) * bodies.radius[i]
    pairs = close_pairs(bodies.x, reach, bodies.shape, bodies.motion)
    who = np.empty((64, 2), np.int64)
    points = np.empty((64, 7))
    found = np.empty((64, 7))
    count = 0
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        slack = reach[a] - bodies.radius[a] + reach[b] - bodies.radius[b]
        more = contacts_of_pair(
            hulls, bodies.shape, bodies.radius, bodies.hull, bodies.x, bodies.q, shift, a, b, slack, found
        )
        while count + more > len(who):
            longer_who, longer_points = np.empty((2 * len(who), 2), np.int64), np.empty((2 * len(who), 7))
            longer_who[:count], longer_points[:count] = who[:count], points[:count]
            who, points = longer_who, longer_points
        for k in range(more):
            who[count, 0], who[count, 1] = a, b
            points[count] = found[k]
            count += 1
    return who[:count], points[:count]


@njit(cache=True)
def _impact_speed(now: float, pull: float, gap: float) -> float:
    """Approach speed when a gap that closes at `now` m/s, with `pull` m/s^2, is closed; 0 if it opens."""
    if now < 0.0 and pull <= 0.0:
        return 0.0
    return math.sqrt(max(now * now + 2.0 * pull * max(gap, 0.0), 0.0))


@njit(cache=True)
def substep(
    bodies: Bodies,
    hulls: Hulls,
    memory: Memory,
    gravity: np.ndarray,
    h: float,
    sweeps: int,
    least_bounce: float,
) -> Memory:
    """Advance all bodies by h seconds, in place; returns the contacts for the next substep.

    Args:
        gravity: (3,) m/s^2, felt by free bodies.
        sweeps: of the impulse solver.
        least_bounce: approach speed below which nothing bounces, m/s.
        memory: what the last substep returned.
    """
    n = len(bodies.x)
    drop = 0.5 * h * h * gravity
    shift = np.empty((n, 3))
    for i in range(n):
        if bodies.motion[i] == 2:
            bodies.v[i] += h * gravity
            shift[i] = h * bodies.v[i] - drop
        else:
            shift[i] = h * bodies.v[i]
    who, points = find_contacts(bodies, hulls, shift, h)
    count = len(who)
    rows, weighted = contact_rows(bodies, who, points)
    gained, target, rebound = np.zeros((count, 3)), np.empty(count), np.zeros(count)
    friction, spare = np.empty(count), np.empty(count)
    for c in range(count):
        a, b = who[c, 0], who[c, 1]
        friction[c] = math.sqrt(bodies.friction[a] * bodies.friction[b])
        weight = _dot(gravity, points[c, 3:6])
        pull = (weight if bodies.motion[a] == 2 else 0.0) - (weight if bodies.motion[b] == 2 else 0.0)
        # A body that stays free falls h^2 g/2 less than h v: towards a wall above that must be kept free.
        spare[c] = max(-0.5 * h * h * pull, 0.0)
        gap = points[c, 6]
        target[c] = (spare[c] - (gap if gap > 0.0 else PUSH * gap)) / h
        impact = _impact_speed(-contact_speed(rows[c, 0], bodies, a, b) - h * pull, pull, gap - spare[c])
        if impact > least_bounce:
            rebound[c] = max(bodies.restitution[a], bodies.restitution[b]) * impact
    _recall(bodies, memory, who, points, rows, weighted, gained, h)
    solve(bodies, who, rows, weighted, target, friction, gained, sweeps)
    touched = np.zeros(n, np.bool_)
    for c in range(count):
        if gained[c, 0] > 0.0:
            touched[who[c, 0]] = touched[who[c, 1]] = True
            target[c] = rebound[c]
        else:
            # Still open: it brakes nothing before the bodies are there.
            target[c] = -math.inf
    for i in range(n):
        if bodies.motion[i] == 0:
            continue
        bodies.x[i] += h * bodies.v[i]
        if bodies.motion[i] == 2 and not touched[i]:
            bodies.x[i] -= drop
        _turn(bodies, i, h)
    # Both bodies' arms go to one point again, or the impulses would not keep the angular momentum.
    for c in range(count):
        for k in range(3):
            points[c, k] += 0.5 * (shift[who[c, 0], k] + shift[who[c, 1], k])
    rows, weighted = contact_rows(bodies, who, points)
    solve(bodies, who, rows, weighted, target, friction, gained, sweeps)
    force = np.zeros((count, 3))
    for c in range(count):
        # What made a body bounce is over; a load is still there next time.
        if rebound[c] == 0.0:
            for d in range(3):
                force[c] += (gained[c, d] / h) * rows[c, d, 6:9]
    return Memory(who, points[:, :3].copy(), force)

