"""Prints the state hash of a liquid in a moving container by thread count, as JSON; run by test_sph.

Usage: python sph_worker.py 1,2,4,8
"""

from __future__ import annotations

import json
import sys

import numba

import ecs_fluid as ef
from ecs_fluid.worlds import BodyRecipe, ContainerRecipe, LiquidRecipe


def rocking_tank(precision: str = "single") -> ef.World:
    """Two liquids and a floating ball in a container that moves and rolls."""
    world = ef.World(dt=0.01, precision=precision, integrator="euler", seed=1)
    ContainerRecipe(
        name="tank",
        shape={"shape": "box", "size": (0.5, 0.3, 0.4)},
        velocity=(0.4, 0.0, 0.1),
        angular_velocity=(0.0, 1.5, 0.3),
    ).build(world)
    BodyRecipe(
        name="ball", shape={"shape": "ball", "radius": 0.06}, density=600.0, center=(0.0, 0.0, 0.1)
    ).build(world)
    left = {"low": (-0.24, -0.14, -0.19), "high": (0.0, 0.14, 0.0)}
    right = {"low": (0.0, -0.14, -0.19), "high": (0.24, 0.14, 0.0)}
    LiquidRecipe(name="water", box=left, spacing=0.03, jitter=0.2).build(world)
    LiquidRecipe(name="oil", box=right, spacing=0.03, density=800.0, jitter=0.2).build(world)
    world.add_systems([ef.SphSystem(), ef.BodySystem(), ef.CollisionSystem()])
    return world


def main() -> None:
    """Print {threads: hash}."""
    result = {}
    for threads in sys.argv[1].split(","):
        numba.set_num_threads(int(threads))
        world = rocking_tank()
        world.step(8)
        result[threads] = world.state_hash()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
