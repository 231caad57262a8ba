"""Deterministic reductions against closed forms."""

import math

import numpy as np
import pytest

from ecs_fluid.kernels.compiled import columns
from tests.threads import check_threads

DTYPES = [np.float32, np.float64]


def ring(count: int, radius: float, circulation: float) -> tuple[np.ndarray, np.ndarray]:
    """Vortex filament around z: alpha = circulation times arc length times tangent."""
    phi = 2 * np.pi * np.arange(count) / count
    x = radius * np.stack([np.cos(phi), np.sin(phi), 0 * phi], axis=1)
    tangent = np.stack([-np.sin(phi), np.cos(phi), 0 * phi], axis=1)
    return x, circulation * radius * 2 * np.pi / count * tangent


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1009])
def test_bounds_are_the_extreme_coordinates(n: int, dtype: type) -> None:
    x = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
    lo, hi = columns.bounds(x)
    assert lo.dtype == hi.dtype == np.float64
    np.testing.assert_array_equal(lo, x.min(axis=0))
    np.testing.assert_array_equal(hi, x.max(axis=0))


def test_bounds_of_nothing_do_not_change_other_bounds() -> None:
    lo, hi = columns.bounds(np.empty((0, 3)))
    x = np.array([[1.0, -2.0, 3.0]])
    np.testing.assert_array_equal(np.minimum(lo, columns.bounds(x)[0]), x[0])
    np.testing.assert_array_equal(np.maximum(hi, columns.bounds(x)[1]), x[0])


def test_bounds_skip_nan_but_show_infinity() -> None:
    lo, hi = columns.bounds(np.array([[np.nan, 1.0, np.inf], [2.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(lo, [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(hi, [2.0, 1.0, np.inf])


def test_ring_invariants_are_the_textbook_ones() -> None:
    """A ring of radius R and circulation G has I = G pi R^2 along its axis, and A = c cross I if moved by c.

    Sum alpha is zero, so I does not change with c. -1/2 sum x^2 alpha = -sum (c.y) alpha = c cross I, and the
    third-form A of a closed filament is the same; the trigonometric sums are exact from 5 points on.
    """
    x, alpha = ring(40, radius=0.7, circulation=3.0)
    impulse = 3.0 * math.pi * 0.49
    shift = np.array([0.3, -1.2, 2.0])
    strength, linear, angular = columns.vortex_invariants(x + shift, alpha)
    np.testing.assert_allclose(strength, 0, atol=1e-14)
    np.testing.assert_allclose(linear, [0, 0, impulse], atol=1e-13)
    np.testing.assert_allclose(angular, np.cross(shift, [0, 0, impulse]), atol=1e-12)


def test_sums_of_single_precision_are_taken_in_double() -> None:
    """200,000 times float32(0.1): a float32 accumulator would be off by 1e-4, float64 by 1e-12."""
    n = 200_000
    alpha = np.full((n, 3), 0.1, np.float32)
    strength, _, _ = columns.vortex_invariants(np.ones((n, 3), np.float32), alpha)
    np.testing.assert_allclose(strength, n * float(np.float32(0.1)), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1023, 5000, 200_000])
def test_bounds_of_many_rows_with_nan_among_them(n: int, dtype: type) -> None:
    """Rows are looked at in vectors, the last few singly; numpy's nanmin and nanmax are the reference."""
    draw = np.random.default_rng(n)
    x = draw.normal(size=(n, 3)).astype(dtype)
    x[draw.random((n, 3)) < 0.1] = np.nan
    x[n // 2] = 0.0
    lo, hi = columns.bounds(x)
    np.testing.assert_array_equal(lo, np.nanmin(x, axis=0))
    np.testing.assert_array_equal(hi, np.nanmax(x, axis=0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_faces_of_a_box_are_inside_and_nan_is_not(dtype: type) -> None:
    x = np.array([(-1, 0, 2), (1, 0.5, 3), (1.001, 0, 2), (0, 0, 1.999), (0, np.nan, 2), (0, -0.1, 3)], dtype)
    inside = columns.inside(x, np.array([-1.0, 0.0, 2.0]), np.array([1.0, 1.0, 3.0]))
    np.testing.assert_array_equal(inside, [True, True, False, False, False, False])


@pytest.mark.parametrize("dtype", DTYPES)
def test_max_norm_is_the_largest_frobenius_norm(dtype: type) -> None:
    rows = np.zeros((500, 3, 3), dtype)
    rows[:, 0, 0] = 1
    rows[317, 1:, 1:] = [[2, -4], [5, 6]]  # squares 4 + 16 + 25 + 36, and the 1 at (0, 0)
    assert columns.max_norm(rows) == pytest.approx(math.sqrt(82), rel=1e-12)
    assert columns.max_norm(rows[:0]) == 0


@pytest.mark.parametrize("row", [0, 1, 250, 499])
def test_max_norm_does_not_hide_nan(row: int) -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3))
    rows[row, 1] = np.nan
    assert math.isnan(columns.max_norm(rows))


def test_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(2)
    x, alpha = rng.normal(size=(2, 10_007, 3))
    check_threads(lambda: (*columns.vortex_invariants(x, alpha), *columns.bounds(x), columns.max_norm(x)))


@pytest.mark.parametrize("n", [0, 1, 2, 400])
def test_equal_rows_are_grouped_in_the_order_of_their_values(n: int) -> None:
    rows = np.random.default_rng(n).integers(-2, 3, size=(n, 3)) / 4  # at most 125 different ones
    first, group = columns.equal_rows(rows.T)
    met: dict[tuple[float, ...], int] = {}
    for number, row in enumerate(map(tuple, rows.tolist())):
        met.setdefault(row, number)
    values = sorted(met)
    assert first.tolist() == [met[row] for row in values]
    assert group.tolist() == [values.index(row) for row in map(tuple, rows.tolist())]
