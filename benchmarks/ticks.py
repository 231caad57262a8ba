"""Time of whole ticks at the articles' sizes: velocity, stretching, diffusion, tracers.

Twice: with the articles' choice of methods (the tree on the grid), beside the times that the original C++ is
reported to need for the same counts (Fluid Simulation for Video Games; one machine each, another than this
one); and with the hybrid solver on a grid fine enough for an RMS velocity error of 1e-2 at vortons and
tracers, which is measured against the direct sum. Run: python benchmarks/ticks.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numba
import numpy as np

import ecs_fluid as ef
from ecs_fluid.kernels.biot_savart import direct, regularisation

CASES = ((1_000, 50_000, "5-9", 16.0), (16_700, 131_000, "70-80", 3.5), (63_000, 131_000, "250-300", 1.5))
"""Vortons, tracers, the original's ms a tick, and the hybrid's grid cells per vorton."""

ARTICLE = {
    "solver": "tree",
    "at": "grid",
    "interpolation": "linear",
    "leaf": "supervortons",
    "multipole": "monopole",
    "opening": "box",
    "mollify": 2.0,
    "kernel": "rankine",
}
SAMPLE = 1500


def ring_world(vortons: int, tracers: int, velocity: dict[str, Any], cells_per_vorton: float) -> ef.World:
    """A thick ring of random vortons and smoke around it."""
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
    world.add_system(ef.PartitionSystem(cells_per_core=0.0, cells_per_vorton=cells_per_vorton))
    world.add_system(ef.VelocitySystem(**velocity))
    world.add_system(ef.StretchSystem(rate=0.5))
    world.add_system(ef.DiffusionSystem(method="index_space", rate=0.01))
    world.add_system(ef.AdvectionSystem())
    return world


def timed(world: ef.World) -> str:
    """Median and least time of a tick, and where it goes."""
    world.step(3)
    times = []
    for _ in range(21):
        started = time.perf_counter()
        world.step()
        times.append(1e3 * (time.perf_counter() - started))
    share = ", ".join(
        f"{name.removesuffix('System')} {1e3 * t.last:.2f}" for name, t in world.timings().items()
    )
    return f"median {statistics.median(times):8.2f} ms, least {min(times):8.2f} ms a tick ({share})"


def error(world: ef.World, name: str) -> float:
    """RMS error of the velocity of a population relative to its RMS, against the direct sum in float64."""
    partition, velocity = world.require(ef.PartitionSystem), world.require(ef.VelocitySystem)
    with world._active():
        partition.process(world.dt)
        velocity.process(world.dt)
    ring, step = world["ring"], max(1, len(world[name]) // SAMPLE)
    sx, sa = (np.ascontiguousarray(a.T, float) for a in (ring[ef.Position].x, ring[ef.Strength].alpha))
    x = np.ascontiguousarray(world[name][ef.Position].x[::step], float)
    exact = np.empty_like(x)
    code = regularisation.CODES[velocity.kernel]
    direct.velocity(code, x, sx, sa, ring[ef.CoreRadius].sigma.astype(float), exact)
    found = world[name][ef.Velocity].u[::step]
    return float(np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum()))


def main() -> None:
    """Print both tables."""
    print(f"{numba.get_num_threads()} threads, the articles' methods")
    for vortons, tracers, original, _ in CASES:
        world = ring_world(vortons, tracers, ARTICLE, 1.0)
        print(f"{vortons:>7,} vortons {tracers:>8,} tracers: {timed(world)}; original C++ {original} ms")
    print("hybrid, grid fine enough for 1e-2")
    for vortons, tracers, _, cells in CASES:
        world = ring_world(vortons, tracers, {"solver": "hybrid"}, cells)
        text = timed(world)
        print(
            f"{vortons:>7,} vortons {tracers:>8,} tracers: {text}; "
            f"RMS error {error(world, 'ring'):.1e} at vortons, {error(world, 'smoke'):.1e} at tracers"
        )


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
