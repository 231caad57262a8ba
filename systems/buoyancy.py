"""What the fluid at rest, and the density that particles carry, do to bodies: buoyancy and added mass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import DensityField, TransferGrid
from ecs_fluid.components.bodies import (
    AddedMass,
    Body,
    BodyHeat,
    BodyLoad,
    Pose,
    RigidMotion,
)
from ecs_fluid.fluid import Fluid
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.particle_mesh import TransferSystem
from ecs_fluid.systems.shared.body_tables import SHAPES, body_entities, gathered
from ecs_fluid.systems.shared.fluid_at_rest import FluidAtRest, density_of, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.populations import add_spread, rows_of_each
from ecs_fluid.systems.shared.properties import temperature_lint
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

GOLDEN = (1 + 5**0.5) / 2


class BuoyancySystem(System):
    """Archimedes' force -int rho g dV and torque -int (x - c) cross rho g dV over the volume of each body.

    rho is the ambient's density at each height, integrated exactly through its linear pieces (`kernels.
    buoyancy`), plus, with `local`, the excess density that particles carry. That is read on the surface, half
    a cell outside, where the fluid is, and continued into the body by the linear function that fits it best;
    so the sum is exact in a linear profile. With a BodyHeat the displaced volume grows by `expansion` times
    its temperature above the `reference`.

    Added mass: a body that accelerates takes fluid along, C rho V, with C = 1/2 for a ball exactly (released
    at rest it starts with (m - m_f) g / (m + m_f/2)); polytopes have none unless an AddedMass gives their
    tensor. What a tensor that turns with the body adds to forces and torques (Kirchhoff, Munk) is left out,
    and so is the force of fluid that accelerates by itself. A boundary of panels has its own added mass.

    The weight m g stays with the BodySystem.
    Source: Fluid Simulation for Video Games, part 9 (which takes three points of the density); Lamb,
    Hydrodynamics, art. 92.
    """

    reads = (Pose, RigidMotion, Body, TransferGrid, DensityField, Fluid)
    may_read = (*SHAPES, AddedMass)
    writes = (BodyHeat,)
    adds = (BodyLoad,)
    phase = "move"
    periodic = False
    before = (BodySystem, "ConductionSystem")

    added_mass: bool = True
    """fluid is accelerated along with bodies"""
    local: bool = True
    """particles with a density count, not the ambient fluid alone"""

    def added(self, world: World) -> None:
        """The density that particles carry comes from the transfer."""
        world.require(TransferSystem)
        world.require(LoadSystem)
        world.require(BodySystem)

    def process(self, dt: float) -> None:
        """Add force, torque and added mass of every body."""
        entities = body_entities(self.world)
        if not entities:
            return
        fluid = fluid_at_rest(self.world)
        bodies, hulls = gathered(entities)
        mass, moment, volume = displacement(bodies, hulls, *profile(fluid))
        if self.local:
            self._excess(bodies, hulls, volume, mass, moment)
        factor = _swelling(entities, fluid)
        mass, moment = mass * factor, moment * factor[:, None]
        gravity = fluid.gravity.astype(np.float64)
        loads = [entity[BodyLoad] for entity in entities]
        number = self.world.dtype
        solid = bodies.shape != 2
        add_spread((-(mass * solid)[:, None] * gravity).astype(number), [load.force for load in loads])
        add_spread(
            (-np.cross(moment * solid[:, None], gravity)).astype(number), [load.torque for load in loads]
        )
        if self.added_mass:
            whole = _coefficients(entities, bodies) * (mass * solid)[:, None, None]
            add_spread(whole.astype(number), [load.added for load in loads])

    def lint(self, world: World) -> list[str]:
        """Warm particles that lift nothing."""
        return temperature_lint(self, world) if self.local else []

    def _excess(self, bodies: Bodies, hulls: Hulls, volume: Array, mass: Array, moment: Array) -> None:
        """Add what particles have more than the ambient fluid, continued linearly into the bodies."""
        from ecs_fluid.kernels.grids.interpolation import interpolate

        grid, field = self.field(TransferGrid), self.field(DensityField)
        if not field.excess.any():
            return
        out = 0.5 * float(grid.spacing.min())
        places, owner = probes(bodies, hulls, out)
        inside = ((places >= grid.origin) & (places <= grid.origin + grid.spacing * grid.cells)).all(axis=1)
        excess = np.zeros(len(places))
        if not inside.any():
            return
        excess[inside] = interpolate(places[inside], grid.origin, grid.spacing, field.excess)
        starts = np.searchsorted(owner, np.arange(len(bodies.x) + 1))
        for i in np.unique(owner[excess != 0]):
            rows = slice(starts[i], starts[i + 1])
            away = places[rows] - bodies.x[i]
            fit, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(away)), away]), excess[rows], rcond=None)
            mass[i] += volume[i] * fit[0]
            moment[i] += volume[i] * second_moment(bodies, i) @ fit[1:]


def displacement(bodies: Bodies, hulls: Hulls, heights: Array, rho: Array) -> tuple[Array, Array, Array]:
    """Displaced mass (n,) kg, its moment (n, 3) kg m, and volume (n,) m^3 in a fluid of those densities."""
    from ecs_fluid.kernels.bodies.buoyancy import displaced

    n = len(bodies.x)
    mass, moment, volume = np.empty(n), np.empty((n, 3)), np.empty(n)
    shapes = bodies.shape, bodies.radius, bodies.hull, hulls
    displaced(*shapes, bodies.x, bodies.q, heights, rho, mass, moment, volume)
    return mass, moment, volume


def profile(fluid: FluidAtRest) -> tuple[Array, Array]:
    """(heights, densities) of the fluid at rest, float64; between heights the density is taken as linear."""
    (values, heights), (warm, places) = fluid.densities, fluid.temperatures
    if len(warm) > 1:
        heights, values = places, density_of(fluid, warm)
    return np.ascontiguousarray(heights, np.float64), np.ascontiguousarray(values, np.float64)


def probes(bodies: Bodies, hulls: Hulls, out: float) -> tuple[Array, Array]:
    """Places (m, 3) `out` m off the surfaces of solid bodies, and the bodies (m,) they belong to, rising."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL, SOLID

    balls = np.flatnonzero(bodies.shape == BALL)
    spheres = bodies.x[balls, None] + (bodies.radius[balls, None] + out)[..., None] * _directions()
    places, owner = [spheres.reshape(-1, 3)], [np.repeat(balls, spheres.shape[1])]
    for i in np.flatnonzero(bodies.shape == SOLID):
        h = bodies.hull[i]
        corners = hulls.vertices[hulls.vertex_start[h] : hulls.vertex_start[h + 1]]
        planes = hulls.planes[hulls.plane_start[h] : hulls.plane_start[h + 1]]
        middles = [
            corners[hulls.loops[hulls.loop_start[k] : hulls.loop_start[k + 1]]].mean(axis=0)
            for k in range(hulls.plane_start[h], hulls.plane_start[h + 1])
        ]
        sizes = np.linalg.norm(corners, axis=1, keepdims=True)
        local = np.vstack([np.array(middles) + out * planes[:, :3], corners * (1 + out / sizes)])
        places.append(bodies.x[i] + local @ matrix_of(bodies.q[i]).T)
        owner.append(np.full(len(local), i))
    whose = np.concatenate(owner)
    order = np.argsort(whose, kind="stable")
    return np.concatenate(places)[order], whose[order]


def second_moment(bodies: Bodies, i: int) -> Array:
    """int r r^T dV / V (3, 3) m^2 of body i in world axes, from the inertia of a body of even density."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    turn = matrix_of(bodies.q[i])
    inertia = bodies.inertia[i] / bodies.mass[i]
    return np.asarray(turn @ (0.5 * np.trace(inertia) * np.eye(3) - inertia) @ turn.T)


def _swelling(entities: list[Entity], fluid: FluidAtRest) -> Array:
    """Displaced over cold volume (n,) of all bodies, 1; at least 0. Missing references become the fluid's."""
    factor = np.ones(sum(map(len, entities)))
    for entity, rows in rows_of_each(entities):
        if BodyHeat in entity:
            heat, around = entity[BodyHeat], temperature_at(fluid, entity[Pose].x[:, 2])
            heat.reference = np.where(heat.reference, heat.reference, around)
            factor[rows] += heat.expansion * (heat.T.astype(np.float64) - heat.reference)
    return np.maximum(factor, 0.0)


def _coefficients(entities: list[Entity], bodies: Bodies) -> Array:
    """Added over displaced mass (n, 3, 3) in world axes."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL

    out = np.zeros((len(bodies.x), 3, 3))
    out[bodies.shape == BALL] = 0.5 * np.eye(3)
    for entity, rows in rows_of_each(entities):
        if AddedMass in entity:
            for k, tensor in enumerate(entity[AddedMass].coefficient.astype(np.float64), rows.start):
                turn = matrix_of(bodies.q[k])
                out[k] = turn @ tensor @ turn.T
    return out


def _directions() -> Array:
    """Corners (12, 3) of an icosahedron: means over them are exact for polynomials up to degree 5."""
    rows = [np.roll([0.0, a, b * GOLDEN], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)]
    return np.asarray(np.array(rows) / np.sqrt(1 + GOLDEN**2))
