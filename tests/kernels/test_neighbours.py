"""Lists of neighbours: every particle within the reach once, none twice, zeros after the last."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ecs_fluid.kernels.neighbours import (
    FINE,
    GROUP,
    MOST,
    PADDING,
    WIDTH,
    columns,
    fill_list,
    first_cell,
    group_end,
    runs_around,
    stacked,
)
from ecs_fluid.kernels.partition import gather_sorted, partition


@njit
def members_and_lists(data, n, start, origin, spacing, cells, reach, first, ends, found, used):
    """Groups from the row ``first`` on: their ends, and how often their lists name each row (column 4)."""
    runs, near = np.empty((cells[0] * cells[1], 2), np.int64), np.ones(data.shape[0] * WIDTH)
    p, groups, cell, longest = first, 0, first_cell(first, start), 0
    while p < n:
        cell, end = group_end(p, n, start, cell)
        number, run = runs_around(data, p, end, start, origin, spacing, cells, reach, runs), 0
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
        ends[groups] = end
        p, groups = end, groups + 1
    return groups, longest


CASES = [
    (3000, (2, 1, 1)), (3000, (7, 6, 5)), (3000, (5, 4, 3)), (40, (9, 1, 2)), (1, (1, 1, 1))
]  # fmt: skip


@pytest.mark.parametrize(("n", "count"), CASES)
def test_lists_hold_all_neighbours_once(n: int, count: tuple[int, int, int]) -> None:
    """Also of particles outside the grid, of neighbourhoods that need several lists, and of groups over
    several cells, which stay in one stack."""
    draw = np.random.default_rng(2)
    x = draw.random((n, 3)) * 1.2 - 0.1
    grid = stacked(np.zeros(3), 1 / np.array(count), np.array(count))
    start, order = partition(x, *grid)
    sx = gather_sorted(x, order)
    data = columns(sx, np.ones(n), np.arange(1.0, n + 1))
    ends, found, used = np.zeros(n, np.int64), np.zeros((n, n), np.int64), np.zeros(n, np.int64)
    first = n // 3
    groups, longest = members_and_lists(data, n, start, *grid, 0.25, first, ends, found, used)
    assert longest <= MOST
    if count == (2, 1, 1):
        assert used.max() > 1
    assert found.max() == 1
    begin = first
    for group in range(groups):
        assert 0 < ends[group] - begin <= GROUP
        stack = np.searchsorted(start, [begin, ends[group] - 1], side="right") - 1
        assert stack[0] // FINE == stack[1] // FINE
        apart = np.linalg.norm(sx[:, begin : ends[group], None] - sx[:, None, :], axis=0)
        assert found[group, (apart <= 0.25).any(axis=0)].all()
        begin = ends[group]
    assert begin == n
