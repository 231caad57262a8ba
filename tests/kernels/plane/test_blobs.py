"""Blobs in a plane against the line of blobs in space that each stands for, and against their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import IN_A_PLANE, code_of, record
from ecs_fluid.kernels.fmm import fast_multipole
from tests.kernels.regularisations_by_day import pairs, some

SIGMA, GAMMA = 0.7, 1.3
RADII = SIGMA * np.array((1e-3, 0.1, 0.5, 0.99, 1.01, 1.4, 1.5, 2.7, 2.9, 5.0, 30.0))

IN_SPACE: dict[str, Callable[[float], float]] = {
    "winckelmans": lambda rho: rho**3 * (rho**2 + 2.5) / (rho**2 + 1) ** 2.5,
    "gaussian": lambda rho: erf(rho / math.sqrt(2)) - math.sqrt(2 / math.pi) * rho * math.exp(-(rho**2) / 2),
    "rankine": lambda rho: min(rho**3, 1.0),
    "rosenhead_moore": lambda rho: rho**3 / (rho**2 + 1) ** 1.5,
}  # fmt: skip
"""q(rho) of a blob: the part of its strength inside rho core radii."""


def of_line(name: str, r: float) -> float:
    """Speed (m/s) at the distance r of an endless straight line of blobs, int q(R/sigma)/(4 pi R^3) r dz."""

    def piece(z: float) -> float:
        rho = math.hypot(r, z) / SIGMA
        return IN_SPACE[name](rho) / (rho * SIGMA) ** 3

    edge = math.sqrt(max(SIGMA**2 - r**2, 0.0))  # where that of rankine has a corner
    far = 10 * (r + SIGMA)
    parts = [(0.0, edge), (edge, far)] if edge else [(0.0, far)]
    near = sum(quad(piece, *ends, epsabs=0, epsrel=1e-12, limit=200)[0] for ends in parts)
    # Beyond `far` in 1/z, for which the end is at 0.
    rest = quad(lambda y: piece(1 / y) / y**2, 0.0, 1 / far, epsabs=0, epsrel=1e-12)[0]
    return GAMMA * r * 2 * (near + rest) / (4 * math.pi)


def one(name: str, x: np.ndarray, real: Any = np.float64) -> dict[str, np.ndarray]:
    """Everything that a single vorton at the origin makes at points in the plane."""
    code, x = IN_A_PLANE[name], np.ascontiguousarray(x, real)
    sources = np.zeros((3, 1), real), np.array([[0], [0], [GAMMA]], real), np.full(1, SIGMA, real)
    found = {key: np.empty_like(x) for key in ("u", "v", "psi", "omega")}
    found["du"] = np.empty((len(x), 3, 3), real)
    direct.velocity(code, x, *sources, found["v"])
    direct.velocity_gradient(code, x, *sources, found["u"], found["du"])
    direct.potential_vorticity(code, x, *sources, found["psi"], found["omega"])
    return found


def around(radii: np.ndarray) -> np.ndarray:
    angle = np.arange(len(radii)) + 0.3
    return np.stack([radii * np.cos(angle), radii * np.sin(angle), np.zeros(len(radii))], axis=1)


@pytest.mark.parametrize(("name", "real"), pairs(IN_A_PLANE))
def test_a_vorton_is_a_straight_line_of_blobs(name: str, real: Any) -> None:
    gate, x = 1e-11 if real is np.float64 else 2e-6, around(RADII)
    speed = np.array([of_line(name, r) for r in RADII])
    known = (speed / RADII)[:, None] * np.stack([-x[:, 1], x[:, 0], 0 * RADII], axis=1)
    found = one(name, x, real)
    assert np.abs(found["u"] - known).max(axis=1) == pytest.approx(0.0 * speed, abs=gate * speed.max())
    assert (np.abs(found["u"] - known).max(axis=1) < 10 * gate * speed).all()
    assert np.abs(found["v"] - found["u"]).max() <= gate * speed.max()


@pytest.mark.parametrize("name", some(IN_A_PLANE))
def test_gradient_vorticity_and_stream_function_are_those_of_the_velocity(name: str) -> None:
    """Centred differences of step h err by h^2/6 of the third derivative, at most some 1/sigma^3 of u."""
    x, h = around(RADII), 1e-4 * SIGMA
    found, differences = one(name, x), np.zeros((len(x), 3, 3))
    slope = np.zeros_like(x)
    for axis in range(2):
        step = h * np.eye(3)[axis]
        ahead, behind = one(name, x + step), one(name, x - step)
        differences[:, :, axis] = (ahead["u"] - behind["u"]) / (2 * h)
        slope[:, axis] = (ahead["psi"] - behind["psi"])[:, 2] / (2 * h)
    du, largest = found["du"], np.abs(found["du"]).max()
    # The vorticity of rankine has a vertical tangent at its edge, where two of the points are.
    smooth = np.abs(RADII - SIGMA) > 0.02 * SIGMA if name == "rankine" else np.full(len(x), True)
    assert np.abs(du - differences)[smooth].max() < 1e-7 * largest
    assert np.abs(np.trace(du, axis1=1, axis2=2)).max() < 1e-15 * largest
    assert found["omega"][:, 2] == pytest.approx(du[:, 1, 0] - du[:, 0, 1], abs=1e-14 * largest)
    u = np.stack([slope[:, 1], -slope[:, 0], 0 * RADII], axis=1)
    assert np.abs(u - found["u"])[smooth].max() < 1e-7 * np.abs(found["u"]).max()
    # Far away psi is that of a point, -Gamma ln(r)/(2 pi), but for what the tail rho^-2 of one blob leaves.
    rest = 1 / (2 * 30**2) if name == "rosenhead_moore" else 30.0**-4
    point = -GAMMA * math.log(RADII[-1]) / (2 * math.pi)
    assert found["psi"][-1, 2] == pytest.approx(point, abs=1.01 * rest * GAMMA / (2 * math.pi) + 1e-15)


@pytest.mark.parametrize("name", some(IN_A_PLANE))
def test_the_middle_of_a_vorton(name: str) -> None:
    """u = 0 to the bit, du = zeta(0)/(2 sigma^2) on each side of the diagonal, and no NaN."""
    found = one(name, np.zeros((1, 3)))
    centre = record(IN_A_PLANE[name]).centre * GAMMA / SIGMA**2
    assert found["u"].tolist() == [[0.0, 0.0, 0.0]]
    assert found["du"][0, 1, 0] == pytest.approx(0.5 * centre, rel=1e-14) == -found["du"][0, 0, 1]
    assert found["omega"][0, 2] == pytest.approx(centre, rel=1e-14)
    assert np.isfinite(found["psi"]).all()


@pytest.mark.parametrize(
    ("name", "real", "tolerance"),
    [
        *(("winckelmans", np.float32, tolerance) for tolerance in (1e-3, 1e-5)),
        *(
            pytest.param(name, np.float64, tolerance, marks=pytest.mark.nightly)
            for name in sorted(IN_A_PLANE)
            for tolerance in (1e-3, 1e-6, 1e-9)
        ),
    ],
)
def test_multipoles_keep_their_tolerance(name: str, real: Any, tolerance: float) -> None:
    """Of u and du, against the direct sum, for strengths of random sign; at 1e-3 with cores of two sizes.

    (The far field of a node knows one core radius: at 1e-6, nodes of two would nearly all be opened.) By day
    in single precision, whose kernels shipped worlds have.
    """
    draw, n = np.random.default_rng(3), 3000
    x = np.concatenate([draw.standard_normal((n, 2)), np.zeros((n, 1))], axis=1)
    alpha = np.concatenate([np.zeros((n, 2)), draw.standard_normal((n, 1))], axis=1)
    sigma = 0.05 * (draw.integers(1, 3, n) if tolerance == 1e-3 else np.ones(n))
    x = x.astype(real)
    sources = np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T, real), sigma.astype(real)
    exact, found = (tuple(np.empty((n, k), real) for k in (3, 9)) for _ in range(2))
    direct.velocity_gradient(code_of(name, 2), x, *sources, exact[0], exact[1].reshape(n, 3, 3))
    plan = fast_multipole.plan(code_of(name, 2), *sources, tolerance)
    done = fast_multipole.velocity(plan, x, found[0], found[1].reshape(n, 3, 3))
    for value, known in zip(found, exact, strict=True):
        assert np.sqrt(((value - known) ** 2).mean() / (known**2).mean()) < tolerance
    assert done.expansions > 0


def test_the_potential_of_nodes_in_a_plane_is_refused() -> None:
    column = np.ones((3, 1))
    plan = fast_multipole.plan(code_of("winckelmans", 2), column, column, np.ones(1), 1e-3)
    with pytest.raises(ValueError, match="blobs in a plane have a logarithm; sum them directly"):
        fast_multipole.potential(plan, np.ones((1, 3)), np.empty((1, 3)))
