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
from ecs_fluid.kernels.compiled.vector3 import (
    Vector,
    cross_of,
    divided,
    dot,
    length,
    minus,
    row_of,
    scaled,
)

CONVERGED = 1e-13
"""Change of a contact's velocity, m/s, below which the impulse solver stops."""

VISITS_APART = 64
"""Distance in a sweep of two contacts that are neighbours in the table."""

ISOTROPIC = 1e-12
"""Relative difference of moments of inertia below which a free spin keeps its axis, and of the masses along
both tangents of a contact below which they are one."""

SAME_PLACE = 0.2
"""A contact counts as the same if it moved by less than this fraction of the smaller body's radius."""


class ContactForces(NamedTuple):
    """Forces of the last contacts, from which the next solution starts.

    pairs (c, 2): rows of the two bodies, ascending; place (c, 3) m; force (c, 3): on the second body, N.
    """

    pairs: Array
    place: Array
    force: Array


class Contacts(NamedTuple):
    """Contacts to be solved.

    pairs (c, 2): rows of the two bodies. points (c, 7): see `contacts`. friction (c,): coefficients. jacobian
    J (3, c, 12) takes both bodies' velocities to the contact's, and response M^-1 J (3, c, 12) an impulse of
    1 kg m/s to theirs. impulses (c, 3): so far, kg m/s. Directions 0, 1, 2 are the normal and two tangents;
    contacts without friction have the normal only. Columns 0 to 5 belong to the first body (v, angular
    velocity), 6 to 11 to the second.
    """

    pairs: Array
    points: Array
    friction: Array
    jacobian: Array
    response: Array
    impulses: Array


class Visits(NamedTuple):
    """The data that a sweep reads at its n visits, stored side by side in the order of the visits.

    contact (n,): its number; pair (n, 2): its bodies; central (n,): whether its normal goes through both
    centres. packed (n, 12): normal, its effect on both bodies' velocities, target, effective mass and
    friction. effective_mass (c, 3): of all contacts, the impulse per speed along each direction, kg.
    normal_impulse (n,): so far, kg m/s.
    """

    contact: Array
    pair: Array
    central: Array
    packed: Array
    effective_mass: Array
    normal_impulse: Array


@njit(cache=True, error_model="numpy")
def is_isotropic(inertia: Array) -> bool:
    """Whether a tensor (3, 3) is a multiple of the unit tensor, to the relative error ISOTROPIC."""
    mean = (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / 3.0
    uneven = 0.0
    for j in range(3):
        for k in range(3):
            uneven = max(uneven, abs(inertia[j, k] - (mean if j == k else 0.0)))
    return uneven <= ISOTROPIC * mean


@njit(cache=True, error_model="numpy")
def _inverse_inertia(bodies: Bodies, pairs: Array) -> Array:
    """Inverse tensors in world axes (n, 3, 3) of bodies in `pairs` that impulses move; zero for others."""
    n = len(bodies.x)
    out, wanted = np.zeros((n, 3, 3)), np.zeros(n, np.bool_)
    for c in range(len(pairs)):
        wanted[pairs[c, 0]], wanted[pairs[c, 1]] = True, True
    for i in range(n):
        if not wanted[i] or bodies.motion[i] != 2:
            continue
        if is_isotropic(bodies.inertia[i]):
            for k in range(3):
                out[i, k, k] = 1.0 / bodies.inertia[i, k, k]
        else:
            turn = matrix_of(bodies.q[i])
            out[i] = turn @ np.linalg.inv(bodies.inertia[i]) @ turn.T
    return out


@njit(cache=True, error_model="numpy")
def _perpendicular_to(a: Vector) -> Vector:
    """A unit vector across a unit vector."""
    other = (1.0, 0.0, 0.0)
    if abs(a[1]) < abs(a[0]):
        other = (0.0, 1.0, 0.0)
    if abs(a[2]) < min(abs(a[0]), abs(a[1])):
        other = (0.0, 0.0, 1.0)
    product = cross_of(a, other)
    return divided(product, length(product))


@njit(cache=True, error_model="numpy")
def contacts_at(bodies: Bodies, pairs: Array, points: Array, impulses: Array) -> Contacts:
    """Contacts with their rows, and Coulomb's friction by the geometric mean of both bodies' coefficients.

    An impulse along the normal does not turn a ball. Between two balls it acts along the line of their
    present centres: along the normal of a touch to come it would change the angular momentum. It never adds
    energy.
    """
    x, mass, motion, shape = bodies.x, bodies.mass, bodies.motion, bodies.shape
    inverse, friction = _inverse_inertia(bodies, pairs), np.empty(len(pairs))
    jacobian, response = np.empty((3, len(pairs), 12)), np.empty((3, len(pairs), 12))
    for c in range(len(pairs)):
        friction[c] = math.sqrt(bodies.friction[pairs[c, 0]] * bodies.friction[pairs[c, 1]])
        normal = points[c, 3], points[c, 4], points[c, 5]
        along = normal
        for d in range(1 if friction[c] == 0.0 else 3):
            if d == 1:
                along = _perpendicular_to(normal)
            elif d == 2:
                along = cross_of(normal, along)
            for side in range(2):
                i, sign, k = pairs[c, side], 1.0 if side else -1.0, 6 * side
                turn = scaled(sign, cross_of(minus(row_of(points, c), row_of(x, i)), along))
                if d == 0 and shape[i] == BALL:
                    turn = (0.0, 0.0, 0.0)
                free, light = motion[i] == 2, sign / mass[i]
                for j in range(3):
                    jacobian[d, c, k + j], jacobian[d, c, k + 3 + j] = sign * along[j], turn[j]
                    response[d, c, k + j] = light * along[j] if free else 0.0
                    response[d, c, k + 3 + j] = dot(inverse[i, j], turn) if free else 0.0
        a, b = pairs[c, 0], pairs[c, 1]
        between = minus(row_of(x, b), row_of(x, a))
        apart = length(between)
        if shape[a] == BALL and shape[b] == BALL and apart != 0.0:
            light_a = 1.0 / mass[a] if motion[a] == 2 else 0.0
            light_b = 1.0 / mass[b] if motion[b] == 2 else 0.0
            for j in range(3):
                step = between[j] / apart
                response[0, c, j], response[0, c, 6 + j] = -light_a * step, light_b * step
    return Contacts(pairs, points, friction, jacobian, response, impulses)


@njit(cache=True, error_model="numpy", forceinline=True)
def contact_speed(
    jacobian: Array, d: int, c: int, v: Array, angular_velocity: Array, a: int, b: int
) -> float:
    """Relative velocity of body b to body a along direction d of contact c, m/s; jacobian (3, c, 12).

    The sum is written out: a branch or a loop would count references to every array at each visit.
    """
    total = 0.0
    total += jacobian[d, c, 0] * v[a, 0] + jacobian[d, c, 3] * angular_velocity[a, 0]
    total += jacobian[d, c, 6] * v[b, 0] + jacobian[d, c, 9] * angular_velocity[b, 0]
    total += jacobian[d, c, 1] * v[a, 1] + jacobian[d, c, 4] * angular_velocity[a, 1]
    total += jacobian[d, c, 7] * v[b, 1] + jacobian[d, c, 10] * angular_velocity[b, 1]
    total += jacobian[d, c, 2] * v[a, 2] + jacobian[d, c, 5] * angular_velocity[a, 2]
    total += jacobian[d, c, 8] * v[b, 2] + jacobian[d, c, 11] * angular_velocity[b, 2]
    return total


@njit(cache=True, error_model="numpy", forceinline=True)
def _apply_impulse(
    response: Array, d: int, c: int, v: Array, angular_velocity: Array, a: int, b: int, impulse: float
) -> None:
    """Apply an impulse along direction d of contact c; response (3, c, 12)."""
    v[a, 0] += impulse * response[d, c, 0]
    v[a, 1] += impulse * response[d, c, 1]
    v[a, 2] += impulse * response[d, c, 2]
    angular_velocity[a, 0] += impulse * response[d, c, 3]
    angular_velocity[a, 1] += impulse * response[d, c, 4]
    angular_velocity[a, 2] += impulse * response[d, c, 5]
    v[b, 0] += impulse * response[d, c, 6]
    v[b, 1] += impulse * response[d, c, 7]
    v[b, 2] += impulse * response[d, c, 8]
    angular_velocity[b, 0] += impulse * response[d, c, 9]
    angular_velocity[b, 1] += impulse * response[d, c, 10]
    angular_velocity[b, 2] += impulse * response[d, c, 11]


@njit(cache=True, error_model="numpy")
def _visiting_order(target: Array, impulses: Array) -> Array:
    """The contacts that can act, ordered such that neighbours in the list seldom share a body.

    The table is ordered by body: in that order each visit would wait until the one before had moved the body.
    """
    acting = np.empty(len(target), np.int64)
    count = 0
    for c in range(len(target)):
        if target[c] > -math.inf or impulses[c, 0] > 0.0:
            acting[count] = c
            count += 1
    order = np.empty(count, np.int64)
    stride, k = (count + VISITS_APART - 1) // VISITS_APART, 0
    for first in range(stride):
        for c in range(first, count, stride):
            order[k] = acting[c]
            k += 1
    return order


@njit(cache=True, error_model="numpy")
def _conjugate_step(
    bodies: Bodies, contacts: Contacts, visits: Visits, former: Array, direction: Array, former_norm: float
) -> float:
    """Make the additional step of a conjugate gradient method; returns the new `former_norm`.

    direction (count, 3): the former one, kg m/s. It becomes d + beta direction, where d is the change of the
    impulses in the last two sweeps, since `former` (count, 3), and beta = |d|^2/former_norm, with the former
    |d|^2, J. The norm measures an impulse by the energy that it would add alone. beta is 0 where |d| grew.
    """
    order, pair, central, packed, effective_mass, normal_impulse = visits
    response, impulses = contacts.response, contacts.impulses
    v, angular_velocity = bodies.v, bodies.angular_velocity
    norm = 0.0
    for k in range(len(order)):
        c = order[k]
        former[k, 0] = normal_impulse[k] - former[k, 0]
        norm += former[k, 0] * former[k, 0] / effective_mass[c, 0]
        if packed[k, 11] != 0.0:
            for d in range(1, 3):
                former[k, d] = impulses[c, d] - former[k, d]
                norm += former[k, d] * former[k, d] / effective_mass[c, d]
    beta = norm / former_norm if norm < former_norm else 0.0
    for k in range(len(order)):
        c, a, b = order[k], pair[k, 0], pair[k, 1]
        step = beta * direction[k, 0]
        direction[k, 0] = former[k, 0] + step
        change = max(normal_impulse[k] + step, 0.0) - normal_impulse[k]
        normal_impulse[k] += change
        if central[k]:
            for j in range(3):
                v[a, j] += change * packed[k, 3 + j]
                v[b, j] += change * packed[k, 6 + j]
        elif change != 0.0:
            _apply_impulse(response, 0, c, v, angular_velocity, a, b, change)
        if packed[k, 11] == 0.0:
            continue
        for d in range(1, 3):
            change = beta * direction[k, d]
            direction[k, d] = former[k, d] + change
            impulses[c, d] += change
            if change != 0.0:
                _apply_impulse(response, d, c, v, angular_velocity, a, b, change)
    return norm


@njit(cache=True, error_model="numpy")
def solve(bodies: Bodies, contacts: Contacts, target: Array, sweeps: int) -> None:
    """Solve v_n >= target, impulse >= 0, and Coulomb's cone, by sweeps with conjugate gradients.

    The `impulses` of the contacts and the velocities of the bodies are changed in place; parts of a body get
    those of their `leader`.
    """
    pairs = contacts.pairs
    jacobian = contacts.jacobian
    response = contacts.response
    friction = contacts.friction
    impulses, v, angular_velocity, shape = contacts.impulses, bodies.v, bodies.angular_velocity, bodies.shape
    order = _visiting_order(target, impulses)
    count = len(order)
    effective_mass, central = np.empty((len(pairs), 3)), np.zeros(count, np.bool_)
    packed, pair, normal_impulse = np.empty((count, 12)), np.empty((count, 2), np.int64), np.empty(count)
    for k in range(count):
        c = order[k]
        a, b = pairs[c, 0], pairs[c, 1]
        for j in range(3):
            packed[k, j] = jacobian[0, c, 6 + j]
            packed[k, 3 + j], packed[k, 6 + j] = response[0, c, j], response[0, c, 6 + j]
        for d in range(1 if friction[c] == 0.0 else 3):
            inverse_mass = 0.0
            for j in range(12):
                inverse_mass += jacobian[d, c, j] * response[d, c, j]
            effective_mass[c, d] = 1.0 / inverse_mass
        packed[k, 9], packed[k, 10], packed[k, 11] = target[c], effective_mass[c, 0], friction[c]
        pair[k, 0], pair[k, 1], normal_impulse[k] = a, b, impulses[c, 0]
        # An impulse along the normal does not turn touching balls.
        central[k] = shape[a] == BALL and shape[b] == BALL
    visits = Visits(order, pair, central, packed, effective_mass, normal_impulse)
    direction, former, former_norm = np.zeros((count, 3)), np.empty((count, 3)), 0.0
    for sweep in range(sweeps):
        if sweep % 2 == 0:
            for k in range(count):
                former[k, 0] = normal_impulse[k]
                former[k, 1] = impulses[order[k], 1]
                former[k, 2] = impulses[order[k], 2]
        largest = 0.0
        for step in range(count):
            k = step if sweep % 2 == 0 else count - 1 - step
            a, b = pair[k, 0], pair[k, 1]
            if central[k]:
                x, y, z = packed[k, 0], packed[k, 1], packed[k, 2]
                speed = x * (v[b, 0] - v[a, 0]) + y * (v[b, 1] - v[a, 1]) + z * (v[b, 2] - v[a, 2])
            else:
                speed = contact_speed(jacobian, 0, order[k], v, angular_velocity, a, b)
            total = max(normal_impulse[k] + (packed[k, 9] - speed) * packed[k, 10], 0.0)
            change = total - normal_impulse[k]
            normal_impulse[k] = total
            if central[k]:
                for j in range(3):
                    v[a, j] += change * packed[k, 3 + j]
                    v[b, j] += change * packed[k, 6 + j]
            else:
                _apply_impulse(response, 0, order[k], v, angular_velocity, a, b, change)
            largest = max(largest, abs(change) / packed[k, 10])
            if packed[k, 11] == 0.0:
                continue
            c = order[k]
            if total == 0.0 and impulses[c, 1] == 0.0 and impulses[c, 2] == 0.0:
                continue
            p1 = (
                impulses[c, 1]
                - contact_speed(jacobian, 1, c, v, angular_velocity, a, b) * effective_mass[c, 1]
            )
            p2 = (
                impulses[c, 2]
                - contact_speed(jacobian, 2, c, v, angular_velocity, a, b) * effective_mass[c, 2]
            )
            size, most = math.sqrt(p1 * p1 + p2 * p2), packed[k, 11] * total
            mass = min(effective_mass[c, 1], effective_mass[c, 2])
            if size > most and effective_mass[c, 1] + effective_mass[c, 2] > (2.0 + ISOTROPIC) * mass:
                # Friction points against the slip only if both tangents take the same mass.
                p1 = impulses[c, 1] - contact_speed(jacobian, 1, c, v, angular_velocity, a, b) * mass
                p2 = impulses[c, 2] - contact_speed(jacobian, 2, c, v, angular_velocity, a, b) * mass
                size = math.sqrt(p1 * p1 + p2 * p2)
            if size > most:
                p1, p2 = p1 * most / size, p2 * most / size
            largest = max(
                largest,
                abs(p1 - impulses[c, 1]) / effective_mass[c, 1],
                abs(p2 - impulses[c, 2]) / effective_mass[c, 2],
            )
            _apply_impulse(response, 1, c, v, angular_velocity, a, b, p1 - impulses[c, 1])
            _apply_impulse(response, 2, c, v, angular_velocity, a, b, p2 - impulses[c, 2])
            impulses[c, 1], impulses[c, 2] = p1, p2
        if largest < CONVERGED:
            break
        # The last two sweeps are plain, so that no impulse attracts and none leaves the friction cone.
        if sweep % 2 == 1 and sweep + 2 < sweeps:
            former_norm = _conjugate_step(bodies, contacts, visits, former, direction, former_norm)
    for k in range(count):
        impulses[order[k], 0] = normal_impulse[k]
    for i in range(len(v)):
        first = bodies.leader[i]
        if first != i:
            v[i], angular_velocity[i] = v[first], angular_velocity[first]


@njit(cache=True)
def warm_start(bodies: Bodies, former: ContactForces, contacts: Contacts, h: float) -> None:
    """Start the contacts with the former forces between the same two bodies, for h seconds.

    Each force goes to the nearest present contact of its bodies, so that none is lost or used twice where two
    contacts become one, or one becomes two.
    """
    pairs, points, impulses = contacts.pairs, contacts.points, contacts.impulses
    if len(former.pairs) == 0 or len(pairs) == 0:
        return
    n = len(bodies.x)
    keys = pairs[:, 0] * n + pairs[:, 1]
    for m in range(len(former.pairs)):
        a, b = former.pairs[m, 0], former.pairs[m, 1]
        near = (SAME_PLACE * min(bodies.radius[a], bodies.radius[b])) ** 2
        best = -1
        c = np.searchsorted(keys, a * n + b)
        while c < len(pairs) and keys[c] == a * n + b:
            away = minus(row_of(former.place, m), row_of(points, c))
            if dot(away, away) <= near:
                near, best = dot(away, away), c
            c += 1
        if best < 0:
            continue
        # Without friction, the component of a force off the present normal is dropped.
        for d in range(1 if contacts.friction[best] == 0.0 else 3):
            impulses[best, d] += h * dot(contacts.jacobian[d, best, 6:9], former.force[m])
    for c in range(len(pairs)):
        if impulses[c, 0] <= 0.0:
            impulses[c] = 0.0
            continue
        for d in range(1 if contacts.friction[c] == 0.0 else 3):
            _apply_impulse(
                contacts.response,
                d,
                c,
                bodies.v,
                bodies.angular_velocity,
                pairs[c, 0],
                pairs[c, 1],
                impulses[c, d],
            )


@njit(cache=True)
def set_impulse(bodies: Bodies, contacts: Contacts, c: int, total: Array) -> None:
    """Set the impulse of contact c so far to `total` (3,) kg m/s, along the normal and two tangents."""
    for d in range(1 if contacts.friction[c] == 0.0 else 3):
        change = total[d] - contacts.impulses[c, d]
        contacts.impulses[c, d] = total[d]
        a, b = contacts.pairs[c, 0], contacts.pairs[c, 1]
        _apply_impulse(contacts.response, d, c, bodies.v, bodies.angular_velocity, a, b, change)
