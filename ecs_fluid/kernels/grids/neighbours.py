"""Neighbours of groups of cell-sorted particles.

A group is a few consecutive sorted rows. All rows that may lie within a reach of any member form a few runs,
one for each row of cells (fixed i, j) nearby, and every member is paired with all of them.

`lane_groups` makes groups whose members are the lanes of a vector (``lanes``). They are paired with one row
after the other, read in place, of the runs that `lane_runs` finds; `near_rows` lists the rows within reach of
the group's box.

`list_groups` makes groups whose members are paired, one after the other, with a list: the columns of the
runs, copied side by side, so that pair loops run over full vectors. A list is one flat array; column c begins
at c WIDTH. It holds up to LIST_LENGTH rows, and after the last one zeros up to a multiple of PADDING, so a
pair loop must add nothing for a source whose columns are all zero. Longer neighbourhoods are split into
several lists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.compiled.lanes import (
    append_numbers_below,
    count_below,
    lanes_of,
    larger,
    load,
    spread,
)
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, LANES, wide_vectors
from ecs_fluid.kernels.grids.grid import grid_for_radius
from ecs_fluid.kernels.grids.partition import axis_cell, cell_index

PADDING = 32
"""Lists end at a multiple of this: two vectors of float32 on AVX-512, for loops that are unrolled twice."""

LIST_LENGTH = 1024
WIDTH = LIST_LENGTH + LANES
"""An odd number of cache lines: columns a power of two apart would map to the same lines."""

GROUP = 32
"""Most members of a group."""

FINE = 4
"""Number of cells stacked along z in place of one of the neighbour search: so runs of rows end sooner."""

SPAN = 2 * FINE
"""Most cells along z from which the lanes of one vector come."""


OUTSIDE = (512, 64, 8)
"""The boxes of `search_box` leave one row in this many outside, on each side of each axis."""


def is_wide(lo: np.ndarray, hi: np.ndarray, edge: float, max_cells: int) -> bool:
    """Whether ``max_cells`` cells of ``edge`` m are too few for the box from ``lo`` to ``hi`` (3,) m."""
    return bool(np.prod(np.maximum((hi - lo) / edge, 1.0)) > max_cells)


def search_box(x: np.ndarray, edge: float, max_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Box (lo, hi) for a search among ``x`` (n, 3) m on cells of ``edge`` m, at most ``max_cells`` of them.

    The box encloses all rows if the cells suffice. Otherwise cells would have to be larger, and one distant
    stray could put all other rows into a few of them. So boxes around most rows are tried, whose outermost
    cells also hold the rows outside (`runs_around`); one is taken if less than half as many pairs share a
    cell in it.
    """
    lo, hi = bounds(x)
    n = len(x)
    if n < 3 or not is_wide(lo, hi, edge, max_cells):
        return lo, hi
    outside = sorted({max(1, n // share) for share in OUTSIDE})
    ranks = [rank for k in outside for rank in (k, n - 1 - k)]
    part = np.partition(x, ranks, axis=0).astype(np.float64)
    boxes = [(lo, hi), *((part[k], part[n - 1 - k]) for k in outside)]
    pairs = [_pairs_in_cells(x, *grid_for_radius(*box, edge, max_cells)) for box in boxes]
    best = int(np.argmin(pairs))
    return boxes[best if 2 * pairs[best] < pairs[0] else 0]


def search_grid(x: np.ndarray, edge: float, max_cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The `stacked` grid of the `search_box` of ``x`` (n, 3) m."""
    return boxed_grid(search_box(x, edge, max_cells), edge, max_cells)


def boxed_grid(
    box: tuple[np.ndarray, np.ndarray], edge: float, max_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The `stacked` grid of a `search_box` that was found with the same ``edge`` and ``max_cells``."""
    return stacked(*grid_for_radius(*box, edge, max_cells))


def _pairs_in_cells(x: np.ndarray, *grid: np.ndarray) -> int:
    """Number of pairs of rows that share a cell, pairs of a row with itself included."""
    count = np.bincount(cell_index(x, *grid))
    return int(count @ count)


def stacked(
    origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The grid with each cell cut into a stack of `FINE` cells; a group's members lie in one stack."""
    stack = np.array([1, 1, FINE])
    return origin, spacing / stack, cells * stack


def packed(*parts: np.ndarray) -> np.ndarray:
    """Columns (n,) and (n, k) side by side in rows, so that the numbers that a pair needs lie together."""
    columns = [part.reshape(len(part), math.prod(part.shape[1:])) for part in parts]
    out = np.empty((len(columns[0]), sum(part.shape[1] for part in columns)), columns[0].dtype)
    first = 0
    for part in columns:
        out[:, first : first + part.shape[1]] = part
        first += part.shape[1]
    return out


def reach_columns(rows: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.floating]:
    """Columns (4, n + LANES) for `near_rows`, and the largest number of the last.

    The columns are places, and half the ``square`` (n,) m^2 of each row's reach: two rows are within reach of
    each other if their squared distance is below the mean of both squares.
    """
    out = np.zeros((4, len(rows) + LANES), rows.dtype)
    out[:3, : len(rows)] = rows[:, :3].T
    # A little more than half, so that a pair at the limit is found from both sides or from neither.
    out[3, : len(rows)] = rows.dtype.type(0.5 * (1.0 + 2e-5)) * square
    return out, out[3].max()


@njit(error_model="numpy")
def list_groups(chunk: int, order: np.ndarray, real: int, start: np.ndarray) -> Any:
    """First rows of groups of sorted rows, and their ends, for one chunk of the rows in ``order`` (n,).

    Each group lies in one stack of a `stacked` grid. It begins and ends with a particle: these have ``order``
    below ``real``, the others are images of particles.
    """
    n = len(order)
    p, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
    cell = first_cell(p, start)
    while p < last:
        while start[cell + 1] <= p:
            cell += 1
        end = min(min(start[(cell // FINE + 1) * FINE], p + GROUP), last)
        behind = end
        while p < behind and order[p] >= real:
            p += 1
        while behind > p and order[behind - 1] >= real:
            behind -= 1
        if p < behind:
            yield p, behind
        p = end


@njit(error_model="numpy")
def lane_groups(chunk: int, begin: int, behind: int, start: np.ndarray, nz: int, width: int) -> Any:
    """First rows of groups of ``width`` sorted rows, and their ends, for one chunk of begin:behind.

    A group is shorter if the row of ``nz`` cells along z ends before, or after `SPAN` cells.
    """
    n = behind - begin
    p, last = begin + chunk * n // CHUNKS, begin + (chunk + 1) * n // CHUNKS
    cell = first_cell(p, start)
    while p < last:
        while start[cell + 1] <= p:
            cell += 1
        end = min(min(start[min(cell + SPAN, (cell // nz + 1) * nz)], p + width), last)
        yield p, end
        p = end


@njit(**INLINE)
def fill_lanes(rows: np.ndarray, p: int, end: int, first: int, count: int, at: int, out: np.ndarray) -> None:
    """Copy columns ``first`` to ``first + count`` of rows p:end to ``out``, a vector each, from ``at`` on.

    The last row fills the remaining lanes too.
    """
    width = lanes_of(rows)
    for t in range(width):
        row = min(p + t, end - 1)
        for c in range(count):
            out[(at + c) * width + t] = rows[row, first + c]


@njit(**INLINE)
def first_cell(p: int, start: np.ndarray) -> int:
    """Cell of the sorted row ``p``."""
    return int(np.searchsorted(start, p, side="right")) - 1


@njit(**INLINE)
def _distance_to_cell(lo: float, hi: float, origin: float, spacing: float, cell: int, cells: int) -> float:
    """Distance along one axis from the interval to a cell; the outermost cells reach to infinity."""
    below = origin + cell * spacing - hi
    if cell > 0 and below > 0.0:
        return below
    above = lo - (origin + (cell + 1) * spacing)
    if cell < cells - 1 and above > 0.0:
        return above
    return 0.0


@njit(**INLINE)
def box_of(places: np.ndarray, p0: int, p1: int, box: np.ndarray) -> None:
    """Least and largest coordinates of ``places[p0:p1]`` (n, 3 or more), into ``box`` (2, 3)."""
    for c in range(3):
        box[0, c] = box[1, c] = places[p0, c]
    for p in range(p0 + 1, p1):
        for c in range(3):
            box[0, c], box[1, c] = min(box[0, c], places[p, c]), max(box[1, c], places[p, c])


@njit(fastmath=FAST, error_model="numpy", forceinline=False)
def runs_around(
    box: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray,
    reach: float, runs: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``runs`` with the first row, and the last + 1, of every run within ``reach`` of the ``box``.

    Returns the number of runs; ``runs`` has the shape (nx ny, 2) at least.
    """
    lo0, lo1, lo2 = box[0, 0], box[0, 1], box[0, 2]
    hi0, hi1, hi2 = box[1, 0], box[1, 1], box[1, 2]
    nx, ny, nz = cells[0], cells[1], cells[2]
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    j0, j1 = axis_cell(lo1 - reach, origin[1], inv1, ny), axis_cell(hi1 + reach, origin[1], inv1, ny)
    number = 0
    for i in range(
        axis_cell(lo0 - reach, origin[0], inv0, nx), axis_cell(hi0 + reach, origin[0], inv0, nx) + 1
    ):
        gx = _distance_to_cell(lo0, hi0, origin[0], spacing[0], i, nx)
        for j in range(j0, j1 + 1):
            gy = _distance_to_cell(lo1, hi1, origin[1], spacing[1], j, ny)
            left = reach * reach - gx * gx - gy * gy
            if left < 0.0:
                continue
            half = math.sqrt(left)
            row = (i * ny + j) * nz
            first = start[row + axis_cell(lo2 - half, origin[2], inv2, nz)]
            last = start[row + axis_cell(hi2 + half, origin[2], inv2, nz) + 1]
            if first < last:
                runs[number, 0], runs[number, 1] = first, last
                number += 1
    return number


@njit(**INLINE)
def lane_scratch(rows: np.ndarray, cells: np.ndarray, sums: int) -> Any:
    """Scratch arrays of one chunk: runs and box for `lane_runs`, four vectors of targets, and ``sums``."""
    width = lanes_of(rows)
    runs, box = np.empty((cells[0] * cells[1], 2), np.int64), np.empty((2, 3), rows.dtype)
    return runs, box, np.empty(4 * width, rows.dtype), np.empty(sums * width, rows.dtype)


@njit(**INLINE)
def lane_runs(
    rows: np.ndarray, p: int, end: int, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    cells: np.ndarray, reach: float, box: np.ndarray, runs: np.ndarray, targets: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``targets`` with the first four columns of rows p:end, and ``runs`` within ``reach`` of them.

    Returns the number of runs.
    """
    box_of(rows, p, end, box)
    fill_lanes(rows, p, end, 0, 4, 0, targets)
    return int(runs_around(box, start, origin, spacing, cells, reach, runs))


@njit(fastmath=FAST, error_model="numpy")
def near_rows(
    columns: np.ndarray, p: int, end: int, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    cells: np.ndarray, widest: float, box: np.ndarray, runs: np.ndarray, near: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``near`` (n + LANES,) with the rows, in order, that may be within reach of one of the rows p:end.

    Returns their number. ``columns`` and ``widest`` are the results of `reach_columns`; ``box`` (2, 3) and
    ``runs`` (nx ny, 2) are scratch.
    """
    wide_vectors()
    box_of(columns.T, p, end, box)
    most_own = columns[3, p]
    for q in range(p + 1, end):
        most_own = max(most_own, columns[3, q])
    number = runs_around(box, start, origin, spacing, cells, math.sqrt(most_own + widest), runs)
    width, stride, count = lanes_of(columns), columns.shape[1], 0
    none, own = spread(columns.dtype.type(0)), spread(most_own)
    x0, y0, z0 = spread(box[0, 0]), spread(box[0, 1]), spread(box[0, 2])
    x1, y1, z1 = spread(box[1, 0]), spread(box[1, 1]), spread(box[1, 2])
    for run in range(number):
        for q in range(runs[run, 0], runs[run, 1], width):
            x, y, z = load(columns, q), load(columns, stride + q), load(columns, 2 * stride + q)
            dx = larger(larger(x0 - x, x - x1), none)
            dy = larger(larger(y0 - y, y - y1), none)
            dz = larger(larger(z0 - z, z - z1), none)
            far, limit = dx * dx + (dy * dy + dz * dz), own + load(columns, 3 * stride + q)
            append_numbers_below(far, limit, q, near, count)
            count += count_below(far, limit, runs[run, 1] - q)
    return count


@njit(error_model="numpy")
def fill_list(data: np.ndarray, runs: np.ndarray, number: int, run: int, near: np.ndarray) -> tuple[int, int]:
    """Fill the list ``near`` from ``data`` (k, n + LANES) with the remaining runs, from ``run`` on.

    If a run does not fit, its beginning is moved. Returns the padded length and the next run.
    """
    count = 0
    while run < number and count < LIST_LENGTH:
        first = runs[run, 0]
        take = min(runs[run, 1] - first, LIST_LENGTH - count)
        for c in range(data.shape[0]):
            # Unsigned indices need no test for negative ones, which would prevent vectorisation.
            row, at, source = np.uintp(c), np.uintp(c * WIDTH + count), np.uintp(first)
            # Whole vectors are copied: elements beyond the run are overwritten next, or zeroed below.
            for q in range(np.uintp((take + LANES - 1) // LANES * LANES)):
                near[at + q] = data[row, source + q]
        count += take
        if first + take == runs[run, 1]:
            run += 1
        else:
            runs[run, 0] = first + take
    padded = (count + PADDING - 1) // PADDING * PADDING
    for c in range(data.shape[0]):
        near[c * WIDTH + count : c * WIDTH + padded] = 0.0
    return padded, run
