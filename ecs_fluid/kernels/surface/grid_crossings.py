"""Distances beside the surface of a density (or any other) grid, from where it crosses the grid lines.

A point is inside if its value is beyond ``outside``; it is filled to the fraction
A = min((value - outside) / (inside - outside), 1). The surface lies between it and a neighbour that is
outside, at the distance A h from the point inside: the fuller the point, the farther. (Part 17 writes this as
x + h A / M where the value falls and x + h (1 - A / M) where it rises.) The point inside gets -A h, the one
outside (1 - A) h, and each keeps the smallest of its crossings. For an oblique surface distances along an
axis are too long, by up to a factor sqrt(3); `kernels.surface.facets` measures to the surface itself. Source:
Fluid Simulation for Video Games, part 17.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel


@njit(forceinline=True)
def _nearer_crossing(here: float, other: float, h: float, outside: float, scale: float, best: float) -> float:
    """The smaller of ``best`` and the distance from a point to the surface on the way to one neighbour.

    ``here`` and ``other`` are the values of both, ``h`` is their distance.
    """
    a, b = (here - outside) * scale, (other - outside) * scale
    if (a > 0.0) == (b > 0.0):
        return best
    return min(best, min(a, 1.0) * h if a > 0.0 else (1.0 - min(b, 1.0)) * h)


@parallel("values.shape[0]")
def _crossing_distances(
    i: int, values: Array, outside: float, scale: float, spacing: Array, phi: Array, pinned: Array
) -> None:
    nx, ny, nz = values.shape
    kind = phi.dtype.type
    for j in range(ny):
        for k in range(nz):
            here, best = float(values[i, j, k]), np.inf
            for axis in range(3):
                for way in (-1, 1):
                    a = i + (way if axis == 0 else 0)
                    b = j + (way if axis == 1 else 0)
                    c = k + (way if axis == 2 else 0)
                    if 0 <= a < nx and 0 <= b < ny and 0 <= c < nz:
                        other = float(values[a, b, c])
                        best = _nearer_crossing(here, other, spacing[axis], outside, scale, best)
            pinned[i, j, k] = best < np.inf
            size = best if best < np.inf else 1.0
            phi[i, j, k] = kind(-size if (here - outside) * scale > 0.0 else size)


def crossing_distances(values: Array, outside: float, inside: float, spacing: Array) -> tuple[Array, Array]:
    """Signed distances (px, py, pz) m at the points beside the surface, and which points those are (bool).

    ``values`` (px, py, pz) are of the density or a species; ``outside`` is the value away from the liquid,
    ``inside`` that of the full liquid, larger or smaller. ``spacing`` (3,) m; axes with one layer of points
    have no crossings. All other points get +-1 m, of which only the sign counts.
    """
    phi, pinned = np.empty_like(values), np.empty(values.shape, np.bool_)
    _crossing_distances(
        values, outside, 1.0 / (inside - outside), np.asarray(spacing, np.float64), phi, pinned
    )
    return phi, pinned


def full_value(values: Array, outside: float) -> float:
    """Value of the full liquid: mean plus one standard deviation of the grid, at most the largest value.

    This is the rule of the code of part 17, for a liquid whose values lie above ``outside``. For one below it
    the signs are reversed.
    """
    grid = np.asarray(values, dtype=np.float64)
    sign = 1.0 if grid.max() - outside >= outside - grid.min() else -1.0
    above = sign * (grid - outside)
    return outside + sign * min(float(above.max()), float(above.mean() + above.std()))
