"""Liquids with both pressures of SphSystem: ``python benchmarks/liquid_pressure.py [particles [ticks]]``.

Default 16384 particles and 120 ticks of 1/120 s of the shipped dam break and falling drop. Both liquids
advance in turn, a tick each, so that other work on the machine slows both down. Told are seconds for a
simulated second, wall time on all threads, by the mean tick and by the median one; steps for one; the mean
excess of the density, mean and largest of all ticks; the front of the dam, or the height of the drop's
centre; energy and what viscosity took, less what there was, over the most there was in motion at the end of
a tick.
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


LIQUIDS = {"dam_break": (0.5, ("water",)), "falling_drop": (0.4655, ("pool", "drop"))}
"""Worlds: volume of the liquid, m^3, and its entities, of which the last is followed."""


def shipped(name: str, particles: int, pressure: str) -> ef.World:
    """The shipped world with about that many particles."""
    volume, entities = LIQUIDS[name]
    spacing = (volume / particles) ** (1 / 3)
    tables = read(name, tuple(f"{entity}.spacing={spacing}" for entity in entities)).tables()
    tables["system"] = [{"kind": "sph", "pressure": pressure}]
    return WorldRecipe.from_tables(tables).build()


def measured(world: ef.World) -> dict[str, Any]:
    """Books of the liquid."""
    system = world.system(ef.SphSystem)
    assert system is not None
    return system.measure()


def density(world: ef.World, entities: Sequence[str]) -> float:
    """Mean excess of the density over that at rest, 1."""
    found = np.concatenate([world[name][ef.LiquidState].density for name in entities])
    return float(np.maximum(found / 1000 - 1, 0).mean())


def place(name: str, world: ef.World) -> float:
    """Of the third particle from the front of the dam, m from the wall; or the height of the drop."""
    x = world[LIQUIDS[name][1][-1]][ef.Position].x
    return float(np.sort(x[:, 0])[-3]) + 1.5 if name == "dam_break" else float(x[:, 2].mean())


def motion(world: ef.World, entities: Sequence[str]) -> float:
    """Kinetic energy, J."""
    tables = [(world[name][ef.Liquid].mass, world[name][ef.InertialVelocity].v) for name in entities]
    return sum(0.5 * float((mass * (v.astype(float) ** 2).sum(axis=1)).sum()) for mass, v in tables)


def compare(name: str, particles: int, ticks: int) -> None:
    """Print the lines of a world."""
    worlds = {kind: shipped(name, particles, kind) for kind in ("explicit", "implicit")}
    start = {}
    wall, dense, moving = ({kind: list[float]() for kind in worlds} for _ in range(3))
    for kind, world in worlds.items():
        start[kind] = measured(world)
        world.step()
    for _ in range(ticks):
        for kind, world in worlds.items():
            begin = time.perf_counter()
            world.step()
            wall[kind].append(time.perf_counter() - begin)
            dense[kind].append(density(world, LIQUIDS[name][1]))
            moving[kind].append(motion(world, LIQUIDS[name][1]))
    for kind, world in worlds.items():
        steps = int(world.fluid[ef.LiquidBudget].steps[0]) / (ticks + 1) / TICK
        end = measured(world)
        lost = end["energy"] + end["dissipated"] - start[kind]["energy"]
        print(
            f"{name:13s} {kind:9s} {np.mean(wall[kind]) / TICK:6.2f} {np.median(wall[kind]) / TICK:6.2f} "
            f"{steps:9.0f} {np.mean(dense[kind]):10.4f} {max(dense[kind]):10.4f} {place(name, world):8.3f} "
            f"{lost / max(moving[kind]):+8.4f}"
        )


def main(counts: Sequence[int] = ()) -> None:
    """Print the table."""
    particles, ticks = (*counts, *(16_384, 120)[len(counts) :])
    print(
        f"{'world':13s} {'pressure':9s} {'s a s':>6s} {'median':>6s} {'steps a s':>9s} "
        f"{'mean, largest excess':>21s} {'place, m':>8s} {'energy':>8s}"
    )
    for name in LIQUIDS:
        compare(name, particles, ticks)


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "particles and ticks", 2))
