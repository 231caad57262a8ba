"""Rigid bodies as plain arrays, and impulses at their contacts by Gauss-Seidel sweeps.

Contacts are solved one after the other in a fixed order, forwards and backwards, so the result depends only
on the state. A pair of sweeps, forwards and backwards, is one step of a conjugate gradient method, which
propagates loads through stacks: without it the number of sweeps would grow with the square of the height.
Everything is float64.

Source of the method of conjugate gradients: Silcowitz-Hansen, Niebe and Erleben, "A nonsmooth nonlinear
conjugate gradient method for interactive contact force problems", The Visual Computer 26, 893 (2010).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.rotation import matrix_of
from ecs_fluid.kernels.bodies.table import BALL, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.triples import (
    Vector,
    cross_of,
    dot,
    length,
    minus,
    parted,
    row_of,
    scaled,
)

SETTLED = 1e-13
"""Change of a contact's velocity, m/s, below which the impulse solver stops."""

TURNS = 64
"""Distance in a sweep of two contacts that are neighbours in the table."""

LIKE_A_BALL = 1e-12
"""Relative difference of the moments of inertia below which a free spin keeps its axis."""

SAME_PLACE = 0.2
"""A contact counts as the same if it moved by less than this fraction of the smaller body's radius."""


class ContactForces(NamedTuple):
    """Forces of the last contacts, from which the next solution starts.

    who (c, 2): rows of the two bodies, sorted ascending; place (c, 3) m; force (c, 3): on the second body, N.
    """

    who: Array
    place: Array
    force: Array


class Contacts(NamedTuple):
    """Contacts to be solved: bodies `who` (c, 2), `points` (c, 7), coefficients of `friction` (c,), and

    rows J (3, c, 12), which take both bodies' velocities to the contact's, `weighted`: M^-1 J (3, c, 12), and
    the impulses `gained` (c, 3) so far, kg m/s. Directions 0, 1, 2 are the normal and two tangents; contacts
    without friction have the normal only. Columns 0 to 5 belong to the first body (v, angular velocity), 6 to
    11 to the second.
    """

    who: Array
    points: Array
    friction: Array
    rows: Array
    weighted: Array
    gained: Array


class Visits(NamedTuple):
    """The data that a sweep reads at its n visits, stored side by side in the order of the visits.

    contact (n,): its number; pair (n, 2): its bodies; central (n,): whether its normal goes through both
    centres. line (n, 12): normal, its effect on both bodies' velocities, target, ease and friction. ease
    (c, 3): of all contacts, the impulse per speed along each direction, kg. load (n,): along the normal so
    far, kg m/s.
    """

    contact: Array
    pair: Array
    central: Array
    line: Array
    ease: Array
    load: Array


@njit(cache=True, error_model="numpy")
def alike(inertia: Array) -> bool:
    """Whether a tensor (3, 3) is a multiple of the unit tensor, to the relative error LIKE_A_BALL."""
    mean = (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / 3.0
    uneven = 0.0
    for j in range(3):
        for k in range(3):
            uneven = max(uneven, abs(inertia[j, k] - (mean if j == k else 0.0)))
    return uneven <= LIKE_A_BALL * mean


@njit(cache=True, error_model="numpy")
def _inverse_inertia(bodies: Bodies, who: Array) -> Array:
    """Inverse tensors in world axes (n, 3, 3) of the bodies in `who` that impulses move; zero for others."""
    n = len(bodies.x)
    out, wanted = np.zeros((n, 3, 3)), np.zeros(n, np.bool_)
    for c in range(len(who)):
        wanted[who[c, 0]], wanted[who[c, 1]] = True, True
    for i in range(n):
        if not wanted[i] or bodies.motion[i] != 2:
            continue
        if alike(bodies.inertia[i]):
            for k in range(3):
                out[i, k, k] = 1.0 / bodies.inertia[i, k, k]
        else:
            turn = matrix_of(bodies.q[i])
            out[i] = turn @ np.linalg.inv(bodies.inertia[i]) @ turn.T
    return out


@njit(cache=True, error_model="numpy")
def _across(a: Vector) -> Vector:
    """A unit vector across a unit vector."""
    other = (1.0, 0.0, 0.0)
    if abs(a[1]) < abs(a[0]):
        other = (0.0, 1.0, 0.0)
    if abs(a[2]) < min(abs(a[0]), abs(a[1])):
        other = (0.0, 0.0, 1.0)
    found = cross_of(a, other)
    return parted(found, length(found))


@njit(cache=True, error_model="numpy")
def contacts_at(bodies: Bodies, who: Array, points: Array, gained: Array) -> Contacts:
    """Contacts with their rows, and Coulomb's friction by the geometric mean of both bodies' coefficients.

    An impulse along the normal does not turn a ball. Between two balls it acts along the line of their
    present centres: along the normal of a touch to come it would change the angular momentum. It never adds
    energy.
    """
    x, mass, motion, shape = bodies.x, bodies.mass, bodies.motion, bodies.shape
    inverse, friction = _inverse_inertia(bodies, who), np.empty(len(who))
    rows, weighted = np.empty((3, len(who), 12)), np.empty((3, len(who), 12))
    for c in range(len(who)):
        friction[c] = math.sqrt(bodies.friction[who[c, 0]] * bodies.friction[who[c, 1]])
        normal = points[c, 3], points[c, 4], points[c, 5]
        along = normal
        for d in range(1 if friction[c] == 0.0 else 3):
            if d == 1:
                along = _across(normal)
            elif d == 2:
                along = cross_of(normal, along)
            for side in range(2):
                i, sign, k = who[c, side], 1.0 if side else -1.0, 6 * side
                turn = scaled(sign, cross_of(minus(row_of(points, c), row_of(x, i)), along))
                if d == 0 and shape[i] == BALL:
                    turn = (0.0, 0.0, 0.0)
                free, light = motion[i] == 2, sign / mass[i]
                for j in range(3):
                    rows[d, c, k + j], rows[d, c, k + 3 + j] = sign * along[j], turn[j]
                    weighted[d, c, k + j] = light * along[j] if free else 0.0
                    weighted[d, c, k + 3 + j] = dot(inverse[i, j], turn) if free else 0.0
        a, b = who[c, 0], who[c, 1]
        between = minus(row_of(x, b), row_of(x, a))
        apart = length(between)
        if shape[a] == BALL and shape[b] == BALL and apart != 0.0:
            light_a = 1.0 / mass[a] if motion[a] == 2 else 0.0
            light_b = 1.0 / mass[b] if motion[b] == 2 else 0.0
            for j in range(3):
                step = between[j] / apart
                weighted[0, c, j], weighted[0, c, 6 + j] = -light_a * step, light_b * step
    return Contacts(who, points, friction, rows, weighted, gained)


@njit(cache=True, error_model="numpy", forceinline=True)
def contact_speed(rows: Array, d: int, c: int, v: Array, angular_velocity: Array, a: int, b: int) -> float:
    """Relative velocity of body b to body a along direction d of contact c, m/s; rows (3, c, 12).

    The sum is written out: a branch or a loop would count references to every array at each visit.
    """
    total = 0.0
    total += rows[d, c, 0] * v[a, 0] + rows[d, c, 3] * angular_velocity[a, 0]
    total += rows[d, c, 6] * v[b, 0] + rows[d, c, 9] * angular_velocity[b, 0]
    total += rows[d, c, 1] * v[a, 1] + rows[d, c, 4] * angular_velocity[a, 1]
    total += rows[d, c, 7] * v[b, 1] + rows[d, c, 10] * angular_velocity[b, 1]
    total += rows[d, c, 2] * v[a, 2] + rows[d, c, 5] * angular_velocity[a, 2]
    total += rows[d, c, 8] * v[b, 2] + rows[d, c, 11] * angular_velocity[b, 2]
    return total


@njit(cache=True, error_model="numpy", forceinline=True)
def _push(
    weighted: Array, d: int, c: int, v: Array, angular_velocity: Array, a: int, b: int, impulse: float
) -> None:
    """Apply an impulse along direction d of contact c; weighted (3, c, 12)."""
    v[a, 0] += impulse * weighted[d, c, 0]
    v[a, 1] += impulse * weighted[d, c, 1]
    v[a, 2] += impulse * weighted[d, c, 2]
    angular_velocity[a, 0] += impulse * weighted[d, c, 3]
    angular_velocity[a, 1] += impulse * weighted[d, c, 4]
    angular_velocity[a, 2] += impulse * weighted[d, c, 5]
    v[b, 0] += impulse * weighted[d, c, 6]
    v[b, 1] += impulse * weighted[d, c, 7]
    v[b, 2] += impulse * weighted[d, c, 8]
    angular_velocity[b, 0] += impulse * weighted[d, c, 9]
    angular_velocity[b, 1] += impulse * weighted[d, c, 10]
    angular_velocity[b, 2] += impulse * weighted[d, c, 11]


@njit(cache=True, error_model="numpy")
def _in_turn(target: Array, gained: Array) -> Array:
    """The contacts that can act, ordered such that neighbours in the list seldom share a body.

    The table is ordered by body: in that order each visit would wait until the one before had moved the body.
    """
    acting = np.empty(len(target), np.int64)
    count = 0
    for c in range(len(target)):
        if target[c] > -math.inf or gained[c, 0] > 0.0:
            acting[count] = c
            count += 1
    out = np.empty(count, np.int64)
    stride, k = (count + TURNS - 1) // TURNS, 0
    for first in range(stride):
        for c in range(first, count, stride):
            out[k] = acting[c]
            k += 1
    return out


@njit(cache=True, error_model="numpy")
def _carry_on(
    bodies: Bodies, contacts: Contacts, visits: Visits, former: Array, way: Array, fell: float
) -> float:
    """Make the additional step of a conjugate gradient method; returns the new `fell`.

    way (count, 3): the former direction, kg m/s. It becomes d + beta way, where d is the change of the
    impulses in the last two sweeps, since `former` (count, 3), and beta = |d|^2/fell, with fell the former
    |d|^2, J. The norm measures an impulse by the energy that it would add alone. beta is 0 where |d| grew.
    """
    turn, pair, central, line, ease, load = visits
    weighted, gained = contacts.weighted, contacts.gained
    v, angular_velocity = bodies.v, bodies.angular_velocity
    now = 0.0
    for k in range(len(turn)):
        c = turn[k]
        former[k, 0] = load[k] - former[k, 0]
        now += former[k, 0] * former[k, 0] / ease[c, 0]
        if line[k, 11] != 0.0:
            for d in range(1, 3):
                former[k, d] = gained[c, d] - former[k, d]
                now += former[k, d] * former[k, d] / ease[c, d]
    part = now / fell if now < fell else 0.0
    for k in range(len(turn)):
        c, a, b = turn[k], pair[k, 0], pair[k, 1]
        ahead = part * way[k, 0]
        way[k, 0] = former[k, 0] + ahead
        change = max(load[k] + ahead, 0.0) - load[k]
        load[k] += change
        if central[k]:
            for j in range(3):
                v[a, j] += change * line[k, 3 + j]
                v[b, j] += change * line[k, 6 + j]
        elif change != 0.0:
            _push(weighted, 0, c, v, angular_velocity, a, b, change)
        if line[k, 11] == 0.0:
            continue
        for d in range(1, 3):
            change = part * way[k, d]
            way[k, d] = former[k, d] + change
            gained[c, d] += change
            if change != 0.0:
                _push(weighted, d, c, v, angular_velocity, a, b, change)
    return now


@njit(cache=True, error_model="numpy")
def solve(bodies: Bodies, contacts: Contacts, target: Array, sweeps: int) -> None:
    """Solve v_n >= target, impulse >= 0, and Coulomb's cone, by sweeps with conjugate gradients.

    The contacts' impulses `gained` and the velocities of the bodies are changed in place.
    """
    who, rows, weighted, friction = contacts.who, contacts.rows, contacts.weighted, contacts.friction
    gained, v, angular_velocity, shape = contacts.gained, bodies.v, bodies.angular_velocity, bodies.shape
    turn = _in_turn(target, gained)
    count = len(turn)
    ease, central = np.empty((len(who), 3)), np.zeros(count, np.bool_)
    line, pair, load = np.empty((count, 12)), np.empty((count, 2), np.int64), np.empty(count)
    for k in range(count):
        c = turn[k]
        a, b = who[c, 0], who[c, 1]
        for j in range(3):
            line[k, j] = rows[0, c, 6 + j]
            line[k, 3 + j], line[k, 6 + j] = weighted[0, c, j], weighted[0, c, 6 + j]
        for d in range(1 if friction[c] == 0.0 else 3):
            soft = 0.0
            for j in range(12):
                soft += rows[d, c, j] * weighted[d, c, j]
            ease[c, d] = 1.0 / soft
        line[k, 9], line[k, 10], line[k, 11] = target[c], ease[c, 0], friction[c]
        pair[k, 0], pair[k, 1], load[k] = a, b, gained[c, 0]
        # An impulse along the normal does not turn touching balls.
        central[k] = shape[a] == BALL and shape[b] == BALL
    visits = Visits(turn, pair, central, line, ease, load)
    way, former, fell = np.zeros((count, 3)), np.empty((count, 3)), 0.0
    for sweep in range(sweeps):
        if sweep % 2 == 0:
            for k in range(count):
                former[k, 0], former[k, 1], former[k, 2] = load[k], gained[turn[k], 1], gained[turn[k], 2]
        largest = 0.0
        for step in range(count):
            k = step if sweep % 2 == 0 else count - 1 - step
            a, b = pair[k, 0], pair[k, 1]
            if central[k]:
                x, y, z = line[k, 0], line[k, 1], line[k, 2]
                speed = x * (v[b, 0] - v[a, 0]) + y * (v[b, 1] - v[a, 1]) + z * (v[b, 2] - v[a, 2])
            else:
                speed = contact_speed(rows, 0, turn[k], v, angular_velocity, a, b)
            total = max(load[k] + (line[k, 9] - speed) * line[k, 10], 0.0)
            change = total - load[k]
            load[k] = total
            if central[k]:
                for j in range(3):
                    v[a, j] += change * line[k, 3 + j]
                    v[b, j] += change * line[k, 6 + j]
            else:
                _push(weighted, 0, turn[k], v, angular_velocity, a, b, change)
            largest = max(largest, abs(change) / line[k, 10])
            if line[k, 11] == 0.0:
                continue
            c = turn[k]
            if total == 0.0 and gained[c, 1] == 0.0 and gained[c, 2] == 0.0:
                continue
            p1 = gained[c, 1] - contact_speed(rows, 1, c, v, angular_velocity, a, b) * ease[c, 1]
            p2 = gained[c, 2] - contact_speed(rows, 2, c, v, angular_velocity, a, b) * ease[c, 2]
            size, most = math.sqrt(p1 * p1 + p2 * p2), line[k, 11] * total
            if size > most:
                p1, p2 = p1 * most / size, p2 * most / size
            largest = max(largest, abs(p1 - gained[c, 1]) / ease[c, 1], abs(p2 - gained[c, 2]) / ease[c, 2])
            _push(weighted, 1, c, v, angular_velocity, a, b, p1 - gained[c, 1])
            _push(weighted, 2, c, v, angular_velocity, a, b, p2 - gained[c, 2])
            gained[c, 1], gained[c, 2] = p1, p2
        if largest < SETTLED:
            break
        # The last two sweeps are plain, so that no impulse attracts and none leaves the friction cone.
        if sweep % 2 == 1 and sweep + 2 < sweeps:
            fell = _carry_on(bodies, contacts, visits, former, way, fell)
    for k in range(count):
        gained[turn[k], 0] = load[k]


@njit(cache=True)
def recall(bodies: Bodies, former: ContactForces, contacts: Contacts, h: float) -> None:
    """Start the contacts with the former forces between the same two bodies, for h seconds.

    Each force goes to the nearest present contact of its bodies, so that none is lost or used twice where two
    contacts become one, or one becomes two.
    """
    who, points, gained = contacts.who, contacts.points, contacts.gained
    if len(former.who) == 0 or len(who) == 0:
        return
    n = len(bodies.x)
    keys = who[:, 0] * n + who[:, 1]
    for m in range(len(former.who)):
        a, b = former.who[m, 0], former.who[m, 1]
        near = (SAME_PLACE * min(bodies.radius[a], bodies.radius[b])) ** 2
        best = -1
        c = np.searchsorted(keys, a * n + b)
        while c < len(who) and keys[c] == a * n + b:
            away = minus(row_of(former.place, m), row_of(points, c))
            if dot(away, away) <= near:
                near, best = dot(away, away), c
            c += 1
        if best < 0:
            continue
        # Without friction, the component of a force off the present normal is dropped.
        for d in range(1 if contacts.friction[best] == 0.0 else 3):
            gained[best, d] += h * dot(contacts.rows[d, best, 6:9], former.force[m])
    for c in range(len(who)):
        if gained[c, 0] <= 0.0:
            gained[c] = 0.0
            continue
        for d in range(1 if contacts.friction[c] == 0.0 else 3):
            _push(
                contacts.weighted, d, c, bodies.v, bodies.angular_velocity, who[c, 0], who[c, 1], gained[c, d]
            )


@njit(cache=True)
def bear(bodies: Bodies, contacts: Contacts, c: int, total: Array) -> None:
    """Set the impulse of contact c so far to `total` (3,) kg m/s, along the normal and two tangents."""
    for d in range(1 if contacts.friction[c] == 0.0 else 3):
        change = total[d] - contacts.gained[c, d]
        contacts.gained[c, d] = total[d]
        a, b = contacts.who[c, 0], contacts.who[c, 1]
        _push(contacts.weighted, d, c, bodies.v, bodies.angular_velocity, a, b, change)
