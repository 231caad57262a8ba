"""The smooth part of a blob's velocity: what it is from the reach on, and how smoothly it gets there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.direct import velocity
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES
from ecs_fluid.kernels.particle_mesh.splitting import share_within, smooth_part

Array = NDArray[Any]


def test_a_point_vortex_is_smoothed_to_a_blob_that_ends_at_the_reach() -> None:
    """Its vorticity is c (1 - s^2)^M: the strength within s is c int (1 - s'^2)^M s'^2 ds', and 1 at s = 1.

    For M = 4 that is s^3/3 - 4 s^5/5 + 6 s^7/7 - 4 s^9/9 + s^11/11, 128/3465 at s = 1, and g = q/s^3.
    """
    a = smooth_part(CODES["rankine"], 0.5, 1.0, 4)
    s = np.linspace(0.0, 1.0, 11)
    exact = (1 / 3 - 4 * s**2 / 5 + 6 * s**4 / 7 - 4 * s**6 / 9 + s**8 / 11) * 3465 / 128
    assert np.abs(np.polyval(a[::-1], 1.0 - s**2) - exact).max() < 1e-12 * exact[0]
    assert np.allclose(smooth_part(CODES["rankine"], 0.5, 2.0, 4), a / 8.0, rtol=1e-14)


def factor(name: str, sigma: float, r: Array) -> Array:
    """g = q/r^3 from the direct sum: u_y = g r / (4 pi) at r along x, of a strength along z."""
    x, u = np.zeros((len(r), 3)), np.empty((len(r), 3))
    x[:, 0] = r
    velocity(CODES[name], x, np.zeros((3, 1)), np.array([[0.0], [0.0], [1.0]]), np.array([sigma]), u)
    return u[:, 1] * 4.0 * np.pi / r


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.9])
def test_all_slopes_up_to_the_last_go_on_at_the_reach(name: str, sigma: float) -> None:
    """a_j v^j are the Taylor terms in v = 1 - r^2/R^2 of what stands beyond: a polynomial through 13 places
    just beyond R has the same, but for its own remainder and rounding, which grows from slope to slope."""
    reach, v = 2.0, -0.05 * (1.0 - np.cos(np.pi * (np.arange(13) + 0.5) / 13))
    exact = Polynomial.fit(v, factor(name, sigma * reach, reach * np.sqrt(1.0 - v)), 12).convert().coef
    found = smooth_part(CODES[name], sigma * reach, reach, 4)
    for j, error in enumerate((1e-9, 1e-8, 1e-6, 1e-4, 1e-2)):
        assert abs(found[j] - exact[j]) < error * max(abs(exact[j]), exact[0])


@pytest.mark.parametrize("name", NAMES)
def test_share_of_strength_within_the_reach(name: str) -> None:
    """q = g r^3 by the pair loops."""
    sigma = np.array([0.1, 0.5, 0.9])
    found = share_within(CODES[name], sigma, 1.0)
    assert np.allclose(found, [factor(name, s, np.array([1.0]))[0] for s in sigma], rtol=1e-12)
