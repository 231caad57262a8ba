"""What a run will take: time and disk, from a few ticks spread over all of it.

The cost of a tick depends on what the world holds. So the world is run through its whole duration with
steps many times as long, and each of these ticks stands for that many ticks of the run: emitters then fill
the world and particles spread about as they will. A few ticks with the world's own step follow, since some
systems take longer for long steps: liquids divide them, contacts need more rounds. Frames and a checkpoint
are really written, to a folder that is removed.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.io.checkpoint import save_checkpoint
from ecs_fluid.io.trajectory import TrajectoryWriter
from ecs_fluid.runs.compiling import before_compiling
from ecs_fluid.runs.runner import stored_columns
from ecs_fluid.runs.surface_frames import store_surface
from ecs_fluid.state import packed_world
from ecs_fluid.world import World

Build = Callable[[float], World]
"""Makes the world with a given time step [s]."""

FEWEST, MOST, LONGEST = 16, 64, 256
"""Ticks of a sample: at least; at most, by the time allowed; at most, if the world needs shorter steps."""

PATIENCE, LATE, COARSEST = 1.8, 2.4, 4
"""s that a sample of the whole run should take: if it would take longer, steps are doubled, up to COARSEST
times their length. After LATE s it ends, and stands for the whole run."""

FIRST = 0.6
"""s; about the time allowed for ticks with the world's own step"""

ALIKE = 1.25
"""Up to this ratio, two times of a tick count as the same: other work on the machine may cause as much."""

MOST_FIRST = 9
"""Most ticks that are timed with the world's own step."""

LOADING = 10.0
"""s; ticks that load kernels from the disk are not timed, unless they take longer than this together"""


@dataclass(frozen=True)
class Estimate:
    """Predicted wall time [s], disk [bytes] and rows by population at the end, from ``sampled`` ticks.

    ``whole`` is False if the sample does not reach the end of the run, because the world takes no long steps,
    or not in time: later ticks are then assumed to cost as much as earlier ones.
    """

    seconds: float
    disk: int
    particles: dict[str, int]
    sampled: int
    whole: bool


@dataclass
class _Sample:
    """Mean times [s] and sizes [bytes] of what a run repeats.

    ``median`` is the median time of the sampled ticks; ``whole``: whether they reached the end of the run.
    """

    tick: float
    median: float
    frame: float
    frame_bytes: float
    fixed_bytes: int
    checkpoint: float
    checkpoint_bytes: int
    record_bytes: float
    particles: dict[str, int]
    sampled: int
    whole: bool


@dataclass(frozen=True)
class FirstTicks:
    """Wall time [s] of one of a world's first ticks, the most memory [bytes] of the process so far, warnings.

    The memory is 0 where the system does not report it (Windows).
    """

    seconds: float
    memory: int
    said: tuple[str, ...]


class _NeedsCompiling(BaseException):
    """A kernel is not in the cache. Not an Exception, so that no handler takes it for a user's error."""


def first_ticks(world: World, most: float = math.inf, allowed: float = 1.0) -> FirstTicks | None:
    """Step a new world for about `allowed` seconds, not counting ticks that load kernels from the disk.

    Its tick will be `most` at most.

    None, at once, if kernels would have to be compiled.
    """
    from ecs_fluid.kernels.compiled.cache_files import CacheFiles

    def refuse(name: str) -> None:
        raise _NeedsCompiling

    loading, timed = list[float](), list[float]()
    with warnings.catch_warnings(record=True, action="always", category=FluidWarning) as caught:
        try:
            with before_compiling(refuse):
                while not (loading or timed) or (
                    world.tick < most
                    and len(timed) < MOST_FIRST
                    and sum(timed) < allowed
                    and sum(loading) < LOADING
                ):
                    started, files = time.perf_counter(), CacheFiles.read
                    world.step()
                    ticks = timed if CacheFiles.read == files else loading
                    ticks.append(time.perf_counter() - started)
        except _NeedsCompiling:
            return None
    texts = tuple(str(each.message) for each in caught)
    return FirstTicks(statistics.median(timed or loading), peak_memory(), texts)


def peak_memory() -> int:
    """The most memory [bytes] that this process has had, 0 where the system does not report it (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def duration(seconds: float) -> str:
    """Seconds as text: 7.9 ms, 1.4 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 0.1:
        return f"{1e3 * seconds:.1f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
    )


def estimate(
    build: Build, dt: float, ticks: int, every: int, checkpoint_seconds: float, allowed: float = 1.5
) -> Estimate:
    """Predict a run of ``ticks`` ticks of ``dt`` s that stores a frame every ``every`` ticks.

    Compiling kernels is not counted: it happens once per machine. ``allowed`` [s] is about how long a sample
    with more ticks than FEWEST may take.
    """
    with warnings.catch_warnings(action="ignore", category=FluidWarning):
        sample, compiled = None, [""]
        while compiled:  # again if kernels were compiled, whose time must not count
            compiled.clear()
            with before_compiling(compiled.append):
                sample = _whole_run_sample(build, dt, ticks, allowed)
        if sample is None:
            world = build(dt)
            sample = _sample_of(world, _own_ticks(world, min(ticks, MOST)), ticks, dt)
    frames = 1 + -(-ticks // every)
    seconds = ticks * sample.tick + frames * sample.frame
    checkpoints = 2 + (int(seconds / checkpoint_seconds) if checkpoint_seconds else ticks)
    disk = sample.fixed_bytes + frames * sample.frame_bytes + ticks * sample.record_bytes
    return Estimate(
        seconds=seconds + checkpoints * sample.checkpoint,
        disk=int(disk) + 2 * sample.checkpoint_bytes,
        particles=sample.particles,
        sampled=sample.sampled,
        whole=sample.whole,
    )


def _whole_run_sample(build: Build, dt: float, ticks: int, allowed: float) -> _Sample | None:
    """A sample with the longest steps that the world can take, then with as many ticks as are allowed.

    None if it can take none longer than its own. Raises the world's error if its own step fails too.
    """
    count, began = min(FEWEST, ticks), time.perf_counter()
    while count <= LONGEST:
        world = build(dt * ticks / count)
        try:
            sample = _sample_of(world, _long_ticks(world, count, began), count, dt)
        except FluidError:
            # Too coarse for this world: it diverged, or a system refused the long step.
            if count == ticks:
                raise
            count = min(2 * count, ticks)
            continue
        more = min(ticks, MOST, int(allowed / sample.median))
        if not sample.whole or more <= count or more < min(2 * count, ticks):
            return sample
        world = build(dt * ticks / more)
        return _sample_of(world, _long_ticks(world, more), more, dt)
    return None


Ticks = Iterator[tuple[float, int]]
"""Steps a world: yields the wall time [s] of a tick, and its weight among the sampled ticks."""


def _long_ticks(world: World, count: int, began: float = math.inf) -> Ticks:
    """`count` ticks, or fewer and longer ones if, measured from `began` [s], they would take too long."""
    # A tick stands for `share` of the `count` ticks, at most for `most`; `left` of them are to come.
    share, most, left = 1, COARSEST, count
    while left:
        started = time.perf_counter()
        try:
            world.step()
        except FluidError:
            if share == 1:
                raise
            share = most = share // 2  # it cannot take longer steps
            _change_step(world, world.dt / 2)
            continue
        ended = time.perf_counter()
        yield ended - started, share
        left -= share
        if ended - began > LATE:
            return
        late = ended - began + (ended - started) * left / share > PATIENCE
        if late and share < most and left % (2 * share) == 0:
            share *= 2
            _change_step(world, 2 * world.dt)


def _own_ticks(world: World, most: int) -> Ticks:
    """Up to `most` ticks with the present step, within FIRST s but three at least, after an untimed one."""
    world.step()
    spent = 0.0
    for done in range(most):
        if done >= 3 and spent > FIRST:
            return
        started = time.perf_counter()
        world.step()
        took = time.perf_counter() - started
        spent += took
        yield took, 1


def _change_step(world: World, dt: float) -> None:
    """Change the time step, and the tick so that the time is about the same."""
    tick = round(world.time / dt)
    world._set_fixed(options=world.options.model_copy(update={"dt": dt}), dt=dt, tick=tick)


def _sample_of(world: World, steps: Ticks, count: int, dt: float) -> _Sample:
    """A sample for a run with steps of `dt` s, from the ticks of `steps`; `count` of these make a run."""
    spent: list[float] = []
    shares: list[int] = []
    written: list[float] = []
    sizes: list[int] = []
    with tempfile.TemporaryDirectory(prefix="ecs_fluid-estimate-") as folder:
        trajectory = Path(folder) / "trajectory"
        with TrajectoryWriter(trajectory) as frames:
            world.evaluate()
            frames.append(0, 0.0, stored_columns(world))
            for took, share in steps:
                columns = stored_columns(world)
                started = time.perf_counter()
                frames.append(len(spent) + 1, world.time, columns)
                store_surface(world, trajectory / "fields")
                written.append(time.perf_counter() - started)
                spent.append(took)
                shares.append(share)
                sizes.append(sum(array.nbytes for table in columns.values() for array in table.values()))
        started = time.perf_counter()
        save_checkpoint(Path(folder) / "checkpoint.npz", *packed_world(world))
        checkpoint = time.perf_counter() - started
        stored = sum(path.stat().st_size for path in trajectory.glob("*.vtkhdf"))
        sidecars = sum(path.stat().st_size for path in trajectory.glob("*.xdmf"))
        fields = sum(path.stat().st_size for path in trajectory.glob("fields/*"))
        found = _Sample(
            tick=float(np.average(spent, weights=shares)),
            median=statistics.median(spent),
            frame=float(np.average(written, weights=shares)),
            frame_bytes=float(np.average(sizes, weights=shares)) + (sidecars + fields) / len(spent),
            fixed_bytes=max(0, stored - sum(sizes)),
            checkpoint=checkpoint,
            checkpoint_bytes=(Path(folder) / "checkpoint.npz").stat().st_size,
            record_bytes=sum(len(str(record)) for record in world.history) / len(spent),
            particles={entity.name: len(entity) for entity in world.entities if len(entity)},
            sampled=len(spent),
            whole=sum(shares) >= count,
        )
    if world.dt != dt:
        found.tick *= _step_cost_ratio(world, dt, statistics.median(spent[-3:]))
    return found


def _step_cost_ratio(world: World, dt: float, long: float) -> float:
    """Time of a tick of `dt` s over that of the last long ones; 1 if they are about the same."""
    _change_step(world, dt)
    try:
        own = statistics.median(took for took, _ in _own_ticks(world, MOST_FIRST))
    except FluidError:
        return 1.0
    return own / long if not 1 / ALIKE < own / long < ALIKE else 1.0
