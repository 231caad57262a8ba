"""One tick: phases in order, stages of the integrator, structural changes, and the guard around them."""

from __future__ import annotations

import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ecs_fluid.access import running
from ecs_fluid.commands import Commands
from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.guard import Guard
from ecs_fluid.integrator import Integrator
from ecs_fluid.schedule import Schedule, Timing
from ecs_fluid.system import System
from ecs_fluid.threads import Threads

if TYPE_CHECKING:
    from ecs_fluid.world import World


class Ticker:
    """Runs the ticks of one world; holds what is needed only while a tick runs, and the times of systems.

    Args:
        integrator: name of the Runge-Kutta method.
        debug: whether derived tables are poisoned and undeclared writes caught.
    """

    def __init__(self, integrator: str, debug: bool) -> None:
        self.debug = debug
        self.commands = Commands()
        self.timings: dict[int, Timing] = {}
        self.stage, self.offset = 0, 0.0
        self.advancing = self.observing = self.staged = False
        self.last_stage = True
        self._integrator = Integrator(integrator)
        self._guard = Guard()
        self._threads = Threads()
        self.warned = False
        """Whether it was said what looks wrong"""

    @property
    def busy(self) -> bool:
        """Whether a tick is running."""
        return self.advancing or self.observing

    def between_ticks(self, what: str) -> None:
        """Raise FluidError when called from within a tick."""
        if self.busy:
            raise FluidError(f"{what} was called during a tick of the same world; call it between two ticks")

    def stages(self, systems: list[System]) -> int:
        """How often the rates are evaluated per tick: the stages of the integrator, 1 without one."""
        return self._integrator.method.stages if any(s.integrates for s in systems) else 1

    @property
    def instants(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Weights, and times in ticks since the last one: those of all stages once these are done."""
        method = self._integrator.method
        return (method.weights, method.c) if self.staged else ((1.0,), (self.offset,))

    def stage_weight(self, systems: list[System]) -> float:
        """Weight of the present stage's rates in the tick."""
        return self._integrator.method.weights[self.stage] if self.stages(systems) > 1 else 1.0

    def warn(self, world: World, level: int) -> None:
        """Say once what looks wrong, of the line `level` calls up from here."""
        if not self.warned:
            for text in world.lint():
                warnings.warn(text, FluidWarning, stacklevel=level)
        self.warned = True

    def integrate(self, world: World) -> None:
        """Advance every state that has a rate by the present stage."""
        self._integrator.advance(world.tables, self.stage, world.dt)

    def tick(self, world: World) -> None:
        """One whole tick; on any error the state is that of its start."""
        with self._threads.chosen():
            self._tick(world)
        self._threads.learn({system: timing.last for system, timing in self.timings.items()})

    def _tick(self, world: World) -> None:
        schedule = world.schedule
        self.warn(world, 7)
        for timing in self.timings.values():
            timing.last = 0.0
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

    def evaluate(self, world: World) -> None:
        """Run the phases prepare and rates alone."""
        schedule = world.schedule
        self.advancing = True
        try:
            with self._threads.chosen():
                self._rates(world, schedule)
        finally:
            self.advancing = False
            self.commands.clear()

    def _advance(self, world: World, schedule: Schedule) -> None:
        self.advancing = True
        try:
            if self.debug:
                self._guard.poison(world)
            self._run(world, schedule.phases["spawn"])
            integrators = [s for s in schedule.phases["move"] if s.integrates]
            for stage in range(self.stages(integrators)):
                self.offset = self._integrator.method.c[stage] if integrators else 0.0
                self.stage = stage
                self.last_stage = stage == self.stages(integrators) - 1
                self._rates(world, schedule)
                self._run(world, integrators)
            self.offset, self.staged = 0.0, True
            self._run(world, [s for s in schedule.phases["move"] if not s.integrates])
            self._run(world, schedule.phases["constrain"])
            self.commands.apply(world)
            world.tick += 1
        finally:
            self.advancing, self.staged, self.offset, self.last_stage = False, False, 0.0, True
            self.commands.clear()

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
        self.observing = True
        try:
            for system in observers:
                self._run(world, [system])
                self._guard.check_written(world, system)
            self.commands.apply(world)
        finally:
            self.observing = False
            self.commands.clear()

    def _run(self, world: World, systems: list[System]) -> None:
        dt, processes = world.dt, world.processes
        for system in systems:
            timing = self.timings.get(id(system))
            if timing is None:
                timing = self.timings[id(system)] = Timing()
            watchers = [other for other in world._systems if other.watching]
            for watcher in watchers:
                with self._as(world, watcher):
                    watcher.before_system(system)
            self._threads.before(system)
            started = time.perf_counter()
            if self.debug:
                watched = self._guard.watch(world, system)
                with watched, processes.scope(world, system), running(world, system):
                    system.process(dt)
            else:
                with processes.scope(world, system):
                    system.process(dt)
            timing.add(time.perf_counter() - started)
            if self._guard.replaying:
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
        with self._guard.replay():
            try:
                self._advance(world, schedule)
            finally:
                self._guard.restore(world)
        raise self._guard.error(world, bad, "the end of the tick")
