"""One member of a sweep, run in whatever process it is: begun, resumed, or found finished."""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecs_fluid.errors import DivergedError, FluidError, FluidWarning, StorageError
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.sweeps.plan import STOP, Plan, member_folder

if TYPE_CHECKING:
    from ecs_fluid.runs.runner import Run
    from ecs_fluid.world import World

REPORT_SECONDS = 0.5
"""Shortest time between two reports of one member, s."""

Report = Callable[[str, int, int, str], None]
"""Called with a member's name, its tick, its last tick and a remark (mostly empty)."""

Leave = Callable[[], bool]
"""Whether this process is to end: the member under way stops after its tick, with everything stored."""


@dataclass(frozen=True)
class Job:
    """The member of this name of a plan, to be run below `sweep` with `threads` kernel threads.

    It is plain data, so that it can be sent; None leaves the threads as the process has them.
    """

    plan: Plan
    name: str
    sweep: Path
    threads: int | None = None

    @property
    def folder(self) -> Path:
        """Its run folder."""
        return member_folder(self.sweep, self.name)

    @property
    def stopped(self) -> bool:
        """Whether the sweep was asked to stop."""
        return (self.sweep / STOP).exists()


@dataclass(frozen=True)
class Outcome:
    """How an attempt at a member ended.

    ``status`` is finished, stopped, diverged or failed; ``first_tick`` is where the attempt began, which is
    ``ticks`` when the member was finished before and nothing was done.
    """

    name: str
    status: str
    first_tick: int = 0
    ticks: int = 0
    time: float = 0.0
    seconds: float = 0.0
    state_hash: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    process: int = 0


def run_member(job: Job, report: Report, leave: Leave = lambda: False) -> Outcome:
    """Run a member to its end, from its newest checkpoint if it has one; never raises for a bad member."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", FluidWarning)
        try:
            outcome = _run(job, report, leave)
        except Exception as error:  # a user's system, a full memory: the other members go on
            text = str(error)
            if not isinstance(error, FluidError):
                traceback.print_exc(file=sys.stderr)
                text = f"{type(error).__name__}: {error}"
            outcome = _failed(job, " ".join(text.split()))
    texts = [str(item.message) for item in heard if issubclass(item.category, FluidWarning)]
    seconds = time.perf_counter() - begun
    return replace(outcome, seconds=seconds, warnings=tuple(dict.fromkeys(texts)), process=os.getpid())


def _run(job: Job, report: Report, leave: Leave) -> Outcome:
    if job.threads is not None:
        import numba

        numba.set_num_threads(min(job.threads, numba.config.NUMBA_NUM_THREADS))
    if not _free(job, report, leave):
        return Outcome(job.name, "stopped")
    if (found := found_finished(job)) is not None:
        return found
    run = _opened(job)
    first, said = run.world.tick, time.monotonic()
    report(job.name, first, run.last_tick, "")

    def watch(world: World, last: int) -> bool:
        nonlocal said
        now = time.monotonic()
        if now - said >= REPORT_SECONDS or world.tick == first + 1:
            said = now
            report(job.name, world.tick, last, "")
            return leave() or job.stopped
        return leave()

    try:
        run.execute(watch)
    except DivergedError as error:
        with RunFolder.resume(job.folder) as folder:
            folder.update(error=str(error))
        raise
    return _outcome(job, run.folder.read_info(), first)


def found_finished(job: Job) -> Outcome | None:
    """The outcome of a member that is at its end already; a flow that diverged would do so again."""
    if not (job.folder / "run.json").is_file():
        return None
    info = RunFolder.open(job.folder).read_info()
    ended = info.get("status") == "finished" or (info.get("status") == "diverged" and "error" in info)
    return _outcome(job, info, first_tick=info.get("ticks", 0)) if ended else None


def _opened(job: Job) -> Run:
    """The run from its newest intact checkpoint, or from the start."""
    import tomli_w

    import ecs_fluid.worlds  # noqa: F401  (registers what a checkpoint may name)
    from ecs_fluid.runs.runner import Run

    plan = job.plan
    recipe = plan.recipe_of(plan.points[job.name])
    last = plan.frames or recipe.frames
    if (job.folder / "run.json").is_file() and _has_checkpoint(job):
        return Run.resume(job.folder, last, plan.allow_code)[0]
    made = recipe.build()
    about = {
        "world": plan.world,
        "source": plan.source,
        "command": plan.command(job.name),
        "seed": made.seed,
        "options": made.options.model_dump(mode="json"),
    }
    folder = RunFolder.create(job.folder, tomli_w.dumps(recipe.tables()), about, existing="replace")
    return Run(made, folder, last, recipe.every, recipe.output.checkpoint_seconds)


def _has_checkpoint(job: Job) -> bool:
    try:
        RunFolder.open(job.folder).newest_checkpoint()
    except StorageError:
        return False  # killed before the first one
    return True


def _free(job: Job, report: Report, leave: Leave) -> bool:
    """Wait while another process writes the member: one that a killed sweep left behind finishes it for us.

    False when the sweep is to stop before that.
    """
    path = job.folder / "writer.lock"
    told = False
    while path.exists():
        try:
            WriterLock(path).release()
            return True
        except StorageError as error:
            if not os.access(path, os.W_OK):
                raise
            if leave() or job.stopped:
                return False
            if not told:
                report(job.name, 0, 0, f"waits: {error}")
            told = True
        time.sleep(0.5)
    return True


def _outcome(job: Job, info: dict[str, Any], first_tick: int) -> Outcome:
    """What run.json says of a member."""
    return Outcome(
        name=job.name,
        status=str(info.get("status")),
        first_tick=first_tick,
        ticks=info.get("ticks", 0),
        time=info.get("time", 0.0),
        state_hash=str(info.get("state_hash", "")),
        error=str(info.get("error", "")),
    )


def _failed(job: Job, text: str) -> Outcome:
    """A failure in words, with how far the run folder says that the member came."""
    try:
        info = RunFolder.open(job.folder).read_info()
    except StorageError:
        return Outcome(job.name, "failed", error=text)
    status = "diverged" if info.get("status") == "diverged" else "failed"
    return _outcome(job, {**info, "status": status, "error": text}, 0)
