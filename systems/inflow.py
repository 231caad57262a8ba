"""Inflows of liquid: taps, nozzles, hoses."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array, Component
from ecs_fluid.components import InertialVelocity, Position, Strength
from ecs_fluid.components.bodies import FREE, Body, Pose
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid, key_values
from ecs_fluid.further_components import classes_of, component_from, refuse_lists
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.keyframes import Keyed, KeyedNumber, KeyedVector
from ecs_fluid.recipe import Name
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.liquid.openings import Opening
from ecs_fluid.systems.liquid.places import LEAST_ACROSS, ROUNDED
from ecs_fluid.systems.shared.births import births, refuse_early_stop
from ecs_fluid.systems.shared.body_tables import BODIES, leaders_of
from ecs_fluid.systems.shared.populations import Growth
from ecs_fluid.systems.shared.ranges import Length, LiquidDensity, LiquidViscosity
from ecs_fluid.tables import checked_rows
from ecs_fluid.world import World

SPACING, WATER = 0.05, 1000.0
"""Defaults of liquids: distance between neighbouring particles, m, and density, kg/m^3."""

LARGER = "use a larger spacing"

LOOSE = 1.01
"""Spacing of particles across a jet over that of liquid at rest. At the density of liquid at rest, or above,
pressure would throw new layers back against the next ones, and the jet would burst."""

SAME_DENSITY = 1e-3
"""Relative difference of densities up to which liquids in one entity count as the same."""


class Inflow(Settings):
    """An opening from which liquid flows: where, how fast and when."""

    name: Name
    into: Name
    """liquid that gets the particles"""
    center: KeyedVector
    """middle of the opening, m; may be keyed in time"""
    direction: KeyedVector = (0.0, 0.0, -1.0)
    """where the liquid goes, 1, of any length; may be keyed in time"""
    speed: KeyedNumber = 1.0
    """speed of the liquid, m/s, 0 to 1e6; may be keyed in time"""
    shape: Literal["disc", "rectangle"] = "disc"
    """shape of the opening, across the direction"""
    size: tuple[Length, Length] = (0.2, 0.2)
    """full widths of the opening, m: the first horizontal, the other at right angles to it"""
    spacing: Length | None = None
    """distance between neighbouring particles, m; default that of the world's liquids, or 0.05"""
    density: LiquidDensity | None = None
    """density of the liquid, kg/m^3; default that of what it flows into, or 1000"""
    viscosity: LiquidViscosity | None = None
    """kinematic viscosity of the liquid, m^2/s, one for all liquids of a world; default that, or 0"""
    attached: Name | None = None
    """body or container that carries it along: center and direction are in its axes"""
    start: float = Field(default=0.0, ge=0, le=1e9)
    """time at which it begins, s"""
    stop: float | None = Field(default=None, gt=0, le=1e9)
    """time at which it ends, s; default never"""
    component: tuple[dict[str, Any], ...] = ()
    """further components of the particles, such as { kind = "Age", t = 0.0 }, or your own"""

    @property
    def edge(self) -> float:
        """Distance between neighbouring particles, m."""
        return self.spacing or SPACING

    @property
    def rho(self) -> float:
        """Density, kg/m^3."""
        return self.density or WATER

    @property
    def nu(self) -> float:
        """Kinematic viscosity, m^2/s."""
        return self.viscosity or 0.0

    @property
    def particle(self) -> float:
        """Volume of a particle, m^3."""
        return self.edge**3

    @property
    def jumps(self) -> bool:
        """Whether the opening jumps from place to place, so that it may land in liquid of its own."""
        keyed = (key for key in (self.center, self.direction) if isinstance(key, Keyed))
        return any(key.between == "step" for key in keyed)

    @property
    def area(self) -> float:
        """Area of the opening, m^2."""
        return self.size[0] * self.size[1] * (math.pi / 4 if self.shape == "disc" else 1.0)

    @property
    def fastest(self) -> float:
        """Largest of all its speeds, m/s."""
        return float(np.max(key_values(self.speed)))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for speed in key_values(self.speed):
            if not 0 <= speed <= 1e6:
                raise ValueError(f"speed = {speed}; a number from 0 to 1e6 m/s is needed")
        for direction in key_values(self.direction):
            if not any(abs(part) > 1e-9 for part in direction):
                raise ValueError("direction needs at least one component that is not zero")
        ways = [np.array(way) / np.linalg.norm(way) for way in key_values(self.direction)]
        if any(np.linalg.norm(one + other) < 1e-6 for one, other in pairwise(ways)):
            raise ValueError("direction reverses between two keys; add a key between them")
        refuse_early_stop(self.start, self.stop)
        return self

    @property
    def thickness(self) -> float:
        """Thickness of a layer, m: the volume of its particles over the area."""
        return len(self.layer()) * self.particle / self.area

    def layer(self) -> Array:
        """Places (n, 2) m in the opening of the particles of one layer, on a square lattice."""
        check_memory(VORTON, self.area / self.edge**2, f"particles in a layer of {self.name!r}", LARGER)
        return _layer(self.shape, self.size, self.edge, self.area)


@lru_cache
def _layer(shape: str, size: tuple[float, float], spacing: float, area: float) -> Array:
    """Places (n, 2) m on a square lattice in an opening, `LOOSE` times as wide as one that fills it.

    Of the lattices with a particle or the corner of a cell in the middle, the one is taken whose number of
    particles is nearest to the area of the opening over that of a cell.
    """
    widths = np.array(size)
    if shape == "rectangle":
        counts = np.maximum(np.round(widths / spacing), 1)
        sides = [(np.arange(n) + 0.5) / n * w - 0.5 * w for n, w in zip(counts, widths, strict=True)]
        return LOOSE * _pairs(*sides)
    grids = list[Array]()
    for shift in (0.0, 0.5):
        reach = np.ceil(0.5 * widths / spacing)
        grid = _pairs(*(spacing * (np.arange(-n, n + 1) + shift) for n in reach))
        grids.append(grid[((2 * grid / widths) ** 2).sum(axis=1) < 1 + 1e-9])
    ideal = area / spacing**2
    best = min((grid for grid in grids if len(grid)), key=lambda grid: abs(len(grid) - ideal))
    return LOOSE * math.sqrt(ideal / len(best)) * best


class InflowSystem(System):
    """Liquid that flows in through openings: layers of particles, one after the other, at a speed.

        volume so far = area of the opening x integral of the speed over time, to half a layer

    A layer is born each time that its volume has passed the opening. It appears at the end of that tick,
    where it has flown by then: x = c + u t + g t^2 / 2, v = u + g t, with t the time since its birth and g
    gravity, as far as its surroundings do not carry it. From then on it is liquid like any other. The layers
    that follow it stand in the end of a pipe, three spacings long: they move at the speed of the inflow
    whatever pushes them, and push the liquid before them. The liquid in the pipe is no entity: the SphSystem
    adds it as neighbours of other particles, and nothing draws it. An opening that moves, by keys or with its
    carrier, adds its velocity to that of the liquid. LiquidBudget does not count the energy that the liquid
    brings, or the work of the pump.

    Particles are kept back, in the pipe or before it, where they have no room: within 0.4 spacings of a solid
    or a wall of their container, outside all containers, or in liquid. As long as liquid stands around the
    pipe nothing flows: an opening may point down into a pool, and be reached by it, but must lie above it.
    """

    reads = (Fluid,)
    may_read = (*BODIES, Position, InertialVelocity, Liquid, Strength)
    asks = (BodySystem, "SphSystem")
    phase = "constrain"
    periodic = False
    after = ("CollisionSystem", "BoundarySystem", "ReactionSystem", "SurfaceBarrierSystem")

    inflows: list[Inflow] = Field(default_factory=list)
    """the openings of the world"""

    def spawns(self, world: World) -> None:
        """Make the liquid entities that the openings fill."""
        for inflow in self.inflows:
            if inflow.into not in world:
                further = (kind for kind, _ in _further_components(inflow))
                world.spawn(inflow.into, Position, InertialVelocity, Liquid, *further)

    def added(self, world: World) -> None:
        """Refuse openings of the same name, entities other than plain liquid, and more than memory holds."""
        from ecs_fluid.systems.sph import SphSystem  # imported here because it imports this module

        world.require(SphSystem)
        self.inflows = [_with_defaults(inflow, self.inflows, world) for inflow in self.inflows]
        names = [inflow.name for inflow in self.inflows]
        for inflow in self.inflows:
            if names.count(inflow.name) > 1:
                raise RecipeError(f"two inflows are called {inflow.name!r}; every inflow needs its own name")
            world[inflow.into][Liquid]  # an error without one
            if inflow.attached is not None:
                world[inflow.attached][Pose]  # likewise
            for kind, table in _further_components(inflow):
                refuse_lists(kind, table, f"inflow {inflow.name!r}", f"{inflow.into!r} may get")
            layers = inflow.fastest * world.dt / inflow.thickness
            what = f"particles in a tick by inflow {inflow.name!r}"
            check_memory(VORTON, layers * len(inflow.layer()), what, LARGER)
            none = np.empty((0, 3))
            checked_rows(world[inflow.into], tuple(_rows(inflow, none, none)))

    def must_hold(self, world: World) -> None:
        """Check that an attached inflow is attached to one body; one that is gone may come back."""
        for inflow in self.inflows:
            if inflow.attached is None:
                continue
            if (count := len(set(leaders_of([world[inflow.attached]]).tolist()))) > 1:
                raise RecipeError(
                    f"inflow {inflow.name!r} is attached to {inflow.attached!r}, which has {count} bodies; "
                    "exactly one is needed"
                )

    def lint(self, world: World) -> list[str]:
        """Warn of jets too thin for their spacing, liquids of two densities, and openings without room
        now."""
        texts = []
        for inflow in self.inflows:
            across = min(inflow.size) / inflow.edge
            if across < LEAST_ACROSS * (1 - ROUNDED):
                texts.append(
                    f"InflowSystem: the jet of {inflow.name!r} is {across:.2g} particles thick, fewer than "
                    f"{LEAST_ACROSS}, and will break up into drops; use spacing <= "
                    f"{min(inflow.size) / LEAST_ACROSS:.2g} m"
                )
            if inflow.attached is not None and (world[inflow.attached][Body].motion == FREE).any():
                texts.append(
                    f"InflowSystem: the free body {inflow.attached!r} feels no recoil of the jet of "
                    f"{inflow.name!r}; add it to its BodyLoad, or make the body scripted"
                )
            others = [(repr(one.name), one.rho) for one in self.inflows if one.into == inflow.into]
            if rho := _density(world[inflow.into][Liquid]):
                others.insert(0, ("the liquid there", rho))
            for name, other in others[: [one for one, _ in others].index(repr(inflow.name))]:
                if abs(inflow.rho - other) > SAME_DENSITY * other:
                    texts.append(
                        f"InflowSystem: {inflow.name!r} adds liquid of {inflow.rho:g} kg/m^3 to "
                        f"{inflow.into!r}, but {name} has {other:g} kg/m^3; leave density out to use the "
                        "same, or let it flow into an entity of its own"
                    )
                    break
            if world.time > inflow.start:  # in a resumed run its own liquid is in front of it
                continue
            opening = Opening(inflow, world)
            x, _ = opening.pipe(inflow.start)
            if lost := np.count_nonzero(~opening.room(x)):
                texts.append(
                    f"InflowSystem: {lost} of the {len(x)} particles in the pipe of {inflow.name!r}, three "
                    "spacings behind its center, have no room: they lie in liquid, in a solid or outside all "
                    "containers, and are kept back; move the inflow's center"
                )
        return texts

    def process(self, dt: float) -> None:
        """Add the layers that are due in this tick."""
        from ecs_fluid.systems.sph import SphSystem  # imported here because it imports this module

        liquid = self.world.require(SphSystem)
        begin, end = self.world.tick * dt, (self.world.tick + 1) * dt
        growth = Growth(self.world)
        for inflow in self.inflows:
            layer = inflow.layer()
            each = inflow.thickness
            _, moments = births(inflow.speed, inflow.start, inflow.stop, begin, end, each, ahead=0.5)
            if not len(moments):
                continue
            opening = Opening(inflow, self.world, ended=True)
            if opening.carrier_gone:
                continue
            count, remedy = len(moments) * len(layer), f"{LARGER}, or give it a time to stop"
            growth.add(count, VORTON, f"inflow {inflow.name!r}", remedy)
            x, v = opening.layers(moments, np.zeros(len(moments)))
            age = np.repeat(end - moments, len(layer))[:, None]
            pull = liquid.weight_left(inflow.rho) * self.world.gravity
            x, v = x + age * v + 0.5 * age**2 * pull, v + age * pull
            free = opening.room(x)
            if not free.all():
                self.warn(
                    f"{np.count_nonzero(~free)} of {len(x)} particles of inflow {inflow.name!r} have no "
                    "room, because liquid, a solid or no container is there, and are kept back, as more may "
                    "be; move its center away from there, or let the liquid run off, as into a kill_box",
                    (inflow.name, bool(free.any())),  # warn once of missing particles, once of no flow
                )
            self.world.spawn_rows(inflow.into, *_rows(inflow, x[free], v[free]))


def _with_defaults(inflow: Inflow, inflows: list[Inflow], world: World) -> Inflow:
    """An opening with defaults filled in from the liquids of the world, or from another opening."""
    liquids = [(entity.name, liquid) for entity, (liquid,) in world.entities_with(Liquid) if len(entity)]
    own = [liquid for name, liquid in liquids if name == inflow.into]
    known: dict[str, float] = {}
    for liquid in own:
        known["density"] = _density(liquid)
    for _, liquid in liquids[:1]:
        known["spacing"] = float(np.cbrt(liquid.volume.mean(dtype=np.float64)))
        known["viscosity"] = float(liquid.viscosity[0])
    for name in ("spacing", "density", "viscosity"):
        same = [other for other in inflows if name != "density" or other.into == inflow.into]
        for value in (getattr(other, name) for other in same):
            if value is not None:
                known.setdefault(name, value)
    whole = {"spacing": inflow.edge, "density": inflow.rho, "viscosity": inflow.nu}
    defaults = {name: value for name, value in (whole | known).items() if getattr(inflow, name) is None}
    return inflow.model_copy(update=defaults)


def _density(liquid: Liquid) -> float:
    """Mean density of a liquid, kg/m^3; 0 if there is none."""
    volume = float(liquid.volume.sum(dtype=np.float64))
    return float(liquid.mass.sum(dtype=np.float64)) / volume if volume else 0.0


def inflows(world: World) -> list[Inflow]:
    """All openings of a world."""
    system = world.system(InflowSystem)
    return [] if system is None else system.inflows


def in_pipes(world: World) -> tuple[Array, Array, Array, Array]:
    """Particles in the ends of a world's pipes: places (n, 3) m, velocities (n, 3) m/s, masses (n,) kg and
    volumes (n,) m^3."""
    found = [(np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0))]
    for inflow in inflows(world):
        opening = Opening(inflow, world)
        x, v = opening.pipe(world.tick * world.dt)
        free = opening.room(x)
        each = np.ones(np.count_nonzero(free)) * inflow.particle
        found.append((x[free], v[free], inflow.rho * each, each))
    x, v, mass, volume = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return x, v, mass, volume


def _rows(inflow: Inflow, x: Array, v: Array) -> list[Component]:
    """Particles at places (n, 3) m with velocities (n, 3) m/s."""
    of_each = (inflow.rho * inflow.particle, inflow.particle, inflow.nu)
    rows: list[Component] = [
        Position(x),
        InertialVelocity(v),
        Liquid(*(np.full(len(x), value) for value in of_each)),
    ]
    for kind, table in _further_components(inflow):
        whole = component_from(kind, table, len(x), f"inflow {inflow.name!r}", "a tick makes")
        if isinstance(whole, Component):  # otherwise all its values are defaults
            rows.append(whole)
    return rows


def _further_components(inflow: Inflow) -> list[tuple[type[Component], dict[str, Any]]]:
    """Classes of the further components of its particles, and their tables."""
    return classes_of(inflow.component, f"inflow {inflow.name!r}", (Position, InertialVelocity))


def _pairs(first: Any, second: Any) -> Array:
    """All pairs (n, 2) of one number from each of two lists."""
    return np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
