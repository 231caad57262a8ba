"""A velocity field and the gradient at its points, read by cubic convolution at particles in one pass.

Both are stored side by side, twelve numbers per grid point, so that a particle reads one run of memory per
row of points; and particles come in the order of a cell sort, so that neighbours find the data in the cache.
That takes half the time of two interpolations.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.grids.cubic import CONVOLUTION, TAPS, weights_at
from ecs_fluid.kernels.grids.partition import view_as

_EACH = 12
"""Numbers at a point: three derivatives and the value of each component."""


@parallel(**FAST_LOOP)
def _interpolate(
    chunk: int,
    x: np.ndarray, order: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray,
    cubics: np.ndarray, u: np.ndarray, du: np.ndarray,
) -> None:  # fmt: skip
    """Rows ``order`` of x, u and du."""
    wide_vectors()
    n, kind = len(order), field.dtype.type
    nx, ny, nz = field.shape[0] - 1, field.shape[1] - 1, field.shape[2] - 1
    inverse, flat = (1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]), field.reshape(field.size)
    taps_x, taps_y, taps_z = 2 if nx < 3 else TAPS, 2 if ny < 3 else TAPS, 2 if nz < 3 else TAPS
    row_length = (nz + 1) * _EACH
    plane_length = (ny + 1) * row_length
    wx, wy, wz = np.empty(TAPS), np.empty(TAPS), np.empty(TAPS)
    line, mean = np.zeros(TAPS * _EACH, flat.dtype), np.empty(_EACH, flat.dtype)
    for q in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        p = order[q]
        i = weights_at(x[p, 0], origin[0], inverse[0], nx, cubics, wx)
        j = weights_at(x[p, 1], origin[1], inverse[1], ny, cubics, wy)
        k = weights_at(x[p, 2], origin[2], inverse[2], nz, cubics, wz)
        corner = i * plane_length + j * row_length + k * _EACH
        for e in range(TAPS * _EACH):
            line[e] = 0.0
        for s in range(taps_x):
            for t in range(taps_y):
                share = kind(wx[s] * wy[t])
                at = corner + s * plane_length + t * row_length
                if taps_z == TAPS:
                    row = flat[at : at + TAPS * _EACH]
                    for e in range(TAPS * _EACH):
                        line[e] += share * row[e]
                else:
                    for e in range(2 * _EACH):
                        line[e] += share * flat[at + e]
        a, b, c, d = kind(wz[0]), kind(wz[1]), kind(wz[2]), kind(wz[3])
        for e in range(_EACH):
            mean[e] = a * line[e] + b * line[_EACH + e] + c * line[2 * _EACH + e] + d * line[3 * _EACH + e]
        for e in range(3):
            du[p, 3 * e], du[p, 3 * e + 1], du[p, 3 * e + 2] = mean[4 * e], mean[4 * e + 1], mean[4 * e + 2]
            u[p, e] = mean[4 * e + 3]


def interpolate(
    x: np.ndarray, order: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray,
    u: np.ndarray, du: np.ndarray,
) -> None:  # fmt: skip
    """Fill rows ``order`` of u (n, 3) and du (n, 3, 3) at x (n, 3) m from a ``field`` (px, py, pz, 3, 4).

    That is ``differences.jacobian`` of the velocity at the grid points, with the field, and the values are
    those of ``cubic.interpolate`` but for rounding. ``order`` (k,) int64 names every row that is wanted, best
    sorted by cell.
    """
    _interpolate(x, order, origin, spacing, field, CONVOLUTION, u, view_as(du, len(du), 9))
