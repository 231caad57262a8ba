"""Commands that simulate: run, resume, warmup."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.filesize import decimal

from ecs_fluid.api.progress import compiling
from ecs_fluid.api.running import carry_out, new_runner, resumed_runner
from ecs_fluid.arguments import refuse_unused
from ecs_fluid.cli import Threads, Ticks, WorldName, app, err, out, warn
from ecs_fluid.cli.worlds import AllowCode, Anyway, Settings
from ecs_fluid.errors import FluidError
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.ranks.start import Share, check_alone, on_ranks
from ecs_fluid.runs.runner import Runner, code_folder
from ecs_fluid.threads import use_threads
from ecs_fluid.world_options import Precision
from ecs_fluid.worlds.world_recipe import load, read

Mpi = Annotated[
    bool,
    Parameter(
        help="share one world among the processes that mpiexec started: mpiexec -n 4 ecs-fluid ... --mpi"
    ),
]
Quiet = Annotated[bool, Parameter(help="show no progress: no bar, and no lines where there is no terminal")]


@app.command
def run(
    world: WorldName,
    /,
    *,
    ticks: Ticks = None,
    out_: Path | None = None,
    set_: Settings = (),
    threads: Threads = None,
    replace: bool = False,
    movie: Path | None = None,
    save: Path | None = None,
    estimate: bool = False,
    quiet: Quiet = False,
    allow_code: AllowCode = False,
    mpi: Mpi = False,
) -> int:
    """Simulate a world: a shipped name or a .toml or .json file.

    Ctrl-C ends the run after the current tick; `ecs-fluid resume` continues it.

    Args:
        world: a shipped name (ecs-fluid worlds lists them), or a .toml or .json file
        ticks: ticks to run; default: the world's duration / dt
        out_: folder of the run; default runs/NAME, with a number if that exists
        replace: overwrite the run in --out
        movie: render the finished run to this .mp4 or .gif
        save: render the last frame to this .png
        estimate: predict time and disk from a few ticks, and run nothing
    """
    with _processes(mpi, threads, Path(world).resolve().parent if allow_code else None) as share:
        if share is None:
            return 0
        if movie or save:
            from ecs_fluid.cli.look import check_pictures

            check_pictures(movie, save)
        if estimate:
            _estimate(world, set_, allow_code, ticks)
            return 0
        runner = new_runner(
            world, set_, ticks=ticks, out=out_, replace=replace, allow_code=allow_code, share=share
        )
        code = _execute(runner, quiet)
        if code == 0 and (movie or save):
            from ecs_fluid.cli.look import render_run

            render_run(runner.folder.path, movie=movie, save=save)
        return code


@contextmanager
def _processes(mpi: bool, threads: int | None, code: Path | None) -> Iterator[Share | None]:
    """The function that shares the world among processes (does nothing without --mpi); None on ranks > 0."""
    use_threads(threads)
    if mpi:
        with on_ranks(threads, code) as share:
            yield share
    else:
        check_alone()
        yield lambda world: None


def _estimate(world: str, settings: tuple[str, ...], allow_code: bool, ticks: int | None) -> None:
    """Print what a run would take."""

    from ecs_fluid.runs.estimate import duration, estimate

    recipe = read(world, settings, allow_code)
    for text in recipe.lint():
        warn(text)
    ticks = ticks or recipe.ticks
    with err.status("estimating"), compiling(err.print):
        found = estimate(
            lambda dt: read(world, (*settings, f"world.dt={dt!r}"), allow_code).build(),
            recipe.world.dt,
            ticks,
            recipe.every,
            recipe.output.checkpoint_seconds,
        )
    rows = ", ".join(f"{name} {count:,}" for name, count in found.particles.items())
    out.print(f"time   {duration(found.seconds)}")
    out.print(f"disk   {decimal(found.disk)}")
    out.print(f"rows   {rows} at the end")
    out.print(f"from {found.sampled} ticks that stand for {ticks}; compiling kernels is not counted")
    if not found.whole:
        warn(
            "the world could not be run to its end with long steps in time; this holds only if its later "
            "ticks cost what its first ones do"
        )


@app.command
def resume(
    folder: Path,
    /,
    *,
    ticks: Ticks = None,
    set_: Settings = (),
    threads: Threads = None,
    quiet: Quiet = False,
    allow_code: AllowCode = False,
    anyway: Anyway = False,
    mpi: Mpi = False,
) -> int:
    """Continue a run from its newest checkpoint, bit for bit; with --mpi on any number of processes.

    With --set it goes on with other values from there: of systems, of the fluid, or of world.duration.

    Args:
        folder: folder of a run, such as runs/vortex_ring
        ticks: last tick of the whole run, to make it longer or shorter
    """
    with _processes(mpi, threads, code_folder(folder) if allow_code else None) as share:
        if share is None:
            return 0
        runner = resumed_runner(folder, ticks, allow_code, anyway, set_)
        if runner is None:
            tick = RunFolder.open(folder).read_info()["ticks"]
            where = f"is at tick {tick} already" if ticks and ticks < tick else f"is complete at tick {tick}"
            out.print(f"{folder} {where}; a larger --ticks makes it longer")
            return 0
        share(runner.world)
        return _execute(runner, quiet)


def _execute(runner: Runner, quiet: bool) -> int:
    """Run with progress, unless `quiet`; Ctrl-C, SIGTERM and SIGHUP end it after the current tick."""
    world, folder = runner.world, runner.folder.path

    def place() -> str:
        return f"tick {world.tick} of {runner.last_tick}, t = {world.time:g} s, in {folder}"

    try:
        status = carry_out(runner, err, not quiet)
    except FluidError:
        out.print(f"failed after {place()}; to see what is stored: ecs-fluid show {folder}")
        raise
    if status == "stopped":
        out.print(f"stopped at {place()}; continue with: ecs-fluid resume {folder}")
        return 130
    out.print(f"finished: {place()}")
    return 0


@app.command
def warmup(
    world: WorldName | None = None,
    /,
    *,
    precision: Literal["single", "double", "both"] | None = None,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """Compile kernels now, so that a run starts at once: those of a world, or all of them on all cores.

    Args:
        world: compile what the first two ticks of this world need
        precision: of all kernels, without a world; default single
    """
    from ecs_fluid.runs.compiling import check_cache
    from ecs_fluid.runs.warmup import compile_for, compile_on_all_cores

    if world is not None:
        own = "on a world, which has its own: --set world.precision=double"
        refuse_unused({"--precision": precision}, own)
    else:
        need = "without a world; name one: ecs-fluid warmup WORLD"
        refuse_unused({"--set": set_, "--allow-code": allow_code}, need)
    check_cache()
    started = time.perf_counter()
    with err.status("compiling kernels, once per machine") as status:
        say = status.update if err.is_terminal else err.print
        if world is not None:
            with compiling(say):
                compile_for(load(world, *set_, allow_code=allow_code))
        else:
            both: tuple[Precision, ...] = ("single", "double")
            compile_on_all_cores(both if precision == "both" else (precision or "single",), say)
    what = "kernels" if world is None else f"what the first ticks of {world} need is"
    out.print(f"{what} ready after {time.perf_counter() - started:.1f} s")
