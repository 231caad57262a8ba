"""How far `auto` is from the best solver: ``python benchmarks/choices.py [vortons ...]``.

Velocity and gradient at the vortons of a thick ring, and of a cube of random strengths, in single precision,
at tolerances of 1e-2 to 1e-5. Prints milliseconds of the processor for each solver that keeps the tolerance,
the least of some ticks; then medians of rounds in which, in turn, the best solver, the same again in a world
of its own, and `auto` do 16 ticks each, one of which measures (few where they take long). The second over the
first is what of a ratio is scatter; `auto` over the first is told by the table of times of this machine, and
by that with the tree's times three and the multipoles' a third as long. Where direct sum and tree take long
they are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.systems.velocity.flow_numbers import MEASURED_EVERY
from ecs_fluid.systems.velocity.pppm import relative_error
from ecs_fluid.systems.velocity.solver_bench import ANGLES, ring, threads

SIZES = (100, 300, 500, 1000, 2000, 4000, 8000, 16_000, 64_000, 256_000, 1_000_000)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
MOST_DIRECT, MOST_TREE, SAMPLE = 16_000, 64_000, 400

ENOUGH, FEWEST, LONG = 1.0, 7, 1.0
"""Rounds are done for so many seconds a world, so many at least; and three where a tick takes LONG s."""


def cube(n: int) -> dict[str, Array]:
    """Vortons at random in a cube of 1 m, strengths of random directions, cores of 1.5 spacings."""
    draw = np.random.default_rng(1)
    x, alpha = draw.random((n, 3)), draw.standard_normal((n, 3))
    return {"x": x, "alpha": alpha, "sigma": np.full(n, 1.5 * n ** (-1 / 3))}


SHAPES = {"ring": ring, "cube": cube}


class Case:
    """One flow, and the sum in double precision at some of its vortons."""

    def __init__(self, shape: str, n: int) -> None:
        self.shape, self.n = shape, n
        self.cloud, self.rows = SHAPES[shape](n), np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64))
        given = [np.ascontiguousarray(self.cloud[name].T) for name in ("x", "alpha", "sigma")]
        x = np.ascontiguousarray(self.cloud["x"][self.rows])
        self.u, self.du = np.empty_like(x), np.empty((len(x), 3, 3))
        direct.velocity_gradient(CODES["winckelmans"], x, *given, self.u, self.du)

    def world(self, wrong: float = 1.0, **velocity: Any) -> ef.World:
        """The table of times is ``wrong`` by that factor for the tree, and by its inverse for fmm."""
        world = ef.World(dt=1e-9, precision="single")
        world.spawn(
            "vortons",
            ef.Position(self.cloud["x"]),
            ef.Strength(self.cloud["alpha"]),
            ef.CoreRadius(self.cloud["sigma"]),
        )
        world.add_systems([ef.PartitionSystem(), ef.VelocitySystem(**velocity)])
        if ef.SolverTimes in world.fluid:
            world.fluid[ef.SolverTimes].seconds[:, :, 1] *= wrong
            world.fluid[ef.SolverTimes].seconds[:, :, 2] /= wrong
        return world

    def keeps(self, world: ef.World, tolerance: float) -> bool:
        """Whether the last tick's velocities keep a tolerance, but for the scatter of the sample."""
        vortons = world["vortons"]
        error = relative_error(vortons[ef.Velocity].u[self.rows], self.u)
        error = max(error, relative_error(vortons[ef.VelocityGradient].du[self.rows], self.du))
        return bool(error <= 1.1 * tolerance)

    def alone(self, tolerance: float) -> dict[str, tuple[float, dict[str, Any]]]:
        """Of each solver that keeps the tolerance: processor time of a tick, s, and its parameters."""
        asked: list[dict[str, Any]] = [{"solver": name} for name in ("fmm", "pppm")]
        if self.n <= MOST_DIRECT:
            asked.append({"solver": "direct"})
        if self.n <= MOST_TREE and self.shape == "ring":
            asked += [{"solver": "tree", "angle": angle} for angle in ANGLES]
        found = dict[str, tuple[float, dict[str, Any]]]()
        for velocity in asked:
            velocity["tolerance"] = tolerance
            if velocity["solver"] in found:  # the tree, with a wider angle
                continue
            world = self.world(**velocity)
            world.step()
            if self.keeps(world, tolerance):
                took, begun = [seconds(world, 1)], time.perf_counter()
                while len(took) < FEWEST and time.perf_counter() - begun < ENOUGH:
                    took.append(seconds(world, 1))
                found[velocity["solver"]] = min(took), velocity
        return found


def seconds(world: ef.World, ticks: int) -> float:
    """Processor time of a tick, the mean of so many."""
    begun = time.process_time()
    world.step(ticks)
    return (time.process_time() - begun) / ticks


def row(case: Case, tolerance: float) -> tuple[str, list[float]]:
    """A row of the table, and `auto` over the best by both tables of times; infinite if it misses."""
    alone = case.alone(tolerance)
    least, best = min(alone.values(), key=lambda one: one[0])
    auto = {"solver": "auto", "tolerance": tolerance}
    worlds = [case.world(**best), case.world(**best), case.world(**auto), case.world(3.0, **auto)]
    ticks = max(1, min(MEASURED_EVERY, int(ENOUGH / least)))
    for world in worlds:
        world.step(min(4, ticks) if ticks < MEASURED_EVERY else MEASURED_EVERY)
    took, rounds = list[list[float]](), 3 if least > LONG else FEWEST
    while len(took) < rounds or sum(one[0] for one in took) * ticks < ENOUGH:
        took.append([seconds(world, ticks) for world in worlds])
    times = np.array(took)
    null, *over = np.median(times[:, 1:] / times[:, :1], axis=0).tolist()
    over = [ratio if case.keeps(w, tolerance) else np.inf for ratio, w in zip(over, worlds[2:], strict=True)]
    names = ("direct", "tree", "fmm", "pppm")
    told = " | ".join(f"{1e3 * alone[name][0]:.2f}" if name in alone else "" for name in names)
    first = f"{case.shape} | {case.n:,} | {tolerance:.0e} | {told} | {1e3 * np.median(times[:, 2]):.2f}"
    return f"| {first} | {null:.2f} | {over[0]:.2f} | {over[1]:.2f} |", over


def main(sizes: Sequence[int] = SIZES) -> None:
    """One row for each flow, size and tolerance."""
    print(f"{threads()} threads, processor ms")
    print("| flow | vortons | tolerance | direct | tree | fmm | pppm | auto | null | over the best | wrong |")
    print(11 * "|---" + "|")
    worst = 0.0
    for shape in SHAPES:
        for n in sizes:
            case = Case(shape, n)
            for tolerance in TOLERANCES:
                text, over = row(case, tolerance)
                worst = max(worst, *over)
                print(text, flush=True)
    print(f"worst: {worst:.2f}")


if __name__ == "__main__":
    from asked import numbers

    with warnings.catch_warnings(action="ignore", category=ef.FluidWarning):
        main(*numbers(__file__, __doc__, "vortons"))
