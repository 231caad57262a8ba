"""One substep of the motion of rigid bodies under forces and contacts.

In a substep of h seconds

1. velocities get their acceleration, v += a h, and half of the torque turns the spin;
2. contacts are found, those too that are still a gap away but may close within h;
3. impulses make every contact keep its gap open, v_n h >= -gap, with Coulomb's friction;
4. bodies move, x += v h - a h^2/2, the exact parabola, but for what bears them, turn freely, and get the
   other half of the torque;
5. impulses are corrected for the velocities at the end of the substep. A contact that closed fast gets its
   rebound here, e sqrt(v_n^2 + 2 a_n gap); impacts of balls have been taken out before, see `impacts`.

Everything is float64.

Source of small substeps with a correction after the move: Macklin et al., "Small steps in physics
simulation", SCA 2019.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.contact_solver import (
    Bodies,
    Memory,
    contact_rows,
    contact_speed,
    dot,
    recall,
    solve,
)
from ecs_fluid.kernels.contacts import BALL, CONTAINER, contacts_of_pair
from ecs_fluid.kernels.polytope import Hulls
from ecs_fluid.kernels.rotation import (
    free_rotation,
    matrix_of,
    product,
    quaternion_of,
    times,
    times_transposed,
)

PUSH = 0.2
"""Part of a penetration that one substep takes back."""

LIKE_A_BALL = 1e-12
"""Relative difference of the moments of inertia below which a free spin keeps its axis."""


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
def turn_body(bodies: Bodies, i: int, h: float) -> None:
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
def _twist(bodies: Bodies, torque: np.ndarray, h: float) -> None:
    """Give free bodies the spin of a torque that acts for h seconds; without one they keep it bit for bit."""
    for i in range(len(bodies.x)):
        if bodies.motion[i] == 2 and (torque[i, 0] != 0.0 or torque[i, 1] != 0.0 or torque[i, 2] != 0.0):
            turn = matrix_of(bodies.q[i])
            local = np.linalg.inv(bodies.inertia[i]) @ times_transposed(turn, torque[i])
            bodies.spin[i] += h * times(turn, local)


@njit(cache=True)
def find_contacts(bodies: Bodies, hulls: Hulls, shift: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """(who (c, 2), points (c, 7)) of all contacts that may close while bodies move by `shift` (n, 3) m."""
    n = len(bodies.x)
    reach = np.empty(n)
    for i in range(n):
        spin = math.sqrt(dot(bodies.spin[i], bodies.spin[i]))
        reach[i] = 1.01 * bodies.radius[i] + math.sqrt(dot(shift[i], shift[i]))
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
def _aims(
    bodies: Bodies,
    who: np.ndarray,
    points: np.ndarray,
    rows: np.ndarray,
    push: np.ndarray,
    h: float,
    whole: float,
    least_bounce: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(least normal velocity that keeps the gap open, impact speed, rebound speed) of all contacts (c,), m/s.

    Impacts slower than `least_bounce` have the speed 0. An overlap heals by the part PUSH in a whole substep,
    however short h is: in no time at all it would need a speed without bound, of which something stays where
    many bodies push one another.
    """
    count = len(who)
    target, impact, rebound = np.empty(count), np.zeros(count), np.empty(count)
    for c in range(count):
        a, b = who[c, 0], who[c, 1]
        pull = dot(push[a], points[c, 3:6]) - dot(push[b], points[c, 3:6])
        gap = points[c, 6]
        # Towards a wall above, a body goes g h^2/2 farther than h v.
        spare = max(-0.5 * h * h * pull, 0.0)
        target[c] = (spare - gap) / h if gap > 0.0 else spare / h - PUSH * gap / whole
        speed = _impact_speed(-contact_speed(rows[c, 0], bodies, a, b) - h * pull, pull, gap)
        if speed > least_bounce:
            impact[c] = speed
        rebound[c] = max(bodies.restitution[a], bodies.restitution[b]) * impact[c]
    return target, impact, rebound


@njit(cache=True)
def _move(
    bodies: Bodies,
    who: np.ndarray,
    points: np.ndarray,
    gained: np.ndarray,
    impact: np.ndarray,
    push: np.ndarray,
    h: float,
) -> None:
    """Move all bodies by h seconds in place, and the places of contacts with them."""
    n = len(bodies.x)
    before, late = bodies.x.copy(), -0.5 * h * h * push
    # What bears a body holds it all the time: along that normal it does not lag behind h v.
    for c in range(len(who)):
        a, b = who[c, 0], who[c, 1]
        in_flight = impact[c] > 0.0 and bodies.motion[a] == 2 and bodies.motion[b] == 2
        if gained[c, 0] > 0.0 and not in_flight:
            normal = points[c, 3:6]
            late[b] -= max(dot(late[b], normal), 0.0) * normal
            late[a] -= min(dot(late[a], normal), 0.0) * normal
    for i in range(n):
        if bodies.motion[i] != 0:
            bodies.x[i] += h * bodies.v[i] + late[i]
            turn_body(bodies, i, h)
    # Both bodies' arms go to one point again, or the impulses would not keep the angular momentum: one that
    # goes along with a ball, whose arm has to stay along the normal, else with the mean of both bodies.
    for c in range(len(who)):
        a, b = who[c, 0], who[c, 1]
        share = 1.0 if bodies.shape[b] == BALL else 0.0 if bodies.shape[a] == BALL else 0.5
        for k in range(3):
            points[c, k] += share * (bodies.x[b, k] - before[b, k])
            points[c, k] += (1.0 - share) * (bodies.x[a, k] - before[a, k])


@njit(cache=True)
def substep(
    bodies: Bodies,
    hulls: Hulls,
    memory: Memory,
    push: np.ndarray,
    torque: np.ndarray,
    h: float,
    whole: float,
    sweeps: int,
    least_bounce: float,
) -> Memory:
    """Advance all bodies by h seconds, in place; returns the contacts for the next substep.

    Args:
        whole: the substep that h is all or a part of, s.
        push: acceleration (n, 3) m/s^2 of the bodies by all but contacts; 0 for those that are not free.
        torque: (n, 3) N m about the centres of mass, world axes; 0 for those that are not free.
        sweeps: of the impulse solver.
        least_bounce: approach speed below which nothing bounces, m/s.
        memory: what the last substep returned.
    """
    n = len(bodies.x)
    shift = np.empty((n, 3))
    for i in range(n):
        shift[i] = h * bodies.v[i] + 0.5 * h * h * push[i]
        bodies.v[i] += h * push[i]
    _twist(bodies, torque, 0.5 * h)
    who, points = find_contacts(bodies, hulls, shift, h)
    count = len(who)
    rows, weighted = contact_rows(bodies, who, points)
    target, impact, rebound = _aims(bodies, who, points, rows, push, h, whole, least_bounce)
    gained, friction = np.zeros((count, 3)), np.empty(count)
    for c in range(count):
        friction[c] = math.sqrt(bodies.friction[who[c, 0]] * bodies.friction[who[c, 1]])
    recall(bodies, memory, who, points, rows, weighted, gained, h)
    solve(bodies, who, rows, weighted, target, friction, gained, sweeps)
    for c in range(count):
        # A contact still open brakes nothing before the bodies are there.
        target[c] = rebound[c] if gained[c, 0] > 0.0 else -math.inf
    _move(bodies, who, points, gained, impact, push, h)
    _twist(bodies, torque, 0.5 * h)
    rows, weighted = contact_rows(bodies, who, points)
    solve(bodies, who, rows, weighted, target, friction, gained, sweeps)
    force = np.zeros((count, 3))
    for c in range(count):
        # What made a body bounce is over; a load is still there next time.
        if rebound[c] == 0.0:
            for d in range(3):
                force[c] += (gained[c, d] / h) * rows[c, d, 6:9]
    return Memory(who, points[:, :3].copy(), force)
