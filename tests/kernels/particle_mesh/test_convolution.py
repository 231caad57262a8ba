"""The smooth velocity on a mesh against the sum over all pairs of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import fft

from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.particle_mesh import convolution
from ecs_fluid.kernels.particle_mesh.convolution import convolve, half_sizes, kernel_transforms, waves_of
from ecs_fluid.kernels.particle_mesh.splitting import smooth_part
from tests.threads import check_threads

Array = NDArray[Any]
POINTS, H, REACH = (9, 7, 8), 0.3, 0.9


def summed(strength: Array) -> Array:
    """sum_j g_long(|r|) S_j x r / (4 pi), r = x_i - x_j, of points that a reach of REACH smooths."""
    places = H * np.stack(np.meshgrid(*(np.arange(n) for n in POINTS), indexing="ij"), axis=-1).reshape(-1, 3)
    r = places[:, None] - places
    r2 = np.sum(r**2, axis=2)
    a = smooth_part(CODES["rankine"], 0.1 / H, REACH / H).factors / H**3
    inside = np.polyval(a[::-1], 1.0 - np.minimum(r2 / REACH**2, 1.0))
    g = np.where(r2 < REACH**2, inside, np.maximum(r2, REACH**2) ** -1.5)
    u = np.einsum("ij,ijc->ic", g, np.cross(strength.reshape(-1, 3), r)) / (4.0 * np.pi)
    return np.asarray(u.reshape(strength.shape))


@pytest.mark.parametrize(
    ("real", "error"), [(np.float32, 1e-6), pytest.param(np.float64, 1e-14, marks=pytest.mark.nightly)]
)
def test_is_the_sum_over_all_points(monkeypatch: pytest.MonkeyPatch, real: Any, error: float) -> None:
    """But for rounding, where splines are not made up for; of two parts it is the sum; on any threads.

    A field that is made beside another is the same.
    """
    monkeypatch.setattr(convolution, "_sharpening", lambda half: np.ones(half + 1))
    half = half_sizes(POINTS)
    kernel_transforms.cache_clear()
    wider, table = (
        kernel_transforms(half, H, CODES["rankine"], 0.1 / H, part * REACH / H, np.dtype(real).name)
        for part in (1.5, 1.0)
    )
    kernel_transforms.cache_clear()
    draw = np.random.default_rng(5)
    first, second = (draw.standard_normal((*POINTS, 3)).astype(real) for _ in range(2))
    exact = summed(first.astype(np.float64) + second)
    found = np.empty_like(first)
    convolve([(waves_of(first, half), [table]), (waves_of(second, half), [table])], half, [found])
    assert np.abs(found - exact).max() < 30 * error * np.abs(exact).max()
    two, again, beside = [wider, table], np.empty_like(first), np.empty_like(first)

    def both() -> tuple[np.ndarray, np.ndarray]:
        convolve([(waves_of(first, half), two), (waves_of(second, half), two)], half, [beside, again])
        return beside, again

    check_threads(both)
    assert np.array_equal(found, again)
    convolve([(waves_of(first, half), [wider]), (waves_of(second, half), [wider])], half, [again])
    assert np.array_equal(beside, again)
    assert np.abs(beside - found).max() > 1e-3 * np.abs(found).max()


@pytest.mark.parametrize(
    ("real", "error"), [(np.float32, 3e-5), pytest.param(np.float64, 1e-12, marks=pytest.mark.nightly)]
)
def test_strengths_in_the_middle_need_less_padding(
    monkeypatch: pytest.MonkeyPatch, real: Any, error: float
) -> None:
    """Half a period is the largest distance of a point from a strength: here 6, and not 8, along x."""
    monkeypatch.setattr(convolution, "_sharpening", lambda half: np.ones(half + 1))
    strength = np.zeros((*POINTS, 3), real)
    strength[2:7] = np.random.default_rng(6).standard_normal((5, *POINTS[1:], 3))
    half = (int(fft.next_fast_len(7, real=True)), *half_sizes(POINTS)[1:])
    kernel_transforms.cache_clear()
    table = kernel_transforms(half, H, CODES["rankine"], 0.1 / H, REACH / H, np.dtype(real).name)
    kernel_transforms.cache_clear()
    exact = summed(strength.astype(np.float64))
    found = [np.empty_like(strength) for _ in range(2)]
    convolve([(waves_of(strength, half), [table, table])], half, found)
    assert all(np.abs(one - exact).max() < error * np.abs(exact).max() for one in found)
