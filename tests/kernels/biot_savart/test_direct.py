"""Direct sum: rings with known speeds (cases 7, 8, 10), thread counts, odd sizes, NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES, Code, record
from tests.kernels.regularisations_by_day import pairs, some
from tests.threads import check_threads

REALS = (np.float32, np.float64)


def ring(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """n blobs on a ring of radius 1 and circulation 1: sx, sa (3, n); alpha = Gamma ds = 2 pi/n tangent."""
    angle = 2.0 * np.pi * np.arange(n) / n
    zero = np.zeros(n)
    tangent = np.stack([-np.sin(angle), np.cos(angle), zero])
    return np.stack([np.cos(angle), np.sin(angle), zero]), 2.0 * np.pi / n * tangent


def ring_speed(name: str, sigma: float, n: int) -> float:
    sx, sa = ring(n)
    x, u = np.ascontiguousarray(sx.T[:1]), np.empty((1, 3))
    direct.velocity(CODES[name], x, sx, sa, np.full(n, sigma), u)
    return float(u[0, 2])


@pytest.mark.parametrize("n", [1, 100, 10_000])
def test_few_targets_have_the_same_sums(n: int) -> None:
    """But for rounding, where threads share out the sources: the same on any number of them."""
    draw, code = np.random.default_rng(3), CODES["winckelmans"]
    x, sources = draw.random((7, 3)), (draw.random((3, n)), draw.standard_normal((3, n)), np.full(n, 0.1))
    u, du, few_u, few_du = (np.empty((7, *shape)) for shape in ((3,), (3, 3), (3,), (3, 3)))
    direct.velocity_gradient(code, x, *sources, u, du)
    direct.few_gradients(code, x, *sources, few_u, few_du)
    assert np.abs(few_u - u).max() < 1e-13 * np.abs(u).max()
    assert np.abs(few_du - du).max() < 1e-13 * np.abs(du).max()

    def few() -> np.ndarray:
        direct.few_velocities(code, x, *sources, few_u)
        return few_u

    check_threads(few)
    assert np.abs(few_u - u).max() < 1e-13 * np.abs(u).max()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [3, 7, 50])
def test_axis_of_a_ring(name: str, n: int) -> None:
    """Case 7, exact for any kernel and any n >= 3: u_z = q(s/sigma) Gamma R^2/(2 s^3), s^2 = R^2 + z^2."""
    sx, sa = ring(n)
    z = np.linspace(-3.0, 3.0, 31)
    x = np.stack([0.0 * z, 0.0 * z, z], axis=1)
    u = np.empty_like(x)
    sigma = 0.4
    direct.velocity(CODES[name], x, sx, sa, np.full(n, sigma), u)
    s = np.sqrt(1.0 + z**2)
    rho = s / sigma
    # Only rho >= 2.5 occurs, where the closed forms of q lose nothing.
    from scipy.special import erf

    q = {
        "winckelmans": rho**3 * (rho**2 + 2.5) / (rho**2 + 1.0) ** 2.5,
        "gaussian": erf(rho / np.sqrt(2.0)) - np.sqrt(2.0 / np.pi) * rho * np.exp(-0.5 * rho**2),
        "rankine": np.ones_like(rho),
        "rosenhead_moore": rho**3 / (rho**2 + 1.0) ** 1.5,
    }[name]
    assert np.max(np.abs(u[:, 2] / (q / (2.0 * s**3)) - 1.0)) < 1e-12
    assert np.max(np.abs(u[:, :2])) < 1e-13


@pytest.mark.parametrize(
    ("sigma", "speed"),
    [(0.05, 0.364062), (0.10, 0.308846), (0.15, 0.276484), (0.20, 0.253455), (0.30, 0.220787)],
)
def test_speed_of_a_ring_of_blobs(sigma: float, speed: float) -> None:
    """Case 8, winckelmans: quadrature values to six digits; so half a unit of the last is allowed."""
    n = int(np.ceil(2.0 * np.pi * 3.2 / sigma))
    assert ring_speed("winckelmans", sigma, n) == pytest.approx(speed, abs=6e-7)
    fine = ring_speed("winckelmans", sigma, 2 * n)
    coarse = ring_speed("winckelmans", sigma, int(np.ceil(2.0 * np.pi * 2.4 / sigma)))
    assert ring_speed("winckelmans", sigma, n) == pytest.approx(fine, rel=1e-7)
    assert coarse == pytest.approx(fine, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "sigma", "constant"),
    [
        ("winckelmans", 0.01, -0.50001),
        ("winckelmans", 0.1, -0.50095),
        ("winckelmans", 0.3, -0.50892),
        ("gaussian", 0.1, -1.05985),
        ("gaussian", 0.3, -1.07563),
    ],
)
def test_thin_ring_law(name: str, sigma: float, constant: float) -> None:
    """Case 10: C = 4 pi R U/Gamma - ln(8 R/sigma), overlap 4."""
    n = int(np.ceil(2.0 * np.pi * 4.0 / sigma))
    measured = 4.0 * np.pi * ring_speed(name, sigma, n) - np.log(8.0 / sigma)
    assert measured == pytest.approx(constant, abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_thin_ring_limit_is_the_ring_constant(name: str) -> None:
    """The same at sigma = 0.01 R: C up to O(sigma^2 ln sigma) ~ 5e-4.

    Overlap 64: the kink of the rankine blob makes its sum converge slowly.
    """
    measured = 4.0 * np.pi * ring_speed(name, 0.01, 40_000) - np.log(800.0)
    assert measured == pytest.approx(record(CODES[name]).ring_constant, abs=1e-3)


def cloud(m: int, n: int, real: type) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(m * 1009 + n)
    return (
        rng.random((m, 3)).astype(real),
        rng.random((3, n)).astype(real),
        rng.standard_normal((3, n)).astype(real),
        (0.05 + 0.1 * rng.random(n)).astype(real),
    )


def everything(code: Code, x: Any, sx: Any, sa: Any, sigma: Any) -> list[NDArray[Any]]:
    m = len(x)
    u, v, psi, omega = (np.full((m, 3), np.nan, x.dtype) for _ in range(4))
    du = np.full((m, 3, 3), np.nan, x.dtype)
    direct.velocity(code, x, sx, sa, sigma, u)
    direct.velocity_gradient(code, x, sx, sa, sigma, v, du)
    direct.potential_vorticity(code, x, sx, sa, sigma, psi, omega)
    return [u, v, du, psi, omega]


def by_numpy(x: Any, sx: Any, sa: Any, sigma: Any) -> NDArray[Any]:
    d = x.astype(float)[:, None, :] - sx.T.astype(float)[None]
    r2, s2 = (d * d).sum(axis=2), sigma.astype(float) ** 2
    factor = (r2 + 2.5 * s2) / (r2 + s2) ** 2.5 / (4.0 * np.pi)
    out: NDArray[Any] = (factor[:, :, None] * np.cross(sa.T.astype(float)[None], d)).sum(axis=1)
    return out


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (1, 0), (0, 5), (3, 17), (128, 16), (129, 1023), (127, 1025), (5, 2053), (257, 509)]
)
def test_sizes_around_blocks_and_packs(m: int, n: int, real: type) -> None:
    """Blocks hold 128 targets, packs 1024 float32 or 512 float64 sources, vectors 16: go around all edges."""
    x, sx, sa, sigma = cloud(m, n, real)
    u, v, du, psi, omega = everything(CODES["winckelmans"], x, sx, sa, sigma)
    exact = by_numpy(x, sx, sa, sigma)
    # Sums of n terms of either sign: the rounding of a sum is bounded by the sum of magnitudes, so it is
    # measured against that of the largest velocity times 10.
    tolerance = (1e-13 if real is np.float64 else 2e-6) * max(
        1.0, float(np.abs(exact).max(initial=0.0)) * 10.0
    )
    assert np.allclose(u, exact, rtol=0.0, atol=tolerance)
    assert np.allclose(v, exact, rtol=0.0, atol=tolerance)
    if n == 0:
        for array in (u, v, du, psi, omega):
            assert np.all(array == 0.0)


@pytest.mark.parametrize(("name", "real"), pairs(NAMES))
def test_one_and_two_threads_agree_to_the_bit(name: str, real: type) -> None:
    arrays = cloud(317, 1201, real)
    check_threads(lambda: everything(CODES[name], *arrays))


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("name", some(NAMES, 1))
def test_nan_is_honest(name: str, poison: float) -> None:
    """One bad strength spoils every velocity; one bad target spoils its own only."""
    x, sx, sa, sigma = cloud(9, 33, np.float32)
    call: Callable[..., None] = direct.velocity
    u = np.zeros((9, 3), np.float32)
    bad = sa.copy()
    bad[:, 20] = poison
    call(CODES[name], x, sx, bad, sigma, u)
    assert not np.isfinite(u).all(axis=1).any()
    x[4, 1] = np.nan
    call(CODES[name], x, sx, sa, sigma, u)
    assert not np.isfinite(u[4]).all()
    assert np.isfinite(np.delete(u, 4, axis=0)).all()


def test_energy_and_enstrophy_of_one_blob() -> None:
    """psi = alpha G(0) and omega = alpha zeta(0)/sigma^3 at the blob: winckelmans G(0) = 3/(8 pi sigma)."""
    x, alpha, sigma = np.zeros((1, 3)), np.array([[0.0], [0.0], [2.0]]), np.array([0.5])
    psi, omega = np.empty((1, 3)), np.empty((1, 3))
    direct.potential_vorticity(CODES["winckelmans"], x, np.zeros((3, 1)), alpha, sigma, psi, omega)
    assert psi[0, 2] == pytest.approx(2.0 * 3.0 / (8.0 * np.pi * 0.5), rel=1e-14)
    assert omega[0, 2] == pytest.approx(2.0 * 15.0 / (8.0 * np.pi) / 0.125, rel=1e-14)
