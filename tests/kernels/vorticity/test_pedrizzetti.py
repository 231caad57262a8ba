"""Pedrizzetti's relaxation on given gradients."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.vorticity.pedrizzetti import align


def angular_velocity(omega: np.ndarray) -> np.ndarray:
    """Gradient of solid-body rotation with the vorticities (n, 3): du_i/dx_j = -1/2 e_ijk omega_k."""
    x, y, z = 0.5 * omega.T
    zero = np.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.ascontiguousarray(np.moveaxis(np.array(rows), 2, 0))


def random_rows(dtype: type, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Random strengths and vorticities of very different sizes."""
    draw = np.random.default_rng(2)
    scale = 10.0 ** draw.uniform(-6, 3, (2, n, 1))
    alpha, omega = scale * draw.standard_normal((2, n, 3))
    return alpha.astype(dtype), omega.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_right_angle(dtype: type) -> None:
    """alpha = (1, 0, 0), omega = (0, 0, 5), f = 0.2: (0.8, 0, 0.2), shrunk by sqrt(1 - 2 f (1 - f)) = 0.8246.

    Corrected, the direction is the same and the length 1.
    """
    du = angular_velocity(np.array([[0.0, 0.0, 5.0]])).astype(dtype)
    plain, corrected = (np.array([[1.0, 0.0, 0.0]], dtype) for _ in range(2))
    align(plain, du, dtype(0.2), dtype(0.0), False)
    align(corrected, du, dtype(0.2), dtype(0.0), True)
    assert plain[0] == pytest.approx([0.8, 0.0, 0.2], rel=1e-6)
    assert np.linalg.norm(plain) == pytest.approx(np.sqrt(1 - 2 * 0.2 * 0.8), rel=1e-6)
    assert corrected[0] == pytest.approx(plain[0] / np.linalg.norm(plain[0]), rel=1e-6)
    assert plain.dtype == dtype


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_corrected_keeps_every_length(dtype: type, bound: float) -> None:
    """Case 24: |alpha| of each of 200 vortons stays to rounding, and the angle to omega shrinks."""
    alpha, omega = random_rows(dtype)
    before = alpha.copy()
    align(alpha, angular_velocity(omega).astype(dtype), dtype(0.3), dtype(0.0), True)
    length = np.linalg.norm(before.astype(np.float64), axis=1)
    assert np.abs(np.linalg.norm(alpha.astype(np.float64), axis=1) / length - 1).max() < bound

    def cosine(a: np.ndarray) -> np.ndarray:
        return (a * omega).sum(axis=1) / (length * np.linalg.norm(omega, axis=1))

    assert (cosine(alpha) > cosine(before)).all()


def test_plain_shrinks_by_the_angle() -> None:
    """Case 24: factor sqrt(1 - 2 f (1 - f) (1 - cos t)) of every vorton, never above 1."""
    alpha, omega = random_rows(np.float64)
    length = np.linalg.norm(alpha, axis=1)
    cosine = (alpha * omega).sum(axis=1) / (length * np.linalg.norm(omega, axis=1))
    align(alpha, angular_velocity(omega), 0.3, 0.0, False)
    factor = np.linalg.norm(alpha, axis=1) / length
    assert factor == pytest.approx(np.sqrt(1 - 2 * 0.3 * 0.7 * (1 - cosine)), rel=1e-12)
    assert factor.max() <= 1 + 1e-15 and factor.min() < 0.5


def test_rows_without_a_direction_stay() -> None:
    """No vorticity, no strength, or exactly opposite with f = 1/2: nothing happens, and nothing is NaN."""
    omega = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -3.0]])
    start = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    alpha = start.copy()
    align(alpha, angular_velocity(omega), 0.5, 0.0, True)
    assert alpha.tolist() == start.tolist()


def test_the_lag_carries_the_vorticity_on() -> None:
    """With f = 1 the direction is that of omega + lag J omega: strain (1, -1, 0)/s stretches (1, 1, 1) so."""
    omega = np.array([[1.0, 1.0, 1.0]])
    du = angular_velocity(omega) + np.diag([1.0, -1.0, 0.0])
    alpha = np.array([[0.0, 0.0, 1.0]])
    align(alpha, du, 1.0, 0.1, True)
    assert alpha[0] == pytest.approx(np.array([1.1, 0.9, 1.0]) / np.sqrt(1.1**2 + 0.9**2 + 1.0), rel=1e-14)


@pytest.mark.parametrize("size", [6e-22, 1e-30, 1e-37])
def test_weak_strengths_in_single_precision(size: float) -> None:
    """Their squares underflow; they turn as strong ones do, and keep their length.

    At the end of a wake's lattice strengths of 6e-22 m^3/s became NaN.
    """
    omega = np.array([[0.0, 0.0, 5.0], [1.0, -1.0, 2.0], [3.0, 0.0, 0.0]])
    strong = np.array([[1.0, 0.0, 0.0], [0.3, 0.2, -0.9], [-0.5, -0.5, 0.1]], np.float32)
    weak = (strong * size).astype(np.float32)
    for alpha in (strong, weak):
        align(alpha, angular_velocity(omega).astype(np.float32), np.float32(0.2), np.float32(0.0), True)
    assert weak / size == pytest.approx(strong, rel=2e-5, abs=2e-5)
