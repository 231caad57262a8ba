"""Particles shared among the 216 lattice points around, by weights that multiply over the axes.

Along an axis the points at -2, ..., 3 from the lower end of a cell have weights that are quintics of the
fraction f: the piecewise polynomials of fifth degree, even and with two continuous derivatives, of reach 3,
that are 1 at 0 and 0 at the other whole numbers and keep the moments 0 to 4. These conditions leave one
(a test solves them). A wave of k per spacing loses 6e-4 (k/0.8)^6 or less of itself, where M4' loses
5e-3 (k/0.8)^4. Called M6' or M6*: van Rees, Leonard, Pullin and Koumoutsakos, J. Comput. Phys. 230 (2011).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.interpolation import axis_weight, scattering

TAPS = 6
"""Points that a particle reaches along an axis."""

MARGIN = 3
"""Cells that a lattice leaves free on every side: two that the weights reach, and one for rounding."""

PIECES = np.array(
    [
        [24.0, 0.0, -30.0, -70.0, 126.0, -50.0],
        [0.0, -16.0, 16.0, 39.0, -64.0, 25.0],
        [0.0, 2.0, -1.0, -9.0, 13.0, -5.0],
    ]
)
"""24 times the weight at the distances t, 1 + t and 2 + t: the factors of 1, t, ..., t^5.

Whole numbers, so that the weights at whole distances are exact.
"""


@njit(fastmath=FAST, forceinline=True)
def _at(piece: np.ndarray, t: float) -> float:
    high = piece[3] + t * (piece[4] + t * piece[5])
    return float((piece[0] + t * (piece[1] + t * (piece[2] + t * high))) / 24.0)


@njit(fastmath=FAST, forceinline=True)
def axis_weights(f: float, cell: int, cells: int, pieces: np.ndarray, weights: np.ndarray) -> int:
    """First of six points, and their weights; an axis of one cell has those of linear interpolation."""
    if cells < 2 * MARGIN:
        weights[:] = 0.0
        weights[0], weights[1] = 1.0 - f, f
        return cell
    for k in range(3):
        weights[2 - k], weights[3 + k] = _at(pieces[k], f), _at(pieces[k], 1.0 - f)
    return cell - 2


@parallel(
    "((out.shape[0] - i_first + TAPS - 2) // TAPS) * ((out.shape[1] - j_first + TAPS - 2) // TAPS)",
    fastmath=FAST,
)
def _scatter_class(
    task: int, i_first: int, j_first: int, sx: np.ndarray, values: np.ndarray, start: np.ndarray,
    origin: np.ndarray, spacing: np.ndarray, pieces: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Rows of cells i_first, i_first + TAPS, ... and j_first, j_first + TAPS, ..."""
    m, nx, ny, nz = values.shape[0], out.shape[0] - 1, out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    # Of a short axis two points have a weight, and the others are not there.
    width = m * (2 if nz < 2 * MARGIN else TAPS)
    flat = out.reshape(out.size)
    row_length = (nz + 1) * m
    plane_length = (ny + 1) * row_length
    j_count = (ny - j_first + TAPS - 1) // TAPS
    i = i_first + TAPS * (task // j_count)
    j = j_first + TAPS * (task % j_count)
    cell = (i * ny + j) * nz
    wx, wy, wz = np.empty(TAPS), np.empty(TAPS), np.empty(TAPS)
    line = np.empty(width, out.dtype)
    for k in range(nz):
        for p in range(start[cell + k], start[cell + k + 1]):
            i0 = axis_weights(axis_weight(sx[0, p], origin[0], inv0, i), i, nx, pieces, wx)
            j0 = axis_weights(axis_weight(sx[1, p], origin[1], inv1, j), j, ny, pieces, wy)
            k0 = axis_weights(axis_weight(sx[2, p], origin[2], inv2, k), k, nz, pieces, wz)
            for e in range(width):
                line[e] = wz[e // m] * values[e % m, p]
            for s in range(TAPS):
                for t in range(TAPS):
                    w = wx[s] * wy[t]
                    if w != 0.0:
                        at = (i0 + s) * plane_length + (j0 + t) * row_length + k0 * m
                        for e in range(width):
                            flat[at + e] += w * line[e]


@njit(cache=True)
def _scatter(
    sx: np.ndarray, values: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Add ``values`` (m, n) of sorted rows ``sx`` (3, n) to ``out`` (nx+1, ny+1, nz+1, m).

    A row of cells (i, j) writes to six points from i - 2 and from j - 2 on. Rows whose i and j agree modulo
    six share no point, so the 36 classes are done in turn, each of them in parallel (see ``interpolation``).
    """
    for colour in range(TAPS * TAPS):
        _scatter_class(colour // TAPS, colour % TAPS, sx, values, start, origin, spacing, PIECES, out)


scatter = scattering(_scatter)
"""Among the 216 points around, by the weights of ``PIECES``, some of them negative."""
