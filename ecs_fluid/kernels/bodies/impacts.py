"""Motion of rigid bodies over a tick: substeps, interrupted wherever a ball hits something fast enough.

The moment of an impact of a ball with a ball, a polytope or a wall is found to rounding by Newton's method
on the gap, which the acceleration bends: t += 2 gap/(c + sqrt(c^2 + 2 a_n gap)) with the closing speed c. A
gap to a convex body is a convex function of the time on a straight path, so the first touch is never jumped
over.
All bodies then go on to that moment, and an impulse at the touching points gives the rebound e c. So speeds,
places, energies and momenta of impacts are exact. Impacts between two polytopes wait for the substep's end.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.close_bodies import close_pairs, is_held
from ecs_fluid.kernels.bodies.contact_solver import ContactForces, contact_speed, contacts_at, solve
from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_gap
from ecs_fluid.kernels.bodies.rigid import find_contacts, substep
from ecs_fluid.kernels.bodies.rotation import product, quaternion_of, turn_at, turn_of
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.triples import (
    Vector,
    cross_of,
    dot,
    length,
    minus,
    plus,
    row_of,
    scaled,
    turned,
    turned_back,
)

MOST_IMPACTS = 64
"""Most interruptions of one tick; later impacts of the same tick wait for the end of their substep."""

CROWD_IMPACTS, CROWD = 6, 100
"""In a crowd with more than CROWD contacts fewer interruptions are allowed, in inverse proportion, down to
CROWD_IMPACTS.

Each interruption moves all bodies, and the exact moment of one impact matters little among a thousand others.
"""

CROWD_SWEEPS = 10
"""Least number of sweeps in a part of a crowd's substep; more in proportion to the part's time."""

SHORT = 0.1
"""Contacts of a part of a substep are remembered if it is at least this fraction of the substep."""

SURELY = 1.0 - 1e-6
"""Margin for rounding in comparisons with a bound."""

TOUCH = 1e-9
"""Gap, as a fraction of the smaller radius, at which bodies count as touching."""


@njit(cache=True, error_model="numpy")
def _fall(bodies: Bodies, i: int, push: Array, t: float) -> tuple[Vector, Vector]:
    """Place and velocity of body i after t seconds without contact."""
    x, v, a = row_of(bodies.x, i), row_of(bodies.v, i), row_of(push, i)
    return plus(plus(x, t, v), 0.5 * t * t, a), plus(v, t, a)


@njit(cache=True, error_model="numpy")
def _gap(
    bodies: Bodies, hulls: Hulls, a: int, b: int, wall: int, push: Array, t: float
) -> tuple[float, float, float]:
    """(gap m, closing speed m/s, its growth m/s^2) of ball b from body a after t seconds.

    `wall` is the plane of a container, else not used.
    """
    (xa, va), (xb, vb) = _fall(bodies, a, push, t), _fall(bodies, b, push, t)
    d, speed, pull = minus(xb, xa), minus(vb, va), minus(row_of(push, a), row_of(push, b))
    if bodies.shape[a] == BALL:
        size = length(d)
        return size - bodies.radius[a] - bodies.radius[b], -dot(d, speed) / size, dot(d, pull) / size
    after = product(quaternion_of(t * bodies.angular_velocity[a]), bodies.q[a])
    turn = turn_of((after[0], after[1], after[2], after[3]))
    place = turned_back(turn, d)
    if bodies.shape[a] == CONTAINER:
        gap = -plane_gap(hulls.planes, wall, place) - bodies.radius[b]
        normal = scaled(-1.0, turned(turn, row_of(hulls.planes, wall)))
        arm = plus(d, -(gap + bodies.radius[b]), normal)
    else:
        distance, outward, point = closest(hulls, bodies.hull[a], place)
        gap, normal, arm = distance - bodies.radius[b], turned(turn, outward), turned(turn, point)
    speed = minus(speed, cross_of(row_of(bodies.angular_velocity, a), arm))
    return gap, -dot(speed, normal), dot(pull, normal)


@njit(cache=True)
def _impact(
    bodies: Bodies, hulls: Hulls, a: int, b: int, wall: int, push: Array, most: float, least: float
) -> float:
    """Time before `most` at which ball b hits body a at more than `least` m/s; inf if it does not."""
    touch = 0.01 * TOUCH * bodies.radius[b]
    t = 0.0
    for step in range(40):
        gap, closing, pull = _gap(bodies, hulls, a, b, wall, push, t)
        if abs(gap) <= touch or (step == 0 and gap < 0.0):
            return t if closing > least else math.inf
        root = closing * closing + 2.0 * pull * gap
        if root < 0.0 or closing + math.sqrt(root) <= 0.0:
            return math.inf
        t += 2.0 * gap / (closing + math.sqrt(root))
        if not 0.0 <= t < most:
            return math.inf
    return math.inf


@njit(cache=True, error_model="numpy", forceinline=True)
def _approach(v: Array, push: Array, a: int, b: int, most: float) -> tuple[float, float]:
    """Bounds on (speed m/s, way m) of bodies a and b towards each other within `most` s, without spin."""
    speed = length(minus(row_of(v, b), row_of(v, a)))
    growth = length(minus(row_of(push, b), row_of(push, a)))
    return speed + most * growth, most * speed + 0.5 * most * most * growth


@njit(cache=True)
def first_impact(bodies: Bodies, hulls: Hulls, push: Array, most: float, least: float) -> float:
    """Time of the first impact of a ball within `most` s at more than `least` m/s; inf if there is none."""
    x, v, q, shape, radius, hull = bodies.x, bodies.v, bodies.q, bodies.shape, bodies.radius, bodies.hull
    planes, plane_start = hulls.planes, hulls.plane_start
    n = len(x)
    reach = np.empty(n)
    for i in range(n):
        reach[i] = 1.01 * radius[i] + most * length(row_of(v, i)) + most * most * length(row_of(push, i))
    pairs, several = close_pairs(x, reach, shape, bodies.motion), (shape == CONTAINER).sum() > 1
    first = math.inf
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        if shape[b] != BALL:
            if shape[a] != BALL:
                continue
            a, b = b, a
        if several and shape[a] == CONTAINER and not is_held(bodies, hulls, a, b):
            continue
        # Pairs far too slow to bounce, nearly all in a crowd, are skipped without Newton's method.
        speed, way = _approach(v, push, a, b, most)
        angular_velocity = length(row_of(bodies.angular_velocity, a)) if shape[a] != BALL else 0.0
        if shape[a] != CONTAINER:
            if speed + angular_velocity * radius[a] >= SURELY * least:
                first = min(first, _impact(bodies, hulls, a, b, 0, push, min(most, first), least))
            continue
        d = minus(row_of(x, b), row_of(x, a))
        size = radius[b] + way + abs(d[0]) + abs(d[1]) + abs(d[2])
        if speed + angular_velocity * size < SURELY * least:
            continue
        within = (way + most * angular_velocity * size + (1.0 - SURELY) * size) / SURELY + radius[b]
        place = turned_back(turn_at(q, a), d)
        for wall in range(plane_start[hull[a]], plane_start[hull[a] + 1]):
            if -plane_gap(planes, wall, place) <= within:
                first = min(first, _impact(bodies, hulls, a, b, wall, push, min(most, first), least))
    return first


@njit(cache=True)
def rebound(bodies: Bodies, hulls: Hulls, sweeps: int, least: float) -> None:
    """Give all touching bodies the velocities after their impact, in place: v_n becomes e c, or 0 if slow."""
    who, points = find_contacts(bodies, hulls, np.zeros((len(bodies.x), 3)), 0.0)
    touching = np.zeros(len(who), np.bool_)
    for c in range(len(who)):
        touching[c] = points[c, 6] <= TOUCH * min(bodies.radius[who[c, 0]], bodies.radius[who[c, 1]])
    who, points = who[touching], points[touching]
    contacts, target = contacts_at(bodies, who, points, np.zeros((len(who), 3))), np.empty(len(who))
    for c in range(len(who)):
        a, b = who[c, 0], who[c, 1]
        closing = -contact_speed(contacts.rows, 0, c, bodies.v, bodies.angular_velocity, a, b)
        target[c] = max(bodies.restitution[a], bodies.restitution[b]) * closing if closing > least else 0.0
    solve(bodies, contacts, target, sweeps)


@njit(cache=True)
def advance(
    bodies: Bodies,
    hulls: Hulls,
    former: ContactForces,
    push: Array,
    torque: Array,
    dt: float,
    substeps: int,
    sweeps: int,
    least: float,
) -> ContactForces:
    """Advance all bodies by dt seconds, in place; returns the contacts from which the next tick starts.

    Args:
        former: what the last tick returned.
        push: acceleration (n, 3) m/s^2 of the bodies by all but contacts; 0 for those that are not free.
        torque: (n, 3) N m about the centres of mass, world axes; 0 for those that are not free.
        substeps: equal parts of the tick.
        sweeps: most sweeps of the impulse solver, each time.
        least: closing speed below which nothing bounces, m/s.
    """
    impacts, most = 0, MOST_IMPACTS
    crowd = len(former.who) > CROWD
    if crowd:
        most = max(CROWD_IMPACTS, MOST_IMPACTS * CROWD // len(former.who))
    whole = dt / substeps
    for _ in range(substeps):
        left = whole
        while left > 0.0:
            h = left
            hit = False
            if impacts < most:
                when = first_impact(bodies, hulls, push, left, least)
                if when < left:
                    h, hit = when, True
                    impacts += 1
            # An immediate impact needs no motion before it.
            if h > 1e-12 * whole:
                enough = sweeps
                if crowd and h < whole:
                    enough = min(sweeps, max(CROWD_SWEEPS, int(sweeps * h / whole)))
                found = substep(bodies, hulls, former, push, torque, h, whole, enough, least)
                # Over a short part, slow impacts look like large forces; so keep the forces from before it.
                if h > SHORT * whole:
                    former = found
            if hit:
                rebound(bodies, hulls, sweeps, least)
            left = left - h if hit else 0.0
    return former
