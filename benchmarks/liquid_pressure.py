"""Dam break with both pressures of SphSystem: ``python benchmarks/liquid_pressure.py [particles [ticks]]``.

Default 16384 particles and 120 ticks of 1/120 s of the shipped world. Both liquids advance in turn, a tick
each, so that other work on the machine slows both down. Told are seconds for a simulated second, wall time on
all threads; steps for one; the mean excess of the density, mean and largest of all ticks; the front; energy
and what viscosity took, less what there was, over the motion.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.worlds import WorldRecipe
from ecs_fluid.worlds.world_recipe import read

TICK = 1 / 120


def dam(particles: int, pressure: str) -> ef.World:
    """The shipped dam break with about that many particles."""
    spacing = (0.5 / particles) ** (1 / 3)
    tables = read("dam_break", (f"water.spacing={spacing}",)).tables()
    tables["system"] = [{"kind": "sph", "pressure": pressure}]
    return WorldRecipe.from_tables(tables).build()


def measured(world: ef.World) -> dict[str, Any]:
    """Books of the liquid."""
    system = world.system(ef.SphSystem)
    assert system is not None
    return system.measure()


def front(x: np.ndarray) -> float:
    """Place of the third particle from the front, m from the wall."""
    return float(np.sort(x)[-3]) + 1.5


def main(numbers: Sequence[int] = ()) -> None:
    """Print the table."""
    particles, ticks = (*numbers, *(16_384, 120)[len(numbers) :])
    worlds = {kind: dam(particles, kind) for kind in ("explicit", "implicit")}
    start, wall, dense = {}, dict.fromkeys(worlds, 0.0), {kind: list[float]() for kind in worlds}
    for kind, world in worlds.items():
        start[kind] = measured(world)
        world.step()
    for _ in range(ticks):
        for kind, world in worlds.items():
            begin = time.perf_counter()
            world.step()
            wall[kind] += time.perf_counter() - begin
            density = world["water"][ef.LiquidState].density
            dense[kind].append(float(np.maximum(density / 1000 - 1, 0).mean()))
    print(
        f"{'pressure':10s} {'s a s':>6s} {'steps a s':>9s} {'mean, largest excess':>21s} {'front, m':>9s} "
        f"{'energy':>8s}"
    )
    for kind, world in worlds.items():
        steps = int(world.fluid[ef.LiquidBudget].steps[0]) / (ticks + 1) / TICK
        end = measured(world)
        lost = end["energy"] + end["dissipated"] - start[kind]["energy"]
        print(
            f"{kind:10s} {wall[kind] / (ticks * TICK):6.2f} {steps:9.0f} {np.mean(dense[kind]):10.4f} "
            f"{max(dense[kind]):10.4f} {front(world['water'][ef.Position].x[:, 0]):9.3f} "
            f"{lost / end['kinetic']:+8.4f}"
        )


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "particles and ticks", 2))
