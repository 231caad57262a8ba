"""Uniform grids: cell counts, the maximal corner, degenerate boxes."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids import grid

coordinate = st.floats(-1e6, 1e6, width=32)
corner = st.tuples(coordinate, coordinate, coordinate)


def index(x: np.ndarray, origin: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    return np.floor((x - origin) / spacing).astype(int)


@settings(max_examples=300, deadline=None)
@given(a=corner, b=corner, count=st.integers(1, 10**6))
@example(a=(0, 0, 0), b=(1, 1, 0), count=100)
@example(a=(0, 0, 0), b=(0, 0, 0), count=5)
@example(a=(-5, 2, 1), b=(-5, 2, 4), count=10)
@example(a=(0, 0, 0), b=(1, 1e-5, 1e-5), count=1000)
def test_every_box_gets_a_grid_that_holds_both_corners(a, b, count) -> None:
    lo, hi = np.minimum(a, b).astype(float), np.maximum(a, b).astype(float)
    origin, spacing, cells = grid.uniform_grid(lo, hi, count)
    assert (origin.dtype, spacing.dtype, cells.dtype) == (np.float64, np.float64, np.int64)
    assert (spacing > 0).all() and np.isfinite(spacing).all() and (cells >= 1).all()
    assert cells.prod() < 8 * count
    assert (index(lo, origin, spacing) == 0).all()
    assert (index(hi, origin, spacing) <= cells - 1).all()
    assert (cells[grid.flat_axes(lo, hi)] == 1).all()


def test_counts_follow_the_article() -> None:
    """Box 4 x 2 x 1 m and 1000 elements: l = (8 / 1000)^(1/3) = 0.2 m, so 20 x 10 x 5 cells of 0.2 m."""
    origin, spacing, cells = grid.uniform_grid(np.zeros(3), np.array([4.0, 2.0, 1.0]), 1000)
    np.testing.assert_array_equal(cells, [20, 10, 5])
    np.testing.assert_allclose(spacing, 0.2, rtol=1e-8)
    np.testing.assert_array_equal(origin, 0)


def test_plane_and_line_use_the_axes_they_have() -> None:
    """2 x 1 m and 200 elements: l = (2 / 200)^(1/2) = 0.1 m; 3 m and 30 elements on a line: 0.1 m."""
    _, spacing, cells = grid.uniform_grid(np.zeros(3), np.array([2.0, 0.0, 1.0]), 200)
    np.testing.assert_array_equal(cells, [20, 1, 10])
    np.testing.assert_allclose(spacing, 0.1, rtol=1e-8)
    _, spacing, cells = grid.uniform_grid(np.zeros(3), np.array([0.0, 3.0, 0.0]), 30)
    np.testing.assert_array_equal(cells, [1, 30, 1])
    np.testing.assert_allclose(spacing, 0.1, rtol=1e-8)


def test_a_very_flat_box_is_halved_to_fewer_than_eight_cells_per_element() -> None:
    """1 x 1 x 1e-5 m, 100 elements: l = 4.6e-3 m, 215 x 215 x 1 cells > 800; halving leaves 107^2, then 53^2,
    then 26^2 = 676 < 800."""
    _, _, cells = grid.uniform_grid(np.zeros(3), np.array([1.0, 1.0, 1e-5]), 100)
    np.testing.assert_array_equal(cells, [26, 26, 1])


def test_no_points_and_equal_points_get_one_cell_of_a_metre() -> None:
    nothing = bounds(np.empty((0, 3)))
    for lo, hi, count in [(*nothing, 0), (np.zeros(3), np.zeros(3), 7)]:
        origin, spacing, cells = grid.uniform_grid(lo, hi, count)
        np.testing.assert_array_equal(origin, 0)
        np.testing.assert_array_equal(spacing, 1)
        np.testing.assert_array_equal(cells, 1)


@settings(max_examples=200, deadline=None)
@given(a=corner, b=corner, radius=st.floats(1e-3, 1e6), max_cells=st.integers(1, 10**6))
def test_neighbour_cells_are_never_smaller_than_the_radius(a, b, radius, max_cells) -> None:
    lo, hi = np.minimum(a, b).astype(float), np.maximum(a, b).astype(float)
    origin, spacing, cells = grid.grid_for_radius(lo, hi, radius, max_cells)
    assert (spacing >= radius).all()
    assert 1 <= cells.prod() <= max_cells
    assert (index(hi, origin, spacing) <= cells - 1).all()


def test_neighbour_cells_are_as_small_as_allowed() -> None:
    """1 m by 0.3 m cells: three of 1/3 m; in 2.1 m there is room for seven of 0.3 m."""
    _, spacing, cells = grid.grid_for_radius(np.zeros(3), np.array([1.0, 2.1, 0.2]), 0.3, 10**6)
    np.testing.assert_array_equal(cells, [3, 7, 1])
    np.testing.assert_allclose(spacing, [1 / 3, 0.3, 0.3], rtol=1e-8)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan")])
def test_a_radius_that_is_not_positive_is_refused(radius: float) -> None:
    with pytest.raises(ValueError, match="radius must be positive"):
        grid.grid_for_radius(np.zeros(3), np.ones(3), radius, 10)


def test_grid_points_run_from_the_origin_to_the_far_corner() -> None:
    points = grid.grid_points((np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0]), np.array([2, 1, 3])))
    assert points.shape == (3, 2, 4, 3)
    np.testing.assert_array_equal(points[0, 0, 0], [1, 2, 3])
    np.testing.assert_array_equal(points[1, 1, 2], [1.5, 3, 7])
    np.testing.assert_array_equal(points[-1, -1, -1], [2, 3, 9])
