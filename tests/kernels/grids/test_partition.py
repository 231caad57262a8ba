"""Counting sort by cell: the same answer as numpy's stable sort, whatever the input and the thread count."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids import grid, neighbours, partition
from tests.kernels.from_python import from_python
from tests.threads import check_threads


@settings(max_examples=150, deadline=None)
@given(
    n_cells=st.integers(1, 3000), n=st.integers(0, 400), seed=st.integers(0, 2**32 - 1), skew=st.booleans()
)
def test_order_is_the_stable_sort_and_start_counts_the_cells(n_cells, n, seed, skew) -> None:
    draw = np.random.default_rng(seed).random(n)
    cell = (n_cells * (draw**8 if skew else draw)).astype(np.int64)
    start, order = partition.sort_by_cell(cell, n_cells)
    np.testing.assert_array_equal(order, np.argsort(cell, kind="stable"))
    np.testing.assert_array_equal(np.diff(start), np.bincount(cell, minlength=n_cells))
    assert start[0] == 0 and start[-1] == n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 97, 5003])
def test_each_sorted_row_lies_in_its_cell(n: int, dtype: type) -> None:
    x = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
    origin, spacing, cells = grid.uniform_grid(*bounds(x), n)
    start, order = partition.partition(x, origin, spacing, cells)
    assert sorted(order) == list(range(n))
    for c in range(int(cells.prod())):
        i, j, k = c // (cells[1] * cells[2]), c // cells[2] % cells[1], c % cells[2]
        low = origin + spacing * (i, j, k)
        rows = x[order[start[c] : start[c + 1]]].astype(np.float64)
        # 1e-9 m: the rounding of origin + i * spacing against (x - origin) / spacing.
        assert (rows >= low - 1e-9).all() and (rows <= low + spacing + 1e-9).all()


def test_points_on_and_beyond_the_faces_belong_to_the_outermost_cells() -> None:
    origin, spacing, cells = np.zeros(3), np.ones(3), np.array([2, 3, 4])
    x = np.array([[2.0, 3.0, 4.0], [9.0, 9.0, 9.0], [-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 0.5, 3.999]])
    np.testing.assert_array_equal(
        partition.cell_index(x, origin, spacing, cells), [23, 23, 0, 0, (1 * 3 + 0) * 4 + 3]
    )


def test_slightly_negative_offsets_do_not_reach_another_row_of_cells() -> None:
    """int(-0.5) is 0 but int(-1.5) is -1: without the clamp the linear index would be a neighbour row's."""
    cells = np.array([3, 3, 3])
    x = np.array([[1.5, 1.5, -0.5], [1.5, 1.5, -1.5]])
    np.testing.assert_array_equal(partition.cell_index(x, np.zeros(3), np.ones(3), cells), [12, 12])


def test_what_is_further_than_integers_reach_is_in_the_outermost_cell() -> None:
    x = np.array([[1e30, 0.0, 2.0], [2.0, -1e30, 1e19]])
    cells = np.array([2, 3, 4])
    found = partition.cell_index(x, np.zeros(3), np.ones(3), cells)
    np.testing.assert_array_equal(found, [(1 * 3 + 0) * 4 + 2, (1 * 3 + 0) * 4 + 3])


@pytest.mark.parametrize("shape", [(), (3,), (3, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gather_then_scatter_gives_the_rows_back(shape: tuple, dtype: type) -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((301, *shape)).astype(dtype)
    order = rng.permutation(301)
    columns = partition.gather_sorted(rows, order)
    assert columns.dtype == dtype and columns.flags.c_contiguous
    np.testing.assert_array_equal(columns.reshape(-1, 301), rows[order].reshape(301, -1).T)
    np.testing.assert_array_equal(partition.scatter_sorted(columns, order, np.empty_like(rows)), rows)


def test_results_are_never_written_to_a_hidden_copy() -> None:
    rows, order = np.ones((4, 2)), np.arange(4)
    with pytest.raises(ValueError, match="C-contiguous"):
        partition.scatter_sorted(rows.T.copy(), order, np.empty((8, 2))[::2])


def test_gap_is_the_distance_to_the_cell_and_outer_cells_have_no_end() -> None:
    """Four cells of 0.5 m from 1 m: cell 1 is 1.5 to 2.0."""
    between = from_python(neighbours._distance_to_cell)
    assert between(1.2, 1.2, 1.0, 0.5, 1, 4) == pytest.approx(0.3)
    assert between(1.7, 1.7, 1.0, 0.5, 1, 4) == 0
    assert between(2.6, 2.6, 1.0, 0.5, 1, 4) == pytest.approx(0.6)
    assert between(-50.0, -50.0, 1.0, 0.5, 0, 4) == 0
    assert between(50.0, 50.0, 1.0, 0.5, 3, 4) == 0


def test_bits_do_not_depend_on_threads() -> None:
    x = np.random.default_rng(4).random((20_011, 3))
    box = grid.uniform_grid(*bounds(x), len(x))

    def sorted_rows() -> tuple[np.ndarray, ...]:
        start, order = partition.partition(x, *box)
        return start, order, partition.gather_sorted(x, order)

    check_threads(sorted_rows)
