"""The articles' boundary condition: vortons near a surface get a place and strength that stop the slip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Velocity, Volume
from ecs_fluid.components.bodies import FREE, BoundaryExchange, RigidMotion
from ecs_fluid.plane import impulse_factors
from ecs_fluid.systems.operations import gusts, wind_at
from ecs_fluid.systems.shared.body_tables import (
    as_obstacles,
    depths,
    gathered,
    held_by_hinges,
    of_whole,
)
from ecs_fluid.systems.shared.fluid_at_rest import fluid_density
from ecs_fluid.systems.shared.populations import joined, rows_of_each, spread
from ecs_fluid.systems.turbulence import TurbulenceSystem
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World


def reassign_vortons(system: BoundarySystem, entities: list[Entity]) -> None:
    """Change the vortons near the surfaces of bodies, and fill BoundaryExchange.

    A vorton's spin momentum is that of a ball of its core radius, 0.4 m r^2 omega/2 = 0.2 rho sigma^2 alpha.
    Free bodies lose what their vortons gain; for this, all vortons count with their mean width.
    """
    from ecs_fluid.kernels.bodies.table import CONTAINER
    from ecs_fluid.kernels.collision.surface_slip import Sums, apply_corrections, corrections, vortons_near

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
    around = as_obstacles(bodies, hulls, float(reach.max(initial=0.0)))
    near = vortons_near(around, hulls, x, reach, strengths, sigma, volume)
    near = near._replace(body=bodies.leader[near.body])  # the parts' surface is closed as a whole alone
    if system.sample == "surface":
        flow = flow_at(world, near.point)
    else:
        flow = joined([velocity.u for *_, velocity in tables], (3,), number)[near.rows].astype(np.float64)
    reacting = (bodies.motion == FREE) & (system.reaction == "spin")
    momentum = 0.2 * fluid_density(system) * near.sigma**2
    turn = _spin_per_strength(bodies, reacting, near.body, momentum)
    sums = Sums((bodies.shape == CONTAINER) & ~reacting, turn)
    slip, to, parts, change = corrections(
        world.require(VelocitySystem).code, bodies, near, flow, system.placement == "bent", system.gain, sums
    )
    impulse, moment, rms, change = apply_corrections(
        around, hulls, near, slip, parts, to, change, x, strengths
    )
    if len(tables) > 1:
        spread(x, [position.x for _, position, *_ in tables])
        spread(strengths, [strength.alpha for _, _, strength, *_ in tables])
    record_exchange(entities, impulse, moment, rms[bodies.leader])
    gained = np.einsum("nij,nj->ni", turn, summed(change, near.body, len(bodies.x)))
    gained = of_whole(bodies.leader, gained)
    for entity, rows in rows_of_each(entities):
        entity[RigidMotion].angular_velocity -= gained[rows]


def _volumes(entity: Entity, sigma: Array) -> Array:
    """Volumes (n,) m^3 of the vortons: their own, or those of balls of their core radii."""
    if Volume in entity:
        return entity[Volume].volume
    return np.asarray(4 / 3 * np.pi * sigma**3, dtype=sigma.dtype)


def flow_at(world: World, points: Array) -> Array:
    """Velocity (m, 3) m/s of the fluid at points (m, 3) m at the end of the tick, with winds that blow on
    all but turbulence, which is finer than what bodies shed."""
    flow = world.require(VelocitySystem).velocity_at_few(points).astype(np.float64)
    with world._ticker.at_end():
        for gust in gusts(world):
            if not isinstance(gust, TurbulenceSystem):
                gust.add_wind(points, flow, None)
    return flow + wind_at(world, world.time + world.dt)


def astray(bodies: Bodies, hulls: Hulls, x: Array) -> Array:
    """Mask (n,) of the places x (n, 3) m inside a body or outside all containers."""
    return depths(as_obstacles(bodies, hulls, 0.0), hulls, x) > 0.0


def exchange_of(
    world: World,
    centers: Array,
    owner: Array,
    before: tuple[Array, Array],
    after: tuple[Array, Array],
    slip: Array,
) -> tuple[Array, Array, Array]:
    """The columns of BoundaryExchange, from vortons (x, alpha) of the bodies `owner` before and after."""
    from ecs_fluid.kernels.collision.surface_slip import exchanged

    impulse, moment, found = exchanged(centers, owner, *before, *after, slip)
    linear, angular = impulse_factors(world)
    return linear * impulse, angular * moment, found


def record_exchange(entities: list[Entity], impulse: Array, moment: Array, rms: Array) -> None:
    """Fill the entities' BoundaryExchange."""
    spread(impulse, [entity[BoundaryExchange].impulse for entity in entities])
    spread(moment, [entity[BoundaryExchange].moment for entity in entities])
    spread(rms, [entity[BoundaryExchange].slip for entity in entities])


def _spin_per_strength(bodies: Bodies, reacting: Array, owner: Array, momentum: Array) -> Array:
    """Spin that bodies gain per strength that their vortons lose, (n, 3, 3) 1/m^3; 0 if not `reacting`.

    It is the inverse inertia in world axes times the mean ratio `momentum` (c,), kg/m, of spin momentum to
    strength of the body's vortons.
    """
    from ecs_fluid.kernels.bodies.rotation import in_world

    count = len(bodies.x)
    out = np.zeros((count, 3, 3))
    mean = np.bincount(owner, momentum, count) / np.maximum(np.bincount(owner, minlength=count), 1)
    if reacting.any():
        inertia = held_by_hinges(bodies).inertia[reacting]
        inverse = np.linalg.inv(in_world(inertia, bodies.q[reacting]))
        out[reacting] = mean[reacting, None, None] * inverse
    return out


def summed(values: Array, owner: Array, count: int) -> Array:
    """Sums (count, 3) of the values of each body, added in the order of the rows."""
    return np.stack([np.bincount(owner, values[:, k], count) for k in range(3)], axis=1)
