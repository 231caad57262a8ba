"""Prints the state hash of every shipped world after some ticks, and of liquids whose pressure is solved for.

Run by test_determinism. With arguments K and N: of every N-th of these worlds, from the K-th on.
"""

from __future__ import annotations

import sys
import warnings
from typing import Literal

import ecs_fluid as ef
from ecs_fluid.worlds import ContainerRecipe, LiquidRecipe
from ecs_fluid.worlds.world_recipe import shipped

TICKS = 3


def solved_for(precision: Literal["single", "double"]) -> ef.World:
    """A block of water that falls apart."""
    world = ef.World(dt=0.01, precision=precision, integrator="euler", seed=1)
    ContainerRecipe(name="tank", shape={"shape": "box", "size": (0.5, 0.3, 0.4)}).build(world)
    block = {"low": (-0.24, -0.14, -0.19), "high": (0.0, 0.14, 0.0)}
    LiquidRecipe(name="water", box=block, spacing=0.03, jitter=0.2).build(world)
    world.add_system(ef.SphSystem(pressure="implicit"))
    return world


def main() -> None:
    """Print a line for each world, name and hash."""
    warnings.simplefilter("ignore")
    worlds = {name: ef.load(name) for name in sorted(shipped())}
    worlds |= {"implicit_single": solved_for("single"), "implicit_double": solved_for("double")}
    first, every = map(int, sys.argv[1:] or ("0", "1"))
    for name, world in list(worlds.items())[first::every]:
        world.step(TICKS)
        print(name, world.state_hash())


if __name__ == "__main__":
    main()
