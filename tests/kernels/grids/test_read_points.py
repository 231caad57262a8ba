"""Splines through those points of a grid alone that some positions read."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.grids import cubic, read_points
from tests.threads import check_threads

ORIGIN, SPACING, CELLS = np.array([-0.4, 0.1, 0.0]), np.array([0.1, 0.2, 0.15]), (14, 9, 12)


def positions(n: int = 300) -> Array:
    """Along a thin helix, a few in the corners and outside of the grid."""
    t = np.linspace(0, 1, n)
    inside = np.stack([0.3 * np.cos(9 * t) + 0.3, 0.5 * np.sin(9 * t) + 1.0, 1.6 * t + 0.1], axis=1)
    return np.concatenate([inside, [[-0.4, 0.1, 0.0], [1.0, 1.9, 1.8], [3.0, -1.0, 0.5]]])


def points() -> Array:
    return np.stack(
        np.meshgrid(*(ORIGIN[a] + SPACING[a] * np.arange(CELLS[a] + 1) for a in range(3)), indexing="ij"), -1
    )


def read_by(x: Array, cubic_reading: bool = True) -> Array:
    marked = np.zeros(CELLS, np.uint8)
    read_points.mark_cells(x, ORIGIN, SPACING, marked)
    return read_points.PointsRead(marked, cubic_reading).read


def read_at(x: Array, values: Array, read: Array) -> Array:
    """What the spline gives at x where nothing but NaN is known elsewhere."""
    known = np.where(read[..., None] == 1, values, np.nan)
    read_points.to_coefficients(known, read)
    return cubic.interpolate(x, ORIGIN, SPACING, np.nan_to_num(known), cubics=cubic.SPLINE)


def test_all_points_give_the_spline_of_the_grid() -> None:
    values, everywhere = np.random.default_rng(1).random((15, 10, 13, 3)), np.ones((15, 10, 13), np.uint8)
    found = values.copy()
    read_points.to_coefficients(found, everywhere)
    assert np.abs(found - cubic.coefficients(values)).max() < 1e-13


def test_a_stream_reads_few_points_and_none_that_is_not_known() -> None:
    """Less than half of the points; quadratic fields come out exactly, to the rounding of float64."""
    x = positions()
    read, p = read_by(x), points()
    assert read.mean() < 0.5
    a, b, c = p[..., 0], p[..., 1], p[..., 2]
    values = np.stack([a * b - 2 * c * c, 1 + a * a + 3 * b * c, b * b - a * c + 4 * b], axis=-1)
    found = read_at(x[:-1], values, read)
    x, y, z = x[:-1].T
    exact = np.stack([x * y - 2 * z * z, 1 + x * x + 3 * y * z, y * y - x * z + 4 * y], axis=1)
    assert np.abs(found - exact).max() < 1e-12


def test_between_the_points_it_is_of_fourth_order() -> None:
    """A wave of 16 points: h^4 f''''/384 of three axes is at most 2 pi^4 / 16^4 / 8 = 3.7e-4 of it; the ends
    of runs, of third order, may have ten times as much."""
    x, wave = positions()[:-3], 2 * np.pi / (16 * SPACING)
    field = np.sin(points() @ wave)[..., None] * [1, 2, 3]
    found = read_at(x, field, read_by(x))[:, 0]
    error = np.abs(found - np.sin(x @ wave))
    assert np.sqrt(np.mean(error**2)) < 1e-3
    assert error.max() < 4e-3


@pytest.mark.parametrize("cubic_reading", [False, True])
def test_points_read_are_those_with_a_weight(cubic_reading: bool) -> None:
    """One position: eight points, or with cubics four along each axis, three beside a face of the grid."""
    middle = read_by(np.array([[0.05, 0.95, 0.7]]), cubic_reading)
    corner = read_by(np.array([[-0.39, 0.15, 0.01]]), cubic_reading)
    assert (middle.sum(), corner.sum()) == ((64, 27) if cubic_reading else (8, 8))
    assert middle[4, 4, 4] == 1
    assert middle[5, 5, 5] == 1


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    x, values = positions().astype(np.float32), points().astype(np.float32) ** 3
    check_threads(lambda: read_at(x, values, read_by(x)))
