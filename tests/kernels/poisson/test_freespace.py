"""Unbounded Poisson by FFT: case 58, stretched cells, blobs against the direct sum, workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES
from ecs_fluid.kernels.grids.grid import grid_points
from ecs_fluid.kernels.poisson.freespace import hockney
from tests.threads import check_threads

Array = NDArray[Any]
REALS = (np.float32, np.float64)
SIGMA = 0.1
"""Core radius of the blobs, m."""


def gaussian(cells: tuple[int, int, int], extent: tuple[float, float, float], s: float) -> tuple[Array, ...]:
    """Gaussian source of strength 1 in the middle of a box, its potential with blobs SIGMA, and the spacing.

    omega = exp(-r^2/(2 s^2)) / ((2 pi)^(3/2) s^3), made of gaussian blobs, has the variance
    s^2 + SIGMA^2 = t^2 along each axis, so A = erf(r/(t sqrt 2)) / (4 pi r), A(0) the limit.
    """
    axes = [np.linspace(-0.5 * e, 0.5 * e, n + 1) for n, e in zip(cells, extent, strict=True)]
    r = np.sqrt(axes[0][:, None, None] ** 2 + axes[1][:, None] ** 2 + axes[2] ** 2)
    omega = np.exp(-0.5 * (r / s) ** 2) / ((2.0 * np.pi) ** 1.5 * s**3)
    r, t = np.maximum(r, 1e-9), np.hypot(s, SIGMA)
    return omega[..., None], erf(r / (t * np.sqrt(2.0))) / (4.0 * np.pi * r), np.array(extent) / cells


def error(cells: Any, extent: Any, s: float, real: Any = np.float64) -> float:
    """Largest error over the largest potential."""
    omega, exact, spacing = gaussian(cells, extent, s)
    found = hockney(omega.astype(real), spacing, CODES["gaussian"], SIGMA)
    assert found.dtype == real
    return float(np.abs(found[..., 0] - exact).max() / exact.max())


@pytest.mark.parametrize("n", [8, 12, 16, 32])
def test_case_58(n: int) -> None:
    """s = 0.1 L: Hockney and Eastwood's mean over the cell gives 1.15e-2 on 16^3 cells, 3.4e-3 on 32^3.

    With blobs of that size all is smooth, and the trapezoidal rule errs by what the spectrum of source and
    blob, exp(-(s^2 + SIGMA^2) k^2/2), holds at the shortest wave of the grid, k = pi n/L: below every power
    of h. Found 9.6e-4, 1.2e-7, 7e-8, 2.5e-7; what is left is cut off at the faces (5 s away), a shell of
    3e-7 of the strength.
    """
    alias = np.exp(-(0.1**2 + SIGMA**2) * (np.pi * n) ** 2 / 2)
    assert error((n, n, n), (1.0, 1.0, 1.0), 0.1) < max(alias, 1e-6)


def test_stretched_cells_and_odd_boxes() -> None:
    """Cells of 1 : 1.4 : 0.8 in a box that is no cube, sizes that FFTs dislike."""
    for cells in ((22, 20, 31), (44, 40, 62)):
        assert error(cells, (1.0, 1.3, 1.1), 0.1) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_blobs_equal_the_direct_sum(name: str) -> None:
    """Vortons of one radius at the grid points, alpha = omega V_c: both sum the same terms."""
    rng = np.random.default_rng(2)
    shape, spacing = (7, 6, 9), np.array([0.3, 0.2, 0.25])
    omega = rng.standard_normal((*shape, 3))
    points = grid_points((np.zeros(3), spacing, np.array(shape) - 1)).reshape(-1, 3)
    alpha = omega.reshape(-1, 3) * np.prod(spacing)
    psi, blobs = np.empty_like(points), np.empty_like(points)
    columns = [np.ascontiguousarray(a.T) for a in (points, alpha)]
    direct.potential_vorticity(CODES[name], points, *columns, np.full(len(points), 0.35), psi, blobs)
    found = hockney(omega, spacing, CODES[name], 0.35)
    assert np.abs(found.reshape(-1, 3) - psi).max() < 1e-13 * np.abs(psi).max() * 10.0


def test_two_points_per_axis() -> None:
    """The smallest grid, by hand: A_i = V_c sum_j G_ij omega_j with G = 1/(4 pi sqrt(r^2 + sigma^2))."""
    omega = np.random.default_rng(5).standard_normal((2, 2, 2, 1))
    found = hockney(omega, (1.0, 1.0, 1.0), CODES["rosenhead_moore"], 0.3)
    corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    r = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    green = 1.0 / (4.0 * np.pi * np.hypot(r, 0.3))
    assert np.allclose(found.ravel(), green @ omega.ravel(), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("real", REALS)
def test_same_bits_for_any_number_of_threads(real: Any) -> None:
    omega = np.random.default_rng(6).standard_normal((21, 26, 18, 3)).astype(real)
    check_threads(lambda: hockney(omega, (0.1, 0.1, 0.2), CODES["winckelmans"], SIGMA))


def test_single_precision() -> None:
    """float32 differs from float64 by a few roundings of the largest potential."""
    omega, exact, spacing = gaussian((24, 24, 24), (1.0, 1.0, 1.0), 0.1)
    single, double = (hockney(omega.astype(real), spacing, CODES["winckelmans"], SIGMA) for real in REALS)
    assert single.dtype == np.float32
    assert np.abs(single - double).max() < 2e-6 * exact.max()
