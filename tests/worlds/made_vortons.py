"""Vortons as recipes lay them out, and their flow by a plain sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.recipe import Recipe
from ecs_fluid.world import World


def made(recipe: Recipe, **options: Any) -> tuple[Array, Array, Array, Array]:
    """Places, strengths, core radii and volumes."""
    world = World(precision="double", **options)
    recipe.build(world)
    one = world[recipe.name]
    return one[Position].x, one[Strength].alpha, one[CoreRadius].sigma, one[Volume].volume


def velocity(points: Array, x: Array, alpha: Array, sigma: Array | float) -> Array:
    """Winckelmans blobs: u = sum (d^2 + 5/2 sigma^2)/(d^2 + sigma^2)^(5/2) alpha x r/(4 pi)."""
    r = points[:, None, :] - x
    d2 = (r**2).sum(axis=2)
    weight = (d2 + 2.5 * sigma**2) / (d2 + sigma**2) ** 2.5 / (4 * np.pi)
    return np.asarray((weight[..., None] * np.cross(alpha[None], r)).sum(axis=1))
