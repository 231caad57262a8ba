"""Liquid by smoothed particle hydrodynamics."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position, Strength, Velocity
from ecs_fluid.components.bodies import BodyLoad
from ecs_fluid.components.liquid import Liquid, LiquidBudget, LiquidModel, LiquidPressure, LiquidState
from ecs_fluid.errors import FluidError, FluidWarning, RecipeError
from ecs_fluid.fluid import Fluid, key_values
from ecs_fluid.recipe import Name
from ecs_fluid.system import System, Types
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.buoyancy import BuoyancySystem
from ecs_fluid.systems.drag import DragSystem
from ecs_fluid.systems.inflow import Inflow, InflowSystem, in_pipes
from ecs_fluid.systems.shared.body_tables import BODIES, body_entities
from ecs_fluid.systems.shared.liquid_places import bodies_at, misplaced_liquid, near_solids
from ecs_fluid.systems.shared.liquid_steps import MOST_STEPS, StepLimits, capillary_step
from ecs_fluid.systems.shared.populations import joined, rows_of_each, spread
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.pairs import Lists
    from ecs_fluid.kernels.sph.step import Evaluation, LiquidLaw

NEAREST_START = 0.4
"""Spacings from solid bodies at the start, at least; walls of containers are the recipe's business."""

HEAVY_AROUND = 0.1
"""Density of the surroundings over the liquid's from which on their weight counts."""

SAME_SIZE = 0.25
"""Most that the volume of a particle may differ from the mean, as a part of it."""


class SphSystem(System):
    """Liquid: weakly compressible smoothed particle hydrodynamics of all particles with a Liquid.

        m du/dt = - sum_j (P_i + P_j) grad W_ij - P_i grad G_i + viscosity + m g (1 - rho_s / rho),  dx/dt = u

    P = V p / nu^2, nu the compression (1 at rest) by neighbours, walls and the excess e that each particle
    carries, p = (rho c^2 / 7) (nu^7 - 1) but never below 0. Pairs push each other equally along their line:
    momentum and angular momentum are kept to rounding. Pressure, gravity and walls at rest have an energy,
    which only viscosity, the diffusion of e, and impacts on bodies take. Planes that are parallel or at right
    angles to all others of their container mirror the liquid (those of a box); other planes, balls and
    polytopes add G; all are smooth, and get the reaction (BodyLoad). A particle that
    passes a plane of a container goes on as its image. e starts, in `hydrostatic` entities, with what the sum
    lacks at their upper surface. Equations: `kernels.sph.forces`, `kernels.sph.walls`, `kernels.sph.images`.
    Source: Monaghan, Rep. Prog. Phys. 68 (2005), and those named there; it takes the place of the liquid of
    Fluid Simulation for Video Games, parts 15 to 17, which has the order of its pairs and its random numbers
    decide.

    Speed of sound. c is not that of water; it bounds the compression, to (u / c)^2. The default is 10 sqrt(g
    H), H the height from the top of the liquid to the bottom of the lowest container (or of the liquid): 1 %
    at rest. Of all keys of gravity that with the largest g H counts, and another gravity later on gives
    another c.

    Surroundings. The Fluid surrounds the liquid. Its weight is left out, unless `surrounded` is set or a
    BuoyancySystem has it bear bodies: then rho_s is its density, so that the liquid's pressure and the
    BuoyancySystem together bear what is under the liquid by rho g V, and what is above by rho_s g V.
    Where rho_s is above 2 rho, speed of sound and steps go by the force, |1 - rho_s / rho| g, in place of g.

    Time. Before each step what is left of the tick is cut into as few equal ones as the liquid then allows:
    step <= `courant` (R / 2) / (c nu^3 + u), R the reach and nu the largest compression, step^2 <= 0.06 R / g
    and step <= R^2 / (45 nu), nu the viscosity; with `steps` set, a tick that needs more is refused.

    Implicit pressure. With `pressure = "implicit"` the pressure of a step is that of the compression which
    the velocities at its end lead to, found by Chebyshev's iteration to a mean error of `tolerance`. Sound is
    damped, not followed, so a step is at most `stride` R / (u + g dt) and 3.5 R / c instead. u is the speed
    of the fastest particle; of one in 64, the fastest, only what meets another or a wall in the tick counts,
    with half the speed of one relative to the other, and that towards the wall: what flies alone needs no
    short steps. Impacts take energy that is in no book. Lists of pairs need 1.3 kB a particle, 4.3 kB in
    double precision. Equations: `kernels.sph.implicit`, `kernels.sph.meetings`.

    Viscosity. The liquid has its own plus `artificial` c R / 20; the second part steadies it and is needed
    for flows with little viscosity of their own (0.01 to 0.1). All liquids of a world have one viscosity.
    With `walls = "no_slip"` both act between liquid and walls too, as if it went on behind them in a shear
    flow that is 0 at the wall; steps are then at most R^2 / (75 nu). Equations: `kernels.sph.friction`.

    Surface tension. With `surface_tension` the surface of all liquid, made of triangles anew in each step,
    pulls at the particles within reach, so that momentum and angular momentum are kept; planes that mirror
    meet it at 90 degrees, other walls and bodies repel it. A step is at most half of sqrt(rho a^3 / (2 pi
    sigma)), a the spacing. Equations: `kernels.sph.tension`.

    Particles with a Strength and a CoreRadius too are moved by the vortices as well: the hybrid of the
    articles, experimental, see docs/liquids.md.
    """

    reads = (Fluid,)
    may_read = BODIES
    writes: Types = (
        Position, InertialVelocity, Velocity, Liquid, LiquidPressure, LiquidState, LiquidModel, LiquidBudget,
    )  # fmt: skip
    adds = (BodyLoad,)
    asks = (BodySystem,)
    phase = "move"
    periodic = False
    # What works where particles are waits until the liquid has moved.
    before = (BodySystem, "AlignmentSystem", "ConductionSystem", "CoolingSystem", "HeaterSystem")

    pressure: Literal["explicit", "implicit"] = "explicit"
    """that of the compression as it is, or of the compression at the end of a longer step"""
    tolerance: float = Field(default=1e-3, ge=1e-5, le=1e-2)
    """implicit: mean error of the compression that ends a solve; a quarter of it with its sign, 1"""
    stride: float = Field(default=0.5, gt=0, le=1)
    """implicit: way in a step, over the reach, of the fastest particle that meets another or a wall, 1"""
    artificial: float = Field(default=0.0175, ge=0, le=10)
    """artificial viscosity over c R / 20, 1"""
    sound_speed: float | None = Field(default=None, ge=1e-6, le=1e6)
    """speed of sound c, m/s; default 10 sqrt(g H), without gravity 10 times the largest velocity"""
    surrounded: bool = False
    """the fluid around the liquid takes weight away, by its density, as it does where a BuoyancySystem is"""
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
        self._warned = self._unsolved = False
        self._lists: Lists | None = None
        if self.pressure == "explicit":
            self.writes = tuple(kind for kind in type(self).writes if kind is not LiquidPressure)

    def added(self, world: World) -> None:
        """Check names, and give the world its books."""
        for name in self.hydrostatic:
            world[name][Liquid]
        self._viscosity(world)
        world.require(LoadSystem)
        if LiquidModel not in world.fluid:
            self._clear(world)
            world.attach("fluid", LiquidModel)
            world.attach("fluid", LiquidBudget)

    def _clear(self, world: World) -> None:
        """Remove liquid in solid bodies, and so near to them that it would burst away."""
        for entity, (position, liquid) in world.entities_with(Position, Liquid):
            if len(entity):
                lost = near_solids(world, position.x, NEAREST_START * float(liquid.volume.mean()) ** (1 / 3))
                if lost.any():
                    entity.kill(lost)

    def lint(self, world: World) -> list[str]:
        """Constants of the Fluid that look like the liquid's, and liquid where none should be."""
        around, said = world.fluid[Fluid], list[str]()
        unfelt = not any(Strength in entity for entity in world.entities) and world.system(DragSystem) is None
        for name, rho, nu in _liquids(world):
            if around.density > HEAVY_AROUND * rho and not self._lifted(world):
                said.append(
                    f"{name} has a density of {rho:g} kg/m^3 and the fluid around it "
                    f"{around.density:g} kg/m^3; [fluid] is what surrounds a liquid, so give it that "
                    "density, or SphSystem surrounded = true"
                )
            if around.viscosity > 0 and unfelt and not nu:
                said.append(
                    f"{name} has no viscosity, and nothing feels that of the fluid around it, "
                    f"{around.viscosity:g} m^2/s; give the liquid its own"
                )
        if self.walls == "no_slip" and self.artificial == 0 and self._viscosity(world) == 0:
            said.append(
                "walls = 'no_slip' holds liquid by its viscosity, and it has none; give it a viscosity, or "
                "SphSystem an artificial one"
            )
        if self.surface_tension and self.steps:
            liquids = [liquid for _, (liquid,) in world.entities_with(Liquid) if len(liquid.mass)]
            masses = [float(liquid.mass.min()) for liquid in liquids]
            masses += [inflow.rho * inflow.particle for inflow in _inflows(world)]
            lightest = min(masses, default=math.inf)
            longest = capillary_step(lightest, self.surface_tension)
            if world.dt > self.steps * longest * (1 + 1e-9):
                said.append(
                    f"capillary waves need dt <= {self.steps * longest:.2g} s in steps = {self.steps}, and "
                    f"{world.dt:.4g} s will be refused; leave steps out, or use that dt"
                )
        return said + misplaced_liquid(world, self.support)

    def process(self, dt: float) -> None:
        """Advance the liquid by one tick."""
        tables = list(self.query(Position, InertialVelocity, Liquid, Velocity, LiquidState))
        if not sum(len(position.x) for position, *_ in tables):
            return
        if (self.pressure == "implicit") != (LiquidPressure in self.writes):
            raise FluidError("SphSystem: pressure cannot be changed once the system is made")
        self._prepare()
        x, v, mass, size, excess = self._joined()
        law, real = self._law(), len(x)
        given = zip((x, v, mass, size), self._in_pipes(), strict=True)
        x, v, mass, size = (np.concatenate([there, to_come]) for there, to_come in given)
        excess = np.concatenate([excess, np.zeros(len(x) - real, excess.dtype)])
        last = self._advance(law, x, v, mass, size, excess, real, dt)
        nu, load, mass, size = last.nu[:real], last.load[:real], mass[:real], size[:real]
        self.field(LiquidModel).peak[0] = nu.max()
        spread(x, [position.x for position, *_ in tables])
        spread(v, [inertial.v for _, inertial, *_ in tables])
        spread(excess, [liquid.excess for _, _, liquid, *_ in tables])
        # For frames and pictures; the integrator empties it before it is used again.
        for _, inertial, _, velocity, _ in tables:
            velocity.u += inertial.v
        spread(load * nu**2 / (size**2 * law.volume), [state.pressure for *_, state in tables])
        spread(nu * mass / (size * law.volume), [state.density for *_, state in tables])

    def _joined(self) -> tuple[Array, Array, Array, Array, Array]:
        """Copies of all positions, velocities and masses, V / V_0, and the excess, of the particles end to
        end."""
        entities, (x, v, mass) = self.joined(Position, InertialVelocity, Liquid)
        number = self.world.dtype
        size = joined([entity[Liquid].volume for entity in entities], (), number)
        excess = joined([entity[Liquid].excess for entity in entities], (), number)
        return x.copy(), v.copy(), mass, (size / self.field(LiquidModel).volume).astype(number), excess.copy()

    def _in_pipes(self) -> tuple[Array, Array, Array, Array]:
        """Positions, velocities, masses and V / V_0 of what is in the pipes of inflows."""
        mean = float(self.field(LiquidModel).volume[0])
        for inflow in _inflows(self.world):  # one may be added to a world that runs
            if abs(inflow.particle - mean) > SAME_SIZE * mean:
                raise FluidError(
                    f"inflow {inflow.name!r}: spacing = {inflow.edge:g} m, but the liquid there is has "
                    f"{mean ** (1 / 3):.3g} m; use spacings that differ by less than 7 %"
                )
        x, v, mass, volume = in_pipes(self.world)
        kind, size = self.world.dtype, volume / mean
        return x.astype(kind), v.astype(kind), mass.astype(kind), size.astype(kind)

    # ------------------------------------------------------------------ law

    def _law(self) -> LiquidLaw:
        from ecs_fluid.kernels.sph.step import LiquidLaw

        model = self.field(LiquidModel)
        reach, volume, stiffness = (float(part[0]) for part in (model.reach, model.volume, model.stiffness))
        c = math.sqrt(7 * stiffness / self._densest())
        viscosity = self._viscosity(self.world)
        viscosity += self.artificial * c * reach / 20
        around = float(self.field(Fluid).density) if self._lifted(self.world) else 0.0
        return LiquidLaw(
            reach, self.support, volume, stiffness, viscosity, tuple(self.world.gravity.tolist()), around,
            self.walls == "no_slip", self.surface_tension,
        )  # fmt: skip

    def _viscosity(self, world: World) -> float:
        """That of all liquids, m^2/s; two of them are refused."""
        found = [
            (float(nu), entity.name)
            for entity, (liquid,) in world.entities_with(Liquid)
            if len(entity)
            for nu in (liquid.viscosity.min(), liquid.viscosity.max())
        ]
        told = (inflow for inflow in _inflows(world) if inflow.viscosity is not None)
        found += [(float(world.dtype(inflow.nu)), inflow.name) for inflow in told]
        (least, thin), (most, thick) = min(found, default=(0.0, "")), max(found, default=(0.0, ""))
        if least < most:
            raise FluidError(
                f"SphSystem: {thin!r} has a viscosity of {least:g} m^2/s and {thick!r} of {most:g} m^2/s; "
                "liquids of one viscosity are needed"
            )
        return least

    def _densest(self) -> float:
        there = (float((liquid.mass / liquid.volume).max(initial=0)) for (liquid,) in self.query(Liquid))
        return max([*there, *(inflow.rho for inflow in _inflows(self.world))])

    def _prepare(self) -> None:
        """Fill the model before the first tick, and find the stiffness for a gravity that is another."""
        model, gravity = self.field(LiquidModel), self.field(Fluid).gravity
        first = not model.reach[0]
        if not first and (np.array_equal(model.gravity, gravity) or not gravity.any()):
            return
        if first:
            self._measure_particles()
        c = self.sound_speed or self._default_sound()
        model.stiffness[0], model.gravity = self._densest() * c**2 / 7, gravity.copy()
        if first:
            self._start()

    def _measure_particles(self) -> None:
        """The mean volume of a particle, and the reach that goes with it."""
        liquids = [(entity, tables) for entity, tables in self.entities(Position, Liquid) if len(entity)]
        volume = np.concatenate([liquid.volume for _, (_, liquid) in liquids]).astype(np.float64)
        mean = float(volume.mean())
        for entity, (_, liquid) in liquids:
            odd = int(np.abs(liquid.volume - mean).argmax())
            if abs(liquid.volume[odd] - mean) > SAME_SIZE * mean:
                raise FluidError(
                    f"entity {entity.name!r}: a particle of liquid has the volume {liquid.volume[odd]:.3g} "
                    f"m^3, but the mean of all is {mean:.3g} m^3; use spacings that differ by less than 7 %"
                )
        model = self.field(LiquidModel)
        model.volume[0] = mean
        model.reach[0] = self.support * mean ** (1 / 3)

    def _start(self) -> None:
        """Compress what is to start at rest, with the excess that its surface needs."""
        if self.hydrostatic:
            _, _, _, size, _ = self._joined()
            nu = self._evaluated().nu.astype(np.float64) / size
            for entity, rows in rows_of_each(entity for entity, _ in self.entities(Position, Liquid)):
                if entity.name in self.hydrostatic:
                    entity[Liquid].excess = self._lacking(entity[Position].x, nu[rows])
            for name in self.hydrostatic:
                self._settle(self.world[name][Position].x, self.world[name][Liquid])
        # A crowded start wants short steps from the first on.
        self.field(LiquidModel).peak[0] = self._evaluated().nu.max()

    def _evaluated(self) -> Evaluation:
        """Forces as the liquid stands."""
        from ecs_fluid.kernels.sph.step import evaluate

        law = self._law()
        return evaluate(law, *self._joined(), *bodies_at(self.world, 0.0, law.reach))

    def _lacking(self, x: Array, nu: Array) -> Array:
        """What the sum lacks at the upper surface of a liquid, as far as a lattice that ends there lacks it,
        and next to bodies, which cut the lattice anywhere.

        Free sides are left as they are: nothing at rest has them.
        """
        from ecs_fluid.kernels.sph.walls import beyond, wall_law

        pull = float(np.linalg.norm(self.world.gravity))
        if not len(x) or pull == 0.0:
            return np.zeros(len(x))
        model = self.field(LiquidModel)
        height = x.astype(np.float64) @ (-self.world.gravity / pull)
        spacing = float(model.volume[0]) ** (1 / 3)
        depth = (height.max() - height) / spacing + 0.5
        lacks = np.where(near_solids(self.world, x, wall_law(self.support).reach * spacing), 1 - nu, 0.0)
        top = (lacks == 0.0) & (depth < self.support)
        lacks[top] = np.minimum(np.maximum(1 - nu[top], 0.0), beyond(depth[top], self.support)[0])
        return lacks

    def _default_sound(self) -> float:
        """10 sqrt(g H), of all keys of gravity the largest; without gravity 10 times the largest velocity.

        What an inflow gives falls from v^2 / (2 g) above it.
        """
        spacing = float(self.field(LiquidModel).volume[0]) ** (1 / 3)
        liquids = list(self.query(Position, Liquid))
        places = np.concatenate([position.x for position, _ in liquids])
        walls, most = containers(self.world), 0.0
        borne = max(self._borne(liquid.mass / liquid.volume) for _, liquid in liquids)
        for gravity in self.field(Fluid).gravity:
            pull = borne * float(np.linalg.norm(gravity))
            if pull > 0.0:
                up = -borne * gravity / pull
                heights = places @ up
                floors = [float((wall.corners @ up).min()) + 0.5 * spacing for wall in walls]
                low = min([float(heights.min()), *floors])
                most = max(most, pull * (float(heights.max()) - low + spacing))
                for inflow in _inflows(self.world):
                    above = float(np.max(np.array(key_values(inflow.center)) @ up)) - low
                    most = max(most, pull * (max(above, 0.0) + spacing) + 0.5 * inflow.fastest**2)
        if most == 0.0:
            own = (velocity.v for _, velocity in self.query(Liquid, InertialVelocity))
            fastest = [float((v.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)) for v in own]
            most = max([*fastest, *(inflow.fastest**2 for inflow in _inflows(self.world))])
        # Capillary pressure 4 sigma / (rho 4 a) of the smallest drops that are resolved.
        most = max(most, self.surface_tension / (self._densest() * spacing))
        if most == 0.0:
            raise RecipeError(
                "SphSystem: without gravity and velocities there is no default for sound_speed; give one, 10 "
                "times the largest velocity"
            )
        return 10 * math.sqrt(most)

    def _settle(self, x: Array, liquid: Liquid) -> None:
        """Move a column so that its pressure carries it: dz/dz_0 = 1/nu, p(nu) = rho g (H - z_0)."""
        gravity = self.world.gravity
        pull = float(np.linalg.norm(gravity))
        if not len(x) or pull == 0.0:
            return
        rho = liquid.mass.astype(np.float64) / liquid.volume
        weight = self.weight(float(rho.mean()))  # below 0 it rests on a lid, not on a floor
        up = -math.copysign(1.0, weight) * gravity / pull
        z = x @ up
        half = 0.5 * float(liquid.volume[0]) ** (1 / 3)
        low, high = float(z.min()) - half, float(z.max()) + half
        place = np.linspace(low, high, 2001)
        # Density at a height is taken as the mean one: an entity is one liquid.
        pressure = float(rho.mean()) * abs(weight) * pull * (high - place)
        strain = 1 - (1 + pressure / float(self.field(LiquidModel).stiffness[0])) ** (-1 / 7)
        sunk = np.concatenate([[0.0], np.cumsum(0.5 * (strain[1:] + strain[:-1]) * np.diff(place))])
        x -= (np.interp(z, place, sunk)[:, None] * up).astype(x.dtype)

    def weight(self, rho: Any) -> Any:
        """Part of a liquid's weight that is left in its surroundings."""
        return 1 - (float(self.field(Fluid).density) if self._lifted(self.world) else 0.0) / rho

    def _borne(self, rho: Array) -> float:
        """Largest force on a liquid over its weight: 1, or more where what surrounds it drives it up."""
        return max(1.0, -float(self.weight(rho).min())) if rho.size else 1.0

    def _lifted(self, world: World) -> bool:
        """Whether the liquid feels the weight of what surrounds it."""
        return self.surrounded or world.system(BuoyancySystem) is not None

    # ------------------------------------------------------------------ time

    def _advance(
        self, law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, excess: Array, real: int,
        dt: float,
    ) -> Evaluation:  # fmt: skip
        """Drift, kick, drift in steps as long as may be; writes the books and the loads of bodies.

        Rows from `real` on are in the pipes of inflows: they push, and go on as they are.
        """
        from ecs_fluid.kernels.compiled.columns import max_norm
        from ecs_fluid.kernels.sph.implicit import solve
        from ecs_fluid.kernels.sph.pairs import Lists
        from ecs_fluid.kernels.sph.step import evaluate, kick_and_drift, moved, put_back

        kind = self.world.dtype
        entities = body_entities(self.world)
        obstacles, hulls = bodies_at(self.world, dt, law.reach)
        weight = self.weight(mass / (size * law.volume)).astype(kind)
        pull = weight[:, None] * self.world.gravity.astype(kind)
        pull[real:] = 0
        books = self.field(LiquidBudget)
        loads, lost = np.zeros((0 if obstacles is None else len(obstacles.x0), 6)), 0.0
        ahead = np.zeros_like(excess)
        solved_for = []
        if self.pressure == "implicit":
            solved_for = [entity[LiquidPressure].pressure for entity, _ in self.entities(Position, Liquid)]
            pressure = np.concatenate([*solved_for, np.zeros(len(x) - real, kind)])
        # A light liquid beside a heavy one is as stiff, so sound is faster in it.
        c = math.sqrt(7 * law.stiffness * law.volume * float((size / mass).max()))
        force = self._borne(mass / (size * law.volume)) * float(np.linalg.norm(self.world.gravity))

        stride = self.stride if self.pressure == "implicit" else 0.0
        least = float(mass.min())
        limits = StepLimits(self.world, law, c, force, self.courant, stride, self.steps, least)

        def steps(left: float, done: int, peak: float) -> int:
            speed = max_norm(v)
            self._tell_of_speed(speed, c)
            return limits.needed(left, done, x, v, speed, peak)

        time, done, more = 0.0, 0, steps(dt, 0, float(self.field(LiquidModel).peak[0]))
        step, held = dt / more, None
        x += kind(step / 2) * v
        while more:
            there = None if obstacles is None else moved(obstacles, time + step / 2)
            given, held = put_back(law, x[:real], v[:real], mass, there, hulls, held)
            loads += given / dt
            # Half a step ahead by the last rate: of second order, but for the first step of a tick.
            now = law, x, v, mass, size, excess + kind(step / 2) * ahead, there, hulls
            if self.pressure == "implicit":
                self._lists = self._lists or Lists()
                solved = solve(*now, pull, pressure, step, self.tolerance, self._lists)
                found, pressure = solved.found, solved.pressure
                self._tell(solved.error, dt)
            else:
                found = evaluate(*now)
            time, done = time + step, done + 1
            more = 0 if more == 1 else steps(dt - time, done, float(found.nu.max()))
            following = (dt - time) / more if more else 0.0
            found.force[real:] = 0
            kick_and_drift(found.force, mass, pull, step, (step + following) / 2, x, v)
            ahead = found.rate
            ahead[real:] = 0
            excess += kind(step) * ahead
            loads += found.loads * (step / dt)
            lost += step * found.loss
            step = following
        there = None if obstacles is None else moved(obstacles, dt)
        loads += put_back(law, x[:real], v[:real], mass, there, hulls, held)[0] / dt
        if solved_for:
            spread(pressure, solved_for)
        books.dissipated += lost
        books.walls -= dt * loads[:, :3].sum(axis=0)
        books.gravity += dt * float((mass.astype(np.float64) * weight)[:real].sum()) * self.world.gravity
        books.steps += done
        for entity, rows in rows_of_each(entities):
            entity[BodyLoad].force += loads[rows, :3]
            entity[BodyLoad].torque += loads[rows, 3:]
        return found

    def _tell_of_speed(self, speed: float, c: float) -> None:
        """Warn once of liquid that is too fast for its speed of sound `c`, both m/s."""
        if not self._warned and speed > 0.5 * c:
            self._warned = True
            warnings.warn(
                f"t = {self.world.time:.4g} s: liquid moves at {speed:.3g} m/s, above half its speed of "
                f"sound {c:.3g} m/s, and is compressed by as much as a quarter; use sound_speed >= "
                f"{5 * speed:.2g} m/s",
                FluidWarning,
                stacklevel=4,
            )

    def _tell(self, error: float, dt: float) -> None:
        """Warn once where a solve ended far from its tolerance."""
        if not self._unsolved and error > 10 * self.tolerance:
            self._unsolved = True
            warnings.warn(
                f"t = {self.world.time:.4g} s: the pressure of a liquid ends with an error of {error:.2g} "
                f"of its density, far above tolerance; use a smaller stride, or dt < {dt:.3g} s",
                FluidWarning,
                stacklevel=4,
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
        * least, largest: compression nu among all particles (at rest it is 1), 1
        * speed: largest speed of a particle, m/s
        """
        from ecs_fluid.kernels.sph.forces import compression_energy

        if not any(len(liquid.mass) for (liquid,) in self.query(Liquid)):
            raise FluidError("SphSystem: there is no liquid to measure")
        self._prepare()
        x, v, mass, size, _ = self._joined()
        law, found = self._law(), self._evaluated()
        place, speed, m = x.astype(np.float64), v.astype(np.float64), mass.astype(np.float64)
        weight = self.weight(m / (size * law.volume))
        record: dict[str, Any] = {
            "mass": float(m.sum()),
            "momentum": (m[:, None] * speed).sum(axis=0),
            "angular_momentum": (m[:, None] * np.cross(place, speed)).sum(axis=0),
            "center": (m[:, None] * place).sum(axis=0) / m.sum(),
            "kinetic": 0.5 * float((m * (speed**2).sum(axis=1)).sum()),
            "potential": -float((m * weight * (place @ self.world.gravity)).sum()),
            "compression": compression_energy(found.nu, size, law.stiffness, law.volume),
            "dissipated": float(self.field(LiquidBudget).dissipated[0]),
            "least": float(found.nu.min()),
            "largest": float(found.nu.max()),
            "speed": float(np.sqrt((speed**2).sum(axis=1).max())),
        }
        record["surface"] = found.surface
        record["energy"] = record["kinetic"] + record["potential"] + record["compression"] + found.surface
        return record


def _liquids(world: World) -> list[tuple[str, float, float]]:
    """Names, densities (kg/m^3) and largest viscosities (m^2/s) of the liquids of a world, and of those that
    inflows will let in where there is none."""
    there = [(entity, liquid) for entity, (liquid,) in world.entities_with(Liquid) if len(entity)]
    found = [
        (repr(entity.name), float(liquid.mass.sum() / liquid.volume.sum()), float(liquid.viscosity.max()))
        for entity, liquid in there
    ]
    names = {entity.name for entity, _ in there}
    inflows = [inflow for inflow in _inflows(world) if inflow.into not in names]
    return found + [(f"the liquid of {inflow.name!r}", inflow.rho, inflow.nu) for inflow in inflows]


def _inflows(world: World) -> list[Inflow]:
    """All openings of a world."""
    system = world.system(InflowSystem)
    return [] if system is None else system.inflows
