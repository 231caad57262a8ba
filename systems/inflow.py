"""Inflows of liquid: taps, nozzles, hoses."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array, Component
from ecs_fluid.components import InertialVelocity, Position, Strength
from ecs_fluid.components.bodies import Pose
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import FluidWarning, RecipeError
from ecs_fluid.fluid import Fluid, key_values
from ecs_fluid.further_components import filled, further, refuse_lists
from ecs_fluid.input_limits import VORTON, check_bytes, check_memory
from ecs_fluid.keyframes import Keyed, KeyedNumber, KeyedVector, integral, value_at
from ecs_fluid.recipe import Name
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.shared.births import births, refuse_early_stop
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.carriers import Carriers, bodies, own_velocity
from ecs_fluid.systems.shared.liquid_places import LEAST_ACROSS, near_solids
from ecs_fluid.systems.shared.populations import particles_take
from ecs_fluid.systems.shared.ranges import Length, LiquidDensity, LiquidViscosity
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

LARGER = "use a larger spacing"

LOOSE = 1.01
"""Distance of particles across a jet over that of liquid at rest. As dense as that, or denser, its pressure
throws new layers back, the next ones meet them, and the jet bursts."""

REACH = 3.0
"""Spacings as far as liquid is felt, and length of the pipe before an opening."""

NEAREST = 0.4
"""Spacings between what flows in and a solid, or the wall of its container, at least: nearer to its own image
in the wall it would burst away. Half a spacing is what an opening that touches the wall has, less `LOOSE`."""

SAME_DENSITY = 1e-3
"""Relative difference of densities up to which liquids of one entity count as one."""

FULL, AROUND = 0.9, 0.25
"""Density over that at rest of the liquid that is there from which a new particle has no room, and from which
a pipe, in its rear half, is under liquid."""

CLEAR = 0.8
"""Spacings between liquid that is there and what comes from an opening that jumps, at least. Layers of others
are kept apart by their way."""


class Inflow(Settings):
    """An opening from which liquid flows, where, how fast and when."""

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
    """its full widths, m: the first horizontal, the other at right angles to it"""
    spacing: Length | None = None
    """distance between neighbouring particles, m; default that of the liquids there are, or 0.05"""
    density: LiquidDensity | None = None
    """density of the liquid, kg/m^3; default that of what it flows into, or 1000"""
    viscosity: LiquidViscosity | None = None
    """kinematic viscosity of the liquid, m^2/s, one for all liquids of a world; default theirs, or 0"""
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
        return self.spacing or 0.05

    @property
    def rho(self) -> float:
        """Density, kg/m^3."""
        return self.density or 1000.0

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
        """Whether the opening is at once elsewhere, and may be in what it has let out."""
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
                raise ValueError(f"speed {speed}; a number from 0 to 1e6 m/s is needed")
        for direction in key_values(self.direction):
            if not any(abs(part) > 1e-9 for part in direction):
                raise ValueError("direction needs at least one part that is not zero")
        ways = [np.array(way) / np.linalg.norm(way) for way in key_values(self.direction)]
        if any(np.linalg.norm(one + other) < 1e-6 for one, other in pairwise(ways)):
            raise ValueError("direction turns straight back between two keys; give one more between them")
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
    """Of the lattices with a particle or a corner of cells in the middle, that whose number of particles is
    nearest to the area over that of a cell; `LOOSE` times as wide as fills the opening."""
    widths = np.array(size)
    if shape == "rectangle":
        counts = np.maximum(np.round(widths / spacing), 1)
        sides = [(np.arange(n) + 0.5) / n * w - 0.5 * w for n, w in zip(counts, widths, strict=True)]
        return LOOSE * _pairs(*sides)
    found = list[Array]()
    for shift in (0.0, 0.5):
        reach = np.ceil(0.5 * widths / spacing)
        grid = _pairs(*(spacing * (np.arange(-n, n + 1) + shift) for n in reach))
        found.append(grid[((2 * grid / widths) ** 2).sum(axis=1) < 1 + 1e-9])
    ideal = area / spacing**2
    best = min((grid for grid in found if len(grid)), key=lambda grid: abs(len(grid) - ideal))
    return LOOSE * math.sqrt(ideal / len(best)) * best


class InflowSystem(System):
    """Liquid that flows in through openings: layers of particles, one after the other, at a speed.

        volume so far = area of the opening x integral of the speed over time, to half a layer

    A layer is born as often as the opening has let its volume through. It appears at the end of that tick,
    where it has flown by then: x = c + u t + g t^2 / 2, v = u + g t, t the time since it was born and g what
    its surroundings leave of gravity. From there on it is liquid like any other. The layers that will follow
    it stand in the end of a pipe, three spacings long: they go on at the speed whatever pushes them, and push
    what is before them. What is in the pipe is no entity: the SphSystem adds it as neighbours of the others,
    and nothing draws it. An opening that moves, by keys or with what carries it, gives the liquid its
    velocity beside the speed.
    What the liquid brings with it, and what the pump does, is in no book (LiquidBudget).

    Particles have no room, in the pipe or before it, and are kept back, where they would lie within 0.4
    spacings of a solid or a wall of their container, outside all containers, or in liquid. As long as liquid
    stands around the pipe nothing flows: an opening may look down into a pool, and be reached by it, but lies
    above it.
    """

    reads = (Fluid,)
    may_read = (*BODIES, Position, InertialVelocity, Liquid, Strength)
    asks = (BodySystem, "SphSystem")
    phase = "constrain"
    periodic = False
    after = ("CollisionSystem", "BoundarySystem", "ReactionSystem", "SurfaceBarrierSystem")

    inflows: list[Inflow] = Field(default_factory=list)
    """the openings of the world"""

    def __post_init__(self) -> None:
        self._warned = set[tuple[str, bool]]()

    def spawns(self, world: World) -> None:
        """Make the liquids that they fill."""
        for inflow in self.inflows:
            if inflow.into not in world:
                kinds: list[type[Component]] = [Position, InertialVelocity, Liquid]
                kinds += [kind for kind, _ in _further(inflow)]
                world.spawn(inflow.into, *(kind.blank(0, np.float64) for kind in kinds))

    def added(self, world: World) -> None:
        """Refuse openings of one name, entities that are no liquid alone, and what memory cannot hold."""
        from ecs_fluid.systems.sph import SphSystem  # which knows this one

        world.require(SphSystem)
        self.inflows = [_completed(inflow, self.inflows, world) for inflow in self.inflows]
        names = [inflow.name for inflow in self.inflows]
        for inflow in self.inflows:
            if names.count(inflow.name) > 1:
                raise RecipeError(f"two inflows are called {inflow.name!r}; each needs a name of its own")
            world[inflow.into][Liquid]
            if inflow.attached is not None:
                world[inflow.attached][Pose]
                if (count := len(world[inflow.attached])) != 1:
                    raise RecipeError(
                        f"inflow {inflow.name!r} is attached to {inflow.attached!r}, which is {count} "
                        "bodies; one body is needed"
                    )
            for kind, table in _further(inflow):
                refuse_lists(kind, table, f"inflow {inflow.name!r}", f"{inflow.into!r} may get")
            layers = inflow.fastest * world.dt / inflow.thickness
            what = f"particles in a tick by inflow {inflow.name!r}"
            check_memory(VORTON, layers * len(inflow.layer()), what, LARGER)
            none = np.empty((0, 3))
            world.spawn_rows(inflow.into, *_rows(inflow, none, none))

    def lint(self, world: World) -> list[str]:
        """Jets too thin for their spacing, liquids of two densities, and openings without room, as the world
        is now."""
        said = []
        for inflow in self.inflows:
            across = min(inflow.size) / inflow.edge
            if across < LEAST_ACROSS * (1 - 1e-6):
                said.append(
                    f"InflowSystem: the jet of {inflow.name!r} is {across:.2g} particles thick, fewer than "
                    f"{LEAST_ACROSS}, and will fall into drops; use spacing <= "
                    f"{min(inflow.size) / LEAST_ACROSS:.2g} m"
                )
            others = [(repr(one.name), one.rho) for one in self.inflows if one.into == inflow.into]
            if rho := _density(world[inflow.into][Liquid]):
                others.insert(0, ("the liquid there", rho))
            for name, other in others[: [one for one, _ in others].index(repr(inflow.name))]:
                if abs(inflow.rho - other) > SAME_DENSITY * other:
                    said.append(
                        f"InflowSystem: {inflow.name!r} lets liquid of {inflow.rho:g} kg/m^3 into "
                        f"{inflow.into!r}, and {name} has {other:g} kg/m^3; leave density out to have the "
                        "same, or let it flow into an entity of its own"
                    )
                    break
            if world.time > inflow.start:  # a resumed one, with its own liquid before it
                continue
            carrying = _carrying(inflow, world, ended=False)
            x, _ = _in_pipe(inflow, inflow.start, world, carrying)
            if lost := np.count_nonzero(~_room(inflow, x, world, carrying)):
                said.append(
                    f"InflowSystem: {lost} of the {len(x)} particles in the pipe of {inflow.name!r} have no "
                    "room: they lie in liquid, in a solid or outside all containers, and are kept back; move "
                    "its center"
                )
        return said

    def process(self, dt: float) -> None:
        """Let in what is due in this tick."""
        from ecs_fluid.systems.sph import SphSystem  # which knows this one

        liquid = self.world.require(SphSystem)
        begin, end = self.world.tick * dt, (self.world.tick + 1) * dt
        taken = 0.0
        for inflow in self.inflows:
            layer = inflow.layer()
            each = inflow.thickness
            _, moments = births(inflow.speed, inflow.start, inflow.stop, begin, end, each, ahead=0.5)
            if not len(moments):
                continue
            carrying = _carrying(inflow, self.world, ended=True)
            if carrying is not None and not len(carrying.x):
                continue
            count = len(moments) * len(layer)
            taken = (taken or particles_take(self.world)) + count * VORTON
            what = f"particles with {count:,} more by inflow {inflow.name!r} would take"
            check_bytes(taken, what, f"{LARGER}, or give it a time to stop")
            x, v = _placed(inflow, moments, np.zeros(len(moments)), self.world, carrying)
            age = np.repeat(end - moments, len(layer))[:, None]
            pull = liquid.weight(inflow.rho) * self.world.gravity
            x, v = x + age * v + 0.5 * age**2 * pull, v + age * pull
            free = _room(inflow, x, self.world, carrying)
            told = inflow.name, bool(free.any())  # once that it lacks some, once that nothing flows
            if not free.all() and told not in self._warned:
                self._warned.add(told)
                warnings.warn(
                    f"t = {end:.4g} s: {np.count_nonzero(~free)} of {len(x)} particles of inflow "
                    f"{inflow.name!r} have no room, as there is liquid, a solid or no container, and are "
                    "kept back; more may follow",
                    FluidWarning,
                    stacklevel=2,
                )
            self.world.spawn_rows(inflow.into, *_rows(inflow, x[free], v[free]))


def _completed(inflow: Inflow, inflows: list[Inflow], world: World) -> Inflow:
    """An opening with what it leaves open: that of the liquid there is, or of another opening."""
    liquids = [(entity.name, liquid) for entity, (liquid,) in world.entities_with(Liquid) if len(entity)]
    own = [liquid for name, liquid in liquids if name == inflow.into]
    told: dict[str, float] = {}
    for liquid in own:
        told["density"] = _density(liquid)
    for _, liquid in liquids[:1]:
        told["spacing"] = float(np.cbrt(liquid.volume.mean(dtype=np.float64)))
        told["viscosity"] = float(liquid.viscosity[0])
    for name in ("spacing", "density", "viscosity"):
        same = [other for other in inflows if name != "density" or other.into == inflow.into]
        for value in (getattr(other, name) for other in same):
            if value is not None:
                told.setdefault(name, value)
    whole = {"spacing": inflow.edge, "density": inflow.rho, "viscosity": inflow.nu}
    found = {name: value for name, value in (whole | told).items() if getattr(inflow, name) is None}
    return inflow.model_copy(update=found)


def _density(liquid: Liquid) -> float:
    """Mean density of a liquid, kg/m^3; 0 if there is none."""
    volume = float(liquid.volume.sum(dtype=np.float64))
    return float(liquid.mass.sum(dtype=np.float64)) / volume if volume else 0.0


def _carrying(inflow: Inflow, world: World, ended: bool) -> Carriers | None:
    """What carries an opening along, as it is when a tick begins, or has ended."""
    return None if inflow.attached is None else bodies(world, inflow.attached, ended)


def _room(inflow: Inflow, x: Array, world: World, carrying: Carriers | None) -> Array:
    """Which new places (n, 3) m have room: away from solids and walls, in a container, and not in liquid.

    None has as long as liquid stands around the pipe.
    """
    if not len(x) or _under_liquid(inflow, world, carrying):
        return np.zeros(len(x), bool)
    margin = NEAREST * inflow.edge
    walls, free = containers(world), ~near_solids(world, x, margin)
    if walls:
        free &= np.any([wall.inside(x, margin) for wall in walls], axis=0)
    crowd, nearest = _crowd(inflow, x, world)
    if inflow.jumps:
        free &= nearest >= CLEAR * inflow.edge
    return np.asarray(free & (crowd < FULL))


def _under_liquid(inflow: Inflow, world: World, carrying: Carriers | None) -> bool:
    """Whether liquid stands around the pipe, behind its opening."""
    x, _ = _in_pipe(inflow, world.tick * world.dt, world, carrying)
    return bool(_crowd(inflow, x[len(x) // 2 :], world)[0].max(initial=0.0) > AROUND)


def _crowd(inflow: Inflow, x: Array, world: World) -> tuple[Array, Array]:
    """Density (n,) over that at rest of the liquid that is there at places (n, 3) m, w_0 sum phi, and the
    distance (n,) m of its nearest particle, inf where none is felt."""
    from scipy.spatial import cKDTree

    from ecs_fluid.kernels.sph.forces import lattice_weight, phi

    reach, crowd, nearest = REACH * inflow.edge, np.zeros(len(x)), np.full(len(x), np.inf)
    if not len(x):
        return crowd, nearest
    low, high = x.min(axis=0) - reach, x.max(axis=0) + reach
    for _, (position, _) in world.entities_with(Position, Liquid):
        near = position.x[((position.x > low) & (position.x < high)).all(axis=1)]
        if len(near):
            pairs = cKDTree(x).sparse_distance_matrix(cKDTree(near), reach, output_type="ndarray")
            crowd += np.bincount(pairs["i"], phi(pairs["v"] / reach), len(x))
            np.minimum.at(nearest, pairs["i"], pairs["v"])
    return lattice_weight(REACH) * crowd, nearest


def inflows(world: World) -> list[Inflow]:
    """All openings of a world."""
    system = world.system(InflowSystem)
    return [] if system is None else system.inflows


def in_pipes(world: World) -> tuple[Array, Array, Array, Array]:
    """What is in the ends of the pipes of a world: places (n, 3) m, velocities (n, 3) m/s, masses (n,) kg and
    volumes (n,) m^3."""
    found = [(np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0))]
    for inflow in inflows(world):
        carrying = _carrying(inflow, world, ended=False)
        x, v = _in_pipe(inflow, world.tick * world.dt, world, carrying)
        free = _room(inflow, x, world, carrying)
        each = np.ones(np.count_nonzero(free)) * inflow.particle
        found.append((x[free], v[free], inflow.rho * each, each))
    x, v, mass, volume = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return x, v, mass, volume


def _in_pipe(inflow: Inflow, time: float, world: World, carrying: Carriers | None) -> tuple[Array, Array]:
    """Places and velocities (n, 3) of the layers that will leave next, as far as liquid is felt."""
    each, start, stop = inflow.thickness, inflow.start, inflow.stop
    now = max(time, start) if stop is None else min(max(time, start), stop)
    number, _ = births(inflow.speed, start, stop, now, now, each, ahead=0.5)
    far = (number + 0.5) * each - integral(inflow.speed, start, now)
    ahead = -np.arange(far, REACH * inflow.edge, each)
    flows = start <= time < (math.inf if stop is None else stop)
    return _placed(inflow, np.full(len(ahead), time), ahead, world, carrying, float(flows))


def _placed(
    inflow: Inflow,
    moments: Array,
    ahead: Array,
    world: World,
    carrying: Carriers | None,
    flows: float = 1.0,
) -> tuple[Array, Array]:
    """Places and velocities (n, 3) of layers `ahead` (m,) m of the opening as it is at moments (m,) s.

    Their velocity is the speed, times `flows`, and that of the opening. Nothing comes from one whose carrier
    is gone.
    """
    if carrying is not None and not len(carrying.x):
        return np.empty((0, 3)), np.empty((0, 3))
    layer, n = inflow.layer(), len(moments)
    way = np.broadcast_to(value_at(inflow.direction, moments), (n, 3))
    way = way / np.linalg.norm(way, axis=1, keepdims=True)
    first = np.cross((0.0, 0.0, 1.0), way)
    first[np.linalg.norm(first, axis=1) < 1e-6] = (1.0, 0.0, 0.0)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(way, first)
    middle = value_at(inflow.center, moments) + ahead[:, None] * way
    across = layer[None, :, :1] * first[:, None] + layer[None, :, 1:] * second[:, None]
    v = flows * np.broadcast_to(value_at(inflow.speed, moments), n)[:, None] * way
    v = v + own_velocity(inflow.center, world)
    x, v = (middle[:, None] + across).reshape(-1, 3), np.repeat(v, len(layer), axis=0)
    if carrying is None:
        return x, v
    frames = carrying.frames(np.repeat(moments, len(layer)), np.zeros(len(x), np.int64))
    return frames.placed(x), frames.turned(v) + frames.velocity(x)


def _rows(inflow: Inflow, x: Array, v: Array) -> list[Component]:
    """Particles at places (n, 3) m with velocities (n, 3) m/s."""
    of_each = (inflow.rho * inflow.particle, inflow.particle, inflow.nu)
    rows: list[Component] = [
        Position(x),
        InertialVelocity(v),
        Liquid(*(np.full(len(x), value) for value in of_each)),
    ]
    for kind, table in _further(inflow):
        whole = filled(kind, table, len(x), f"inflow {inflow.name!r}", "a tick makes")
        if isinstance(whole, Component):  # else all of its values are the default
            rows.append(whole)
    return rows


def _further(inflow: Inflow) -> list[tuple[type[Component], dict[str, Any]]]:
    """Classes of the further components of its particles, and their tables."""
    return further(inflow.component, f"inflow {inflow.name!r}", (Position, InertialVelocity))


def _pairs(first: Any, second: Any) -> Array:
    """All pairs (n, 2) of numbers of two lists."""
    return np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
