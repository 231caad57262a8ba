"""Solvers that keep a tolerance, side by side: ``python benchmarks/mesh.py [vortons ...]``.

Velocity and gradient at the vortons of a thick ring, and the velocity of 131,000 tracers in and around it, at
a tolerance of 1e-3 in single precision, by ``fmm`` and by ``pppm`` in turns; by default 16,700, 63,000 and a
million vortons. Prints wall and processor time, the least and the median of 16 ticks, in the first of which
``pppm`` measures its errors, and RMS errors relative to the RMS at 400 vortons (velocity and gradient) and
400 tracers against the direct sum in double precision.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

import ecs_fluid as ef
from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.systems.velocity.flow_numbers import MEASURED_EVERY
from ecs_fluid.systems.velocity.pppm import relative_error
from ecs_fluid.systems.velocity.solver_bench import ring, threads

SIZES, TRACERS, SAMPLE = (16_700, 63_000, 1_000_000), 131_000, 400
SOLVERS = ("fmm", "pppm")


def made(n: int, solver: str) -> ef.World:
    """The ring, and tracers 0.1 m (RMS, along each axis) from where vortons may be."""
    cloud, world = ring(n), ef.World(dt=1e-3, precision="single")
    apart = 0.1 * np.random.default_rng(2).standard_normal((TRACERS, 3))
    world.spawn("ring", ef.Position(cloud["x"]), ef.Strength(cloud["alpha"]), ef.CoreRadius(cloud["sigma"]))
    world.spawn("tracers", ef.Position(ring(TRACERS)["x"] + apart))
    world.add_system(ef.VelocitySystem(solver=solver, tolerance=1e-3, tracers="solver"))
    return world


def errors(world: ef.World) -> list[float]:
    """Of u and du at the vortons, and of u at the tracers."""
    vortons = world["ring"]
    given = vortons[ef.Position].x.T, vortons[ef.Strength].alpha.T, vortons[ef.CoreRadius].sigma
    sources = [np.ascontiguousarray(array, dtype=np.float64) for array in given]
    found: list[float] = []
    for entity in (vortons, world["tracers"]):
        rows = np.linspace(0, len(entity) - 1, SAMPLE).astype(np.int64)
        x = entity[ef.Position].x[rows].astype(np.float64)
        u, du = np.empty_like(x), np.empty((SAMPLE, 3, 3))
        direct.velocity_gradient(CODES["winckelmans"], x, *sources, u, du)
        found.append(relative_error(entity[ef.Velocity].u[rows], u))
        if ef.VelocityGradient in entity:
            found.append(relative_error(entity[ef.VelocityGradient].du[rows], du))
    return found


def main(sizes: Sequence[int] = SIZES) -> None:
    """Print one row for each solver and size."""
    print(f"{threads()} threads, {TRACERS:,} tracers, tolerance 1e-3")
    print("| vortons | solver | wall ms, median | processor ms, median | u | du | u of tracers |")
    print(7 * "|---" + "|")
    for n in sizes:
        worlds = {solver: made(n, solver) for solver in SOLVERS}
        spent = {solver: np.empty((MEASURED_EVERY, 2)) for solver in SOLVERS}
        for tick in range(-1, MEASURED_EVERY):
            for solver, world in worlds.items():
                wall, processor = time.perf_counter(), time.process_time()
                world.evaluate()
                if tick >= 0:  # the first compiles
                    spent[solver][tick] = time.perf_counter() - wall, time.process_time() - processor
                    world.tick += 1
        for solver, world in worlds.items():
            told = " | ".join(f"{error:.1e}" for error in errors(world))
            least, median = 1e3 * spent[solver].min(axis=0), 1e3 * np.median(spent[solver], axis=0)
            times = " | ".join(f"{a:.1f}, {b:.1f}" for a, b in zip(least, median, strict=True))
            print(f"| {n:,} | {solver} | {times} | {told} |", flush=True)


if __name__ == "__main__":
    from asked import numbers

    with warnings.catch_warnings(action="ignore", category=ef.FluidWarning):
        main(*numbers(__file__, __doc__, "vortons"))
