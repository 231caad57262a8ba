"""Vortons whose core radii differ, shared among levels."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart.regularisation import CODES, record
from ecs_fluid.systems.velocity.core_levels import ALLOWED, DEGREE, levels, step_error, steps

SMOOTH = ["winckelmans", "gaussian", "rosenhead_moore"]
K = np.geomspace(1e-2, 200.0, 4000)


def waves(sigma: Array, kernel: str) -> tuple[Array, Array]:
    """(vortons, k) of what each leaves of waves K, and what its parts in levels leave."""
    transform = record(CODES[kernel]).transform
    assert transform is not None
    found = np.zeros((len(sigma), len(K)))
    for radius, rows, parts in levels(sigma, CODES[kernel]):
        found[rows] += np.multiply.outer(parts, transform(K * radius))
    return transform(K * sigma[:, None]), found


@pytest.mark.parametrize("ratio", [1.05, 1.3, 1.8, 4.0, 20.0])
@pytest.mark.parametrize("kernel", SMOOTH)
def test_every_blob_is_as_exact_as_allowed(kernel: str, ratio: float) -> None:
    """(int e^2 dk / int z^2 dk)^(1/2) of blobs of any radius in a cloud of blobs; long waves are exact.

    The allowed error is kept in the middles of intervals, and to a tenth anywhere. Levels less than 1.1 apart
    are not made, which leaves 1.7e-3 of blobs between two of them.
    """
    sigma = 0.1 * ratio ** np.linspace(0, 1, 101)
    z, found = waves(sigma, kernel)
    np.testing.assert_allclose(found[:, 0], 1.0, atol=1e-3)
    error = np.sqrt(((found - z) ** 2 @ K) / (z**2 @ K))
    assert error.max() < (1.7e-3 if ratio < 1.1 else 1.1 * ALLOWED)
    assert len(levels(sigma, CODES[kernel])) <= 2 + DEGREE + np.log(ratio) / np.log(1.22)


def test_error_between_two_levels() -> None:
    """Half way between two gaussians, to leading order: e = step^2/8 d^2 z/dt^2 with t = ln sigma.

    d^2 z/dt^2 = (x^4 - 2 x^2) e^(-x^2/2), and int (x^4 - 2 x^2)^2 e^(-x^2) dx is 105/16 - 15/2 + 3 of
    int e^(-x^2) dx: a relative error of step^2 (33/1024)^(1/2). Fourth order of cubics: 16 times in two.
    """
    transform = record(CODES["gaussian"]).transform
    assert transform is not None
    assert step_error(transform, 1.02, 1) == pytest.approx(np.log(1.02) ** 2 * np.sqrt(33 / 1024), rel=1e-3)
    assert step_error(transform, 1.1**2, 3) / step_error(transform, 1.1, 3) == pytest.approx(16, rel=0.15)


def test_few_radii_are_their_own_levels() -> None:
    """As many different radii as there would be levels, or fewer: exact, each with its own vortons."""
    for values in ([0.2], [0.1, 0.4], [0.1, 0.11, 0.4]):
        sigma = np.array(values)[np.random.default_rng(3).integers(0, len(values), 200)]
        found = levels(sigma, CODES["gaussian"])
        assert [level.radius for level in found] == pytest.approx(values, rel=1e-15)
        for radius, rows, parts in found:
            assert parts == 1.0
            assert (sigma[rows] == radius).all() if len(values) > 1 else rows == slice(None)


def test_hardly_different_radii_are_one_level() -> None:
    """Rounding, or slow growth, does not make more."""
    sigma = 0.1 * (1 + 2e-3 * np.random.default_rng(1).random(50))
    (level,) = levels(sigma, CODES["gaussian"])
    assert level.radius == pytest.approx(np.sqrt(np.mean(sigma**2)), rel=1e-12)


def test_blobs_with_an_edge() -> None:
    """Their waves are no polynomials of ln sigma: levels stay 1.1 apart and leave 1.2 %."""
    assert steps(CODES["rankine"])[1:] == pytest.approx([1.1] * DEGREE)
    z, found = waves(0.1 * 4.0 ** np.linspace(0, 1, 101), "rankine")
    assert np.sqrt(((found - z) ** 2 @ K) / (z**2 @ K)).max() < 0.012
