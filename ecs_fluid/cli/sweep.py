"""The command that runs a world for many values at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, TaskID, TimeRemainingColumn

from ecs_fluid.api.progress import Bars
from ecs_fluid.api.stopping import stopping
from ecs_fluid.cli import Threads, WorldName, app, err, out, warn
from ecs_fluid.cli.worlds import AllowCode, Anyway, Settings
from ecs_fluid.errors import FluidError
from ecs_fluid.sweeps.axes import axis_of_text
from ecs_fluid.sweeps.member import Member
from ecs_fluid.sweeps.study import HISTORY, Study, Sweep, Watcher, plan_sweep, run_sweep
from ecs_fluid.threads import use_threads


@app.command
def sweep(
    world: WorldName,
    /,
    *,
    vary: tuple[str, ...] = (),
    seeds: int | None = None,
    out_: Path | None = None,
    ticks: int | None = None,
    set_: Settings = (),
    diagnostics: str | None = None,
    workers: int | None = None,
    threads: Annotated[Threads, Parameter(help="threads of each member; default cores / workers")] = None,
    scheduler: str | None = None,
    dry_run: bool = False,
    allow_code: AllowCode = False,
    anyway: Anyway = False,
) -> int:
    """Run a world for all combinations of values, each in a run folder of its own.

    The same command again continues a sweep that was stopped or killed, and repeats only what was lost.

    Args:
        world: a shipped name (ecs-fluid worlds lists them), or a .toml or .json file
        vary: what to vary: path=a,b,c or path=first:last:count (:log: equal factors); all are combined
        seeds: number of seeds of each combination, counted up from the world's own
        out_: folder of the sweep; default sweeps/NAME
        ticks: ticks of each member; default: the world's duration / dt
        diagnostics: columns of the tables: energy,impulse.z and so on; default all
        workers: worker processes; default all cores; 0: one member after another, without Dask
        scheduler: address of a running Dask scheduler: tcp://host:8786
        dry_run: check and list the members, and run nothing
    """
    chosen = [name.strip() for name in diagnostics.split(",")] if diagnostics is not None else None
    axes = _axes(vary)
    if dry_run:
        plan, points = plan_sweep(world, axes, seeds, set_, ticks, allow_code)
        plan.check_diagnostics(chosen or ())
        plan.add(points)
        for text in plan.remarks:
            warn(text)
        for name in plan.points:
            out.print(name)
        return 0
    if workers == 0:
        use_threads(threads)
    with _SweepBars() as bars:
        study = Study(
            world, out_, vary=axes, seeds=seeds, settings=set_, ticks=ticks, diagnostics=chosen,
            workers=workers, threads=threads, scheduler=scheduler, allow_code=allow_code,
            anyway=anyway, watch=bars,
        )  # fmt: skip

        def stop() -> None:
            err.print("stopping: members under way end after their tick ...", style="yellow")
            study.stop()

        with stopping(stop):
            done = run_sweep(study)
    if bars.warned:
        text = f"{_members(len(bars.warned))} warned, all in {done.folder / HISTORY}; the first: "
        warn(text + bars.warned[0])
    return _report(done)


def _axes(vary: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    axes: dict[str, tuple[object, ...]] = {}
    for text in vary:
        path, values = axis_of_text(text)
        if path in axes:
            raise FluidError(f"--vary {path} is given twice; give all its values in one")
        axes[path] = values
    return axes


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


def _report(done: Sweep) -> int:
    """Print how the members ended; exit code 0 if all finished, 1 if some failed, 130 if stopped."""
    finished = sum(member.finished for member in done.members)
    for path in done.files:
        out.print(f"wrote {path}")
    for member in done.failed:
        err.print(f"{member.status}: {member.name}: {member.error}", style="bold red")
    out.print(f"{finished} of {len(done.members)} members finished, in {done.folder}")
    if done.stopped:
        out.print("stopped; the same command continues the sweep")
        return 130
    return 0 if finished == len(done.members) else 1


class _SweepBars(Bars, Watcher):
    """A bar for the sweep and one for each running member; lines where there is no terminal."""

    def __init__(self) -> None:
        done = "{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"
        super().__init__(err, BarColumn(bar_width=24), done, TimeRemainingColumn())
        self.total = self.done = 0
        self.whole: TaskID | None = None
        self.bars: dict[str, TaskID] = {}
        self.ticks: dict[str, tuple[int, int]] = {}
        self.warned: list[str] = []

    def begin(self, total: int, done: int) -> None:
        """See Watcher."""
        self.total, self.done = total, done
        self.whole = self.add_task("sweep", total=total, completed=done, unit="members")
        again = f"; finished before: {done}" if done else ""
        self.say(f"{_members(total)}{again}; the first use of a kernel on a machine compiles it")

    def tick(self, name: str, tick: int, last: int) -> None:
        """See Watcher."""
        if name not in self.bars:
            self.bars[name] = self.add_task(name, total=last, unit="ticks")
        self.ticks[name] = (tick, last)
        self.update(self.bars[name], completed=tick, total=last)
        if self.line_is_due():
            under_way = ", ".join(f"{one} {now}/{end}" for one, (now, end) in self.ticks.items())
            self.say(f"{self.done}/{self.total} members; under way: {under_way}")

    def end(self, member: Member) -> None:
        """See Watcher."""
        self.ticks.pop(member.name, None)
        if (bar := self.bars.pop(member.name, None)) is not None:
            self.remove_task(bar)
        if member.warnings:
            self.warned.append(f"{member.name}: {member.warnings[0]}")
        self.done += member.status in ("finished", "diverged", "failed")
        if self.whole is not None:
            self.update(self.whole, completed=self.done)
        ticks = (
            f"ticks {member.first_tick} to {member.ticks}" if member.first_tick else f"{member.ticks} ticks"
        )
        why = f": {member.error}" if member.error else ""
        self.say(
            f"{self.done}/{self.total} {member.name} {member.status}, {ticks}, {member.seconds:.1f} s{why}"
        )

    def say(self, text: str) -> None:
        """See Watcher."""
        err.print(text, style="yellow" if text.startswith("warning") else None)
