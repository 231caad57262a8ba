"""Grid Poisson solvers: ``python benchmarks/poisson.py [cells ...]``, cells per edge, default 64 and 128.

Each solver finds the vector potential (three components) of a ring's vorticity on a cube. The unit of the
ratios is the least that an FFT solver in free space does with plain zero padding: scipy's rfftn and irfftn of
the doubled grid, three components, as many workers as threads, timed in turn with the others. Times are the
best of several; the grid stays, so tables that are made once per grid are not counted. At the end the whole
hybrid solver: velocity and gradient at 60,000 vortons by a grid of 64^3 cells, sorting them included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from scipy import fft

import ecs_fluid as ef
from ecs_fluid.kernels.biot_savart.direct import potential_vorticity
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.grids.differences import curl
from ecs_fluid.kernels.poisson.blob_filter import widen
from ecs_fluid.kernels.poisson.freespace import hockney
from ecs_fluid.kernels.poisson.poisson import dirichlet, face_points

ROUNDS = 5
SIDE = 3.0


def ring() -> tuple[Any, Any]:
    """40 blobs on a ring of radius 1 m: sx, sa (3, 40)."""
    angle = 2.0 * np.pi * np.arange(40) / 40
    zero = np.zeros(40)
    sa = np.stack([-np.sin(angle), np.cos(angle), zero]) * (2.0 * np.pi / 40)
    return np.stack([np.cos(angle), np.sin(angle), zero]), sa


def problem(n: int, real: Any) -> tuple[Any, Any, Any]:
    """Vorticity (n+1, n+1, n+1, 3), spacing (3,) and the ring's potential on the faces."""
    sx, sa = (a.astype(real) for a in ring())
    sigma = np.full(40, 0.2, real)
    spacing = np.full(3, SIDE / n)
    x = (SIDE / n * np.arange(n + 1) - 0.5 * SIDE).astype(real)
    points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    psi, omega = np.empty_like(points), np.empty_like(points)
    potential_vorticity(CODES["gaussian"], points, sx, sa, sigma, psi, omega)
    at = face_points((np.full(3, -0.5 * SIDE), spacing, np.full(3, n)), real)
    faces, unused = np.empty_like(at), np.empty_like(at)
    potential_vorticity(CODES["gaussian"], at, sx, sa, sigma, faces, unused)
    return omega.reshape(n + 1, n + 1, n + 1, 3), spacing, faces


def runs(n: int, real: Any) -> dict[str, Callable[[], Any]]:
    """Functions to time, by name; the first is the unit."""
    omega, spacing, faces = problem(n, real)
    doubled = np.random.default_rng(1).standard_normal((2 * n, 2 * n, 2 * n)).astype(real)
    threads = numba.get_num_threads()

    def padded() -> None:
        for _ in range(3):
            fft.irfftn(fft.rfftn(doubled, workers=threads), doubled.shape, workers=threads)

    return {
        "scipy FFT of the doubled grid, there and back": padded,
        "hockney": lambda: hockney(omega, spacing, CODES["gaussian"], 0.2),
        "dirichlet, tolerance 1e-2": lambda: dirichlet(omega, spacing, faces, 1e-2),
        "dirichlet, tolerance 1e-3": lambda: dirichlet(omega, spacing, faces, 1e-3),
        "widen, winckelmans cores of 2 cells": lambda: widen(
            omega, spacing, 2.0 * SIDE / n, CODES["winckelmans"]
        ),
        "curl": lambda: curl(omega, spacing),
    }


def hybrid(n: int, vortons: int, precision: str) -> Callable[[], None]:
    """Partition and velocity of vortons of random strength in a cube, by a grid of n^3 cells."""
    draw = np.random.default_rng(1)
    world = ef.World(dt=0.01, precision=precision)
    world.spawn(
        "vortons",
        ef.Position(draw.uniform(-1.0, 1.0, (vortons, 3))),
        ef.Strength(draw.standard_normal((vortons, 3)) / vortons),
        ef.CoreRadius(np.full(vortons, 3.0 / np.cbrt(vortons))),
    )
    partition = world.add_system(ef.PartitionSystem(cells=n**3))
    velocity = world.add_system(ef.VelocitySystem(solver="hybrid"))
    world.step()

    def run() -> None:
        with world._active():
            partition.process(world.dt)
            velocity.process(world.dt)

    return run


def best_of(run: Callable[[], None]) -> float:
    """Least seconds of several runs, after one that compiles and makes tables."""
    run()
    times = []
    for _ in range(4 * ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main(sizes: Sequence[int] = (64, 128)) -> None:
    """Print the tables."""
    print(f"{numba.get_num_threads()} threads, three components; ratio to scipy's FFT of the doubled grid")
    print(f"{'cells':>5s} {'precision':9s} {'solver':46s} {'ms':>8s} {'ratio':>6s}")
    for n in sizes:
        for real in (np.float32, np.float64):
            table = runs(n, real)
            best = dict.fromkeys(table, float("inf"))
            for run in table.values():
                run()
            for _ in range(ROUNDS):
                for name, run in table.items():
                    start = time.perf_counter()
                    run()
                    best[name] = min(best[name], time.perf_counter() - start)
            unit = next(iter(best.values()))
            for name, seconds in best.items():
                label = f"{n:5d} {np.dtype(real).name:9s} {name:46s}"
                print(f"{label} {1e3 * seconds:8.1f} {seconds / unit:6.2f}")
    for precision in ("single", "double"):
        least = 1e3 * best_of(hybrid(64, 60_000, precision))
        print(f"hybrid, 60,000 vortons, 64^3 cells, {precision}: {least:.1f} ms")


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "cells"))
