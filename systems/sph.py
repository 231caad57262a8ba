"""Liquid by smoothed particle hydrodynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position, Velocity
from ecs_fluid.components.bodies import BodyLoad
from ecs_fluid.components.liquid import (
    Liquid,
    LiquidBudget,
    LiquidModel,
    LiquidPressure,
    LiquidPush,
    LiquidState,
)
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.recipe import Name
from ecs_fluid.system import System, Types
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.buoyancy import BuoyancySystem
from ecs_fluid.systems.inflow import in_pipes, inflows
from ecs_fluid.systems.liquid_push import LiquidPushSystem
from ecs_fluid.systems.shared.body_tables import BODIES, body_entities
from ecs_fluid.systems.shared.liquid_constants import SAME_SIZE, common_viscosity, densest, mean_volume
from ecs_fluid.systems.shared.liquid_lint import capillary_lint, misplaced_lint, surroundings_lint
from ecs_fluid.systems.shared.liquid_march import MarchResult, Particles, march
from ecs_fluid.systems.shared.liquid_places import bodies_at, near_solids
from ecs_fluid.systems.shared.liquid_start import compress_column, largest_head, surface_deficit
from ecs_fluid.systems.shared.liquid_steps import MOST_STEPS, StepLimits
from ecs_fluid.systems.shared.populations import joined, rows_of_each, spread
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.pair_lists import PairLists
    from ecs_fluid.kernels.sph.step import Evaluation, LiquidLaw
    from ecs_fluid.systems.shared.liquid_march import Bodies

NEAREST_START = 0.4
"""Least distance from solid bodies at the start, in spacings; the recipe minds the walls of containers."""

SQUEEZED = 0.05
"""Compression by accelerations other than gravity from which on a warning is given."""


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
    lacks at their upper surface. Equations: `kernels.sph.forces`, `kernels.sph.wall_pressure`,
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
    step, pulls at the particles within reach, such that momentum and angular momentum are kept. Planes that
    mirror meet the surface at 90 degrees; other walls and bodies repel the liquid. A step is at most half of
    sqrt(rho a^3 / (2 pi sigma)), with a the spacing. Equations: `kernels.sph.surface_tension`.

    Particles with a Strength and a CoreRadius too are moved by the vortices as well: the hybrid of the
    articles, experimental, see docs/liquids.md.
    """

    reads = (Fluid,)
    may_read = (*BODIES, LiquidPush)
    writes: Types = (
        Position, InertialVelocity, Velocity, Liquid, LiquidPressure, LiquidState, LiquidModel, LiquidBudget,
    )  # fmt: skip
    adds = (BodyLoad,)
    asks = (BodySystem, LiquidPushSystem)
    phase = "move"
    periodic = False
    unchanging = ("pressure",)
    # Systems that act at the particles' places must wait until the liquid has moved.
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
    hydrostatic: tuple[Name, ...] = ()
    """entities that are compressed by their own weight when the first tick begins"""

    def __post_init__(self) -> None:
        self._lists: PairLists | None = None
        if self.pressure == "explicit":
            self.writes = tuple(kind for kind in type(self).writes if kind is not LiquidPressure)

    def added(self, world: World) -> None:
        """Check names, and attach the LiquidBudget."""
        for name in self.hydrostatic:
            world[name][Liquid]
        world.require(LoadSystem)
        world.require(LiquidPushSystem)
        if LiquidModel not in world.fluid:
            self._remove_in_solids(world)
            world.attach("fluid", LiquidModel)
            world.attach("fluid", LiquidBudget)

    def must_hold(self, world: World) -> None:
        """Check that all liquids have the same viscosity."""
        common_viscosity(world)

    def _remove_in_solids(self, world: World) -> None:
        """Remove liquid in solid bodies, or so near to them that pressure would throw it away."""
        for entity, (position, liquid) in world.entities_with(Position, Liquid):
            if len(entity):
                lost = near_solids(world, position.x, NEAREST_START * float(liquid.volume.mean()) ** (1 / 3))
                if lost.any():
                    entity.kill(lost)

    def lint(self, world: World) -> list[str]:
        """Warn of constants of the Fluid that look like the liquid's, and of misplaced liquid."""
        texts = surroundings_lint(world, self._density_around > 0)
        if self.walls == "no_slip" and self.artificial == 0 and common_viscosity(world) == 0:
            texts.append(
                "walls = 'no_slip' acts by the viscosity of the liquid, which has none; give the liquid a "
                "viscosity, or set SphSystem.artificial"
            )
        if self.surface_tension and self.steps:
            texts += capillary_lint(world, self.surface_tension, self.steps)
        return texts + misplaced_lint(world, self.support)

    # ------------------------------------------------------------------ a tick

    def process(self, dt: float) -> None:
        """Advance the liquid by one tick."""
        tables = list(self.query(Position, InertialVelocity, Liquid, Velocity, LiquidState))
        if not sum(len(position.x) for position, *_ in tables):
            return
        self._fill_model()
        push = self._push()
        law, liquid = self._law(push), self._particles()
        real = len(liquid.x)
        if push is not None:
            self._warn_of_push(push, liquid)
            # The integrator has applied the whole push at once: undo that, as each step applies its part.
            liquid.v[...] -= self.world.dtype(dt) * push
        liquid = Particles(*map(np.concatenate, zip(liquid, self._particles_in_pipes(), strict=True)))
        last = self._advance(law, liquid, real, push, dt)
        nu, load, mass, size = last.nu[:real], last.load[:real], liquid.mass[:real], liquid.size[:real]
        self.field(LiquidModel).peak[0] = nu.max()
        spread(liquid.x, [position.x for position, *_ in tables])
        spread(liquid.v, [inertial.v for _, inertial, *_ in tables])
        spread(liquid.excess, [table.excess for _, _, table, *_ in tables])
        # Only for frames and pictures: the integrator clears it before it is used again.
        for _, inertial, _, velocity, _ in tables:
            velocity.u += inertial.v
        spread(load * nu**2 / (size**2 * law.volume), [state.pressure for *_, state in tables])
        spread(nu * mass / (size * law.volume), [state.density for *_, state in tables])

    def _advance(
        self, law: LiquidLaw, liquid: Particles, real: int, push: Array | None, dt: float
    ) -> Evaluation:
        """Move all particles through a tick, and write the LiquidBudget and the loads of bodies.

        Rows from `real` on are in the pipes of inflows.
        """
        from ecs_fluid.kernels.compiled.columns import max_norm

        x, v, mass, size, _ = liquid
        pull = self._accelerations(mass, size, push)
        pull[real:] = 0
        limits = self._step_limits(law, mass, size, None if push is None else pull)
        peak = float(self.field(LiquidModel).peak[0])

        def steps_needed(left: float, result: int, largest: float | None) -> int:
            speed = max_norm(v)
            self._warn_of_speed(speed, limits.sound)
            return limits.steps_needed(left, result, x, v, speed, peak if largest is None else largest)

        began = None if push is None else x[:real].copy()
        bodies, forces = bodies_at(self.world, dt, law.reach), self._forces_of_steps(law, pull, dt)
        result = march(law, liquid, real, bodies, pull, dt, steps_needed, forces)
        self._update_budget(result, mass[:real], size[:real], dt)
        if push is not None:
            books, force = self.field(LiquidBudget), mass[:real, None].astype(np.float64) * push
            books.pushes += dt * force.sum(axis=0)
            # The push is constant through the tick, so this is the sum over its steps.
            books.work += float((force * (x[:real] - began)).sum())
        return result.last

    def _step_limits(self, law: LiquidLaw, mass: Array, size: Array, pull: Array | None) -> StepLimits:
        """The limits on steps of a tick; `pull` (n, 3) m/s^2 if more than gravity accelerates the liquid."""
        from ecs_fluid.kernels.compiled.columns import max_norm

        # A light liquid beside a heavy one is equally stiff, so sound is faster in it.
        c = math.sqrt(7 * law.stiffness * law.volume * float((size / mass).max()))
        if pull is None:
            weight = self._largest_weight(mass / (size * law.volume))
            strongest = weight * float(np.linalg.norm(self.world.gravity))
        else:
            strongest = max_norm(pull)
        stride = self.stride if self.pressure == "implicit" else 0.0
        return StepLimits(self.world, law, c, strongest, self.courant, stride, self.steps, float(mass.min()))

    def _forces_of_steps(
        self, law: LiquidLaw, pull: Array, dt: float
    ) -> Callable[[Particles, Bodies, float], Evaluation]:
        """The function that finds the forces in a step, by explicit or implicit pressure."""
        from ecs_fluid.kernels.sph.implicit_pressure import solve
        from ecs_fluid.kernels.sph.pair_lists import PairLists
        from ecs_fluid.kernels.sph.step import evaluate

        if self.pressure == "explicit":
            return lambda liquid, bodies, step: evaluate(law, *liquid, *bodies)
        kept = [pressure.pressure for _, _, pressure in self.query(Position, Liquid, LiquidPressure)]
        pressure = np.zeros(len(pull), self.world.dtype)
        pressure[: sum(map(len, kept))] = np.concatenate(kept)
        lists = self._lists = self._lists or PairLists()

        def solved(liquid: Particles, bodies: Bodies, step: float) -> Evaluation:
            found = solve(law, *liquid, *bodies, pull, pressure, step, self.tolerance, lists)
            pressure[...] = found.pressure
            spread(pressure, kept)
            self._warn_of_error(found.error, dt)
            return found.forces

        return solved

    def _update_budget(self, result: MarchResult, mass: Array, size: Array, dt: float) -> None:
        """Add a tick of `dt` s to the LiquidBudget, for particles of masses (kg) and sizes V / V_0."""
        books, weight = self.field(LiquidBudget), self._weight_fractions(mass, size)
        books.dissipated += result.lost
        books.walls -= dt * result.loads[:, :3].sum(axis=0)
        books.gravity += dt * float((mass.astype(np.float64) * weight).sum()) * self.world.gravity
        books.steps += result.steps
        for entity, rows in rows_of_each(body_entities(self.world)):
            entity[BodyLoad].force += result.loads[rows, :3]
            entity[BodyLoad].torque += result.loads[rows, 3:]

    # ------------------------------------------------------------------ particles and their weight

    def _particles(self) -> Particles:
        """Copies of all particles' columns."""
        entities, (x, v, mass) = self.joined(Position, InertialVelocity, Liquid)
        number = self.world.dtype
        volume = joined([entity[Liquid].volume for entity in entities], (), number)
        excess = joined([entity[Liquid].excess for entity in entities], (), number)
        size = (volume / self.field(LiquidModel).volume).astype(number)
        return Particles(x.copy(), v.copy(), mass, size, excess.copy())

    def _particles_in_pipes(self) -> Particles:
        """The particles in the pipes of inflows."""
        mean = float(self.field(LiquidModel).volume[0])
        for inflow in inflows(self.world):  # one may be added to a running world
            if abs(inflow.particle - mean) > SAME_SIZE * mean:
                raise FluidError(
                    f"inflow {inflow.name!r}: spacing = {inflow.edge:g} m, but the liquid it flows into has "
                    f"{mean ** (1 / 3):.3g} m; use spacings that differ by less than 7 %"
                )
        x, v, mass, volume = in_pipes(self.world)
        return Particles(*(a.astype(self.world.dtype) for a in (x, v, mass, volume / mean, 0 * mass)))

    def _push(self) -> Array | None:
        """Accelerations (n, 3) m/s^2 of all particles other than gravity; None if there are none."""
        pushes = [push.a for _, _, push in self.query(Position, Liquid, LiquidPush)]
        push = joined(pushes, (3,), self.world.dtype)
        return push if push.any() else None

    def _accelerations(self, mass: Array, size: Array, push: Array | None) -> Array:
        """Accelerations (n, 3) m/s^2 by the remaining gravity, plus the push for the first particles."""
        pull = self._weight_fractions(mass, size)[:, None] * self.world.gravity.astype(self.world.dtype)
        if push is not None:
            pull[: len(push)] += push
        return np.asarray(pull)

    def _weight_fractions(self, mass: Array, size: Array) -> Array:
        """`weight_left` (n,) of all particles."""
        volume = float(self.field(LiquidModel).volume[0])
        return np.asarray(self.weight_left(mass / (size * volume)).astype(self.world.dtype))

    def weight_left(self, rho: Any) -> Any:
        """Fraction 1 - rho_s / rho of a liquid's weight that its surroundings do not carry."""
        return 1 - self._density_around / rho

    def _largest_weight(self, rho: Array) -> float:
        """Largest force on a liquid over its weight: 1, or more if its surroundings drive it up."""
        return max(1.0, -float(self.weight_left(rho).min())) if rho.size else 1.0

    @property
    def _density_around(self) -> float:
        """Density of the surroundings that carry weight, kg/m^3; 0 if they do not."""
        lifted = self.surrounded or self.world.system(BuoyancySystem) is not None
        return float(self.field(Fluid).density) if lifted else 0.0

    # ------------------------------------------------------------------ constants

    def _law(self, push: Array | None = None) -> LiquidLaw:
        """Constants of the liquid in this tick; gravity includes the mean of the push (n, 3) m/s^2."""
        from ecs_fluid.kernels.sph.step import LiquidLaw

        model = self.field(LiquidModel)
        reach, volume, stiffness = (float(part[0]) for part in (model.reach, model.volume, model.stiffness))
        viscosity = common_viscosity(self.world)
        viscosity += self.artificial * self._speed_of_sound * reach / 20
        down = self.world.gravity + _mean(push)
        return LiquidLaw(
            reach, self.support, volume, stiffness, viscosity, tuple(down.tolist()), self._density_around,
            self.walls == "no_slip", self.surface_tension,
        )  # fmt: skip

    def _forces_now(self) -> Evaluation:
        """Forces as the liquid stands."""
        from ecs_fluid.kernels.sph.step import evaluate

        law = self._law()
        return evaluate(law, *self._particles(), *bodies_at(self.world, 0.0, law.reach))

    @property
    def _speed_of_sound(self) -> float:
        """Speed of sound in the densest liquid, m/s."""
        return math.sqrt(7 * float(self.field(LiquidModel).stiffness[0]) / densest(self.world))

    @property
    def _spacing(self) -> float:
        """Distance of neighbours at rest, m."""
        spacing: float = float(self.field(LiquidModel).volume[0]) ** (1 / 3)
        return spacing

    # ------------------------------------------------------------------ the first tick

    def _fill_model(self) -> None:
        """Fill the model before the first tick, and update the stiffness if gravity has changed."""
        model, gravity = self.field(LiquidModel), self.field(Fluid).gravity
        first = not model.reach[0]
        if not first and (np.array_equal(model.gravity, gravity) or not gravity.any()):
            return
        if first:
            mean = mean_volume(self.world)
            model.volume[0], model.reach[0] = mean, self.support * mean ** (1 / 3)
        c = self.sound_speed or self._default_sound()
        model.stiffness[0], model.gravity = densest(self.world) * c**2 / 7, gravity.copy()
        if first:
            self._compress_at_start()

    def _compress_at_start(self) -> None:
        """Compress the `hydrostatic` entities, and set the excess that their surfaces need."""
        model, gravity, push = self.field(LiquidModel), self.world.gravity, self._push()
        if self.hydrostatic:
            nu = self._forces_now().nu.astype(np.float64) / self._particles().size
            for entity, rows in rows_of_each(entity for entity, _ in self.entities(Position, Liquid)):
                if entity.name not in self.hydrostatic:
                    continue
                x, liquid, down = entity[Position].x, entity[Liquid], gravity + _mean(push)
                liquid.excess = surface_deficit(self.world, x, nu[rows], down, self._spacing, self.support)
                weight = self.weight_left(float((liquid.mass.astype(np.float64) / liquid.volume).mean()))
                compress_column(x, liquid, weight * gravity + _mean(push), float(model.stiffness[0]))
        # A crowded start needs short steps from the first one on.
        model.peak[0] = self._forces_now().nu.max()

    def _default_sound(self) -> float:
        """10 sqrt(g H), the largest by all keys of gravity and the strongest push; without these, 10 times
        the largest velocity."""
        weight = max(self._largest_weight(liquid.mass / liquid.volume) for (liquid,) in self.query(Liquid))
        pulls = [weight * gravity for gravity in self.field(Fluid).gravity]
        liquid, push = self._particles(), self._push()
        most = largest_head(self.world, pulls, liquid.x, self._spacing)
        if push is not None:
            most = max(most, self._head(push, liquid))
        if most == 0.0:
            own = (velocity.v for _, velocity in self.query(Liquid, InertialVelocity))
            fastest = [float((v.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)) for v in own]
            most = max([*fastest, *(inflow.fastest**2 for inflow in inflows(self.world))])
        # Capillary pressure over density of the smallest drops that are resolved, 4 sigma / (rho 4 a).
        most = max(most, self.surface_tension / (densest(self.world) * self._spacing))
        if most == 0.0:
            raise RecipeError(
                "SphSystem: sound_speed has no default without gravity and velocities; set it to 10 times "
                "the largest velocity that you expect"
            )
        return 10 * math.sqrt(most)

    def _head(self, push: Array, liquid: Particles) -> float:
        """g H, m^2/s^2, for the largest acceleration of a particle by gravity and a push (n, 3) m/s^2."""
        x, _, mass, size, _ = liquid
        pull = self._accelerations(mass, size, push).astype(np.float64)
        strongest = pull[(pull**2).sum(axis=1).argmax()]
        return largest_head(self.world, [strongest], x, self._spacing)

    # ------------------------------------------------------------------ warnings in a tick

    def _warn_of_push(self, push: Array, liquid: Particles) -> None:
        """Warn once of a push (n, 3) m/s^2 that is too strong for the speed of sound."""
        if "push" in self._warned:
            return
        c, head = self._speed_of_sound, self._head(push, liquid)
        own = head - self._head(0 * push, liquid)  # without the compression by gravity
        if own > SQUEEZED * c**2:
            most = float(np.linalg.norm(push.astype(np.float64), axis=1).max())
            self.warn(
                f"accelerations of up to {most:.3g} m/s^2 compress liquid by up to another "
                f"{100 * own / c**2:.2g} % at its speed of sound, {c:.3g} m/s; use sound_speed >= "
                f"{10 * math.sqrt(head):.2g} m/s",
                "push",
            )

    def _warn_of_speed(self, speed: float, c: float) -> None:
        """Warn once of liquid that is too fast for its speed of sound `c`, both m/s."""
        if speed > 0.5 * c:
            self.warn(
                f"liquid moves at {speed:.3g} m/s, above half its speed of sound of {c:.3g} m/s, and is "
                f"compressed by up to a quarter; use sound_speed >= {5 * speed:.2g} m/s",
                "speed",
            )

    def _warn_of_error(self, error: float, dt: float) -> None:
        """Warn once if an implicit solve ended far above its tolerance."""
        if error > 10 * self.tolerance:
            self.warn(
                f"the pressure of a liquid leaves an error of {error:.2g} times its density, far above "
                f"tolerance; use a smaller stride, or dt < {dt:.3g} s",
                "tolerance",
            )

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
        from ecs_fluid.kernels.sph.forces import compression_energy

        if not any(len(liquid.mass) for (liquid,) in self.query(Liquid)):
            raise FluidError("SphSystem: there is no liquid to measure")
        unknown = not self.field(LiquidModel).reach[0] and not self.world._ticker.busy
        if unknown and self.world.require(LiquidPushSystem).pushed:
            self.world.evaluate()  # pushes at the start of the first tick affect the default sound_speed
        self._fill_model()
        x, v, mass, size, _ = self._particles()
        law, found = self._law(), self._forces_now()
        place, speed, m = x.astype(np.float64), v.astype(np.float64), mass.astype(np.float64)
        weight = self.weight_left(m / (size * law.volume))
        record: dict[str, Any] = {
            "mass": float(m.sum()),
            "momentum": (m[:, None] * speed).sum(axis=0),
            "angular_momentum": (m[:, None] * np.cross(place, speed)).sum(axis=0),
            "center": (m[:, None] * place).sum(axis=0) / m.sum(),
            "kinetic": 0.5 * float((m * (speed**2).sum(axis=1)).sum()),
            "potential": -float((m * weight * (place @ self.world.gravity)).sum()),
            "compression": compression_energy(found.nu, size, law.stiffness, law.volume),
            "dissipated": float(self.field(LiquidBudget).dissipated[0]),
            "work": float(self.field(LiquidBudget).work[0]),
            "least": float(found.nu.min()),
            "largest": float(found.nu.max()),
            "speed": float(np.sqrt((speed**2).sum(axis=1).max())),
        }
        record["surface"] = found.surface
        record["energy"] = record["kinetic"] + record["potential"] + record["compression"] + found.surface
        return record


def _mean(push: Array | None) -> Array:
    """Mean (3,) m/s^2 of a push: at rest, pressure grows along it."""
    return np.zeros(3) if push is None else push.mean(axis=0, dtype=np.float64)
