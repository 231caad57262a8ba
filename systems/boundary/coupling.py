"""Free bodies and the fluid around them, advanced together: force, torque and added mass from the sheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE, FormerPose
from ecs_fluid.fluid import Fluid
from ecs_fluid.schedule import named
from ecs_fluid.systems.shared.body_tables import column_of, held_by_hinges
from ecs_fluid.systems.shared.together import solution

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.shed_motion import FormerMotion
    from ecs_fluid.systems.boundary.system import BoundarySystem

HELD = 0.25
"""Fraction of the friction applied in advance that stays on account after each later tick.

Layers that begin to spread in the middle of a tick, not at its end, have taken more friction after two and
three ticks, by 0.27 and 0.21 of a tick's friction: the integral of sqrt(t) over a ramp, less its sum one tick
late.
"""

SWEEPS = 1000
"""Most iterations over the contacts that keep bodies apart."""


class Coupling(NamedTuple):
    """Which bodies the fluid moves in this tick, and along which axes."""

    rows: Array
    """numbers of the f free bodies"""
    axes: Array
    """axes of velocity (0 to 2) and spin (3 to 5) along which the fluid changes their motion"""
    rho: float
    """density of the fluid, kg/m^3"""


class UnitSheets(NamedTuple):
    """The response to a unit change, 1 m/s or 1 rad/s, of the motion of one of the f free bodies on one
    axis."""

    rings: Array
    """strengths (f, 6, p, 3) of the rings on the p panels of all bodies"""
    response: Array
    """R (n, 6, f, 6): impulses and angular impulses, over the density, that all n bodies give to the fluid"""
    clinging: Array
    """C (f, 6, f, 6): mass, over the density, of the fluid that clings to surfaces until the next tick"""


def coupling_of(system: BoundarySystem, bodies: Bodies) -> Coupling:
    """The free bodies that the fluid moves: those of a world with a ReactionSystem by vortons."""
    world, axes = system.world, np.zeros(6, bool)
    rho = float(system.field(Fluid).density)
    for reaction in named(world.systems, "ReactionSystem"):
        axes |= reaction.moved["vortons"]
        rho = reaction.density or rho
    if world.across is not None:
        flat = np.arange(3) != world.across
        axes &= np.concatenate([flat, ~flat])
    rows = np.flatnonzero((bodies.motion == FREE) & axes.any())
    return Coupling(rows, np.flatnonzero(axes), rho)


def inner_angular_momentum(bodies: Bodies, volume: Array, spin: Array) -> Array:
    """Angular momentum (n, 3) m^5/s, over the density, of fluid in bodies that turns with them at `spin`."""
    from ecs_fluid.kernels.bodies.rotation import in_world

    inertia = bodies.inertia * (volume / bodies.mass)[:, None, None]
    return _products(in_world(inertia, bodies.q), spin)


def coupled_changes(
    entities: list[Entity],
    bodies: Bodies,
    hulls: Hulls,
    former: FormerMotion,
    coupling: Coupling,
    volume: Array,
    given: tuple[Array, Array, Array],
    units: UnitSheets,
) -> tuple[Array, Array]:
    """Changes (n, 6) of velocities and spins that the fluid causes, and `fluid_added_masses`.

    Bodies that move as w = (v, spin) give the fluid the impulses and angular impulses J(w), over the density.
    J is linear: J(w + d) = `given` + R d, where R holds what each body gives when any of them moves. With the
    sheet, the fluid inside the bodies follows them too, but its momentum rho V v is not that of the bodies.
    So after the BodySystem's impulses m (v - v0) + l, with v0 the velocity in the tick before and l what it
    lent to the added mass (`FormerPose.lent`),

        (M - rho V + rho R) d = l + rho V (v - v0) - rho `given`,

    where rho V applies to velocities only: for spins, J already leaves out what the fluid in the body gains,
    except that its inertia tensor I_f turns with the body: rho (I_f - I_f0) spin0 is added. R includes the
    added mass, so the matrix is that of bodies and fluid together, and no body is too light. A new body does
    not pay for the sheet with which it starts: J(w0) is left out of `given`.

    The friction of a change of motion appears only in the next tick, which would throw light bodies about.
    So the fluid C that will cling to the surfaces by then is accelerated at once, and later friction is
    reduced by this advance: rho C d on the left, rho C ((1 - h) d' - (w - w0)) on the right. d' is the
    account of the advances: the sum of all changes so far, each multiplied by h = `HELD` with every tick. A
    new body's account begins with the motion that it has. Source: Lamb, Hydrodynamics, chapter 6; Eldredge,
    J. Comput. Phys. 227 (2008).
    """
    from ecs_fluid.kernels.collision.reaction import mass_matrices

    rows, axes, rho = coupling
    _, response, clinging = units
    world = entities[0].world
    begun, *begin = (column_of(entities, FormerPose, name) for name in ("q", "v", "angular_velocity"))
    new, start = ~former.known[:, None], np.concatenate([former.v, former.spin], axis=1)
    start = np.where(new, np.concatenate(begin, axis=1), start)
    motion = np.concatenate([bodies.v, bodies.angular_velocity], axis=1)
    gained = motion - start
    held = held_by_hinges(bodies)
    masses = mass_matrices(held.mass, held.inertia, held.q)
    fluid = rho * volume[:, None, None] * np.eye(3)
    spin = start[:, 3:]
    by_gains = np.einsum("nafb,fb->na", response, gained[rows])
    right = -rho * np.where(new, by_gains, np.concatenate(given[:2], axis=1))
    right[:, :3] += column_of(entities, FormerPose, "lent") + _products(fluid, gained[:, :3])
    right[:, 3:] += rho * (
        inner_angular_momentum(bodies, volume, spin)
        - inner_angular_momentum(bodies._replace(q=begun), volume, spin)
    )
    account = np.where(new, -start, (1.0 - HELD) * former.change) - gained
    right[rows] += rho * np.einsum("fagb,gb->fa", clinging, account[rows])
    whole = rho * (response[rows] + clinging)
    for k, i in enumerate(rows):
        whole[k, :, k, :] += masses[i]
        whole[k, :3, k, :3] -= fluid[i]
    every = np.arange(len(rows))
    whole = whole[np.ix_(every, axes, every, axes)]
    change, some = np.zeros((len(masses), 6)), np.ix_(rows, axes)
    change[some] = solution(whole, right[some])
    change[some] += contact_changes(bodies, hulls, coupling, whole, motion + change, world.dt)
    return change, fluid_added_masses(coupling, response, volume)


def contact_changes(
    bodies: Bodies, hulls: Hulls, coupling: Coupling, whole: Array, motion: Array, dt: float
) -> Array:
    """Changes (f, k) of motion by impulses that keep touching bodies apart, with the fluid that moves with
    them.

    Where the fluid would drive bodies into each other, frictionless impulses ensure v_n >= -gap/dt.
    """
    from ecs_fluid.kernels.bodies.rigid_substep import find_contacts

    rows, axes, _ = coupling
    change = np.zeros((len(rows), len(axes)))
    if len(bodies.x) == 1:
        return change
    pairs, points = find_contacts(bodies, hulls, np.zeros_like(bodies.x), 0.0)
    lines = np.zeros((len(pairs), len(bodies.x), 6))
    for c, (pair, at) in enumerate(zip(pairs, points, strict=True)):
        for body, sign in zip(pair, (-1.0, 1.0), strict=True):
            lines[c, body, :3] = sign * at[3:6]
            lines[c, body, 3:] = sign * np.cross(at[:3] - bodies.x[body], at[3:6])
    free = lines[np.ix_(np.arange(len(pairs)), rows, axes)]
    moving = np.flatnonzero(free.any(axis=(1, 2)))
    lines, free = lines[moving], free[moving]
    spare = np.einsum("cna,na->c", lines, motion) + np.maximum(points[moving, 6], 0.0) / dt
    if not len(moving) or spare.min() >= 0.0:
        return change
    answers = np.stack([solution(whole, line) for line in free])
    matrix = np.einsum("cfa,dfa->cd", free, answers)
    impulse = np.zeros(len(moving))
    for _ in range(SWEEPS):
        before = impulse.copy()
        for c in range(len(impulse)):
            left = spare[c] + (matrix[c] * impulse).sum()
            impulse[c] = max(impulse[c] - left / matrix[c, c], 0.0)
        if np.abs(impulse - before).max() <= 1e-12 * impulse.max():
            break
    return np.asarray(np.einsum("c,cfa->fa", impulse, answers))


def fluid_added_masses(coupling: Coupling, response: Array, volume: Array) -> Array:
    """Added masses, kg, along the axes of velocity that the fluid changes, from R (n, 6, f, 6).

    Their shape is (n, 3, 3), or (n n, 3, 3) for all pairs of bodies where several are free.
    """
    n, axes = len(volume), coupling.axes[coupling.axes < 3]
    added = np.zeros((n, n, 3, 3))
    fluid = volume[:, None, None] * np.eye(3)
    for k, i in enumerate(coupling.rows):
        for j in coupling.rows:
            mass = response[j, :3, k, :3] - (fluid[i] if i == j else 0.0)
            added[j, i][np.ix_(axes, axes)] = coupling.rho * mass[np.ix_(axes, axes)]
    if len(coupling.rows) > 1:
        return added.reshape(n * n, 3, 3)
    return np.asarray(np.einsum("nnab->nab", added)).copy()


def _products(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("nab,nb->na", matrices, vectors))
