"""g H of a liquid: the square of the speed that it would get by falling to the lowest place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.fluid import key_values
from ecs_fluid.systems.inflow import inflows
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.liquid.all_liquid import AllLiquid


def largest_head(world: World, pulls: Iterable[Array], x: Array, spacing: float) -> float:
    """Largest g H, m^2/s^2, of the accelerations `pulls` (3,) m/s^2 on liquid at `x` (n, 3) m.

    H is measured from the top of the liquid, or of what inflows will bring, to the bottom of the lowest
    container, or of the liquid.
    """
    walls, most = containers(world), 0.0
    for down in pulls:
        pull = float(np.linalg.norm(down))
        if pull == 0.0:
            continue
        up = -down / pull
        heights = x @ up
        floors = [float((wall.corners @ up).min()) + 0.5 * spacing for wall in walls]
        low = min([float(heights.min()), *floors])
        most = max(most, pull * (float(heights.max()) - low + spacing))
        for inflow in inflows(world):
            above = float(np.max(np.array(key_values(inflow.center)) @ up)) - low
            # The liquid of an inflow of speed v may fall from v^2 / (2 g) above the opening.
            most = max(most, pull * (max(above, 0.0) + spacing) + 0.5 * inflow.fastest**2)
    return most


def head_of_push(liquid: AllLiquid, push: Array | None) -> float:
    """g H, m^2/s^2, for the largest acceleration of a particle by gravity and a push (n, 3) m/s^2."""
    pull = liquid.accelerations(push).astype(np.float64)
    strongest = pull[(pull**2).sum(axis=1).argmax()]
    return largest_head(liquid.world, [strongest], liquid.particles.x, liquid.spacing)
