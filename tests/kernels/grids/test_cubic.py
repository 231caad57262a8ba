"""Cubic convolution and splines: order, exactness, moments of the scatter, adjointness, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.grids import cubic, cubic_gradient, differences, grid, spline_gradient
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.grids.scatter import m4_prime, m6_prime
from tests.threads import check_threads

ORIGIN, SPACING, CELLS = np.array([-1.0, 2.0, 0.5]), np.array([0.3, 0.2, 0.7]), np.array([5, 7, 3])


def points(cells: Any = CELLS) -> np.ndarray:
    return grid.grid_points((ORIGIN, SPACING, np.array(cells)))


def inside(n: int, seed: int = 0, cells: Any = CELLS) -> np.ndarray:
    return ORIGIN + np.random.default_rng(seed).random((n, 3)) * SPACING * cells


def spline(x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray) -> np.ndarray:
    return cubic.interpolate(x, origin, spacing, cubic.coefficients(field), None, cubic.SPLINE)


READERS = (cubic.interpolate, spline)


def quadratics(x: np.ndarray) -> np.ndarray:
    """Products of quadratics in x, y and z: nine of the 27."""
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    nine = (
        1 + 0 * a,
        a * a,
        b * b - c,
        c * c * a,
        a * b,
        (b * c) ** 2,
        c * a,
        (a * b * c) ** 2,
        2 - a + b * b,
    )
    return np.stack(nine, axis=-1)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("m", [1, 3, 9])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 5e-6)])
def test_quadratic_functions_come_back_exactly(read: Any, m: int, dtype: type, tolerance: float) -> None:
    """Also in the outermost cells. Values reach 300, weights add up to 1.95 in magnitude."""
    x = inside(800)
    field = np.ascontiguousarray(quadratics(points())[..., :m]).astype(dtype)
    computed = read(x.astype(dtype), ORIGIN, SPACING, field)
    assert computed.dtype == dtype
    np.testing.assert_allclose(computed, quadratics(x)[..., :m], rtol=tolerance, atol=300 * tolerance)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("cells", [(1, 1, 1), (2, 1, 5), (3, 4, 2)])
def test_short_axes_are_linear(read: Any, cells: tuple[int, int, int]) -> None:
    """Fewer than three cells: linear functions exactly, and nothing is read beyond the field."""
    matrix = np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 3.0], [0.2, 0.1, 1.0]])
    x = inside(300, 1, cells)
    found = read(x, ORIGIN, SPACING, np.ascontiguousarray(points(cells) @ matrix))
    np.testing.assert_allclose(found, x @ matrix, atol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-6)])
@pytest.mark.parametrize("cells", [(3, 4, 40), (2, 9, 1)])
def test_a_spline_goes_through_the_values(cells: tuple[int, int, int], dtype: type, tolerance: float) -> None:
    """At every point of the grid, faces and corners included, whatever the values are."""
    field = np.random.default_rng(4).standard_normal((*(np.array(cells) + 1), 2)).astype(dtype)
    x = points(cells).reshape(-1, 3).astype(dtype)
    found = spline(x, ORIGIN, SPACING, field)
    # Places are rounded to half an ulp of the largest coordinate, and slopes are some values a spacing.
    slack = 30 * np.finfo(dtype).eps * np.abs(x).max() / SPACING.min()
    np.testing.assert_allclose(found, field.reshape(-1, 2), atol=tolerance + slack)


@pytest.mark.parametrize(("read", "order"), [(cubic.interpolate, 3), (spline, 4)])
def test_order_of_the_error(read: Any, order: int) -> None:
    """Halving h divides it by 8 (Keys 1981), and of a cubic spline by 16 (de Boor 1978, chapter V).

    Ten cells and more from the faces, whose third order a spline forgets by a factor of 2 + sqrt(3) a cell.
    """
    x = np.random.default_rng(2).uniform(0.3, 0.7, (2000, 3))
    errors = []
    for n in (32, 64):
        h, origin = np.full(3, 1.0 / n), np.zeros(3)
        field = np.sin(5 * grid.grid_points((origin, h, np.full(3, n)))).copy()
        errors.append(np.abs(read(x, origin, h, field) - np.sin(5 * x)).max())
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.1)


def sorted_cloud(n: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = inside(n, 3).astype(dtype)
    values = np.random.default_rng(4).standard_normal((3, n)).astype(dtype)
    start, order = partition(x, ORIGIN, SPACING, CELLS)
    return np.ascontiguousarray(x[order].T), np.ascontiguousarray(values[:, order]), start


def test_scatter_keeps_the_moments_0_1_and_2() -> None:
    """Weights reproduce quadratics, so sum_points x^k w = x_p^k for k = 0, 1, 2 and their products."""
    sx, values, start = sorted_cloud(700)
    out = m4_prime(sx, values, start, ORIGIN, SPACING, CELLS)
    at = points().reshape(-1, 3)
    for power in ((0, 0, 0), (1, 0, 0), (0, 2, 0), (1, 1, 1), (2, 0, 2), (2, 2, 2)):
        on_grid = (np.prod(at**power, axis=1)[:, None] * out.reshape(-1, 3)).sum(axis=0)
        given = (np.prod(sx.T**power, axis=1) * values).sum(axis=1)
        size = np.abs(np.prod(sx.T**power, axis=1) * values).sum()
        assert np.abs(on_grid - given).max() < 1e-13 * size


@pytest.mark.parametrize("scatter", [m4_prime, m6_prime])
@pytest.mark.parametrize("cells", [1, 2])
def test_a_scatter_along_a_short_axis_leaves_other_rows_alone(scatter: Any, cells: int) -> None:
    """Two points have weights, and a third is the next row's: not even zero times infinity goes there."""
    count, spacing = np.array([7, 7, cells]), np.ones(3)
    x = np.array([[3.3, 3.4, cells - 0.75]])
    start, _ = partition(x, np.zeros(3), spacing, count)
    out = scatter(np.ascontiguousarray(x.T), np.full((1, 1), np.inf), start, np.zeros(3), spacing, count)
    reached = 4 if scatter is m4_prime else 6
    rows = ~np.isfinite(out[..., 0]).all(axis=2)
    assert rows.sum() == reached**2
    assert (~np.isfinite(out)).sum() == 2 * reached**2


@pytest.mark.parametrize("cells", [(4, 5, 3), (2, 3, 3), (5, 7, 1)])
def test_coarsening_keeps_the_moments_0_1_and_2(cells: tuple[int, int, int]) -> None:
    """Along an axis of three coarse cells or more; with one or two, weights are linear and keep 0 and 1."""
    field = np.random.default_rng(6).standard_normal((*(CELLS + 1), 2))
    coarse = cubic.coarsen(field, np.array(cells))
    wide = grid.grid_points((ORIGIN, SPACING * CELLS / cells, np.array(cells)))
    most = [2 if n >= 3 else 1 for n in cells]
    for power in ((0, 0, 0), (1, 1, 1), tuple(most), (most[0], 0, 1)):
        before = (np.prod(points() ** power, axis=-1)[..., None] * field).sum(axis=(0, 1, 2))
        after = (np.prod(wide**power, axis=-1)[..., None] * coarse).sum(axis=(0, 1, 2))
        size = np.abs(np.prod(points() ** power, axis=-1)[..., None] * field).sum()
        assert np.abs(after - before).max() < 1e-13 * size


@pytest.mark.parametrize("cells", [(5, 7, 3), (1, 4, 5), (6, 5, 2)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_velocity_and_gradient_in_one_pass(
    cells: tuple[int, int, int], dtype: type, tolerance: float
) -> None:
    """As one after the other, at the rows that are named and no others; short axes are linear, as there."""
    x = inside(500, 7, cells).astype(dtype)
    field = np.random.default_rng(8).standard_normal((*(np.array(cells) + 1), 3)).astype(dtype)
    rows = np.random.default_rng(9).permutation(500)[:300]
    u, du = np.full((500, 3), 7.0, dtype), np.full((500, 3, 3), 7.0, dtype)
    both = differences.jacobian(field, SPACING, order=4, with_field=True)
    cubic_gradient.interpolate(x, rows, ORIGIN, SPACING, both, u, du)
    jacobian = differences.jacobian(field, SPACING, order=4)
    exact, slope = (cubic.interpolate(x, ORIGIN, SPACING, f) for f in (field, jacobian))
    scale = float(np.abs(jacobian).max())
    np.testing.assert_allclose(u[rows], exact[rows], atol=4 * tolerance)
    np.testing.assert_allclose(du[rows], slope[rows], atol=scale * tolerance)
    others = np.setdiff1d(np.arange(500), rows)
    assert (u[others] == 7.0).all() and (du[others] == 7.0).all()


NOT_FLAT = np.zeros(3, np.int64)


def spline_gradient_at(x: np.ndarray, field: np.ndarray, flat: np.ndarray = NOT_FLAT) -> Any:
    u, du = np.empty_like(x), np.empty((len(x), 3, 3), x.dtype)
    c = cubic.coefficients(field)
    spline_gradient.interpolate(x, np.arange(len(x)), ORIGIN, SPACING, flat, c, u, du)
    return u, du


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_a_spline_of_quadratics_has_their_gradient(dtype: type, tolerance: float) -> None:
    """Also in the outermost cells: of (x^2 y, z^2 - x y, x z^2), values up to 10, slopes up to 50."""
    x, at = inside(800), points()

    def values(at: np.ndarray) -> np.ndarray:
        a, b, c = at[..., 0], at[..., 1], at[..., 2]
        return np.stack([a * a * b, c * c - a * b, a * c * c], axis=-1)

    a, b, c = x.T
    zero = 0 * a
    slopes = np.array([[2 * a * b, a * a, zero], [-b, -a, 2 * c], [c * c, zero, 2 * a * c]])
    exact = slopes.transpose(2, 0, 1)
    u, du = spline_gradient_at(x.astype(dtype), values(at).astype(dtype))
    np.testing.assert_allclose(u, values(x), atol=10 * tolerance)
    np.testing.assert_allclose(du, exact, atol=50 * tolerance)
    flat = spline_gradient_at(x.astype(dtype), values(at).astype(dtype), np.array([0, 1, 0]))[1]
    assert (flat[..., 1] == 0.0).all()
    np.testing.assert_array_equal(flat[..., ::2], du[..., ::2])


@pytest.mark.parametrize("cells", [(1, 4, 5), (6, 5, 2), (5, 2, 7)])
def test_the_gradient_is_the_derivative_of_what_is_read(cells: tuple[int, int, int]) -> None:
    """At the rows that are named and no others, short axes among them, by differences over 2e-6 spacings.

    Of values of 1 these are rounded to 1e-16 / 2e-6, and inside of a cell a cubic leaves 1e-12 of its third
    derivative, some 10 a spacing^3; no row is so near to a face of a cell.
    """
    x, step = inside(500, 7, cells), 1e-6 * SPACING
    field = np.random.default_rng(8).standard_normal((*(np.array(cells) + 1), 3))
    rows = np.random.default_rng(9).permutation(500)[:300]
    u, du, c = np.full((500, 3), 7.0), np.full((500, 3, 3), 7.0), cubic.coefficients(field)
    spline_gradient.interpolate(x, rows, ORIGIN, SPACING, NOT_FLAT, c, u, du)
    np.testing.assert_allclose(u[rows], spline(x, ORIGIN, SPACING, field)[rows], atol=1e-13)
    for axis in range(3):
        shift = step * (np.arange(3) == axis)
        higher, lower = (spline(x + sign * shift, ORIGIN, SPACING, field) for sign in (1, -1))
        slope = (higher - lower)[rows] / (2 * step[axis])
        np.testing.assert_allclose(du[rows][..., axis], slope, atol=2e-9 / SPACING.min())
    others = np.setdiff1d(np.arange(500), rows)
    assert (u[others] == 7.0).all() and (du[others] == 7.0).all()


def test_scatter_is_the_transpose_of_interpolate() -> None:
    """sum_points f scatter(v) = sum_p v interpolate(f)."""
    sx, values, start = sorted_cloud(400)
    field = np.random.default_rng(5).standard_normal((*(CELLS + 1), 3))
    read = cubic.interpolate(np.ascontiguousarray(sx.T), ORIGIN, SPACING, field)
    out = m4_prime(sx, values, start, ORIGIN, SPACING, CELLS)
    assert (field * out).sum() == pytest.approx((read.T * values).sum(), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype: type) -> None:
    sx, values, start = sorted_cloud(3000, dtype)
    x = sx.T.copy()

    def everything() -> tuple[np.ndarray, ...]:
        out = m4_prime(sx, values, start, ORIGIN, SPACING, CELLS)
        u, du = np.empty_like(x), np.empty((3000, 3, 3), dtype)
        both = differences.jacobian(out, SPACING, with_field=True)
        cubic_gradient.interpolate(x, np.arange(3000), ORIGIN, SPACING, both, u, du)
        read, coarse = cubic.interpolate(x, ORIGIN, SPACING, out), cubic.coarsen(out, np.array([3, 4, 2]))
        return out, read, u, du, coarse, cubic.coefficients(out), *spline_gradient_at(x, out)

    check_threads(everything)


def test_a_place_that_is_not_finite_gives_nan_to_its_own_row_alone() -> None:
    """Rows are worked on in blocks of 128, the last one filled up."""
    field = np.random.default_rng(8).random((*points().shape[:3], 3))
    x = inside(300)
    good = cubic.interpolate(x, ORIGIN, SPACING, field)
    x[5, 1], x[140, 2], x[299, 0] = np.nan, np.nan, np.nan
    found = cubic.interpolate(x, ORIGIN, SPACING, field)
    bad = np.isin(np.arange(300), (5, 140, 299))
    assert np.isnan(found[bad]).all()
    np.testing.assert_array_equal(found[~bad], good[~bad])
