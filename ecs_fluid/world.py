"""The world: entities with component tables, a schedule of systems, and a clock.

esper keeps one world at a time in module globals. Every call here that touches it holds one process-wide
lock, switches esper to this world's context and puts the former one back, so that several worlds live side
by side, also in threads. Holding that lock for a whole tick also keeps parallel kernels of two threads
apart, which numba's simplest threading layer cannot bear.
"""

from __future__ import annotations

import re
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypedDict, TypeVar, Unpack, overload

import esper
import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from ecs_fluid.access import as_asked
from ecs_fluid.component import Array, Component, RowId, column
from ecs_fluid.entity import Entity, Snapshot, frozen
from ecs_fluid.errors import ComponentError, FluidError, ScheduleError, sentences
from ecs_fluid.fluid import Fluid, FluidKeywords, changed, gravity_of, options_of
from ecs_fluid.integrator import Stage, Tables
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.one_process import OneProcess, before_sharing, collective
from ecs_fluid.periodic import AXES, repeats_for, wrapped
from ecs_fluid.plane import fits
from ecs_fluid.plugins import ships, users_method
from ecs_fluid.schedule import Schedule, build, misnamed, named
from ecs_fluid.system import LARGEST, A, B, C, D, Settings, System, Timing
from ecs_fluid.tables import checked_tables
from ecs_fluid.ticker import Ticker
from ecs_fluid.validation_errors import nearest, shown, validated

if TYPE_CHECKING:
    from ecs_fluid.commands import NewRows

_LOCK = threading.RLock()
_ENDED: list[str] = []
"""Contexts of worlds that are gone; the next holder of the lock deletes their tables."""

S = TypeVar("S", bound=System)


def _quotient(value: Any) -> Any:
    """The number that a text such as "1/60" stands for; what is no text is left as it is."""
    if not isinstance(value, str):
        return value
    told = re.fullmatch(_QUOTIENT, value)
    try:
        over, under = map(float, told.groups()) if told else (0.0, 0.0)
    except ValueError:
        over = under = 0.0
    if not (0 < over <= LARGEST and 1 / LARGEST <= under <= LARGEST):
        raise ValueError('a number, or a quotient of two positive numbers such as "1/60", is needed')
    return over / under


_QUOTIENT = "^([0-9.eE+ -]+)/([0-9.eE+ -]+)$"
_Step = Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=_QUOTIENT)]


Integrator = Literal["euler", "rk2", "rk3", "rk4"]
Precision = Literal["single", "double"]


LONGEST = 1e9
"""Longest period of a world that repeats, m."""

_POINTS = column("m", shape=(3,), kind="double")
_POINTS.name = "points"


class WorldOptions(Settings):
    """Clock, arithmetic and seed of a world."""

    dt: Annotated[float, BeforeValidator(_quotient, json_schema_input_type=_Step)] = Field(
        default=1 / 30, gt=0
    )
    """time step of a tick, s; a number, or a quotient: '1/60'"""
    integrator: Integrator = "rk2"
    """Runge-Kutta method of order 1 to 4 for every rate"""
    precision: Precision = "single"
    """float32 or float64 tables"""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """seed of all random numbers"""
    dimension: Literal[2, 3] = 3
    """2: flow in a plane through the origin, the same across it, of which a world holds one metre"""
    plane: Literal["xy", "xz"] = "xy"
    """the plane of a world of dimension 2; heights are z, so gravity along it and layers lie in "xz" """
    periodic: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """lengths of a box about the origin that repeats, m; 0 along an axis that does not"""
    debug: bool = False
    """poison derived tables each tick and catch what systems touch undeclared (slow)"""

    @property
    def across(self) -> int | None:
        """Axis across the plane of a world of two dimensions, 1 (y) or 2 (z); None in three."""
        return None if self.dimension == 3 else 3 - AXES.index(self.plane[1])

    @model_validator(mode="after")
    def _plane_of_two_dimensions(self) -> Self:
        if self.plane == "xz" and self.dimension == 3:
            raise ValueError(
                f"plane = {self.plane!r} is for worlds of dimension = 2; add that, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _space_repeats(self) -> Self:
        if not all(0 <= period <= LONGEST for period in self.periodic):
            raise ValueError(
                f"periodic = {list(self.periodic)} m; three lengths of 0 to {LONGEST:g} m are allowed"
            )
        if self.across is not None and self.periodic[self.across]:
            raise ValueError(
                f"periodic = {list(self.periodic)} repeats across the plane {self.plane!r}, in a world of "
                "dimension = 2, where all is the same; make that period 0"
            )
        return self


class WorldKeywords(TypedDict, total=False):
    """The fields of WorldOptions as keywords of World, for editors and type checkers."""

    dt: float | str
    integrator: Integrator
    precision: Precision
    seed: int
    dimension: Literal[2, 3]
    plane: Literal["xy", "xz"]
    periodic: tuple[float, float, float]
    debug: bool


class World:
    """Entities, systems and time of one simulation.

    Args:
        options: fields of WorldOptions by name: dt [s], integrator ("euler", "rk2", "rk3", "rk4"),
            precision ("single", "double"), seed, dimension (2, 3), plane ("xy", "xz"), periodic [m, m, m],
            debug.

    Raises:
        RecipeError: an option is unknown or out of range.
    """

    def __init__(self, **options: Unpack[WorldKeywords]) -> None:
        self.options: WorldOptions = validated(WorldOptions, options, "World")
        self.dtype: type[np.floating] = np.float32 if self.options.precision == "single" else np.float64
        self.periods: Array = np.array(self.options.periodic)
        """Lengths (3,) m of the box about the origin that repeats; 0 along an axis that does not"""
        self.tick = 0
        self.next_row_id = 0
        self.recipe: dict[str, Any] | None = None
        self.history: list[dict[str, Any]] = []
        self._context = f"ecs_fluid/{uuid.uuid4()}"
        self._entities: dict[str, Entity] = {}
        self._tables_of: dict[int, Tables] = {}
        # What entities show of them: all, or what the running system sees (debug, or many ranks).
        self._shown: Mapping[int, Tables] = self._tables_of
        self._running: System | None = None  # known in debug worlds alone
        # Answers of entities_with, until an entity or a component comes or goes.
        self._found: dict[tuple[type[Component], ...], tuple[tuple[Entity, Any], ...]] = {}
        self._systems: list[System] = []
        self._schedule: Schedule | None = None
        self._ticker = Ticker(self.options.integrator, self.options.debug)
        self._adding = False
        self.processes = OneProcess()
        weakref.finalize(self, _forget, self._context)
        self.fluid = self._create("fluid", {Fluid: changed(None, {}, "World")})

    @property
    def dt(self) -> float:
        """Time step of a tick, s; fixed, since the clock is tick times dt."""
        return self.options.dt

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self.options.seed

    @property
    def dimension(self) -> int:
        """3, or 2 for flow in a plane."""
        return self.options.dimension

    @property
    def across(self) -> int | None:
        """Axis across the plane of a world of two dimensions, 1 (y) or 2 (z); None in three."""
        return self.options.across

    # ------------------------------------------------------------------ entities

    @before_sharing
    def set_fluid(self, **constants: Unpack[FluidKeywords]) -> None:
        """Tell what the fluid is: fields of FluidOptions by name; what is not given stays as it is.

        Give density, viscosity, temperature, heat_capacity, conductivity, gravity (which may be a Keyed),
        law, expansion, density_profile or temperature_profile, before the systems and particles that start
        from them; not during a tick.
        Without a call the fluid is air at rest: 1.2 kg/m^3, 300 K, no viscosity, gravity (0, 0, -9.81) m/s^2.

        Raises:
            RecipeError: a constant is unknown, out of range, or contradicts another one.
        """
        self._ticker.between_ticks("set_fluid")
        fluid = changed(self.fluid[Fluid], constants, "set_fluid")
        self._put(self.fluid, fluid)
        if self.recipe is not None:
            told = options_of(fluid).model_dump(mode="json", include=set(constants))
            table = {**self.recipe.get("fluid", {}), **told}
            self.recipe["fluid"] = {key: value for key, value in table.items() if value is not None}
        self._ticker.warned = False

    @property
    def gravity(self) -> Array:
        """Gravity (3,) m/s^2, as `value_now` has it."""
        return self.value_now(gravity_of(self.fluid[Fluid]))

    def value_now(self, parameter: Any) -> Array:
        """Value of a constant or keyed parameter, () or (k,), that all motion of a tick has in common.

        In the phases prepare and rates it is that at the time of the integrator's stage. For what moves by
        whole ticks, in the phases move and constrain, it is the sum of all stages' values by their weights.
        """
        if not isinstance(parameter, Keyed):
            return value_at(parameter, self.time)
        weights, times = self._ticker.instants
        return np.asarray(np.array(weights) @ value_at(parameter, (self.tick + np.array(times)) * self.dt))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Hold the process lock with esper switched to this world; the former world comes back after."""
        with _LOCK:
            if _ENDED:
                _delete_ended()
            former = esper.current_world
            if former != self._context:
                esper.switch_world(self._context)
            try:
                yield
            finally:
                if former != self._context:
                    esper.switch_world(former)

    def _create(self, name: str, tables: Tables) -> Entity:
        with self.active():
            number = esper.create_entity(*tables.values())
            entity = self._entities[name] = Entity(self, number, name)
            self._list_tables(number)
        return entity

    def _list_tables(self, number: int) -> None:
        # A new dict each time: whoever goes through the former one goes on undisturbed.
        tables: tuple[Component, ...] = esper.components_for_entity(number)
        self._tables_of[number] = {type(table): table for table in tables}
        self._found.clear()

    def _put(self, entity: Entity, table: Component) -> None:
        with self.active():
            esper.add_component(entity.number, table)
            self._list_tables(entity.number)

    def _drop(self, entity: Entity, kind: type[Component]) -> None:
        with self.active():
            esper.remove_component(entity.number, kind)
            self._list_tables(entity.number)

    @property
    def entities(self) -> list[Entity]:
        """All entities in the order in which they were made; the first is the `fluid` entity."""
        return list(self._entities.values())

    def __getitem__(self, name: str) -> Entity:
        if not isinstance(name, str) or name not in self._entities:
            raise FluidError(f"the world has no entity {name!r}; {nearest(str(name), self._entities)}")
        return Entity(self, self._entities[name].number, name, keep=True)

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    @before_sharing
    def spawn(self, name: str, *components: Component | type[Component]) -> Entity:
        """Make an entity, a population whose rows are the particles.

        Args:
            name: letters, digits, "-" and "_", starting with a letter; unique in the world.
            components: tables of equal length; a class stands for a table of its default values.

        Raises:
            ComponentError: lengths differ, a component comes twice or is derived, the name is taken.
        """
        with self.active():
            self._ticker.between_ticks(f"spawn of an entity {name!r}")
            if not (isinstance(name, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_-]{0,99}", name)):
                raise ComponentError(
                    f"entity name {shown(name)}: up to 100 letters, digits, '-' and '_' are allowed, "
                    "starting with a letter"
                )
            if name in self._entities:
                raise ComponentError(f"the world already has an entity {name!r}; choose another name")
            tables = checked_tables(name, components, self.dtype)
            self._wrap(tables)
            if RowId in tables:
                raise ComponentError(f"entity {name!r}: RowId is given by the world, so leave it out")
            rows = next((table.rows for kind, table in tables.items() if kind.per_row), None)
            if rows is not None:
                tables[RowId] = RowId(self._new_ids(rows))
            self._schedule = None
            self._create(name, tables)
        return self[name]

    @property
    def tables(self) -> list[tuple[str, Tables]]:
        """Name and tables by type of every entity, with the rows that this process holds."""
        return [(name, self._shown[entity.number]) for name, entity in self._entities.items()]

    def _wrap(self, *every: Tables) -> None:
        """Move positions in these tables, or in all, by whole periods into the box."""
        if self.periods.any():
            for tables in every or self._tables_of.values():
                for kind, table in tables.items():
                    if kind.__name__ == "Position":
                        vars(table)["x"] = wrapped(vars(table)["x"], self.periods)

    def _new_ids(self, count: int) -> Array:
        ids = np.arange(self.next_row_id, self.next_row_id + count, dtype=np.int64)
        self.next_row_id += count
        return ids

    @before_sharing
    def attach(self, name: str, component: Component | type[Component]) -> None:
        """Add a component to an existing entity; a class stands for a table of its default values."""
        with self.active():
            self._ticker.between_ticks(f"attach to entity {name!r}", "observers")
            entity = self[name]
            kind = component if isinstance(component, type) else type(component)
            tables = self._tables_of[entity.number]
            if kind in tables:
                raise ComponentError(f"entity {name!r} already has a {kind.__name__}")
            # The row names stand in for the entity's rows, so that a class gets as many.
            names = (tables[RowId],) if RowId in tables else ()
            checked = checked_tables(name, (*names, component), self.dtype)[kind]
            if kind.per_row and not names:
                self._put(entity, RowId(self._new_ids(checked.rows or 0)))
            self._put(entity, checked)
            self._schedule = None

    @before_sharing
    def spawn_rows(self, name: str, *components: Component, where_free: bool = False) -> None:
        """Add rows to entity `name`; during a tick they appear when it ends, in the order of the calls.

        Columns of components that are not given get their default; one without a default must be given. With
        `where_free` those do not appear that a CollisionSystem finds in a body, or outside all containers.
        """
        with self.active():
            self._spawn_rows(name, components, where_free)

    def _spawn_rows(self, name: str, components: tuple[Component, ...], where_free: bool) -> None:
        entity = self[name]
        tables = checked_tables(name, components, self.dtype)
        tables.pop(RowId, None)
        rows = next((t.rows or 0 for t in tables.values()), 0)
        full: Tables = {}
        for kind in entity.tables:
            if kind.derived or not kind.per_row or kind is RowId:
                continue
            if kind not in tables:
                if any(field.default is None for field in kind.columns.values()):
                    raise ComponentError(f"entity {name!r}: new rows need {kind.__name__}")
                tables[kind] = kind.blank(rows, self.dtype)
            full[kind] = tables.pop(kind)
        if tables:
            extra = next(iter(tables)).__name__
            raise ComponentError(f"entity {name!r} has no {extra}, so new rows cannot have it either")
        self._ticker.commands.spawn(name, full, rows, where_free)
        if not self._ticker.busy:
            self._ticker.apply(self)

    def drop_new_rows(self, misplaced: Callable[[NewRows], Array]) -> dict[str, tuple[int, int]]:
        """Forget rows of this tick, spawned `where_free`, for which `misplaced` gives a mask that is set.

        Returns how many there were, and of how many, by entity.
        """
        return self._ticker.commands.drop(misplaced)

    @before_sharing
    def kill_rows(self, name: str, rows: Any) -> None:
        """Remove rows of entity `name`, given as a mask (n,) or as row numbers."""
        with self.active():
            self._ticker.commands.kill(name, rows, len(self[name]), self.processes.seen(name))
            if not self._ticker.busy:
                self._ticker.apply(self)

    def entities_with(self, *types: type[Component]) -> Iterator[tuple[Entity, Any]]:
        """Pairs (entity, tables) of entities that have all the `types`, in the order of creation."""
        found = self._found.get(types)
        if found is None:
            found = self._found[types] = tuple(self._search(types))
        return iter(found)

    def _search(self, types: tuple[type[Component], ...]) -> Iterator[tuple[Entity, Any]]:
        if self._running is not None:
            for kind in types:
                self._running.check_declared(kind)
        for kind in types:
            if not (isinstance(kind, type) and issubclass(kind, Component)):
                raise ComponentError(f"{shown(kind)} is no component; a class such as Position is needed")
        for entity in list(self._entities.values()):
            tables = self._shown[entity.number]
            if all(kind in tables for kind in types):
                yield entity, tuple([tables[kind] for kind in types])

    @overload
    def query(self, a: type[A], /) -> Iterator[tuple[A]]: ...
    @overload
    def query(self, a: type[A], b: type[B], /) -> Iterator[tuple[A, B]]: ...
    @overload
    def query(self, a: type[A], b: type[B], c: type[C], /) -> Iterator[tuple[A, B, C]]: ...
    @overload
    def query(self, a: type[A], b: type[B], c: type[C], d: type[D], /) -> Iterator[tuple[A, B, C, D]]: ...
    @overload
    def query(self, *types: type[Component]) -> Iterator[tuple[Any, ...]]: ...

    def query(self, *types: type[Component]) -> Iterator[tuple[Any, ...]]:
        """Tables of every entity that has all the `types`, in the order of creation."""
        return map(itemgetter(1), self.entities_with(*types))

    # ------------------------------------------------------------------ systems

    @property
    def systems(self) -> list[System]:
        """Systems in the order in which they were added."""
        return list(self._systems) if self._running is None else [as_asked(self, s) for s in self._systems]

    def add_system(self, system: S) -> S:
        """Add a system, and the ones it needs; the schedule is checked before the next tick."""
        self.add_systems([system])
        return system

    @before_sharing
    def add_systems(self, systems: Sequence[System]) -> None:
        """Add several systems at once; what they need of one another is taken from the list first."""
        self._ticker.between_ticks("add_systems", "observers")
        for number, system in enumerate(systems):
            if not isinstance(system, System):
                raise ScheduleError(f"{system!r} is not a system; pass an instance of an ecs_fluid.System")
            if "_world" not in vars(system):
                raise ScheduleError(f"{type(system).__name__}.__init__ has to call super().__init__()")
            try:
                signature(system.process).bind(self.dt)
            except TypeError:
                raise ScheduleError(f"{type(system).__name__} needs a method process(self, dt)") from None
            if system._world is not None or any(system is other for other in systems[:number]):
                raise ScheduleError(f"{type(system).__name__} is already in a world; make a new one")
            fits(type(system), self, ScheduleError)
            repeats_for(type(system), self)
        former, implied = self._systems, self._adding
        given = {type(system) for system in systems}
        # A system that another one brought along gives way to one of its kind that the user chose.
        kept = [other for other in former if implied or not (other._implied and type(other) in given)]
        self._systems, self._schedule, self._adding = [*kept, *systems], None, True
        self._ticker.asking = True
        for system in systems:
            system._world, system._implied = weakref.ref(self), implied
            system._by_user = not ships(type(system))
        try:
            for system in systems:
                with users_method(type(system), "spawns"):
                    system.spawns(self)
            for system in systems:
                on = getattr(system, "on", ())
                for name in on if isinstance(on, tuple) else ():
                    self[name]
                with users_method(type(system), "added"):
                    system.added(self)
        except BaseException:
            # A refused system must not run after all.
            self._systems, self._schedule = former, None
            for system in systems:
                system._world = None
            raise
        finally:
            self._adding = implied

    def require(self, kind: type[S], **parameters: Any) -> S:
        """The system of that class, added with `parameters` if there is none."""
        return self.system(kind) or self.add_system(kind(**parameters))

    def system(self, kind: type[S]) -> S | None:
        """The first system of that class, or None."""
        found = next((system for system in self._systems if isinstance(system, kind)), None)
        return found if self._running is None else as_asked(self, found)

    @property
    def schedule(self) -> Schedule:
        """Systems in running order; printing it shows phases, access and times."""
        if self._schedule is None:
            self._schedule = build(self._systems)
            self._attach_derived()
        return self._schedule

    def _attach_derived(self) -> None:
        """Give every entity the tables that come by themselves as systems fill them, at the right length."""
        filled = {kind for system in self._systems for kind in (*system.writes, *system.adds)}
        coming = (kind for kind in filled if kind.derived or kind.given)
        derived = sorted(coming, key=lambda kind: kind.__name__)
        for kind in derived:
            if not kind.per_row and kind not in self._tables_of[self.fluid.number]:
                self._put(self.fluid, kind.blank(0, self.dtype))
        for entity in self._entities.values():
            tables, rows = self._tables_of[entity.number], entity.rows_here
            for kind in derived:
                fits = kind in tables and tables[kind].rows == rows
                if kind.per_row and not fits and all(given in tables for given in kind.given):
                    self._put(entity, kind.blank(rows, self.dtype))

    # ------------------------------------------------------------------ time

    @property
    def time(self) -> float:
        """Simulated time, s: tick times dt, plus the offset of the integrator's stage during a tick."""
        return (self.tick + self._ticker.stage.c) * self.dt

    @collective
    def step(self, ticks: int = 1) -> None:
        """Advance by whole ticks of `dt`.

        Raises:
            DivergedError: a table became non-finite; the world is back at the start of that tick and the
                message names the system that did it.
        """
        if isinstance(ticks, bool) or not isinstance(ticks, int | np.integer) or ticks < 0:
            raise FluidError(f"step: ticks = {shown(ticks)}; a whole number of at least 0 is needed")
        with self.active():
            self._ticker.between_ticks("step")
            for _ in range(ticks):
                self._ticker.tick(self)

    @collective
    def evaluate(self) -> None:
        """Fill the derived tables (velocities, gradients, fields) for the present state; nothing moves."""
        with self.active():
            self._ticker.between_ticks("evaluate")
            self._ticker.check_state(self)
            self._ticker.evaluate(self)

    @property
    def stages(self) -> int:
        """How often the rates are evaluated per tick: the stages of the integrator, 1 without one."""
        return len(self._ticker.stages(self._systems))

    @property
    def stage(self) -> Stage:
        """The present stage of the integrator; while none runs, a single one that is the last."""
        return self._ticker.stage

    # ------------------------------------------------------------------ looking

    @collective
    def lint(self) -> list[str]:
        """Sentences on what looks physically wrong or coarse, asked of every system."""
        self._ticker.check_state(self)
        systems = self.schedule.systems
        with self.processes.all_rows(self):
            said = [text for system in systems for text in system.lint(self)]
        return [*misnamed(systems), *self._unmatched(systems), *self._unintegrated(systems), *said]

    def _unmatched(self, systems: list[System]) -> Iterator[str]:
        """Sentences on systems that were asked for and find nothing of what they need."""
        there = {kind for tables in self._tables_of.values() for kind in tables}
        for system in systems:
            missing = [kind.__name__ for kind in system.reads if kind not in there]
            if missing and not system._implied:
                yield (
                    f"{type(system).__name__} reads {' and '.join(missing)}, which no entity has, so it does "
                    "nothing; give an entity one, or leave the system out"
                )

    def _unintegrated(self, systems: list[System]) -> Iterator[str]:
        """A sentence on rates of this world that nobody integrates or reads."""
        read = {kind for s in systems if not s._implied for kind in (*s.reads, *s.may_read)}
        written = {kind for system in systems for kind in system.writes}
        there = {kind for tables in self._tables_of.values() for kind in tables if kind.rate_of in tables}
        names = sorted(kind.__name__ for kind in there - read if kind.rate_of not in written)
        if names and not any(system.integrates for system in systems):
            yield (
                f"no system integrates rates, which leaves {' and '.join(names)} without effect; add an "
                "AdvectionSystem"
            )

    def _unanswered(self) -> Iterator[str]:
        """Sentences on systems that found no entity with what they asked for in their first tick.

        Those that another one brought along or asks have their use all the same.
        """
        useful = [name for system in self._systems for name in system.asks]
        for system in self._systems:
            asked, system._asked = system._asked, None
            for where, asks in (asked or {}).items():
                if any(asks.values()) or system._implied or any(self._unmatched([system])):
                    continue
                if any(named(system, name) for name in useful):
                    continue
                wanted = [kind for kind in next(iter(asks)) if not where or kind not in self[where]]
                needed = " and ".join(map(_described, wanted))
                place, lack = (f" with {where!r}", "it does not have") if where else ("", "no entity has")
                yield (
                    f"{type(system).__name__} does nothing{place}: {lack} {needed}"
                    f"{' together' if len(wanted) > 1 else ''}; add what is missing, or leave it out"
                )

    @collective
    def velocity(self, points: Any, solver: str | None = None) -> Array:
        """Fluid velocity (m, 3) in m/s at points (m, 3) in m, by the world's velocity system."""
        array = _POINTS.check(points)
        _POINTS.check_values(array)
        with self.active():
            return self._ask("velocity_at", "VelocitySystem", array, solver)  # type: ignore[no-any-return]

    @collective
    def diagnostics(self) -> dict[str, Any]:
        """Strength, impulses, energy, enstrophy, helicity, overlap and step size of the present state."""
        with self.active():
            return self._ask("measure", "DiagnosticsSystem")  # type: ignore[no-any-return]

    @collective
    def first_surface(self) -> Any:
        """What the SurfaceSystem finds in the evaluated fields of a world before its first tick."""
        with self.active():
            return self._ask("found_surface", "SurfaceSystem")

    def _ask(self, method: str, example: str, *arguments: Any) -> Any:
        """What the first system that has such a method says."""
        self._ticker.check_state(self)
        for system in self.systems:
            if hasattr(system, method):
                self.schedule  # noqa: B018  (derived tables must exist)
                with ExitStack() as entered:
                    for scope in self.processes.scopes:
                        entered.enter_context(scope(self, system))
                    return getattr(system, method)(*arguments)
        raise FluidError(f"the world has no {example}; add one with world.add_system")

    def snapshot(self) -> Snapshot:
        """Read-only copies of every per-row column, safe to hand to another thread."""
        with self.active():
            populations = {
                entity.name: {label: frozen(array) for label, array in self.columns_of(entity).items()}
                for entity in self._entities.values()
                if any(kind.per_row for kind in entity.tables)
            }
            return Snapshot(self.tick, self.time, populations)

    def columns_of(self, entity: Entity) -> dict[str, Array]:
        """Per-row columns of an entity by label, or what stands for those of many processes until read."""
        return self.processes.stored_columns(entity)

    @collective
    def on_ranks(self) -> list[dict[str, Any]]:
        """Of every rank its rows, memory, and what it sent and received; empty for a world of one process."""
        return self.processes.about()

    @collective
    def _gathered_column(self, name: str, kind: str, column: str) -> Array:
        """A column of a population, rows of all processes, on the first of them."""
        return self.processes.column(self[name], kind, column)

    def state_hash(self) -> str:
        """Hash of tick, time step and every state table, bit for bit."""
        from ecs_fluid.state import state_hash

        return state_hash(self)

    def save(self, path: Any) -> None:
        """Write a checkpoint from which `ecs_fluid.resume` continues bit for bit."""
        from ecs_fluid.state import save

        self._check_finite()
        with sentences():
            save(self, path)

    @collective
    def _check_finite(self) -> None:
        self._ticker.check_state(self)

    def timings(self) -> dict[str, Timing]:
        """Time of each system by name, in running order."""
        result: dict[str, Timing] = {}
        for system in self.schedule.systems:
            name, number = type(system).__name__, 1
            while name in result:
                number += 1
                name = f"{type(system).__name__} {number}"
            result[name] = system._timing
        return result

    def __reduce__(self) -> Any:
        raise FluidError("a world cannot be copied or pickled; use world.save and ecs_fluid.resume")

    def __repr__(self) -> str:
        rows = ", ".join(f"{entity.name}: {len(entity)}" for entity in self._entities.values() if len(entity))
        return f"World(tick={self.tick}, time={self.time:.6g} s, {rows})"


def _described(kind: type[Component]) -> str:
    given = " and ".join(other.__name__ for other in kind.given)
    return f"{kind.__name__} (comes with {given})" if given else kind.__name__


def _forget(context: str) -> None:
    # Garbage is collected in any thread, also in one for which the holder of the lock waits.
    _ENDED.append(context)
    if _LOCK.acquire(blocking=False):
        try:
            _delete_ended()
        finally:
            _LOCK.release()


def _delete_ended() -> None:
    while _ENDED:
        context = _ENDED.pop()
        if esper.current_world != context and context in esper.list_worlds():
            esper.delete_world(context)
