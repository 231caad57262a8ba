"""Plain particle operations: wind, acceleration, inertia."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Acceleration, InertialVelocity, Liquid, Velocity, Whitewater
from ecs_fluid.fluid import Fluid, key_values
from ecs_fluid.keyframes import KeyedVector, value_at
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.shared.populations import of_liquid
from ecs_fluid.world import World

ALONG = 0.99
"""Two directions count as the same from this cosine of the angle between them on."""


class WindSystem(System):
    """Uniform wind: u += U for what moves particles, U in m/s, constant or keyed in time."""

    adds = (Velocity,)
    phase = "rates"
    distribution = "rows"
    dimensions = (2, 3)

    velocity: KeyedVector
    """wind velocity, m/s; may be keyed in time"""
    on: tuple[Name, ...] = ()
    """entities blown by it; default all"""

    def process(self, dt: float) -> None:
        """Add the wind to the velocities."""
        from ecs_fluid.kernels.compiled.columns import shift

        wind = self.world.value_now(self.velocity).astype(self.world.dtype)
        for _, (velocity,) in self.chosen(Velocity):
            shift(velocity.u, wind)

    def add_wind(self, x: Array, u: Array, du: Array | None = None) -> None:
        """Add the wind at this time to velocities `u` (n, 3) m/s; it is the same at all places."""
        u += self.world.value_now(self.velocity).astype(u.dtype)


def winds(world: World, name: str | None = None) -> list[Any]:
    """Velocities, constant or keyed, of the winds that blow on everything, and on the entity of that name."""
    found = (system for system in world.systems if isinstance(system, WindSystem))
    return [system.velocity for system in found if not system.on or name in system.on]


def gusts(world: World, name: str | None = None) -> list[Any]:
    """Winds that differ from place to place (turbulence, systems of users), as `winds`."""
    return [one for one in world._winds(name) if not isinstance(one, WindSystem)]


def wind_at(world: World, time: float) -> Array:
    """The winds (3,) m/s that blow on everything at `time` s."""
    return sum((value_at(velocity, time) for velocity in winds(world)), np.zeros(3))


class InertiaSystem(System):
    """Inertia of particles with an own velocity v: u += v, and dv/dt = -drag v.

    The SphSystem moves particles of liquid, and the WhitewaterSystem its whitewater.
    """

    reads = (InertialVelocity,)
    may_read = (Liquid, Whitewater)
    adds = (Velocity, Acceleration)
    phase = "rates"
    several = False
    distribution = "rows"
    dimensions = (2, 3)

    drag: float = Field(default=0.0, ge=0)
    """rate at which the own velocity is lost to the fluid, 1/s"""

    def process(self, dt: float) -> None:
        """Add own velocities to velocities, and drag to their rates."""
        for entity, (inertial, velocity) in self.entities(InertialVelocity, Velocity):
            if not of_liquid(entity):
                velocity.u += inertial.v
        if self.drag:
            drag = self.world.dtype(self.drag)
            for inertial, acceleration in self.query(InertialVelocity, Acceleration):
                acceleration.a -= drag * inertial.v


class AccelerateSystem(System):
    """Uniform acceleration of particles with an own velocity: dv/dt = a, in m/s^2 (gravity on sparks).

    Particles of a liquid get it from the SphSystem, in its steps. Liquid and whitewater have gravity anyway,
    so without an `acceleration` they are left out.
    """

    reads = (Fluid,)
    may_read = (Liquid, Whitewater)
    adds = (Acceleration,)
    phase = "rates"
    distribution = "rows"
    dimensions = (2, 3)

    acceleration: KeyedVector | None = None
    """acceleration in all, in place of gravity, m/s^2; may be keyed in time; default gravity"""
    on: tuple[Name, ...] = ()
    """entities that feel it; default all with an own velocity"""

    def added(self, world: World) -> None:
        """Add the InertiaSystem, without which own velocities move nothing."""
        world.require(InertiaSystem)

    def lint(self, world: World) -> list[str]:
        """Warn of an acceleration along gravity, of a liquid: is it gravity stated twice, or in addition?"""
        if not any(of_liquid(one) for one in world.entities if not self.on or one.name in self.on):
            return []
        gravity = world.fluid[Fluid].gravity
        for own in map(np.asarray, key_values(self.acceleration)):
            along = gravity @ own > ALONG * np.linalg.norm(own) * np.linalg.norm(gravity, axis=1)
            if along.any():
                return [
                    f"AccelerateSystem has acceleration = {own.tolist()} m/s^2 along the fluid's gravity "
                    f"{gravity[along][0].tolist()} m/s^2, and both act; leave one of them out"
                ]
        return []

    def process(self, dt: float) -> None:
        """Add the acceleration."""
        from ecs_fluid.kernels.compiled.columns import shift

        own = self.acceleration
        push = (self.world.gravity if own is None else self.world.value_now(own)).astype(self.world.dtype)
        for entity, (acceleration,) in self.chosen(Acceleration):
            if self.acceleration is not None or not of_liquid(entity):
                shift(acceleration.a, push)
