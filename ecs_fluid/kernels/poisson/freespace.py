"""Poisson's equation in unbounded space on a grid: convolution with the Green's function of a blob by FFT.

A(x_i) = sum_j G(x_i - x_j) omega(x_j) V_c over the grid points is a convolution. On a grid of twice the size,
padded with zeros, the periodic convolution of the FFT equals it (Hockney and Eastwood, Computer Simulation
Using Particles, section 6-5-4). G is even, so its transform is real and an eighth of it is stored. The
transforms leave out what is known to be zero or not wanted, about 40 % of the work. G is the potential of a
regularised vorton of core radius sigma, so the result is that of vortons of this radius at the grid points.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from scipy import fft

from ecs_fluid.kernels.biot_savart.direct import potential_vorticity
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.grids.grid import grid_points

Sizes = tuple[int, int, int]
Steps = tuple[float, float, float]

_BLOCK_BYTES = 2**20
"""Size of the piece that a thread transforms at a time, bytes: it fits into the second-level cache."""


@lru_cache(maxsize=4)
def _transformed(half: Sizes, spacing: Steps, code: Code, sigma: float, dtype: str) -> Array:
    """Transform of G V_c on the doubled grid: real, and even, so only (half + 1) points per axis."""
    targets = grid_points((np.zeros(3), np.array(spacing), np.array(half))).reshape(-1, 3)
    psi, omega = np.empty_like(targets), np.empty_like(targets)
    unit = np.array([[0.0], [0.0], [1.0]])
    potential_vorticity(code, targets, np.zeros((3, 1)), unit, np.array([sigma]), psi, omega)
    green = psi[:, 2].reshape([n + 1 for n in half]) * np.prod([h for h in spacing if h])
    able = [axis for axis, n in enumerate(half) if n]
    return np.asarray(fft.dctn(green, type=1, axes=able, workers=numba.get_num_threads()).astype(dtype))


def _blocks(count: int, bytes_each: int) -> list[slice]:
    """``count`` planes in runs of about ``_BLOCK_BYTES``, whatever the number of threads."""
    step = max(1, _BLOCK_BYTES // bytes_each)
    return [slice(first, min(first + step, count)) for first in range(0, count, step)]


def _convolve(omega: Array, half: Sizes, green: Array, out: Array, pool: ThreadPoolExecutor) -> None:
    """Convolve one component (px, py, pz) with the Green's function whose transform is ``green``.

    The padding with zeros is done where it is needed and cut off as soon as it can be, block by block, so the
    field of waves is doubled along y and z only.
    """
    px, py, pz = omega.shape
    mx, my, mz = (max(2 * n, 1) for n in half)
    kz = half[2] + 1
    waves = np.empty((px, my, kz), np.result_type(omega.dtype, np.complex64))

    def forward(planes: slice) -> None:
        count = planes.stop - planes.start
        rows = np.zeros((count, py, mz), omega.dtype)
        rows[:, :, :pz] = omega[planes]
        wide = np.zeros((count, my, kz), waves.dtype)
        wide[:, :py] = fft.rfft(rows, axis=2)
        waves[planes] = fft.fft(wide, axis=1, overwrite_x=True)

    def multiply(planes: slice) -> None:
        index = np.arange(planes.start, planes.stop)
        factor = green[:, np.minimum(index, my - index)]
        block: Array = np.zeros((mx, len(index), kz), waves.dtype)
        block[:px] = waves[:, planes]
        block = fft.fft(block, axis=0, overwrite_x=True)
        block[: half[0] + 1] *= factor
        block[half[0] + 1 :] *= factor[half[0] - 1 : 0 : -1]
        waves[:, planes] = fft.ifft(block, axis=0, overwrite_x=True)[:px]

    def backward(planes: slice) -> None:
        narrow = fft.ifft(waves[planes], axis=1)[:, :py]
        out[planes] = fft.irfft(narrow, mz, axis=2)[:, :, :pz]

    along_x = _blocks(px, my * kz * waves.itemsize)
    list(pool.map(forward, along_x))
    list(pool.map(multiply, _blocks(my, mx * kz * waves.itemsize)))
    list(pool.map(backward, along_x))


def _half(points: int) -> int:
    return int(fft.next_fast_len(points - 1)) if points > 1 else 0


def hockney(omega: Array, spacing: Any, code: Code, sigma: float) -> Array:
    """Vector potential A [m^2/s] of the vorticity of blobs at the points of a grid in unbounded space.

    ``omega`` (px, py, pz, m) 1/s, float32 or float64, at least two points per axis, any number of
    components; ``spacing`` (3,) m. For blobs in a plane there is one point across it, and the spacing 0.
    Points on the faces count with a whole cell, like all others. ``code`` is the regularisation, ``sigma``
    [m] the blobs' core radius. Any number of threads gives the same result. The first call for a grid also
    transforms the Green's function, which takes longer than the rest; the last four are kept.
    """
    # Offsets run from 1 - p to p - 1, and the two ends fall together: G is even, so 2 (p - 1) points do.
    px, py, pz = omega.shape[:3]
    half = _half(px), _half(py), _half(pz)
    steps = float(spacing[0]), float(spacing[1]), float(spacing[2])
    table = _transformed(half, steps, code, float(sigma), omega.dtype.name)
    out = np.empty_like(omega)
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        for c in range(omega.shape[3]):
            _convolve(omega[..., c], half, table, out[..., c], pool)
    return out
