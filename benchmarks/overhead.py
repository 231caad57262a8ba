"""Overhead of the engine: a tick of systems that do nothing but query. Run: python benchmarks/overhead.py"""

from __future__ import annotations

import statistics
import time

import numpy as np

import ecs_fluid as ef
from ecs_fluid.system import PHASES


def idle_systems() -> list[ef.System]:
    """Twelve systems, two per phase, each asking for three components."""

    def process(self: ef.System, dt: float) -> None:
        for _ in self.query(ef.Position, ef.Strength, ef.CoreRadius):
            pass

    made = []
    for phase in PHASES:
        for number in range(2):
            body = {"reads": (ef.Position, ef.Strength, ef.CoreRadius), "phase": phase, "process": process}
            made.append(type(f"Idle{phase.title()}{number}System", (ef.System,), body)())
    return made


def main() -> None:
    """Print the median time of an idle tick: schedule, queries, the state guard and the integrator."""
    world = ef.World(integrator="euler")
    n = 1000
    for name in ("ring", "second", "third"):
        world.spawn(
            name, ef.Position(np.zeros((n, 3))), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.ones(n))
        )
    for system in idle_systems():
        world.add_system(system)
    world.step(100)
    times = []
    for _ in range(2000):
        started = time.perf_counter()
        world.step()
        times.append(1e3 * (time.perf_counter() - started))
    print(
        f"engine overhead, 12 idle systems, 3 x {n} vortons: median {statistics.median(times):.3f} ms a tick"
    )


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
