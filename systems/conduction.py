"""Heat between bodies and the fluid that touches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Temperature, Volume
from ecs_fluid.components.bodies import (
    Body,
    BodyHeat,
    Pose,
    RigidMotion,
)
from ecs_fluid.fluid import Fluid
from ecs_fluid.system import System
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    body_entities,
    column_of,
    gathered,
    near_bodies,
    some_of,
    sum_of_parts,
)
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.populations import rows_of_each, spread
from ecs_fluid.systems.shared.properties import attach_to_vortons
from ecs_fluid.systems.shared.surface_areas import areas
from ecs_fluid.systems.thermal import ExpansionSystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies


class ConductionSystem(System):
    """Conduction of heat between bodies that have a BodyHeat and the particles near them, both ways.

    C dT_b/dt = -sum h A w (T_b - T), rho_0 c_p V dT/dt = h A w (T_b - T). h is the body's `transfer`, A its
    area, and w = V / V_all the share of each particle within `reach` of the surface in the fluid there: V_all
    is the volume of the layer, or of the particles if that is larger. So the result does not depend on the
    number of particles. With the bodies at fixed places it is exact for any dt (`kernels.collision.
    conduction`). C T_b + sum rho_0 c_p V T is kept to rounding; heat counts per volume as in the
    ThermalSystem.

    A particle near several bodies exchanges with the nearest. The part of the layer without particles
    insulates or, with `open_air`, is ambient fluid, to which the body loses heat. A container that has a
    BodyHeat conducts from its walls inwards. Source: Fluid Simulation for Video Games, parts 10 and 11 (part
    10 leaves out dt and heats the hot body; part 11 corrects the sign).
    """

    reads = (Pose, RigidMotion, Body, Position, Volume, Fluid)
    may_read = SHAPES
    writes = (Temperature, BodyHeat)
    phase = "move"
    symmetric = True
    dimensions = (2, 3)
    periodic = False
    after = ("BodySystem", "CombustionSystem", "HeaterSystem", "CoolingSystem")
    warms = True

    reach: float = Field(gt=0, le=1e6)
    """depth of the layer of fluid that touches a body, m"""
    open_air: bool = False
    """exchange heat with the ambient fluid where the layer holds no particles; else such places insulate"""

    def __post_init__(self) -> None:
        self._shapes, self._area = list[bytes](), np.zeros(0)

    def added(self, world: World) -> None:
        """Give vortons a temperature, and add the equation of state for their density."""
        attach_to_vortons(world, Temperature)
        world.require(ExpansionSystem)

    def process(self, dt: float) -> None:
        """Exchange the heat of the tick."""
        from ecs_fluid.kernels.collision.conduction import conduct

        entities = body_entities(self.world)
        if not any(BodyHeat in entity for entity in entities):
            return
        bodies, hulls = gathered(entities)
        leader, own = bodies.leader, np.arange(len(bodies.x))
        # A body without a BodyHeat has no transfer, and its other numbers do not matter.
        T_body, rest, capacity, transfer = (
            column_of(entities, BodyHeat, name) for name in ("T", "rest", "capacity", "transfer")
        )
        fluid = fluid_at_rest(self.world)
        tables = list(self.query(Position, Volume, Temperature))
        _, (x, volume, T) = self.joined(Position, Volume, Temperature)
        T = T.copy()
        taking = np.flatnonzero(transfer > 0)
        touching, of, *_ = near_bodies(some_of(bodies, taking), hulls, x, np.full(len(x), self.reach))
        owner = np.full(len(x), -1)
        owner[touching] = leader[taking[of]]
        area = self._areas(bodies, hulls)
        # Parts have the heat of their body, which its first part stands for.
        warm, lost = (T_body + rest)[leader], np.zeros(len(area))
        conduct(
            owner, T, volume.astype(np.float64),
            float(fluid.density) * float(self.field(Fluid).heat_capacity),
            warm, sum_of_parts(leader, capacity), np.where(leader == own, transfer * area, 0.0),
            self._layers(bodies, area),
            temperature_at(fluid, bodies.x[:, 2]), self.open_air, dt, lost,
        )  # fmt: skip
        spread(T, [table.T for *_, table in tables])
        for entity, rows in rows_of_each(entities):
            if BodyHeat in entity:
                table, now = entity[BodyHeat], warm[leader[rows]]
                table.T = now
                table.rest = now - table.T.astype(np.float64)

    def _areas(self, bodies: Bodies, hulls: Hulls) -> Array:
        """Surfaces (n,) m^2, which are computed where shapes are others than before."""
        every = (bodies.leader, bodies.shape, bodies.hull, bodies.radius, hulls.planes, hulls.vertices)
        shapes = [column.tobytes() for column in every]
        if shapes != self._shapes:
            self._shapes, self._area = shapes, areas(bodies, hulls, self.world.across)
        return self._area

    def _layers(self, bodies: Bodies, area: Array) -> Array:
        """Volume (n,) m^3 of the fluid within reach of each surface; in a plane per metre across it."""
        from ecs_fluid.kernels.bodies.table import BALL, CONTAINER

        r, size = self.reach, bodies.radius
        if self.world.across is not None:  # Steiner's formula; a plane has no containers
            return area * r + np.pi * r**2
        ball = 4 / 3 * np.pi * ((size + r) ** 3 - size**3)
        # Steiner's formula without the term of the edges, which is small beside the other two.
        solid = area * r + 4 / 3 * np.pi * r**3
        return np.where(bodies.shape == BALL, ball, np.where(bodies.shape == CONTAINER, area * r, solid))
