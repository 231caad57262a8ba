"""Rigid bodies as plain arrays, and impulses at their contacts by Gauss-Seidel sweeps.

Contacts are solved one after the other in a fixed order, forth and back, so the result depends on nothing
but the state. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.rotation import cross, matrix_of, times

SETTLED = 1e-13
"""Change of a contact's velocity, m/s, below which the impulse solver stops."""

SAME_PLACE = 0.2
"""Part of the smaller body's radius by which a contact may have moved and still be the same."""


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
def _inverse_inertia(bodies: Bodies, who: np.ndarray) -> np.ndarray:
    """Inverse tensors in world axes (n, 3, 3) of the bodies in `who` that impulses move, zero else."""
    n = len(bodies.x)
    out, wanted = np.zeros((n, 3, 3)), np.zeros(n, np.bool_)
    for c in range(len(who)):
        wanted[who[c, 0]], wanted[who[c, 1]] = True, True
    for i in range(n):
        if wanted[i] and bodies.motion[i] == 2:
            turn = matrix_of(bodies.q[i])
            out[i] = turn @ np.linalg.inv(bodies.inertia[i]) @ turn.T
    return out


@njit(cache=True)
def dot(a: np.ndarray, b: np.ndarray) -> float:
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
    return first / math.sqrt(dot(first, first))


@njit(cache=True)
def contact_rows(bodies: Bodies, who: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows J (c, 3, 12) that take both bodies' velocities to the contact's, and M^-1 J (c, 3, 12).

    Directions 0, 1, 2 are the normal and two tangents; columns 0 to 5 belong to the first body (v, spin),
    6 to 11 to the second.
    """
    inverse = _inverse_inertia(bodies, who)
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
def recall(
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
