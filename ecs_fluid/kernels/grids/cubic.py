"""Between particles and grid points by cubic convolution: third order, where the trilinear one is second.

Along an axis the points at -1, 0, 1, 2 from the lower end of a cell have, at the fraction f, the weights of
Keys' kernel with a = -1/2, which vortex methods call M4'; over the axes they multiply. Quadratic fields come
out exactly, and a scatter keeps the moments 0, 1 and 2. In the outermost cells the missing point is
extrapolated, f_-1 = 3 f_0 - 3 f_1 + f_2, which keeps both. Source: Keys, IEEE Trans. Acoust. Speech Signal
Process. 29 (1981); Monaghan, J. Comput. Phys. 60 (1985).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.interpolation import axis_weight, scattering
from ecs_fluid.kernels.grids.partition import axis_cell, view_as

TAPS = 4
"""Points that a position reads along an axis."""


@njit(fastmath=FAST, forceinline=True)
def axis_weights(f: float, cell: int, cells: int, weights: np.ndarray) -> int:
    """First of four points, and their weights; the point off the grid has its share given to three others."""
    g = 1.0 - f
    a, d = -0.5 * f * g * g, -0.5 * f * f * g
    b = 1.0 + f * f * (1.5 * f - 2.5)
    c = 1.0 + g * g * (1.5 * g - 2.5)
    first = cell - 1
    if cells < 3:  # too few points for a cubic
        first, a, b, c, d = cell, g, f, 0.0, 0.0
    elif cell == 0:
        first, a, b, c, d = 0, b + 3.0 * a, c - 3.0 * a, d + a, 0.0
    elif cell == cells - 1:
        first, a, b, c, d = cell - 2, 0.0, a + d, b - 3.0 * d, c + 3.0 * d
    weights[0], weights[1], weights[2], weights[3] = a, b, c, d
    return first


@njit(fastmath=FAST, forceinline=True)
def weights_at(x: float, origin: float, inverse: float, cells: int, weights: np.ndarray) -> int:
    """``axis_weights`` of a coordinate ``x`` [m] on an axis of that many ``cells``."""
    cell = axis_cell(x, origin, inverse, cells)
    return int(axis_weights(axis_weight(x, origin, inverse, cell), cell, cells, weights))


@parallel(fastmath=FAST)
def _interpolate(
    chunk: int, x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray
) -> None:
    """``field`` (nx+1, ny+1, nz+1, m) at ``x`` (n, 3) into ``out`` (n, m)."""
    n, m = out.shape
    kind = field.dtype.type
    nx, ny, nz = field.shape[0] - 1, field.shape[1] - 1, field.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    flat = field.reshape(field.size)
    row_length = (nz + 1) * m
    plane_length = (ny + 1) * row_length
    taps_x, taps_y, taps_z = 2 if nx < 3 else TAPS, 2 if ny < 3 else TAPS, 2 if nz < 3 else TAPS
    wx, wy, wz = np.empty(TAPS), np.empty(TAPS), np.empty(TAPS)
    line = np.empty(TAPS * m, field.dtype)
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = weights_at(x[p, 0], origin[0], inv0, nx, wx)
        j = weights_at(x[p, 1], origin[1], inv1, ny, wy)
        k = weights_at(x[p, 2], origin[2], inv2, nz, wz)
        corner = i * plane_length + j * row_length + k * m
        if m == 3 and taps_z == TAPS:
            a, b, c, d = kind(wz[0]), kind(wz[1]), kind(wz[2]), kind(wz[3])
            u = v = w = kind(0.0)
            for s in range(taps_x):
                for t in range(taps_y):
                    share = kind(wx[s] * wy[t])
                    at = corner + s * plane_length + t * row_length
                    r = flat[at : at + 12]
                    u += share * (a * r[0] + b * r[3] + c * r[6] + d * r[9])
                    v += share * (a * r[1] + b * r[4] + c * r[7] + d * r[10])
                    w += share * (a * r[2] + b * r[5] + c * r[8] + d * r[11])
            out[p, 0], out[p, 1], out[p, 2] = u, v, w
            continue
        width = taps_z * m
        line[:width] = 0.0
        for s in range(taps_x):
            for t in range(taps_y):
                share = kind(wx[s] * wy[t])
                at = corner + s * plane_length + t * row_length
                row = flat[at : at + width]
                for e in range(width):
                    line[e] += share * row[e]
        for e in range(m):
            total = kind(wz[0]) * line[e]
            for s in range(1, taps_z):
                total += kind(wz[s]) * line[s * m + e]
            out[p, e] = total


def interpolate(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Like ``interpolation.interpolate``, of third order; a position outside takes the nearest point's value.

    An axis of one or two cells is interpolated linearly. Overshoots by up to an eighth of a jump.
    """
    if out is None:
        out = np.empty((len(x), *field.shape[3:]), field.dtype)
    m = int(np.prod(field.shape[3:]))
    _interpolate(x, origin, spacing, view_as(field, *field.shape[:3], m), view_as(out, len(x), m))
    return out


@parallel(
    "((out.shape[0] - i_first + TAPS - 2) // TAPS) * ((out.shape[1] - j_first + TAPS - 2) // TAPS)",
    fastmath=FAST,
)
def _scatter_class(
    task: int, i_first: int, j_first: int, sx: np.ndarray, values: np.ndarray, start: np.ndarray,
    origin: np.ndarray, spacing: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Rows of cells i_first, i_first + TAPS, ... and j_first, j_first + TAPS, ..."""
    m = values.shape[0]
    kind = out.dtype.type
    nx, ny, nz = out.shape[0] - 1, out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    # A short axis has but two points, and other rows of points may be another thread's: weights of zero.
    taps_z = 2 if nz < 3 else TAPS
    width = taps_z * m
    flat = out.reshape(out.size)
    row_length = (nz + 1) * m
    plane_length = (ny + 1) * row_length
    j_count = (ny - j_first + TAPS - 1) // TAPS
    i = i_first + TAPS * (task // j_count)
    j = j_first + TAPS * (task % j_count)
    cell = (i * ny + j) * nz
    if start[cell] == start[cell + nz]:
        return
    wx, wy, wz = np.empty(TAPS), np.empty(TAPS), np.empty(TAPS)
    line = np.empty(width, out.dtype)
    for k in range(nz):
        for p in range(start[cell + k], start[cell + k + 1]):
            i0 = axis_weights(axis_weight(sx[0, p], origin[0], inv0, i), i, nx, wx)
            j0 = axis_weights(axis_weight(sx[1, p], origin[1], inv1, j), j, ny, wy)
            k0 = axis_weights(axis_weight(sx[2, p], origin[2], inv2, k), k, nz, wz)
            for e in range(taps_z):
                for c in range(m):
                    line[e * m + c] = kind(wz[e]) * values[c, p]
            for s in range(TAPS):
                if wx[s] == 0.0:
                    continue
                for t in range(TAPS):
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
    out: np.ndarray,
) -> None:  # fmt: skip
    """Add ``values`` (m, n) of sorted rows ``sx`` (3, n) to ``out`` (nx+1, ny+1, nz+1, m).

    A row of cells (i, j) writes to four points from i - 1 and from j - 1 on. Rows whose i and j agree modulo
    four share no point, so the 16 classes are done in turn, each of them in parallel (see ``interpolation``).
    """
    for colour in range(TAPS * TAPS):
        _scatter_class(colour // TAPS, colour % TAPS, sx, values, start, origin, spacing, out)


scatter = scattering(_scatter)
"""Among the 64 points around, by the weights of ``interpolate``, which may be negative."""


@lru_cache(maxsize=32)
def _coarsening(fine: int, coarse: int, dtype: str) -> np.ndarray:
    """Weights (coarse + 1, fine + 1) of the points of ``fine`` cells at those of ``coarse`` on one axis."""
    shares, weights = np.zeros((coarse + 1, fine + 1)), np.empty(TAPS)
    for point in range(fine + 1):
        cell = min(point * coarse // fine, coarse - 1)
        first = axis_weights.py_func(point * coarse / fine - cell, cell, coarse, weights)
        for tap in range(min(TAPS, coarse + 1 - first)):
            shares[first + tap, point] += weights[tap]
    return shares.astype(dtype)


@parallel(fastmath=FAST)
def _gather_axis(chunk: int, field: np.ndarray, shares: np.ndarray, out: np.ndarray) -> None:
    """out[a, j] = sum_i shares[j, i] field[a, i]: (a, fine points, b) to (a, coarse points, b)."""
    coarse, fine = shares.shape
    width = field.shape[2]
    rows = out.shape[0] * coarse
    for r in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        a, j = r // coarse, r % coarse
        row = out[a, j]
        for e in range(width):
            row[e] = 0.0
        for i in range(fine):
            w = shares[j, i]
            if w != 0.0:
                given = field[a, i]
                for e in range(width):
                    row[e] += w * given[e]


def coarsen(field: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """What stands at the points of a grid, (px, py, pz, m), shared among those of one of fewer cells.

    That one has ``cells`` (3,) and covers the same box. The sum over the points and, like those of a scatter,
    the moments 1 and 2 stay.
    """
    for axis in range(3):
        shares = _coarsening(field.shape[axis] - 1, int(cells[axis]), field.dtype.name)
        before, after = field.shape[:axis], field.shape[axis + 1 :]
        out = np.empty((*before, len(shares), *after), field.dtype)
        ends = math.prod(before), math.prod(after)
        _gather_axis(
            view_as(field, ends[0], field.shape[axis], ends[1]), shares, view_as(out, ends[0], -1, ends[1])
        )
        field = out
    return field
