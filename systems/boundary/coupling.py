"""Free bodies and the fluid around them, advanced together: force, torque and added mass by the sheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE, FormerPose
from ecs_fluid.fluid import Fluid
from ecs_fluid.systems.shared.body_tables import added_masses

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.panels import FormerMotion
    from ecs_fluid.systems.boundary.system import BoundarySystem


class Coupling(NamedTuple):
    """What the fluid moves in this tick."""

    rows: Array
    """numbers of the bodies"""
    axes: Array
    """of velocity (0 to 2) and spin (3 to 5), those that it changes"""
    rho: float
    """density of the fluid, kg/m^3"""


def coupling_of(system: BoundarySystem, bodies: Bodies) -> Coupling:
    """Free bodies of a world with a ReactionSystem by vortons."""
    world, axes = system.world, np.zeros(6, bool)
    rho = float(system.field(Fluid).density)
    # By its kind: ReactionSystem has to come after BoundarySystem, and knows it.
    reactions: list[Any] = [each for each in world.systems if each.kind == "reaction"]
    for reaction in reactions:
        axes |= np.repeat([reaction.linear == "vortons", reaction.angular == "vortons"], 3)
        rho = reaction.density or rho
    if world.across is not None:
        flat = np.arange(3) != world.across
        axes &= np.concatenate([flat, ~flat])
    rows = np.flatnonzero((bodies.motion == FREE) & axes.any())
    return Coupling(rows, np.flatnonzero(axes), rho)


def filled(bodies: Bodies, volume: Array, spin: Array) -> Array:
    """Angular momentum (n, 3) m^5/s over the density of fluid in bodies that turns with them at `spin`."""
    from ecs_fluid.kernels.bodies.rotation import in_world

    inertia = bodies.inertia * (volume / bodies.mass)[:, None, None]
    return _times(in_world(inertia, bodies.q), spin)


def moved(
    entities: list[Entity],
    bodies: Bodies,
    former: FormerMotion,
    coupling: Coupling,
    volume: Array,
    given: tuple[Array, Array, Array],
    answers: list[Array],
) -> tuple[Array, Array]:
    """(Changes (n, 6) of velocities and spins as the fluid lets the bodies move, added masses (n, 3, 3) kg).

    A body that moves as w = (v, spin) gives the fluid the impulse and angular impulse J(w) over the density;
    they are linear, J(w + d) = `given` + R d. The sheet lets the fluid in the body follow it too, whose
    momentum rho V v is not the body's. So after the BodySystem's impulses (m + m_a) (v - v0), v0 the velocity
    of the tick before,

        (M - rho V + rho R) d = (m_a + rho V) (v - v0) - rho `given`,

    where rho V stands for velocities alone: of the spin J leaves out what the fluid in the body gains, except
    for its tensor I_f, which turns: rho (I_f - I_f0) spin0 is added. R has the added mass in it, so that the
    matrix is that of body and fluid, and no body is too light. The sheet with which a new body starts is not
    its work: J(w0) is left out of `given`.

    Friction of what a tick changes is found in the next one only, which would throw light bodies about. So
    the fluid C that clings to the surface until then is accelerated at once, and taken off the next tick's
    account: rho C d on the left, rho C (d' - (w - w0)) on the right, d' the last tick's change. `answers` are
    R and C. Source: Lamb, Hydrodynamics, chapter 6; Eldredge, J. Comput. Phys. 227 (2008).
    """
    from ecs_fluid.kernels.collision.reaction import mass_matrices

    rows, axes, rho = coupling
    response, clinging = answers
    poses = [entity[FormerPose] for entity in entities]
    begun, *begin = (
        np.concatenate([getattr(pose, name) for pose in poses], dtype=np.float64)
        for name in ("q", "v", "angular_velocity")
    )
    new, start = ~former.known[:, None], np.concatenate([former.v, former.spin], axis=1)
    start = np.where(new, np.concatenate(begin, axis=1), start)
    gained = np.concatenate([bodies.v, bodies.angular_velocity], axis=1) - start
    masses = mass_matrices(bodies.mass, bodies.inertia, bodies.q)
    fluid = rho * volume[:, None, None] * np.eye(3)
    spin = start[:, 3:]
    right = -rho * np.where(new, _times(response, gained), np.concatenate(given[:2], axis=1))
    right[:, :3] += _times(added_masses(entities[0].world, entities) + fluid, gained[:, :3])
    right[:, 3:] += rho * (filled(bodies, volume, spin) - filled(bodies._replace(q=begun), volume, spin))
    right += rho * _times(clinging, former.change - gained)
    whole = masses + rho * (response + clinging)
    whole[:, :3, :3] -= fluid
    change, some = np.zeros((len(masses), 6)), np.ix_(rows, axes)
    change[some] = np.linalg.solve(whole[np.ix_(rows, axes, axes)], right[some][..., None])[..., 0]
    return change, added_of(coupling, response, volume)


def added_of(coupling: Coupling, response: Array, volume: Array) -> Array:
    """Added masses (n, 3, 3) kg along the axes of velocity that the fluid changes, from R (n, 6, 6)."""
    added, axes = np.zeros((len(volume), 3, 3)), coupling.axes[coupling.axes < 3]
    along = np.ix_(coupling.rows, axes, axes)
    added[along] = coupling.rho * (response[:, :3, :3] - volume[:, None, None] * np.eye(3))[along]
    return added


def _times(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("nab,nb->na", matrices, vectors))
