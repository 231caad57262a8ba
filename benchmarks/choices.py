"""How far `auto` is from the best solver: ``python benchmarks/choices.py [vortons ...]``.

Velocity and gradient at the vortons of a thick ring, and of a cube of random strengths, in single precision,
at tolerances of 1e-2 to 1e-5. Prints milliseconds of the processor for each solver that keeps the tolerance,
and for `auto` the mean of 16 ticks, one of which measures the tree, over the best: after 16 ticks, by
the table of times of this machine, and by that with the tree's times three and the multipoles' a third as
long. Where direct sum and tree take long they are left out, and the mean is of three ticks after three.
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

SIZES, TOLERANCES = (100, 1000, 4000, 16_000, 64_000, 256_000, 1_000_000), (1e-2, 1e-3, 1e-4, 1e-5)
MOST_DIRECT, MOST_TREE, SAMPLE, ENOUGH, ROUNDS, FEW_TICKS = 16_000, 64_000, 400, 0.05, 6, 3


def cube(n: int) -> dict[str, Array]:
    """Vortons at random in a cube of 1 m, strengths of random directions, cores of 1.5 spacings."""
    draw = np.random.default_rng(1)
    x, alpha = draw.random((n, 3)), draw.standard_normal((n, 3))
    return {"x": x, "alpha": alpha, "sigma": np.full(n, 1.5 * n ** (-1 / 3))}


SHAPES = {"ring": ring, "cube": cube}


class Case:
    """One flow, and the sum in double precision at some of its vortons."""

    def __init__(self, shape: str, n: int) -> None:
        self.cloud, self.rows = SHAPES[shape](n), np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64))
        given = [np.ascontiguousarray(self.cloud[name].T) for name in ("x", "alpha", "sigma")]
        x = np.ascontiguousarray(self.cloud["x"][self.rows])
        self.u, self.du = np.empty_like(x), np.empty((len(x), 3, 3))
        direct.velocity_gradient(CODES["winckelmans"], x, *given, self.u, self.du)

    def seconds(self, tolerance: float, ticks: int = 1, wrong: float = 1.0, **velocity: Any) -> float:
        """Processor time of a tick's sum, the mean of so many and the best of some; infinite if it misses.

        The table of times is ``wrong`` by that factor for the tree, and by its inverse for the multipoles.
        """
        world = ef.World(dt=1e-9, precision="single")
        world.spawn(
            "vortons",
            ef.Position(self.cloud["x"]),
            ef.Strength(self.cloud["alpha"]),
            ef.CoreRadius(self.cloud["sigma"]),
        )
        world.add_systems([ef.PartitionSystem(), ef.VelocitySystem(tolerance=tolerance, **velocity)])
        if ef.SolverTimes in world.fluid:
            world.fluid[ef.SolverTimes].seconds[:, :, 1] *= wrong
            world.fluid[ef.SolverTimes].seconds[:, :, 2] /= wrong
        world.step(ticks)
        best, spent, rounds = np.inf, 0.0, 0
        while rounds < ROUNDS or spent < ENOUGH:
            begun = time.process_time()
            world.step(ticks)
            took = time.process_time() - begun
            best, spent, rounds = min(best, took / ticks), spent + took, rounds + 1
            if took > 1.0 and rounds:
                break
        vortons = world["vortons"]
        error = relative_error(vortons[ef.Velocity].u[self.rows], self.u)
        error = max(error, relative_error(vortons[ef.VelocityGradient].du[self.rows], self.du))
        return best if error <= 1.1 * tolerance else np.inf


def main(sizes: Sequence[int] = SIZES) -> None:
    """One row for each flow, size and tolerance."""
    print(f"{threads()} threads, processor ms")
    print("| flow | vortons | tolerance | direct | tree | fmm | pppm | auto | over the best | wrong |")
    print(10 * "|---" + "|")
    worst = 0.0
    for shape in SHAPES:
        for n in sizes:
            case, whole = Case(shape, n), None
            for tolerance in TOLERANCES:
                if whole is None:
                    whole = case.seconds(1.0, solver="direct") if n <= MOST_DIRECT else np.inf
                tree = np.inf
                for angle in ANGLES if n <= MOST_TREE and shape == "ring" else ():
                    tree = case.seconds(tolerance, solver="tree", angle=angle)
                    if tree < np.inf:
                        break
                rest = [case.seconds(tolerance, solver=name) for name in ("fmm", "pppm")]
                ticks = MEASURED_EVERY if n <= MOST_TREE else FEW_TICKS
                autos = [case.seconds(tolerance, ticks, wrong, solver="auto") for wrong in (1.0, 3.0)]
                times = [whole, tree, *rest]
                over = [auto / min(times) for auto in autos]
                worst = max(worst, *over)
                told = " | ".join(f"{1e3 * t:.2f}" if t < np.inf else "" for t in (*times, autos[0]))
                print(
                    f"| {shape} | {n:,} | {tolerance:.0e} | {told} | {over[0]:.2f} | {over[1]:.2f} |",
                    flush=True,
                )
    print(f"worst: {worst:.2f}")


if __name__ == "__main__":
    from asked import numbers

    with warnings.catch_warnings(action="ignore", category=ef.FluidWarning):
        main(*numbers(__file__, __doc__, "vortons"))
