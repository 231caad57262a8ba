"""The world of most tests of liquids: one liquid in a box, or in free space."""

from __future__ import annotations

from typing import Any

import ecs_fluid as ef
from ecs_fluid.worlds import ContainerRecipe, LiquidRecipe


def tank(
    size: tuple[float, ...] | None, liquid: dict[str, Any], dt: float = 0.01, **parameters: Any
) -> tuple[ef.World, ef.SphSystem]:
    """Liquid in a box with a corner at the origin, or in free space; pressure alone keeps it in."""
    world = ef.World(dt=dt, integrator="euler", precision=parameters.pop("precision", "single"))
    world.set_fluid(gravity=parameters.pop("gravity", (0.0, 0.0, -9.81)))
    if size is not None:
        shape = {"shape": "box", "size": size}
        ContainerRecipe(name="tank", shape=shape, center=tuple(s / 2 for s in size)).build(world)
    recipe = LiquidRecipe(name="water", **liquid)
    recipe.build(world)
    if recipe.hydrostatic:
        parameters["hydrostatic"] = ("water",)
    return world, world.add_system(ef.SphSystem(**parameters))
