"""Transfer between particles and grid points: trilinear interpolation and its transpose, the scatter.

With xi = (x - origin) / spacing, cell i = floor(xi) and fraction f = xi - i clamped to [0, 1], the weight of
the lower point is 1 - f and that of the upper one f, multiplied over the axes. The eight weights sum to one,
so nothing is ever extrapolated and a scatter keeps the total. Source: Fluid Simulation for Video Games,
parts 3 and 8. Point fields have the shape (nx+1, ny+1, nz+1) or (nx+1, ny+1, nz+1, ...), C order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.lanes import load_four, spread_four, store_four
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.grids.partition import view_as

BLOCK = 128
"""Number of rows whose places and weights are computed together, in vectors, before values are fetched."""


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def axis_weight(x: float, origin: float, inverse: float, cell: int) -> float:
    """Weight of the upper point of ``cell`` along one axis, clamped to [0, 1]; NaN stays NaN."""
    f = (x - origin) * inverse - cell
    if f < 0.0:
        return 0.0
    if f > 1.0:
        return 1.0
    return f


@njit(fastmath=FAST, forceinline=True)
def cell_and_fraction(x: float, origin: float, inverse: float, cells: float) -> tuple[float, float]:
    """Cell along one axis, a whole number, and weight of its upper point; NaN stays NaN."""
    at = (x - origin) * inverse
    at = 0.0 if at < 0.0 else at
    at = cells if at > cells else at
    cell = np.floor(at)
    cell = cell if cell < cells - 1.0 else cells - 1.0
    return cell, at - cell


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _places(x: Any, mesh: Any, corner: Any, weight: Any) -> int:
    """For BLOCK flat rows x, the index of the lower corner in the flat field, and weights (6, BLOCK).

    The weights are those of the corners (0, 0), (0, 1), (1, 0), (1, 1) in x and y, and of the lower and the
    upper z. The rows of ``mesh`` are origin, inverse spacing, cells, and strides in the field. Returns the
    largest corner index.
    """
    wide_vectors()
    w0, w1, w2, w3, gz, fz = weight[0], weight[1], weight[2], weight[3], weight[4], weight[5]
    kind = weight.dtype.type
    one, last = kind(1), np.int64(0)
    for q in range(BLOCK):
        i, at_x = cell_and_fraction(x[3 * q], mesh[0, 0], mesh[1, 0], mesh[2, 0])
        j, at_y = cell_and_fraction(x[3 * q + 1], mesh[0, 1], mesh[1, 1], mesh[2, 1])
        k, at_z = cell_and_fraction(x[3 * q + 2], mesh[0, 2], mesh[1, 2], mesh[2, 2])
        fx, fy, f = kind(at_x), kind(at_y), kind(at_z)
        gx, gy = one - fx, one - fy
        w0[q], w1[q], w2[q], w3[q], gz[q], fz[q] = gx * gy, gx * fy, fx * gy, fx * fy, one - f, f
        # Whole numbers far below 2^53; the result for NaN is clamped to the field.
        at = np.int64(i * mesh[3, 0] + j * mesh[3, 1] + k * mesh[3, 2])
        corner[q] = at if at > 0 else 0
        last = at if at > last else last
    return int(last)


@njit(fastmath=FAST, forceinline=True)
def _blend(
    flat: Any, a: Any, plane: Any, row: Any, up: Any, weight: Any, q: Any, blended: Any, to: Any
) -> None:
    """Interpolate four values from the lower corner ``a`` on; the two points along z are ``up`` apart."""
    b, d, e = a + row, a + plane, a + plane + row
    w0, w1 = spread_four(weight[0, q]), spread_four(weight[1, q])
    w2, w3 = spread_four(weight[2, q]), spread_four(weight[3, q])
    low = w0 * load_four(flat, a) + w1 * load_four(flat, b)
    low += w2 * load_four(flat, d) + w3 * load_four(flat, e)
    high = w0 * load_four(flat, a + up) + w1 * load_four(flat, b + up)
    high += w2 * load_four(flat, d + up) + w3 * load_four(flat, e + up)
    store_four(blended, to, spread_four(weight[4, q]) * low + spread_four(weight[5, q]) * high)


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _blend_singly(flat: Any, a: int, plane: int, row: int, m: int, weight: Any, blended: Any) -> None:
    """Interpolate all m values, one after the other."""
    b, d, e = a + row, a + plane, a + plane + row
    for c in range(m):
        h = c + m
        low = weight[0] * flat[a + c] + weight[1] * flat[b + c]
        low += weight[2] * flat[d + c] + weight[3] * flat[e + c]
        high = weight[0] * flat[a + h] + weight[1] * flat[b + h]
        high += weight[2] * flat[d + h] + weight[3] * flat[e + h]
        blended[c] = weight[4] * low + weight[5] * high


@parallel(fastmath=FAST)
def _interpolate(
    chunk: int, x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray
) -> None:
    """``field`` (nx+1, ny+1, nz+1, m) at flat ``x`` (3 n,) into the flat ``out`` (n m,)."""
    n, m = x.size // 3, field.shape[3]
    plane, row = field.shape[1] * field.shape[2] * m, field.shape[2] * m
    mesh = np.empty((4, 3))
    for a in range(3):
        mesh[0, a], mesh[1, a], mesh[2, a] = origin[a], 1.0 / spacing[a], field.shape[a] - 1.0
    mesh[3, 0], mesh[3, 1], mesh[3, 2] = plane, row, m
    flat = field.reshape(field.size)
    width = (m + 3) // 4 * 4
    blocks = (n + BLOCK - 1) // BLOCK
    safe = flat.size - plane - row - m - width
    corner, weight = np.empty(BLOCK, np.int64), np.empty((6, BLOCK), field.dtype)
    padded, blended = np.empty(3 * BLOCK, x.dtype), np.empty(BLOCK * width, field.dtype)
    for block in range(chunk * blocks // CHUNKS, (chunk + 1) * blocks // CHUNKS):
        begin = block * BLOCK
        count = min(BLOCK, n - begin)
        positions = x[3 * begin : 3 * (begin + count)]
        if count < BLOCK:
            # Every row is computed in a whole block, so that its bits do not depend on its position.
            for a in range(3 * BLOCK):
                padded[a] = positions[a] if a < positions.size else positions[0]
            positions = padded
        farthest = _places(positions, mesh, corner, weight)
        for k in range(count if safe >= 0 else 0):
            q: Any = np.uintp(k)  # unsigned, so that indices need no test for negative ones
            a = corner[q] if corner[q] < safe else safe
            if width == 4:
                _blend(flat, a, plane, row, m, weight, q, blended, np.uintp(4) * q)
            else:
                for c in range(0, width, 4):
                    to = q * np.uintp(width) + np.uintp(c)
                    _blend(flat, a + c, plane, row, m, weight, q, blended, to)
        for q in range(count if farthest > safe else 0):
            if corner[q] > safe:  # vectors would end beyond the field
                _blend_singly(flat, corner[q], plane, row, m, weight[:, q], blended[q * width :])
        if m == 3:
            rows = out[3 * begin : 3 * (begin + count)]
            for q in range(count):
                for c in range(3):
                    rows[3 * q + c] = blended[4 * q + c]
        else:
            rows = out[m * begin : m * (begin + count)]
            for q in range(count):
                for c in range(m):
                    rows[q * m + c] = blended[q * width + c]


def interpolate(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Trilinear interpolation of a point field at ``x`` (n, 3) m: (n,) + the field's trailing shape.

    Any number of components and any trailing shape: () scalar, (3,) vector, (3, 3) gradient. A position
    outside takes the value of the nearest point of the box. Exact for fields linear in x, y and z each.
    The result has the dtype and unit of ``field``, which must be C-contiguous; fills ``out`` if given.
    """
    if out is None:
        out = np.empty((len(x), *field.shape[3:]), field.dtype)
    if out.size:
        points = view_as(field, *field.shape[:3], math.prod(field.shape[3:]))
        _interpolate(x.reshape(-1), origin, spacing, points, view_as(out, out.size))
    return out


@parallel("((out.shape[0] - i_first) // 2) * ((out.shape[1] - j_first) // 2)", fastmath=FAST)
def _scatter_class(
    task: int, i_first: int, j_first: int, sx: np.ndarray, values: np.ndarray, start: np.ndarray,
    origin: np.ndarray, spacing: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Scatter the rows of cells i_first, i_first + 2, ... and j_first, j_first + 2, ..."""
    m = values.shape[0]
    kind = out.dtype.type
    one = kind(1)
    ny, nz = out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    j_count = (ny - j_first + 1) // 2
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


@njit(cache=True)
def _scatter(
    sx: np.ndarray, values: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Add ``values`` (m, n) of sorted rows ``sx`` (3, n) to ``out`` (nx+1, ny+1, nz+1, m).

    A row of cells (i, j) writes to the points i, i+1 and j, j+1 only. Rows of cells whose i and j have the
    same parity share no point, so the four parities are done in turn, each of them in parallel: no races,
    and every point meets its contributions in an order that only the grid decides.
    """
    for colour in range(4):
        _scatter_class(colour // 2, colour % 2, sx, values, start, origin, spacing, out)


def scattering(kernel: Callable[..., None], *tables: np.ndarray) -> Callable[..., np.ndarray]:
    """A function that shares values among the points of a new grid, by that kernel with these ``tables``."""

    def scatter(
        sx: np.ndarray, values: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
        cells: np.ndarray, out: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Transpose of ``interpolate``: share each row's value among the grid points around it.

        out[point] = sum_p w_p(point) values_p, so the sum over all points is the sum over all rows. For a
        density per volume multiply ``values`` by 1 / (cell volume), for an average scatter a channel of ones
        and divide.

        ``sx`` (3, n) m and ``values`` (m, n) or (n,), sorted by cell with ``start`` (ncells + 1,) as
        ``partition`` made it for this same grid. Returns (nx+1, ny+1, nz+1, m), without the last axis for
        ``values`` (n,), in the dtype and unit of ``values``; ``out``, if given, is overwritten.
        """
        shape = *(int(n) + 1 for n in cells), *values.shape[:-1]
        if out is None:
            out = np.empty(shape, values.dtype)
        out[...] = 0
        rows = np.atleast_2d(values)
        kernel(sx, rows, start, origin, spacing, view_as(out, *shape[:3], len(rows)), *tables)
        return out

    return scatter


scatter = scattering(_scatter)
"""Among the eight points of the cell, by the weights of ``interpolate``."""
