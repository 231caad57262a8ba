"""Rows sorted by the grid cell they are in: a stable, parallel counting sort, and the moves that go with it.

The cell of a row is floor((x - origin) / spacing) per axis, clamped to the grid, and its linear index is
(i ny + j) nz + k. Sorted rows of one row of cells (fixed i, j) are adjacent in memory, so a neighbour loop
reads a few long contiguous runs. Positions must be finite; the result never depends on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS
from ecs_fluid.kernels.compiled.parallel import parallel

_BUCKETS = 512
_ROWS_PER_BUCKET = 16
"""Few rows are sorted with fewer buckets: otherwise counting over all chunks would dominate."""


@njit(fastmath=False, error_model="numpy", forceinline=True)
def axis_cell(x: float, origin: float, inverse: float, cells: int) -> int:
    """Cell of coordinate ``x`` [m] along one axis; ``inverse`` is 1 / spacing [1/m]."""
    # Clamped as floats first: a number too large for an integer would become the least integer.
    cell = int(min((x - origin) * inverse, float(cells)))
    # int() rounds towards zero, which after the lower clamp equals floor.
    return min(max(cell, 0), cells - 1)


@parallel()
def _cell_index(
    c: int, x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray, out: np.ndarray
) -> None:
    n, inverse = x.shape[0], (1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2])
    for row in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        i = axis_cell(x[row, 0], origin[0], inverse[0], cells[0])
        j = axis_cell(x[row, 1], origin[1], inverse[1], cells[1])
        k = axis_cell(x[row, 2], origin[2], inverse[2], cells[2])
        out[row] = (i * cells[1] + j) * cells[2] + k


def cell_index(x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Linear cell index of every row of ``x`` (n, 3) m: int64 (n,). Points outside go to the nearest cell."""
    out = np.empty(len(x), np.int64)
    _cell_index(x, origin, spacing, cells, out)
    return out


@parallel()
def _count(c: int, cell: np.ndarray, per_bucket: int, place: np.ndarray) -> None:
    n = cell.shape[0]
    for row in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        place[c, cell[row] // per_bucket] += 1


@parallel()
def _sort_coarsely(c: int, cell: np.ndarray, per_bucket: int, place: np.ndarray, coarse: np.ndarray) -> None:
    n = cell.shape[0]
    for row in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        b = cell[row] // per_bucket
        coarse[place[c, b]] = row
        place[c, b] += 1


@parallel("len(first) - 1")
def _sort_bucket(
    b: int, cell: np.ndarray, per_bucket: int, first: np.ndarray, coarse: np.ndarray, start: np.ndarray,
    order: np.ndarray,
) -> None:  # fmt: skip
    n_cells = start.shape[0] - 1
    lowest = b * per_bucket
    width = min(per_bucket, n_cells - lowest)
    cursor = np.zeros(width, np.int64)
    for s in range(first[b], first[b + 1]):
        cursor[cell[coarse[s]] - lowest] += 1
    at = first[b]
    for m in range(width):
        start[lowest + m] = at
        at += cursor[m]
        cursor[m] = start[lowest + m]
    for s in range(first[b], first[b + 1]):
        row = coarse[s]
        m = cell[row] - lowest
        order[cursor[m]] = row
        cursor[m] += 1


@njit(cache=True)
def _sort(cell: np.ndarray, per_bucket: int, start: np.ndarray, order: np.ndarray) -> None:
    """Counting sort in two stable passes: by bucket of ``per_bucket`` cells, then by cell in each bucket.

    One pass would need a count per chunk and cell; two keep the counters in cache and both run in parallel.
    """
    n = cell.shape[0]
    n_cells = start.shape[0] - 1
    buckets = (n_cells + per_bucket - 1) // per_bucket
    place = np.zeros((CHUNKS, buckets), np.int64)
    _count(cell, per_bucket, place)
    first = np.empty(buckets + 1, np.int64)
    total = 0
    for b in range(buckets):
        first[b] = total
        for c in range(CHUNKS):
            count = place[c, b]
            place[c, b] = total
            total += count
    first[buckets] = total
    coarse = np.empty(n, np.int64)
    _sort_coarsely(cell, per_bucket, place, coarse)
    _sort_bucket(cell, per_bucket, first, coarse, start, order)
    start[n_cells] = n


def sort_by_cell(cell: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Stable sort of rows by cell: (start (n_cells + 1,) int64, order (n,) int64).

    ``order`` equals ``np.argsort(cell, kind="stable")``; cell c holds sorted rows start[c]:start[c + 1].
    ``cell`` (n,) int64 with values in [0, n_cells).
    """
    start = np.empty(n_cells + 1, np.int64)
    order = np.empty(len(cell), np.int64)
    buckets = max(1, min(_BUCKETS, len(cell) // _ROWS_PER_BUCKET))
    _sort(cell, max(1, -(-n_cells // buckets)), start, order)
    return start, order


def partition(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the rows of ``x`` (n, 3) m by cell of the grid: (start (ncells + 1,), order (n,)), both int64."""
    return sort_by_cell(cell_index(x, origin, spacing, cells), math.prod(map(int, cells)))


def view_as(array: np.ndarray, *shape: int) -> np.ndarray:
    """The same memory under another shape: a reshape that refuses to copy, since results would be lost."""
    if not array.flags.c_contiguous:
        raise ValueError(
            f"array of shape {array.shape} must be C-contiguous, but its strides are {array.strides}"
        )
    return array.reshape(shape)


@parallel()
def _gather(c: int, rows: np.ndarray, order: np.ndarray, out: np.ndarray) -> None:
    n, m = order.shape[0], rows.shape[1]
    for s in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        row = order[s]
        for j in range(m):
            out[j, s] = rows[row, j]


@parallel()
def _scatter_rows(c: int, columns: np.ndarray, order: np.ndarray, out: np.ndarray) -> None:
    n, m = order.shape[0], out.shape[1]
    for s in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        row = order[s]
        for j in range(m):
            out[row, j] = columns[j, s]


def gather_sorted(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Rows in table order to columns in sorted order: (n, k) becomes (k, n) and (n,) stays (n,).

    out[j, s] = rows[order[s], j]. Further axes of ``rows`` are flattened: (n, 3, 3) becomes (9, n).
    """
    n, width = len(order), math.prod(rows.shape[1:])
    out = np.empty((n,) if rows.ndim == 1 else (width, n), rows.dtype)
    _gather(rows.reshape(len(rows), width), order, out.reshape(width, n))
    return out


def scatter_sorted(columns: np.ndarray, order: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Inverse of ``gather_sorted``: out[order[s], j] = columns[j, s]; fills and returns ``out`` (n, ...)."""
    n = len(order)
    width = math.prod(out.shape[1:])
    _scatter_rows(columns.reshape(width, n), order, view_as(out, len(out), width))
    return out
