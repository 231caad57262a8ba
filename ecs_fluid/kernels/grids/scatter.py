"""Particles shared among grid points by weights that keep moments and multiply over the axes.

Along an axis the weights are polynomials of the fraction f of a cell:

* ``m4_prime``: ``cubic.CONVOLUTION`` at the points -1, ..., 2 from its lower end; keeps the moments 0 to 2.
* ``m6_prime``: quintics at the points -2, ..., 3, pieces of an even function with two continuous derivatives,
  of reach 3, that is 1 at 0 and 0 at the other whole numbers and keeps the moments 0 to 4. These conditions
  leave one (a test solves them). A wave of k per spacing loses 6e-4 (k/0.8)^6 or less of itself, where M4'
  loses 5e-3 (k/0.8)^4. Also called M6*: van Rees, Leonard, Pullin and Koumoutsakos, J. Comput. Phys. 230
  (2011).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids import cubic
from ecs_fluid.kernels.grids.interpolation import axis_weight, scattering

QUINTICS = np.array(
    [
        [0.0, 2.0, -1.0, -9.0, 13.0, -5.0],
        [0.0, -16.0, 16.0, 39.0, -64.0, 25.0],
        [24.0, 0.0, -30.0, -70.0, 126.0, -50.0],
        [0.0, 16.0, 16.0, 66.0, -124.0, 50.0],
        [0.0, -2.0, -1.0, -33.0, 61.0, -25.0],
        [0.0, 0.0, 0.0, 7.0, -12.0, 5.0],
    ]
) / 24.0  # fmt: skip
"""Weights of the six points of ``m6_prime``, a row each: the factors of 1, f, ..., f^5."""


@njit(fastmath=FAST, forceinline=True)
def _axis_weights(f: float, cell: int, cells: int, table: np.ndarray, weights: np.ndarray) -> int:
    """First of the points along an axis, and their weights; an axis of too few cells has linear ones."""
    taps = table.shape[0]
    if taps == cubic.TAPS:
        return int(cubic.axis_weights(f, cell, cells, table, weights))
    if cells < taps - 1:
        weights[:] = 0.0
        weights[0], weights[1] = 1.0 - f, f
        return cell
    for s in range(taps):
        weights[s] = 0.0
        for power in range(taps - 1, -1, -1):
            weights[s] = table[s, power] + f * weights[s]
    return int(cell - taps // 2 + 1)


@parallel(
    "((out.shape[0] - i_first + table.shape[0] - 2) // table.shape[0])"
    " * ((out.shape[1] - j_first + table.shape[0] - 2) // table.shape[0])",
    fastmath=FAST,
)
def _scatter_class(
    task: int, i_first: int, j_first: int, sx: np.ndarray, values: np.ndarray, start: np.ndarray,
    origin: np.ndarray, spacing: np.ndarray, table: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Rows of cells i_first, i_first + taps, ... and j_first, j_first + taps, ..."""
    m, taps = values.shape[0], table.shape[0]
    kind = out.dtype.type
    nx, ny, nz = out.shape[0] - 1, out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    # On a short axis only two points have a weight; the others belong to rows that another thread may fill.
    width = m * (2 if nz < taps - 1 else taps)
    flat = out.reshape(out.size)
    row_length = (nz + 1) * m
    plane_length = (ny + 1) * row_length
    j_count = (ny - j_first + taps - 1) // taps
    i = i_first + taps * (task // j_count)
    j = j_first + taps * (task % j_count)
    cell = (i * ny + j) * nz
    if start[cell] == start[cell + nz]:
        return
    wx, wy, wz = np.empty(taps), np.empty(taps), np.empty(taps)
    line = np.empty(width, out.dtype)
    for k in range(nz):
        for p in range(start[cell + k], start[cell + k + 1]):
            i0 = _axis_weights(axis_weight(sx[0, p], origin[0], inv0, i), i, nx, table, wx)
            j0 = _axis_weights(axis_weight(sx[1, p], origin[1], inv1, j), j, ny, table, wy)
            k0 = _axis_weights(axis_weight(sx[2, p], origin[2], inv2, k), k, nz, table, wz)
            for e in range(width // m):
                for c in range(m):
                    line[e * m + c] = kind(wz[e]) * values[c, p]
            for s in range(taps):
                if wx[s] == 0.0:
                    continue
                for t in range(taps):
                    if wy[t] == 0.0:
                        continue
                    w = kind(wx[s] * wy[t])
                    at = (i0 + s) * plane_length + (j0 + t) * row_length + k0 * m
                    if width == 12:
                        for e in range(12):
                            flat[at + e] += w * line[e]
                    else:
                        for e in range(width):
                            flat[at + e] += w * line[e]


@njit(cache=True)
def _scatter(
    sx: np.ndarray, values: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    out: np.ndarray, table: np.ndarray,
) -> None:  # fmt: skip
    """Add ``values`` (m, n) of sorted rows ``sx`` (3, n) to ``out`` (nx+1, ny+1, nz+1, m).

    A row of cells (i, j) writes to as many points along each axis as the table has rows. Rows whose i and j
    agree modulo that number share no point, so these classes are done in turn, each of them in parallel (see
    ``interpolation``).
    """
    taps = len(table)
    for colour in range(taps * taps):
        _scatter_class(colour // taps, colour % taps, sx, values, start, origin, spacing, table, out)


m4_prime = scattering(_scatter, cubic.CONVOLUTION)
"""Among the 64 points around, by weights of which some are negative; at a face see ``cubic``."""

spline = scattering(_scatter, cubic.SPLINE)
"""Among the 64 points around, by the weights of the cubic B-spline, all positive: smoother than what is
shared, until waves of what comes out are sharpened."""

m6_prime = scattering(_scatter, QUINTICS)
"""Among the 216 points around, by weights of which some are negative; leaves 2 cells free on every side."""
