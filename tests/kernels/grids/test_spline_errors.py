"""Where reading between points of a grid is expected to err."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.grids import cubic
from ecs_fluid.kernels.grids.grid import grid_points
from ecs_fluid.kernels.grids.spline_errors import squared_errors

CELLS = np.array([10, 8, 9])
SPACING, ORIGIN = np.full(3, 0.1), np.array([-0.5, 0.2, 0.0])


def told(x: Array, alpha: Array, sigma: Array, places: Array) -> Array:
    columns = (np.ascontiguousarray(a.T) for a in (x, alpha, sigma))
    return squared_errors(*columns, places, ORIGIN, SPACING, CELLS)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_cores_count_by_strength_and_thinness_in_the_cells_that_are_nearest(kind: type) -> None:
    """alpha^2 / sigma (h / (h + sigma))^11 in the eight cells whose middles a core is between, three of them
    the same at a face."""
    middle = ORIGIN + 0.5 * CELLS * SPACING
    x = np.array([middle + 0.01, [-0.49, 0.21, 0.01], [5.0, 0.6, -9.0]], kind)
    alpha, sigma = np.array([[3.0, 0, 0], [0, 0, -1.0], [0, 2.0, 0]], kind), np.array([0.05, 0.01, 0.4], kind)
    parts = np.array([9.0, 1.0, 4.0]) / sigma * (0.1 / (0.1 + sigma)) ** 11
    beside, far = x - [0.03, 0.0, 0.0], np.add(x, [0.21, 0.21, 0.0])
    places = np.concatenate([x, beside, far, [[-7.0, -7.0, -7.0]]]).astype(kind)
    # A core in the corner of the box is between the middle of the last cell and itself, along each axis.
    meant = np.array([parts[0], 8 * parts[1], 4 * parts[2]])
    found = told(x, alpha, sigma, places)
    for rows in (slice(0, 3), slice(3, 6)):
        np.testing.assert_allclose(found[rows] / found[1], meant / meant[1], rtol=1e-5)
    assert not found[[6, 7]].any()
    assert found[9] == found[1]
    assert not told(x, 0 * alpha, sigma, places).any()


def test_what_a_spline_misses_lies_where_it_is_foretold() -> None:
    """Direct sums over 400 cores of two cells, 12 of them of a tenth of one: these 12 have 8 of the 720 cells
    each, two fifteenths of the places, more than nine tenths of the squared error and all that is foretold
    but for what the wide ones have."""
    draw = np.random.default_rng(8)
    inside = ORIGIN + SPACING * CELLS * draw.random((20_400, 3))
    x, places = inside[:400], inside[400:]
    alpha, sigma = 0.1 * draw.standard_normal((400, 3)), np.full(400, 0.2)
    alpha[:12], sigma[:12] = 0.1 * alpha[:12], 0.01
    code, vortons = CODES["winckelmans"], (np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma)
    points = grid_points((ORIGIN, SPACING, CELLS), np.float64)
    field, exact = np.empty_like(points), np.empty_like(places)
    direct.velocity(code, points.reshape(-1, 3), *vortons, field.reshape(-1, 3))
    direct.velocity(code, places, *vortons, exact)
    read = np.empty_like(places)
    cubic.interpolate(places, ORIGIN, SPACING, cubic.coefficients(field), read, cubic.SPLINE)
    wrong, foretold = ((read - exact) ** 2).sum(axis=1), told(x, alpha, sigma, places)
    beside = foretold > 0.01 * foretold.max()
    assert beside.mean() < 12 * 8 / 720
    assert wrong[beside].sum() > 0.9 * wrong.sum()
    assert foretold[beside].sum() > 0.99 * foretold.sum()
