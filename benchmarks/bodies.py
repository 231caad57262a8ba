"""Cost of bodies: part 13's scene, and 1,000 spheres among 100,000 tracers. Run: python benchmarks/bodies.py

Wall time, for a machine with nothing else to do; processor time beside it also counts threads that wait awake
for the next loop (``GOMP_SPINCOUNT=0`` lets them sleep).
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import ecs_fluid as ef
from ecs_fluid.worlds.bodies import BodyRecipe, Spheres


def scene(tracers: int = 49_000, vortons: int = 981) -> ef.World:
    """Smoke that rises past two balls and a plate, as in part 13."""
    draw = np.random.default_rng(1)
    world = ef.World(dt=1 / 30, integrator="euler")
    x = draw.uniform([-0.6, -0.6, -0.8], [0.6, 0.6, 2.0], (vortons, 3))
    world.spawn(
        "vortons",
        ef.Position(x), ef.Strength(4e-4 * draw.standard_normal((vortons, 3))),
        ef.CoreRadius(np.full(vortons, 0.12)), ef.Volume(np.full(vortons, 1e-3)),
    )  # fmt: skip
    world.spawn("smoke", ef.Position(draw.uniform([-0.6, -0.6, -0.8], [0.6, 0.6, 2.0], (tracers, 3))))
    ball = {"shape": "ball", "radius": 0.2}
    BodyRecipe(name="lower", shape=ball, center=(0, 0, -0.5), motion="fixed").build(world)
    ball["radius"] = 0.5
    BodyRecipe(name="upper", shape=ball, center=(0.2, 0, 2.0), motion="fixed").build(world)
    plate = {"shape": "plate", "length": 1.0, "width": 0.5, "thickness": 0.1}
    BodyRecipe(
        name="plate", shape=plate, center=(0, 0, 1.0), motion="scripted", angular_velocity=(0.01, 0.02, 0)
    ).build(world)
    world.add_systems(
        [
            ef.PartitionSystem(cells_per_core=0.0),  # the articles' grid: as many cells as vortons
            ef.VelocitySystem(solver="tree", at="grid"),
            ef.StretchSystem(),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.CollisionSystem(),
            ef.BoundarySystem(),
        ]
    )
    return world


def crowd(balls: int) -> ef.World:
    """100,000 tracers in a steady wind, with or without balls among them."""
    draw = np.random.default_rng(2)
    world = ef.World(dt=1 / 30, integrator="euler")
    world.spawn("smoke", ef.Position(draw.uniform(-2, 2, (100_000, 3))))
    vortons = draw.uniform(-2, 2, (1000, 3))
    world.spawn(
        "vortons",
        ef.Position(vortons), ef.Strength(1e-2 * draw.standard_normal((1000, 3))),
        ef.CoreRadius(np.full(1000, 0.3)),
    )  # fmt: skip
    systems: list[ef.System] = [ef.VelocitySystem(solver="tree", at="grid"), ef.AdvectionSystem()]
    if balls:
        edge = round(balls ** (1 / 3))
        line = np.linspace(-1.8, 1.8, edge)
        places = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
        Spheres(name="balls", centers=[tuple(p) for p in places.tolist()], radius=0.06).build(world)
        world.set_fluid(gravity=(0.0, 0.0, 0.0))
        systems += [ef.BodySystem(), ef.CollisionSystem()]
    world.add_systems(systems)
    return world


def measure(world: ef.World, ticks: int) -> tuple[float, float]:
    """(CPU, wall) milliseconds of a tick: medians, once threads are chosen."""
    world.step(20)
    cpu, wall = [], []
    for _ in range(ticks):
        start = time.process_time(), time.perf_counter()
        world.step()
        cpu.append(1e3 * (time.process_time() - start[0]))
        wall.append(1e3 * (time.perf_counter() - start[1]))
    return statistics.median(cpu), statistics.median(wall)


def main() -> None:
    """Print both figures."""
    world = scene()
    cpu, wall = measure(world, 60)
    met = world.fluid[ef.CollisionCount].met[0] / world.tick
    print(f"49,000 tracers, 981 vortons, 3 bodies ({met:.0f} particles met a tick): {cpu:.2f} ms CPU, "
          f"{wall:.2f} ms a tick")  # fmt: skip
    for name, timing in world.timings().items():
        print(f"    {name:<18} {1e3 * timing.total / max(timing.calls, 1):.3f} ms")
    plain, busy = measure(crowd(0), 40), measure(crowd(1000), 40)
    print(f"100,000 tracers: {plain[0]:.2f} ms CPU, {plain[1]:.2f} ms a tick without bodies; "
          f"{busy[0]:.2f} and {busy[1]:.2f} with 1,000 balls, ratio {busy[1] / plain[1]:.2f}")  # fmt: skip


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
