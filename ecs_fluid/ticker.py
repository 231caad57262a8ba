"""One tick: phases in order, stages of the integrator, structural changes, and what to do when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.access import check_additions, checked_access, poison, undeclared_changes
from ecs_fluid.changes_by_hand import ChangesByHand, check_columns
from ecs_fluid.errors import ComponentError, DivergedError, FluidError, warn
from ecs_fluid.fluid import Fluid, check_fluid
from ecs_fluid.guard import Guard
from ecs_fluid.integrator import END, METHODS, SINGLE, Stage
from ecs_fluid.lint import empty_queries_lint
from ecs_fluid.plane import check_plane
from ecs_fluid.plugins import import_path, users_method
from ecs_fluid.row_changes import RowChanges
from ecs_fluid.schedule import Schedule
from ecs_fluid.system import System
from ecs_fluid.threads import Threads

if TYPE_CHECKING:
    from ecs_fluid.world import World


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
        self.stages_done = False
        """Whether all stages of the tick are done"""
        self.phase = ""
        """The phase that runs, or ran last in this tick; "" between ticks"""
        self.warned = False
        """Whether the warnings of `World.lint` were given"""
        self.new_systems = True
        """Whether systems were added since the last tick; the next one warns of their empty queries"""
        self.changes_by_hand = ChangesByHand()
        self._last_system = ""
        """Name of the system that runs now, or ran last"""
        self._method = METHODS[integrator]
        self._guard = Guard()
        self._replaying = False
        """Whether a tick that failed runs again, to find the system that broke it"""
        self._threads = Threads()

    def between_ticks(self, what: str, *allowed: str) -> None:
        """Raise FluidError when called during a tick, unless one of the `allowed` phases runs."""
        if self.phase not in ("", *allowed):
            raise FluidError(f"{what} is refused during a tick of the same world; do it between two ticks")

    def check_state(self, world: World) -> None:
        """Raise DivergedError if the state is not finite; during a tick nothing is checked."""
        if not self.phase:
            self._guard.check_start(world)
            check_plane(world)
            self.changes_by_hand.check(world)

    def forget(self, name: str) -> None:
        """Drop what is kept of an entity that was removed."""
        self.row_changes.forget(name)
        self.changes_by_hand.forget(name)

    def stages(self, systems: list[System]) -> Sequence[Stage]:
        """Stages of a tick: those of the integrator, or a single one if no system integrates."""
        return self._method if any(s.integrates for s in systems) else (SINGLE,)

    @property
    def stage_times(self) -> tuple[list[float], list[float]]:
        """Weights and times, in ticks, of the present stage; of all stages once these are done."""
        if self.stages_done and self.stage is not END:
            return [stage.weight for stage in self._method], [stage.c for stage in self._method]
        return [1.0], [self.stage.c]

    def warn(self, world: World, level: int) -> None:
        """Issue the warnings of `World.lint`; they name the line that is `level` calls up from here."""
        for text in world.lint():
            warn(text, level)
        self.warned = True

    def tick(self, world: World) -> None:
        """Run one whole tick; if it fails, the state is put back to that at its start."""
        schedule = world.schedule
        self.changes_by_hand.check_fluid(world)
        check_plane(world)
        if not self.warned:
            self.warn(world, 6)
        for system in world._systems:
            system._timing.last = 0.0
        with self._threads.planned():
            self._guard.keep(world)
            try:
                self._advance(world, schedule)
                bad = self._guard.first_non_finite(world)
            except BaseException as error:
                self._undo_tick(world, schedule, error)
                raise
            if bad is not None:
                self._replay(world, schedule, bad)
            self._observe(world, schedule.phases["observe"])
        self._threads.learn({id(system): system._timing.last for system in world._systems})
        if self.new_systems:
            self.new_systems = False
            for text in empty_queries_lint(world):
                warn(text, 5)

    def evaluate(self, world: World) -> None:
        """Run only the phases prepare and rates."""
        schedule = world.schedule
        with self._busy("prepare"), self._threads.planned():
            self.evaluating = True
            try:
                self._rates(world, schedule)
            finally:
                self.evaluating = False

    def apply_row_changes(self, world: World) -> None:
        """Carry out the queued changes of rows, also those queued on other processes."""
        if names := world.processes.union(self.row_changes.queued):
            self.row_changes.apply(world, names)
        world._wrap()

    @contextmanager
    def _busy(self, first: str) -> Iterator[None]:
        """While active, changes of rows are queued; those not carried out by its end are dropped.

        It begins with the phase `first`.
        """
        self.phase = first
        try:
            yield
        finally:
            self.phase, self.stage, self.stages_done = "", SINGLE, False
            if self.row_changes.queued:
                self.row_changes.clear()

    def _advance(self, world: World, schedule: Schedule) -> None:
        """Run all phases but observe.

        Symmetric systems run before the stages of the integrator and, in reverse order, after them.
        """
        with self._busy("spawn"):
            spawn, move = schedule.phases["spawn"], schedule.phases["move"]
            emission = [system for system in spawn if system.symmetric]
            if emission:
                self._run(world, emission)
                self.apply_row_changes(world)
            if self.debug:
                poison(world)
            self._run(world, [system for system in spawn if not system.symmetric])
            self._run(world, [s for s in reversed(move) if s.symmetric])
            for stage in self.stages(move):
                self.stage = stage
                self._rates(world, schedule)
                self._run(world, [s for s in move if s.integrates])
            self.stage, self.stages_done = SINGLE, True
            self._run(world, [s for s in move if not s.integrates])
            self._run(world, emission[::-1])
            self._run(world, schedule.phases["constrain"])
            self.apply_row_changes(world)
            world.tick += 1

    def _rates(self, world: World, schedule: Schedule) -> None:
        """Set all rates to zero, then run the phases prepare and rates for one stage."""
        world._wrap()
        for _, tables in world._named_tables:
            for kind, table in tables.items():
                if kind.rate_of is not None:
                    for name in kind.columns:
                        table.__dict__[name].fill(0.0)
        self._run(world, schedule.phases["prepare"])
        self._run(world, schedule.phases["rates"])

    def _observe(self, world: World, observers: list[System]) -> None:
        """Run the observers on the finished tick; what they spawn and kill is applied after the last."""
        with self._busy("observe"):
            for system in observers:
                self._run(world, [system])
                self._guard.check_observer(world, system)
            self.apply_row_changes(world)

    def _run(self, world: World, systems: list[System]) -> None:
        """Run systems and time each; systems with `watching` set are called before and after it."""
        watchers = [system for system in world._systems if system.watching]
        for system in systems:
            self._last_system, self.phase = type(system).__name__, system.phase
            for watcher in watchers:
                with self._declared_access(world, watcher), users_method(type(watcher), "before_system"):
                    watcher.before_system(system)
            if self._threads.mixed:
                self._threads.set_for(system)
            started = time.perf_counter()
            self._process(world, system)
            system._timing.add(time.perf_counter() - started)
            if self._replaying:
                self._guard.check(world, system)
            for watcher in watchers:
                with self._declared_access(world, watcher), users_method(type(watcher), "after_system"):
                    watcher.after_system(system)

    @contextmanager
    def at_end(self) -> Iterator[None]:
        """While active, the world's time is that at the end of the tick, for systems that run once a tick."""
        former, self.stage = self.stage, END
        try:
            yield
        finally:
            self.stage = former

    def _process(self, world: World, system: System) -> None:
        """Let a system do its work with the tables that it may see, and check what it must not break."""
        scopes: Sequence[Callable[..., AbstractContextManager[None]]] = world.processes.scopes
        if self.debug:
            scopes = [undeclared_changes, *scopes, checked_access]
        with ExitStack() as entered:
            for scope in scopes:
                entered.enter_context(scope(world, system))
            if self.debug:
                check_additions(world, system)
            if system._user_defined:
                entered.enter_context(users_method(type(system), "process"))
            if system.symmetric:
                self.stage = END if self.stages_done else SINGLE
                system.process(0.5 * world.dt)
                self.stage = SINGLE
            else:
                system.process(world.dt)
        if system._user_defined:
            check_columns(world, f"after process of {import_path(type(system))}")
        if Fluid in system.writes:
            check_fluid(world.fluid[Fluid], f"{type(system).__name__} writes Fluid")

    def _declared_access(self, world: World, system: System) -> AbstractContextManager[None]:
        """Context for a method of the system: with debug, it sees only what the system declares."""
        return checked_access(world, system) if self.debug else nullcontext()

    def _undo_tick(self, world: World, schedule: Schedule, error: BaseException) -> None:
        """Put the state back after an error; raise a clearer one if numbers or read-only arrays caused it."""
        bad = locked = None
        # A FluidError, raised or wrapped by a user's code, already says what is wrong.
        if isinstance(error, Exception) and not isinstance(error.__cause__ or error, FluidError):
            world.processes.abort(error)
            bad, locked = self._guard.first_non_finite(world), _read_only(world)
        self._guard.restore(world)
        if bad is not None:
            self._replay(world, schedule, bad)
        if isinstance(error, (ArithmeticError, np.linalg.LinAlgError)):
            raise DivergedError(
                f"tick {world.tick + 1} (t = {world.time:.6g} s): {self._last_system} could not compute with "
                f"the present values ({error}); the world is back at the start of that tick; check what "
                "was set before it, or use a smaller dt"
            ) from error
        if locked is not None:
            raise ComponentError(
                f"{locked} is read-only, but systems write to it; make it writable by setflags(write=True)"
            )

    def _replay(self, world: World, schedule: Schedule, bad: str) -> None:
        """Run the failed tick again with a check after every system, to name the one that broke it."""
        self._guard.restore(world)
        self._guard.check_start(world)
        self._replaying = True
        try:
            self._advance(world, schedule)
        finally:
            self._replaying = False
            self._guard.restore(world)
        raise self._guard.error(world, bad, None)


def _read_only(world: World) -> str | None:
    """Place of the first column that is read-only, as text for a message; None if there is none."""
    for entity, tables in world._named_tables:
        for kind, table in tables.items():
            for field, array in table.items() if kind.per_row else ():
                if not array.flags.writeable:
                    return f"entity {entity!r}: {field.label}"
    return None
