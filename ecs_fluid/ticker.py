"""One tick: phases in order, stages of the integrator, structural changes, and the guard around them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

import numpy as np

from ecs_fluid.access import check_additions, poison, running, undeclared_changes
from ecs_fluid.component import DTYPES, Array, Column, Component, RowId, Tables
from ecs_fluid.errors import ComponentError, DivergedError, FluidError, FluidWarning
from ecs_fluid.fluid import Fluid, check
from ecs_fluid.integrator import END, METHODS, SINGLE, Stage
from ecs_fluid.lint import empty_queries_lint
from ecs_fluid.plane import check_plane
from ecs_fluid.plugins import import_path, users_method
from ecs_fluid.row_changes import RowChanges
from ecs_fluid.schedule import Schedule
from ecs_fluid.system import System
from ecs_fluid.tables import has_to_agree, may_leave_range, refuse_contradiction
from ecs_fluid.threads import Threads

if TYPE_CHECKING:
    from ecs_fluid.world import World


def finite(array: Array) -> bool:
    """Whether no number of the array is NaN or infinite; whole numbers never are."""
    if array.dtype.kind != "f":
        return True
    if array.ndim == 0:  # a constant of the fluid
        return math.isfinite(array)
    return bool(np.isfinite(array).all())


def _first_row(world: World, entity: str, array: Array) -> int:
    """The first row, of those on all processes, that is not finite."""
    bad = ~np.isfinite(np.atleast_1d(array))
    return world.processes.placed(world[entity], len(bad))[0] + int(np.argwhere(bad)[0, 0])


def _read_only(world: World) -> str | None:
    """Place of the first column that is read-only; None without."""
    for entity, tables in world._tables:
        for kind, table in tables.items():
            for field, array in table.items() if kind.per_row else ():
                if not array.flags.writeable:
                    return f"entity {entity!r}: {field.label}"
    return None


def check_columns(world: World, when: str) -> None:
    """Raise ComponentError where a column has another shape, or other numbers, than its rows need.

    Arrays that somebody resizes in place, `when` tells who, would be read beyond their ends.
    """
    for entity, tables in world._tables:
        rows = len(tables[RowId].__dict__["id"]) if RowId in tables else 0
        for kind, table in tables.items():
            for name, field in kind.columns.items() if kind.per_row else ():
                array = table.__dict__[name]
                if array.shape != (rows, *field.shape):
                    raise ComponentError(
                        f"entity {entity!r}: {field.label} has shape {array.shape} {when}, beside {rows} "
                        "rows of RowId; rows come by spawn and go by kill, and no array may be resized"
                    )
                if array.dtype != (world.dtype if field.kind == "float" else DTYPES[field.kind]):
                    raise ComponentError(
                        f"entity {entity!r}: {field.label} has numbers of dtype {array.dtype} {when}; the "
                        "dtype of a column stays what it is"
                    )


def _check_given(entity: str, field: Column, array: Array) -> None:
    """Raise ComponentError for a column that nobody may give an entity."""
    try:
        field.check_given(array)
    except ComponentError as error:
        raise ComponentError(f"entity {entity!r}: {error}") from None


class Guard:
    """One copy of the state at the start of the tick, with the clock and the row counter."""

    def __init__(self) -> None:
        self._saved: dict[str, dict[type[Component], dict[str, Array]]] = {}
        self._clock = (0, 0)
        self._bounds: dict[str, Array] = {}

    def keep(self, world: World) -> None:
        """Copy the state; buffers are reused while shapes stay."""
        self._clock = (world.tick, world._next_row_id)
        self._bounds = dict(world.processes.bounds)
        for entity, tables in world._tables:
            saved = self._saved.setdefault(entity, {})
            for kind, table in tables.items():
                if kind.derived:
                    continue
                columns, arrays = saved.setdefault(kind, {}), table.__dict__
                for name in kind.columns:
                    array, old = arrays[name], columns.get(name)
                    if kind is RowId:
                        columns[name] = array  # its rows come and go, but none of them ever changes
                    elif old is None or old.shape != array.shape or old.dtype != array.dtype:
                        columns[name] = array.copy()
                    else:
                        old[...] = array

    def forget(self, name: str) -> None:
        """Drop the copy of an entity's state."""
        self._saved.pop(name, None)

    def restore(self, world: World) -> None:
        """Put the kept state back."""
        world.tick, world._next_row_id = self._clock
        world.processes.bounds.update(self._bounds)
        for entity in world.entities:
            saved = self._saved.get(entity.name, {})
            for kind in [kind for kind in entity.tables if not kind.derived and kind not in saved]:
                world._drop(entity, kind)
            for kind, columns in saved.items():
                table = entity.tables[kind]
                for name, array in columns.items():
                    table.__dict__[name] = array.copy()
        world._attach_derived()

    def first_bad(self, world: World, wanted: Callable[[type[Component]], bool] | None = None) -> str | None:
        """Place of the first non-finite number in the state, or in the components `wanted`; else None."""
        places = [
            (number, f"{kind.__name__}.{column}", _first_row(world, entity, array), entity)
            for number, (entity, tables) in enumerate(world._tables)
            for kind, table in tables.items()
            if (wanted(kind) if wanted else not kind.derived)
            for column in kind.columns
            if not finite(array := table.__dict__[column])
        ]
        first = world.processes.first(min(places, default=None))
        return None if first is None else f"entity {first[3]!r}: {first[1]} row {first[2]}"

    # ------------------------------------------------------------------ the responsible system

    def check(self, world: World, system: System) -> None:
        """Raise DivergedError when this system left something non-finite behind."""
        touched = {*system.writes, *system.adds}
        bad = self.first_bad(world, lambda kind: not kind.derived or kind in touched)
        if bad is not None:
            raise self.error(world, bad, type(system).__name__)

    def check_observer(self, world: World, system: System) -> None:
        """Raise DivergedError, with the state put back, when an observer wrote something non-finite."""
        written = {kind for kind in system.writes if not kind.derived}
        bad = self.first_bad(world, written.__contains__) if written else None
        if bad is not None:
            self.restore(world)
            raise self.error(world, bad, type(system).__name__)

    def check_start(self, world: World) -> None:
        """Raise DivergedError when the restored state was not finite to begin with."""
        bad = self.first_bad(world)
        if bad is not None:
            raise DivergedError(
                f"tick {world.tick + 1} (t = {world.time:.6g} s): {bad} was not finite before the tick "
                "began; no system did it, so look at what was assigned between two ticks"
            )

    def error(self, world: World, bad: str, who: str) -> DivergedError:
        """The error that names the place, the system and what to change."""
        tick = self._clock[0]
        if {"reformulation", "subfilter"} <= {system.kind for system in world.systems}:
            remedy = "use a higher viscosity, of small eddies too, a larger core radius, or a smaller dt"
        else:
            remedy = (
                "use a smaller dt, a larger core radius, a higher viscosity, or reformulation and subfilter "
                "together"
            )
        return DivergedError(
            f"tick {tick + 1} (t = {tick * world.dt:.6g} s): {who} made {bad} non-finite; the world is back "
            f"at its last good state, the start of that tick; {remedy}"
        )


class Ticker:
    """Runs the ticks of one world, and holds what is needed only while a tick runs.

    Args:
        integrator: name of the Runge-Kutta method.
        debug: whether derived tables are poisoned and undeclared access caught.
    """

    def __init__(self, integrator: str, debug: bool) -> None:
        self.debug = debug
        self.row_changes = RowChanges()
        self.stage = SINGLE
        """The present stage of the integrator"""
        self.evaluating = False
        """Whether rates are filled for a look between ticks, see `World.evaluating`"""
        self.staged = False
        """Whether all stages of the tick are done"""
        self.busy: Literal["", "tick", "observers"] = ""
        """What runs: nothing, the phases of a tick up to constrain, or the observers of a finished tick"""
        self.repeated = False
        """Whether the phases prepare and rates run, which every stage of the integrator repeats"""
        self.warned = False
        """Whether the warnings of `World.lint` were given"""
        self.new_systems = True
        """Whether systems were added since the last tick; the next one warns of their empty queries"""
        self._agreed: dict[tuple[str, type[Component]], list[bytes]] = {}
        """Columns of tables, by entity, when they last agreed"""
        self._fluid: list[bytes] = []
        """Columns of the Fluid when they were last checked"""
        self._latest = ""
        """Name of the system that runs, or ran last"""
        self._method = METHODS[integrator]
        self._guard = Guard()
        self._replaying = False
        """Whether a tick that failed runs again, to find the system that broke it"""
        self._threads = Threads()

    def between_ticks(self, what: str, *allowed: str) -> None:
        """Raise FluidError when called during a tick, unless one of `allowed` runs, see `busy`."""
        if self.busy not in ("", *allowed):
            raise FluidError(f"{what} is refused during a tick of the same world; do it between two ticks")

    def check_state(self, world: World) -> None:
        """Raise DivergedError if the state is not finite; during a tick nothing is checked."""
        if not self.busy:
            self._guard.check_start(world)
            check_plane(world)
            self.check_changes(world)

    def check_changes(self, world: World) -> None:
        """Raise ComponentError for what nobody could have given the world, nor resume: for changes by hand.

        Columns, of those that systems keep in their range, that are out of it; tables that do not `agree`;
        what systems refuse to go on with, `System.must_hold`.
        """
        check_columns(world, "before the tick")
        said: tuple[int, str] | None = None
        for number, (entity, tables) in enumerate(world._tables):
            try:
                if said is None:
                    self._check_entity(entity, tables)
            except FluidError as error:
                said = number, str(error)
        for number, system in enumerate(world._systems, len(world._entities)):
            try:
                if said is None and type(system).must_hold is not System.must_hold:
                    with users_method(type(system), "must_hold"):
                        system.must_hold(world)
            except FluidError as error:
                said = number, str(error)
        if first := world.processes.first(said):
            raise ComponentError(first[1])

    def _check_entity(self, entity: str, tables: Tables) -> None:
        """The same for the tables of an entity; those that have to agree, where they are others than last."""
        for kind, table in tables.items():
            if kind.derived:
                continue
            for field, array in table.items():
                if not field.allows(array) and not may_leave_range(kind):
                    _check_given(entity, field, array)
            if not has_to_agree(kind):
                continue
            now = [array.tobytes() for _, array in table.items()]
            if self._agreed.get((entity, kind)) != now:
                for field, array in table.items():
                    _check_given(entity, field, array)
                refuse_contradiction(entity, kind, tables)
                self._agreed[entity, kind] = now

    def forget(self, name: str) -> None:
        """Drop what is kept of an entity that was removed."""
        self._guard.forget(name)
        self.row_changes.forget(name)
        self._agreed = {place: columns for place, columns in self._agreed.items() if place[0] != name}

    def stages(self, systems: list[System]) -> Sequence[Stage]:
        """Stages of a tick: those of the integrator, or a single one if no system integrates."""
        return self._method if any(s.integrates for s in systems) else (SINGLE,)

    @property
    def stage_times(self) -> tuple[list[float], list[float]]:
        """Weights and times, in ticks, of the present stage; of all stages once these are done."""
        if self.staged and self.stage is not END:
            return [stage.weight for stage in self._method], [stage.c for stage in self._method]
        return [1.0], [self.stage.c]

    def warn(self, world: World, level: int) -> None:
        """Give the warnings of `World.lint`, as of the line `level` calls up from here."""
        for text in world.lint():
            warnings.warn(text, FluidWarning, stacklevel=level)
        self.warned = True

    def tick(self, world: World) -> None:
        """One whole tick; on any error the state is that of its start."""
        schedule = world.schedule
        fluid = world.fluid[Fluid]
        if self._fluid != (now := [column.tobytes() for column in vars(fluid).values()]):
            check(fluid, "Fluid before the tick")
            self._fluid = now
        check_plane(world)
        if not self.warned:
            self.warn(world, 6)
        for system in world._systems:
            system._timing.last = 0.0
        with self._threads.chosen():
            self._guard.keep(world)
            try:
                self._advance(world, schedule)
                bad = self._guard.first_bad(world)
            except BaseException as error:
                self._fail(world, schedule, error)
                raise
            if bad is not None:
                self._guard.restore(world)
                self._guard.check_start(world)
                self._replay(world, schedule, bad)
            self._observe(world, schedule.phases["observe"])
        self._threads.learn({id(system): system._timing.last for system in world._systems})
        if self.new_systems:
            self.new_systems = False
            for text in empty_queries_lint(world):
                warnings.warn(text, FluidWarning, stacklevel=5)

    def evaluate(self, world: World) -> None:
        """Run the phases prepare and rates alone."""
        schedule = world.schedule
        with self._busy("tick"), self._threads.chosen():
            self.evaluating = True
            try:
                self._rates(world, schedule)
            finally:
                self.evaluating = False

    def apply(self, world: World) -> None:
        """Carry out the queued changes of rows, also those queued on other processes."""
        if names := world.processes.any_of(self.row_changes.waiting):
            self.row_changes.apply(world, names)
        world._wrap()

    @contextmanager
    def _busy(self, what: Literal["tick", "observers"]) -> Iterator[None]:
        """While active, changes of rows are queued; those not carried out by its end are dropped."""
        self.busy = what
        try:
            yield
        finally:
            self.busy, self.stage, self.staged, self.repeated = "", SINGLE, False, False
            if self.row_changes.waiting:
                self.row_changes.clear()

    def _advance(self, world: World, schedule: Schedule) -> None:
        """All phases but observe; symmetric systems run before the stages and, in reverse, after them."""
        with self._busy("tick"):
            spawn, move = schedule.phases["spawn"], schedule.phases["move"]
            emission = [system for system in spawn if system.symmetric]
            if emission:
                self._run(world, emission)
                self.apply(world)
            if self.debug:
                poison(world)
            self._run(world, [system for system in spawn if not system.symmetric])
            self._run(world, [s for s in reversed(move) if s.symmetric])
            for stage in self.stages(move):
                self.stage = stage
                self._rates(world, schedule)
                self._run(world, [s for s in move if s.integrates])
            self.stage, self.staged = SINGLE, True
            self._run(world, [s for s in move if not s.integrates])
            self._run(world, emission[::-1])
            self._run(world, schedule.phases["constrain"])
            self.apply(world)
            world.tick += 1

    def _rates(self, world: World, schedule: Schedule) -> None:
        """The phases prepare and rates of one stage, for which all rates begin at zero."""
        world._wrap()
        for _, tables in world._tables:
            for kind, table in tables.items():
                if kind.rate_of is not None:
                    for name in kind.columns:
                        table.__dict__[name].fill(0.0)
        self.repeated = True
        self._run(world, schedule.phases["prepare"])
        self._run(world, schedule.phases["rates"])
        self.repeated = False

    def _observe(self, world: World, observers: list[System]) -> None:
        """Run the observers on the finished tick; what they spawn and kill is applied after the last."""
        with self._busy("observers"):
            for system in observers:
                self._run(world, [system])
                self._guard.check_observer(world, system)
            self.apply(world)

    def _run(self, world: World, systems: list[System]) -> None:
        """Run systems, each timed, and with the watching systems called before and after it."""
        watchers = [system for system in world._systems if system.watching]
        for system in systems:
            self._latest = type(system).__name__
            for watcher in watchers:
                with self._as(world, watcher), users_method(type(watcher), "before_system"):
                    watcher.before_system(system)
            if self._threads.mixed:
                self._threads.before(system)
            started = time.perf_counter()
            self._process(world, system)
            system._timing.add(time.perf_counter() - started)
            if self._replaying:
                self._guard.check(world, system)
            for watcher in watchers:
                with self._as(world, watcher), users_method(type(watcher), "after_system"):
                    watcher.after_system(system)

    def _process(self, world: World, system: System) -> None:
        """Let a system do its work with the tables that it may see, and check what it must not break."""
        scopes: Sequence[Callable[..., AbstractContextManager[None]]] = world.processes.scopes
        if self.debug:
            scopes = [undeclared_changes, *scopes, running]
        with ExitStack() as entered:
            for scope in scopes:
                entered.enter_context(scope(world, system))
            if self.debug:
                check_additions(world, system)
            if system._by_user:
                entered.enter_context(users_method(type(system), "process"))
            if system.symmetric:
                self.stage = END if self.staged else SINGLE
                system.process(0.5 * world.dt)
                self.stage = SINGLE
            else:
                system.process(world.dt)
        if system._by_user:
            check_columns(world, f"after process of {import_path(type(system))}")
        if Fluid in system.writes:
            check(world.fluid[Fluid], f"{type(system).__name__} writes Fluid")

    def _as(self, world: World, system: System) -> AbstractContextManager[None]:
        """What a method of the system runs in: with debug it sees what the system declares."""
        return running(world, system) if self.debug else nullcontext()

    def _fail(self, world: World, schedule: Schedule, error: BaseException) -> None:
        """Put the state back after an error; raise a better one if numbers or read-only arrays caused it."""
        # A FluidError, raised or wrapped by a user's code, says itself what is wrong.
        unexpected = isinstance(error, Exception) and not isinstance(error.__cause__ or error, FluidError)
        if unexpected:
            world.processes.give_up(error)
        bad = self._guard.first_bad(world) if unexpected else None
        locked = _read_only(world) if unexpected else None
        self._guard.restore(world)
        if bad is not None:
            self._guard.check_start(world)
            self._replay(world, schedule, bad)
        if isinstance(error, (ArithmeticError, np.linalg.LinAlgError)):
            raise DivergedError(
                f"tick {world.tick + 1} (t = {world.time:.6g} s): {self._latest} cannot calculate with what "
                f"the world holds ({error}); it is back at the start of that tick; look at what was set "
                "before, or use a smaller dt"
            ) from error
        if locked is not None:
            raise ComponentError(
                f"{locked} is read-only, and systems write it; setflags(write=True) lets them"
            )

    def _replay(self, world: World, schedule: Schedule, bad: str) -> None:
        """Run the failed tick again with a check after every system, to name the one that broke it."""
        self._replaying = True
        try:
            self._advance(world, schedule)
        finally:
            self._replaying = False
            self._guard.restore(world)
        raise self._guard.error(world, bad, "the end of the tick")
