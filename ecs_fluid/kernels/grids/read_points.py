"""The points of a grid that given positions read, and cubic splines through these points alone.

Particles in a thin stream read only a few points of the box around them, and a field must be known only
there. Along an axis the points that are read form runs of at least three. Each run has a spline of its own,
with the coefficients that ``cubic.coefficients`` would find for a grid that ends where the run ends. That
keeps quadratic fields exact, and inside a run the effect of its ends falls by a factor of 0.27 per point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE
from ecs_fluid.kernels.grids.cubic import TAPS, elimination_factors
from ecs_fluid.kernels.grids.partition import cell_index, view_as


def mark_cells(x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, marked: np.ndarray) -> None:
    """Set ``marked`` (nx, ny, nz) uint8 to 1 in cells that hold one of ``x`` (n, 3) m, or are nearest to it.

    ``origin`` and ``spacing`` (3,) m are those of the grid.
    """
    view_as(marked, marked.size)[cell_index(x, origin, spacing, np.array(marked.shape))] = 1


@parallel("read.shape[0]", error_model="numpy")
def _mark_points(i: int, marked: np.ndarray, around: np.ndarray, read: np.ndarray, count: np.ndarray) -> None:
    """Mark the points of plane ``i`` that are read: along each axis from ``around`` before a marked cell
    on."""
    nx, ny, nz = marked.shape
    beside, line = np.zeros((ny, nz), np.uint8), np.empty(nz, np.uint8)
    for a in range(max(i - 1 - around[0], 0), min(i + around[0], nx - 1) + 1):
        for j in range(ny):
            for k in range(nz):
                beside[j, k] |= marked[a, j, k]
    for j in range(ny + 1):
        line[:] = 0
        for b in range(max(j - 1 - around[1], 0), min(j + around[1], ny - 1) + 1):
            for k in range(nz):
                line[k] |= beside[b, k]
        row = read[i, j]
        for k in range(nz):
            if line[k]:
                for c in range(max(k - around[2], 0), min(k + 1 + around[2], nz) + 1):
                    row[c] = 1
        for c in range(nz + 1):
            count[i] += row[c]


@parallel("read.shape[0]", error_model="numpy")
def _list_points(
    i: int, read: np.ndarray, first: np.ndarray, origin: np.ndarray, spacing: np.ndarray, x: np.ndarray
) -> None:
    at = first[i]
    for j in range(read.shape[1]):
        for k in range(read.shape[2]):
            if read[i, j, k]:
                x[at, 0] = origin[0] + spacing[0] * i
                x[at, 1] = origin[1] + spacing[1] * j
                x[at, 2] = origin[2] + spacing[2] * k
                at += 1


@parallel("read.shape[0]", error_model="numpy")
def _fill_points(i: int, read: np.ndarray, first: np.ndarray, values: np.ndarray, field: np.ndarray) -> None:
    at = first[i]
    for j in range(read.shape[1]):
        for k in range(read.shape[2]):
            for e in range(field.shape[3]):
                field[i, j, k, e] = values[at, e] if read[i, j, k] else 0.0
            at += read[i, j, k]


class PointsRead:
    """The points (nx + 1, ny + 1, nz + 1) that positions in the ``marked`` cells (nx, ny, nz) read.

    A position reads two along an axis, or with ``cubic`` four if the axis has three cells or more.
    """

    def __init__(self, marked: np.ndarray, cubic: bool) -> None:
        around = np.array([int(cubic and cells >= TAPS - 1) for cells in marked.shape])
        self.read = np.zeros(tuple(cells + 1 for cells in marked.shape), np.uint8)
        """1 where a point is read, else 0"""
        count = np.zeros(len(self.read) + 1, np.int64)
        _mark_points(marked, around, self.read, count[1:])
        self._first = np.cumsum(count)

    def places(self, origin: np.ndarray, spacing: np.ndarray, dtype: Any) -> np.ndarray:
        """Positions (m, 3) m of these points, in the order of memory."""
        x = np.empty((self._first[-1], 3), dtype)
        _list_points(self.read, self._first, origin, spacing, x)
        return x

    def spread(self, values: np.ndarray) -> np.ndarray:
        """``values`` (m, e) at these points of the grid (nx + 1, ny + 1, nz + 1, e), zeros elsewhere."""
        field = np.empty((*self.read.shape, values.shape[1]), values.dtype)
        _fill_points(self.read, self._first, values, field)
        return field


@njit(**INLINE)
def _filter_run(v: Any, first: int, last: int, at: int, factors: Any, end: Any) -> None:
    """Filter three columns from ``at`` on together, since each number depends on the one before in its
    column."""
    kind = type(end)
    six, seven = kind(6), kind(7)
    inner, c, d = last - first - 1, at + 1, at + 2
    low = v[first, at], v[first, c], v[first, d]
    high = v[last, at], v[last, c], v[last, d]
    low_step = low[0] - v[first + 1, at], low[1] - v[first + 1, c], low[2] - v[first + 1, d]
    high_step = high[0] - v[last - 1, at], high[1] - v[last - 1, c], high[2] - v[last - 1, d]
    x = y = z = kind(0)
    for r in range(1, inner + 1):
        row = first + r
        more, factor = (seven if r == 1 else six), (end if r == inner else factors[r])
        e, f, g = more * v[row, at], more * v[row, c], more * v[row, d]
        if r == 1:
            e, f, g = e - low[0], f - low[1], g - low[2]
        if r == inner:
            e, f, g = e + v[row, at] - high[0], f + v[row, c] - high[1], g + v[row, d] - high[2]
        x, y, z = (e - x) * factor, (f - y) * factor, (g - z) * factor
        v[row, at], v[row, c], v[row, d] = x, y, z
    for r in range(inner - 1, 0, -1):
        row, factor = first + r, factors[r]
        x, y, z = v[row, at] - factor * x, v[row, c] - factor * y, v[row, d] - factor * z
        v[row, at], v[row, c], v[row, d] = x, y, z
    v[first, at], v[first, c], v[first, d] = x + low_step[0], y + low_step[1], z + low_step[2]
    at_end = v[last - 1, at], v[last - 1, c], v[last - 1, d]
    v[last, at] = at_end[0] + high_step[0]
    v[last, c] = at_end[1] + high_step[1]
    v[last, d] = at_end[2] + high_step[2]


@parallel(fastmath=FAST, error_model="numpy")
def _filter_runs(chunk: int, values: np.ndarray, read: np.ndarray, factors: np.ndarray) -> None:
    """Coefficients in place of ``values`` (a, points, b, 3) along the second axis, where ``read``."""
    count, points, beside, m = values.shape
    lines, kind = count * beside, values.dtype.type
    for line in range(chunk * lines // CHUNKS, (chunk + 1) * lines // CHUNKS):
        a, b = line // beside, line % beside
        columns = values[a].reshape(points, beside * m)
        first = 0
        while first < points:
            if read[a, first, b] == 0:
                first += 1
                continue
            last = first
            while last + 1 < points and read[a, last + 1, b]:
                last += 1
            inner = last - first - 1  # points of the run between its ends
            if inner > 0:
                # The last row of the elimination has a 5, or as the only one a 6.
                end = kind(1) / (kind(6) if inner == 1 else kind(5) - factors[inner - 1])
                for e in range(0, m, 3):
                    _filter_run(columns, first, last, m * b + e, factors, end)
            first = last + 1


def to_coefficients(values: np.ndarray, read: np.ndarray) -> None:
    """Make coefficients for ``cubic.SPLINE`` of ``values`` (px, py, pz, m) at points ``read`` (px, py, pz);
    m is a multiple of three.

    This is done in place; values elsewhere have no effect and stay. As in ``cubic.coefficients``, an axis of
    one or two cells is left as it is.
    """
    m = values.shape[3]
    for axis in range(3):
        points = values.shape[axis]
        if points >= TAPS:
            before, behind = int(np.prod(values.shape[:axis])), int(np.prod(values.shape[axis + 1 : 3]))
            _filter_runs(
                view_as(values, before, points, behind, m),
                view_as(read, before, points, behind),
                elimination_factors(points).astype(values.dtype),
            )
