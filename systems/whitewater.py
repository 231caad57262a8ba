"""Whitewater of liquids: spray, foam and bubbles."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from ecs_fluid.component import Array
from ecs_fluid.components import Acceleration, InertialVelocity, Position, Velocity
from ecs_fluid.components.bodies import FIXED, Body
from ecs_fluid.components.liquid import Liquid, LiquidModel, Whitewater
from ecs_fluid.fluid import Fluid
from ecs_fluid.input_limits import TRACER, check_memory
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.liquid.around import LiquidAround, liquid_around
from ecs_fluid.systems.liquid.constants import densest, sound_speed
from ecs_fluid.systems.liquid.heads import largest_head
from ecs_fluid.systems.liquid.places import bodies_at
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.world import World

FORWARD = 0.6
"""A crest breaks from this cosine between velocity and normal on; Ihmsen et al., section 3."""

AIR, WATER = 0.45, 0.75
"""Most liquid around spray, and least liquid and bodies around bubbles, as a share of space: foam lies from
0.5 spacings below a flat surface to 0.1 above it."""

CLOSING = 0.2, 0.6
"""Default `closing`, over the speed of eddies as large as a spacing."""

CREST = 0.05, 0.2
"""Default `crest`."""

SPEED = 1.4, 4.5
"""Default `speed`, over the speed of those eddies: the speeds to rise by one spacing, and by ten."""


def _two_increasing(ends: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= ends[0] < ends[1]:
        raise ValueError("two increasing numbers are needed, neither below 0")
    return ends


Range = Annotated[tuple[float, float], AfterValidator(_two_increasing)]


class WhitewaterSystem(System):
    """Whitewater of all liquids: particles of spray, foam and bubbles, which do not act on the liquid.

    Births. A particle of liquid releases n particles per second:

        n = I_k (`trapped_air` I_ta + `wave_crests` I_wc)

    Each I rises from 0 at the first to 1 at the second number of its range. I_ta depends on the mean speed at
    which neighbours approach the particle (`closing`); I_wc on the bending of the surface, where it is convex
    and moves forward, v . n > 0.6 |v| (`crest`); I_k on the kinetic energy, v^2 (`speed`). The defaults are
    multiples of the speed c of eddies as large as a spacing a, c^2 = g a + sigma / (rho a) (without both: a
    fortieth of the speed of sound), below which weight and surface tension keep air out (Hirt, Flow Science
    TN61, 2003): `closing` 0.2 c to 0.6 c, `speed` 1.4 c to 4.5 c. Liquid at rest, and liquid that moves or
    turns as a whole, releases none by trapped air; `speed` and the crests' v are relative to the world.

    The sum over all particles is rounded to a whole number, at random, so that the mean is right for any
    tick. Births lie in cylinders around a particle's path in the tick, as wide as its volume; each has the
    velocity of the liquid, plus up to the fraction `spread` of it across. One that would lie in a body or
    outside all containers does not appear.

    Motion. A particle with less than 0.45 of a full liquid around it is spray, one with more than 0.75 a
    bubble, and others are foam. Spray flies: dv/dt = g - `drag` v, solved exactly. Foam moves with the mean
    velocity U of the liquid around it, to second order in time. Bubbles follow dv/dt = (U + w - v) 2 g / |w|,
    solved exactly for a constant U, with w the velocity `rise` upwards: a bubble without mass, but with its
    added mass, begins to rise with 2 g. Winds and vortons carry whitewater as they carry the liquid;
    CollisionSystem keeps it out of bodies.

    Life. Spray, foam and bubbles vanish at rates of 1 over `spray_life`, `foam_life` and `bubble_life`.

    Random numbers are counter-based (Philox), keyed by the world's seed, `into` and the tick.

    Source: M. Ihmsen, N. Akinci, G. Akinci, M. Teschner, Unified spray, foam and air bubbles for
    particle-based fluids, The Visual Computer 28 (2012). Different here: sums are means with the weights of
    the SphSystem, images behind walls count, of the relative velocity only the part along the pair, and
    drag is by a law of time.
    """

    reads = (Liquid, LiquidModel, Fluid)
    may_read = BODIES
    writes = (Position, InertialVelocity, Velocity, Whitewater)
    asks = (BodySystem,)
    phase = "move"
    unchanging = ("into",)
    periodic = False
    after = (SphSystem,)
    before = SphSystem.before

    into: Name = "whitewater"
    """entity that gets the particles; made if there is none of that name"""
    trapped_air: float = Field(default=400.0, ge=0, le=1e9)
    """births by trapped air, per particle of liquid, 1/s"""
    wave_crests: float = Field(default=400.0, ge=0, le=1e9)
    """births at crests of waves, per particle of liquid, 1/s"""
    closing: Range | None = None
    """mean speeds of approach of neighbours at which trapped air begins and is full, m/s; default 0.2 c, 0.6
    c, c the speed of eddies as large as a spacing"""
    crest: Range = CREST
    """curvatures at which crests begin and are full: mean of 1 less the cosine between normals, 1"""
    speed: Range | None = None
    """speeds of the liquid at which births begin and are full, m/s; default 1.4 c, 4.5 c, c as for
    `closing`"""
    spread: float = Field(default=0.1, ge=0, le=10)
    """largest velocity at birth across that of the liquid, over that of the liquid, 1"""
    drag: float = Field(default=0.0, ge=0, le=1e6)
    """rate at which spray loses its velocity to the air, 1/s"""
    rise: float = Field(default=0.25, ge=0, le=1e6)
    """speed at which bubbles rise through liquid at rest, m/s; 0.25 is that of 1 to 10 mm in water"""
    spray_life: float = Field(default=10.0, gt=0, le=1e9)
    """mean life of spray, s"""
    foam_life: float = Field(default=2.0, gt=0, le=1e9)
    """mean life of foam, s"""
    bubble_life: float = Field(default=60.0, gt=0, le=1e9)
    """mean life of bubbles under water, s"""
    most: int = Field(default=200_000, ge=0, le=1_000_000_000)
    """most particles at a time; where more would be there, fewer are born everywhere"""

    def spawns(self, world: World) -> None:
        """Make the entity of the particles."""
        if self.into not in world:
            world.spawn(self.into, Position, InertialVelocity, Whitewater)

    def added(self, world: World) -> None:
        """Check the entity."""
        world.require(SphSystem)
        world[self.into][Whitewater]  # an error without one
        check_memory(TRACER, self.most, "particles of whitewater", "use a smaller most")

    def process(self, dt: float) -> None:
        """Move the present particles, and release new ones."""
        reach = float(self.field(LiquidModel).reach[0])
        _, (x, v, mass) = self.joined(Position, InertialVelocity, Liquid)
        if not reach:
            return
        liquid = self._liquid_around(dt, reach, x, v, mass) if len(x) else None
        self._carry(dt, liquid)
        if liquid is not None:
            self._give_off(dt, liquid, x, v)

    def lint(self, world: World) -> list[str]:
        """Warn of a range of `speed` that begins above the speed that liquid gets by falling."""
        if self.speed is None or any(Acceleration in system.adds for system in world.systems):
            return []
        if any((entity[Body].motion != FIXED).any() for entity, _ in world.entities_with(Body)):
            return []
        liquids = [tables for _, tables in world.entities_with(Position, InertialVelocity, Liquid)]
        x = np.concatenate([np.zeros((0, 3)), *(position.x for position, *_ in liquids if len(position.x))])
        if not len(x):
            return []
        spacing = max(float(np.cbrt(liquid.volume.max(initial=0))) for *_, liquid in liquids)
        v = np.concatenate([inertial.v for _, inertial, _ in liquids]).astype(np.float64)
        head = largest_head(world, world.fluid[Fluid].gravity, x, spacing)
        fastest = math.sqrt(2 * head + float((v**2).sum(axis=1).max()))
        if fastest > self.speed[0]:
            return []
        return [
            f"WhitewaterSystem: speed = {list(self.speed)} m/s begins above the {fastest:.2g} m/s that the "
            "liquid can reach by falling, so nothing is emitted; use lower speeds, or leave speed out"
        ]

    # ------------------------------------------------------------------ around

    def _liquid_around(self, dt: float, reach: float, x: Array, v: Array, mass: Array) -> LiquidAround:
        """The liquid at the end of the tick, with its images behind walls."""
        from ecs_fluid.kernels.sph.step import LiquidLaw, moved_bodies

        support = self.world.require(SphSystem).support
        law = LiquidLaw(reach, support, float(self.field(LiquidModel).volume[0]), 0.0, 0.0)
        obstacles, hulls = bodies_at(self.world, dt, reach)
        if obstacles is not None:
            obstacles = moved_bodies(obstacles, dt)
        return liquid_around(law, x, v, mass, (obstacles, hulls))

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """`closing` and `speed`, m/s, as set, or from the speed of eddies as large as a spacing."""
        model, liquid = self.field(LiquidModel), self.world.require(SphSystem)
        spacing = float(model.volume[0]) ** (1 / 3)
        rho = densest(self.world)
        square = float(np.linalg.norm(self.field(Fluid).gravity, axis=1).max()) * spacing
        square += liquid.surface_tension / (rho * spacing)
        eddy = math.sqrt(square) or sound_speed(self.world, float(model.stiffness[0])) / 40
        closing, speed = (
            (ends[0], ends[1]) if ends is not None else (eddy * usual[0], eddy * usual[1])
            for ends, usual in ((self.closing, CLOSING), (self.speed, SPEED))
        )
        return closing, speed

    # ------------------------------------------------------------------ motion

    def _carry(self, dt: float, liquid: LiquidAround | None) -> None:
        """Move all whitewater, classify it, and remove what has ended its life; without liquid all is
        spray."""
        from ecs_fluid.kernels.sph.whitewater import SPRAY, carry, properties_at

        for entity, (position, inertial, white, velocity) in self.entities(
            Position, InertialVelocity, Whitewater, Velocity
        ):
            if not len(entity):
                continue
            number, pull = self.world.dtype, self.world.gravity
            ahead = position.x + number(dt) * inertial.v
            ahead[white.kind == SPRAY] += (0.5 * dt**2 * pull).astype(number)
            share = walls = np.zeros(len(ahead), number)
            flow = np.zeros_like(ahead)
            if liquid is not None:
                share, flow, *_ = properties_at(liquid.search, ahead, inertial.v)
                walls = liquid.walls(ahead)
            strength = float(np.linalg.norm(pull))
            rise = -self.rise / strength * pull if strength else np.zeros(3)
            late = self.rise / (2 * strength) if strength else 0.0
            lives = np.array([self.spray_life, self.foam_life, self.bubble_life])
            carry(
                position.x, inertial.v, white.kind, white.life, share, walls, flow, AIR, WATER, dt, pull,
                _drag_factors(self.drag, dt), rise, _relaxation_factors(late, dt), dt / lives,
            )  # fmt: skip
            # Only for frames and pictures: the integrator clears it before it is used again.
            velocity.u += inertial.v
            entity.kill(white.life <= 0)

    # ------------------------------------------------------------------ births

    def _rates(self, liquid: LiquidAround, x: Array, v: Array) -> Array:
        """Births (n,) 1/s of each particle of liquid."""
        from ecs_fluid.kernels.sph.whitewater import crests, properties_at

        closing, speed = self._ranges()
        square = (v.astype(np.float64) ** 2).sum(axis=1)
        kinetic = _ramp(square, speed[0] ** 2, speed[1] ** 2)
        if not kinetic.any():
            return kinetic
        flow = properties_at(liquid.search, x, v)
        rates = self.trapped_air * _ramp(flow.closing, *closing)
        if self.wave_crests:
            normals = liquid.normals(x, flow.slope)
            ahead = (normals[: len(x), :3] * v).sum(axis=1)
            rows = np.flatnonzero((kinetic > 0) & (ahead >= FORWARD * np.sqrt(square)))
            bent = crests(liquid.search, rows, normals)
            rates[rows] += self.wave_crests * _ramp(bent, *self.crest)
        return np.asarray(kinetic * rates)

    def _give_off(self, dt: float, liquid: LiquidAround, x: Array, v: Array) -> None:
        """Release the particles that are due in the tick."""
        from ecs_fluid.kernels.sph.whitewater import BUBBLE, FOAM, SPRAY, properties_at

        expected = dt * self._rates(liquid, x, v)
        total, room = float(expected.sum()), max(self.most - len(self.world[self.into]), 0)
        if total > room:
            expected *= max(room - 1, 0) / total
            self.warn(
                f"there would be more than most = {self.most:,} particles of whitewater, so fewer are "
                "emitted everywhere; use smaller rates, shorter lives or a larger most"
            )
        draw = stream(self.world.seed, self.into, self.world.tick)
        ends = np.floor(np.cumsum(expected) + draw.random())
        rows = np.repeat(np.arange(len(x)), np.diff(ends, prepend=0.0).astype(np.int64))
        if not len(rows):
            return
        drawn, life = draw.random((len(rows), 3)), draw.standard_exponential(len(rows))
        way = v[rows].astype(np.float64)
        across = _disc_points(way, drawn[:, 0], drawn[:, 1])
        width = (3 * liquid.law.volume / (4 * math.pi)) ** (1 / 3)
        place = x[rows] + width * across - dt * drawn[:, 2:] * way
        own = way + self.spread * np.linalg.norm(way, axis=1, keepdims=True) * across
        place, own = place.astype(self.world.dtype), own.astype(self.world.dtype)
        share = properties_at(liquid.search, place, own).share
        under = share + liquid.walls(place) > WATER
        kind = np.where(share < AIR, SPRAY, np.where(under, BUBBLE, FOAM))
        tables = Position(place), InertialVelocity(own), Whitewater(kind=kind, life=life)
        self.world.spawn_rows(self.into, *tables, where_free=True)


def _ramp(value: Array, low: float, high: float) -> Array:
    """Linear ramp (n,) from 0 at `low` to 1 at `high`, clipped."""
    return np.asarray(np.clip((value.astype(np.float64) - low) / (high - low), 0.0, 1.0))


def _drag_factors(drag: float, dt: float) -> Array:
    """Factors e, a, b of the solution of dv/dt = g - drag v after `dt` s: v = e v + a g, x += a v + b g."""
    lost = drag * dt
    if lost < 1e-4:  # by series, to 1e-9 of them
        return np.array([1 - lost + lost**2 / 2, dt * (1 - lost / 2 + lost**2 / 6), dt**2 * (0.5 - lost / 6)])
    gone = -math.expm1(-lost)
    return np.array([1 - gone, gone / drag, (dt - gone / drag) / drag])


def _relaxation_factors(late: float, dt: float) -> Array:
    """Factors e, a of the solution of dv/dt = (w - v) / late after `dt` s: v - w becomes e (v - w), and its
    integral is a (v - w)."""
    if not late:
        return np.zeros(2)
    gone = -math.expm1(-dt / late)
    return np.array([1 - gone, late * gone])


def _disc_points(axis: Array, radius: Array, angle: Array) -> Array:
    """Points (n, 3) of unit discs across `axis` (n, 3): uniform if `radius` and `angle` (n,) are, in 0 to
    1."""
    length = np.linalg.norm(axis, axis=1, keepdims=True)
    along = np.where(length > 0, axis / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])
    # The coordinate axis least aligned with `axis` is never parallel to it.
    other = np.eye(3)[np.abs(along).argmin(axis=1)]
    one = np.cross(along, other)
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    two, turn = np.cross(along, one), 2 * np.pi * angle[:, None]
    return np.asarray(np.sqrt(radius)[:, None] * (np.cos(turn) * one + np.sin(turn) * two))
