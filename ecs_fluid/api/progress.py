"""How far a run is: a bar in a terminal or a notebook, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TimeRemainingColumn

from ecs_fluid.components import Position, Strength
from ecs_fluid.errors import StorageError
from ecs_fluid.runs.compiling import before_compiling, check_cache
from ecs_fluid.runs.estimate import duration
from ecs_fluid.runs.runner import Runner
from ecs_fluid.world import World

LINE_SECONDS = 30.0
"""Longest time between two lines of progress where no bar can be drawn, s."""
FEWEST_SECONDS = 1.0
"""Shortest time between two of them, s."""


class Bars(Progress):
    """Bars of progress on a console, each behind its description; lines where no bar can be drawn."""

    def __init__(self, console: Console, *columns: str | ProgressColumn) -> None:
        self.drawn = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
        super().__init__(
            "{task.description}", *columns, console=console, transient=True, disable=not self.drawn
        )
        self._printed = time.monotonic()
        self._tenths = 0

    def line_is_due(self, share: float = 0.0) -> bool:
        """Whether a line is to be printed now: no bar can be drawn, and the last line is old enough.

        At another tenth of the whole, of which that share is done, it is old after a second, and at the end
        at once.
        """
        tenths, age = int(10.0 * share), time.monotonic() - self._printed
        enough = FEWEST_SECONDS if tenths > self._tenths else LINE_SECONDS
        if self.drawn or (age < enough and share < 1.0):
            return False
        self._printed, self._tenths = time.monotonic(), tenths
        return True


class RunBar(Bars):
    """Progress of a run: ticks per second, time left, particles.

    Without a bar there is a line at the start and the end, and between them one for each tenth and each 30 s.
    """

    def __init__(self, runner: Runner, console: Console) -> None:
        done = "{task.completed:.0f}/{task.total:.0f}"
        super().__init__(
            console, BarColumn(), done, "{task.fields[rate]}", TimeRemainingColumn(), "{task.fields[counts]}"
        )
        self.runner = runner
        self.task: TaskID = self.add_task(
            "simulating",
            total=runner.last_tick,
            completed=runner.world.tick,
            rate="",
            counts=counts(runner.world),
        )
        # The first tick may compile kernels, so the rate is that after it.
        self.first, self.started = runner.world.tick + 1, 0.0
        if not self.drawn:
            on = f" from tick {runner.world.tick} on" if runner.world.tick else ""
            console.print(f"simulating up to tick {runner.last_tick}{on}: {counts(runner.world)}")

    def say(self, text: str) -> None:
        """Describe what happens before the first tick."""
        if self.drawn:
            self.update(self.task, description=text)
        else:
            self.console.print(text)

    def tick(self, world: World) -> None:
        """Show one more finished tick."""
        now = time.perf_counter()
        if world.tick == self.first:
            self.started = now
        rate = (world.tick - self.first) / max(now - self.started, 1e-9)
        speed = f"{rate:.3g} ticks/s" if rate else ""
        self.update(
            self.task, completed=world.tick, description="simulating", rate=speed, counts=counts(world)
        )
        last = self.runner.last_tick
        if self.line_is_due(world.tick / last):
            left = f"{duration((last - world.tick) / rate)} left" if rate and world.tick < last else ""
            parts = (f"tick {world.tick} of {last}", f"t = {world.time:g} s", speed, left, counts(world))
            self.console.print(", ".join(filter(None, parts)))


def counts(world: World) -> str:
    """Vortons and other particles, for the bar."""
    vortons = sum(len(entity) for entity in world.entities if Strength in entity)
    others = sum(len(entity) for entity in world.entities if Strength not in entity and Position in entity)
    return f"{vortons:,} vortons, {others:,} other particles"


@contextmanager
def compiling(say: Callable[[str], object]) -> Iterator[None]:
    """Say which kernel is being compiled, on the first run on a machine; in every run if none can be kept."""
    numbers, often = count(1), "once per machine"

    def tell(name: str) -> None:
        nonlocal often
        number = next(numbers)
        if number == 1:
            try:
                check_cache()
            except StorageError as error:
                say(str(error))
                often = "in every run"
        say(f"compiling kernels, {often}: {number}, {name}")

    with before_compiling(tell):
        yield
