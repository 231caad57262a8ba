"""Prints the state hash of liquids in moving containers by thread count, as JSON; run by test_sph.

Usage: python sph_worker.py 1,2,4,8
"""

from __future__ import annotations

import sys

from thread_hashes import print_hashes

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


def splashing(precision: str = "single") -> ef.World:
    """The same with whitewater, of which little motion gives off much."""
    world = rocking_tank(precision)
    world.add_system(ef.WhitewaterSystem(closing=(0.0, 0.2), crest=(0.0, 0.1), speed=(0.0, 0.5)))
    return world


def rolling_pipe() -> ef.World:
    """Liquid in a cylinder that lies and rolls, some of whose walls mirror and some do not."""
    world = ef.World(dt=0.01, integrator="euler", seed=1)
    ContainerRecipe(
        name="tank", shape={"shape": "cylinder", "radius": 0.2, "height": 0.4, "sides": 24},
        rotation=(1.4, 0.3, 0.0), angular_velocity=(0.0, 1.5, 0.3),
    ).build(world)  # fmt: skip
    LiquidRecipe(name="water", fills="tank", level=0.05, spacing=0.03).build(world)
    world.add_system(ef.SphSystem())
    return world


def hashed() -> str:
    """Of both worlds."""
    worlds = splashing(), rolling_pipe()
    for world in worlds:
        world.step(8)
    return "".join(world.state_hash() for world in worlds)


if __name__ == "__main__":
    print_hashes(sys.argv[1], hashed)
