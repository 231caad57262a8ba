"""The articles' boundary condition: vortons near a surface get the place and strength that stop the slip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Velocity, Volume
from ecs_fluid.components.bodies import FREE, Body, BoundaryExchange, RigidMotion
from ecs_fluid.plane import impulse_factors
from ecs_fluid.systems.operations import wind_at
from ecs_fluid.systems.shared.body_tables import depths, gathered, standing
from ecs_fluid.systems.shared.fluid_at_rest import own_or_fluids
from ecs_fluid.systems.shared.populations import joined, rows_of_each, spread
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World


def reassign_vortons(system: BoundarySystem, entities: list[Entity]) -> None:
    """Change the vortons near the surfaces of bodies; fills BoundaryExchange.

    With the spin momentum of a vorton, 0.4 m r^2 omega/2 = 0.2 rho sigma^2 alpha of a ball of its core
    radius, free bodies get back what their vortons gain.
    """
    from ecs_fluid.kernels.bodies.table import CONTAINER
    from ecs_fluid.kernels.collision.surface_slip import corrections, go, vortons_near

    world = system.world
    chosen = system.chosen(Position, Strength, CoreRadius, Velocity)
    tables = [(entity, *found) for entity, found in chosen]
    number = world.dtype
    x = joined([position.x for _, position, *_ in tables], (3,), number)
    strengths = joined([strength.alpha for _, _, strength, *_ in tables], (3,), number)
    sigma = joined([core.sigma for *_, core, _ in tables], (), number)
    volume = joined([_volumes(entity, core.sigma) for entity, _, _, core, _ in tables], (), number)
    bodies, hulls = gathered(entities)
    reach = sigma * number(system.reach)
    around = standing(bodies, float(reach.max()) if len(x) else 0.0)
    near = vortons_near(around, hulls, x, reach, strengths, sigma, volume)
    if system.sample == "surface":
        flow = flow_at(world, near.point)
    else:
        flow = joined([velocity.u for *_, velocity in tables], (3,), number)[near.rows].astype(np.float64)
    bent = system.placement == "bent"
    reacting = (bodies.motion == FREE) & (system.reaction == "spin")
    slip, to, parts, change = corrections(
        world.require(VelocitySystem).code, bodies, near, flow, bent, system.gain,
        ~reacting & (bodies.shape != CONTAINER),
    )  # fmt: skip
    reacts = bool(reacting.any())
    bearable = np.ones(len(bodies.x))
    if reacts:
        momentum = (0.2 * own_or_fluids(system, "density") * near.sigma**2)[:, None]
        bearable = _bearable(system, bodies, near.who, momentum * change, slip)
    *exchange, change = go(around, hulls, near, slip, parts, bearable, to, change, x, strengths)
    if len(tables) > 1:
        spread(x, [position.x for _, position, *_ in tables])
        spread(strengths, [strength.alpha for _, _, strength, *_ in tables])
    record_exchange(entities, *exchange)
    if reacts:
        _take_spin(entities, bodies, near.who, momentum * change)


def _volumes(entity: Entity, sigma: Array) -> Array:
    """Volumes (n,) m^3 of the vortons: their own, or that of balls of their core radius."""
    if Volume in entity:
        return entity[Volume].volume
    return np.asarray(4 / 3 * np.pi * sigma**3, dtype=sigma.dtype)


def flow_at(world: World, points: Array) -> Array:
    """Velocity (m, 3) m/s of the fluid at points (m, 3) m at the end of the tick, with a wind on all."""
    flow = world.require(VelocitySystem).velocity_at_few(points).astype(np.float64)
    return flow + wind_at(world, world.time + world.dt)


def astray(bodies: Bodies, hulls: Hulls, x: Array) -> Array:
    """Mask of places inside a body, or outside all containers."""
    return depths(standing(bodies, 0.0), hulls, x) > 0.0


def exchange_of(
    world: World,
    centers: Array,
    who: Array,
    before: tuple[Array, Array],
    after: tuple[Array, Array],
    slip: Array,
) -> tuple[Array, Array, Array]:
    """The columns of BoundaryExchange, by vortons (x, alpha) before and after, of the bodies `who`."""
    from ecs_fluid.kernels.collision.surface_slip import exchanged

    impulse, moment, found = exchanged(centers, who, *before, *after, slip)
    linear, angular = impulse_factors(world)
    return linear * impulse, angular * moment, found


def record_exchange(entities: list[Entity], impulse: Array, moment: Array, rms: Array) -> None:
    """Fill BoundaryExchange."""
    spread(impulse, [entity[BoundaryExchange].impulse for entity in entities])
    spread(moment, [entity[BoundaryExchange].moment for entity in entities])
    spread(rms, [entity[BoundaryExchange].slip for entity in entities])


def _bearable(system: BoundarySystem, bodies: Bodies, who: Array, gained: Array, slip: Array) -> Array:
    """Part (n,) of the change that each free body can react to.

    A body much lighter than its fluid would be thrown about by the spin momentum (c, 3) N m s that its
    vortons gain in one tick. Its spin may change by `gain` times its own and that of the slip, |w|/R.
    """
    count = len(bodies.x)
    total = summed(gained, who, count)
    number = np.maximum(np.bincount(who, minlength=count), 1)
    speed = np.sqrt(np.bincount(who, (slip**2).sum(axis=1), count) / number)
    most = system.gain * (np.linalg.norm(bodies.angular_velocity, axis=1) + speed / bodies.radius)
    part = np.ones(count)
    for i in np.flatnonzero((bodies.motion == FREE) & total.any(axis=1)).tolist():
        part[i] = min(1.0, most[i] / float(np.linalg.norm(_change_of_spin(bodies, i, total[i]))))
    return part


def summed(values: Array, who: Array, count: int) -> Array:
    """Sums (count, 3) over the rows of each body, in the order of the rows."""
    return np.stack([np.bincount(who, values[:, k], count) for k in range(3)], axis=1)


def _change_of_spin(bodies: Bodies, i: int, momentum: Array) -> Array:
    """Change (3,) rad/s of the spin of body i by an angular momentum (3,) N m s."""
    from ecs_fluid.kernels.bodies.rotation import in_world

    tensor = in_world(bodies.inertia[i : i + 1], bodies.q[i : i + 1])[0]
    return np.asarray(np.linalg.solve(tensor, momentum))


def _take_spin(entities: list[Entity], bodies: Bodies, who: Array, gained: Array) -> None:
    """Free bodies lose the angular momentum (c, 3) N m s that their vortons gained."""
    lost = summed(gained, who, len(bodies.x))
    for entity, rows in rows_of_each(entities):
        motion, free = entity[RigidMotion], entity[Body].motion == FREE
        for row in np.flatnonzero(free & lost[rows].any(axis=1)):
            i = rows.start + row
            motion.angular_velocity[row] -= _change_of_spin(bodies, i, lost[i])
