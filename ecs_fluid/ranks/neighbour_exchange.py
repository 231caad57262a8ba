"""Particle strength exchange over the cells of each rank, with a halo of the cells around them."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids.neighbours import boxed_grid, is_wide, packed, search_box
from ecs_fluid.kernels.grids.partition import cell_index
from ecs_fluid.kernels.vorticity.strength_exchange import RatedRows, exchange, exchange_cells, reach_of
from ecs_fluid.ranks.cells import Grid, enclosing, share_cells, sorted_run
from ecs_fluid.ranks.comm import Comm, Route

PURPOSE = "neighbours"


def exchanged(
    comm: Comm,
    row: Array,
    x: Array,
    values: Array,
    eps: Array,
    volume: Array,
    viscosity: float,
    order: int,
    dimension: int,
) -> tuple[Array, Array]:
    """`exchange_rows` over the rows of all ranks: rates and losses of this rank's rows.

    `row` (n,) are the numbers of this rank's rows among all, those of images behind all others, by which rows
    of one cell are sorted. The bits are those of one process.
    """
    every = comm.gather_numbers(np.array([len(x), eps.min(initial=np.inf), eps.max(initial=0.0)]), PURPOSE)
    total, least, widest = int(every[:, 0].sum()), eps.dtype.type(every[:, 1].min()), float(every[:, 2].max())
    if total == 0:
        return np.empty_like(values), np.empty_like(eps)
    cells = exchange_cells(widest, total, order, dimension)
    box = enclosing(comm, *bounds(x), PURPOSE)
    if is_wide(*box, *cells):
        box = search_box(comm.gather_rows(x, every[:, 0].astype(int).tolist(), PURPOSE), *cells)
    grid = boxed_grid(box, *cells)
    cell, number = cell_index(x, *grid), int(np.prod(grid[2]))
    edges, _ = share_cells(comm, cell, number, comm.size, PURPOSE)
    route = Route(comm, np.searchsorted(edges, cell, side="right") - 1, PURPOSE)
    columns = packed(x, eps, volume, values)
    came, columns = route.send([row, columns])
    own = slice(int(edges[comm.rank]), int(edges[comm.rank + 1]))
    start, by_cell = sorted_run(columns, came, grid, own.start, own.stop)
    most = eps.dtype.type(widest)
    near, begin, count = _with_halo(
        comm, columns[by_cell], np.diff(start), edges, _margin(grid, reach_of(most, order, dimension)), number
    )
    behind = begin + len(by_cell)
    part = RatedRows(begin, behind, bool(least * least == most * most))
    rate, loss = np.empty((len(near), near.shape[1] - 5), x.dtype), np.zeros(len(near), x.dtype)
    exchange(near, count, grid, viscosity, rate, loss, order, dimension, part)
    found = np.empty((len(by_cell), rate.shape[1]), x.dtype)
    found[by_cell] = rate[begin:behind]
    lost = np.empty(len(by_cell), x.dtype)
    lost[by_cell] = loss[begin:behind]
    rates, losses = route.back([found, lost])
    return rates.reshape(values.shape), losses


def _margin(grid: Grid, reach: float) -> int:
    """Most by which the numbers of a cell and of another one within `reach` m of it differ."""
    along = [min(math.floor(reach / float(h)) + 1, int(n)) for h, n in zip(grid[1], grid[2], strict=True)]
    return (along[0] * int(grid[2][1]) + along[1]) * int(grid[2][2]) + along[2]


def _with_halo(
    comm: Comm, rows: Array, count: Array, edges: Array, margin: int, cells: int
) -> tuple[Array, int, Array]:
    """Rows of this rank's cells and of those at most `margin` before and behind them.

    Args:
        rows: the rows (n, k) of its cells, in their order.
        count: rows in each of its cells.
        edges: the cells of the ranks.

    Returns the rows, where its own begin, and start (cells + 1,).
    """
    low, high = edges[:-1], edges[1:]
    wanted = np.where(high > low, [np.maximum(low - margin, 0), np.minimum(high + margin, cells)], [low, low])
    here = comm.rank
    start = np.concatenate([[0], np.cumsum(count)])
    # Each rank gets those of this rank's cells that it needs, and this one those of others that it needs.
    sent = np.clip(wanted, low[here], high[here]) - low[here]
    came = np.clip(wanted[:, here][:, None], low, high) - low
    counts = comm.exchange(
        [count[a:b].astype(np.uint32) for a, b in sent.T], np.diff(came, axis=0)[0].tolist(), PURPOSE
    )
    found = comm.exchange(
        [rows[start[a] : start[b]] for a, b in sent.T], [int(part.sum()) for part in counts], PURPOSE
    )
    whole = np.zeros(cells + 1, np.int64)
    first, last = wanted[:, here]
    np.cumsum(np.concatenate(counts), out=whole[first + 1 : last + 1])
    whole[last + 1 :] = whole[last]
    return np.concatenate(found), int(whole[low[here]]), whole
