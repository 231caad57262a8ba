"""Impacts with friction: rebounds at the wanted speed, or as fast as the energy of the impact allows.

Newton's law asks for v_n = e c after an impact at c. Where friction turns the slip round, or stops it, the
bodies' inertia turns some of that into speed along the normal, and v_n = e c may need more energy than there
is (Kane's paradox). Three states are therefore looked at: before the impact (velocities u, no impulses),
at the end of compression (u_c, impulses P_c: nothing rebounds) and after Newton's law (u_1, P_1). An impulse
that grows on a straight line does the work dP . (u + u')/2. The impulses become

    P = P_c + s (P_1 - P_c)   with the largest s <= 1 such that, in each group of bodies that touch,

* along the normals restitution does at most e^2 times the work that compression took (Stronge's law);
* all impulses together, friction's too, do no work: W(s) = W_c + s dP . u_c + s^2 dP . (u_1 - u_c)/2 <= 0.

Both are quadratic in s. W_c <= 0: along the normal v_n = 0 where an impulse acts, and friction is against the
slip that is left, so W_c <= -P_c A P_c/2 with the positive A of du = A dP. So there is such an s. Impulses
and velocities lie between those of two solutions: the impulses are in Coulomb's cone, which is convex, bodies
do not approach, and momentum stays. Without friction P_1 - P_c = e P_c and s = 1, as for a ball on a floor,
whose slip the normal impulse does not change.

Source: Stronge, "Rigid body collisions with friction", Proc. R. Soc. Lond. A 431, 169 (1990), for the law of
the work along the normal.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contact_solver import Contacts, contact_speed, solve
from ecs_fluid.kernels.bodies.table import Bodies
from ecs_fluid.kernels.compiled import Array

ROUNDING = 1e-9
"""Excess of a work, over the work of compression, that may be rounding: impulses are found to that."""


@njit(cache=True)
def bounces_roughly(contacts: Contacts, rebound: Array) -> bool:
    """Whether anything rebounds, at the speeds `rebound` (c,) m/s, from a contact with friction."""
    return bool(np.any((rebound > 0.0) & (contacts.friction > 0.0)))


@njit(cache=True)
def contact_velocities(bodies: Bodies, contacts: Contacts) -> Array:
    """Relative velocities (c, 3) m/s of all contacts along their normals and tangents."""
    out = np.zeros((len(contacts.pairs), 3))
    for c in range(len(out)):
        for d in range(1 if contacts.friction[c] == 0.0 else 3):
            out[c, d] = contact_speed(
                contacts.jacobian,
                d,
                c,
                bodies.v,
                bodies.angular_velocity,
                contacts.pairs[c, 0],
                contacts.pairs[c, 1],
            )
    return out


@njit(cache=True)
def work_of(impulses: Array, before: Array, after: Array) -> Array:
    """Work (c, 2) J of impulses (c, 3) that take velocities (c, 3) from `before` to `after`: normal, all."""
    out = np.empty((len(impulses), 2))
    for c in range(len(out)):
        out[c, 0] = 0.5 * impulses[c, 0] * (before[c, 0] + after[c, 0])
        out[c, 1] = out[c, 0]
        for d in range(1, 3):
            out[c, 1] += 0.5 * impulses[c, d] * (before[c, d] + after[c, d])
    return out


@njit(cache=True)
def _groups(bodies: Bodies, contacts: Contacts, target: Array) -> Array:
    """Number (n,) of the group of each body: those that contacts which may act join, at free bodies."""
    group = np.arange(len(bodies.x))
    for c in range(len(target)):
        a, b = contacts.pairs[c, 0], contacts.pairs[c, 1]
        acts = target[c] > -math.inf or contacts.impulses[c, 0] > 0.0
        if acts and bodies.motion[a] == 2 and bodies.motion[b] == 2:
            while group[a] != a:
                a = group[a]
            while group[b] != b:
                b = group[b]
            group[max(a, b)] = min(a, b)
    for i in range(len(group)):
        # A group is named by its first body, so those before are done.
        group[i] = group[group[i]]
    return group[bodies.leader]


@njit(cache=True)
def _part_within(slope: float, bend: float, most: float, rounding: float) -> float:
    """Largest s <= 1 with slope s + bend s^2 <= most; `most` >= 0, all in J."""
    if slope + bend <= most + rounding:
        return 1.0
    if most <= 0.0:
        return 0.0
    return 2.0 * most / (slope + math.sqrt(slope * slope + 4.0 * bend * most))


@njit(cache=True)
def solve_impacts(
    bodies: Bodies, contacts: Contacts, target: Array, sweeps: int, start: Array, taken: Array, work: Array
) -> None:
    """`solve` for the velocities after impacts, without more energy than they had, in place.

    Args:
        target: least normal velocities (c,) m/s; what is above 0 is a rebound.
        start: velocities (c, 3) m/s before the impulses that are not in `taken`.
        taken: impulses (c, 3) kg m/s whose work is known.
        work: (c, 2) J of these, see `work_of`.
    """
    first = contacts.impulses.copy(), bodies.v.copy(), bodies.angular_velocity.copy()
    group = _groups(bodies, contacts, target)
    solve(bodies, contacts, target, sweeps)
    last = contacts.impulses.copy(), bodies.v.copy(), bodies.angular_velocity.copy()
    fast = contact_velocities(bodies, contacts)
    contacts.impulses[:], bodies.v[:], bodies.angular_velocity[:] = first
    solve(bodies, contacts, np.minimum(target, 0.0), sweeps)
    slow = contact_velocities(bodies, contacts)
    compression = work + work_of(contacts.impulses - taken, start, slow)
    gain = last[0] - contacts.impulses
    # Work in each group: what compression took, what may come back, and both coefficients of s and s^2.
    normal, whole = np.zeros((len(group), 4)), np.zeros((len(group), 4))
    for c in range(len(target)):
        a, b = contacts.pairs[c, 0], contacts.pairs[c, 1]
        i = group[a] if bodies.motion[a] == 2 else group[b]
        for d in range(3):
            whole[i, 2] += gain[c, d] * slow[c, d]
            whole[i, 3] += 0.5 * gain[c, d] * (fast[c, d] - slow[c, d])
        whole[i, 0] -= compression[c, 1]
        whole[i, 1] -= compression[c, 1]
        if target[c] > 0.0:
            e = max(bodies.restitution[a], bodies.restitution[b])
            normal[i, 0] += abs(compression[c, 0])
            normal[i, 1] -= e * e * compression[c, 0]
            normal[i, 2] += gain[c, 0] * slow[c, 0]
            normal[i, 3] += 0.5 * gain[c, 0] * (fast[c, 0] - slow[c, 0])
    part = np.ones(len(group))
    for i in range(len(group)):
        rounding = ROUNDING * max(normal[i, 0], abs(whole[i, 0]))
        for sums in (normal, whole):
            part[i] = min(part[i], _part_within(sums[i, 2], sums[i, 3], max(sums[i, 1], 0.0), rounding))
    for c in range(len(target)):
        a, b = contacts.pairs[c, 0], contacts.pairs[c, 1]
        s = part[group[a] if bodies.motion[a] == 2 else group[b]]
        for d in range(3):
            contacts.impulses[c, d] = last[0][c, d] if s == 1.0 else contacts.impulses[c, d] + s * gain[c, d]
    for i in range(len(group)):
        s = part[group[i]]
        for now, then in ((bodies.v, last[1]), (bodies.angular_velocity, last[2])):
            for k in range(3):
                now[i, k] = then[i, k] if s == 1.0 else now[i, k] + s * (then[i, k] - now[i, k])
