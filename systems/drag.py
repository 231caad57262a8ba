"""Drag laws: the effect of viscosity on bodies whose flow the particles do not resolve."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE, Body, BodyLoad, Pose, RigidMotion, Surroundings
from ecs_fluid.entity import Entity
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem, idle_lint
from ecs_fluid.systems.buoyancy import profile
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    add_loads,
    body_entities,
    column_of,
    gathered,
    hinged_names,
    load_of,
    move_freely,
    some_of,
)
from ecs_fluid.systems.shared.braking import brake_spin, gained
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest
from ecs_fluid.systems.shared.populations import rows_of_each
from ecs_fluid.systems.shared.surface_areas import frontal_areas
from ecs_fluid.systems.surroundings import SurroundingsSystem, radii
from ecs_fluid.world import World

NEWTON = 0.44
"""Drag coefficient of a ball at Reynolds numbers from 1,000 to the drag crisis."""

CYLINDER = 1.18
"""Drag coefficient of a cylinder in the limit of no viscosity, by Sucker and Brauer."""

FLAT = 2.0
"""Mean frontal area over that of the ball of the volume, above which a body is told: a square plate eight
times as wide as thick, or a rod thirteen times as long as wide."""

LAWS = {3: ("schiller_naumann", "stokes", "constant"), 2: ("sucker_brauer", "constant")}
"""Drag laws by the dimension of the world, the default first."""


class DragSystem(System):
    """Drag of balls, F = -1/2 rho C_d pi R^2 |w| w, braking of their spin, and Magnus lift.

    w is the velocity relative to the fluid at the centre, Re = 2 R |w| / nu, nu the fluid's viscosity.
    law "stokes": C_d = 24/Re; "schiller_naumann": 24/Re (1 + 0.15 Re^0.687) up to Re = 1000, then 0.44;
    "constant": `coefficient`.
    Torque: -8 pi rho nu R^3 (spin - omega/2), the creeping one, with the vorticity omega of the fluid there.
    Lift (Magnus): `lift` pi rho R^3 spin cross w, with the factor 1 in creeping flow, measured at 0.1 to 0.4
    in fast flow. A polytope, or a body of parts, counts as the ball of its volume.

    In a plane bodies are cylinders across it, and all is that of a metre: F = -rho C_d R |w| w with law
    "sucker_brauer", C_d = 1.18 + 6.8/Re^0.89 + 1.96/Re^0.5 - 4e-4 Re/(1 + 3.64e-7 Re^2), measured at Re from
    1e-4 to 2e5, or "constant"; slow drag is not proportional to the speed there (Stokes's paradox). Torque:
    -4 pi rho nu R^2 (spin - omega/2). Lift: `lift` 2 pi rho R^2 spin cross w, of Kutta and Joukowski with the
    circulation of the surface. A prism counts as the cylinder of its section.

    Velocities follow the exact solution of (m + m_a) dw/dt = p - k w + lift over the tick (`kernels.bodies.
    decay`). m_a is the tensor of added mass by which the BodySystem divides, and p holds all other forces.
    Place and spin are those in the middle of the tick, and k is the mean of its values at the start and at
    the end to which that value would lead, which is of second order in time. So any dt is stable, |w| never
    grows by drag, and the terminal velocity is exact. The spin follows I dw/dt = -8 pi rho nu R^3 w, w =
    spin - omega/2, through the `brake` of the BodyLoad: exactly over half the tick, with the tensor I at the
    body's orientation when the tick begins; then the body turns freely; then over the other half. So the
    energy of the spin never grows either, however far the body turns in a tick. Source: Schiller and Naumann,
    Z. Ver. Dtsch. Ing. 77 (1933); Lamb, Hydrodynamics, art. 334 and 337; Rubinow and Keller, J. Fluid Mech.
    11 (1961); Sucker and Brauer, Waerme- und Stoffuebertragung 8 (1975).
    """

    reads = (Pose, RigidMotion, Body, BodyLoad, Surroundings, Fluid)
    may_read = SHAPES
    adds = (BodyLoad,)
    phase = "move"
    dimensions = (2, 3)
    periodic = False
    before = (BodySystem, "AlignmentSystem")

    law: Literal["stokes", "schiller_naumann", "sucker_brauer", "constant"] | None = None
    """drag coefficient by the Reynolds number; default schiller_naumann, in a plane sucker_brauer"""
    coefficient: float = Field(default=0.47, ge=0, le=100)
    """constant: drag coefficient, 1"""
    flow: bool = True
    """by the velocity relative to the fluid that vortons and winds move, not relative to rest"""
    torque: bool = True
    """drag slows the spin too"""
    lift: float = Field(default=0.0, ge=0, le=10)
    """factor of the lift by spin, 1; 0 leaves it out"""

    def added(self, world: World) -> None:
        """Check the law, and add the systems that zero loads, find the surroundings and move bodies."""
        laws = LAWS[world.dimension]
        if self.law is not None and self.law not in laws:
            raise RecipeError(
                f"DragSystem: law = {self.law!r} is not for a world of dimension = {world.dimension}; use "
                f"{' or '.join(map(repr, laws))}"
            )
        world.require(LoadSystem)
        world.require(SurroundingsSystem)
        world.require(BodySystem)

    @property
    def _law(self) -> str:
        return self.law or LAWS[self.world.dimension][0]

    def lint(self, world: World) -> list[str]:
        """Warn of no free bodies, vortons beside one, whose flow at its centre is no wind, no viscosity."""
        texts = idle_lint(self, world, "inertia")
        bodies = body_entities(world)
        wind = any(hasattr(system, "add_wind") for system in world.systems)
        free = any((entity[Body].motion == FREE).any() for entity in bodies)
        if self.flow and free and not wind and named(world.systems, "BoundarySystem"):
            texts.append(
                "DragSystem: flow = true uses the velocity of the fluid at the centres of bodies, which the "
                "vortons of BoundarySystem disturb; set flow = false"
            )
        if not self.flow and free and wind:
            texts.append(
                "DragSystem: with flow = false no wind acts on bodies, whose drag is relative to fluid at "
                "rest; set flow = true, or leave the wind out"
            )
        if world.dimension == 3 and self._law != "constant":
            texts += _flat_lint(bodies)
        if hinged := hinged_names(bodies):
            texts.append(
                f"DragSystem: drag acts at the hinge of {hinged}, which bears it; it slows "
                "spins, but no wind turns such bodies; a ReactionSystem does, with angular = 'tracers', or "
                "'vortons' beside a BoundarySystem"
            )
        if world.fluid[Fluid].viscosity > 0 or (self._law == "constant" and not self.torque):
            return texts
        return [
            *texts,
            f"DragSystem: the fluid has no viscosity, so law = {self._law!r} gives "
            f"{'no drag' if self._law == 'stokes' else 'drag at an infinite Reynolds number'}, and nothing "
            "slows the spin of bodies; give the fluid a viscosity, such as 1.5e-5 m^2/s (air)",
        ]

    def process(self, dt: float) -> None:
        """Add the drag of every free body."""
        from ecs_fluid.kernels.bodies.table import CONTAINER

        entities = body_entities(self.world)
        if not entities:
            return
        nu = float(self.field(Fluid).viscosity)
        bodies, hulls = gathered(entities)
        across = self.world.across
        size = radii(bodies, hulls, across)
        flow, turning = (column_of(entities, Surroundings, name) * self.flow for name in ("u", "turning"))
        wind = bodies.v - flow
        move_freely(bodies, 0.5 * dt)
        rho = np.interp(bodies.x[:, 2], *profile(fluid_at_rest(self.world)))
        added = load_of(entities, "added")
        free = (bodies.motion == FREE) & (bodies.shape != CONTAINER)
        free &= bodies.leader == np.arange(len(free))  # the drag of a body acts on its first part
        if self.torque:
            factor, power = (8, 3) if across is None else (4, 2)
            slow = np.where(free, factor * np.pi * rho * nu * size**power, 0.0)
            swirl = slow[:, None] * turning
            add_loads(entities, brake=slow, swirl=swirl)
            brake_spin(bodies, slow, swirl, 0.5 * dt)
        gravity = self.world.gravity * (np.arange(3) != across)
        pull = load_of(entities, "force") + bodies.mass[:, None] * gravity
        inertia = bodies.mass[:, None, None] * np.eye(3) + 0.5 * (added + added.transpose(0, 2, 1))
        turned = size**3 if across is None else 2 * size**2
        lift = (self.lift * np.pi * rho * turned)[:, None] * bodies.angular_velocity
        aside = -np.cross(lift[:, None], np.eye(3)).transpose(0, 2, 1)

        def ending(k: Array) -> Array:
            """Momentum (n, 3) gained in the tick with the constant coefficients k (n,)."""
            return gained(inertia, k[:, None, None] * np.eye(3) + aside, pull, wind, dt)

        k = self._coefficient(wind, size, rho, nu)
        if self._law != "stokes":
            ahead = wind + np.linalg.solve(inertia, ending(k)[..., None])[..., 0]
            k = 0.5 * (k + self._coefficient(ahead, size, rho, nu))
        # The mean force over the tick, less the loads that are already there.
        acts = free & ((k > 0) | lift.any(axis=1))
        mean = np.where(acts[:, None], ending(k) / dt - pull, 0.0)
        add_loads(entities, force=mean)

    def _coefficient(self, wind: Array, size: Array, rho: Array, nu: float) -> Array:
        """k (n,) kg/s in F = -k w, at the relative velocities `wind` (n, 3) m/s."""
        speed = np.linalg.norm(wind, axis=1)
        front = np.pi * size**2 if self.world.dimension == 3 else 2 * size
        creeping = 6 * np.pi * rho * nu * size
        if self._law == "stokes":
            return np.asarray(creeping)
        if self._law == "constant":
            return np.asarray(0.5 * rho * self.coefficient * front * speed)
        if self._law == "sucker_brauer":
            return np.asarray(0.5 * rho * front * _of_cylinders(2 * size, speed, nu))
        newton = 0.5 * rho * NEWTON * front * speed
        if nu == 0.0:
            return np.asarray(newton)
        reynolds = 2 * size * speed / nu
        return np.asarray(np.where(reynolds <= 1000, creeping * (1 + 0.15 * reynolds**0.687), newton))


def _flat_lint(entities: list[Entity]) -> list[str]:
    """Warn of free bodies of flat faces that are far from the balls of their volumes."""
    from ecs_fluid.kernels.bodies.table import SOLID

    if not entities:
        return []
    bodies, hulls = gathered(entities)
    disk = np.pi * radii(bodies, hulls) ** 2
    free = (bodies.motion == FREE) & (bodies.shape == SOLID) & ~bodies.hinge.any(axis=1)
    wide = np.zeros(len(disk))
    wide[free] = frontal_areas(some_of(bodies, free), hulls) / disk[free]
    texts = []
    for entity, rows in rows_of_each(entities):
        if len(entity) and wide[rows].max() > FLAT:
            most = rows.start + int(wide[rows].argmax())
            texts.append(
                f"DragSystem: {entity.name!r} counts as the ball of its volume, but its mean frontal area is "
                f"{wide[most]:.2g} times as large; use law = 'constant' with a coefficient of C A / "
                f"{disk[most]:.3g} m^2, C and A being the body's own drag coefficient and frontal area"
            )
    return texts


def _of_cylinders(width: Array, speed: Array, nu: float) -> Array:
    """Speed times drag coefficient (n,) m/s by Sucker and Brauer; 0 at rest."""
    if nu == 0.0:
        return CYLINDER * speed
    reynolds = width * speed / nu
    falls = 6.8 * reynolds**0.11 + 1.96 * reynolds**0.5
    turbulent = 4e-4 * reynolds / (1 + 3.64e-7 * reynolds**2)
    return np.asarray(speed * (CYLINDER - turbulent) + nu / width * falls)
