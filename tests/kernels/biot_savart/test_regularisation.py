"""Blobs by their defining formulas: cases 1 to 6 of the validation list, V1, and the ring constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import erf, erfc, hyp1f1

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES, record
from tests.kernels.regularisations_by_day import pairs

Array = NDArray[np.float64]
REALS = (np.float32, np.float64)
GRADIENTS = [pytest.param(name, marks=pytest.mark.nightly if name == "rankine" else ()) for name in NAMES]
"""By day those whose gradients other tests need as well, the other by night."""


def _gaussian(rho: Array) -> Array:
    # erf - sqrt(2/pi) rho e = sqrt(2/pi) rho^3/3 M(3/2, 5/2, -rho^2/2): Kummer's function cancels nothing.
    small = np.sqrt(2.0 / np.pi) * rho**3 / 3.0 * hyp1f1(1.5, 2.5, -0.5 * rho**2)
    large = 1.0 - erfc(rho / np.sqrt(2.0)) - np.sqrt(2.0 / np.pi) * rho * np.exp(-0.5 * rho**2)
    return np.where(rho < 2.0, small, large)


Q: dict[str, Callable[[Array], Array]] = {
    "winckelmans": lambda r: r**3 * (r**2 + 2.5) / (r**2 + 1.0) ** 2.5,
    "gaussian": _gaussian,
    "rankine": lambda r: np.minimum(r**3, 1.0),
    "rosenhead_moore": lambda r: r**3 / (r**2 + 1.0) ** 1.5,
}
ZETA: dict[str, Callable[[Array], Array]] = {
    "winckelmans": lambda r: 15.0 / (8.0 * np.pi) * (r**2 + 1.0) ** -3.5,
    "gaussian": lambda r: (2.0 * np.pi) ** -1.5 * np.exp(-0.5 * r**2),
    "rankine": lambda r: np.where(r < 1.0, 3.0 / (4.0 * np.pi), 0.0),
    "rosenhead_moore": lambda r: 3.0 / (4.0 * np.pi) * (r**2 + 1.0) ** -2.5,
}
# Position and height of the largest speed (times alpha/sigma^2), slope at the centre (times alpha/sigma^3):
# table A1 of the validation list, six digits.
PEAKS = {
    "winckelmans": (0.571538, 0.0634180, 0.198943),
    "gaussian": (1.368757, 0.0170295, 0.0211645),
    "rankine": (1.0, 0.0795775, 0.0795775),
    "rosenhead_moore": (0.707107, 0.0306294, 0.0795774),
}
RHO = np.geomspace(1e-3, 10.0, 401)


def blob(name: str, x: Array, real: type, alpha: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> Array:
    """Velocity of one blob of core radius 1 in the origin."""
    targets = x.astype(real)
    u = np.full_like(targets, np.nan)
    strength = np.array(alpha, real).reshape(3, 1)
    direct.velocity(CODES[name], targets, np.zeros((3, 1), real), strength, np.ones(1, real), u)
    return u


def equator(rho: Array) -> Array:
    return np.stack([rho, 0.0 * rho, 0.0 * rho], axis=1)


@pytest.mark.parametrize(("name", "real"), pairs(NAMES, len(NAMES)))
def test_speed_of_one_blob_is_q_over_four_pi_r_squared(name: str, real: type) -> None:
    # Case 1. float32 gets the rounded rho, so that only the kernel's own rounding is measured.
    rho = RHO.astype(real).astype(float)
    u = blob(name, equator(rho), real).astype(float)
    exact = Q[name](rho) / (4.0 * np.pi * rho**2)
    assert np.max(np.abs(u[:, 1] / exact - 1.0)) < (1e-12 if real is np.float64 else 2e-6)
    assert np.all(u[:, [0, 2]] == 0.0)


@pytest.mark.parametrize("name", GRADIENTS)
def test_largest_speed_and_slope_at_the_centre(name: str) -> None:
    where, height, slope = PEAKS[name]
    rho = where * np.array([0.98, 1.0, 1.02])
    speed = blob(name, equator(rho), np.float64)[:, 1]
    assert speed[1] == pytest.approx(height, rel=5e-6)  # the table has six digits
    assert speed[1] > speed[0] and speed[1] > speed[2]
    # du_y/dx at the centre is zeta(0)/3 (case 2).
    x, du, u = np.zeros((1, 3)), np.empty((1, 3, 3)), np.empty((1, 3))
    alpha = np.array([[0.0], [0.0], [1.0]])
    direct.velocity_gradient(CODES[name], x, np.zeros((3, 1)), alpha, np.ones(1), u, du)
    assert np.all(u == 0.0)
    assert du[0, 1, 0] == pytest.approx(float(ZETA[name](np.zeros(1))[0]) / 3.0, rel=1e-10)
    assert du[0, 1, 0] == pytest.approx(slope, rel=5e-6)


@pytest.mark.parametrize(("name", "real"), pairs(NAMES, len(NAMES)))
def test_a_vorton_does_not_move_itself(name: str, real: type) -> None:
    # Case 2: exactly zero, wherever the vorton is, and no NaN at r = 0.
    x = np.array([[0.1, -3.7, 12.3]], real)
    u = np.full((1, 3), np.nan, real)
    alpha = np.array([[1.0], [2.0], [3.0]], real)
    direct.velocity(CODES[name], x, np.ascontiguousarray(x.T), alpha, np.full(1, 0.3, real), u)
    assert np.all(u == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_potential_and_vorticity_of_one_blob(name: str) -> None:
    """omega = zeta and psi = int_r^inf q/(4 pi s^2) ds, by quadrature."""
    rho = np.array([0.0, 0.05, 0.3, 0.9, 1.7, 1.999, 2.001, 3.0, 6.0])
    psi, omega = np.empty((rho.size, 3)), np.empty((rho.size, 3))
    alpha = np.array([[0.0], [0.0], [1.0]])
    direct.potential_vorticity(CODES[name], equator(rho), np.zeros((3, 1)), alpha, np.ones(1), psi, omega)
    assert np.allclose(omega[:, 2], ZETA[name](rho), rtol=1e-12, atol=1e-17)

    def integral(start: float) -> float:
        # With s = 1/v the tail is int_0^(1/b) q(1/v)/(4 pi) dv; q/s^2 has a kink at 1 for rankine.
        b = max(start, 1.0)
        tail = quad(lambda v: Q[name](np.array(1.0 / v)) / (4.0 * np.pi), 0.0, 1.0 / b, epsabs=1e-13)[0]
        core = quad(lambda s: Q[name](np.array(s)) / (4.0 * np.pi * s * s), start, b, epsabs=1e-13)[0]
        return float(tail + core)

    exact = [integral(max(r, 1e-8)) for r in rho]
    assert np.allclose(psi[:, 2], exact, rtol=1e-10)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_the_derivative_of_the_velocity(name: str) -> None:
    """Cases 3 and 4: centred differences of step 1e-4, and no divergence."""
    rng = np.random.default_rng(11)
    n = 20
    sx, sa = rng.random((3, n)), rng.standard_normal((3, n))
    sigma = 0.2 + 0.2 * rng.random(n)
    x = rng.random((100, 3))
    if name == "rankine":  # the gradient jumps at the core surface: keep the stencil off it
        distance = np.linalg.norm(x[:, :, None] - sx[None], axis=1)
        x = x[np.all(np.abs(distance - sigma) > 3e-4, axis=1)]
        assert len(x) > 60
    m = len(x)
    u, v, du = np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3, 3))
    direct.velocity_gradient(CODES[name], x, sx, sa, sigma, u, du)
    direct.velocity(CODES[name], x, sx, sa, sigma, v)
    assert np.allclose(u, v, rtol=1e-12, atol=1e-13)
    step = 1e-4
    scale = np.abs(du).max()
    for j in range(3):
        ahead, behind = np.empty((m, 3)), np.empty((m, 3))
        shift = step * np.eye(3)[j]
        direct.velocity(CODES[name], x + shift, sx, sa, sigma, ahead)
        direct.velocity(CODES[name], x - shift, sx, sa, sigma, behind)
        # Truncation is step^2/6 u'''/u' ~ step^2/sigma^2 ~ 2e-7 of the largest gradient.
        assert np.max(np.abs((ahead - behind) / (2.0 * step) - du[:, :, j])) < 1e-6 * scale
    assert np.max(np.abs(np.trace(du, axis1=1, axis2=2))) < 1e-13 * scale


@pytest.mark.parametrize("real", REALS)
def test_vorton_of_the_articles_and_its_mollification(real: type) -> None:
    """Cases 5, 6 and V1: size 0.2 and Omega = 1, spread 1, 2 and 5 times (part 12, figure 3).

    u = (2/3) a^3 Omega x d/d^3 outside and (2/3) Omega x d inside, a = 0.1; spreading by k takes sigma = k a
    at the same alpha = omega V = 2 Omega (4 pi/3) a^3, so the outside does not change.
    """
    a = 0.1
    alpha = np.array([[0.0], [0.0], [2.0 * 4.0 / 3.0 * np.pi * a**3]], real)
    tolerance = 1e-12 if real is np.float64 else 2e-6

    def speed(r: Array, spread: float) -> Array:
        x, u = equator(r).astype(real), np.empty((r.size, 3), real)
        direct.velocity(CODES["rankine"], x, np.zeros((3, 1), real), alpha, np.full(1, spread * a, real), u)
        return u[:, 1].astype(float)

    for spread, peak in ((1.0, 0.0667), (2.0, 0.0167), (5.0, 0.00267)):
        assert speed(np.array([spread * a]), spread)[0] == pytest.approx(peak, rel=3e-3)  # three digits given
        inside = np.linspace(0.01, 0.99, 50).astype(real).astype(float) * spread * a
        exact = 2.0 / 3.0 * inside / spread**3
        assert np.allclose(speed(inside, spread), exact, rtol=tolerance)
    outside = np.linspace(5.01, 40.0, 50) * a
    reference = speed(outside, 1.0)
    assert np.allclose(reference, 2.0 / 3.0 * a**3 / outside**2, rtol=tolerance)
    for spread in (2.0, 5.0):
        assert np.array_equal(speed(outside, spread), reference)


@pytest.mark.parametrize("name", NAMES)
def test_variance_is_the_integral_it_stands_for(name: str) -> None:
    """<x^2> = 4 pi/3 int zeta rho^4 drho; with rho = 1/v beyond 1 a tail of rho^-5 is an integral of 1/v."""

    def integrand(rho: float) -> float:
        return float(4.0 / 3.0 * np.pi * rho**4 * ZETA[name](np.array(rho)))

    core = quad(integrand, 0.0, 1.0, epsabs=1e-13)[0]
    if name == "rosenhead_moore":
        assert record(CODES[name]).variance == np.inf
        near, far = (quad(lambda v: integrand(1.0 / v) / v**2, end, 1.0)[0] for end in (1e-3, 1e-6))
        assert far - near == pytest.approx(3 * np.log(10.0), rel=1e-3)  # zeta = 3/(4 pi) rho^-5: no end
        return
    tail = quad(lambda v: integrand(1.0 / v) / v**2, 0.0, 1.0, epsabs=1e-13)[0]
    assert record(CODES[name]).variance == pytest.approx(core + tail, abs=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_ring_constant_is_the_integral_it_stands_for(name: str) -> None:
    """C = -ln 2 - int q'(rho) ln(rho) drho, with q' = 4 pi rho^2 zeta."""

    def integrand(rho: float) -> float:
        return float(4.0 * np.pi * rho**2 * ZETA[name](np.array(rho)) * np.log(rho))

    core = quad(integrand, 0.0, 1.0, epsabs=1e-13)[0]
    # rho = 1/v beyond 1: the algebraic tails make this interval finite and smooth.
    tail = quad(lambda v: integrand(1.0 / v) / v**2, 0.0, 1.0, epsabs=1e-13)[0]
    assert record(CODES[name]).ring_constant == pytest.approx(-np.log(2.0) - core - tail, abs=1e-10)


def test_gaussian_equals_the_error_function_where_that_is_accurate() -> None:
    rho = np.linspace(1.0, 12.0, 300)
    exact = erf(rho / np.sqrt(2.0)) - np.sqrt(2.0 / np.pi) * rho * np.exp(-0.5 * rho**2)
    u = blob("gaussian", equator(rho), np.float64)[:, 1]
    assert np.max(np.abs(u * 4.0 * np.pi * rho**2 / exact - 1.0)) < 1e-14 * 20
