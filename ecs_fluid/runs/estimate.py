"""What a run will take: time and disk, from a few ticks spread over all of it.

A tick's cost depends on what the world holds, not on the time step. So the world is run with steps many times
as long, through the whole duration, and each of its ticks stands for as many ticks of the run: emitters have
then filled it and particles have spread about as they will. Frames and a checkpoint are written for real, to
a folder that is removed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.io.checkpoint import save_checkpoint
from ecs_fluid.io.trajectory import TrajectoryWriter
from ecs_fluid.runs.compiling import before_compiling
from ecs_fluid.runs.runner import stored_columns
from ecs_fluid.runs.surface_frames import store_surface
from ecs_fluid.state import packed
from ecs_fluid.world import World

Build = Callable[[float], World]
"""Makes the world with a given time step [s]."""

FEWEST, MOST, LONGEST = 16, 64, 256
"""Ticks that a sample has: as many as fit into the time allowed, more where the world needs shorter steps."""


MOST_FIRST = 9
"""Ticks after which those at the beginning are known well enough."""


@dataclass(frozen=True)
class Estimate:
    """Predicted wall time [s], disk [bytes], rows by population at the end; ``sampled`` ticks told it.

    ``whole`` is False if the world could not be run through with long steps: later ticks are then taken to
    cost as much as those of its beginning.
    """

    seconds: float
    disk: int
    particles: dict[str, int]
    sampled: int
    whole: bool


@dataclass
class _Sample:
    """Mean cost of what a run does over and over, and the sizes it leaves."""

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


@dataclass(frozen=True)
class FirstTicks:
    """Wall time [s] of one of a world's first ticks, and the most memory [bytes] of the process so far.

    The memory is 0 where the machine does not tell it (Windows).
    """

    seconds: float
    memory: int


class _Compiles(BaseException):
    """A kernel is not in the cache; no Exception, which would be taken for one of a user's system."""


def first_ticks(world: World, allowed: float = 1.0) -> FirstTicks | None:
    """Step a new world for about `allowed` seconds; None, at once, if kernels would have to be compiled."""

    def refuse(name: str) -> None:
        raise _Compiles

    spent: list[float] = []
    with warnings.catch_warnings(action="ignore", category=FluidWarning):
        try:
            with before_compiling(refuse):
                while not spent or (len(spent) < MOST_FIRST and sum(spent) < allowed):
                    started = time.perf_counter()
                    world.step()
                    spent.append(time.perf_counter() - started)
        except _Compiles:
            return None
    # The first one loads kernels from the disk.
    return FirstTicks(statistics.median(spent[1:] or spent), peak_memory())


def peak_memory() -> int:
    """The most memory [bytes] that this process has had, 0 where the machine does not tell (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def duration(seconds: float) -> str:
    """Seconds as people say them: 7.9 ms, 1.4 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 0.1:
        return f"{1e3 * seconds:.1f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
    )


def estimate(
    build: Build, dt: float, ticks: int, every: int, checkpoint_seconds: float, allowed: float = 2.0
) -> Estimate:
    """Predict a run of ``ticks`` ticks of ``dt`` s that stores a frame every ``every`` ticks.

    Compiling kernels is not counted: it happens once per machine. ``allowed`` [s] is about how long the
    estimate itself may take, beside that.
    """
    with warnings.catch_warnings(action="ignore", category=FluidWarning):
        compiled: list[str] = []
        with before_compiling(compiled.append):
            sample, whole = _rough(build, dt, ticks)
        count = min(ticks, max(sample.sampled, min(MOST, int(allowed / sample.median))))
        # A rough one may have been slowed by compiling, which its median tick was not.
        if compiled or count > sample.sampled:
            sample = _sampled(build(dt * ticks / count if whole else dt), count)
    frames = 1 + -(-ticks // every)
    seconds = ticks * sample.tick + frames * sample.frame
    checkpoints = 2 + (int(seconds / checkpoint_seconds) if checkpoint_seconds else ticks)
    disk = sample.fixed_bytes + frames * sample.frame_bytes + ticks * sample.record_bytes
    return Estimate(
        seconds=seconds + checkpoints * sample.checkpoint,
        disk=int(disk) + 2 * sample.checkpoint_bytes,
        particles=sample.particles,
        sampled=sample.sampled,
        whole=whole,
    )


def _rough(build: Build, dt: float, ticks: int) -> tuple[_Sample, bool]:
    """A first sample, which compiles kernels and finds how long steps may be; and whether it saw it all.

    Raises the world's own error if it fails with its own time step too.
    """
    count = min(FEWEST, ticks)
    while count <= LONGEST:
        try:
            return _sampled(build(dt * ticks / count), count), True
        except FluidError:
            # Too coarse for this world: it diverged, or a system refused the long step.
            if count == ticks:
                raise
            count = min(2 * count, ticks)
    return _sampled(build(dt), min(MOST, ticks)), False


def _sampled(world: World, count: int) -> _Sample:
    with tempfile.TemporaryDirectory(prefix="ecs_fluid-estimate-") as folder:
        trajectory = Path(folder) / "trajectory"
        spent, written, sizes = [], [], []
        with TrajectoryWriter(trajectory) as frames:
            world.evaluate()
            frames.append(0, 0.0, stored_columns(world))
            for _ in range(count):
                started = time.perf_counter()
                world.step()
                spent.append(time.perf_counter() - started)
                columns = stored_columns(world)
                started = time.perf_counter()
                frames.append(world.tick, world.time, columns)
                store_surface(world, trajectory / "fields")
                written.append(time.perf_counter() - started)
                sizes.append(sum(array.nbytes for table in columns.values() for array in table.values()))
        started = time.perf_counter()
        save_checkpoint(Path(folder) / "checkpoint.npz", *packed(world))
        checkpoint = time.perf_counter() - started
        stored = sum(path.stat().st_size for path in trajectory.glob("*.vtkhdf"))
        sidecars = sum(path.stat().st_size for path in trajectory.glob("*.xdmf"))
        fields = sum(path.stat().st_size for path in trajectory.glob("fields/*"))
        return _Sample(
            tick=sum(spent) / count,
            median=sorted(spent)[count // 2],
            frame=sum(written) / count,
            frame_bytes=(sum(sizes) + sidecars + fields) / count,
            fixed_bytes=max(0, stored - sum(sizes)),
            checkpoint=checkpoint,
            checkpoint_bytes=(Path(folder) / "checkpoint.npz").stat().st_size,
            record_bytes=sum(len(str(record)) for record in world.history) / count,
            particles={entity.name: len(entity) for entity in world.entities if len(entity)},
            sampled=count,
        )
