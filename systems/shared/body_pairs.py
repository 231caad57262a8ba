"""How many pairs of bodies are close: counted before memory is allocated for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE
from ecs_fluid.input_limits import check_memory, limits

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.table import Bodies

NEAR, TOUCHING = 50, 1000
"""Bytes for a pair of bodies that may meet within the tick (its arrays take 48), and for a pair that touches
(930 measured)."""


def most_pairs(x: Array, reach: Array, free: Array) -> float:
    """Number of pairs of balls of radii `reach` (n,) at x (n, 3) that meet, at least one of them free.

    It is exact where all radii are equal; otherwise it may be too large, as if radii were up to twice as
    large.
    """
    from scipy.spatial import cKDTree

    octave = np.frexp(reach)[1]
    total = -0.5 * np.count_nonzero(free)  # the count below includes each body's pair with itself
    for number, moves in set(zip(octave.tolist(), free.tolist(), strict=True)):
        alike = (octave == number) & (free == moves)
        within = reach[free] + reach[alike].max()
        met = cKDTree(x[alike]).query_ball_point(x[free], within, return_length=True)
        total += met.sum() * (0.5 if moves else 1.0)
    return float(total)


def check_pairs(bodies: Bodies, push: Array, dt: float) -> None:
    """Raise LimitError if the lists of close pairs would not fit into memory."""
    from ecs_fluid.kernels.bodies.table import CONTAINER

    if 0.5 * TOUCHING * len(bodies.x) ** 2 <= limits().memory or not np.isfinite([bodies.x, bodies.v]).all():
        return  # few bodies, or numbers that are not finite, which the guard reports
    solid = bodies.shape != CONTAINER
    x, radius, free = bodies.x[solid], 1.01 * bodies.radius[solid], bodies.motion[solid] == FREE
    speed, growth = (np.linalg.norm(each, axis=1).max() for each in (bodies.v, push))
    reach = radius + 2.0 * dt * (speed + dt * growth)
    check_memory(
        NEAR, most_pairs(x, reach, free), "pairs of bodies that may meet in a tick", "use a smaller dt"
    )
    check_memory(
        TOUCHING, most_pairs(x, radius, free), "pairs of bodies that touch", "set them further apart"
    )
