"""Drag laws: what viscosity does to bodies that the particles do not resolve."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import (
    FREE,
    BallShape,
    Body,
    BodyLoad,
    HullShape,
    HullTable,
    Pose,
    RigidMotion,
)
from ecs_fluid.system import System
from ecs_fluid.systems.ambient import AmbientSystem
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.body_tables import body_entities, gathered
from ecs_fluid.systems.buoyancy import profile
from ecs_fluid.systems.populations import add_spread
from ecs_fluid.systems.velocity import VelocitySystem
from ecs_fluid.world import World

NEWTON = 0.44
"""Drag coefficient of a ball at Reynolds numbers from 1,000 up to the drag crisis."""


class DragSystem(System):
    """Drag of balls, F = -1/2 rho C_d pi R^2 |w| w, the torque that stops their spin, and lift by spin.

    w is the velocity relative to the fluid at the centre, Re = 2 R |w| / nu. law "stokes": C_d = 24/Re;
    "schiller_naumann": 24/Re (1 + 0.15 Re^0.687) up to Re = 1000, then 0.44; "constant": `coefficient`.
    Torque: -8 pi rho nu R^3 (spin - omega/2), the creeping one, with the vorticity omega of the fluid there.
    Lift (Magnus): `lift` pi rho R^3 spin cross w, with the factor 1 in creeping flow, measured at 0.1 to 0.4
    in fast flow. A polytope counts as the ball of its volume.

    Written F = -k w, with k of the start of the tick, it acts by its mean over the exact exponential towards
    the terminal velocity, so that any dt is stable, and the terminal velocity itself is exact.
    Source: Schiller and Naumann, Z. Ver. Dtsch. Ing. 77 (1933); Lamb, Hydrodynamics, art. 334 and 337;
    Rubinow and Keller, J. Fluid Mech. 11 (1961).
    """

    reads = (Pose, RigidMotion, Body, BallShape, HullShape, HullTable, BodyLoad)
    adds = (BodyLoad,)
    phase = "move"
    before = (BodySystem,)

    law: Literal["stokes", "schiller_naumann", "constant"] = Field(
        "schiller_naumann", description="drag coefficient as a function of the Reynolds number"
    )
    viscosity: float = Field(1.5e-5, gt=0, le=1e6, description="kinematic viscosity of the fluid, m^2/s")
    coefficient: float = Field(0.47, ge=0, le=100, description="drag coefficient of the law 'constant', 1")
    flow: bool = Field(True, description="relative to the velocity that the vortons give, not to rest")
    torque: bool = Field(True, description="the spin is stopped too")
    lift: float = Field(0.0, ge=0, le=10, description="factor of the lift by spin, 1; 0 leaves it out")

    def added(self, world: World) -> None:
        """The density is the ambient's."""
        world.require(AmbientSystem)
        world.require(LoadSystem)
        world.require(BodySystem)

    def process(self, dt: float) -> None:
        """Add the drag of every free body."""
        from ecs_fluid.kernels.contacts import CONTAINER

        entities = body_entities(self.world)
        if not entities:
            return
        ambient = self.world.require(AmbientSystem).present()
        bodies, hulls = gathered(entities)
        volume = volumes(bodies, hulls)
        size = np.cbrt(3 * volume / (4 * np.pi))
        rho = np.interp(bodies.x[:, 2], *profile(ambient))
        loads = [entity[BodyLoad] for entity in entities]
        force, added = (
            np.concatenate([getattr(load, name) for load in loads]).astype(np.float64)
            for name in ("force", "added")
        )
        free = (bodies.motion == FREE) & (bodies.shape != CONTAINER)
        inertia = bodies.mass + np.trace(added, axis1=1, axis2=2) / 3
        around, turning = self._flow(bodies.x, size)
        wind = bodies.v - around
        k = self._coefficient(np.linalg.norm(wind, axis=1), size, rho)
        gravity = self.world.require(BodySystem).gravity_now()
        lift = (self.lift * np.pi * rho * size**3)[:, None] * np.cross(bodies.spin, wind)
        pull = force + lift + bodies.mass[:, None] * gravity
        # Mean force over the tick: what makes v relax to the terminal velocity by exp(-k dt/m).
        part = np.where(k > 0, -np.expm1(-k * dt / inertia), 0.0)
        ends = around + pull / np.maximum(k, 1e-300)[:, None]
        mean = lift + (ends - bodies.v) * (inertia * part / dt)[:, None] - pull
        number = self.world.dtype
        add_spread(np.where((free & (k > 0))[:, None], mean, 0.0).astype(number), [x.force for x in loads])
        if self.torque:
            slow = 8 * np.pi * rho * self.viscosity * size**3
            turned = np.trace(bodies.inertia, axis1=1, axis2=2) / 3
            brake = (turning - bodies.spin) * (-np.expm1(-slow * dt / turned) * turned / dt)[:, None]
            add_spread(np.where(free[:, None], brake, 0.0).astype(number), [x.torque for x in loads])

    def _flow(self, x: Array, size: Array) -> tuple[Array, Array]:
        """Velocity and half the vorticity (n, 3) of the fluid around bodies, by differences over a radius."""
        velocity = self.world.system(VelocitySystem)
        if not self.flow or velocity is None:
            return np.zeros_like(x), np.zeros_like(x)
        steps = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
        points = x[:, None] + size[:, None, None] * steps
        u = velocity.velocity_at(points.reshape(-1, 3), None).astype(np.float64).reshape(len(x), 7, 3)
        slope = (u[:, 1:4] - u[:, 4:]) / (2 * size[:, None, None])  # slope[:, j, i] = du_i/dx_j
        curl = [slope[:, j, k] - slope[:, k, j] for j, k in ((1, 2), (2, 0), (0, 1))]
        return u[:, 0], 0.5 * np.stack(curl, axis=1)

    def _coefficient(self, speed: Array, size: Array, rho: Array) -> Array:
        """k (n,) kg/s of F = -k w."""
        creeping = 6 * np.pi * rho * self.viscosity * size
        if self.law == "stokes":
            return np.asarray(creeping)
        area = np.pi * size**2
        if self.law == "constant":
            return np.asarray(0.5 * rho * self.coefficient * area * speed)
        reynolds = 2 * size * speed / self.viscosity
        newton = 0.5 * rho * NEWTON * area * speed
        return np.where(reynolds <= 1000, creeping * (1 + 0.15 * reynolds**0.687), newton)


def volumes(bodies: object, hulls: object) -> Array:
    """Volumes (n,) m^3."""
    from ecs_fluid.kernels.buoyancy import displaced

    n = len(bodies.x)  # type: ignore[attr-defined]
    mass, moment, volume = np.empty(n), np.empty((n, 3)), np.empty(n)
    b = bodies
    one = np.zeros(1), np.ones(1)
    displaced(b.shape, b.radius, b.hull, hulls, b.x, b.q, *one, mass, moment, volume)  # type: ignore[attr-defined]
    return volume
