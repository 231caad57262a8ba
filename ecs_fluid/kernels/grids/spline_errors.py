"""Expected errors of a cubic spline between grid points: large beside cores that are thin for the cells.

Points h apart do not resolve the velocity alpha / (4 pi r^2) of a core of radius sigma << h between them,
whose mean square over its cell is proportional to alpha^2 / (sigma h^3). For cores sigma >> h the spline
misses the fraction (h / sigma)^4 of alpha / sigma^2. Both are limits of alpha^2 / sigma (h / (h + sigma))^11,
up to the factor 1 / h^3.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.grids.partition import cell_index


@njit(error_model="numpy", forceinline=True)
def _nearest_cells(x: float, origin: float, inverse: float, cells: int) -> tuple[int, int]:
    """The two cells along an axis between whose centres ``x`` lies; at an end, one cell twice."""
    at = min(max((x - origin) * inverse - 0.5, -0.5), cells - 0.5)
    low = min(max(int(at + 1.0) - 1, -1), cells - 1)  # also of what is not a number
    return max(low, 0), min(low + 1, cells - 1)


@njit(fastmath=FAST, error_model="numpy", cache=True)
def _add_cores(
    x: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, origin: np.ndarray, inverse: np.ndarray, h: float,
    table: np.ndarray,
) -> None:  # fmt: skip
    most, parts = 0.0, np.empty(x.shape[1], np.float64)
    for p in range(x.shape[1]):
        square = np.float64(alpha[0, p]) ** 2 + np.float64(alpha[1, p]) ** 2 + np.float64(alpha[2, p]) ** 2
        thin = h / (h + sigma[p])
        parts[p] = square / sigma[p] * thin * (thin * thin) ** 5
        most = max(most, parts[p])
    if most == 0.0:
        return
    for p in range(x.shape[1]):
        part = table.dtype.type(parts[p] / most)
        i = _nearest_cells(x[0, p], origin[0], inverse[0], table.shape[0])
        j = _nearest_cells(x[1, p], origin[1], inverse[1], table.shape[1])
        k = _nearest_cells(x[2, p], origin[2], inverse[2], table.shape[2])
        for a in i:
            for b in j:
                table[a, b, k[0]] += part
                table[a, b, k[1]] += part


def squared_errors(
    x: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, places: np.ndarray, origin: np.ndarray,
    spacing: np.ndarray, cells: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Estimates (m,), up to a common factor, of the squared errors of reading at ``places`` (m, 3) m.

    Counted are vortons x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m in the cell of a place, and those in the
    nearer half of the adjacent cells. The grid has ``cells`` (3,) of ``spacing`` (3,) m from ``origin`` on.
    """
    table, inverse = np.zeros(tuple(cells), np.float32), 1.0 / spacing
    _add_cores(x, alpha, sigma, origin, inverse, float(np.sort(spacing)[1]), table)
    return np.asarray(table.ravel()[cell_index(places, origin, spacing, cells)], np.float64)
