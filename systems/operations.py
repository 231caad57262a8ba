"""Plain particle operations: wind, acceleration, inertia."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Acceleration, InertialVelocity, Liquid, Velocity
from ecs_fluid.fluid import Fluid
from ecs_fluid.keyframes import KeyedVector, value_at
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.world import World


class WindSystem(System):
    """Uniform wind: u += U for what moves particles, U in m/s, constant or keyed in time."""

    adds = (Velocity,)
    phase = "rates"
    distribution = "rows"

    velocity: KeyedVector
    """wind velocity, m/s; may be keyed in time"""
    on: tuple[Name, ...] = ()
    """entities blown by it; default all"""

    def added(self, world: World) -> None:
        """Refuse names of entities that do not exist."""
        for name in self.on:
            world[name]

    def process(self, dt: float) -> None:
        """Add the wind to the velocities."""
        from ecs_fluid.kernels.compiled.integrate import shift

        wind = value_at(self.velocity, self.world.time).astype(self.world.dtype)
        for entity, (velocity,) in self.entities(Velocity):
            if not self.on or entity.name in self.on:
                shift(velocity.u, wind)


def wind_at(world: World, time: float) -> Array:
    """The winds (3,) m/s that blow on everything at `time` s."""
    total = np.zeros(3)
    for system in world.systems:
        if isinstance(system, WindSystem) and not system.on:
            total += value_at(system.velocity, time)
    return total


class InertiaSystem(System):
    """Inertia of particles with an own velocity v: u += v, and dv/dt = -drag v.

    Those of a liquid are moved by the SphSystem.
    """

    reads = (InertialVelocity,)
    may_read = (Liquid,)
    adds = (Velocity, Acceleration)
    phase = "rates"
    distribution = "rows"

    drag: float = Field(default=0.0, ge=0)
    """rate at which the own velocity is lost to the fluid, 1/s"""

    def process(self, dt: float) -> None:
        """Add own velocities, and their drag."""
        for entity, (inertial, velocity) in self.entities(InertialVelocity, Velocity):
            if Liquid not in entity:
                velocity.u += inertial.v
        if self.drag:
            drag = self.world.dtype(self.drag)
            for inertial, acceleration in self.query(InertialVelocity, Acceleration):
                acceleration.a -= drag * inertial.v


class AccelerateSystem(System):
    """Uniform acceleration of particles with an own velocity: dv/dt = a, in m/s^2 (gravity on sparks).

    Gravity pulls at the particles of a liquid through the SphSystem, so without an `acceleration` they are
    left out.
    """

    reads = (Fluid,)
    may_read = (Liquid,)
    adds = (Acceleration,)
    phase = "rates"
    distribution = "rows"

    acceleration: KeyedVector | None = None
    """acceleration, m/s^2; may be keyed in time; default gravity"""
    on: tuple[Name, ...] = ()
    """entities that feel it; default all with an own velocity"""

    def added(self, world: World) -> None:
        """An own velocity needs the InertiaSystem to move anything."""
        for name in self.on:
            world[name]
        world.require(InertiaSystem)

    def process(self, dt: float) -> None:
        """Add the acceleration."""
        from ecs_fluid.kernels.compiled.integrate import shift

        now = (
            self.world.gravity if self.acceleration is None else value_at(self.acceleration, self.world.time)
        )
        push = now.astype(self.world.dtype)
        for entity, (acceleration,) in self.entities(Acceleration):
            pulled = self.acceleration is None and Liquid in entity
            if not pulled and (not self.on or entity.name in self.on):
                shift(acceleration.a, push)
