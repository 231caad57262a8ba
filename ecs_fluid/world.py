"""The world: entities with component tables, a schedule of systems, and a clock.

Names for users are public; names that only systems and the engine use begin with an underscore. Options are
in `world_options`, esper's contexts in `contexts`, and `joining` adds systems to a world.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from ecs_fluid.access import checked_system
from ecs_fluid.arguments import whole_number
from ecs_fluid.component import Array, Column, column
from ecs_fluid.entities import Entities
from ecs_fluid.entity import Entity, Snapshot, frozen
from ecs_fluid.environment import check_environment
from ecs_fluid.errors import FluidError, sentences
from ecs_fluid.fluid import Fluid, FluidKeywords, changed_fluid, gravity_of, options_of
from ecs_fluid.html import table as html_table
from ecs_fluid.integrator import Stage
from ecs_fluid.joining import join, rejoin
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.lint import schedule_lint, sentences_of
from ecs_fluid.one_process import OneProcess, before_sharing, collective
from ecs_fluid.schedule import Schedule, build_schedule
from ecs_fluid.system import System, Timing
from ecs_fluid.targets import Targets
from ecs_fluid.ticker import Ticker
from ecs_fluid.validation_errors import nearest, validated
from ecs_fluid.world_options import WorldKeywords, WorldOptions

if TYPE_CHECKING:
    import pyvista as pv

    from ecs_fluid.api.pictures import Picture, PictureKeywords

S = TypeVar("S", bound=System)
Mesh = TypeVar("Mesh", bound="pv.DataSet")

_POINTS: Column = column("m", shape=(3,), kind="double")
_POINTS.name = "points"


def _checked_points(points: Any) -> Array:
    """Points as an array (m, 3), m; ComponentError if they have another shape or are not finite."""
    array = _POINTS.check(points)
    _POINTS.check_values(array)
    return array


def _api_module(module: str) -> Any:
    """A module of `ecs_fluid.api`, imported late: the engine must not depend on drawing and storing."""
    return importlib.import_module(f"ecs_fluid.api.{module}")


_SET_WHEN_MADE = "give it to World(...), or in the [world] of a file"
NOT_SET = {
    **dict.fromkeys(("options", "dt", "seed", "dimension", "periods", "dtype"), _SET_WHEN_MADE),
    "across": "it follows from World(plane=...)",
    "fluid": "use set_fluid",
    "gravity": "use set_fluid(gravity=...)",
    "time": "it is tick times dt; set tick",
    "systems": "use add_system",
    "history": "systems add to it by self.record(...)",
    "recipe": "it describes how the world was made; ecs_fluid.load makes a world from other tables",
    "processes": "they are the processes that the world was started on",
}
"""What users of a world cannot set, and what to do instead."""


class World(Entities):
    """Entities, systems and time of one simulation.

    Args:
        options: fields of WorldOptions by name: dt [s], integrator ("euler", "rk2", "rk3", "rk4"),
            precision ("single", "double"), seed, dimension (2, 3), plane ("xy", "xz"), periodic [m, m, m],
            debug.

    Raises:
        RecipeError: an option is unknown or out of range.
    """

    def __init__(self, **options: Unpack[WorldKeywords]) -> None:
        super().__init__()
        check_environment()
        if os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0"):
            raise FluidError("NUMBA_DISABLE_JIT is set, but the kernels run only when compiled; unset it")
        self.options: WorldOptions = validated(WorldOptions, options, "World")
        self.dt: float = self.options.dt
        """Time step of a tick, s; fixed, since the clock is tick times dt"""
        self.dimension: int = self.options.dimension
        """3, or 2 for flow in a plane"""
        self.across: int | None = self.options.across
        """Axis normal to the plane of a two-dimensional world, 1 (y) or 2 (z); None in three dimensions"""
        self.dtype: type[np.floating] = np.float32 if self.options.precision == "single" else np.float64
        self.periods: Array = np.array(self.options.periodic)
        """Lengths (3,) m of the box about the origin that repeats; 0 along an axis that does not"""
        self.tick = 0
        self.recipe: dict[str, Any] | None = None
        self.history: list[dict[str, Any]] = []
        self._systems: list[System] = []
        self._schedule: Schedule | None = None  # None when it must be built anew
        self._ticker = Ticker(self.options.integrator, self.options.debug)
        self._joining_system: System | None = None  # the system that joins now, and may add others
        self.processes = OneProcess()
        self.fluid: Entity = self._create("fluid", {Fluid: changed_fluid(None, {}, "World")})

    if not TYPE_CHECKING:  # checkers find such names themselves

        def __setattr__(self, name: str, value: Any) -> None:
            """Refuse fixed attributes, and names a world does not have, which would silently do nothing."""
            if name.startswith("_") or "fluid" not in vars(self):
                return super().__setattr__(name, value)
            if name == "tick":
                whole_number(value, "tick", 0)
            elif name in NOT_SET or hasattr(World, name):
                raise FluidError(f"{name} of a world cannot be set; {NOT_SET.get(name, 'it is read-only')}")
            elif not hasattr(type(self), name):
                public = [key for key in (*vars(self), *dir(type(self))) if not key.startswith("_")]
                raise FluidError(f"a world has no attribute {name!r}; {nearest(name, public)}")
            return super().__setattr__(name, value)

    def _set_fixed(self, **values: Any) -> None:
        """Set attributes that users cannot set (`NOT_SET`); for the engine alone."""
        vars(self).update(values)

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self.options.seed

    # ------------------------------------------------------------------ fluid

    @before_sharing
    def set_fluid(self, **constants: Unpack[FluidKeywords]) -> None:
        """Set constants of the fluid: fields of FluidOptions by name; those not given stay as they are.

        They are density, viscosity, temperature, heat_capacity, conductivity, gravity (which may be a Keyed),
        law, expansion, density_profile and temperature_profile. Set them before adding systems and particles
        whose initial values depend on them, and not during a tick.
        Without a call the fluid is air at rest: 1.2 kg/m^3, 300 K, no viscosity, gravity (0, 0, -9.81) m/s^2.

        Raises:
            RecipeError: a constant is unknown, out of range, or contradicts another one.
        """
        self._ticker.between_ticks("set_fluid")
        fluid = changed_fluid(self.fluid[Fluid], constants, "set_fluid")
        with self._rejoining(self._systems):
            self._add_table(self.fluid, fluid)
        if self.recipe is not None:
            given = options_of(fluid).model_dump(mode="json", include=set(constants))
            table = {**self.recipe.get("fluid", {}), **given}
            self.recipe["fluid"] = {key: value for key, value in table.items() if value is not None}
        self._ticker.warned = False

    @property
    def gravity(self) -> Array:
        """Gravity (3,) m/s^2 at present; `value_now` says what that is during a tick."""
        return self.value_now(gravity_of(self.fluid[Fluid]))

    def value_now(self, parameter: Any) -> Array:
        """Present value, () or (k,), of a constant or keyed parameter.

        In the phases prepare and rates it is the value at the time of the integrator's stage. In the phases
        move and constrain it is the weighted mean over all stages, so that systems that advance by whole
        ticks feel the same as what is integrated.
        """
        if not isinstance(parameter, Keyed):
            return value_at(parameter, self.time)
        weights, times = self._ticker.stage_times
        return np.asarray(np.array(weights) @ value_at(parameter, (self.tick + np.array(times)) * self.dt))

    # ------------------------------------------------------------------ systems

    @property
    def systems(self) -> list[System]:
        """Systems in the order in which they were added."""
        return (
            list(self._systems) if self._running is None else [checked_system(self, s) for s in self._systems]
        )

    def add_system(self, system: S) -> S:
        """Add a system, and the ones it needs; the schedule is checked before the next tick."""
        self.add_systems([system])
        return system

    @before_sharing
    def add_systems(self, systems: Sequence[System]) -> None:
        """Add several systems at once; if one of them requires another one of the list, it gets that one."""
        self._ticker.between_ticks("add_systems", "observe")
        join(self, systems)

    @contextmanager
    def _rejoining(self, systems: Sequence[System]) -> Iterator[None]:
        """Surround a change of what these systems depend on; see `joining.rejoin`."""
        with self._active(), rejoin(self, systems):
            yield

    def require(self, kind: type[S], **parameters: Any) -> S:
        """The system of that class, added with `parameters` if there is none."""
        return self.system(kind) or self.add_system(kind(**parameters))

    def system(self, kind: type[S]) -> S | None:
        """The first system of that class, or None."""
        if not isinstance(kind, type):
            raise FluidError(
                f"system: {kind!r} is not a system class; pass a class such as ecs_fluid.WindSystem"
            )
        for system in self._systems:
            if isinstance(system, kind):
                return system if self._running is None else checked_system(self, system)
        return None

    @property
    def schedule(self) -> Schedule:
        """Systems in running order; printing it shows phases, access and times."""
        if self._schedule is None:
            self._schedule = build_schedule(self._systems)
            self._attach_derived()
        return self._schedule

    def _attach_derived(self) -> None:
        """Give every entity the tables that systems fill: derived ones, and those with `given`."""
        filled = {kind for system in self._systems for kind in (*system.writes, *system.adds)}
        filled = {kind for kind in filled if kind.derived or kind.given}
        attached = sorted(filled, key=lambda kind: kind.__name__)
        for kind in attached:
            if not kind.per_row and kind not in self._tables_by_number[self.fluid.number]:
                self._add_table(self.fluid, kind.blank(0, self.dtype))
        for entity in self._entities.values():
            tables, rows = self._tables_by_number[entity.number], entity.rows_here
            for kind in attached:
                fits = kind in tables and tables[kind].rows == rows
                if kind.per_row and not fits and all(given in tables for given in kind.given):
                    self._add_table(entity, kind.blank_beside(tables, rows, self.dtype))

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
        whole_number(ticks, "step: ticks", 0)
        with self._active():
            self._ticker.between_ticks("step")
            self._ticker.changes_by_hand.check(self)
            for _ in range(ticks):
                self._ticker.tick(self)

    @collective
    def evaluate(self) -> None:
        """Fill the derived tables (velocities, gradients, fields) for the present state; nothing moves."""
        with self._active():
            self._ticker.between_ticks("evaluate")
            self._ticker.check_state(self)
            self._ticker.evaluate(self)

    @property
    def evaluating(self) -> bool:
        """Whether `evaluate` runs; systems should then not change what they remember from tick to tick."""
        return self._ticker.evaluating

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
        """Sentences of all systems on what looks physically wrong or too coarse."""
        self._ticker.check_state(self)
        systems = self.schedule.systems
        with self.processes.all_rows(self):
            texts = [text for system in systems for text in sentences_of(system, self)]
        return [*schedule_lint(self, systems), *texts]

    def velocity(self, points: Any, solver: str | None = None) -> Array:
        """Fluid velocity (m, 3) m/s at points (m, 3) m, by the world's velocity system or another `solver`.

        This is the flow of all vortons, including those that represent surfaces of bodies, and what systems
        with a method `add_wind` add to all velocities: `wind` and `turbulence` that are not `on` some
        entities alone. It does not contain the particles' own velocities.
        """
        array = _checked_points(points)
        u = self._induced_velocity(array, solver)
        self._add_winds(array, u)
        return u

    @collective
    def _induced_velocity(self, points: Array, solver: str | None = None) -> Array:
        """Velocity (m, 3) m/s at points (m, 3) m by vortons alone."""
        return self._call_system("velocity_at", "VelocitySystem", points, solver)  # type: ignore[no-any-return]

    def _add_winds(self, points: Array, u: Array, du: Array | None = None) -> None:
        """Add what blows on everything to velocities (m, 3) m/s and gradients (m, 3, 3) 1/s at points."""
        for system in self._winds():
            system.add_wind(points, u, du)

    def _winds(self, name: str | None = None) -> list[Any]:
        """Systems that blow on everything, and on the entity of that name."""
        blowing = (one for one in self.systems if hasattr(one, "add_wind"))
        return [one for one in blowing if not (on := getattr(one, "on", ())) or name in on]

    def velocity_gradient(self, points: Any, solver: str | None = None) -> Array:
        """Gradient (m, 3, 3) 1/s of `velocity` at points (m, 3) m: [:, i, j] is du_i/dx_j."""
        gradient = self._flow(points, solver).du
        assert gradient is not None
        return gradient

    def vorticity(self, points: Any, solver: str | None = None) -> Array:
        """Curl (m, 3) 1/s of `velocity` at points (m, 3) m."""
        return self._flow(points, solver).vorticity

    @collective
    def pressure(self, points: Any, solver: str | None = None) -> Array:
        """Pressure (m,) Pa at points (m, 3) m in the flow of `velocity`, less that of the fluid far away.

        It follows from the vortons where these move with the flow, keep their volume, spread by viscosity,
        and where gravity alone acts on their density (`model` = "boussinesq"): it is then less that of the
        fluid at rest at the same height. Among them it is right where they resolve the flow. That of a liquid
        is in `LiquidState`.

        Raises:
            FluidError: systems make vorticity otherwise (bodies that shed it, surface tension), vortons
                swell, a container moves, or the solver adds a field of its own.
        """
        return self._call_system("pressure_at", "VelocitySystem", _checked_points(points), solver)  # type: ignore[no-any-return]

    def _flow(self, points: Any, solver: str | None) -> Targets:
        """Velocity and its gradient at points."""
        array = _checked_points(points)
        flow = self._induced_flow(array, solver)
        self._add_winds(array, flow.u, flow.du)
        return flow

    @collective
    def _induced_flow(self, points: Array, solver: str | None) -> Targets:
        """Velocity and its gradient at points (m, 3) m by vortons alone."""
        return self._call_system("flow_at", "VelocitySystem", points, solver)  # type: ignore[no-any-return]

    @sentences()
    def sample(self, grid: Mesh) -> Mesh:
        """A copy of a PyVista mesh with the world's fields at its points.

        Point arrays are `velocity` m/s and `vorticity` 1/s with vortons, or a solver with a field of its own;
        `temperature` K, `density` kg/m^3 and `fuel`, `flame`, `smoke` with a TransferSystem (outside of its
        grid, the values of the fluid at rest); and `signed_distance` m with a SurfaceSystem.
        """
        return _api_module("sampling").sample(self, grid)  # type: ignore[no-any-return]

    @sentences()
    def to_pyvista(self) -> pv.MultiBlock:
        """The present state as PyVista objects: particles, fields, signed distances and bodies.

        Blocks are "particles" and "bodies" by entity, with the columns of a stored frame; "fields" by grid
        ("flow": velocity; "mixture": density, temperature, species); and "signed_distance". Empty blocks are
        left out.
        """
        return _api_module("pyvista_objects").world_blocks(self)

    @sentences()
    def show(self, *, save: str | Path | None = None, **drawing: Unpack[PictureKeywords]) -> Picture | None:
        """Show the present state: in a notebook as a picture, else in a window; or write a .png file.

        Args:
            save: file to write; no window is opened then.
            drawing: what to draw and how, as in `ecs-fluid show`: see `ecs_fluid.PictureKeywords`.
        """
        pictures = _api_module("pictures")
        return pictures.show(pictures.present_moment(self), drawing, save)  # type: ignore[no-any-return]

    @collective
    def diagnostics(self) -> dict[str, Any]:
        """Strength, impulses, energy, enstrophy, helicity, overlap and step size of the present state."""
        return self._call_system("measure", "DiagnosticsSystem")  # type: ignore[no-any-return]

    @collective
    def _first_surface(self) -> Any:
        """The surface that the SurfaceSystem finds in the fields of `evaluate`, before the first tick."""
        return self._call_system("found_surface", "SurfaceSystem")

    def _call_system(self, method: str, example: str, *arguments: Any) -> Any:
        """Call `method` of the first system that has it; the error without one names the class `example`."""
        with ExitStack() as entered:
            entered.enter_context(self._active())
            self._ticker.check_state(self)
            for system in self.systems:
                if hasattr(system, method):
                    self.schedule  # noqa: B018  (derived tables must exist)
                    for scope in self.processes.scopes:
                        entered.enter_context(scope(self, system))
                    return getattr(system, method)(*arguments)
        raise FluidError(f"the world has no {example}; add one with world.add_system")

    def snapshot(self) -> Snapshot:
        """Read-only copies of every per-row column, safe to hand to another thread."""
        with self._active():
            columns_of = self.processes.stored_columns
            populations = {
                entity.name: {label: frozen(array) for label, array in columns_of(entity).items()}
                for entity in self._entities.values()
                if any(kind.per_row for kind in entity.tables)
            }
            return Snapshot(self.tick, self.time, populations)

    @collective
    def _rank_statistics(self) -> list[dict[str, Any]]:
        """Rows, memory and traffic of every rank; empty for a world of one process."""
        return self.processes.statistics()

    @collective
    def _gathered_column(self, name: str, label: str) -> Array:
        """A column of a population; on the first process it has the rows of all."""
        return self.processes.column(self[name], label)

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
        """Wall-clock times of each system by name, in running order."""
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

    def _repr_html_(self) -> str:
        rows = [
            (entity.name, f"{len(entity):,}", ", ".join(kind.__name__ for kind in entity.tables))
            for entity in self.entities
        ]
        return html_table(f"World, tick {self.tick}, t = {self.time:.6g} s", ("entity", "rows", "has"), rows)
