"""Time of whole ticks at the articles' sizes: the tree on the grid, stretching, diffusion, tracers.

Printed beside the times that the original C++ is reported to need for the same counts (Fluid Simulation for
Video Games; one machine each, another than this one). Run: python benchmarks/ticks.py
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import ecs_fluid as ef

CASES = ((1_000, 50_000, "5-9"), (16_700, 131_000, "70-80"), (63_000, 131_000, "250-300"))


def ring_world(vortons: int, tracers: int) -> ef.World:
    """A thick ring of random-lattice vortons and smoke around it, with the articles' choice of methods."""
    draw = np.random.default_rng(7)
    angle = draw.random(vortons) * 2 * np.pi
    radius = 0.5 * np.sqrt(draw.random(vortons))
    turn = draw.random(vortons) * 2 * np.pi
    distance = 1 + radius * np.cos(turn)
    x = np.c_[distance * np.cos(angle), distance * np.sin(angle), radius * np.sin(turn)]
    direction = np.c_[-np.sin(angle), np.cos(angle), np.zeros(vortons)]
    volume = 2 * np.pi * np.pi * 0.25 / vortons
    spacing = volume ** (1 / 3)
    world = ef.World(dt=1 / 30, integrator="euler")
    world.spawn(
        "ring",
        ef.Position(x),
        ef.Strength(5.0 / (np.pi * 0.25) * volume * direction),
        ef.CoreRadius(np.full(vortons, 1.5 * spacing)),
        ef.Volume(np.full(vortons, volume)),
    )
    world.spawn("smoke", ef.Position(draw.uniform(-1.5, 1.5, (tracers, 3)) * [1, 1, 0.35]))
    world.add_system(ef.PartitionSystem(cells_per_core=0.0))
    world.add_system(
        ef.VelocitySystem(
            solver="tree", at="grid", leaf="supervortons", opening="box", mollify=2.0, kernel="rankine"
        )
    )
    world.add_system(ef.StretchSystem(rate=0.5))
    world.add_system(ef.DiffusionSystem(viscosity=0.01, method="index_space"))
    world.add_system(ef.AdvectionSystem())
    return world


def main() -> None:
    """Print the table, and where the time goes."""
    for vortons, tracers, original in CASES:
        world = ring_world(vortons, tracers)
        world.step(3)
        times = []
        for _ in range(21):
            started = time.perf_counter()
            world.step()
            times.append(1e3 * (time.perf_counter() - started))
        print(
            f"{vortons:>7,} vortons {tracers:>8,} tracers: median {statistics.median(times):8.2f} ms, "
            f"least {min(times):8.2f} ms a tick; original C++ {original} ms"
        )
        share = ", ".join(f"{name} {1e3 * t.last:.2f}" for name, t in world.timings().items())
        print(f"        {share} (ms)")


if __name__ == "__main__":
    main()
