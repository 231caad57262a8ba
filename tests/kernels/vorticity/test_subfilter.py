"""Sums of the subfilter model against the direct sums, and its term for two vortons by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES, record
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import gather_sorted, partition
from ecs_fluid.kernels.vorticity import subfilter
from tests.kernels.regularisations_by_day import some
from tests.threads import check_threads

BEYOND = {"winckelmans": 3e-3, "gaussian": 2e-5, "rankine": 1e-14, "rosenhead_moore": 2e-2}
"""Part of a blob's strength that lies beyond the reach: 1 - q(5), 1 - q(5), 0 and 1 - q(10)."""

EDGE = {
    "winckelmans": 15 / (8 * math.pi) * 26**-3.5,
    "gaussian": (2 * math.pi) ** -1.5 * math.exp(-12.5),
    "rankine": 0.0,
    "rosenhead_moore": 3 / (4 * math.pi) * 101**-2.5,
}
"""zeta at the reach; it falls from there on."""


def sorted_cloud(dtype: type = np.float64, n: int = 600) -> tuple[Any, ...]:
    """Vortons of random strength and core radius in a unit cube, sorted by cell."""
    draw = np.random.default_rng(3)
    x, alpha = draw.random((n, 3)).astype(dtype), draw.standard_normal((n, 3)).astype(dtype)
    sigma = draw.uniform(0.03, 0.09, n).astype(dtype)
    grid = uniform_grid(x.min(axis=0), x.max(axis=0), n)
    start, order = partition(x, *grid)
    return (*(gather_sorted(rows, order) for rows in (x, alpha, sigma)), start, grid)


def rows(columns: np.ndarray) -> np.ndarray:
    """(k, n) to (n, k)."""
    return np.ascontiguousarray(columns.T)


@pytest.mark.parametrize("name", some(NAMES, 1))
def test_blob_sums_are_the_blobs_vorticity(name: str) -> None:
    """Against the direct sum of all pairs; what differs are pairs beyond the reach.

    At most 600 random strengths of unit variance, each times less than zeta(reach)/sigma^3 with sigma >=
    0.03: 3 standard deviations, in all 18 of 6e4 with Winckelmans blobs.
    """
    sx, alpha, sigma, start, grid = sorted_cloud()
    found = subfilter.blob_sums(CODES[name], sx, sigma, alpha, start, grid)
    psi, omega = np.empty((2, sx.shape[1], 3))
    direct.potential_vorticity(CODES[name], rows(sx), sx, alpha, sigma, psi, omega)
    tail = 3 * math.sqrt(600) * EDGE[name] / 0.03**3
    assert np.abs(found.T - omega).max() < tail + 1e-11 * np.abs(omega).max()


@pytest.mark.parametrize("name", some(NAMES, 1))
def test_gradient_change_is_local(name: str) -> None:
    """J with 0.9 of the core radii less J, by the direct sum of all pairs twice, to the tail of the blobs."""
    sx, alpha, sigma, start, grid = sorted_cloud()
    found = subfilter.gradient_change(CODES[name], sx, sigma, alpha, 0.9, start, grid)
    u, wide, narrow = np.empty((600, 3)), np.empty((600, 3, 3)), np.empty((600, 3, 3))
    direct.velocity_gradient(CODES[name], rows(sx), sx, alpha, sigma, u, wide)
    direct.velocity_gradient(CODES[name], rows(sx), sx, alpha, 0.9 * sigma, u, narrow)
    change = (narrow - wide).reshape(-1, 9)
    assert np.abs(found.T - change).max() < BEYOND[name] * np.abs(change).max() + 1e-11 * np.abs(wide).max()
    # An incompressible flow stays one.
    assert np.abs(found[0] + found[4] + found[8]).max() < 1e-12 * np.abs(found).max()


@pytest.mark.nightly
def test_single_precision_stays_single() -> None:
    """float32 vortons give float32 sums, within 1e-5 of those of float64."""
    single, double = sorted_cloud(np.float32), sorted_cloud()
    found, exact = (
        subfilter.blob_sums(CODES["gaussian"], x, sigma, alpha, start, grid)
        for x, alpha, sigma, start, grid in (single, double)
    )
    assert found.dtype == np.float32
    # The cells, and with them the order, agree, since both clouds come from the same numbers.
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()


def test_model_of_two_vortons() -> None:
    """E at vorton 0 = zeta(d/sigma)/sigma^3 (J_0 - J_1) alpha_1, by the definition with its own term zero.

    With Winckelmans and C = 1 the rate -C E sigma^3/zeta(0) is (1 + d^2/sigma^2)^-3.5 (J_1 - J_0) alpha_1.
    """
    draw = np.random.default_rng(7)
    x = np.array([[0.0, 0.0, 0.0], [0.1, 0.2, 0.05]])
    grid = uniform_grid(x.min(axis=0), x.max(axis=0), 8)
    start, order = partition(x, *grid)
    assert order.tolist() == [0, 1]
    sx = rows(x)
    alpha, sigma = draw.standard_normal((3, 2)), np.full(2, 0.2)
    du = draw.standard_normal((9, 2))
    jacobians = [du[:, p].reshape(3, 3) for p in range(2)]
    stretched = np.stack([jacobians[p] @ alpha[:, p] for p in range(2)], axis=1)
    code = CODES["winckelmans"]
    sums = subfilter.blob_sums(code, sx, sigma, np.concatenate([alpha, stretched]), start, grid)
    model, rate = np.empty((2, 3, 2))
    subfilter.model(du, sums[:3], sums[3:], model)
    weight = (1 + (0.1**2 + 0.2**2 + 0.05**2) / 0.2**2) ** -3.5
    zeta = 15 / (8 * math.pi) / 0.2**3
    wanted = (jacobians[0] - jacobians[1]) @ alpha[:, 1]
    assert model[:, 0] == pytest.approx(zeta * weight * wanted, rel=1e-9)
    scale = np.full(2, 0.2**3 / record(code).centre)
    coefficient = np.where((alpha * model).sum(axis=0) > 0, 1.0, -1.0)
    subfilter.add_model(alpha, scale, model, coefficient, 1e9, rate)
    assert rate[:, 0] == pytest.approx(-coefficient[0] * weight * wanted, rel=1e-9)


def test_equal_stretching_gives_nothing() -> None:
    """With one gradient everywhere (alpha_q . grad)(u(x) - u(x_q)) = 0, so E vanishes to rounding."""
    sx, alpha, sigma, start, grid = sorted_cloud()
    du = np.repeat(np.random.default_rng(1).standard_normal((9, 1)), sx.shape[1], axis=1)
    stretched = np.ascontiguousarray(np.einsum("ijp,jp->ip", du.reshape(3, 3, -1), alpha))
    sums = subfilter.blob_sums(
        CODES["winckelmans"], sx, sigma, np.concatenate([alpha, stretched]), start, grid
    )
    model = np.empty_like(alpha)
    subfilter.model(du, sums[:3], sums[3:], model)
    assert np.abs(model).max() < 1e-13 * np.abs(sums[3:]).max()


def test_enstrophy_is_only_taken() -> None:
    """Case 47: alpha . rate <= 0 for every vorton and either sign of C; |rate| <= |alpha|/dt."""
    draw = np.random.default_rng(5)
    alpha, model, rate = draw.standard_normal((3, 3, 400))
    coefficient = draw.uniform(-1, 1, 400)
    subfilter.add_model(alpha, np.ones(400), model, coefficient, 0.3, rate)
    along = (alpha * rate).sum(axis=0)
    assert along.max() <= 0 and (along < 0).sum() > 150 and (along == 0).sum() > 150
    share = np.linalg.norm(rate, axis=0) / np.linalg.norm(alpha, axis=0)
    assert share.max() == pytest.approx(0.3, rel=1e-12)


def test_threads_do_not_matter() -> None:
    """Case 109: the very same bits on any number of threads."""
    sx, alpha, sigma, start, grid = sorted_cloud(n=3000)
    code = CODES["winckelmans"]
    check_threads(lambda: subfilter.blob_sums(code, sx, sigma, alpha, start, grid))
    check_threads(lambda: subfilter.gradient_change(code, sx, sigma, alpha, 0.9, start, grid))
