"""Whitewater of liquids: spray, foam and bubbles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.liquid_constants import densest
from ecs_fluid.systems.shared.liquid_places import bodies_at
from ecs_fluid.systems.shared.liquid_start import largest_head
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.sph.step import Around, LiquidLaw
    from ecs_fluid.kernels.sph.whitewater import Search

SURFACE = 0.3
"""Slope from which on a particle is one of the surface: half of that in the first layer of a flat one."""

FORWARD = 0.6
"""Cosine between velocity and normal from which on a crest breaks; Ihmsen et al., section 3."""

AIR, WATER = 0.45, 0.75
"""Share of liquid around spray at most, and with bodies around bubbles at least: foam is less than 0.1
spacings above a flat surface and 0.5 below it."""

CLOSING = 0.2, 0.6
"""Default `closing` over the speed of eddies as large as a spacing."""

CREST = 0.05, 0.2
"""Default `crest`."""

SPEED = 1.4, 4.5
"""Default `speed` over the speed of those eddies: what rises by one spacing, and by ten."""


def _two_rising(ends: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= ends[0] < ends[1]:
        raise ValueError("two rising numbers from 0 on are needed")
    return ends


Range = Annotated[tuple[float, float], AfterValidator(_two_rising)]


class WhitewaterSystem(System):
    """Whitewater of all liquids: particles of spray, foam and bubbles, which do nothing to the liquid.

    Births. A particle of liquid gives off so many a second:

        n = I_k (`trapped_air` I_ta + `wave_crests` I_wc)

    each I rising from 0 at the first to 1 at the second number of its range: I_ta with the mean speed at
    which its neighbours close in on it (`closing`), I_wc with how much the surface bends at it, where it is
    convex and moves forward, v . n > 0.6 |v| (`crest`), I_k with its kinetic energy, v^2 (`speed`). The
    defaults go by the speed c of eddies as large as a spacing a, c^2 = g a + sigma / (rho a) (without both:
    a fortieth of the speed of sound), below which weight and surface tension keep air out (Hirt, Flow
    Science TN61, 2003): `closing` 0.2 c to 0.6 c, `speed` 1.4 c to 4.5 c. Liquid at rest, and liquid that
    moves or turns as a whole, gives off none by trapped air; `speed` and the crests' v are relative to the
    world.

    The whole part of the sum over all particles is born, rounded at random so that the mean is right for
    any tick, in cylinders as wide as the volume of a particle about its way in the tick; each with the
    velocity of the liquid and up to `spread` of it across. What would lie in a body or outside all
    containers does not appear.

    Motion. What has less than 0.45 of a full liquid around it is spray, what has more than 0.75 bubbles,
    the rest foam. Spray flies: dv/dt = g - `drag` v, exactly. Foam has the mean velocity U of the liquid
    around it, of second order in time. Bubbles follow dv/dt = (U + w - v) 2 g / |w|, exactly for a constant
    U, w being `rise` upwards: a bubble without mass and with its added mass begins to rise with 2 g. Winds
    and vortons carry all of it as they carry the liquid; CollisionSystem holds it back.

    Life. Spray, foam and bubbles go at rates of 1 over `spray_life`, `foam_life` and `bubble_life`.

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
    # Bodies stand as the tick begins; what works where particles are waits.
    before = (BodySystem, "AlignmentSystem", "ConductionSystem", "CoolingSystem", "HeaterSystem")

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
            kinds = Position, InertialVelocity, Whitewater
            world.spawn(self.into, *(kind.blank(0, np.float64) for kind in kinds))

    def added(self, world: World) -> None:
        """Check the entity."""
        world.require(SphSystem)
        world[self.into][Whitewater]
        check_memory(TRACER, self.most, "particles of whitewater", "use a smaller most")

    def process(self, dt: float) -> None:
        """Move what is there, and give off what is due."""
        reach = float(self.field(LiquidModel).reach[0])
        _, (x, v, mass) = self.joined(Position, InertialVelocity, Liquid)
        if not reach:
            return
        liquid = self._around(dt, reach, x, v, mass) if len(x) else None
        self._carry(dt, liquid)
        if liquid is not None:
            self._give_off(dt, liquid, x, v)

    def lint(self, world: World) -> list[str]:
        """A range of `speed` that begins above what falling gives the liquid."""
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
            "liquid can reach by falling, so nothing is given off; use lower ones, or leave speed out"
        ]

    # ------------------------------------------------------------------ around

    def _around(self, dt: float, reach: float, x: Array, v: Array, mass: Array) -> _LiquidAround:
        """The liquid at the end of the tick, with its images behind walls."""
        from ecs_fluid.kernels.sph.step import LiquidLaw, around, moved
        from ecs_fluid.kernels.sph.whitewater import search

        support = self.world.require(SphSystem).support
        law = LiquidLaw(reach, support, float(self.field(LiquidModel).volume[0]), 0.0, 0.0)
        obstacles, hulls = bodies_at(self.world, dt, reach)
        if obstacles is not None:
            obstacles = moved(obstacles, dt)
        near = around(law, x, v, mass, obstacles, hulls)
        return _LiquidAround(law, near, hulls, search(law, near))

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """`closing` and `speed`, m/s, by the speed of eddies as large as a spacing unless they are told."""
        model, liquid = self.field(LiquidModel), self.world.require(SphSystem)
        spacing = float(model.volume[0]) ** (1 / 3)
        rho = densest(self.world)
        square = float(np.linalg.norm(model.gravity, axis=1).max(initial=0.0)) * spacing
        square += liquid.surface_tension / (rho * spacing)
        eddy = math.sqrt(square) or math.sqrt(7 * float(model.stiffness[0]) / rho) / 40
        closing, speed = (
            (told[0], told[1]) if told is not None else (eddy * usual[0], eddy * usual[1])
            for told, usual in ((self.closing, CLOSING), (self.speed, SPEED))
        )
        return closing, speed

    # ------------------------------------------------------------------ motion

    def _carry(self, dt: float, liquid: _LiquidAround | None) -> None:
        """Move all whitewater, tell what it is, and take what has lived its life; without liquid it flies."""
        from ecs_fluid.kernels.sph.whitewater import SPRAY, around, carry

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
                share, flow, *_ = around(liquid.search, ahead, inertial.v)
                walls = liquid.walls(ahead)
            strength = float(np.linalg.norm(pull))
            rise = -self.rise / strength * pull if strength else np.zeros(3)
            late = self.rise / (2 * strength) if strength else 0.0
            lives = np.array([self.spray_life, self.foam_life, self.bubble_life])
            carry(
                position.x, inertial.v, white.kind, white.life, share, walls, flow, AIR, WATER, dt, pull,
                _gliding(self.drag, dt), rise, _following(late, dt), dt / lives,
            )  # fmt: skip
            # For frames and pictures; the integrator empties it before it is used again.
            velocity.u += inertial.v
            entity.kill(white.life <= 0)

    # ------------------------------------------------------------------ births

    def _rates(self, liquid: _LiquidAround, x: Array, v: Array) -> Array:
        """Births (n,) 1/s of each particle of liquid."""
        from ecs_fluid.kernels.sph.whitewater import around, crests

        closing, speed = self._ranges()
        square = (v.astype(np.float64) ** 2).sum(axis=1)
        kinetic = _rising(square, speed[0] ** 2, speed[1] ** 2)
        if not kinetic.any():
            return kinetic
        found = around(liquid.search, x, v)
        rates = self.trapped_air * _rising(found.closing, *closing)
        if self.wave_crests:
            normals = liquid.normals(x, found.slope)
            ahead = (normals[: len(x), :3] * v).sum(axis=1)
            rows = np.flatnonzero((kinetic > 0) & (ahead >= FORWARD * np.sqrt(square)))
            bent = crests(liquid.search, rows, normals)
            rates[rows] += self.wave_crests * _rising(bent, *self.crest)
        return np.asarray(kinetic * rates)

    def _give_off(self, dt: float, liquid: _LiquidAround, x: Array, v: Array) -> None:
        """Give off what is due in the tick."""
        from ecs_fluid.kernels.sph.whitewater import BUBBLE, FOAM, SPRAY, around

        expected = dt * self._rates(liquid, x, v)
        total, room = float(expected.sum()), max(self.most - len(self.world[self.into]), 0)
        if total > room:
            expected *= max(room - 1, 0) / total
            self.warn(
                f"there would be more than most = {self.most:,} particles of whitewater, so fewer are given "
                "off everywhere; use smaller rates, shorter lives or a larger most"
            )
        draw = stream(self.world.seed, self.into, self.world.tick)
        ends = np.floor(np.cumsum(expected) + draw.random())
        rows = np.repeat(np.arange(len(x)), np.diff(ends, prepend=0.0).astype(np.int64))
        if not len(rows):
            return
        drawn, life = draw.random((len(rows), 3)), draw.standard_exponential(len(rows))
        way = v[rows].astype(np.float64)
        across = _across(way, drawn[:, 0], drawn[:, 1])
        width = (3 * liquid.law.volume / (4 * math.pi)) ** (1 / 3)
        place = x[rows] + width * across - dt * drawn[:, 2:] * way
        own = way + self.spread * np.linalg.norm(way, axis=1, keepdims=True) * across
        place, own = place.astype(self.world.dtype), own.astype(self.world.dtype)
        share = around(liquid.search, place, own).share
        under = share + liquid.walls(place) > WATER
        kind = np.where(share < AIR, SPRAY, np.where(under, BUBBLE, FOAM))
        tables = Position(place), InertialVelocity(own), Whitewater(kind=kind, life=life)
        self.world.spawn_rows(self.into, *tables, where_free=True)


class _LiquidAround(NamedTuple):
    """What whitewater sees of a liquid."""

    law: LiquidLaw
    near: Around
    hulls: Hulls | None
    search: Search

    def walls(self, x: Array) -> Array:
        """What bodies, and walls that do not mirror, add to the share of liquid at `x` (n, 3) m."""
        from ecs_fluid.kernels.sph.step import touched

        return touched(self.law, self.near, self.hulls, x)[0]

    def normals(self, x: Array, slope: Array) -> Array:
        """Unit normals and 1 (m, 4) of particles at the surface, of images mirrored; 0 of all others.

        `x` (n, 3) m and `slope` (n, 3) of the particles.
        """
        from ecs_fluid.kernels.sph.step import touched

        images, many = self.near.images, len(slope)
        # G has twice the slope of the liquid that it stands for.
        part = self.law.reach / (40 * self.search.weight)
        _, body, push = touched(self.law, self.near, self.hulls, x)
        slope = slope - part * np.where(body[..., None] >= 0, push, 0).sum(axis=1)
        length = np.sqrt((slope**2).sum(axis=1))
        found = np.zeros((len(images.x), 4), x.dtype)
        rows = np.flatnonzero(length > SURFACE)
        found[rows, :3], found[rows, 3] = slope[rows] / length[rows, None], 1
        found[many:] = found[images.owner]
        for at in images.along.T:
            rows = many + np.flatnonzero(at >= 0)
            plane = self.near.planes[at[at >= 0], :3].astype(x.dtype)
            turned = found[rows, :3]
            found[rows, :3] = turned - 2 * (turned * plane).sum(axis=1, keepdims=True) * plane
        return found


def _rising(value: Array, low: float, high: float) -> Array:
    """From 0 at `low` to 1 at `high`, linearly (n,)."""
    return np.asarray(np.clip((value.astype(np.float64) - low) / (high - low), 0.0, 1.0))


def _gliding(drag: float, dt: float) -> Array:
    """e, a, b with v = e v + a g and x += a v + b g, the solution of dv/dt = g - drag v after `dt` s."""
    lost = drag * dt
    if lost < 1e-4:  # by series, to 1e-9 of them
        return np.array([1 - lost + lost**2 / 2, dt * (1 - lost / 2 + lost**2 / 6), dt**2 * (0.5 - lost / 6)])
    gone = -math.expm1(-lost)
    return np.array([1 - gone, gone / drag, (dt - gone / drag) / drag])


def _following(late: float, dt: float) -> Array:
    """e, a by which v - w and its way are e (v - w) and a (v - w) after `dt` s of dv/dt = (w - v) / late."""
    if not late:
        return np.zeros(2)
    gone = -math.expm1(-dt / late)
    return np.array([1 - gone, late * gone])


def _across(way: Array, radius: Array, angle: Array) -> Array:
    """Points (n, 3) of unit discs across `way` (n, 3), even where `radius` and `angle` (n,) are, 0 to 1."""
    length = np.linalg.norm(way, axis=1, keepdims=True)
    along = np.where(length > 0, way / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])
    # The axis least along it is never near to it.
    other = np.eye(3)[np.abs(along).argmin(axis=1)]
    one = np.cross(along, other)
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    two, turn = np.cross(along, one), 2 * np.pi * angle[:, None]
    return np.asarray(np.sqrt(radius)[:, None] * (np.cos(turn) * one + np.sin(turn) * two))
