"""Commands that simulate: run, resume, warmup."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.progress import BarColumn, TaskID, TimeRemainingColumn

from ecs_fluid.cli import Bars, Threads, Ticks, app, err, out, warn
from ecs_fluid.cli.stopping import stopping
from ecs_fluid.cli.worlds import AllowCode, Anyway, Settings
from ecs_fluid.threads import use_threads

if TYPE_CHECKING:
    from ecs_fluid.ranks.start import Share
    from ecs_fluid.runs.runner import Run
    from ecs_fluid.world import World

Mpi = Annotated[
    bool, Parameter(help="one world on all processes that mpiexec started: mpiexec -n 4 ecs-fluid ... --mpi")
]


@app.command
def run(
    world: str,
    /,
    *,
    frames: Ticks = None,
    out_: Path | None = None,
    set_: Settings = (),
    threads: Threads = None,
    replace: bool = False,
    movie: Path | None = None,
    save: Path | None = None,
    estimate: bool = False,
    allow_code: AllowCode = False,
    mpi: Mpi = False,
) -> int:
    """Simulate a world: a shipped name or a .toml or .json file.

    Ctrl-C ends the run after the current tick; `ecs-fluid resume` continues it.

    Args:
        frames: ticks to run; default duration / dt of the world
        out_: run folder; default runs/NAME, numbered when taken
        replace: overwrite the run in --out
        movie: render the finished run to this .mp4 or .gif
        save: render the last frame to this .png
        estimate: predict time and disk from a few ticks, and run nothing
    """
    import tomli_w

    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.runs.runner import Run, about, free_folder
    from ecs_fluid.worlds.world_recipe import read

    with _processes(mpi, threads, Path(world).resolve().parent if allow_code else None) as share:
        if share is None:
            return 0
        if movie or save:
            from ecs_fluid.cli.look import check_pictures

            check_pictures(movie, save)
        recipe = read(world, set_, allow_code)
        for text in recipe.lint():
            warn(text)
        ticks = frames or recipe.frames
        if estimate:
            _estimate(world, set_, allow_code, ticks)
            return 0
        made = recipe.build()
        # What refuses the world leaves no folder behind that looks like a run.
        made.schedule  # noqa: B018
        share(made)
        folder = RunFolder.create(
            out_ or free_folder(Path("runs") / Path(world).stem),
            tomli_w.dumps(recipe.tables()),
            {"world": Path(world).stem, "source": str(Path(world).resolve()), **about(made)},
            existing="replace" if replace else "refuse",
        )
        code = _execute(Run(made, folder, ticks, recipe.every, recipe.output.checkpoint_seconds))
        if code == 0 and (movie or save):
            from ecs_fluid.cli.look import render_run

            render_run(folder.path, movie=movie, save=save)
        return code


@contextmanager
def _processes(mpi: bool, threads: int | None, code: Path | None) -> Iterator[Share | None]:
    """What shares the world out: nothing without --mpi, and None in all processes but the first with it."""
    from ecs_fluid.ranks.start import check_alone, on_ranks

    use_threads(threads)
    if mpi:
        with on_ranks(threads, code) as share:
            yield share
    else:
        check_alone()
        yield lambda world: None


def _estimate(world: str, settings: tuple[str, ...], allow_code: bool, ticks: int) -> None:
    """Say what a run would take."""
    from rich.filesize import decimal

    from ecs_fluid.runs.estimate import estimate
    from ecs_fluid.worlds.world_recipe import read

    recipe = read(world, settings, allow_code)
    with err.status("estimating"), compiling(err.print):
        found = estimate(
            lambda dt: read(world, (*settings, f"world.dt={dt!r}"), allow_code).build(),
            recipe.world.dt,
            ticks,
            recipe.every,
            recipe.output.checkpoint_seconds,
        )
    rows = ", ".join(f"{name} {count:,}" for name, count in found.particles.items())
    minutes, seconds = divmod(round(found.seconds), 60)
    hours, minutes = divmod(minutes, 60)
    took = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else ""
    out.print(f"time   {took or f'{found.seconds:.1f} s'}")
    out.print(f"disk   {decimal(found.disk)}")
    out.print(f"rows   {rows} at the end")
    out.print(f"from {found.sampled} ticks that stand for {ticks}; compiling kernels is not counted")
    if not found.whole:
        warn("the world does not bear long steps; this holds if its later ticks cost what its first ones do")


@app.command
def resume(
    folder: Path,
    /,
    *,
    frames: Ticks = None,
    threads: Threads = None,
    allow_code: AllowCode = False,
    anyway: Anyway = False,
    mpi: Mpi = False,
) -> int:
    """Continue a run from its newest checkpoint, bit for bit; with --mpi on any number of processes.

    Args:
        frames: last tick of the run, to make it longer or shorter
    """
    import ecs_fluid.worlds  # noqa: F401
    from ecs_fluid.runs.runner import Run, code_of

    with _processes(mpi, threads, code_of(folder) if allow_code else None) as share:
        if share is None:
            return 0
        job, skipped = Run.resume(folder, frames, allow_code, anyway)
        for text in skipped:
            warn(text)
        # A run killed between its last checkpoint and its last word is not finished: it has that word to say.
        finished = job.folder.read_info().get("status") == "finished"
        if job.world.tick > job.last_tick or (job.world.tick == job.last_tick and finished):
            job.folder.close()
            out.print(f"{folder} is complete at tick {job.world.tick}; --frames makes it longer")
            return 0
        share(job.world)
        return _execute(job)


def _execute(job: Run) -> int:
    """Run with a progress bar; Ctrl-C and SIGTERM end it after the current tick."""
    with _Bar(job) as bar, stopping("stopping after this tick ...") as asked, compiling(bar.say):

        def watch(world: World, last: int) -> bool:
            bar.tick(world)
            return bool(asked)

        status = job.execute(watch)
    world = job.world
    what = f"tick {world.tick} of {job.last_tick}, t = {world.time:g} s, in {job.folder.path}"
    if status == "stopped":
        out.print(f"stopped at {what}; continue with: ecs-fluid resume {job.folder.path}")
        return 130
    out.print(f"finished: {what}")
    return 0


class _Bar(Bars):
    """Progress bar: frames per second, time left, particles; a line every 10 s without a terminal."""

    def __init__(self, job: Run) -> None:
        done = "{task.completed:.0f}/{task.total:.0f}"
        super().__init__(
            BarColumn(), done, "{task.fields[rate]}", TimeRemainingColumn(), "{task.fields[counts]}"
        )
        self.job = job
        self.task: TaskID = self.add_task(
            "simulating", total=job.last_tick, completed=job.world.tick, rate="", counts=counts(job.world)
        )
        self.started, self.first = time.perf_counter(), job.world.tick

    def say(self, text: str) -> None:
        """Describe what goes on before the first tick."""
        if err.is_terminal:
            self.update(self.task, description=text)
        else:
            err.print(text)

    def tick(self, world: World) -> None:
        """Show one more finished tick."""
        now = time.perf_counter()
        rate = (world.tick - self.first) / max(now - self.started, 1e-9)
        if world.tick == self.first + 1:
            # The first tick may have compiled kernels: leave it out of the rate.
            self.started, self.first = now, world.tick
        speed = f"{rate:.1f} frames/s" if world.tick > self.first else ""
        self.update(
            self.task, completed=world.tick, description="simulating", rate=speed, counts=counts(world)
        )
        if speed and self.line_is_due():
            left = (self.job.last_tick - world.tick) / max(rate, 1e-9)
            err.print(f"tick {world.tick}/{self.job.last_tick}, {speed}, {left:.0f} s left, {counts(world)}")


def counts(world: World) -> str:
    """Vortons and other particles, for the progress bar."""
    from ecs_fluid.components import Position, Strength

    vortons = sum(len(entity) for entity in world.entities if Strength in entity)
    others = sum(len(entity) for entity in world.entities if Strength not in entity and Position in entity)
    return f"{vortons:,} vortons, {others:,} tracers"


@contextmanager
def compiling(say: Any) -> Iterator[None]:
    """Tell which kernel is being compiled while that goes on (first run on a machine)."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        depth = 0
        done = 0

        def on_start(self, happened: Any) -> None:
            if self.depth == 0:
                name = getattr(happened.data.get("dispatcher"), "__name__", "kernel").strip("_")
                say(f"compiling kernels, once per machine: {self.done + 1}, {name}")
            self.depth += 1

        def on_end(self, happened: Any) -> None:
            self.depth -= 1
            self.done += self.depth == 0

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


@app.command
def warmup(*, precision: Literal["single", "double", "both"] = "single") -> None:
    """Compile the kernels now, on all cores, so that the first run starts at once."""
    from ecs_fluid.runs.warmup import compile_on_all_cores

    started = time.perf_counter()
    with err.status("compiling kernels, once per machine") as status:
        compile_on_all_cores(
            ("single", "double") if precision == "both" else (precision,),
            status.update if err.is_terminal else err.print,
        )
    out.print(f"kernels ready after {time.perf_counter() - started:.1f} s")
