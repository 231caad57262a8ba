"""Particles divided among ranks by runs of grid cells."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.grids.partition import cell_index, sort_by_cell
from ecs_fluid.ranks.comm import Comm

BINS = 256
"""Bins per part, of cells or of places along the Z-order curve, in which rows are counted and divided."""

Grid = tuple[Array, Array, Array]
"""Origin (3,) m, spacing (3,) m and number (3,) of cells."""


def enclosing(comm: Comm, low: Array, high: Array, purpose: str = "control") -> tuple[Array, Array]:
    """The box around the boxes of all ranks."""
    boxes = comm.gather_numbers(np.stack([low, high]), purpose)
    return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)


def share_cells(comm: Comm, cell: Array, count: int, parts: int, purpose: str) -> tuple[Array, Array]:
    """Edges (parts + 1,) of runs of cells, and of the rows in these runs when sorted by cell.

    Args:
        cell: the cell of each of this rank's rows.
        count: number of cells.
        parts: number of parts, which get as equal numbers of rows as bins of cells allow.
        purpose: name under which the traffic is counted.
    """
    width = max(1, count // (BINS * parts))
    bins = -(-count // width)
    before = np.zeros(bins + 1, np.int64)
    np.cumsum(comm.sum(np.bincount(cell // width, minlength=bins), purpose), out=before[1:])
    edge = np.searchsorted(before, np.arange(parts + 1) * before[-1] / parts)
    edge[-1] = bins
    return np.minimum(edge * width, count), before[edge]


def sorted_run(values: Array, row: Array, grid: Grid, low: int, high: int) -> tuple[Array, Array]:
    """Sort the rows of the cells `low` to `high`: (start (high - low + 1,), order (n,)).

    Args:
        values: columns (n, k) of the rows, positions first.
        row: number (n,) of each row among those of all ranks, by which rows of one cell are sorted.
        grid: the grid of the cells.
        low, high: first cell, and one past the last.
    """
    x = np.ascontiguousarray(values[:, :3])
    cell = cell_index(x, *grid) - low
    if (row[1:] >= row[:-1]).all():
        start, order = sort_by_cell(cell, max(high - low, 1))
    else:  # with several populations, the rows that came from one rank are not in rising order
        ascending = np.argsort(row)
        start, order = sort_by_cell(cell[ascending], max(high - low, 1))
        order = ascending[order]
    return start[: high - low + 1], order
