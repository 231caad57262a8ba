"""Emitters: particles that appear over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Component, RowId, Tables
from ecs_fluid.components import (
    Acceleration,
    Age,
    BirthCells,
    CarrierMotion,
    CoreRadius,
    Density,
    Emission,
    InertialVelocity,
    Liquid,
    Position,
    Species,
    Strength,
    Temperature,
    Velocity,
    Volume,
)
from ecs_fluid.components.bodies import CollisionCount, Pose
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import LAWS, Fluid, key_values
from ecs_fluid.further_components import component_from, refuse_lists
from ecs_fluid.input_limits import TRACER, VORTON
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.periodic import wrapped
from ecs_fluid.plane import rule_of_plane
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.lifetime import LifetimeSystem
from ecs_fluid.systems.operations import InertiaSystem
from ecs_fluid.systems.shared.births import births
from ecs_fluid.systems.shared.body_tables import BODIES, rows_of
from ecs_fluid.systems.shared.carriers import Carriers, carriers, follow, own_velocity
from ecs_fluid.systems.shared.emitters import OWN, Emitter, further
from ecs_fluid.systems.shared.fluid_at_rest import (
    density_at,
    density_of,
    fluid_at_rest,
    refuse_both,
    temperature_at,
    temperature_of,
)
from ecs_fluid.systems.shared.overlap import room
from ecs_fluid.systems.shared.populations import Growth
from ecs_fluid.systems.shared.properties import column, unburnt_lint
from ecs_fluid.systems.shared.puffs import Puffs, puff_rows, refuse_twice
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.tables import refuse_contradiction
from ecs_fluid.unit_lint import cold_rows_lint
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.row_changes import NewRows

SAMPLED = 200
"""Births at which an emitter's places are compared with bodies in advance"""
MOSTLY = 0.25
"""Part of them in bodies from which that is told; a few are usual beside walls"""


class EmissionSystem(System):
    """Emission of particles: in all, the whole part of the integral of the rate over time.

    The count of a tick is the whole part of that integral at its end less the one at its start, so a rate of
    90 1/s at dt = 1/60 s gives 1, 2, 1, 2, ... particles, with no drift over any number of ticks.

    A particle is born when the integral reaches its number. Those born in the first half of a tick appear
    when it begins, the others when it ends (Strang's splitting). So on average new particles are carried,
    heated and burnt for the right time, to second order in dt. Each has the Age of its own moment of birth,
    and the center, density and temperature that the emitter had then. Within a tick, what carries the emitter
    moves with its velocity and turns with its spin. Inertial particles are placed where their own velocities
    have brought them since their birth, or where they have to start to be right later. So streams show no
    clumps from tick to tick, except where bodies are in the way.

    Random numbers are counter-based (Philox), keyed by the world's seed, the emitter's name and the half
    tick, so they do not depend on what else draws random numbers, nor on a resume. An emitter whose entity
    has BirthCells gives off in them, all alike, in place of its `shape` of the size `spread`. A
    CollisionSystem keeps back particles inside a body, or outside all containers.

    A puff is many particles born at one moment: all rows that its recipe makes. A ring, for example, gives
    the flow its circulation and its impulse, but no total strength.

    Populations with a Density, Temperature or Species get the values of the puff or of the emitter; where
    neither sets any, the ambient values at the place of each row. With an equation of state the density
    follows from the temperature, or the temperature from the density of a puff.
    Source: Fluid Simulation for Video Games, part 7.
    """

    reads = (Fluid,)
    may_read = (*OWN, Age, BirthCells, Liquid, *BODIES)
    writes = (Emission, CollisionCount, CarrierMotion, Position)
    asks = (CollisionSystem, BodySystem)
    phase = "spawn"
    symmetric = True
    before = ("*",)
    dimensions = (2, 3)

    emitters: list[Emitter] = Field(default_factory=list)
    """the emitters of the world"""

    def __post_init__(self) -> None:
        self._puffs = Puffs()
        self._flying: list[tuple[NewRows, Array]] = []
        """Rows born in the first half of the tick, and their displacements (n, 3) m since birth"""

    def spawns(self, world: World) -> None:
        """Make the entity that keeps each emitter's state."""
        for emitter in self.emitters:
            if emitter.name not in world:
                world.spawn(emitter.name, Emission)
            world._attach_missing(emitter.name, Emission)

    def added(self, world: World) -> None:
        """Refuse emitters of the same name, and entities that cannot receive particles or carry an
        emitter."""
        systems = [system for system in world.systems if isinstance(system, EmissionSystem)]
        names = [emitter.name for system in systems for emitter in system.emitters]
        for emitter in self.emitters:
            if names.count(emitter.name) > 1:
                raise RecipeError(
                    f"two emitters are called {emitter.name!r}; every emitter needs its own name"
                )
            target = world[emitter.into]
            target[Position]
            _refuse_out_of_plane(emitter, world)
            refuse_both(world, f"emitter {emitter.name!r} has", emitter.density, emitter.temperature)
            if Species in target:
                one = Species(**{name: [y] for name, y in emitter.fractions.items()})
                refuse_contradiction(emitter.name, Species, {Species: one})
            for kind, table in further(emitter):
                target[kind]
                refuse_lists(kind, table, f"emitter {emitter.name!r}", f"{emitter.into!r} may get")
            if emitter.attached is not None and Pose not in (carrier := world[emitter.attached]):
                carrier[Position]
                world._attach_missing(emitter.attached, CarrierMotion)
            refuse_twice(emitter, self._puffs.of(emitter, world), world)

    def must_hold(self, world: World) -> None:
        """Check that an emitter with BirthCells has at least one."""
        for emitter in self.emitters:
            state = world[emitter.name]
            if BirthCells in state and not len(state[BirthCells].x):
                raise RecipeError(
                    f"BirthCells of emitter {emitter.name!r} has no cells; at least one is needed"
                )

    def lint(self, world: World) -> list[str]:
        """Warn of unburnt fuel, emitters that never begin, particles that nothing moves, puffs that are too
        cold, and particles that will be kept back."""
        texts = []
        if fuel := [emitter.name for emitter in self.emitters if emitter.fuel]:
            texts += unburnt_lint(world, "EmissionSystem: emitter ", fuel[0], "emits")
        filled = [emitter.into for s in world.systems for emitter in getattr(s, "emitters", ())]
        texts += [
            f"EmissionSystem: emitter {emitter.name!r} is attached to {emitter.attached!r}, which is empty "
            "and gets particles from this emitter alone, so it never begins; attach it to something else"
            for emitter in self.emitters
            if emitter.attached == emitter.into
            and not len(world[emitter.into])
            and filled.count(emitter.into) == 1
        ]
        texts += [
            f"EmissionSystem: the particles of emitter {emitter.name!r} have no velocity, and nothing moves "
            "them, so they stay where they are born; give the emitter a velocity, or the world a [[system]] "
            "of kind = 'accelerate', for gravity"
            for emitter in self.emitters
            if InertialVelocity in (target := world[emitter.into]) and Liquid not in target
            if emitter.attached is None and not isinstance(emitter.center, Keyed)
            if not any((*emitter.velocity, *emitter.velocity_spread)) and not _moved(world)
        ]
        for emitter in self.emitters:
            texts += cold_rows_lint(self._puffs.of(emitter, world), f" of a puff of emitter {emitter.name!r}")
            texts += self._kept_back_lint(emitter, world)
        return texts

    def _kept_back_lint(self, emitter: Emitter, world: World) -> list[str]:
        """Warn of a puff that bodies, as they stand now, cut open, and of an emitter that mostly gives off in
        them."""
        keeping = [
            s for s in world.systems if isinstance(s, CollisionSystem) and s.keeps(world[emitter.into])
        ]
        if not keeping:
            return []
        if emitter.puff is None:
            moments = np.full(SAMPLED, emitter.start)
            x = self._places(emitter, stream(world.seed, emitter.name, 0), moments)
        else:
            x = column(self._puffs.of(emitter, world), Position, "x")
            x = x + value_at(emitter.center, emitter.start)
        if emitter.attached is not None:
            carrying = carriers(world, emitter.attached, False, emitter.attached_by == "mean")
            if not len(carrying.x):
                return []
            turns = np.arange(len(x)) if emitter.puff is None else np.zeros(len(x), np.int64)
            x = carrying.frames(np.full(len(x), carrying.now), turns).placed(x)
        lost = np.count_nonzero(keeping[0].overlap(wrapped(x, world.periods)) > 0)
        if emitter.puff is None:
            if lost <= MOSTLY * len(x):
                return []
            return [
                f"EmissionSystem: {100 * lost / len(x):.0f} % of the places where emitter {emitter.name!r} "
                "gives off lie in a body or outside all containers, and what is born there is kept back; "
                "move its center, or the body"
            ]
        if not lost:
            return []
        return [
            f"EmissionSystem: {lost} of the {len(x)} particles of a puff of emitter {emitter.name!r} "
            "lie in a body or outside all containers, and are kept back, which leaves a gap in the "
            "puff; move its center, or the body"
        ]

    def process(self, dt: float) -> None:
        """Release the particles that are due in this half of the tick."""
        ended, growth = bool(self.world.stage.c), Growth(self.world)
        if ended:
            self._advance_newborn()
        self._flying = []
        emitted = [self._give_off(emitter, growth) for emitter in self.emitters]
        if any(emitted) and not ended:  # at the end of the tick CollisionSystem does so by itself
            for system in self.world.systems:
                if isinstance(system, CollisionSystem):
                    system.keep_back()

    def _give_off(self, emitter: Emitter, growth: Growth) -> bool:
        """Spawn the particles due from one emitter; returns whether there are any."""
        ended, carrying = bool(self.world.stage.c), None
        if emitter.attached is not None:
            follow(self.world, emitter.attached, not ended)
            carrying = carriers(self.world, emitter.attached, ended, emitter.attached_by == "mean")
            if not len(carrying.x):
                return False
        moments, numbers = self._births_due(emitter)
        if not len(moments):
            return False
        target = self.world[emitter.into].tables
        born = [] if emitter.puff is None else numbers.tolist()
        puffs = [self._puffs.of(emitter, self.world, number) for number in born]
        sizes = [len(column(puff, Position, "x")) for puff in puffs] or 1
        births, numbers = np.repeat(moments, sizes), np.repeat(numbers, sizes)
        each, source = VORTON if Strength in target else TRACER, f"emitter {emitter.name!r}"
        growth.add(len(births), each, source, "give it a smaller rate or a limit")
        rows = self._random_values(emitter, target, moments)
        if puffs:
            rows = puff_rows(rows, sizes, puffs, target)
        way = self._move(emitter, rows, births, numbers, carrying)
        rows += self._temperature_and_density(emitter, target, rows, births)
        own = {type(table) for table in rows}
        rows += [one for one in self._shared_values(emitter, target, births) if type(one) not in own]
        batch = self.world.spawn_rows(emitter.into, *rows, where_free=True)
        if way is not None and not ended:
            self._flying.append((batch, way))
        return True

    def _births_due(self, emitter: Emitter) -> tuple[Array, Array]:
        """Moments (n,) s of births in this half of the tick, and the consecutive numbers (n,) of those
        born."""
        state, tick = self.world[emitter.name][Emission], self.world.tick + 0.5 * self.world.stage.c
        begin, end = tick * self.world.dt, (tick + 0.5) * self.world.dt
        _, moments = births(emitter.rate, emitter.start, emitter.stop, begin, end)
        emitted = int(state.emitted[0])
        if emitter.limit is not None:
            moments = moments[: max(emitter.limit - emitted, 0)]
        state.emitted[0] += len(moments)
        return moments, np.arange(emitted, emitted + len(moments))

    def _shared_values(self, emitter: Emitter, target: Tables, moments: Array) -> list[Component]:
        """Components with the same values for all particles of an emitter, and their ages."""
        tables, count = list[Component](), len(moments)
        if CoreRadius in target:
            tables.append(CoreRadius.unchecked(sigma=np.full(count, emitter.core)))
        if Volume in target:
            volume = emitter.volume or room(emitter.core, self.world.dimension)
            tables.append(Volume.unchecked(volume=np.full(count, volume)))
        if Species in target:
            fractions = emitter.fractions.items()
            tables.append(Species.unchecked(**{name: np.full(count, y) for name, y in fractions}))
        for kind, table in further(emitter):
            if kind.per_row:
                whole = component_from(kind, table, count, f"emitter {emitter.name!r}", "a tick makes")
                tables.append(kind.blank(count, self.world.dtype) if isinstance(whole, type) else whole)
        if Age in target and self.world.system(LifetimeSystem) is not None:
            age = next((table for table in tables if isinstance(table, Age)), None)
            tables = [table for table in tables if table is not age]
            tables.append(Age.unchecked(t=(age.t if age else 0.0) + (self.world.time - moments)))
        return tables

    def _random_values(self, emitter: Emitter, target: Tables, moments: Array) -> list[Component]:
        """Random values for each particle or puff, in the emitter's axes: places, strengths, velocities."""
        count, half = len(moments), int(self.world.stage.c)
        draw = stream(self.world.seed, emitter.name, 2 * self.world.tick + half)
        x = self._places(emitter, draw, moments)
        tables: list[Component] = [Position.unchecked(x=x)]
        if Strength in target or InertialVelocity in target:
            # Always draw both, so that no draw depends on which components the target has.
            swirl, speed = draw.random((count, 3)) - 0.5, draw.random((count, 3)) - 0.5
            if Strength in target:
                swirl *= emitter.strength_spread
                swirl += emitter.strength
                tables.append(Strength.unchecked(alpha=swirl))
            if InertialVelocity in target:
                speed *= emitter.velocity_spread
                speed += emitter.velocity
                tables.append(InertialVelocity.unchecked(v=speed))
        return tables

    def _temperature_and_density(
        self, emitter: Emitter, target: Tables, rows: list[Component], moments: Array
    ) -> list[Component]:
        """Temperature and density of the new rows (n,), if the target has them and the puff does not."""
        if Temperature not in target and Density not in target:
            return []
        own = {type(table): table for table in rows}
        fluid = fluid_at_rest(self.world)
        z, law = column(own, Position, "x")[:, 2], fluid.law != LAWS["none"]
        warm = _birth_column(own, Temperature, "T", emitter.temperature, moments)
        rho = _birth_column(own, Density, "rho", emitter.density, moments)
        if warm is None:
            warm = temperature_at(fluid, z) if rho is None or not law else temperature_of(fluid, rho)
        if Temperature in target and law:
            rho = density_of(fluid, warm)
        elif rho is None:
            rho = density_at(fluid, z)
        tables = Temperature.unchecked(T=warm), Density.unchecked(rho=rho)
        return [table for table in tables if type(table) in target and type(table) not in own]

    def _places(self, emitter: Emitter, draw: np.random.Generator, moments: Array) -> Array:
        """Places (n, 3) m in the emitter's axes; keys of its center leave a streak."""
        count, state = len(moments), self.world[emitter.name]
        if BirthCells in state:
            cells = state[BirthCells]
            chosen = (draw.random(count) * len(cells.x)).astype(np.int64)
            offsets = cells.x[chosen] + (draw.random((count, 3)) - 0.5) @ cells.edges
        elif emitter.shape == "box":
            offsets = (draw.random((count, 3)) - 0.5) * emitter.spread
        else:
            direction = draw.standard_normal((count, 3))
            power, across = 1 / 3, 2 if emitter.shape == "disc" else self.world.across
            if across is not None:
                direction[:, across] = 0.0
                power = 1 / 2
            direction /= np.sqrt((direction * direction).sum(axis=1, keepdims=True))
            offsets = 0.5 * direction * draw.random((count, 1)) ** power * emitter.spread
        return np.asarray(value_at(emitter.center, moments) + offsets)

    def _move(
        self,
        emitter: Emitter,
        rows: list[Component],
        moments: Array,
        numbers: Array,
        carrying: Carriers | None,
    ) -> Array | None:
        """Transform new rows, in place, from the axes of the emitter's carrier to the world's.

        Inertial particles get the emitter's velocity too, and move with their own. When the tick ends, they
        are placed where they have come since their moments (n,) s of birth. When the tick begins, they are
        placed at the emitter, as if they left now; the displacements (n, 3) m, by which `_advance_newborn`
        corrects that later, are returned.
        """
        tables = {type(table): vars(table) for table in rows}
        local, now = tables[Position]["x"], self.world.time
        frames = None if carrying is None else carrying.frames(moments, numbers)
        if frames is not None:
            for kind, columns in tables.items():  # vector columns are those that a plane restricts to a part
                for name, field in kind.columns.items():
                    if field.plane is not None and name in columns:
                        columns[name] = frames.turned(columns[name])
            tables[Position]["x"] = frames.placed(local)
        if InertialVelocity not in tables:
            return None
        moving = own_velocity(emitter.center, self.world)
        if frames is not None:
            moving = frames.velocity(local) + frames.turned(np.broadcast_to(moving, local.shape))
        if moving.any():
            tables[InertialVelocity]["v"] = tables[InertialVelocity]["v"] + emitter.inherit * moving
        if self.world.system(InertiaSystem) is None or Liquid in self.world[emitter.into]:
            return None
        start = local + (value_at(emitter.center, now) - value_at(emitter.center, moments))
        if carrying is not None:
            start = carrying.frames(np.full(len(moments), now), numbers).placed(start)
        end = tables[Position]["x"] + (now - moments)[:, None] * tables[InertialVelocity]["v"]
        tables[Position]["x"] = self._unblocked_ends(emitter, start, end) if self.world.stage.c else start
        return np.asarray(end - start)

    def _advance_newborn(self) -> None:
        """Displace particles born in the first half of the tick to where they have come since their birth."""
        for batch, displacement in self._flying:
            entity = self.world[batch.name]
            rows, _ = rows_of(entity[RowId].id, batch.ids)
            entity[Position].x[rows] += displacement[batch.kept_rows].astype(self.world.dtype)

    def _unblocked_ends(self, emitter: Emitter, start: Array, end: Array) -> Array:
        """Ends (n, 3) m of paths as far as bodies allow; a path that would start in a body is not
        followed."""
        for system in self.world.systems:
            if isinstance(system, CollisionSystem) and system.keeps(self.world[emitter.into]):
                clear = system.overlap(start) <= 0.0
                end = np.where(clear[:, None], end, start)
                end[clear] = system.followed(start[clear], end[clear])
        return end


def _refuse_out_of_plane(emitter: Emitter, world: World) -> None:
    """Raise RecipeError if a vector of the emitter leaves the plane of a world of two dimensions."""
    across = world.across
    if across is None:
        return
    for key in ("center", "spread", "velocity", "velocity_spread", "strength", "strength_spread"):
        turns = key.startswith("strength")
        for value in key_values(getattr(emitter, key)):
            if any(part for axis, part in enumerate(value) if (axis == across) != turns):
                raise RecipeError(
                    f"emitter {emitter.name!r}: {key} = {list(value)}; "
                    f"{rule_of_plane(world, across, not turns)}"
                )


def _moved(world: World) -> bool:
    """Whether a flow, or a system beside inertia itself and bodies, moves inertial particles."""
    kinds = {Velocity, Acceleration, InertialVelocity}
    return any(Strength in entity for entity in world.entities) or any(
        kinds & {*system.adds} or InertialVelocity in system.writes
        for system in world.systems
        if not isinstance(system, InertiaSystem | CollisionSystem)
    )


def _birth_column(puff: Tables, kind: type[Component], name: str, value: Any, moments: Array) -> Array | None:
    """A column (n,) of new rows: from the puff, or from the emitter's parameter, which may be keyed in time,
    at the moments of birth; None if neither has it."""
    if kind in puff:
        return column(puff, kind, name)
    return None if value is None else np.full(len(moments), value_at(value, moments))
