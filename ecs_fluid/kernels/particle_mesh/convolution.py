"""The smooth velocity on a mesh in unbounded space: strengths convolved with it by FFT.

u(x_i) = sum_j S_j x K(x_i - x_j) over the points of a mesh, K(r) = g_long(r) r / (4 pi) (``splitting``), on
a mesh padded with zeros to twice the largest distance (Hockney and Eastwood, Computer Simulation Using
Particles, section 6-5-4). K_x is odd in x and even in y and z, so its transform is imaginary and an eighth of
it is kept.

Strengths came to the mesh, and velocities will leave it, by B-splines of order p. Along an axis, with the
angle w of a wave from point to point, that multiplies by sinc(w/2)^p twice, and what is left of the waves
that the mesh cannot tell from it is least with the factor (Hockney and Eastwood, section 8-3-3)

    D(w) = sinc(w/2)^(2p) / b(w)^2,   b(w) = sum_m sinc(w/2 + pi m)^(2p) = sum_j M_2p(j) cos(j w),

where M_2p(j) are the values of the B-spline of order 2p at the points.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from typing import Any

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import fft

from ecs_fluid.kernels.biot_savart.direct import velocity
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.particle_mesh.splines import ORDER
from ecs_fluid.kernels.particle_mesh.splitting import smooth_part

Array = NDArray[Any]
Sizes = tuple[int, int, int]

MARGIN = 6
"""Points between the farthest two of a mesh and where its images begin, at least: there K has a step, which
D spreads by some points, to 0.36^6 = 2e-3 of it at the sixth."""

_BLOCK_BYTES = 2**20
"""Size of the piece that a thread transforms at a time: it stays in the second-level cache."""


def half_sizes(points: Sizes) -> Sizes:
    """Half the periods of the padded mesh where strengths act so many points away along the axes, at most."""
    x, y, z = (int(fft.next_fast_len(n + MARGIN)) for n in points)
    return x, y, z


@lru_cache(maxsize=16)
def transformed(half: Sizes, spacing: float, code: Code, sigma: float, reach: float, dtype: str) -> Array:
    """(3, half + 1): i times the transforms of K_x, K_y and K_z, times D, on the padded mesh; 1/m^2.

    ``sigma`` and ``reach`` in cells of ``spacing`` m.
    """
    offsets = np.meshgrid(*(spacing * np.arange(n + 1.0) for n in half), indexing="ij", sparse=True)
    r2 = offsets[0] ** 2 + offsets[1] ** 2 + offsets[2] ** 2
    along, u = np.zeros((r2.size, 3)), np.empty((r2.size, 3))
    along[:, 0] = np.sqrt(r2.ravel())
    unit = np.array([[0.0], [0.0], [1.0]])
    velocity(code, along, np.zeros((3, 1)), unit, np.array([sigma * spacing]), u)
    # Of a strength along z, at distance r along x: u_y = g r / (4 pi).
    g = u[:, 1].reshape(r2.shape) / np.sqrt(np.maximum(r2, spacing**2))
    inside = r2 < (reach * spacing) ** 2
    v = 1.0 - r2[inside] / (reach * spacing) ** 2
    factors = smooth_part(code, sigma, reach).factors / (4.0 * np.pi * spacing**3)
    g[inside] = np.polyval(factors[::-1], v)
    sharpen = [_sharpening(n) for n in half]
    factor = sharpen[0][:, None, None] * sharpen[1][:, None] * sharpen[2]
    out = np.zeros((3, *g.shape), dtype)
    for axis in range(3):
        k = g * offsets[axis]
        even = [other for other in range(3) if other != axis]
        k = fft.dctn(k, type=1, axes=even, workers=numba.get_num_threads())
        inner = tuple(slice(1, -1) if other == axis else slice(None) for other in range(3))
        waves = fft.dst(k[inner], type=1, axis=axis, workers=numba.get_num_threads())
        out[axis][inner] = waves * factor[inner]
    return out


def _sharpening(half: int) -> Array:
    """D at the waves 0 ... half of 2 half points."""
    angle = np.pi * np.arange(half + 1) / half
    # From order n - 1 to n: (n - 1) M_n(x) = x M_{n-1}(x) + (n - x) M_{n-1}(x - 1), x from the spline's end.
    spline = np.array([0.0, 1.0, 0.0])
    for n in range(3, 2 * ORDER + 1):
        x = np.arange(n + 1)
        spline = (x * np.append(spline, 0.0) + (n - x) * np.append(0.0, spline)) / (n - 1)
    b = np.cos(np.outer(angle, np.arange(-ORDER, ORDER + 1))) @ spline
    return np.asarray(np.sinc(0.5 * angle / np.pi) ** (2 * ORDER) / b**2)


def _blocks(count: int, bytes_each: int) -> list[slice]:
    """``count`` planes in runs of about ``_BLOCK_BYTES``, whatever the number of threads."""
    step = max(1, _BLOCK_BYTES // bytes_each)
    return [slice(first, min(first + step, count)) for first in range(0, count, step)]


@njit(cache=True, nogil=True, fastmath=FAST)
def _cross(waves: Array, first: int, table: Array) -> None:
    """Strengths to velocities, S x K, in place: waves (3, mx, k, kz), of those along y k from ``first`` on.

    The transforms of K are -i times the ``table``, which has the others with their signs for waves beyond the
    half of x and y.
    """
    mx, count, kz = waves.shape[1:]
    my = 2 * (table.shape[2] - 1)
    for x in range(mx):
        for y in range(count):
            i, j = min(x, mx - x), min(first + y, my - first - y)
            sign_x, sign_y = np.float32(1 if i == x else -1), np.float32(1 if j == first + y else -1)
            for z in range(kz):
                a, b, c = sign_x * table[0, i, j, z], sign_y * table[1, i, j, z], table[2, i, j, z]
                p, q, r = waves[0, x, y, z], waves[1, x, y, z], waves[2, x, y, z]
                waves[0, x, y, z] = complex(q.imag * c - r.imag * b, r.real * b - q.real * c)
                waves[1, x, y, z] = complex(r.imag * a - p.imag * c, p.real * c - r.real * a)
                waves[2, x, y, z] = complex(p.imag * b - q.imag * a, q.real * a - p.real * b)


def spread(strengths: Array, half: Sizes) -> Array:
    """Waves (3, px, my, kz) along y and z of strengths (px, py, pz, 3) m^3/s, on the padded mesh.

    Here and in `convolve` the padding is left out wherever it is known to be zero or not wanted, as in
    ``poisson.freespace``. Any number of threads gives the same result.
    """
    px, py, pz = strengths.shape[:3]
    my, mz, kz = 2 * half[1], 2 * half[2], half[2] + 1
    waves = np.empty((3, px, my, kz), np.result_type(strengths.dtype, np.complex64))

    def forward(planes: slice) -> None:
        count = planes.stop - planes.start
        rows = np.zeros((3, count, py, mz), strengths.dtype)
        rows[:, :, :, :pz] = np.moveaxis(strengths[planes], 3, 0)
        wide = np.zeros((3, count, my, kz), waves.dtype)
        wide[:, :, :py] = fft.rfft(rows, axis=3)
        waves[:, planes] = fft.fft(wide, axis=2, overwrite_x=True)

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        list(pool.map(forward, _blocks(px, 3 * my * kz * waves.itemsize)))
    return waves


def convolve(parts: list[tuple[Array, Array]], half: Sizes, out: Array) -> None:
    """Fill ``out`` (px, py, pz, 3) m/s by what `spread` made of strengths, each with its `transformed`."""
    px, py, pz = out.shape[:3]
    mx, my, mz = (2 * n for n in half)
    kz = half[2] + 1
    waves = np.empty_like(parts[0][0])

    def multiply(planes: slice) -> None:
        found: list[Array] = []
        for given, table in parts:
            wide = np.zeros((3, mx, planes.stop - planes.start, kz), waves.dtype)
            wide[:, :px] = given[:, :, planes]
            found.append(fft.fft(wide, axis=1, overwrite_x=True))
            _cross(found[-1], planes.start, table)
        total = reduce(np.add, found)
        waves[:, :, planes] = fft.ifft(total, axis=1, overwrite_x=True)[:, :px]

    def backward(planes: slice) -> None:
        narrow = fft.ifft(waves[:, planes], axis=2)[:, :, :py]
        out[planes] = np.moveaxis(fft.irfft(narrow, mz, axis=3)[..., :pz], 0, 3)

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        list(pool.map(multiply, _blocks(my, 3 * mx * kz * waves.itemsize)))
        list(pool.map(backward, _blocks(px, 3 * my * kz * waves.itemsize)))
