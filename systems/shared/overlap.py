"""How far the cores of neighbouring vortons overlap."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.shared.nearest import nearest_distances

LEAST_OVERLAP = 1.5
"""Core radius over spacing below which vorticity between vortons is noisy; also the default of recipes and
lattices."""

ONE_PLACE = 1e-5
"""Distance, in core radii, within which vortons count as being in one place."""


def room(sigma: Array | float, dimension: int) -> Array:
    """Volumes, m^3, of cubes in which cores sigma, m, overlap by `LEAST_OVERLAP`: what vortons stand for by
    default. In a plane they are squares, a metre deep."""
    return np.asarray((np.asarray(sigma) / LEAST_OVERLAP) ** dimension)


def overlap(x: Array, sigma: Array) -> float | None:
    """Median of core radius over the distance to the nearest other vorton; None below two vortons.

    Vortons in one place count as one: populations that are remeshed share the points of their lattice.
    """
    if len(x) < 2:
        return None
    nearest = nearest_distances(x)
    if (nearest <= ONE_PLACE * sigma).any():
        from ecs_fluid.kernels.compiled.columns import equal_rows

        cells = np.round(x.astype(np.float64) / (ONE_PLACE * float(sigma.min())))
        first, _ = equal_rows(list(cells.T))
        if len(first) < 2:
            return None
        sigma, nearest = sigma[first], nearest_distances(x[first])
    return float(np.median(sigma / nearest))
