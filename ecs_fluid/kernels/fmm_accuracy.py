"""What a requested tolerance asks of the fast multipole method: order, opening, leaf size, core guards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecs_fluid.kernels.regularisation import GAUSSIAN, RANKINE


class Settings(NamedTuple):
    """Numbers that steer one sum."""

    order: int
    """highest total order of the expansions of the potential"""
    opening: float
    """nodes of radii a, b at distance r meet by expansion if a + b < opening x sqrt(r^2 + sigma^2)"""
    leaf: int
    """most points in a leaf"""
    pairs: int
    """two leaves with fewer pairs than this are summed directly"""
    clearance: float
    """least distance between the points of two such nodes, in the largest core radius of the sources"""
    mixed_clearance: float
    """the same if the core radii of the node differ"""
    spread: float
    """largest change of the velocity, relative, by giving all vortons of a node one core radius"""


def settings(code: int, tolerance: float, dtype: Any) -> Settings:
    """Settings that keep the RMS error of u and du below ``tolerance`` times their RMS."""
    digits = -np.log10(tolerance)
    order = int(np.ceil(2.0 + 2.0 * digits))
    return Settings(order, 0.6, 48, 256, 1.0 if code == RANKINE else (1.5 if code == GAUSSIAN else 0.0), 5.0, tolerance)
