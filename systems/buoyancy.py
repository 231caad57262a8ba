"""What the fluid at rest, and the density that particles carry, do to bodies: buoyancy and added mass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import (
    FREE,
    AddedMass,
    Body,
    BodyHeat,
    BodyLoad,
    Pose,
    RigidMotion,
    Surroundings,
)
from ecs_fluid.components.particles import Strength
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import LAWS, Fluid
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.advection import AdvectionSystem
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem, idle_lint
from ecs_fluid.systems.particle_mesh import TransferSystem
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    add_loads,
    arms_of_hinges,
    body_entities,
    column_of,
    gathered,
    move_freely,
    sum_of_parts,
)
from ecs_fluid.systems.shared.fluid_at_rest import FluidAtRest, density_of, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.populations import rows_of_each
from ecs_fluid.systems.shared.properties import temperature_lint
from ecs_fluid.systems.shared.walls import shaken_containers
from ecs_fluid.systems.surroundings import SurroundingsSystem, displacement
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.table import Bodies


MISSED = 0.4
"""Acceleration by the fluid's pressure, over the fluid's, above which leaving it out is told; a ball of three
times the fluid's density has 0.43."""


GAS_STEP = 0.009
"""Relative change of a gas's temperature between two heights of a `profile`, whose densities are so within
1e-5."""


class BuoyancySystem(System):
    """Archimedes' force -int rho g dV and torque -int (x - c) cross rho g dV over the volume of each body.

    rho is the ambient's density at each height, integrated exactly through its linear pieces
    (`kernels.bodies.buoyancy`), plus, with `local`, the excess density that particles carry. The excess is
    read one cell outside the surface, where the fluid is, and continued into the body by the linear function
    that fits it best; so the sum is exact in a linear profile. Bodies are taken where they are in the middle
    of the tick. With a BodyHeat the displaced volume grows by `expansion` times the body's temperature above
    the `reference`.

    Added mass: a body that accelerates takes fluid along, of the mass C rho V. C is exactly 1/2 for a ball
    (released at rest it starts with (m - m_f) g / (m + m_f/2), m_f the mass of fluid that it displaces), and
    1 for a disk in a plane; polytopes have no added mass unless an AddedMass gives their tensor. The terms
    that a tensor which turns with the body adds to forces and torques (Kirchhoff, Munk) are left out. Where a
    ReactionSystem gives bodies the impulses of vortons, what they lend to the added mass comes back with
    these, so `added_mass` may be true or false.

    Fluid that vortons and winds accelerate has the pressure gradient rho (g - Du/Dt): with `acceleration`
    g - Du/Dt takes the place of g, and the added mass times Du/Dt is a force too. So a ball as dense as the
    fluid goes with it, and a bubble goes to the middle of a vortex, which throws out what is heavy.

    The weight m g stays with the BodySystem.
    Source: Fluid Simulation for Video Games, part 9 (which takes three points of the density); Lamb,
    Hydrodynamics, art. 92; Auton, Hunt and Prud'homme, J. Fluid Mech. 197 (1988).
    """

    reads = (Pose, RigidMotion, Body, Surroundings, Fluid)
    may_read = (*SHAPES, AddedMass)
    writes = (BodyHeat,)
    adds = (BodyLoad,)
    phase = "move"
    dimensions = (2, 3)
    periodic = False
    before = (BodySystem, "ConductionSystem")

    added_mass: bool = True
    """fluid is accelerated along with bodies"""
    local: bool = True
    """particles with a density count, not the ambient fluid alone"""
    acceleration: bool = False
    """fluid that vortons and winds accelerate pushes bodies, by its acceleration at their centres"""

    def added(self, world: World) -> None:
        """Require the transfer, for the density that particles carry, and the systems that move bodies."""
        if self.acceleration and world.options.integrator == "euler":
            raise RecipeError(
                "BuoyancySystem: acceleration = true needs the flow at two times of a tick, but "
                'integrator = "euler" evaluates it at one; use integrator = "rk2"'
            )
        world.require(TransferSystem)
        world.require(SurroundingsSystem)
        world.require(LoadSystem)
        world.require(BodySystem)
        if self.acceleration:
            world.require(AdvectionSystem)  # without a system that integrates a tick has no stages

    def process(self, dt: float) -> None:
        """Add force, torque and added mass of every body."""
        from ecs_fluid.kernels.bodies.table import CONTAINER

        entities = body_entities(self.world)
        if not entities:
            return
        fluid = fluid_at_rest(self.world)
        bodies, hulls = gathered(entities)
        move_freely(bodies, 0.5 * dt)
        mass, moment, volume = displacement(bodies, hulls, *profile(fluid), self.world.across)
        if self.local:
            # The first part of a body has the excess for all of it.
            whole = sum_of_parts(bodies.leader, volume)
            more = whole * column_of(entities, Surroundings, "excess")
            mass, moment = mass + more, moment + more[:, None] * arms_of_hinges(entities, bodies)
            slope = column_of(entities, Surroundings, "slope")
            for i in np.flatnonzero(slope.any(axis=1)).tolist():
                moment[i] += whole[i] * second_moment(bodies, i) @ slope[i]
        factor = _swelling(entities, fluid)
        mass, moment = mass * factor, moment * factor[:, None]
        solid = bodies.shape != CONTAINER
        flow = column_of(entities, Surroundings, "acceleration")
        up = flow - fluid.gravity.astype(np.float64)
        force, torque = (mass * solid)[:, None] * up, np.cross(moment * solid[:, None], up)
        add_loads(entities, force=force, torque=torque)
        if self.added_mass:
            added = _coefficients(entities, bodies, self.world.dimension) * (mass * solid)[:, None, None]
            add_loads(entities, force=np.einsum("nij,nj->ni", added, flow), added=added)

    def lint(self, world: World) -> list[str]:
        """Warn of no free bodies, warm particles that lift nothing, flow that a boundary makes in bodies."""
        texts = idle_lint(self, world, "baroclinic")
        texts += temperature_lint(self, world) if self.local else []
        free = any((entity[Body].motion == FREE).any() for entity in body_entities(world))
        if self.acceleration and free and named(world.systems, "BoundarySystem"):
            texts.append(
                "BuoyancySystem: acceleration = true pushes bodies by the acceleration of the fluid at their "
                "centres, which the vortons of BoundarySystem disturb; leave acceleration out"
            )
        if self.acceleration and free and (shaken := shaken_containers(world)):
            texts.append(
                "BuoyancySystem: acceleration = true knows that of the flow in a container, not that of the "
                f"container {shaken[0]!r}, which moves by keys; let it rest, and give gravity keys instead"
            )
        share = 0.0 if self.acceleration else self._acceleration_left_out(world)
        if share > MISSED:
            texts.append(
                "BuoyancySystem: drag carries free bodies along with the flow of vortons, but the pressure "
                f"of accelerating fluid, worth {share:.2g} times its acceleration, is left out, so vortices "
                "throw them outwards; set acceleration = true"
            )
        return texts

    def _acceleration_left_out(self, world: World) -> float:
        """The largest (m_f + m_a)/(m + m_a) of the free bodies that drag takes along with vortons; or 0."""
        from ecs_fluid.kernels.bodies.table import CONTAINER

        dragged = any(drag.flow for drag in named(world.systems, "DragSystem"))
        stirred = any(Strength in entity and entity[Strength].alpha.any() for entity in world.entities)
        entities = body_entities(world)
        if not (entities and stirred and dragged) or named(world.systems, "BoundarySystem"):
            return 0.0
        bodies, hulls = gathered(entities)
        displaced = displacement(bodies, hulls, *profile(fluid_at_rest(world)), world.across)[0]
        added = np.zeros(len(displaced))
        if self.added_mass:
            coefficients = _coefficients(entities, bodies, world.dimension)
            added = displaced * coefficients.trace(axis1=1, axis2=2) / 3.0
        free = (column_of(entities, Body, "motion") == FREE) & (bodies.shape != CONTAINER)
        shares = (displaced + added) / (column_of(entities, Body, "mass") + added)
        return float(shares[free].max(initial=0.0))


def profile(fluid: FluidAtRest) -> tuple[Array, Array]:
    """(heights m, densities kg/m^3) of the fluid at rest, float64; in between the density is linear.

    That of a gas is not where its temperature T is: parts in which T changes by s times T at most make it so,
    to s^2 / 8.
    """
    values, heights = (column.astype(np.float64) for column in fluid.densities)
    warm, places = (column.astype(np.float64) for column in fluid.temperatures)
    if len(warm) > 1:
        parts = np.ones(len(warm) - 1)
        if fluid.law == LAWS["ideal_gas"]:
            parts = np.ceil(np.abs(np.diff(warm)) / (GAS_STEP * np.minimum(warm[1:], warm[:-1]))).clip(1)
        ends = zip(places[:-1], places[1:], parts.astype(int), strict=True)
        heights = np.concatenate([*(np.linspace(*part, endpoint=False) for part in ends), places[-1:]])
        values = density_of(fluid, np.interp(heights, places, warm))
    return heights, values


def second_moment(bodies: Bodies, i: int) -> Array:
    """int r r^T dV / V (3, 3) m^2 of body i in world axes, from its inertia as that of an even density."""
    from ecs_fluid.kernels.bodies.rotation import in_world

    inertia = bodies.inertia[i] / bodies.mass[i]
    own = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.asarray(in_world(own[None], bodies.q[i : i + 1])[0])


def _swelling(entities: list[Entity], fluid: FluidAtRest) -> Array:
    """Displaced volume over cold volume (n,) of all bodies, at least 0.

    A missing `reference` (0) is set to the temperature of the fluid at rest at the body's height.
    """
    factor = np.ones(sum(map(len, entities)))
    for entity, rows in rows_of_each(entities):
        if BodyHeat in entity:
            heat, around = entity[BodyHeat], temperature_at(fluid, entity[Pose].x[:, 2])
            heat.reference = np.where(heat.reference, heat.reference, around)
            factor[rows] += heat.expansion * (heat.T.astype(np.float64) - heat.reference)
    return np.maximum(factor, 0.0)


def _coefficients(entities: list[Entity], bodies: Bodies, dimension: int) -> Array:
    """Added mass over displaced mass (n, 3, 3) in world axes: 1/2 for a ball, 1 for a disk in a plane."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL

    out = np.zeros((len(bodies.x), 3, 3))
    out[bodies.shape == BALL] = 1.0 / (dimension - 1) * np.eye(3)
    for entity, rows in rows_of_each(entities):
        if AddedMass in entity:
            for k, tensor in enumerate(entity[AddedMass].coefficient.astype(np.float64), rows.start):
                turn = matrix_of(bodies.q[k])
                out[k] = turn @ tensor @ turn.T
    return out
