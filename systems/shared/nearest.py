"""Distance of each particle from its nearest neighbour."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array

FEW = 1000
"""Up to this many points all pairs are compared, in at most 2 ms: importing SciPy's tree takes 150 ms."""

ROWS = 16
"""Number of points compared with all others at once: more would overflow the cache and take twice as long."""


def nearest_distances(x: Array) -> Array:
    """Distance (n,) from each of the points (n, 3) to the nearest other one, in the unit of x; n >= 2."""
    if len(x) > FEW:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(x).query(x, k=2)[0])[:, 1]
    axes = np.ascontiguousarray(np.asarray(x, dtype=np.float64).T)
    found = np.empty(len(x))
    for first in range(0, len(x), ROWS):
        own = axes[:, first : first + ROWS, None]
        # Squares are added in the tree's order, so that both ways give the same bits.
        square = (own[0] - axes[0]) ** 2 + (own[1] - axes[1]) ** 2 + (own[2] - axes[2]) ** 2
        rows = np.arange(own.shape[1])
        square[rows, first + rows] = np.inf
        found[first + rows] = square.min(axis=1)
    return np.sqrt(found)
