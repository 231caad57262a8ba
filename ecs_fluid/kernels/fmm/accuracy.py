"""Settings of the fast multipole method for a tolerance: order, opening, leaf size, core guards.

Measured (Winckelmans blobs, opening 0.5, 8000 vortons, relative RMS error of du): orders 4, 7, 10, 14, 19
give 1e-3, 6e-5, 5e-6, 3e-7, 8e-9 for a thick ring, and 3e-3, 3e-4, 4e-5, 2e-6, 7e-8 for random strengths in
a cube: a factor of opening per order everywhere, but another factor in front for every flow. No table keeps
a tolerance for all of them, so the order here is that of a smooth flow, and ``fmm`` compares a sample of
the targets with the direct sum and raises the order as far as that sample needs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ecs_fluid.kernels.biot_savart.regularisation import Code, record

DIRECT_BELOW = 256
"""Up to this many sources are summed directly."""

MANY_SOURCES = 32_768
"""From this many sources on, a target has so many near ones that a wider opening pays for a higher order."""

GOAL = 0.7
"""An order is chosen for this fraction of the tolerance, so that a sum that failed does not fail again."""

_LAST_FRACTIONAL_ORDER, _LEAST_STEP = 10, 0.5
"""A search goes on by parts of an order up to this order, and by so much of one at least."""


class Settings(NamedTuple):
    """The settings of one sum."""

    order: int
    """highest total order of the expansions of the potential"""
    opening: float
    """nodes of radii a, b at distance r meet by expansion if a + b < opening sqrt(r^2 + sigma^2); 0: never"""
    leaf: int
    """largest number of points in a leaf"""
    pairs: int
    """two leaves with fewer pairs than this are summed directly"""
    clearance: float
    """least distance between the points of two such nodes, in the largest core radius of the source node: the
    potential of a rankine blob has a corner at 1, and the series of a gaussian one is slow near its core"""
    mixed_clearance: float
    """the same where core radii differ: the tails of the blobs must be negligible there"""
    spread: float
    """largest bound on the relative change of velocity by giving all vortons of a node one core radius"""
    full: bool = False
    """whether nodes that are far away get all terms, too. Otherwise their series ends where it is below the
    error of the nearest ones, which is too early where nothing is near and strengths cancel"""


def settings(code: Code, tolerance: float, sources: int = 0) -> Settings:
    """Settings for a smooth flow and a relative RMS error of ``tolerance`` in velocity and gradient.

    ``sources`` is their number. Measured (float32, 1e-3, the same error): order 8 at 0.65 takes 8 % less
    time than order 7 at 0.6 for a million, 3 % less for 100,000 and 8 % more for 10,000; at 1e-4, nothing.
    """
    digits = -math.log10(tolerance)
    opening = min(0.6, max(0.4, 0.6 - 0.033 * (digits - 3.0)))
    order = max(3, math.ceil(2.2 + 1.6 * digits - 1e-9))
    if sources >= MANY_SOURCES and digits < 3.0 + 1e-9:
        opening = min(0.7, 0.65 + 0.05 * (3.0 - digits))
        order = max(3, math.ceil(2.0 + 2.0 * digits - 1e-9))
    blob = record(code)
    guards = blob.clearance(order), blob.mixed_clearance(digits)
    # Leaf sizes that balance pairs against expansions (measured).
    leaf = 64 if order <= 9 else (96 if order <= 13 else 160)
    return Settings(order, opening, leaf, 256, *guards, 20.0 * tolerance)


def highest_order(dtype: Any) -> int:
    """Highest useful order: more terms do not help in that precision."""
    return 18 if np.dtype(dtype) == np.float32 else 26


def terms_for(how: Settings, error: float, tolerance: float, highest: int) -> tuple[int, float]:
    """Order, at most ``highest``, and opening that bring a measured error below ``GOAL`` x tolerance.

    The error goes like opening^(order + 1). Low orders are raised by whole ones, and the opening does the
    rest. High ones are rounded up: their errors sit in few points, which need what is to spare.
    """
    more = math.log(error / (GOAL * tolerance)) / -math.log(how.opening)
    order = how.order + max(1, math.ceil(more))
    if order > min(_LAST_FRACTIONAL_ORDER, highest):
        return min(order, highest), how.opening
    more = max(_LEAST_STEP, more)
    order = how.order + int(more)
    return order, how.opening ** (1.0 + (more - int(more)) / (order + 1))
