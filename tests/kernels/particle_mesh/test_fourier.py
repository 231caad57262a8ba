"""Transforms of many lines against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.compiled.lanes import BYTES
from ecs_fluid.kernels.particle_mesh import fourier
from ecs_fluid.kernels.particle_mesh.fourier import transform_tables
from tests.kernels.from_python import from_python

transform = from_python(fourier.transform)


@pytest.mark.parametrize(
    ("real", "rounding"), [(np.float32, 5e-7), pytest.param(np.float64, 1e-15, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("length", [2, 4, 6, 10, 30, 150, 160, 486, 500])
def test_is_the_discrete_transform(length: int, real: Any, rounding: float) -> None:
    """Of every radix, alone and after others; errors grow like rounding times the logarithm of the length."""
    width, draw = BYTES // np.dtype(real).itemsize, np.random.default_rng(3)
    given = draw.standard_normal((length, 2, width)).astype(real)
    x, y = given.ravel().copy(), np.empty(given.size, real)
    found = (y if transform(x, y, *transform_tables(length, np.dtype(real).name)) else x).reshape(given.shape)
    exact = np.fft.fft(given[:, 0].astype(np.float64) + 1j * given[:, 1], axis=0)
    assert np.abs(found[:, 0] + 1j * found[:, 1] - exact).max() < rounding * np.abs(exact).max()


def test_lengths_that_it_can() -> None:
    with pytest.raises(ValueError, match="a length of 14 is no product of 2, 3 and 5"):
        transform_tables(14, "float32")
