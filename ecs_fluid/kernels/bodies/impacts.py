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

from ecs_fluid.kernels.bodies.close_bodies import close_pairs
from ecs_fluid.kernels.bodies.contact_solver import (
    Bodies,
    Memory,
    contact_friction,
    contact_rows,
    contact_speed,
    solve,
)
from ecs_fluid.kernels.bodies.contacts import BALL, CONTAINER
from ecs_fluid.kernels.bodies.polytope import Hulls, closest
from ecs_fluid.kernels.bodies.rigid import find_contacts, substep
from ecs_fluid.kernels.bodies.rotation import (
    cross,
    length,
    matrix_of,
    product,
    quaternion_of,
    times,
    times_transposed,
    turn_of,
)

MOST_IMPACTS = 64
"""Interruptions of one tick; later impacts of the same tick wait for the end of their substep."""

CROWD_IMPACTS, CROWD = 6, 100
"""Of a crowd with more than CROWD contacts there are fewer, in inverse proportion, down to CROWD_IMPACTS.

Each moves all bodies, and the moment of one impact says little where a thousand others push.
"""

CROWD_SWEEPS = 10
"""Least sweeps in a part of a crowd's substep; more in proportion to the part's time."""

SHORT = 0.1
"""Part of a substep from which its contacts are remembered."""

SURELY = 1.0 - 1e-6
"""Room for rounding where a bound decides."""

TOUCH = 1e-9
"""Gap, as a part of the smaller radius, at which bodies touch."""


@njit(cache=True)
def _fall(bodies: Bodies, i: int, push: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Place and velocity of body i after t seconds without contact."""
    return bodies.x[i] + t * bodies.v[i] + (0.5 * t * t) * push[i], bodies.v[i] + t * push[i]


@njit(cache=True, error_model="numpy", forceinline=True)
def _gap_of_balls(bodies: Bodies, a: int, b: int, push: np.ndarray, t: float) -> tuple[float, float, float]:
    """`_gap` of two balls, without arrays: crowds ask for it most often."""
    size2, along, pull = 0.0, 0.0, 0.0
    for k in range(3):
        xa = bodies.x[a, k] + t * bodies.v[a, k] + (0.5 * t * t) * push[a, k]
        xb = bodies.x[b, k] + t * bodies.v[b, k] + (0.5 * t * t) * push[b, k]
        d = xb - xa
        size2 += d * d
        along += d * ((bodies.v[b, k] + t * push[b, k]) - (bodies.v[a, k] + t * push[a, k]))
        pull += d * (push[a, k] - push[b, k])
    size = math.sqrt(size2)
    return size - bodies.radius[a] - bodies.radius[b], -along / size, pull / size


@njit(cache=True)
def _gap(
    bodies: Bodies, hulls: Hulls, a: int, b: int, wall: int, push: np.ndarray, t: float
) -> tuple[float, float, float]:
    """(gap m, closing speed m/s, its growth m/s^2) of ball b from body a after t seconds.

    `wall` is the plane of a container, else not used.
    """
    if bodies.shape[a] == BALL:
        return _gap_of_balls(bodies, a, b, push, t)
    xa, va = _fall(bodies, a, push, t)
    xb, vb = _fall(bodies, b, push, t)
    d, speed = xb - xa, vb - va
    turn = matrix_of(product(quaternion_of(t * bodies.angular_velocity[a]), bodies.q[a]))
    r = times_transposed(turn, d)
    if bodies.shape[a] == CONTAINER:
        plane = hulls.planes[wall]
        normal = -times(turn, plane[:3])
        gap = plane[3] - (plane[:3] * r).sum() - bodies.radius[b]
        arm = d - (gap + bodies.radius[b]) * normal
    else:
        near = closest(hulls, bodies.hull[a], r[0], r[1], r[2])
        normal = times(turn, np.array([near[1], near[2], near[3]]))
        gap = near[0] - bodies.radius[b]
        arm = times(turn, np.array([near[4], near[5], near[6]]))
    speed = speed - cross(bodies.angular_velocity[a], arm)
    pull = ((push[a] - push[b]) * normal).sum()
    return gap, -(speed * normal).sum(), pull


@njit(cache=True)
def _impact(
    bodies: Bodies, hulls: Hulls, a: int, b: int, wall: int, push: np.ndarray, most: float, least: float
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
def _approach(v: np.ndarray, push: np.ndarray, a: int, b: int, most: float) -> tuple[float, float]:
    """Bounds on (speed m/s, way m) of bodies a and b towards each other within `most` s, without spin."""
    speed, growth = 0.0, 0.0
    for k in range(3):
        speed += (v[b, k] - v[a, k]) ** 2
        growth += (push[b, k] - push[a, k]) ** 2
    speed, growth = math.sqrt(speed), math.sqrt(growth)
    return speed + most * growth, most * speed + 0.5 * most * most * growth


@njit(cache=True, error_model="numpy", forceinline=True)
def _room(x: np.ndarray, q: np.ndarray, a: int, b: int, planes: np.ndarray, wall: int) -> float:
    """Distance of the place of b from a wall of container a, m."""
    t = turn_of(q[a, 0], q[a, 1], q[a, 2], q[a, 3])
    room = planes[wall, 3]
    for k in range(3):
        normal = t[3 * k] * planes[wall, 0] + t[3 * k + 1] * planes[wall, 1] + t[3 * k + 2] * planes[wall, 2]
        room -= normal * (x[b, k] - x[a, k])
    return room


@njit(cache=True)
def first_impact(bodies: Bodies, hulls: Hulls, push: np.ndarray, most: float, least: float) -> float:
    """Time of the first impact of a ball within `most` s at more than `least` m/s; inf if there is none."""
    x, v, q, shape, radius, hull = bodies.x, bodies.v, bodies.q, bodies.shape, bodies.radius, bodies.hull
    planes, plane_start = hulls.planes, hulls.plane_start
    n = len(x)
    reach = np.empty(n)
    for i in range(n):
        speed = math.sqrt(v[i, 0] * v[i, 0] + v[i, 1] * v[i, 1] + v[i, 2] * v[i, 2])
        faster = math.sqrt(push[i, 0] * push[i, 0] + push[i, 1] * push[i, 1] + push[i, 2] * push[i, 2])
        reach[i] = 1.01 * radius[i] + most * speed + most * most * faster
    pairs = close_pairs(x, reach, shape, bodies.motion)
    first = math.inf
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        if shape[b] != BALL:
            if shape[a] != BALL:
                continue
            a, b = b, a
        # What is by far too slow to bounce, nearly everything in a crowd, is left out without Newton.
        speed, way = _approach(v, push, a, b, most)
        angular_velocity = 0.0
        if shape[a] != BALL:
            angular_velocity = length(bodies.angular_velocity[a])
        if shape[a] != CONTAINER:
            if speed + angular_velocity * radius[a] >= SURELY * least:
                first = min(first, _impact(bodies, hulls, a, b, 0, push, min(most, first), least))
            continue
        size = radius[b] + way
        for k in range(3):
            size += abs(x[b, k] - x[a, k])
        if speed + angular_velocity * size < SURELY * least:
            continue
        within = (way + most * angular_velocity * size + (1.0 - SURELY) * size) / SURELY + radius[b]
        for wall in range(plane_start[hull[a]], plane_start[hull[a] + 1]):
            if _room(x, q, a, b, planes, wall) <= within:
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
    count = len(who)
    friction, target = contact_friction(bodies, who), np.empty(count)
    rows, weighted = contact_rows(bodies, who, points, friction)
    for c in range(count):
        a, b = who[c, 0], who[c, 1]
        closing = -contact_speed(rows, 0, c, bodies.v, bodies.angular_velocity, a, b)
        target[c] = max(bodies.restitution[a], bodies.restitution[b]) * closing if closing > least else 0.0
    solve(bodies, who, rows, weighted, target, friction, np.zeros((count, 3)), sweeps)


@njit(cache=True)
def advance(
    bodies: Bodies,
    hulls: Hulls,
    memory: Memory,
    push: np.ndarray,
    torque: np.ndarray,
    dt: float,
    substeps: int,
    sweeps: int,
    least: float,
) -> Memory:
    """Advance all bodies by dt seconds, in place; returns the contacts from which the next tick starts.

    Args:
        memory: what the last tick returned.
        push: acceleration (n, 3) m/s^2 of the bodies by all but contacts; 0 for those that are not free.
        torque: (n, 3) N m about the centres of mass, world axes; 0 for those that are not free.
        substeps: equal parts of the tick.
        sweeps: most sweeps of the impulse solver, each time.
        least: closing speed below which nothing bounces, m/s.
    """
    impacts, most = 0, MOST_IMPACTS
    crowd = len(memory.who) > CROWD
    if crowd:
        most = max(CROWD_IMPACTS, MOST_IMPACTS * CROWD // len(memory.who))
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
            # An impact at once needs no motion before it.
            if h > 1e-12 * whole:
                enough = sweeps
                if crowd and h < whole:
                    enough = min(sweeps, max(CROWD_SWEEPS, int(sweeps * h / whole)))
                found = substep(bodies, hulls, memory, push, torque, h, whole, enough, least)
                # Over a short part, slow impacts look like large forces; loads are as they were before it.
                if h > SHORT * whole:
                    memory = found
            if hit:
                rebound(bodies, hulls, sweeps, least)
            left = left - h if hit else 0.0
    return memory
