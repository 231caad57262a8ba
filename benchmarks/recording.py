"""What it costs to store a run: speed of the trajectory on disk, and its share of a run of 16,000 vortons.

Run: python benchmarks/recording.py
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import ecs_fluid as ef
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.runner import stored_columns

ROWS, FRAMES, VORTONS, TICKS = 100_000, 100, 16_000, 30


def speed(folder: Path) -> tuple[float, float]:
    """(MB, seconds) of 100 frames of 100,000 particles, flushed frame by frame as a run does."""
    x = np.random.default_rng(0).standard_normal((ROWS, 3)).astype(np.float32)
    tables = {
        "Position.x": x,
        "Velocity.u": 2 * x,
        "Temperature.T": x[:, 0].copy(),
        "RowId.id": np.arange(ROWS),
    }
    started = time.perf_counter()
    with RunFolder.create(folder, "", {}) as run, run.write_trajectory() as trajectory:
        for number in range(FRAMES):
            trajectory.append(number, 0.04 * number, {"smoke": tables})
    took = time.perf_counter() - started
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, took


def share(folder: Path) -> tuple[float, float]:
    """(ms of a tick, ms of a frame) of 16,000 vortons by fmm when every tick is stored, as `run` does it."""
    draw = np.random.default_rng(1)
    world = ef.World(dt=0.01, integrator="rk2")
    world.spawn(
        "gas",
        ef.Position(draw.random((VORTONS, 3))), ef.Strength(1e-4 * draw.standard_normal((VORTONS, 3))),
        ef.CoreRadius(np.full(VORTONS, 0.06)),
    )  # fmt: skip
    world.add_systems([ef.VelocitySystem(solver="fmm"), ef.StretchSystem(), ef.AdvectionSystem()])
    world.step(3)
    ticks, frames = [], []
    with RunFolder.create(folder, "", {}) as run, run.write_trajectory() as trajectory:
        for _ in range(TICKS):
            times = [time.perf_counter()]
            world.step()
            times.append(time.perf_counter())
            trajectory.append(world.tick, world.time, stored_columns(world))
            times.append(time.perf_counter())
            ticks.append(times[1] - times[0])
            frames.append(times[2] - times[1])
    return 1e3 * float(np.median(ticks)), 1e3 * float(np.median(frames))


def main() -> None:
    """Print both figures."""
    warnings.simplefilter("ignore", ef.FluidWarning)
    with tempfile.TemporaryDirectory() as name:
        size, took = speed(Path(name) / "speed")
        tick, frame = share(Path(name) / "share")
    print(f"trajectory: {FRAMES} frames of {ROWS:,} particles, {size:.0f} MB, {size / took:.0f} MB/s")
    cost = f"{frame:.2f} ms beside a tick of {tick:.0f} ms, {100 * frame / tick:.1f} %"
    print(f"recording every tick of {VORTONS:,} vortons: {cost}")


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
