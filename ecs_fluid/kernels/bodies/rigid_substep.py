"""One substep of the motion of rigid bodies under forces and contacts.

First velocities get half of their acceleration, and impulses keep every contact's gap open, v_n h >= -gap,
with Coulomb's friction. Then bodies move with that mean velocity over h seconds and turn freely. Then
velocities get the other half, and impulses correct them to those at the end. So free flight is the exact
parabola, and bodies held by friction stay. The reasons, step by step: docs/notes/bodies.md. Everything is
float64.

Source of small substeps with a correction after the move: Macklin et al., "Small steps in physics
simulation", SCA 2019.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.close_bodies import (
    are_apart,
    belongs_to_container,
    boxes_around,
    close_pairs,
    depth_outside,
    doubled,
)
from ecs_fluid.kernels.bodies.contact_solver import (
    ContactForces,
    Contacts,
    contact_speed,
    contacts_at,
    is_isotropic,
    set_impulse,
    solve,
    warm_start,
)
from ecs_fluid.kernels.bodies.contacts import ball_ball, contacts_of_pair, container_ball
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.restitution import (
    bounces_roughly,
    contact_velocities,
    solve_impacts,
    work_of,
)
from ecs_fluid.kernels.bodies.rotation import (
    free_rotation,
    matrix_of,
    product,
    quaternion_of,
    rotation_at,
    times,
    times_transposed,
)
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import cross_of, dot, length, minus, rotated, row_of

LEAST_LEVER = 1e-3
"""Least lever of a contact's normal about a hinge, over the body's radius, at which it acts on the body."""

AT_HINGE, OVERLAPS = 0.5, 0.01
"""A hub may overlap its fixed axle: contacts with less than the first as lever do not act where bodies
overlap by more than the second, both over the hinged body's radius."""

FROM_HINGE = 0.1
"""Distance of a hinge from a container, over the body's radius, beyond which it does not hold the body. A
nearer wall does not act with a lever below `AT_HINGE`: a rod may hang at its end from a ceiling."""

PENETRATION_REMOVED = 0.2
"""Fraction of a penetration that one substep removes."""


@njit(cache=True, error_model="numpy")
def turn_body(bodies: Bodies, i: int, h: float) -> None:
    """Turn body i for h seconds, freely if it is free."""
    if not bodies.angular_velocity[i].any():
        return
    if bodies.motion[i] == 2 and not is_isotropic(bodies.inertia[i]):
        inertia = bodies.inertia[i]
        bodies.q[i], bodies.angular_velocity[i] = free_rotation(
            bodies.q[i], bodies.angular_velocity[i], inertia, np.linalg.inv(inertia), h
        )
    else:
        bodies.q[i] = product(quaternion_of(h * bodies.angular_velocity[i]), bodies.q[i])


@njit(cache=True)
def apply_torque(bodies: Bodies, torque: Array, h: float) -> None:
    """Give free bodies the spin of a torque that acts for h seconds; without one they keep it bit for bit."""
    for i in range(len(bodies.x)):
        if bodies.motion[i] == 2 and torque[i].any():
            if is_isotropic(bodies.inertia[i]):
                for k in range(3):
                    bodies.angular_velocity[i, k] += h * torque[i, k] / bodies.inertia[i, k, k]
                continue
            turn = matrix_of(bodies.q[i])
            local = np.linalg.inv(bodies.inertia[i]) @ times_transposed(turn, torque[i])
            bodies.angular_velocity[i] += h * times(turn, local)


@njit(cache=True)
def _gives_way(bodies: Bodies, i: int, radius: float, point: Array, wall: bool) -> bool:
    """Whether an impulse at a contact, `point` (7,), can move body i; a hinged one where it has a lever.

    `radius` is that of the whole body, m. `wall`: whether it is a contact with the wall of a container.
    """
    if bodies.motion[i] != 2:
        return False
    if not bodies.hinge[i].any():
        return True
    axis = rotated(rotation_at(bodies.q, i), row_of(bodies.hinge, i))
    place, normal = (point[0], point[1], point[2]), (point[3], point[4], point[5])
    arm = minus(place, row_of(bodies.x, i))
    near = point[6] < -OVERLAPS * radius or (wall and -dot(normal, arm) < FROM_HINGE * radius)
    return abs(dot(normal, cross_of(axis, arm))) > (AT_HINGE if near else LEAST_LEVER) * radius


@njit(cache=True)
def _leads_on(bodies: Bodies, hulls: Hulls, a: int, b: int, point: Array) -> bool:
    """Whether there is another container behind the wall of container a that hinged body b meets."""
    step = OVERLAPS * bodies.radius[b] + abs(point[6])
    place = (point[0] - step * point[3], point[1] - step * point[4], point[2] - step * point[5])
    for c in range(len(bodies.x)):
        if c != a and bodies.shape[c] == CONTAINER and depth_outside(bodies, hulls, c, place) <= 0.0:
            return True
    return False


@njit(cache=True)
def _radii_of_wholes(bodies: Bodies) -> Array:
    """Radii (n,) m; each part has that of its whole body."""
    largest = bodies.radius.copy()
    for i in range(len(largest)):
        largest[bodies.leader[i]] = max(largest[bodies.leader[i]], bodies.radius[i])
    return largest[bodies.leader]


@njit(cache=True)
def find_contacts(bodies: Bodies, hulls: Hulls, shift: Array, h: float) -> tuple[Array, Array]:
    """(pairs (c, 2), points (c, 7)) of all contacts that may close while bodies move by `shift` (n, 3) m.

    Contacts of parts are those of their bodies: pairs are of `leader`s, ascending. Contacts at which neither
    body can give way are left out, and those of hinged bodies with containers far from their hinge, and with
    walls between two containers.
    """
    x, radius, shape, q, hull = bodies.x, bodies.radius, bodies.shape, bodies.q, bodies.hull
    n = len(x)
    reach = np.empty(n)
    for i in range(n):
        reach[i] = 1.01 * radius[i] + length(row_of(shift, i))
        if shape[i] != BALL:
            reach[i] += min(length(row_of(bodies.angular_velocity, i)) * h, 2.0) * radius[i]
    candidates = close_pairs(x, reach, shape, bodies.motion, bodies.leader)
    boxes = boxes_around(bodies, hulls, reach)
    several, parted, hinged = (shape == CONTAINER).sum() > 1, False, bodies.hinge.any()
    whole = _radii_of_wholes(bodies) if hinged else radius
    pairs = np.empty((64, 2), np.int64)
    points = np.empty((64, 7))
    buffer = np.empty((64, 7))
    count = 0
    for p in range(len(candidates)):
        a, b = candidates[p, 0], candidates[p, 1]
        if are_apart(boxes, a, b):
            continue
        if several and shape[a] == CONTAINER and not belongs_to_container(bodies, hulls, a, b):
            continue
        walls = shape[a] == CONTAINER and bodies.hinge[b].any()
        if walls and depth_outside(bodies, hulls, a, row_of(x, b)) > FROM_HINGE * whole[b]:
            continue
        slack = reach[a] - radius[a] + reach[b] - radius[b]
        if shape[a] == BALL and shape[b] == BALL:
            added = ball_ball(x, radius, shift, a, b, buffer)
        elif shape[a] == CONTAINER and shape[b] == BALL:
            added = container_ball(hulls, hull, radius, x, q, a, b, slack, buffer)
        else:
            added = contacts_of_pair(bodies, hulls, shift, a, b, slack, buffer)
        while count + added > len(pairs):
            pairs, points = doubled(pairs), doubled(points)
        for k in range(added):
            point = buffer[k]
            if hinged and not (
                _gives_way(bodies, a, whole[a], point, walls) or _gives_way(bodies, b, whole[b], point, walls)
            ):
                continue
            if walls and several and _leads_on(bodies, hulls, a, b, point):
                continue
            pairs[count, 0], pairs[count, 1] = bodies.leader[a], bodies.leader[b]
            parted = parted or pairs[count, 0] != a or pairs[count, 1] != b
            for j in range(7):
                points[count, j] = buffer[k, j]
            count += 1
    if parted:
        order = np.argsort(pairs[:count, 0] * n + pairs[:count, 1], kind="mergesort")
        return pairs[order], points[order]
    return pairs[:count], points[:count]


@njit(cache=True)
def _impact_speed(now: float, pull: float, gap: float) -> float:
    """Approach speed when a gap that closes at `now` m/s, with `pull` m/s^2, is closed; 0 if it opens."""
    if now < 0.0 and pull <= 0.0:
        return 0.0
    return math.sqrt(max(now * now + 2.0 * pull * max(gap, 0.0), 0.0))


@njit(cache=True)
def _target_speeds(
    bodies: Bodies, contacts: Contacts, acceleration: Array, h: float, whole: float, least_bounce: float
) -> tuple[Array, Array]:
    """(least normal mean velocity that keeps the gap open, rebound speed) of all contacts (c,), m/s.

    Impacts slower than `least_bounce` have no rebound. An overlap is reduced by the fraction PUSH per whole
    substep, however short h is: within a very short h it would need an unbounded speed, some of which would
    remain where many bodies push one another.
    """
    pairs = contacts.pairs
    points = contacts.points
    jacobian = contacts.jacobian
    restitution = bodies.restitution
    target, rebound = np.empty(len(pairs)), np.zeros(len(pairs))
    for c in range(len(pairs)):
        a, b, normal = pairs[c, 0], pairs[c, 1], points[c, 3:6]
        pull = dot(row_of(acceleration, a), normal) - dot(row_of(acceleration, b), normal)
        gap = points[c, 6]
        target[c] = -gap / h if gap > 0.0 else -PENETRATION_REMOVED * gap / whole
        before = -contact_speed(jacobian, 0, c, bodies.v, bodies.angular_velocity, a, b) - 0.5 * h * pull
        speed = _impact_speed(before, pull, gap)
        if speed > least_bounce:
            rebound[c] = max(restitution[a], restitution[b]) * speed
    return target, rebound


@njit(cache=True)
def _half_kick(bodies: Bodies, acceleration: Array, torque: Array, h: float) -> None:
    """Give bodies half of what their accelerations (n, 3) m/s^2 and torques (n, 3) N m do in h seconds."""
    for i in range(len(bodies.x)):
        for k in range(3):
            bodies.v[i, k] += 0.5 * h * acceleration[i, k]
    apply_torque(bodies, torque, 0.5 * h)


@njit(cache=True)
def _drift(bodies: Bodies, pairs: Array, points: Array, h: float) -> None:
    """Move all bodies by h seconds at their velocities, in place, and the places of contacts with them."""
    before = bodies.x.copy()
    for i in range(len(bodies.x)):
        if bodies.motion[i] != 0:
            for k in range(3):
                bodies.x[i, k] += h * bodies.v[i, k]
            turn_body(bodies, i, h)
    # Both bodies' arms must lead to the same point again, or impulses would not keep the angular momentum.
    # The point moves with a ball, whose arm must stay along the normal, and otherwise with the mean of both
    # bodies.
    for c in range(len(pairs)):
        a, b = pairs[c, 0], pairs[c, 1]
        share = 1.0 if bodies.shape[b] == BALL else 0.0 if bodies.shape[a] == BALL else 0.5
        for k in range(3):
            points[c, k] += share * (bodies.x[b, k] - before[b, k])
            points[c, k] += (1.0 - share) * (bodies.x[a, k] - before[a, k])


@njit(cache=True)
def substep(
    bodies: Bodies,
    hulls: Hulls,
    former: ContactForces,
    acceleration: Array,
    torque: Array,
    h: float,
    whole: float,
    sweeps: int,
    least_bounce: float,
) -> ContactForces:
    """Advance all bodies by h seconds, in place; returns the contacts for the next substep.

    Args:
        whole: the substep that h is all or a part of, s.
        acceleration: (n, 3) m/s^2 of the bodies by all but contacts; 0 for those that are not free.
        torque: (n, 3) N m about the centres of mass, world axes; 0 for those that are not free.
        sweeps: of the impulse solver.
        least_bounce: approach speed below which nothing bounces, m/s.
        former: what the last substep returned.
    """
    _half_kick(bodies, acceleration, torque, h)
    pairs, points = find_contacts(bodies, hulls, h * bodies.v, h)
    impulses = np.zeros((len(pairs), 3))
    contacts = contacts_at(bodies, pairs, points, impulses)
    target, rebound = _target_speeds(bodies, contacts, acceleration, h, whole, least_bounce)
    rough = bounces_roughly(contacts, rebound)
    start = contact_velocities(bodies, contacts) if rough else impulses
    warm_start(bodies, former, contacts, 0.5 * h)
    remembered = 2.0 * impulses
    solve(bodies, contacts, target, sweeps)
    work = work_of(impulses, start, contact_velocities(bodies, contacts)) if rough else impulses
    _drift(bodies, pairs, points, h)
    _half_kick(bodies, acceleration, torque, h)
    contacts = contacts_at(bodies, pairs, points, impulses)
    taken = impulses.copy()
    start = contact_velocities(bodies, contacts) if rough else impulses
    for c in range(len(pairs)):
        # A contact still open brakes nothing before the bodies are there.
        target[c] = -math.inf
        if impulses[c, 0] > 0.0:
            target[c] = rebound[c]
            # What bore a load all the time starts from it again: what healed or stopped bodies is over.
            if remembered[c, 0] > 0.0:
                set_impulse(bodies, contacts, c, remembered[c])
    if rough:
        solve_impacts(bodies, contacts, target, sweeps, start, taken, work)
    else:
        solve(bodies, contacts, target, sweeps)
    force = np.zeros((len(pairs), 3))
    for c in range(len(pairs)):
        # What made a body bounce is over; a load is still there next time.
        if rebound[c] == 0.0:
            for d in range(1 if contacts.friction[c] == 0.0 else 3):
                force[c] += (impulses[c, d] / h) * contacts.jacobian[d, c, 6:9]
    return ContactForces(pairs, points[:, :3].copy(), force)
