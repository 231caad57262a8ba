"""Drag laws: what viscosity does to bodies that the particles do not resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import (
    FREE,
    Body,
    BodyLoad,
    Pose,
    RigidMotion,
)
from ecs_fluid.fluid import Fluid
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.buoyancy import displacement, profile
from ecs_fluid.systems.operations import winds
from ecs_fluid.systems.shared.body_tables import SHAPES, body_entities, gathered
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest
from ecs_fluid.systems.shared.populations import add_spread
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

NEWTON = 0.44
"""Drag coefficient of a ball at Reynolds numbers from 1,000 up to the drag crisis."""


class DragSystem(System):
    """Drag of balls, F = -1/2 rho C_d pi R^2 |w| w, braking of their spin, and Magnus lift.

    w is the velocity relative to the fluid at the centre, Re = 2 R |w| / nu, nu the fluid's viscosity.
    law "stokes": C_d = 24/Re; "schiller_naumann": 24/Re (1 + 0.15 Re^0.687) up to Re = 1000, then 0.44;
    "constant": `coefficient`.
    Torque: -8 pi rho nu R^3 (spin - omega/2), the creeping one, with the vorticity omega of the fluid there.
    Lift (Magnus): `lift` pi rho R^3 spin cross w, with the factor 1 in creeping flow, measured at 0.1 to 0.4
    in fast flow. A polytope counts as the ball of its volume.

    With k of the start of the tick, velocities follow (m + m_a) dw/dt = p - k w + lift exactly over the tick
    (`kernels.bodies.decay`), with the added mass as the tensor that the BodySystem divides by, and all other
    forces in p. So any dt is stable, |w| never grows by drag, and the terminal velocity itself is exact. The
    spin follows I dw/dt = -8 pi rho nu R^3 w, w = spin - omega/2, with the tensor I of the body as it is
    turned when the tick begins: it is braked there, by the `kick` of the BodyLoad, and then the body turns
    freely. So the energy of the spin never grows either, however far it turns in a tick. Source: Schiller and
    Naumann, Z. Ver. Dtsch. Ing. 77 (1933); Lamb, Hydrodynamics, art. 334 and 337; Rubinow and Keller, J.
    Fluid Mech. 11 (1961).
    """

    reads = (Pose, RigidMotion, Body, BodyLoad, Fluid)
    may_read = SHAPES
    adds = (BodyLoad,)
    asks = (VelocitySystem, "WindSystem")
    phase = "move"
    periodic = False
    before = (BodySystem, "AlignmentSystem")

    law: Literal["stokes", "schiller_naumann", "constant"] = "schiller_naumann"
    """drag coefficient as a function of the Reynolds number"""
    coefficient: float = Field(default=0.47, ge=0, le=100)
    """drag coefficient of the law 'constant', 1"""
    flow: bool = True
    """relative to the velocity of the fluid, by vortons and winds, not to rest"""
    torque: bool = True
    """the spin is stopped too"""
    lift: float = Field(default=0.0, ge=0, le=10)
    """factor of the lift by spin, 1; 0 leaves it out"""

    def added(self, world: World) -> None:
        """Loads are emptied, and bodies moved."""
        world.require(LoadSystem)
        world.require(BodySystem)

    def lint(self, world: World) -> list[str]:
        """A fluid without viscosity."""
        if world.fluid[Fluid].viscosity > 0 or (self.law == "constant" and not self.torque):
            return []
        return [
            f"DragSystem: the fluid has no viscosity, with which law = {self.law!r} gives "
            f"{'no drag' if self.law == 'stokes' else 'drag at an infinite Reynolds number'} and no spin is "
            "stopped; give the fluid one, such as 1.5e-5 m^2/s (air)"
        ]

    def process(self, dt: float) -> None:
        """Add the drag of every free body."""
        from ecs_fluid.kernels.bodies.decay import braked
        from ecs_fluid.kernels.bodies.table import CONTAINER

        entities = body_entities(self.world)
        if not entities:
            return
        nu = float(self.field(Fluid).viscosity)
        bodies, hulls = gathered(entities)
        volume = volumes(bodies, hulls)
        size = np.cbrt(3 * volume / (4 * np.pi))
        rho = np.interp(bodies.x[:, 2], *profile(fluid_at_rest(self.world)))
        loads = [entity[BodyLoad] for entity in entities]
        force, added = (
            np.concatenate([getattr(load, name) for load in loads]).astype(np.float64)
            for name in ("force", "added")
        )
        free = (bodies.motion == FREE) & (bodies.shape != CONTAINER)
        around, turning = self._flow(entities, bodies.x, size)
        wind = bodies.v - around
        k = self._coefficient(np.linalg.norm(wind, axis=1), size, rho, nu)
        gravity = self.world.gravity
        pull = force + bodies.mass[:, None] * gravity
        inertia = bodies.mass[:, None, None] * np.eye(3) + 0.5 * (added + added.transpose(0, 2, 1))
        lift = (self.lift * np.pi * rho * size**3)[:, None] * bodies.angular_velocity
        loss = k[:, None, None] * np.eye(3) - np.cross(lift[:, None], np.eye(3)).transpose(0, 2, 1)
        gained = np.empty_like(wind)
        braked(inertia, loss, pull, wind, dt, gained)
        number = self.world.dtype
        # The mean force over the tick, less what acts already.
        mean = np.where((free & (k > 0))[:, None], gained / dt - pull, 0.0)
        add_spread(mean.astype(number), [x.force for x in loads])
        if self.torque:
            slow = 8 * np.pi * rho * nu * size**3
            kick = self._spin_braked(bodies, slow, turning, dt)
            add_spread(np.where(free[:, None], kick, 0.0).astype(number), [x.kick for x in loads])

    def _spin_braked(self, bodies: Bodies, slow: Array, turning: Array, dt: float) -> Array:
        """Angular impulse (n, 3) N m s of the torques -slow (spin - turning) over the tick, world axes."""
        from ecs_fluid.kernels.bodies.decay import braked, turns

        turn = np.empty_like(bodies.inertia)
        turns(bodies.q, bodies.inertia, turn)
        local = np.einsum("nji,nj->ni", turn, bodies.angular_velocity - turning)
        gained, nothing = np.empty_like(local), np.zeros_like(local)
        braked(bodies.inertia, slow[:, None, None] * np.eye(3), nothing, local, dt, gained)
        return np.asarray(np.einsum("nij,nj->ni", turn, gained))

    def _flow(self, entities: list[Entity], x: Array, size: Array) -> tuple[Array, Array]:
        """Velocity and half the vorticity (n, 3) of the fluid around bodies, by differences over a radius."""
        if not self.flow:
            return np.zeros_like(x), np.zeros_like(x)
        blowing = [sum(map(self.world.value_now, winds(self.world, e.name)), np.zeros(3)) for e in entities]
        wind = np.repeat(blowing, [len(entity) for entity in entities], axis=0)
        velocity = self.world.system(VelocitySystem)
        if velocity is None:
            return wind, np.zeros_like(x)
        steps = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
        points = x[:, None] + size[:, None, None] * steps
        u = velocity.velocity_at(points.reshape(-1, 3), None).astype(np.float64).reshape(len(x), 7, 3)
        slope = (u[:, 1:4] - u[:, 4:]) / (2 * size[:, None, None])  # slope[:, j, i] = du_i/dx_j
        curl = [slope[:, j, k] - slope[:, k, j] for j, k in ((1, 2), (2, 0), (0, 1))]
        return u[:, 0] + wind, 0.5 * np.stack(curl, axis=1)

    def _coefficient(self, speed: Array, size: Array, rho: Array, nu: float) -> Array:
        """k (n,) kg/s of F = -k w."""
        creeping = 6 * np.pi * rho * nu * size
        if self.law == "stokes":
            return np.asarray(creeping)
        area = np.pi * size**2
        if self.law == "constant":
            return np.asarray(0.5 * rho * self.coefficient * area * speed)
        newton = 0.5 * rho * NEWTON * area * speed
        if nu == 0.0:
            return np.asarray(newton)
        reynolds = 2 * size * speed / nu
        return np.where(reynolds <= 1000, creeping * (1 + 0.15 * reynolds**0.687), newton)


def volumes(bodies: Bodies, hulls: Hulls) -> Array:
    """Volumes (n,) m^3."""
    return displacement(bodies, hulls, np.zeros(1), np.ones(1))[2]
