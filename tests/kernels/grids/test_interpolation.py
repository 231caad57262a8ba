"""Trilinear interpolation and scatter: exactness, conservation, adjointness."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids import grid, interpolation, partition
from tests.threads import check_threads

ORIGIN, SPACING, CELLS = np.array([-1.0, 2.0, 0.5]), np.array([0.3, 0.2, 0.7]), np.array([5, 7, 3])
POINTS = grid.grid_points((ORIGIN, SPACING, CELLS))


def inside(n: int, seed: int = 0) -> np.ndarray:
    return ORIGIN + np.random.default_rng(seed).random((n, 3)) * SPACING * CELLS


def trilinear(x: np.ndarray) -> np.ndarray:
    """Nine functions that are linear in x, y and z each."""
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    nine = (1 + 0 * a, a, b, c, a * b, b * c, c * a, a * b * c, 2 - a + 3 * b * c - a * b * c)
    return np.stack(nine, axis=-1)


@pytest.mark.parametrize("m", [1, 3, 9])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 5e-6)])
def test_trilinear_functions_come_back_exactly(m: int, dtype: type, tolerance: float) -> None:
    """float32: values up to 20 with a rounding of 6e-8 each, summed over eight corners."""
    x = inside(500)
    field = np.ascontiguousarray(trilinear(POINTS)[..., :m]).astype(dtype)
    computed = interpolation.interpolate(x.astype(dtype), ORIGIN, SPACING, field)
    assert computed.dtype == dtype
    np.testing.assert_allclose(computed, trilinear(x)[..., :m], rtol=tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("shape", [(), (3,), (3, 3)])
def test_trailing_shape_is_kept_and_grid_points_give_the_field_itself(shape: tuple) -> None:
    field = np.random.default_rng(1).random((*POINTS.shape[:3], *shape))
    at_points = interpolation.interpolate(POINTS.reshape(-1, 3), ORIGIN, SPACING, field)
    # 1e-12: a grid point is rounded to float64, so its fraction is 1e-15 away from 0 or 1.
    np.testing.assert_allclose(at_points, field.reshape(-1, *shape), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 5])
def test_a_row_has_the_same_bits_wherever_it_stands(m: int, dtype: type) -> None:
    """Rows are worked on in blocks of 128; the last one is filled up."""
    field = np.random.default_rng(4).random((*POINTS.shape[:3], m)).astype(dtype)
    x = inside(1000).astype(dtype)
    together = interpolation.interpolate(x, ORIGIN, SPACING, field)
    shifted = interpolation.interpolate(x[77:900], ORIGIN, SPACING, field)
    np.testing.assert_array_equal(shifted, together[77:900])


@pytest.mark.parametrize("cells", [(1, 1, 1), (1, 2, 1), (3, 1, 2)])
@pytest.mark.parametrize("m", [1, 3, 4, 9])
def test_fields_of_few_points_are_read_to_their_last_number(cells: tuple, m: int) -> None:
    """Vectors of four numbers would end beyond them; the sum over the eight points is the reference."""
    count = np.array(cells)
    field = np.random.default_rng(6).random((*(count + 1), m))
    x = np.random.default_rng(7).random((500, 3)) * count
    cell = np.minimum(x.astype(int), count - 1)
    f = x - cell
    expected = np.zeros((500, m))
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, f, 1 - f), axis=1)
        expected += weight[:, None] * field[tuple((cell + corner).T)]
    computed = interpolation.interpolate(x, np.zeros(3), np.ones(3), field)
    np.testing.assert_allclose(computed, expected, rtol=1e-13)


def test_a_place_that_is_not_finite_gives_nan_to_its_own_row_alone() -> None:
    field = np.random.default_rng(8).random((*POINTS.shape[:3], 3))
    x = inside(300)
    good = interpolation.interpolate(x, ORIGIN, SPACING, field)
    x[5, 1], x[140, 2], x[299, 0] = np.nan, np.nan, np.nan
    found = interpolation.interpolate(x, ORIGIN, SPACING, field)
    bad = np.isin(np.arange(300), (5, 140, 299))
    assert np.isnan(found[bad]).all()
    np.testing.assert_array_equal(found[~bad], good[~bad])


def test_outside_takes_the_value_of_the_nearest_point_of_the_box() -> None:
    field = np.random.default_rng(2).random((*POINTS.shape[:3], 3))
    x = ORIGIN + (np.random.default_rng(3).random((400, 3)) * 3 - 1) * SPACING * CELLS
    nearest = np.clip(x, ORIGIN, ORIGIN + SPACING * CELLS)
    np.testing.assert_allclose(
        interpolation.interpolate(x, ORIGIN, SPACING, field),
        interpolation.interpolate(nearest, ORIGIN, SPACING, field),
        atol=1e-12,
    )


def test_plane_of_a_flat_grid_is_read_exactly() -> None:
    """Points in the plane where a flat grid starts never see the second layer of points."""
    x = np.random.default_rng(4).random((200, 3)) * (1, 1, 0)
    origin, spacing, cells = grid.uniform_grid(*bounds(x), 200)
    field = np.random.default_rng(5).random((*(cells + 1), 3))
    poisoned = field.copy()
    poisoned[:, :, 1] = 1e30
    a = interpolation.interpolate(x, origin, spacing, field)
    np.testing.assert_array_equal(a, interpolation.interpolate(x, origin, spacing, poisoned))


def test_nan_in_the_field_and_in_positions_is_passed_on() -> None:
    field = np.ones((*POINTS.shape[:3], 3))
    field[0, 0, 0, 1] = np.nan
    x = ORIGIN + np.array([[0.5, 0.5, 0.5], [2.5, 2.5, 2.5]]) * SPACING
    values = interpolation.interpolate(x, ORIGIN, SPACING, field)
    assert np.isnan(values[0, 1]) and np.isfinite(values[1]).all()
    x[1, 2] = np.nan
    assert np.isnan(interpolation.interpolate(x, ORIGIN, SPACING, field)[1]).all()


def sorted_rows(x: np.ndarray, *values: np.ndarray) -> tuple:
    start, order = partition.partition(x, ORIGIN, SPACING, CELLS)
    return start, partition.gather_sorted(x, order), *(partition.gather_sorted(v, order) for v in values)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 300), m=st.integers(1, 5), seed=st.integers(0, 10**6), outside=st.booleans())
def test_scatter_keeps_totals_and_is_the_transpose_of_interpolate(n, m, seed, outside) -> None:
    """Case 61 and its adjoint: sum over points = sum over rows, and <scatter(v), F> = <v, interpolate(F)>."""
    rng = np.random.default_rng(seed)
    x = ORIGIN + (rng.random((n, 3)) * (1.4 if outside else 1.0) - 0.2 * outside) * SPACING * CELLS
    start, sx, values = sorted_rows(x, rng.normal(size=(n, m)))
    on_points = interpolation.scatter(sx, values, start, ORIGIN, SPACING, CELLS)
    size = np.abs(values).sum() + 1e-300
    np.testing.assert_allclose(on_points.sum(axis=(0, 1, 2)), values.sum(axis=1), atol=1e-12 * size)
    field = rng.normal(size=on_points.shape)
    back = interpolation.interpolate(np.ascontiguousarray(sx.T), ORIGIN, SPACING, field)
    assert (on_points * field).sum() == pytest.approx((values.T * back).sum(), abs=1e-12 * size)


def test_scatter_conserves_the_first_moment() -> None:
    """Trilinear weights reproduce linear functions: the centroid of a scattered total does not move."""
    x = inside(333, seed=6)
    start, sx, mass = sorted_rows(x, np.random.default_rng(7).random(333))
    on_points = interpolation.scatter(sx, mass, start, ORIGIN, SPACING, CELLS)
    assert on_points.shape == POINTS.shape[:3]
    np.testing.assert_allclose((on_points[..., None] * POINTS).sum(axis=(0, 1, 2)), sx @ mass, rtol=1e-12)


def test_scatter_overwrites_what_was_there_and_keeps_single_precision() -> None:
    """In float32 the total is kept to the rounding of 1,000 additions, about 1e-6."""
    x = inside(1000, seed=8).astype(np.float32)
    start, sx, mass = sorted_rows(x, np.ones(1000, np.float32))
    out = np.full(POINTS.shape[:3], 7, np.float32)
    assert interpolation.scatter(sx, mass, start, ORIGIN, SPACING, CELLS, out) is out
    assert out.sum(dtype=np.float64) == pytest.approx(1000, rel=1e-6)


@pytest.mark.parametrize("cells", [(1, 1, 1), (1, 6, 1), (8, 1, 2), (4, 5, 6)])
def test_bits_do_not_depend_on_threads(cells: tuple) -> None:
    rng = np.random.default_rng(9)
    x = rng.random((4001, 3)).astype(np.float32)
    count = np.array(cells)
    origin, spacing = np.zeros(3), 1.0 / count
    start, order = partition.partition(x, origin, spacing, count)
    sx, values = partition.gather_sorted(x, order), rng.random((4, 4001)).astype(np.float32)

    def there_and_back() -> tuple[np.ndarray, np.ndarray]:
        field = interpolation.scatter(sx, values, start, origin, spacing, count)
        return field, interpolation.interpolate(x, origin, spacing, field)

    check_threads(there_and_back)
