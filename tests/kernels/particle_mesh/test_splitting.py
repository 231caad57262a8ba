"""The smooth part of a blob's velocity: what it is from the reach on, and how smoothly it gets there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.direct import velocity
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES
from ecs_fluid.kernels.particle_mesh import splitting
from ecs_fluid.kernels.particle_mesh.splitting import share_within, smooth_part

Array = NDArray[Any]


def test_the_spectrum_of_the_smooth_part() -> None:
    """zeta(k) = 4 pi int (vorticity) sin(k r)/(k r) r^2 dr with 4 pi r^2 (vorticity) = q' of q = r^3 g_long.

    For a point that is all within the reach; its stand-in has a core of R/10,000, (k sigma)^2/10 = 2e-6.
    """
    reach = 3.0
    found = smooth_part(CODES["rankine"], 0.5, reach)
    nodes, shares = np.polynomial.legendre.leggauss(200)
    r = 0.5 * reach * (nodes + 1.0)
    in_r = Polynomial(found.factors)(Polynomial([1.0, 0.0, -(reach**-2)])) * Polynomial([0.0, 0.0, 0.0, 1.0])
    waves = np.sinc(np.outer(splitting.WAVES, r) / np.pi)
    exact = waves @ (in_r.deriv()(r) * 0.5 * reach * shares)
    assert in_r(reach) == pytest.approx(1.0)
    assert np.abs(found.spectrum - exact).max() < 4e-6


def test_the_error_is_least() -> None:
    """A little more or less of any term but the first two makes it larger; Taylor's series, 1.6 times."""
    reach, code = 3.0, CODES["rankine"]
    found = smooth_part(code, 0.5, reach)
    zeta, terms = splitting._terms(code, 1e-4 * reach, reach)

    def error(factors: Array) -> float:
        return float(np.sum((zeta + terms @ factors) ** 2 * splitting.WIDTHS * splitting.alias_weights()[1]))

    least = error(found.factors)
    for j in range(2, 5):
        for change in (0.98, 1.02):
            assert error(found.factors * np.where(np.arange(5) == j, change, 1.0)) > least
    # Of g = r^-3 = R^-3 (1 - v)^(-3/2): 1, 3/2, 15/8, 35/16, 315/128.
    taylor = np.array([1.0, 3 / 2, 15 / 8, 35 / 16, 315 / 128]) / reach**3
    assert error(taylor) > 1.6**2 * least


def factor(name: str, sigma: float, r: Array) -> Array:
    """g = q/r^3 from the direct sum: u_y = g r / (4 pi) at r along x, of a strength along z."""
    x, u = np.zeros((len(r), 3)), np.empty((len(r), 3))
    x[:, 0] = r
    velocity(CODES[name], x, np.zeros((3, 1)), np.array([[0.0], [0.0], [1.0]]), np.array([sigma]), u)
    return u[:, 1] * 4.0 * np.pi / r


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.9])
def test_value_and_slope_go_on_at_the_reach(name: str, sigma: float) -> None:
    """a_0 and a_1 are g and dg/dv in v = 1 - r^2/R^2 of what stands beyond: a polynomial through 13 places
    just beyond R has the same, but for its own remainder and rounding."""
    reach, v = 2.0, -0.05 * (1.0 - np.cos(np.pi * (np.arange(13) + 0.5) / 13))
    exact = Polynomial.fit(v, factor(name, sigma * reach, reach * np.sqrt(1.0 - v)), 12).convert().coef
    found = smooth_part(CODES[name], sigma * reach, reach).factors
    for j, error in enumerate((1e-9, 1e-8)):
        assert abs(found[j] - exact[j]) < error * max(abs(exact[j]), exact[0])


@pytest.mark.parametrize("name", NAMES)
def test_share_of_strength_within_the_reach(name: str) -> None:
    """q = g r^3 by the pair loops."""
    sigma = np.array([0.1, 0.5, 0.9])
    found = share_within(CODES[name], sigma, 1.0)
    assert np.allclose(found, [factor(name, s, np.array([1.0]))[0] for s in sigma], rtol=1e-12)
