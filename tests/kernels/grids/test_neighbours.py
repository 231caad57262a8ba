"""Lists of neighbours: every particle within the reach once, none twice, zeros after the last."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.wide_vectors import LANES
from ecs_fluid.kernels.grids.neighbours import (
    FINE,
    GROUP,
    LIST_LENGTH,
    PADDING,
    SPAN,
    WIDTH,
    box_of,
    fill_list,
    lane_groups,
    list_groups,
    near_rows,
    reach_columns,
    runs_around,
    search_box,
    search_grid,
    stacked,
)
from ecs_fluid.kernels.grids.partition import cell_index, gather_sorted, partition


# As all that calls the parts of lists and groups: they take this option from whatever calls them first.
@njit(fastmath=FAST)
def members_and_lists(data, order, real, start, origin, spacing, cells, reach, ends, found, used):
    """Groups: their first rows and ends, and how often their lists name each row (column 4)."""
    runs, near = np.empty((cells[0] * cells[1], 2), np.int64), np.ones(data.shape[0] * WIDTH)
    box, groups, longest = np.empty((2, 3)), 0, 0
    for chunk in range(CHUNKS):
        for p, end in list_groups(chunk, order, real, start):
            box_of(data.T, p, end, box)
            number, run = runs_around(box, start, origin, spacing, cells, reach, runs), 0
            while run < number:
                count, run = fill_list(data, runs, number, run, near)
                used[groups] += 1
                longest = max(longest, count if count % PADDING == 0 else WIDTH)
                for q in range(count):
                    row = int(near[4 * WIDTH + q])
                    # Rows are numbered from 1; what is filled up is zero in every column.
                    if row > 0:
                        found[groups, row - 1] += 1
                    elif near[q] != 0 or near[3 * WIDTH + q] != 0:
                        longest = WIDTH
            ends[groups, 0], ends[groups, 1] = p, end  # a row at once compiles for longer
            groups += 1
    return groups, longest


CASES = [
    (3000, (2, 1, 1)), (3000, (7, 6, 5)), (3000, (5, 4, 3)), (40, (9, 1, 2)), (1, (1, 1, 1))
]  # fmt: skip


@pytest.mark.parametrize(("n", "count"), CASES)
def test_lists_hold_all_neighbours_once(n: int, count: tuple[int, int, int]) -> None:
    """Also of particles outside the grid, of neighbourhoods that need several lists, and of groups over
    several cells, which stay in one stack. No group begins or ends with an image, which a third
    of the rows are."""
    draw = np.random.default_rng(2)
    x = draw.random((n, 3)) * 1.2 - 0.1
    grid = stacked(np.zeros(3), 1 / np.array(count), np.array(count))
    start, order = partition(x, *grid)
    sx = gather_sorted(x, order)
    data = np.zeros((5, n + LANES))
    data[:, :n] = [*sx, np.ones(n), np.arange(1.0, n + 1)]
    ends, found, used = np.zeros((n, 2), np.int64), np.zeros((n, n), np.int64), np.zeros(n, np.int64)
    real = n - n // 3
    groups, longest = members_and_lists(data, order, real, start, *grid, 0.25, ends, found, used)
    assert longest <= LIST_LENGTH
    if count == (2, 1, 1):
        assert used.max() > 1
    assert found.max() == 1
    met = 0
    for group, (begin, end) in enumerate(ends[:groups]):
        assert 0 < end - begin <= GROUP
        assert max(order[begin], order[end - 1]) < real
        met += np.count_nonzero(order[begin:end] < real)
        stack = np.searchsorted(start, [begin, end - 1], side="right") - 1
        assert stack[0] // FINE == stack[1] // FINE
        apart = np.linalg.norm(sx[:, begin:end, None] - sx[:, None, :], axis=0)
        assert found[group, (apart <= 0.25).any(axis=0)].all()
    assert met == real
    assert (ends[1:groups, 0] >= ends[: groups - 1, 1]).all()


@njit(fastmath=FAST)
def groups_and_rows(columns, widest, start, origin, spacing, cells, width, ends, found, last):
    """Groups for lanes: their ends, the rows that are near them, and how many these are."""
    n, box, groups = len(ends), np.empty((2, 3), columns.dtype), 0
    runs, near = np.empty((cells[0] * cells[1], 2), np.int64), np.empty(n + LANES, np.uint32)
    for chunk in range(CHUNKS):
        for p, end in lane_groups(chunk, 0, n, start, cells[2], width):
            last[groups] = near_rows(columns, p, end, start, origin, spacing, cells, widest, box, runs, near)
            ends[groups] = end
            for row in range(last[groups]):  # the list at once compiles for longer, to tell of unequal shapes
                found[groups, row] = near[row]
            groups += 1
    return groups


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("n", "count"), CASES)
def test_lanes_hold_rows_of_one_column_and_a_list_of_all_neighbours_in_order(
    n: int, count: tuple[int, int, int], dtype: type
) -> None:
    """At most 16 rows, of at most SPAN cells of one column; nobody within reach of one of them is left
    out, and nobody taken who is farther from their box than the widest of them reaches (1e-4: rounding, and
    the margin of `reach_columns`)."""
    draw = np.random.default_rng(3)
    x, square = (draw.random((n, 3)) * 1.2 - 0.1).astype(dtype), draw.uniform(0.01, 0.05, n).astype(dtype)
    grid = stacked(np.zeros(3), 1 / np.array(count), np.array(count))
    start, order = partition(x, *grid)
    rows, square, width = x[order], square[order], 16
    ends, found, many = np.zeros(n, np.int64), np.zeros((n, n), np.int64), np.zeros(n, np.int64)
    groups = groups_and_rows(*reach_columns(rows, square), start, *grid, width, ends, found, many)
    assert ends[groups - 1] == n
    cell = np.searchsorted(start, np.arange(n), side="right") - 1
    for group, (first, last) in enumerate(zip([0, *ends[: groups - 1]], ends[:groups], strict=True)):
        assert 0 < last - first <= width
        assert cell[last - 1] - cell[first] < SPAN
        assert cell[last - 1] // grid[2][2] == cell[first] // grid[2][2]
        own, listed = rows[first:last], found[group, : many[group]]
        assert (np.diff(listed) > 0).all()
        reach = (square[first:last, None] + square) / 2
        near = (((own[:, None] - rows) ** 2).sum(axis=2) <= reach).any(axis=0)
        assert np.isin(np.flatnonzero(near), listed).all()
        beyond = np.maximum(np.maximum(own.min(axis=0) - rows, rows - own.max(axis=0)), 0)
        assert ((beyond**2).sum(axis=1)[listed] <= 1.0001 * reach.max(axis=0)[listed]).all()


@pytest.mark.parametrize("strays", [1, 3, 40])
def test_strays_leave_the_cells_of_all_others_as_they_are(strays: int) -> None:
    """2,000 points in 10^3 cells of their own, some more up to 10^7 cells away: as many pairs share cells."""

    def pairs(x: np.ndarray) -> int:
        grid = search_grid(x, 0.1, 2100)
        return int((np.bincount(cell_index(x, *grid)) ** 2).sum())

    draw = np.random.default_rng(strays)
    x = draw.random((2000, 3))
    np.testing.assert_array_equal(search_box(x, 0.1, 2100), [x.min(axis=0), x.max(axis=0)])
    far = x[:strays] + 10.0 ** draw.uniform(1, 6, (strays, 3)) * draw.choice([-1, 1], (strays, 3))
    assert pairs(np.concatenate([x, far])) < 1.3 * pairs(x) + strays**2


def test_a_sparse_cloud_has_all_its_rows_inside() -> None:
    """Cells that grow until one has a row or two are better than those around the half in the middle."""
    x = np.random.default_rng(2).uniform(-1e3, 1e3, (3000, 3))
    np.testing.assert_array_equal(search_box(x, 0.1, 3000), [x.min(axis=0), x.max(axis=0)])
