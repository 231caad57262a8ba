"""The reformulated method in uniform strain, where its equations have closed solutions."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.vorticity.reformulation import reshape_cores
from ecs_fluid.kernels.vorticity.stretch import stretch


def rates(
    du: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, g: float, transposed: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """d(alpha)/dt with stretching, and d(sigma^2)/dt."""
    dalpha, dsigma2 = np.zeros_like(alpha), np.zeros_like(sigma)
    number = alpha.dtype.type
    stretch(du, alpha, sigma, dalpha, number(1 - transposed), number(transposed), number(0))
    reshape_cores(du, alpha, sigma, number(g), number(0), dalpha, dsigma2)
    return dalpha, dsigma2


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_axial_strain(dtype: type, bound: float) -> None:
    """u = s (-x/2, -y/2, z), alpha along z: d|alpha|/dt = 2/5 s |alpha|, dsigma/dt = -s sigma/5.

    So |alpha| = exp(2 s t/5), sigma = exp(-s t/5), and the vorticity at the centre ~ |alpha|/sigma^3 =
    exp(s t) grows like that of a material line, the angular momentum ~ sigma^2 |alpha| not at all.
    """
    s = 3.0
    du = np.diag([-s / 2, -s / 2, s])[None].astype(dtype)
    alpha, sigma = np.array([[0.0, 0.0, 2.0]], dtype), np.array([0.5], dtype)
    dalpha, dsigma2 = rates(du, alpha, sigma, 0.2)
    assert dalpha[0] == pytest.approx([0.0, 0.0, 0.4 * s * 2.0], rel=bound)
    assert dsigma2[0] == pytest.approx(-0.4 * s * 0.25, rel=bound)
    assert dalpha.dtype == dtype and dsigma2.dtype == dtype


def test_angular_momentum_and_vorticity_of_random_vortons() -> None:
    """For any gradient: d(|alpha| sigma^2)/dt = 0, and d(|alpha|/sigma^3)/dt is the full stretching rate.

    Whatever the form: alpha . J alpha = alpha . J^T alpha, so cores shrink alike.
    """
    draw = np.random.default_rng(4)
    du, alpha = draw.standard_normal((50, 3, 3)), draw.standard_normal((50, 3))
    sigma = draw.uniform(0.1, 2.0, 50)
    length = np.linalg.norm(alpha, axis=1)
    full = np.einsum("pi,pij,pj->p", alpha, du, alpha) / length**2
    found = [rates(du, alpha, sigma, 0.2, transposed) for transposed in (0.0, 1.0)]
    for dalpha, dsigma2 in found:
        growth = (dalpha * alpha).sum(axis=1) / length**2
        assert growth + dsigma2 / sigma**2 == pytest.approx(np.zeros(50), abs=1e-14)
        assert growth - 1.5 * dsigma2 / sigma**2 == pytest.approx(full, rel=1e-12)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-12)


def test_turning_is_left_alone() -> None:
    """A gradient that only turns alpha changes neither its length nor its core; zero strength gives zero."""
    du = np.array([[[0.0, -2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]] * 2)
    alpha, sigma = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 0.0]]), np.array([0.3, 0.3])
    dalpha, dsigma2 = rates(du, alpha, sigma, 0.2)
    assert dalpha.tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert dsigma2.tolist() == [0.0, 0.0]


def test_zero_g_is_the_classic_method() -> None:
    """g = 0 leaves the rates as they were, to the bit."""
    draw = np.random.default_rng(5)
    du, alpha = draw.standard_normal((20, 3, 3)), draw.standard_normal((20, 3))
    plain = np.zeros_like(alpha)
    stretch(du, alpha, np.ones(20), plain, 1.0, 0.0, 0.0)
    dalpha, dsigma2 = rates(du, alpha, np.ones(20), 0.0)
    assert dalpha.tolist() == plain.tolist() and not dsigma2.any()
