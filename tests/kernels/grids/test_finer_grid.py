"""Splines read linearly from a grid twice as fine."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.grids import cubic, interpolation, read_points
from ecs_fluid.kernels.grids.finer_grid import refined
from tests.threads import check_threads

ORIGIN, EXTENT = np.array([-0.4, 0.1, 0.2]), np.array([1.6, 1.2, 0.9])


def mesh(cells: tuple[int, int, int]) -> tuple[Array, Array]:
    """Spacing (3,) m and points (px, py, pz, 3) m of the box in that many cells."""
    spacing = EXTENT / cells
    axes = (ORIGIN[a] + spacing[a] * np.arange(cells[a] + 1) for a in range(3))
    return spacing, np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def places(n: int = 4000, margin: float = 0.0) -> Array:
    draw = np.random.default_rng(3).random((n, 3))
    return ORIGIN + EXTENT * (margin + (1.0 - 2.0 * margin) * draw)


def read(x: Array, values: Array, spacing: Array) -> Array:
    fine, half = refined(cubic.coefficients(values), spacing)
    return interpolation.interpolate(x, ORIGIN, half, fine)


@pytest.mark.parametrize("cells", [(7, 5, 9), (3, 3, 3), (1, 6, 4), (5, 2, 4), (4, 8, 1), (1, 1, 2)])
def test_linear_fields_come_out_exactly(cells: tuple[int, int, int]) -> None:
    """Also at faces, beyond them, and along axes of one or two cells, which are not refined; to the rounding
    of numbers up to 10."""
    spacing, p = mesh(cells)
    turn = np.array([[2.0, -3.0, 0.0], [0.5, 1.0, 1.0], [-1.0, 4.0, 2.0]])
    x = np.concatenate([places(), p.reshape(-1, 3), [ORIGIN + 2.0 * EXTENT]])
    exact = np.minimum(x, ORIGIN + EXTENT) @ turn + [1.0, 0.0, 5.0]
    assert np.abs(read(x, p @ turn + [1.0, 0.0, 5.0], spacing) - exact).max() < 1e-13


def test_the_finer_points_lie_about_the_spline_so_that_the_mean_error_of_a_cell_is_none() -> None:
    """f = x^2, cells of h: linear readings err by t (H - t) f''/2 - f'' H^2/12 with H = h/2, so that the mean
    is none, and the RMS f'' H^2 / (12 sqrt 5); values of f itself at the finer points would have sqrt(6)
    times as much."""
    cells = (10, 6, 6)
    spacing, p = mesh(cells)
    x = np.tile([[0.0, 0.7, 0.6]], (40 * cells[0], 1))
    x[:, 0] = ORIGIN[0] + EXTENT[0] * (np.arange(len(x)) + 0.5) / len(x)  # 20 middles of equal parts of H
    error = read(x, p[..., [0]] ** 2 * [1.0, 2.0, 3.0], spacing)[:, 0] - x[:, 0] ** 2
    curved = 2.0 * (0.5 * spacing[0]) ** 2
    # The middles of 20 parts sum t (H - t) to a part of 1 / (2 20^2) less than nothing of H^2/6.
    assert abs(error.mean()) < curved / 12.0 / 300.0
    assert np.sqrt(np.mean(error**2)) == pytest.approx(curved / (12.0 * np.sqrt(5.0)), rel=0.01)


def test_it_is_of_second_order_with_the_error_that_the_second_derivatives_tell() -> None:
    """A wave sin(k x) along each axis in turn: RMS of (k H)^2 / (12 sqrt 5) of its own, where the spline's
    error, of fourth order, is small beside that: from 12 points a wave on."""
    for axis in range(3):
        for points in (12, 24):
            cells = [6, 6, 6]
            cells[axis] = 2 * points
            spacing, p = mesh((cells[0], cells[1], cells[2]))
            k = 2.0 * np.pi / (points * spacing[axis])
            x = places(20_000, 0.15)
            exact = np.sin(k * x[:, axis])
            error = read(x, np.repeat(np.sin(k * p[..., [axis]]), 3, axis=-1), spacing)[:, 1] - exact
            relative = np.sqrt(np.mean(error**2) / np.mean(exact**2))
            assert relative == pytest.approx((0.5 * k * spacing[axis]) ** 2 / (12.0 * np.sqrt(5.0)), rel=0.07)


def test_around_known_points_it_is_what_the_whole_grid_gives() -> None:
    """Of coefficients that are not a number where none is known."""
    cells = (14, 9, 12)
    spacing, p = mesh(cells)
    t = np.linspace(0.0, 1.0, 300)[:, None]
    x = ORIGIN + EXTENT * np.concatenate(
        [0.5 + 0.4 * np.c_[np.cos(9 * t), np.sin(9 * t), 2.0 * t - 1.0], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]]
    )
    marked = np.zeros(cells, np.uint8)
    read_points.mark_cells(x, ORIGIN, spacing, marked)
    known = read_points.PointsRead(marked, cubic=True).read
    assert known.mean() < 0.7
    values = cubic.coefficients(np.sin(4.0 * p))
    fine, half = refined(np.where(known[..., None], values, np.nan), spacing, known)
    assert np.array_equal(half, 0.5 * spacing)
    found = interpolation.interpolate(x, ORIGIN, half, fine)
    assert np.array_equal(found, interpolation.interpolate(x, ORIGIN, half, refined(values, spacing)[0]))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bits_do_not_depend_on_the_number_of_threads(kind: type) -> None:
    values = np.random.default_rng(1).random((12, 9, 11, 3)).astype(kind)
    assert refined(values, EXTENT)[0].dtype == kind
    check_threads(lambda: refined(values, EXTENT)[0])
