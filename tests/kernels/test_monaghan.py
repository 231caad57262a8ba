"""M4' transfers: totals, first and second moments, transpose, quadratic fields, and races."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from ecs_fluid.kernels.grid import grid_points
from ecs_fluid.kernels.monaghan import interpolate_smooth, scatter_smooth
from ecs_fluid.kernels.partition import gather_sorted, partition

GRID = (np.array([-1.0, -1.2, -0.8]), np.array([0.2, 0.25, 0.16]), np.array([10, 9, 11]))


def shared(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    start, order = partition(x, *GRID)
    return scatter_smooth(gather_sorted(x, order), np.take(values, order, axis=1), start, *GRID)


def inner(n: int, dtype: type = np.float64) -> np.ndarray:
    """Points at least one cell from the faces."""
    origin, spacing, cells = GRID
    draw = np.random.default_rng(2).random((n, 3))
    return (origin + spacing * (1 + draw * (cells - 2))).astype(dtype)


def test_three_moments_of_every_particle_are_kept() -> None:
    """sum w = 1, sum w p = x, sum w p p = x x: M4' reproduces quadratics (Monaghan 1985)."""
    x = inner(200)
    values = np.random.default_rng(1).standard_normal((2, 200))
    field = shared(x, values)
    points = grid_points(GRID)
    for c in range(2):
        f, v = field[..., c], values[c]
        assert f.sum() == pytest.approx(v.sum(), abs=1e-12)
        np.testing.assert_allclose((f[..., None] * points).sum(axis=(0, 1, 2)), v @ x, atol=1e-12)
        for a in range(3):
            for b in range(3):
                second = (f * points[..., a] * points[..., b]).sum()
                assert second == pytest.approx((v * x[:, a] * x[:, b]).sum(), abs=1e-12)


def test_totals_stay_at_the_faces_and_outside() -> None:
    draw = np.random.default_rng(7)
    x = draw.uniform(-1.5, 1.5, (300, 3))
    values = draw.random((1, 300))
    assert shared(x, values).sum() == pytest.approx(values.sum(), rel=1e-13)


def test_quadratic_fields_are_interpolated_exactly() -> None:
    points = grid_points(GRID)
    field = 1 + points[..., 0] ** 2 - 3 * points[..., 1] * points[..., 2] + points[..., 2]
    x = inner(100)
    exact = 1 + x[:, 0] ** 2 - 3 * x[:, 1] * x[:, 2] + x[:, 2]
    np.testing.assert_allclose(interpolate_smooth(x, GRID[0], GRID[1], field), exact, atol=1e-13)


def test_interpolation_is_the_transpose_of_the_scatter() -> None:
    draw = np.random.default_rng(8)
    x = draw.uniform(-1.3, 1.3, (80, 3))
    values = draw.standard_normal((1, 80))
    field = draw.standard_normal((11, 10, 12))
    left = (shared(x, values)[..., 0] * field).sum()
    right = (values[0] * interpolate_smooth(x, GRID[0], GRID[1], field)).sum()
    assert left == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_write_nothing_over_one_another(dtype: type) -> None:
    """Same bits for 1 thread and for all: rows of one colour share no grid point."""
    x = inner(5000, dtype)
    values = np.random.default_rng(3).standard_normal((3, 5000)).astype(dtype)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = shared(x, values)
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        assert alone.dtype == dtype
        for _ in range(5):
            assert shared(x, values).tobytes() == alone.tobytes()
    finally:
        numba.set_num_threads(before)
