"""Which points of a grid some positions read, and cubic splines through these points alone.

Particles in a thin stream read a few of the points of the box around them, and only there a field has to be
known. Along an axis the points that are read come in runs, of three at least. A spline goes through each run
by itself: its coefficients are those of ``cubic.coefficients`` for a grid that ends where the run does, which
keeps quadratic fields exact; inside of a run ends are forgotten by a factor of 0.27 from point to point.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.cubic import TAPS
from ecs_fluid.kernels.grids.partition import axis_cell, view_as


@parallel(error_model="numpy")
def _mark_cells(
    chunk: int, x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, marked: np.ndarray
) -> None:
    n, cells = x.shape[0], marked.shape
    a, b, c = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = axis_cell(x[row, 0], origin[0], a, cells[0])
        j = axis_cell(x[row, 1], origin[1], b, cells[1])
        k = axis_cell(x[row, 2], origin[2], c, cells[2])
        marked[i, j, k] = 1  # by several threads, maybe, but all write the same


def mark_cells(x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, marked: np.ndarray) -> None:
    """Set ``marked`` (nx, ny, nz) uint8 to 1 where one of ``x`` (n, 3) m is; outside it is the nearest cell.

    ``origin`` and ``spacing`` (3,) m are those of the grid, whose cells ``marked`` is about.
    """
    _mark_cells(x, origin, spacing, marked)


@parallel("marked.shape[0]")
def _mark_points(i: int, marked: np.ndarray, around: np.ndarray, read: np.ndarray) -> None:
    nx, ny, nz = marked.shape
    low, high = max(i - around[0], 0), min(i + 1 + around[0], nx)
    for j in range(ny):
        for k in range(nz):
            if marked[i, j, k]:
                for a in range(low, high + 1):
                    for b in range(max(j - around[1], 0), min(j + 1 + around[1], ny) + 1):
                        for c in range(max(k - around[2], 0), min(k + 1 + around[2], nz) + 1):
                            read[a, b, c] = 1


def points_read(marked: np.ndarray, cubic: bool) -> np.ndarray:
    """Points (nx + 1, ny + 1, nz + 1) uint8 that the positions in ``marked`` cells read: 1, others 0.

    Two along an axis, or with ``cubic`` four where the axis has three cells or more.
    """
    around = np.array([int(cubic and cells >= TAPS - 1) for cells in marked.shape])
    read = np.zeros(tuple(cells + 1 for cells in marked.shape), np.uint8)
    _mark_points(marked, around, read)
    return read


@lru_cache(maxsize=32)
def _factors(points: int) -> np.ndarray:
    """What the elimination of a tridiagonal matrix (5, 4, 4, ...; 1 beside) multiplies rows by."""
    factors, before = np.zeros(points), 0.0
    for i in range(1, points):
        before = factors[i] = 1.0 / (4.0 + (i == 1) - before)
    return factors


@parallel(fastmath=FAST, error_model="numpy")
def _filter_runs(chunk: int, values: np.ndarray, read: np.ndarray, factors: np.ndarray) -> None:
    """Coefficients in place of ``values`` (a, points, b, m) along the second axis, where ``read``."""
    count, points, beside, m = values.shape
    lines, kind = count * beside, values.dtype.type
    five, six, seven = kind(5), kind(6), kind(7)
    for line in range(chunk * lines // CHUNKS, (chunk + 1) * lines // CHUNKS):
        a, b = line // beside, line % beside
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
                end = kind(1) / (six if inner == 1 else five - factors[inner - 1])
                for e in range(m):
                    low, high = values[a, first, b, e], values[a, last, b, e]
                    low_step, high_step = low - values[a, first + 1, b, e], high - values[a, last - 1, b, e]
                    before = kind(0)
                    for r in range(1, inner + 1):
                        value = values[a, first + r, b, e]
                        right = seven * value - low if r == 1 else six * value
                        if r == inner:
                            right = right + value - high
                        before = (right - before) * (end if r == inner else factors[r])
                        values[a, first + r, b, e] = before
                    for r in range(inner - 1, 0, -1):
                        values[a, first + r, b, e] -= factors[r] * values[a, first + r + 1, b, e]
                    values[a, first, b, e] = values[a, first + 1, b, e] + low_step
                    values[a, last, b, e] = values[a, last - 1, b, e] + high_step
            first = last + 1


def to_coefficients(values: np.ndarray, read: np.ndarray) -> None:
    """Make coefficients for ``cubic.SPLINE`` of ``values`` (px, py, pz, m) at points ``read`` (px, py, pz).

    In place; what stands elsewhere has no influence and stays. As in ``cubic.coefficients``, an axis of one
    or two cells is left as it is.
    """
    m = values.shape[3]
    for axis in range(3):
        points = values.shape[axis]
        if points >= TAPS:
            before, behind = int(np.prod(values.shape[:axis])), int(np.prod(values.shape[axis + 1 : 3]))
            _filter_runs(
                view_as(values, before, points, behind, m),
                view_as(read, before, points, behind),
                _factors(points).astype(values.dtype),
            )
