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
from ecs_fluid.runs.runner import Runner
from ecs_fluid.world import World

LINE_SECONDS = 10.0
"""Time between two lines of progress where no bar can be drawn, s."""


class Bars(Progress):
    """Bars of progress on a console, each behind its description; lines where no bar can be drawn."""

    def __init__(self, console: Console, *columns: str | ProgressColumn) -> None:
        self.drawn = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
        super().__init__(
            "{task.description}", *columns, console=console, transient=True, disable=not self.drawn
        )
        self._printed = time.monotonic()

    def line_is_due(self) -> bool:
        """Whether a line is to be printed now: no bar can be drawn, and the last line is old enough."""
        if self.drawn or time.monotonic() - self._printed <= LINE_SECONDS:
            return False
        self._printed = time.monotonic()
        return True


class RunBar(Bars):
    """Progress of a run: ticks per second, time left, particles; a line every 10 s without a bar."""

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
        self.started, self.first = time.perf_counter(), runner.world.tick

    def say(self, text: str) -> None:
        """Describe what happens before the first tick."""
        if self.drawn:
            self.update(self.task, description=text)
        else:
            self.console.print(text)

    def tick(self, world: World) -> None:
        """Show one more finished tick."""
        now = time.perf_counter()
        rate = (world.tick - self.first) / max(now - self.started, 1e-9)
        if world.tick == self.first + 1:
            # The first tick may have compiled kernels: leave it out of the rate.
            self.started, self.first = now, world.tick
        speed = f"{rate:.1f} ticks/s" if world.tick > self.first else ""
        self.update(
            self.task, completed=world.tick, description="simulating", rate=speed, counts=counts(world)
        )
        if speed and self.line_is_due():
            last = self.runner.last_tick
            left = f"{(last - world.tick) / max(rate, 1e-9):.0f} s left"
            self.console.print(f"tick {world.tick}/{last}, {speed}, {left}, {counts(world)}")


def counts(world: World) -> str:
    """Vortons and other particles, for the bar."""
    vortons = sum(len(entity) for entity in world.entities if Strength in entity)
    others = sum(len(entity) for entity in world.entities if Strength not in entity and Position in entity)
    return f"{vortons:,} vortons, {others:,} tracers"


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
