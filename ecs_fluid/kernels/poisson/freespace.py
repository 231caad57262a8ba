"""Poisson's equation in unbounded space on a grid: convolution with the Green's function by FFT.

A(x_i) = sum_j G(x_i - x_j) omega(x_j) V_c over the grid points is a convolution; on a grid of twice the size,
padded with zeros, the periodic one of the FFT is the same (Hockney and Eastwood, Computer Simulation Using
Particles, section 6-5-4). G is even, so its transform is real and an eighth of it is kept. The transforms
leave out what is known to be zero or not wanted, about 40 % of the work. Green's functions:

``lattice``   1/(4 pi r), and at r = 0 the value that makes the sum over the lattice equal to the integral up
              to O(h^4): -v/(4 pi) with v the potential of a lattice of unit charges in a neutral background
              at one of its points (for cubes v = -2.837297/h). The mean over the cell, often used, is O(h^2).
``spectral``  1/(4 pi r) cut off beyond the diagonal L of the box, which changes nothing inside: its transform
              2 sin^2(L k/2)/k^2 is smooth, and the error is that of the trapezoidal rule for omega: below
              every power of h for smooth vorticity that ends inside the box (Vico, Greengard, Ferrando,
              J. Comput. Phys. 323 (2016)).
``blob``      that of a regularised vorton of core radius sigma: what all solvers would give for vortons of
              that one radius at the grid points.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Literal

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from ecs_fluid.kernels.biot_savart.direct import potential_vorticity

Array = NDArray[Any]
Sizes = tuple[int, int, int]
Steps = tuple[float, float, float]

_BLOCK_BYTES = 2**20
"""Size of the piece that a thread transforms at a time: it stays in the second-level cache."""


def lattice_potential(spacing: Steps) -> float:
    """Potential v [1/m] of unit charges on a lattice in a neutral background, at a point, itself left out.

    v = sum' erfc(a r)/r + (4 pi/V) sum' exp(-k^2/(4 a^2))/k^2 - pi/(a^2 V) - 2 a/sqrt(pi), for any a > 0
    (Ewald 1921); -2.8372974795/h for cubes of edge h. ``spacing`` in m.
    """
    h = np.array(spacing)
    volume = float(h.prod())
    a = np.sqrt(np.pi) / volume ** (1.0 / 3.0)
    reach = 6.0 / a
    counts = np.ceil(reach / h).astype(int)
    r = np.sqrt(_squares([h[axis] * np.arange(-n, n + 1) for axis, n in enumerate(counts)]))
    r = r[r > 0.0]
    waves = 2.0 * np.pi / h
    counts = np.ceil(12.0 * a / waves).astype(int)
    k2 = _squares([waves[axis] * np.arange(-n, n + 1) for axis, n in enumerate(counts)])
    k2 = k2[k2 > 0.0]
    near = float(np.sum(special.erfc(a * r) / r))
    far = 4.0 * np.pi / volume * float(np.sum(np.exp(-k2 / (4.0 * a * a)) / k2))
    return float(near + far - np.pi / (a * a * volume) - 2.0 * a / np.sqrt(np.pi))


def _squares(axes: list[Array]) -> Array:
    """x^2 + y^2 + z^2 over the grid of the three coordinates."""
    x, y, z = axes
    return np.asarray(x[:, None, None] ** 2 + y[:, None] ** 2 + z**2)


def _corner(sizes: Sizes, spacing: Steps) -> list[Array]:
    """Coordinates 0, h, ... of an octant with ``sizes`` + 1 points per axis."""
    return [h * np.arange(n + 1) for n, h in zip(sizes, spacing, strict=True)]


def _lattice(sizes: Sizes, spacing: Steps) -> Array:
    r = np.sqrt(_squares(_corner(sizes, spacing)))
    r[0, 0, 0] = 1.0
    green = 1.0 / (4.0 * np.pi * r)
    green[0, 0, 0] = -lattice_potential(spacing) / (4.0 * np.pi)
    return np.asarray(green)


def _spectral(sizes: Sizes, spacing: Steps) -> Array:
    extent = np.array(sizes) * np.array(spacing)
    cut = 1.0001 * float(np.sqrt((extent**2).sum()))
    # The period must hold the cut-off sphere and the box, or copies of it reach inside.
    h = np.array(spacing)
    wide = [fft.next_fast_len(int(n) + 1) for n in np.ceil((cut + extent) / (2.0 * h))]
    k = np.sqrt(_squares([np.pi / (wide[a] * h[a]) * np.arange(wide[a] + 1) for a in range(3)]))
    k[0, 0, 0] = 1.0
    transform = 2.0 * (np.sin(0.5 * cut * k) / k) ** 2
    transform[0, 0, 0] = 0.5 * cut * cut
    volume = 8.0 * np.prod(wide) * np.prod(spacing)
    green = fft.dctn(transform, type=1, overwrite_x=True, workers=numba.get_num_threads()) / volume
    return np.ascontiguousarray(green[: sizes[0] + 1, : sizes[1] + 1, : sizes[2] + 1])


def _blob(sizes: Sizes, spacing: Steps, code: int, sigma: float) -> Array:
    x, y, z = np.meshgrid(*_corner(sizes, spacing), indexing="ij")
    targets = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    psi, omega = np.empty_like(targets), np.empty_like(targets)
    unit = np.array([[0.0], [0.0], [1.0]])
    potential_vorticity(code, targets, np.zeros((3, 1)), unit, np.array([sigma]), psi, omega)
    return np.ascontiguousarray(psi[:, 2]).reshape(x.shape)


@lru_cache(maxsize=4)
def _transformed(half: Sizes, spacing: Steps, kind: str, code: int, sigma: float, dtype: str) -> Array:
    """Transform of G V_c on the doubled grid: real, and even, so only (half + 1) points per axis."""
    if kind == "blob":
        green = _blob(half, spacing, code, sigma)
    elif kind == "spectral":
        green = _spectral(half, spacing)
    else:
        green = _lattice(half, spacing)
    green *= np.prod(spacing)
    return np.asarray(fft.dctn(green, type=1, workers=numba.get_num_threads()).astype(dtype))


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
    mx, my, mz = (2 * n for n in half)
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


def hockney(
    omega: Array,
    spacing: Any,
    green: Literal["lattice", "spectral", "blob"] = "lattice",
    code: int = 0,
    sigma: float = 0.0,
    workers: int | None = None,
) -> Array:
    """Vector potential A [m^2/s] of the vorticity on a grid in unbounded space: lap A = -omega.

    ``omega`` (px, py, pz, m) 1/s, float32 or float64, at least two points per axis, any number of
    components; ``spacing`` (3,) m. Points on the faces count with a whole cell, like all others. ``green`` as
    in the head of this file; ``code`` (regularisation) and ``sigma`` [m] for "blob". ``workers`` threads,
    as many as Numba uses if None; the result is the same for any number. The first call for a grid also
    transforms the Green's function, which takes longer than the rest; the last four are kept.
    """
    if min(omega.shape[:3]) < 2:
        raise ValueError(f"hockney: every axis needs at least 2 points, but omega has {omega.shape[:3]}")
    if green == "blob" and not sigma > 0.0:
        raise ValueError(f"hockney: green = 'blob' needs sigma > 0, but it is {sigma}")
    threads = numba.get_num_threads() if workers is None else workers
    # Offsets run from 1 - p to p - 1, and the two ends fall together: G is even, so 2 (p - 1) points do.
    px, py, pz = omega.shape[:3]
    half = fft.next_fast_len(px - 1), fft.next_fast_len(py - 1), fft.next_fast_len(pz - 1)
    steps = float(spacing[0]), float(spacing[1]), float(spacing[2])
    table = _transformed(half, steps, green, int(code), float(sigma), omega.dtype.name)
    out = np.empty_like(omega)
    with ThreadPoolExecutor(threads) as pool:
        for c in range(omega.shape[3]):
            _convolve(omega[..., c], half, table, out[..., c], pool)
    return out
