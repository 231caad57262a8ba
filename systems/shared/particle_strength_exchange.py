"""Exchange between neighbouring particles, wherever their rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.kernels.vorticity.exchange import Sorting
    from ecs_fluid.world import World

_SORTINGS: WeakKeyDictionary[World, Sorting] = WeakKeyDictionary()
"""Of each world: viscosity and conduction between the same vortons sort them once."""


def exchanged(
    world: World,
    names: list[str],
    x: Array,
    values: Array,
    eps: Array,
    volume: Array,
    diffusivity: float,
    order: int,
    dimension: int,
) -> tuple[Array, float]:
    """Rates (n, k) of extensive `values` (n, k) by exchange, and the largest stable step in s.

    For systems that span ranks: the rows are those of this rank, of the populations `names` laid end to end.
    The rest as in `ecs_fluid.kernels.vorticity.exchange.exchange_rows`.
    """
    from ecs_fluid.kernels.vorticity.exchange import Sorting, exchange_rows, stable_step

    what = x, values, eps, volume, diffusivity, order, dimension
    if world.ranks is None:
        rate, loss = exchange_rows(*what, _SORTINGS.setdefault(world, Sorting()))
        return rate, stable_step(loss)
    rate, largest = world.ranks.exchanged(names, *what)
    return rate, stable_step(np.array([largest]))
