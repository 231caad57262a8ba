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

from ecs_fluid.kernels.bodies.close_bodies import are_apart, belongs_to_container, boxes_around, close_pairs
from ecs_fluid.kernels.bodies.contact_solver import ContactForces, contact_speed, contacts_at, solve
from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_gap
from ecs_fluid.kernels.bodies.restitution import bounces_roughly, contact_velocities, solve_impacts
from ecs_fluid.kernels.bodies.rigid_substep import find_contacts, substep
from ecs_fluid.kernels.bodies.rotation import product, quaternion_of, rotation_at, rotation_of
from ecs_fluid.kernels.bodies.seams import has_parts, reaches_beyond
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    Vector,
    add_scaled,
    cross_of,
    dot,
    length,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
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

LEAST_REMEMBERED = 0.1
"""Contacts of a part of a substep are remembered if it is at least this fraction of the substep."""

ROUNDING_MARGIN = 1.0 - 1e-6
"""Margin for rounding in comparisons with a bound."""

TOUCH_GAP = 1e-9
"""Gap, as a fraction of the smaller radius, at which bodies count as touching."""


@njit(cache=True, error_model="numpy")
def _ballistic_motion(bodies: Bodies, i: int, acceleration: Array, t: float) -> tuple[Vector, Vector]:
    """Place and velocity of body i after t seconds without contact."""
    x, v, a = row_of(bodies.x, i), row_of(bodies.v, i), row_of(acceleration, i)
    return add_scaled(add_scaled(x, t, v), 0.5 * t * t, a), add_scaled(v, t, a)


@njit(cache=True, error_model="numpy")
def _gap(
    bodies: Bodies, hulls: Hulls, a: int, b: int, wall: int, acceleration: Array, t: float
) -> tuple[float, float, float]:
    """(gap m, closing speed m/s, its growth m/s^2) of ball b from body a after t seconds.

    `wall` is the plane of a container, else not used.
    """
    xa, va = _ballistic_motion(bodies, a, acceleration, t)
    xb, vb = _ballistic_motion(bodies, b, acceleration, t)
    d, speed, pull = minus(xb, xa), minus(vb, va), minus(row_of(acceleration, a), row_of(acceleration, b))
    if bodies.shape[a] == BALL:
        size = length(d)
        return size - bodies.radius[a] - bodies.radius[b], -dot(d, speed) / size, dot(d, pull) / size
    after = product(quaternion_of(t * bodies.angular_velocity[a]), bodies.q[a])
    turn = rotation_of((after[0], after[1], after[2], after[3]))
    place = rotated_back(turn, d)
    if bodies.shape[a] == CONTAINER:
        gap = -plane_gap(hulls.planes, wall, place) - bodies.radius[b]
        normal = scaled(-1.0, rotated(turn, row_of(hulls.planes, wall)))
        arm = add_scaled(d, -(gap + bodies.radius[b]), normal)
    else:
        distance, outward, point = closest(hulls, bodies.hull[a], place)
        gap, normal, arm = distance - bodies.radius[b], rotated(turn, outward), rotated(turn, point)
    speed = minus(speed, cross_of(row_of(bodies.angular_velocity, a), arm))
    return gap, -dot(speed, normal), dot(pull, normal)


@njit(cache=True, error_model="numpy")
def _is_at_seam(bodies: Bodies, hulls: Hulls, a: int, b: int, acceleration: Array, t: float) -> bool:
    """Whether ball b is above another part of the body when, after t seconds, it is closest to part a."""
    if not has_parts(bodies, a):
        return False
    own = _ballistic_motion(bodies, a, acceleration, t)[0]
    d = minus(_ballistic_motion(bodies, b, acceleration, t)[0], own)
    after = product(quaternion_of(t * bodies.angular_velocity[a]), bodies.q[a])
    place = rotated_back(rotation_of((after[0], after[1], after[2], after[3])), d)
    distance, outward, point = closest(hulls, bodies.hull[a], place)
    return distance > 0.0 and reaches_beyond(bodies, hulls, a, point, outward)


@njit(cache=True)
def _impact(
    bodies: Bodies,
    hulls: Hulls,
    a: int,
    b: int,
    wall: int,
    acceleration: Array,
    duration: float,
    least_bounce: float,
) -> float:
    """Time before `duration` at which ball b hits body a faster than `least_bounce` m/s, or inf."""
    touch = 0.01 * TOUCH_GAP * bodies.radius[b]
    t = 0.0
    for step in range(40):
        gap, closing, pull = _gap(bodies, hulls, a, b, wall, acceleration, t)
        if abs(gap) <= touch or (step == 0 and gap < 0.0):
            hits = closing > least_bounce and not _is_at_seam(bodies, hulls, a, b, acceleration, t)
            return t if hits else math.inf
        root = closing * closing + 2.0 * pull * gap
        if root < 0.0 or closing + math.sqrt(root) <= 0.0:
            return math.inf
        t += 2.0 * gap / (closing + math.sqrt(root))
        if not 0.0 <= t < duration:
            return math.inf
    return math.inf


@njit(cache=True, error_model="numpy", forceinline=True)
def _approach_bounds(v: Array, acceleration: Array, a: int, b: int, duration: float) -> tuple[float, float]:
    """Bounds on (speed m/s, way m) of bodies a and b towards each other within `duration` s, without spin."""
    speed = length(minus(row_of(v, b), row_of(v, a)))
    growth = length(minus(row_of(acceleration, b), row_of(acceleration, a)))
    return speed + duration * growth, duration * speed + 0.5 * duration * duration * growth


@njit(cache=True)
def first_impact(
    bodies: Bodies, hulls: Hulls, acceleration: Array, duration: float, least_bounce: float
) -> float:
    """Time of the first impact of a ball within `duration` s faster than `least_bounce` m/s; inf if none."""
    x, v, q, shape, radius, hull = bodies.x, bodies.v, bodies.q, bodies.shape, bodies.radius, bodies.hull
    planes, plane_start = hulls.planes, hulls.plane_start
    n = len(x)
    reach = np.empty(n)
    for i in range(n):
        reach[i] = (
            1.01 * radius[i]
            + duration * length(row_of(v, i))
            + duration * duration * length(row_of(acceleration, i))
        )
        if shape[i] != BALL:
            reach[i] += min(length(row_of(bodies.angular_velocity, i)) * duration, 2.0) * radius[i]
    pairs = close_pairs(x, reach, shape, bodies.motion, bodies.leader)
    boxes = boxes_around(bodies, hulls, reach)
    several = (shape == CONTAINER).sum() > 1
    first = math.inf
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        if shape[b] != BALL:
            if shape[a] != BALL:
                continue
            a, b = b, a
        if are_apart(boxes, a, b):
            continue
        if several and shape[a] == CONTAINER and not belongs_to_container(bodies, hulls, a, b):
            continue
        # Pairs far too slow to bounce, nearly all in a crowd, are skipped without Newton's method.
        speed, way = _approach_bounds(v, acceleration, a, b, duration)
        angular_velocity = length(row_of(bodies.angular_velocity, a)) if shape[a] != BALL else 0.0
        if shape[a] != CONTAINER:
            if speed + angular_velocity * radius[a] >= ROUNDING_MARGIN * least_bounce:
                wall = int(np.int64(0))  # of a literal 0 numba would compile what is called once more
                first = min(
                    first,
                    _impact(bodies, hulls, a, b, wall, acceleration, min(duration, first), least_bounce),
                )
            continue
        d = minus(row_of(x, b), row_of(x, a))
        size = radius[b] + way + abs(d[0]) + abs(d[1]) + abs(d[2])
        if speed + angular_velocity * size < ROUNDING_MARGIN * least_bounce:
            continue
        within = (
            way + duration * angular_velocity * size + (1.0 - ROUNDING_MARGIN) * size
        ) / ROUNDING_MARGIN + radius[b]
        place = rotated_back(rotation_at(q, a), d)
        for wall in range(plane_start[hull[a]], plane_start[hull[a] + 1]):
            if -plane_gap(planes, wall, place) <= within:
                first = min(
                    first,
                    _impact(bodies, hulls, a, b, wall, acceleration, min(duration, first), least_bounce),
                )
    return first


@njit(cache=True)
def rebound(bodies: Bodies, hulls: Hulls, sweeps: int, least_bounce: float) -> None:
    """Give all touching bodies the velocities after their impact, in place: v_n becomes e c, or 0 if slow."""
    pairs, points = find_contacts(bodies, hulls, np.zeros((len(bodies.x), 3)), 0.0)
    touching = np.zeros(len(pairs), np.bool_)
    for c in range(len(pairs)):
        touching[c] = points[c, 6] <= TOUCH_GAP * min(bodies.radius[pairs[c, 0]], bodies.radius[pairs[c, 1]])
    pairs, points = pairs[touching], points[touching]
    contacts, target = contacts_at(bodies, pairs, points, np.zeros((len(pairs), 3))), np.empty(len(pairs))
    for c in range(len(pairs)):
        a, b = pairs[c, 0], pairs[c, 1]
        closing = -contact_speed(contacts.jacobian, 0, c, bodies.v, bodies.angular_velocity, a, b)
        target[c] = (
            max(bodies.restitution[a], bodies.restitution[b]) * closing if closing > least_bounce else 0.0
        )
    if bounces_roughly(contacts, target):
        start, none = contact_velocities(bodies, contacts), np.zeros((len(pairs), 3))
        solve_impacts(bodies, contacts, target, sweeps, start, none, none[:, :2].copy())
    else:
        solve(bodies, contacts, target, sweeps)


@njit(cache=True)
def advance(
    bodies: Bodies,
    hulls: Hulls,
    former: ContactForces,
    acceleration: Array,
    torque: Array,
    dt: float,
    substeps: int,
    sweeps: int,
    least_bounce: float,
) -> ContactForces:
    """Advance all bodies by dt seconds, in place; returns the contacts from which the next tick starts.

    Args:
        former: what the last tick returned.
        acceleration: (n, 3) m/s^2 of the bodies by all but contacts; 0 for those that are not free.
        torque: (n, 3) N m about the centres of mass, world axes; 0 for those that are not free.
        substeps: equal parts of the tick.
        sweeps: most sweeps of the impulse solver, each time.
        least_bounce: closing speed below which nothing bounces, m/s.
    """
    impacts, most_impacts = 0, MOST_IMPACTS
    crowd = len(former.pairs) > CROWD
    if crowd:
        most_impacts = max(CROWD_IMPACTS, MOST_IMPACTS * CROWD // len(former.pairs))
    whole = dt / substeps
    for _ in range(substeps):
        remaining = whole
        while remaining > 0.0:
            h = remaining
            hit = False
            if impacts < most_impacts:
                when = first_impact(bodies, hulls, acceleration, remaining, least_bounce)
                if when < remaining:
                    h, hit = when, True
                    impacts += 1
            # An immediate impact needs no motion before it.
            if h > 1e-12 * whole:
                most_sweeps = sweeps
                if crowd and h < whole:
                    most_sweeps = min(sweeps, max(CROWD_SWEEPS, int(sweeps * h / whole)))
                memory = substep(
                    bodies, hulls, former, acceleration, torque, h, whole, most_sweeps, least_bounce
                )
                # Over a short part, slow impacts look like large forces; so keep the forces from before it.
                if h > LEAST_REMEMBERED * whole:
                    former = memory
            if hit:
                rebound(bodies, hulls, sweeps, least_bounce)
            remaining = remaining - h if hit else 0.0
    return former
