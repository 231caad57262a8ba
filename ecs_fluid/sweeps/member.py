"""One member of a sweep, run in whatever process it is: begun, resumed, or found finished."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecs_fluid.errors import DivergedError, FluidError, FluidWarning, StorageError

if TYPE_CHECKING:
    from ecs_fluid.runs.runner import Run
    from ecs_fluid.world import World

LEAVE = threading.Event()
"""Set when this process is to end: the member under way stops after its tick, with everything stored."""

IDLE = threading.Event()
"""Set while this process runs no member."""
IDLE.set()

REPORT_SECONDS = 0.5
"""Shortest time between two reports of one member, s."""

Report = Callable[[str, int, int, str], None]
"""Called with a member's name, its tick, its last tick and a remark (mostly empty)."""


@dataclass(frozen=True)
class Job:
    """All that a process needs to run a member; plain data, so that it can be sent.

    Attributes:
        name: of the member.
        folder: its run folder.
        tables: of its world, as a world file would hold them.
        world, source, home: name of the world, its file, and the folder of its data files ("" for none).
        command: the command that makes the same run on its own.
        frames: ticks to run; None for the world's own duration.
        stop: a file; while it exists, members stop after their tick.
        plan: a file that a process must see to run members here, since it proves that folders are shared.
        threads: kernel threads; None leaves them as the process has them.
    """

    name: str
    folder: str
    tables: dict[str, Any]
    world: str
    source: str
    home: str
    command: str
    frames: int | None
    allow_code: bool
    stop: str
    plan: str
    threads: int | None = None


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
    last_tick: int = 0
    time: float = 0.0
    seconds: float = 0.0
    state_hash: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    process: int = 0


def run_member(job: Job, report: Report) -> Outcome:
    """Run a member to its end, from its newest checkpoint if it has one; never raises for a bad member."""
    IDLE.clear()
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", FluidWarning)
            outcome = _attempt(job, report)
        texts = [str(item.message) for item in heard if issubclass(item.category, FluidWarning)]
        return replace(outcome, warnings=tuple(dict.fromkeys(texts)))
    finally:
        IDLE.set()


def _attempt(job: Job, report: Report) -> Outcome:
    """The outcome of a member, also of a bad one."""
    begun = time.perf_counter()
    try:
        return _run(job, report, begun)
    except FluidError as error:
        text = str(error)
    except Exception as error:  # a user's system, a full memory: the other members go on
        traceback.print_exc(file=sys.stderr)
        text = f"{type(error).__name__}: {error}"
    return _failed(job, text, time.perf_counter() - begun)


def _run(job: Job, report: Report, begun: float) -> Outcome:
    if not Path(job.plan).is_file():
        raise StorageError(
            f"this process does not see {job.plan}; scheduler, workers and the sweep need a folder in common"
        )
    if job.threads is not None:
        import numba

        numba.set_num_threads(min(job.threads, numba.config.NUMBA_NUM_THREADS))
    if not _free(job, report):
        return Outcome(job.name, "stopped", process=os.getpid())
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
            return _asked_to_stop(job)
        return LEAVE.is_set()

    try:
        run.execute(watch)
    except DivergedError as error:
        _note(job, str(error))
        raise
    return _told(job, run.folder.read_info(), first, time.perf_counter() - begun)


def _asked_to_stop(job: Job) -> bool:
    return LEAVE.is_set() or Path(job.stop).exists()


def found_finished(job: Job) -> Outcome | None:
    """The outcome of a member that is at its end already; a flow that diverged would do so again."""
    from ecs_fluid.io.runfolder import RunFolder

    if not (Path(job.folder) / "run.json").is_file():
        return None
    info = RunFolder.open(job.folder).read_info()
    ended = info.get("status") == "finished" or (info.get("status") == "diverged" and "error" in info)
    return _told(job, info, first_tick=info.get("ticks", 0)) if ended else None


def _opened(job: Job) -> Run:
    """The run from its newest intact checkpoint, or from the start."""
    import ecs_fluid.worlds  # noqa: F401  (registers what a checkpoint may name)
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.runs.runner import Run

    recipe = recipe_of(job)
    last = job.frames or recipe.frames
    if (Path(job.folder) / "run.json").is_file() and _has_checkpoint(job):
        return Run.resume(Path(job.folder), last, job.allow_code)[0]
    made = recipe.build()
    import tomli_w

    folder = RunFolder.create(
        job.folder,
        tomli_w.dumps(recipe.tables()),
        {
            "world": job.world,
            "source": job.source,
            "command": job.command,
            "seed": made.seed,
            "options": made.options.model_dump(mode="json"),
        },
        existing="replace",
    )
    return Run(made, folder, last, recipe.every, recipe.output.checkpoint_seconds)


def recipe_of(job: Job) -> Any:
    """The checked recipe of a member."""
    from ecs_fluid.worlds.world_recipe import WorldRecipe

    place = Path(job.source).name or job.world
    return WorldRecipe.from_tables(job.tables, place, job.allow_code, Path(job.home) if job.home else None)


def _has_checkpoint(job: Job) -> bool:
    from ecs_fluid.io.runfolder import RunFolder

    try:
        RunFolder.open(job.folder).newest_checkpoint()
    except StorageError:
        return False  # killed before the first one
    return True


def _free(job: Job, report: Report) -> bool:
    """Wait while another process writes the member: one that a killed sweep left behind finishes it for us.

    False when the sweep is to stop before that.
    """
    from ecs_fluid.io.lock import WriterLock

    path = Path(job.folder) / "writer.lock"
    told = False
    while path.exists():
        try:
            WriterLock(path).release()
            return True
        except StorageError as error:
            if not os.access(path, os.W_OK):
                raise
            if _asked_to_stop(job):
                return False
            if not told:
                report(job.name, 0, 0, f"waits: {error}")
            told = True
        time.sleep(0.5)
    return True


def _note(job: Job, text: str) -> None:
    """Keep why a run ended in its run.json."""
    from ecs_fluid.io.runfolder import RunFolder

    with RunFolder.resume(job.folder) as folder:
        folder.update(error=text)


def _told(job: Job, info: dict[str, Any], first_tick: int, seconds: float = 0.0) -> Outcome:
    """What run.json says of a member."""
    return Outcome(
        name=job.name,
        status=str(info.get("status")),
        first_tick=first_tick,
        ticks=info.get("ticks", 0),
        last_tick=info.get("plan", {}).get("last_tick", 0),
        time=info.get("time", 0.0),
        seconds=seconds,
        state_hash=str(info.get("state_hash", "")),
        error=str(info.get("error", "")),
        process=os.getpid(),
    )


def _failed(job: Job, text: str, seconds: float) -> Outcome:
    """A failure in words, with how far the run folder says that the member came."""
    from ecs_fluid.io.runfolder import RunFolder

    text = " ".join(text.split())
    try:
        info = RunFolder.open(job.folder).read_info()
    except StorageError:
        return Outcome(job.name, "failed", seconds=seconds, error=text, process=os.getpid())
    status = "diverged" if info.get("status") == "diverged" else "failed"
    return _told(job, {**info, "status": status, "error": text}, 0, seconds)
