"""One tick: phases in order, stages of the integrator, structural changes, and the guard around them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

from ecs_fluid.access import poison, running, undeclared_changes
from ecs_fluid.commands import Commands
from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.guard import Guard
from ecs_fluid.integrator import METHODS, SINGLE, Stage
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
        self.commands = Commands()
        self.stage = SINGLE
        """The present stage of the integrator"""
        self.staged = False
        """Whether all stages of the tick are done"""
        self.busy: Literal["", "tick", "observers"] = ""
        """What runs: nothing, the phases of a tick up to constrain, or the observers of a finished one"""
        self.warned = False
        """Whether it was said what looks wrong"""
        self._method = METHODS[integrator]
        self._guard = Guard()
        self._replaying = False
        self._threads = Threads()

    def between_ticks(self, what: str, *allowed: str) -> None:
        """Raise FluidError when called from within a tick, but while what is `allowed` runs, see `busy`."""
        if self.busy not in ("", *allowed):
            raise FluidError(f"{what} is refused during a tick of the same world; do it between two ticks")

    def stages(self, systems: list[System]) -> Sequence[Stage]:
        """In which the rates are evaluated in a tick: those of the integrator, a single one without."""
        return self._method if any(s.integrates for s in systems) else (SINGLE,)

    @property
    def instants(self) -> tuple[list[float], list[float]]:
        """Weights, and times in ticks since the last one: those of all stages once these are done."""
        if self.staged:
            return [stage.weight for stage in self._method], [stage.c for stage in self._method]
        return [1.0], [self.stage.c]

    def warn(self, world: World, level: int) -> None:
        """Say once what looks wrong, of the line `level` calls up from here."""
        if not self.warned:
            for text in world.lint():
                warnings.warn(text, FluidWarning, stacklevel=level)
        self.warned = True

    def tick(self, world: World) -> None:
        """One whole tick; on any error the state is that of its start."""
        schedule = world.schedule
        self.warn(world, 6)
        for system in world._systems:
            system._timing.last = 0.0
        with self._threads.chosen():
            self._guard.keep(world)
            try:
                self._advance(world, schedule)
                bad = self._guard.first_bad(world)
            except BaseException as error:
                self._explain(world, schedule, error)
                raise
            if bad is not None:
                self._guard.restore(world)
                self._guard.check_start(world)
                self._replay(world, schedule, bad)
            self._observe(world, schedule.phases["observe"])
        self._threads.learn({id(system): system._timing.last for system in world._systems})

    def evaluate(self, world: World) -> None:
        """Run the phases prepare and rates alone."""
        schedule = world.schedule
        with self._busy("tick"), self._threads.chosen():
            self._rates(world, schedule)

    def apply(self, world: World) -> None:
        """Carry out the changes of rows that wait, on this or another process."""
        if names := world.processes.any_of(self.commands.waiting):
            self.commands.apply(world, names)

    @contextmanager
    def _busy(self, what: Literal["tick", "observers"]) -> Iterator[None]:
        """While active, changes of rows wait; those that nobody carried out are forgotten."""
        self.busy = what
        try:
            yield
        finally:
            self.busy, self.stage, self.staged = "", SINGLE, False
            if self.commands.waiting:
                self.commands.clear()

    def _advance(self, world: World, schedule: Schedule) -> None:
        with self._busy("tick"):
            if self.debug:
                poison(world)
            self._run(world, schedule.phases["spawn"])
            move = schedule.phases["move"]
            for stage in self.stages(move):
                self.stage = stage
                self._rates(world, schedule)
                self._run(world, [s for s in move if s.integrates])
            self.stage, self.staged = SINGLE, True
            self._run(world, [s for s in move if not s.integrates])
            self._run(world, schedule.phases["constrain"])
            self.apply(world)
            world.tick += 1

    def _rates(self, world: World, schedule: Schedule) -> None:
        for _, tables in world.tables:
            for kind, table in tables.items():
                if kind.rate_of is not None:
                    for name in kind.columns:
                        table.__dict__[name].fill(0.0)
        self._run(world, schedule.phases["prepare"])
        self._run(world, schedule.phases["rates"])

    def _observe(self, world: World, observers: list[System]) -> None:
        """Run the observers on the finished tick; what they spawn and kill is applied after the last."""
        with self._busy("observers"):
            for system in observers:
                self._run(world, [system])
                self._guard.check_observer(world, system)
            self.apply(world)

    def _run(self, world: World, systems: list[System]) -> None:
        """Run systems, timed, each within what it may see, and watched by those that watch."""
        scopes: Sequence[Callable[..., AbstractContextManager[None]]] = world.processes.scopes
        if self.debug:
            scopes = [undeclared_changes, *scopes, running]
        watchers = [system for system in world._systems if system.watching]
        dt = world.options.dt
        for system in systems:
            for watcher in watchers:
                with self._as(world, watcher):
                    watcher.before_system(system)
            if self._threads.mixed:
                self._threads.before(system)
            started = time.perf_counter()
            with ExitStack() as entered:
                for scope in scopes:
                    entered.enter_context(scope(world, system))
                system.process(dt)
            seconds, timing = time.perf_counter() - started, system._timing
            timing.last += seconds
            if timing.first is None:
                timing.first = seconds
            else:
                timing.total, timing.calls = timing.total + seconds, timing.calls + 1
            if self._replaying:
                self._guard.check(world, system)
            for watcher in watchers:
                with self._as(world, watcher):
                    watcher.after_system(system)

    def _as(self, world: World, system: System) -> AbstractContextManager[None]:
        return running(world, system) if self.debug else nullcontext()

    def _explain(self, world: World, schedule: Schedule, error: BaseException) -> None:
        """Put the state back; raise DivergedError where a system stumbled over what is not finite."""
        stumbled = isinstance(error, Exception) and not isinstance(error, FluidError)
        if stumbled:
            world.processes.stumbled(error)
        bad = self._guard.first_bad(world) if stumbled else None
        self._guard.restore(world)
        if bad is not None:
            self._guard.check_start(world)
            self._replay(world, schedule, bad)

    def _replay(self, world: World, schedule: Schedule, bad: str) -> None:
        """Run the failed tick again with a check after every system, to name the one that broke it."""
        self._replaying = True
        try:
            self._advance(world, schedule)
        finally:
            self._replaying = False
            self._guard.restore(world)
        raise self._guard.error(world, bad, "the end of the tick")
