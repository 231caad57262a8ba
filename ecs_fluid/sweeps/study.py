"""Sweeps and studies: many runs of one world, each a normal run folder; killed ones are continued."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ecs_fluid.arguments import MOST_THREADS, path_of, whole_number, whole_number_or_none
from ecs_fluid.errors import FluidError, RecipeError, StorageError, sentences
from ecs_fluid.html import table
from ecs_fluid.io.disk import make_folder, replace_text
from ecs_fluid.io.lock import LOCK, WriterLock
from ecs_fluid.io.records import append_record
from ecs_fluid.sweeps.axes import MOST_MEMBERS, Point, axis, product
from ecs_fluid.sweeps.member import Job, Member, ended_before, run_member
from ecs_fluid.sweeps.plan import STOP, Plan
from ecs_fluid.sweeps.pool import DaskPool, check_address, cores, require_dask
from ecs_fluid.sweeps.results import write_tables
from ecs_fluid.validation_errors import shown
from ecs_fluid.worlds import WorldRecipe

HISTORY = "history.jsonl"
PLOT = "plot.png"
SEED = "world.seed"
TABLE_SECONDS = 20.0
"""Time between two rewritings of the tables while members run, s."""


class Watcher:
    """Called by a study while it runs; override the methods of interest."""

    def begin(self, total: int, done: int) -> None:
        """`total` members are to be run, of which `done` were finished before."""

    def tick(self, name: str, tick: int, last: int) -> None:
        """A member is at `tick`, of `last` ticks."""

    def end(self, member: Member) -> None:
        """An attempt at a member ended."""

    def say(self, text: str) -> None:
        """A sentence on workers, warnings and waits."""


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep: its folder, its members in order, and the files with tables and plot."""

    folder: Path
    members: list[Member]
    files: list[Path]
    stopped: bool

    @property
    def failed(self) -> list[Member]:
        """Members that diverged or failed."""
        return [member for member in self.members if member.status in ("failed", "diverged")]

    def __repr__(self) -> str:
        stopped = ", stopped" if self.stopped else ""
        return f"Sweep({str(self.folder)!r}, {len(self.members)} members, {len(self.failed)} failed{stopped})"

    def _repr_html_(self) -> str:
        rows = [
            (one.name, one.status, one.ticks, f"{one.time:.6g} s", f"{one.seconds:.1f} s", one.error)
            for one in self.members
        ]
        head = ("member", "status", "ticks", "simulated time", "wall time", "error")
        return table(f"{self.folder}, {len(rows)} members", head, rows)


class Study:
    """Many runs of one world in one folder, for optimisers that choose the next run after the last one.

    ::

        with ef.Study("vortex_ring", out="fit", ticks=60, workers=0) as study:
            member = study.run({"ring.core": 0.15})
            x = member.trajectory().frame(-1)["ring"]["Position.x"]

    A point that was run before, in this process or an earlier one, is not run again. Points are run with the
    same bits as `ecs-fluid run WORLD --set path=value` gives.

    Args:
        world: a shipped name, a world file, its tables as a dict, or a WorldRecipe.
        out: folder of the study; default ``sweeps/NAME``.
        vary, seeds: for a sweep of all combinations in place of points that come one by one, see `sweep`.
        settings: ``path=value`` overrides for all members.
        ticks: ticks of every member; default duration / dt of the world.
        workers: worker processes; 0 runs the members one after another in this process, without Dask;
            default the number of cores. For an optimiser that asks for one point at a time 0 is best: a
            member then has all cores.
        threads: kernel threads of a member; default the cores of a machine shared among its workers.
        scheduler: address of a running Dask scheduler, such as ``tcp://10.0.0.1:8786``, in place of workers.
        diagnostics: columns of the tables; default all.
        allow_code: whether the world may name systems by import path, which runs their code.
        anyway: continue even if other versions or another processor computed members; bits may differ.
        watch: called while members run.

    Raises:
        RecipeError: the world or a member is wrong.
        StorageError: the folder holds another sweep, or another process writes there.
        FluidError: Dask is missing, or no scheduler answers.
    """

    @sentences()
    def __init__(
        self,
        world: str | Path | Mapping[str, Any] | WorldRecipe,
        out: str | Path | None = None,
        *,
        vary: Mapping[str, Any] | None = None,
        seeds: int | None = None,
        settings: str | Sequence[str] = (),
        ticks: int | None = None,
        workers: int | None = None,
        threads: int | None = None,
        scheduler: str | None = None,
        diagnostics: Sequence[str] | None = None,
        allow_code: bool = False,
        anyway: bool = False,
        watch: Watcher | None = None,
    ) -> None:
        workers, threads = _check_numbers(workers, threads, scheduler)
        plan, points = plan_sweep(world, vary, seeds, settings, ticks, allow_code)
        plan.check_diagnostics(diagnostics or ())
        plan.anyway = anyway
        self.plan, self.diagnostics, self.watch = plan, diagnostics, watch or Watcher()
        self.folder = (Path("sweeps") / plan.world if out is None else path_of(out, "out")).absolute()
        if scheduler is not None or workers != 0:
            require_dask()
        try:
            remarks = plan.adopt_stored(self.folder)
        except StorageError:
            # A wrong path or value may be why the folder holds another sweep; its error comes first.
            plan.add(points)
            raise
        if not plan.points:
            plan.add(points)
        for text in (*remarks, *plan.remarks):
            self.watch.say(f"warning: {text}")
        self._workers, self._threads, self._scheduler = workers, threads, scheduler
        self._pool: DaskPool | None = None
        self._ended: dict[str, Member] = {}
        self.files: list[Path] = []
        make_folder(self.folder)
        self._lock: WriterLock | None = WriterLock(self.folder / LOCK)
        try:
            plan.adopt_stored(self.folder)  # again: another process may have written a sweep before the lock
            (self.folder / STOP).unlink(missing_ok=True)
            for name in plan.points:
                self._done(name)
            plan.save(self.folder, "running")
        except BaseException:
            self._lock.release()
            raise

    # ------------------------------------------------------------------ running

    def run(self, values: Mapping[str, Any]) -> Member:
        """Run the member that sets `values` by path, or find it finished; raises FluidError if it fails."""
        member = self.run_all([values])[0]
        if not member.finished:
            raise FluidError(
                f"member {member.name} {member.status}: {member.error or 'the study was stopped'}"
            )
        return member

    @sentences()
    def run_all(self, points: Sequence[Mapping[str, Any]]) -> list[Member]:
        """Run these members side by side; returns them in the order given, failed ones too."""
        if self.plan.vary is not None:
            raise RecipeError(
                "the members of a sweep follow from vary; leave vary out to choose points one by one"
            )
        names = self.plan.add([dict(point) for point in points])
        self.plan.save(self.folder, "running")
        self._run(list(dict.fromkeys(names)))
        return [self.member(name) for name in names]

    def run_planned(self) -> list[Member]:
        """Run all members of a sweep; returns them in their order, failed ones too."""
        self._run(list(self.plan.points))
        return self.members

    @property
    def members(self) -> list[Member]:
        """All members so far, as they are now."""
        return [self.member(name) for name in self.plan.points]

    def member(self, name: str) -> Member:
        """The member of this name as it is now."""
        return self._ended.get(name) or self._new(name)

    def _new(self, name: str) -> Member:
        return Member(name, self.plan.points[name], self.folder / "members" / name)

    def stop(self) -> None:
        """Let running members end after their tick, and begin no more; also from another thread."""
        replace_text(self.folder / STOP, "members stop after their tick while this file exists\n", "stop")

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return (self.folder / STOP).exists()

    def _run(self, names: list[str]) -> None:
        """Run the members of these names that have not ended, and keep what became of them."""
        plan = replace(self.plan, points={})
        # Fresh members, so that the error of an earlier attempt is not taken for that of the next.
        jobs = [Job(plan, self._new(name)) for name in names if not self._done(name)]
        self.watch.begin(len(names), len(names) - len(jobs))
        written = time.monotonic()
        for member in self._attempts(jobs):
            if member.status == "waiting":
                continue
            self._ended[member.name] = member
            self._record(member)
            self.watch.end(member)
            if time.monotonic() - written > TABLE_SECONDS:
                write_tables(self.folder, self.members, self.diagnostics)
                written = time.monotonic()

    def _attempts(self, jobs: list[Job]) -> Iterator[Member]:
        """Members in the order in which they end: run in this process, or by a pool of workers."""
        if not jobs or (self._scheduler is None and self._workers == 0):
            return (run_member(job, self._progress) for job in jobs)
        if self._pool is None:
            workers = self._workers or cores()
            if self.plan.vary is not None:
                workers = min(workers, len(jobs))  # so that few members share all cores
            self._pool = DaskPool(
                self.folder, workers, self._threads, self._scheduler, self._progress, self.watch.say
            )
        return self._pool.run(jobs)

    def _done(self, name: str) -> bool:
        """Whether the member has ended, as its folder says; then no worker is started for it."""
        if name not in self._ended:
            with contextlib.suppress(FluidError):  # damaged: the attempt to run it says how
                if (found := ended_before(self.member(name))) is not None:
                    self._ended[name] = found
        return self.member(name).status in ("finished", "diverged")

    def _record(self, member: Member) -> None:
        """Append an attempt to the history: how it ended, from which tick to which, in which process."""
        keys = ("status", "first_tick", "ticks", "seconds", "process", "error", "warnings")
        record = {"member": member.name, **{key: getattr(member, key) for key in keys}}
        record["seconds"] = round(member.seconds, 3)
        kept = {key: value for key, value in record.items() if value not in ("", ())}
        append_record(self.folder / HISTORY, kept)

    def _progress(self, name: str, tick: int, last: int, text: str) -> None:
        if text:
            self.watch.say(f"{name} {text}")
        else:
            self.watch.tick(name, tick, last)

    # ------------------------------------------------------------------ ending

    def _write(self) -> None:
        from ecs_fluid.sweeps.plot import plot

        self.files = write_tables(self.folder, self.members, self.diagnostics)
        if plot(self.folder / PLOT, self.members, self.diagnostics):
            self.files.append(self.folder / PLOT)

    def close(self, interrupted: bool = False) -> None:
        """Write tables and plot, end the workers, and let others use the folder; harmless when repeated."""
        if self._lock is None:
            return
        try:
            if interrupted:
                with contextlib.suppress(FluidError):
                    self.stop()  # also for workers of a foreign scheduler
            if self._pool is not None:
                self._pool.close()
            if not interrupted:
                self._write()
            left = [member for member in self.members if member.status in ("waiting", "stopped")]
            self.plan.save(self.folder, "stopped" if left else "finished")
        except (FluidError, OSError):
            if not interrupted:  # else another error is being raised already
                raise
        finally:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Study:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(interrupted=kind is not None)


def sweep(
    world: str | Path | Mapping[str, Any] | WorldRecipe,
    vary: Mapping[str, Any],
    *,
    seeds: int | None = None,
    out: str | Path | None = None,
    settings: str | Sequence[str] = (),
    ticks: int | None = None,
    diagnostics: Sequence[str] | None = None,
    workers: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    allow_code: bool = False,
    anyway: bool = False,
    watch: Watcher | None = None,
) -> Sweep:
    """Run a world for every combination of values, each in a run folder of its own.

    The same call again continues a sweep that was stopped or killed, and does over only what was lost.

    Args:
        world: a shipped name, a world file, its tables as a dict, or a WorldRecipe.
        vary: values by path: a sequence, an array, or text as on the command line (``"0.1:0.3:5"``).
        seeds: number of seeds for every combination, from the world's own seed upwards.
        out: folder of the sweep; default ``sweeps/NAME``.
        settings: ``path=value`` overrides for all members.
        ticks, diagnostics, workers, threads, scheduler, allow_code, anyway, watch: as for `Study`.

    Returns:
        The members with their values, folders, hashes and errors. One that fails does not stop the others.

    Raises:
        RecipeError: a member is wrong: then none is run.
        StorageError: the folder holds another sweep (its first difference is named), or is in use.
        FluidError: Dask is missing, or no scheduler answers.
    """
    study = Study(
        world, out, vary=vary, seeds=seeds, settings=settings, ticks=ticks, diagnostics=diagnostics,
        workers=workers, threads=threads, scheduler=scheduler, allow_code=allow_code, anyway=anyway,
        watch=watch,
    )  # fmt: skip
    return run_sweep(study)


@sentences()
def run_sweep(study: Study) -> Sweep:
    """Run all members of a study made with `vary`, write tables and plot, and close it."""
    with study:
        members = study.run_planned()
    return Sweep(study.folder, members, study.files, study.stopped)


def plan_sweep(
    world: str | Path | Mapping[str, Any] | WorldRecipe,
    vary: Mapping[str, Any] | None,
    seeds: int | None = None,
    settings: str | Sequence[str] = (),
    ticks: int | None = None,
    allow_code: bool = False,
) -> tuple[Plan, list[Point]]:
    """The plan of a sweep, and its points, which are not checked yet."""
    plan = Plan.of(world, settings, ticks, allow_code)
    if not isinstance(vary, Mapping | None):
        raise RecipeError(f"vary = {shown(vary)}; a dict is needed, for example {{'ring.core': [0.1, 0.2]}}")
    if vary is None and seeds is None:
        return plan, []
    axes = {path: axis(path, values) for path, values in (vary or {}).items()}
    if seeds is not None:
        seeds = whole_number(seeds, "seeds", 1, MOST_MEMBERS)
        if SEED in axes:
            raise RecipeError(f"seeds and vary {SEED} both set the seed; give only one of them")
        axes[SEED] = tuple(plan.seed() + number for number in range(seeds))
    if not axes:
        raise RecipeError("nothing is varied; vary, with a path and its values, or seeds is needed")
    plan.vary = {path: list(values) for path, values in axes.items()}
    return plan, product(axes)


def _check_numbers(workers: Any, threads: Any, scheduler: str | None) -> tuple[int | None, int | None]:
    """Numbers of workers and of threads, checked; FluidError for wrong ones."""
    if scheduler is not None and workers is not None:
        raise FluidError(
            "workers starts local workers, and scheduler uses running ones; give only one of them"
        )
    if scheduler is not None:
        check_address(scheduler)
    workers = whole_number_or_none(workers, "workers", 0, MOST_THREADS)
    return workers, whole_number_or_none(threads, "threads", 1, MOST_THREADS)
