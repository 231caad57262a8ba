"""Between particles and grid points: trilinear interpolation and its transpose, the scatter.

With xi = (x - origin) / spacing, cell i = floor(xi) and fraction f = xi - i clamped to [0, 1], the weight of
the lower point is 1 - f and that of the upper one f, multiplied over the axes. The eight weights sum to one,
so nothing is ever extrapolated and a scatter keeps the total. Source: Fluid Simulation for Video Games,
parts 3 and 8. Point fields have the shape (nx+1, ny+1, nz+1) or (nx+1, ny+1, nz+1, ...), C order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS, FAST
from ecs_fluid.kernels.partition import axis_cell, view_as

_BLOCK = 64
"""Rows whose places and weights are found together, in vectors, before their values are fetched."""


@njit(fastmath=FAST, forceinline=True)
def axis_weight(x: float, origin: float, inverse: float, cell: int) -> float:
    """Weight of the upper point of ``cell`` along one axis, clamped to [0, 1]; NaN stays NaN."""
    f = (x - origin) * inverse - cell
    if f < 0.0:
        return 0.0
    if f > 1.0:
        return 1.0
    return f


@njit(parallel=True, cache=True, fastmath=FAST)
def _interpolate(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray, apart: bool
) -> None:
    """``field`` (nx+1, ny+1, nz+1, m) at ``x`` (n, 3) into the flat ``out``: (n, m), or apart (m, n)."""
    n, m = x.shape[0], field.shape[3]
    step, lane = (np.uintp(1), np.uintp(n)) if apart else (np.uintp(m), np.uintp(1))
    kind = field.dtype.type
    one = kind(1)
    nx, ny, nz = field.shape[0] - 1, field.shape[1] - 1, field.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    flat = field.reshape(field.size)
    row_length = (nz + 1) * m
    plane_length = (ny + 1) * row_length
    for chunk in prange(CHUNKS):
        at, weight = np.empty(_BLOCK, np.uintp), np.empty((5, _BLOCK), field.dtype)
        last = (chunk + 1) * n // CHUNKS
        for begin in range(chunk * n // CHUNKS, last, _BLOCK):
            count = min(_BLOCK, last - begin)
            for q in range(count):
                p = begin + q
                i = axis_cell(x[p, 0], origin[0], inv0, nx)
                j = axis_cell(x[p, 1], origin[1], inv1, ny)
                k = axis_cell(x[p, 2], origin[2], inv2, nz)
                fx = kind(axis_weight(x[p, 0], origin[0], inv0, i))
                fy = kind(axis_weight(x[p, 1], origin[1], inv1, j))
                weight[0, q], weight[1, q] = (one - fx) * (one - fy), (one - fx) * fy
                weight[2, q], weight[3, q] = fx * (one - fy), fx * fy
                weight[4, q] = kind(axis_weight(x[p, 2], origin[2], inv2, k))
                at[q] = i * plane_length + j * row_length + k * m
            for q in range(count):
                w0, w1, w2, w3, fz = weight[0, q], weight[1, q], weight[2, q], weight[3, q], weight[4, q]
                gz = one - fz
                # Unsigned, so that no index is tested for being negative, which took 15 % of the time.
                a = at[q]
                b, d = a + np.uintp(row_length), a + np.uintp(plane_length)
                e = d + np.uintp(row_length)
                # The lower and the upper z point of a corner pair are m apart, so 2 m values are adjacent.
                up = np.uintp(m)
                at_row = np.uintp(begin + q) * step
                if m == 3:
                    for c in range(np.uintp(3)):
                        lower = w0 * flat[a + c] + w1 * flat[b + c] + w2 * flat[d + c] + w3 * flat[e + c]
                        c3 = c + np.uintp(3)
                        upper = w0 * flat[a + c3] + w1 * flat[b + c3] + w2 * flat[d + c3] + w3 * flat[e + c3]
                        out[at_row + c * lane] = gz * lower + fz * upper
                else:
                    for c in range(up):
                        lower = w0 * flat[a + c] + w1 * flat[b + c] + w2 * flat[d + c] + w3 * flat[e + c]
                        cm = c + up
                        upper = w0 * flat[a + cm] + w1 * flat[b + cm] + w2 * flat[d + cm] + w3 * flat[e + cm]
                        out[at_row + c * lane] = gz * lower + fz * upper


def interpolate(
    x: np.ndarray,
    origin: np.ndarray,
    spacing: np.ndarray,
    field: np.ndarray,
    out: np.ndarray | None = None,
    apart: bool = False,
) -> np.ndarray:
    """Trilinear interpolation of a point field at ``x`` (n, 3) m: (n,) + the field's trailing shape.

    Any number of components and any trailing shape: () scalar, (3,) vector, (3, 3) gradient. A position
    outside takes the value of the nearest point of the box. Exact for fields linear in x, y and z each.
    The result has the dtype and unit of ``field``, which must be C-contiguous; fills ``out`` if given. With
    ``apart`` each component is an array of its own: the field's trailing shape + (n,).
    """
    if out is None:
        shape = (*field.shape[3:], len(x)) if apart else (len(x), *field.shape[3:])
        out = np.empty(shape, field.dtype)
    m = math.prod(field.shape[3:])
    _interpolate(x, origin, spacing, view_as(field, *field.shape[:3], m), view_as(out, out.size), apart)
    return out


@njit(parallel=True, cache=True, fastmath=FAST)
def _scatter(
    sx: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
    origin: np.ndarray,
    spacing: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add ``values`` (m, n) of sorted rows ``sx`` (3, n) to ``out`` (nx+1, ny+1, nz+1, m).

    A row of cells (i, j) writes to the points i, i+1 and j, j+1 only. Rows of cells whose i and j have the
    same parity share no point, so the four parities are done in turn, each of them in parallel: no races,
    and every point meets its contributions in an order that only the grid decides.
    """
    m = values.shape[0]
    kind = out.dtype.type
    one = kind(1)
    nx, ny, nz = out.shape[0] - 1, out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for colour in range(4):
        i_first, j_first = colour // 2, colour % 2
        i_count, j_count = (nx - i_first + 1) // 2, (ny - j_first + 1) // 2
        for task in prange(i_count * j_count):
            i = i_first + 2 * (task // j_count)
            j = j_first + 2 * (task % j_count)
            cell = (i * ny + j) * nz
            r0, r1 = out[i, j], out[i, j + 1]
            r2, r3 = out[i + 1, j], out[i + 1, j + 1]
            for k in range(nz):
                for p in range(start[cell + k], start[cell + k + 1]):
                    fx = kind(axis_weight(sx[0, p], origin[0], inv0, i))
                    fy = kind(axis_weight(sx[1, p], origin[1], inv1, j))
                    fz = kind(axis_weight(sx[2, p], origin[2], inv2, k))
                    gz = one - fz
                    w0, w1 = (one - fx) * (one - fy), (one - fx) * fy
                    w2, w3 = fx * (one - fy), fx * fy
                    for c in range(m):
                        lower, upper = gz * values[c, p], fz * values[c, p]
                        r0[k, c] += w0 * lower
                        r0[k + 1, c] += w0 * upper
                        r1[k, c] += w1 * lower
                        r1[k + 1, c] += w1 * upper
                        r2[k, c] += w2 * lower
                        r2[k + 1, c] += w2 * upper
                        r3[k, c] += w3 * lower
                        r3[k + 1, c] += w3 * upper


def scatter(
    sx: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
    origin: np.ndarray,
    spacing: np.ndarray,
    cells: np.ndarray,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Transpose of ``interpolate``: share each row's value among the eight points around it.

    out[point] = sum_p w_p(point) values_p, so the sum over all points is the sum over all rows. For a density
    per volume multiply ``values`` by 1 / (cell volume), for an average scatter a channel of ones and divide.

    ``sx`` (3, n) m and ``values`` (m, n) or (n,), sorted by cell with ``start`` (ncells + 1,) as
    ``partition`` made it for this same grid. Returns (nx+1, ny+1, nz+1, m), without the last axis for
    ``values`` (n,), in the dtype and unit of ``values``; ``out``, if given, is overwritten.
    """
    shape = (int(cells[0]) + 1, int(cells[1]) + 1, int(cells[2]) + 1)
    m = 1 if values.ndim == 1 else len(values)
    if out is None:
        out = np.empty(shape if values.ndim == 1 else (*shape, m), values.dtype)
    out[...] = 0
    _scatter(sx, values.reshape(m, sx.shape[1]), start, origin, spacing, view_as(out, *shape, m))
    return out
