"""One member of a sweep, and how any process runs it: begun, resumed, or left as it is if finished."""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from ecs_fluid.errors import DivergedError, FluidError, FluidWarning, StorageError, warn
from ecs_fluid.io.lock import LOCK, WriterLock
from ecs_fluid.io.runfolder import RunFolder, is_run
from ecs_fluid.io.trajectory import Trajectory
from ecs_fluid.runs.runner import Runner
from ecs_fluid.sweeps.axes import Point
from ecs_fluid.sweeps.plan import STOP, Plan
from ecs_fluid.world import World

REPORT_SECONDS = 0.5
"""Shortest time between two reports of one member, s."""

Report = Callable[[str, int, int, str], None]
"""Called with a member's name, its tick, its last tick and a remark (mostly empty)."""


@dataclass(frozen=True)
class Member:
    """One member of a sweep and how the last attempt at it ended.

    Attributes:
        name: name of the member and of its folder.
        values: what it sets, by path.
        path: its run folder, as `ecs-fluid show`, `info` and `resume` take it.
        status: finished, stopped, diverged, failed, or waiting (not begun).
        ticks, time: tick and time, s, of its last state.
        state_hash: hash of that state.
        error: why it failed, one sentence.
        first_tick: where the attempt began; ``ticks`` if the member was finished before.
        seconds, process: time that the attempt took, s, and its process id.
        warnings: sentences of the attempt.
    """

    name: str
    values: Point
    path: Path
    status: str = "waiting"
    ticks: int = 0
    time: float = 0.0
    state_hash: str = ""
    error: str = ""
    first_tick: int = field(default=0, compare=False)
    seconds: float = field(default=0.0, compare=False)
    process: int = field(default=0, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def finished(self) -> bool:
        """Whether it ran to its last tick."""
        return self.status == "finished"

    def records(self) -> list[dict[str, Any]]:
        """Its diagnostics over time, oldest first."""
        return RunFolder.open(self.path).records() if is_run(self.path) else []

    def trajectory(self) -> Trajectory:
        """Its stored frames."""
        return RunFolder.open(self.path).read_trajectory()

    def with_result(self, info: dict[str, Any], **changes: Any) -> Member:
        """The member with the result in this run.json, and with `changes`."""
        keys = ("status", "ticks", "time", "state_hash", "error")
        return replace(self, **{key: info[key] for key in keys if key in info} | changes)


@dataclass(frozen=True)
class Job:
    """A member to be run by `plan` with `threads` kernel threads; None leaves their number as it is.

    Plain data, which can be sent to other processes.
    """

    plan: Plan
    member: Member
    threads: int | None = None

    @property
    def sweep(self) -> Path:
        """Folder of the sweep."""
        return self.member.path.parent.parent

    @property
    def stopped(self) -> bool:
        """Whether the sweep was asked to stop."""
        return (self.sweep / STOP).exists()


def run_member(job: Job, report: Report, leave: Callable[[], bool] = lambda: False) -> Member:
    """Run a member to its end, from its newest checkpoint if it has one; never raises for a bad member.

    When the sweep is stopped, or `leave` returns True, it ends after its tick with everything stored.
    """
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FluidWarning)
        try:
            ended = _run(job, report, lambda: leave() or job.stopped)
        except Exception as error:  # an error of a user's system, or no memory: the other members go on
            text = str(error)
            if not isinstance(error, FluidError):
                traceback.print_exc(file=sys.stderr)
                text = f"{type(error).__name__}: {error}"
            ended = _failed(job.member, " ".join(text.split()))
    texts = [str(item.message) for item in caught if issubclass(item.category, FluidWarning)]
    seconds = time.perf_counter() - begun
    return replace(ended, seconds=seconds, warnings=tuple(dict.fromkeys(texts)), process=os.getpid())


def _run(job: Job, report: Report, stop: Callable[[], bool]) -> Member:
    """Run, resume or find finished the member of a job; return it with its result. Raises its errors."""
    member = job.member
    if job.threads is not None:
        import numba

        numba.set_num_threads(min(job.threads, numba.config.NUMBA_NUM_THREADS))
    _wait_for_writer(member, report, stop)
    if stop():
        return member
    if (found := ended_before(member)) is not None:
        return found
    run = _runner_of(job)
    first, reported = run.world.tick, time.monotonic()
    report(member.name, first, run.last_tick, "")

    def watch(world: World, last: int) -> bool:
        nonlocal reported
        now = time.monotonic()
        if now - reported >= REPORT_SECONDS or world.tick == first + 1:
            reported = now
            report(member.name, world.tick, last, "")
        return stop()

    try:
        run.execute(watch)
    except DivergedError as error:
        with RunFolder.resume(member.path) as folder:
            folder.update(error=str(error))
        raise
    return member.with_result(run.folder.read_info(), first_tick=first)


def ended_before(member: Member) -> Member | None:
    """The member with its result, if it finished before, or diverged, as it would again; else None."""
    if not is_run(member.path):
        return None
    info = RunFolder.open(member.path).read_info()
    ended = info.get("status") == "finished" or (info.get("status") == "diverged" and "error" in info)
    return member.with_result(info, first_tick=info.get("ticks", 0)) if ended else None


def _runner_of(job: Job) -> Runner:
    """The run from its newest intact checkpoint, or from the start."""
    plan, member = job.plan, job.member
    recipe = plan.recipe_of(member.values)
    last = plan.ticks or recipe.ticks
    if is_run(member.path) and _has_checkpoint(member.path):
        return Runner.resume(member.path, last, plan.allow_code, plan.anyway)[0]
    for text in recipe.lint():
        warn(text)
    made = recipe.build()
    about = {
        "world": plan.world,
        "source": plan.source,
        "command": plan.command(member.values, member.path),
        "seed": made.seed,
        "options": made.options.model_dump(mode="json"),
    }
    folder = RunFolder.create(member.path, tomli_w.dumps(recipe.tables()), about, existing="replace")
    return Runner(made, folder, last, recipe.every, recipe.output.checkpoint_seconds)


def _has_checkpoint(path: Path) -> bool:
    try:
        RunFolder.open(path).newest_checkpoint()
    except StorageError:
        return False  # killed before the first one
    return True


def _wait_for_writer(member: Member, report: Report, stop: Callable[[], bool]) -> None:
    """Wait while another process writes the member: a worker of a killed sweep may be finishing it."""
    path = member.path / LOCK
    announced = False
    while path.exists() and not stop():
        try:
            return WriterLock(path).release()
        except StorageError as error:
            if not os.access(path, os.W_OK):
                raise
            if not announced:
                report(member.name, 0, 0, f"waits: {error}")
            announced = True
        time.sleep(0.5)


def _failed(member: Member, text: str) -> Member:
    """The member as failed, with the error and the last tick in its run folder."""
    try:
        info = RunFolder.open(member.path).read_info()
    except StorageError:
        info = {}
    status = "diverged" if info.get("status") == "diverged" else "failed"
    return member.with_result(info, status=status, error=text)
