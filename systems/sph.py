"""Liquid by smoothed particle hydrodynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position, Strength, Velocity
from ecs_fluid.components.bodies import BodyLoad
from ecs_fluid.components.liquid import (
    Liquid,
    LiquidBudget,
    LiquidModel,
    LiquidPressure,
    LiquidPush,
    LiquidState,
)
from ecs_fluid.errors import FluidError
from ecs_fluid.fluid import Fluid
from ecs_fluid.recipe import Name
from ecs_fluid.system import System, Types
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.buoyancy import BuoyancySystem
from ecs_fluid.systems.liquid.all_liquid import AllLiquid, Particles
from ecs_fluid.systems.liquid.around import carried, liquid_around
from ecs_fluid.systems.liquid.constants import common_viscosity
from ecs_fluid.systems.liquid.lint import liquid_lint
from ecs_fluid.systems.liquid.march import MarchResult, march
from ecs_fluid.systems.liquid.places import bodies_at
from ecs_fluid.systems.liquid.start import fill_model, remove_in_solids
from ecs_fluid.systems.liquid.steps import MOST_STEPS, StepLimits
from ecs_fluid.systems.liquid.tick_warnings import warn_of_error, warn_of_push, warn_of_thrown_bodies
from ecs_fluid.systems.liquid_push import LiquidPushSystem
from ecs_fluid.systems.shared.body_tables import BODIES, body_entities
from ecs_fluid.systems.shared.populations import rows_of_each, spread
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.pair_lists import PairLists
    from ecs_fluid.kernels.sph.step import Evaluation, LiquidLaw
    from ecs_fluid.systems.liquid.places import Bodies


class SphSystem(System):
    """Liquid: weakly compressible smoothed particle hydrodynamics of all particles with a Liquid.

        m du/dt = - sum_j (P_i + P_j) grad W_ij - P_i grad G_i + viscosity + m g (1 - rho_s / rho),  dx/dt = u

    P = V p / nu^2 and p = (rho c^2 / 7) (nu^7 - 1), but never below 0. nu is the compression (1 at rest) by
    neighbours, walls and the excess e that each particle carries. Pairs push each other equally along their
    line, so momentum and angular momentum are kept to rounding. Pressure, gravity and walls at rest have an
    energy, which only viscosity, the diffusion of e, and impacts on bodies take. Planes of a container that
    are parallel or at right angles to all its others, as in a box, mirror the liquid; other planes, balls and
    polytopes add G. All are smooth, and get the reaction (BodyLoad). A particle that passes a plane of a
    container continues as its image. In `hydrostatic` entities, e starts with what the sum over neighbours
    lacks at their upper surface, and beside bodies, and everywhere if container walls lean, with what makes
    the pressure that of the depth. Equations: `kernels.sph.forces`, `kernels.sph.wall_pressure`,
    `kernels.sph.mirror_images`.
    Source: Monaghan, Rep. Prog. Phys. 68 (2005), and the sources named there. It replaces the liquid of Fluid
    Simulation for Video Games, parts 15 to 17, whose results depend on the order of pairs and on random
    numbers.

    Speed of sound. c is not that of water; it limits the compression, to (u / c)^2. The default is 10 sqrt(g
    H), with H the height from the top of the liquid to the bottom of the lowest container (or of the liquid):
    a compression of 1 % at rest. Of all keys of gravity the one with the largest g H counts; if gravity is
    changed later, so is c.

    Surroundings. The Fluid surrounds the liquid. Its weight is left out, unless `surrounded` is set or a
    BuoyancySystem lets it carry bodies: then rho_s is its density. The liquid's pressure and the
    BuoyancySystem together then carry a body in the liquid by rho g V, and one above by rho_s g V. Where
    rho_s is above 2 rho, speed of sound and steps follow from the force, |1 - rho_s / rho| g, in place of g.

    Pushes. Other systems that add to the Acceleration of liquid act like gravity: each step applies each
    particle's mean acceleration over the tick (LiquidPushSystem). The largest one limits the steps and, when
    the first tick begins, c. LiquidBudget includes their energy and momentum.

    Time. Before each step the rest of the tick is divided into as few equal steps as the liquid then allows:
    step <= `courant` (R / 2) / (c nu^3 + u), with R the reach and nu the largest compression, step^2 <= 0.06
    R / g and step <= R^2 / (45 nu), with nu the viscosity. With `steps` set, a tick that needs more is
    refused.

    Implicit pressure. With `pressure = "implicit"` the pressure of a step is that of the compression to which
    the velocities at its end lead, found by Chebyshev's iteration to a mean error of `tolerance`. Sound is
    damped, not resolved, so a step is at most `stride` R / (u + g dt) and 3.5 R / c instead. u is the speed
    of the fastest particle. But the fastest particles, one in 64, count only if they meet another or a wall
    in the tick, with half their speed relative to the other, or their speed towards the wall: a particle that
    flies alone needs no short steps. The energy lost in impacts is not in LiquidBudget. Lists of pairs need
    1.3 kB per particle, 4.3 kB in double precision. Equations: `kernels.sph.implicit_pressure`,
    `kernels.sph.meeting_speeds`.

    Viscosity. The liquid has its own viscosity plus `artificial` c R / 20; the second part stabilises it, and
    is needed (0.01 to 0.1) for flows with little viscosity of their own. All liquids of a world have the same
    viscosity. With `walls = "no_slip"` both parts act between liquid and walls too, as if the liquid
    continued behind them in a shear flow that is 0 at the wall; steps are then at most R^2 / (75 nu).
    Equations: `kernels.sph.wall_friction`.

    Surface tension. With `surface_tension` the surface of all liquid, a mesh of triangles made anew in each
    step, pulls at the particles within reach, such that momentum and angular momentum are kept. With a
    `contact_angle` walls and bodies pull the edge of the liquid, sigma cos(angle) per length, and get the
    reaction. Without one, planes that mirror meet the surface at 90 degrees, and other walls and bodies repel
    the liquid. A step is at most half of sqrt(rho a^3 / (2 pi sigma)), with a the spacing. Equations:
    `kernels.sph.surface_tension`, `kernels.sph.wetting`.

    Tracers. Once a tick, tracers in the liquid move by the mean way of the particles around them, with the
    weights of the compression, so they turn with liquid that turns. Vortons, and what has an own velocity,
    are not carried. Equations: `systems.liquid.around`.

    Particles with a Strength and a CoreRadius too are moved by the vortices as well: the hybrid of the
    articles, experimental, see docs/liquids.md.
    """

    reads = (Fluid,)
    may_read = (*BODIES, LiquidPush, Strength)
    writes: Types = (
        Position, InertialVelocity, Velocity, Liquid, LiquidPressure, LiquidState, LiquidModel, LiquidBudget,
    )  # fmt: skip
    adds = (BodyLoad,)
    asks = (BodySystem, LiquidPushSystem)
    phase = "move"
    periodic = False
    unchanging = ("pressure",)
    # Before bodies move. Systems that act at the particles' places must wait until the liquid has moved.
    before = (BodySystem, "AlignmentSystem", "ConductionSystem", "CoolingSystem", "HeaterSystem")

    pressure: Literal["explicit", "implicit"] = "explicit"
    """by the compression as it is, or, implicit, by that at the end of a longer step"""
    tolerance: float = Field(default=1e-3, ge=1e-5, le=1e-2)
    """implicit: mean error of the compression at which a solve ends, 1; with its sign a quarter of that"""
    stride: float = Field(default=0.5, gt=0, le=1)
    """implicit: way in a step, over the reach, of the fastest particle that meets another or a wall, 1"""
    artificial: float = Field(default=0.0175, ge=0, le=10)
    """artificial viscosity, over c R / 20, 1"""
    sound_speed: float | None = Field(default=None, ge=1e-6, le=1e6)
    """speed of sound c, m/s; default 10 sqrt(g H), without gravity 10 times the largest velocity"""
    surrounded: bool = False
    """subtract the weight of the surrounding fluid from the liquid's, as a BuoyancySystem always does"""
    support: float = Field(default=2.98, ge=2.2, le=4)
    """reach of the kernel over the spacing, 1"""
    courant: float = Field(default=1.2, gt=0, le=1.5)
    """step over the time sound takes for half a reach, 1"""
    steps: int = Field(default=0, ge=0, le=MOST_STEPS)
    """steps per tick; 0 takes as many as needed"""
    walls: Literal["slip", "no_slip"] = "slip"
    """whether liquid slides along bodies and containers, or is held by them"""
    surface_tension: float = Field(default=0.0, ge=0, le=1e6)
    """surface tension of all liquid, N/m"""
    contact_angle: float | None = Field(default=None, ge=0, le=180)
    """angle in the liquid between surface and walls, degrees; default 90 at planes that mirror, else 180"""
    hydrostatic: tuple[Name, ...] = ()
    """entities that are compressed by their own weight when the first tick begins"""

    def __post_init__(self) -> None:
        # Those of the implicit solver, whose memory the next tick uses again.
        self._lists: PairLists | None = None
        if self.pressure == "explicit":
            self.writes = tuple(kind for kind in type(self).writes if kind is not LiquidPressure)

    def added(self, world: World) -> None:
        """Check names, and attach the LiquidBudget."""
        for name in self.hydrostatic:
            world[name][Liquid]  # an error without one
        world.require(LoadSystem)
        world.require(LiquidPushSystem)
        if LiquidModel not in world.fluid:
            remove_in_solids(world)
            world.attach("fluid", LiquidModel)
            world.attach("fluid", LiquidBudget)

    def must_hold(self, world: World) -> None:
        """Check that all liquids have the same viscosity."""
        common_viscosity(world)

    def lint(self, world: World) -> list[str]:
        """Warn of constants of the Fluid that look like the liquid's, and of misplaced liquid."""
        return liquid_lint(self, world)

    # ------------------------------------------------------------------ surroundings

    @property
    def density_around(self) -> float:
        """Density of the surroundings that carry weight, kg/m^3; 0 if they do not."""
        lifted = self.surrounded or self.world.system(BuoyancySystem) is not None
        return float(self.field(Fluid).density) if lifted else 0.0

    def weight_left(self, rho: Any) -> Any:
        """Fraction 1 - rho_s / rho of a liquid's weight that its surroundings do not carry."""
        return 1 - self.density_around / rho

    @property
    def wetting(self) -> float | None:
        """Cosine of the contact angle, 1, or None."""
        return None if self.contact_angle is None else math.cos(math.radians(self.contact_angle))

    # ------------------------------------------------------------------ a tick

    def process(self, dt: float) -> None:
        """Advance the liquid by one tick."""
        tables = list(self.query(Position, InertialVelocity, Liquid, Velocity, LiquidState))
        if not any(len(position.x) for position, *_ in tables):
            return
        fill_model(self)
        liquid = AllLiquid(self)
        if liquid.push is not None:
            warn_of_push(liquid, liquid.push)
            # The integrator has applied the whole push at once: undo that, as each step applies its part.
            liquid.particles.v[...] -= self.world.dtype(dt) * liquid.push
        liquid.add_pipes()
        law, pull = liquid.law(liquid.mean_push), liquid.accelerations(liquid.push)
        began, limits = liquid.particles.x.copy(), StepLimits(liquid, law, pull)
        result = march(liquid, law, pull, dt, limits, self._forces_of_steps(law, pull))
        self._update_budget(liquid, began, result, dt)
        warn_of_thrown_bodies(self, result.loads[:, :3], dt, liquid.sound)
        x, v, mass, size, excess = liquid.particles
        nu, load = result.last.nu, result.last.load
        self.field(LiquidModel).peak[0] = nu[: liquid.count].max()
        spread(x, [position.x for position, *_ in tables])
        spread(v, [inertial.v for _, inertial, *_ in tables])
        spread(excess, [own.excess for _, _, own, *_ in tables])
        spread(load * nu**2 / (size**2 * law.volume), [state.pressure for *_, state in tables])
        spread(nu * mass / (size * law.volume), [state.density for *_, state in tables])
        # Only for frames and pictures: the integrator clears it before it is used again.
        for _, inertial, _, velocity, _ in tables:
            velocity.u += inertial.v
        self._carry_tracers(dt, law, began, liquid)

    def _carry_tracers(self, dt: float, law: LiquidLaw, began: Array, liquid: AllLiquid) -> None:
        """Move tracers with the liquid around them, whose places (n, 3) m were `began`."""
        carried_along = [
            tables
            for entity, tables in self.entities(Position, Velocity)
            if len(entity) and Strength not in entity and InertialVelocity not in entity
        ]
        if not carried_along:
            return
        x, _, mass, *_ = liquid.particles
        around = liquid_around(law, began, x - began, mass, bodies_at(self.world, 0.0, law.reach))
        for position, velocity in carried_along:
            way = carried(around, position.x)
            position.x += way
            velocity.u += way / self.world.dtype(dt)

    def _forces_of_steps(
        self, law: LiquidLaw, pull: Array
    ) -> Callable[[Particles, Bodies, float], Evaluation]:
        """The function that finds the forces in a step, by explicit or implicit pressure."""
        from ecs_fluid.kernels.sph.implicit_pressure import solve
        from ecs_fluid.kernels.sph.pair_lists import PairLists
        from ecs_fluid.kernels.sph.step import evaluate

        if self.pressure == "explicit":
            return lambda particles, bodies, step: evaluate(law, *particles, *bodies)
        kept = [pressure.pressure for _, _, pressure in self.query(Position, Liquid, LiquidPressure)]
        pressure = np.zeros(len(pull), self.world.dtype)
        pressure[: sum(map(len, kept))] = np.concatenate(kept)
        lists = self._lists = self._lists or PairLists()

        def solved(particles: Particles, bodies: Bodies, step: float) -> Evaluation:
            found = solve(law, *particles, *bodies, pull, pressure, step, self.tolerance, lists)
            pressure[...] = found.pressure
            spread(pressure, kept)
            warn_of_error(self, found.error)
            return found.forces

        return solved

    def _update_budget(self, liquid: AllLiquid, began: Array, result: MarchResult, dt: float) -> None:
        """Add a tick, which began with places `began` (n, 3) m, to the LiquidBudget and loads of bodies."""
        books, count = self.field(LiquidBudget), liquid.count
        mass, moved = liquid.particles.mass[:count].astype(np.float64), liquid.particles.x - began
        books.dissipated += result.lost
        books.walls -= dt * result.loads[:, :3].sum(axis=0)
        books.gravity += dt * float((mass * liquid.weight_left[:count]).sum()) * self.world.gravity
        books.steps += result.steps
        if liquid.push is not None:
            # The push is constant through the tick, so this is the sum over its steps.
            force = mass[:, None] * liquid.push
            books.pushes += dt * force.sum(axis=0)
            books.work += float((force * moved[:count]).sum())
        for entity, rows in rows_of_each(body_entities(self.world)):
            entity[BodyLoad].force += result.loads[rows, :3]
            entity[BodyLoad].torque += result.loads[rows, 3:]

    # ------------------------------------------------------------------ measuring

    @property
    def started(self) -> bool:
        """Whether there is liquid that has been moved."""
        moved = bool(self.field(LiquidModel).reach[0])
        return moved and any(len(liquid.mass) for (liquid,) in self.query(Liquid))

    def measure(self) -> dict[str, Any]:
        """Integrals of the liquid as it is now.

        * mass: total mass, kg
        * momentum: total momentum, N s
        * angular_momentum: about the origin, N m s
        * center: centre of mass, m
        * kinetic: kinetic energy, J
        * potential: energy by gravity from z = 0, J
        * compression: energy of compression, J
        * surface: energy of surface tension, J
        * energy: sum of these four, J
        * dissipated: taken by viscosity and by the diffusion of the excess so far, J
        * work: given by accelerations beside gravity so far, J
        * least, largest: compression nu among all particles (at rest it is 1), 1
        * speed: largest speed of a particle, m/s
        """
        if not any(len(liquid.mass) for (liquid,) in self.query(Liquid)):
            raise FluidError("SphSystem: there is no liquid to measure")
        unknown = not self.field(LiquidModel).reach[0] and not self.world._ticker.phase
        if unknown and self.world.require(LiquidPushSystem).pushed:
            self.world.evaluate()  # pushes at the start of the first tick affect the default sound_speed
        fill_model(self)
        return AllLiquid(self).measured()
