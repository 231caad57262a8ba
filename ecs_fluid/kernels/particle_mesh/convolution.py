"""The smooth velocity on a mesh in unbounded space: strengths convolved with it by Fourier transforms.

u(x_i) = sum_j S_j x K(x_i - x_j) over the points of a mesh, K(r) = g_long(r) r / (4 pi) (``splitting``), on
a mesh padded with zeros to twice the largest distance (Hockney and Eastwood, Computer Simulation Using
Particles, section 6-5-4). K_x is odd in x and even in y and z, so its transform is imaginary and an eighth of
it is kept.

B-splines of order p bring strengths to the mesh, and velocities from it. Along an axis, for a wave of the
phase w per cell, that multiplies by sinc(w/2)^p twice. The error by aliases, waves that the mesh cannot
distinguish from this one, is least with the factor (Hockney and Eastwood, section 8-3-3)

    D(w) = sinc(w/2)^(2p) / b(w)^2,   b(w) = sum_m sinc(w/2 + pi m)^(2p) = sum_j M_2p(j) cos(j w),

where M_2p(j) are the values of the B-spline of order 2p at the points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import njit
from scipy import fft

from ecs_fluid.kernels.biot_savart.direct import velocity
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import FAST_LOOP, Array
from ecs_fluid.kernels.compiled.lanes import BYTES, lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, aligned
from ecs_fluid.kernels.particle_mesh.fourier import transform, transform_tables
from ecs_fluid.kernels.particle_mesh.splines import ORDER
from ecs_fluid.kernels.particle_mesh.splitting import smooth_part

Sizes = tuple[int, int, int]

MARGIN = 6
"""Least number of points between the farthest point of a mesh and the first image, where K has a step: D
spreads the step over some points, to 0.36^6 = 2e-3 of it at the sixth."""

_WAVES_TOGETHER = 4
"""Number of waves along y that are transformed along x in turn: their data lie together in memory."""


def half_sizes(points: Sizes) -> Sizes:
    """Half the periods of the padded mesh, if strengths act at most this many points away along the axes."""
    x, y, z = (int(fft.next_fast_len(n + MARGIN, real=True)) for n in points)
    return x, y, z


@lru_cache(maxsize=16)
def kernel_transforms(
    half: Sizes, spacing: float, code: Code, sigma: float, reach: float, dtype: str
) -> Array:
    """i times the transforms of K_x, K_y and K_z, times D, on the padded mesh, over its size; 1/m^2.

    ``sigma`` and ``reach`` in cells of ``spacing`` m. By waves along y (half + 1), vectors of waves along z,
    waves along x (half + 1) and components, with a wave along z in each lane.
    """
    offsets = np.meshgrid(*(spacing * np.arange(n + 1.0) for n in half), indexing="ij", sparse=True)
    r2 = offsets[0] ** 2 + offsets[1] ** 2 + offsets[2] ** 2
    along, u = np.zeros((r2.size, 3)), np.empty((r2.size, 3))
    along[:, 0] = np.sqrt(r2.ravel())
    unit = np.array([[0.0], [0.0], [1.0]])
    velocity(code, along, np.zeros((3, 1)), unit, np.array([sigma * spacing]), u)
    # A strength along z induces u_y = g r / (4 pi) at the distance r along x.
    g = u[:, 1].reshape(r2.shape) / np.sqrt(np.maximum(r2, spacing**2))
    inside = r2 < (reach * spacing) ** 2
    v = 1.0 - r2[inside] / (reach * spacing) ** 2
    factors = smooth_part(code, sigma, reach).factors / (4.0 * np.pi * spacing**3)
    g[inside] = np.polyval(factors[::-1], v)
    sharpen = [_sharpening(n) for n in half]
    factor = sharpen[0][:, None, None] * sharpen[1][:, None] * sharpen[2]
    width = BYTES // np.dtype(dtype).itemsize
    out = np.zeros((3, *g.shape[:2], -(-g.shape[2] // width) * width), dtype)
    factor /= 8.0 * np.prod(half, dtype=np.float64)
    for axis in range(3):
        k = g * offsets[axis]
        even = [other for other in range(3) if other != axis]
        k = fft.dctn(k, type=1, axes=even, workers=numba.get_num_threads())
        inner = tuple(slice(1, half[axis]) if other == axis else slice(half[other] + 1) for other in range(3))
        waves = fft.dst(k[inner], type=1, axis=axis, workers=numba.get_num_threads())
        out[(axis, *inner)] = waves * factor[inner]
    lanes = out.reshape(*out.shape[:3], -1, width)
    return np.ascontiguousarray(lanes.transpose(2, 3, 1, 0, 4)).reshape(
        half[1] + 1, -1, half[0] + 1, 3 * width
    )


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


@njit(**INLINE)
def _transpose(x: Any, at: int, step: int, y: Any, to: int, stride: int, rows: int, columns: int) -> None:
    """y[to + r + c stride] = x[at + r step + c] for rows r and columns c."""
    for r in range(np.uintp(rows)):
        for c in range(np.uintp(columns)):
            y[np.uintp(to) + r + c * np.uintp(stride)] = x[np.uintp(at) + r * np.uintp(step) + c]


@njit(**INLINE)
def _copy(x: Any, at: int, y: Any, to: int, count: int) -> None:
    for q in range(np.uintp(count)):
        y[np.uintp(to) + q] = x[np.uintp(at) + q]


@parallel("strengths.shape[0]", **FAST_LOOP)
def _forward_plane(i: int, strengths: Array, along_y: Any, along_z: Any, waves: Array) -> None:
    """For the i-th plane: transforms along z, with two real lines in each complex one, then along y."""
    py, pz, vectors, my = strengths.shape[1], strengths.shape[2], waves.shape[2], waves.shape[3]
    width, mz, lines = lanes_of(waves), along_z[1].shape[1], 3 * py
    two, kz = 2 * width, mz // 2 + 1
    size = two * max(my, mz)
    x, y = aligned(size, waves), aligned(size, waves)
    columns = (lines + two - 1) // two * two
    turned = np.empty(2 * kz * columns, waves.dtype)  # by waves, parts and lines
    flat, out = strengths.reshape(strengths.size), waves.reshape(waves.size)
    half = spread(waves.dtype.type(0.5))
    for first in range(0, columns, two):
        x[: two * mz] = 0.0
        for q in range(min(two, lines - first)):
            c, j = (first + q) // py, (first + q) % py
            at = np.uintp(((i * py + j) * pz) * 3 + c)
            for k in range(np.uintp(pz)):
                x[np.uintp(two) * k + np.uintp(q)] = flat[at + np.uintp(3) * k]
        found = y if transform(x, y, *along_z) else x
        for k in range(kz):
            one, other, to = two * k, two * ((mz - k) % mz), 2 * k * columns + first
            a, b = load(found, one), load(found, one + width)
            c, d = load(found, other), load(found, other + width)
            store(turned, to, half * (a + c))
            store(turned, to + width, half * (b + d))
            store(turned, to + columns, half * (b - d))
            store(turned, to + columns + width, half * (c - a))
    for c in range(3):
        for v in range(vectors):
            x[: two * my] = 0.0
            waves_here = min(width, kz - v * width)
            for part in range(2):
                at = (2 * v * width + part) * columns + c * py
                _transpose(turned, at, 2 * columns, x, part * width, two, waves_here, py)
            found = y if transform(x, y, *along_y) else x
            _copy(found, 0, out, ((i * 3 + c) * vectors + v) * two * my, two * my)


@njit(**INLINE)
def _cross_product(x: Any, y: Any, k: Any, first: int, width: int, mx: int, sign: Any) -> None:
    """y = S x K for three lines of waves S in ``x``; those of K are in ``k`` from row ``first`` on."""
    two, length, kind = 2 * width, 2 * width * mx, x.dtype.type
    up, down = spread(kind(1.0)), spread(kind(-1.0))
    for i in range(mx):
        half = min(i, mx - i)
        at, p, q, r = (first + half) * 3 * width, two * i, two * i + length, two * i + 2 * length
        ax, ay = load(k, at) * (up if i == half else down), load(k, at + width) * sign
        az = load(k, at + two)
        pr, pi, qr, qi = load(x, p), load(x, p + width), load(x, q), load(x, q + width)
        rr, ri = load(x, r), load(x, r + width)
        store(y, p + width, qi * az - ri * ay)
        store(y, p, rr * ay - qr * az)
        store(y, q + width, ri * ax - pi * az)
        store(y, q, pr * az - rr * ax)
        store(y, r + width, pi * ay - qi * ax)
        store(y, r, qr * ax - pr * ay)


@parallel(f"(waves.shape[3] + {_WAVES_TOGETHER} - 1) // {_WAVES_TOGETHER}", **FAST_LOOP)
def _multiply(
    block: int, waves: Array, along_x: Any, tables: tuple[Array, Array], fields: int, more: bool,
    outs: tuple[Array, Array],
) -> None:  # fmt: skip
    """For a block of waves along y: transforms along x, products S x K, and transforms back, for 1 or 2
    fields.

    The transforms of K are -i times the ``tables``, which by symmetry also give, with signs, those of waves
    beyond half the period of x and y. The results go to ``outs``, or with ``more`` are added, with real and
    imaginary parts exchanged.
    """
    px, vectors, my = waves.shape[0], waves.shape[2], waves.shape[3]
    width, mx = lanes_of(waves), along_x[1].shape[1]
    two, length, kind = 2 * width, 2 * width * mx, waves.dtype.type
    begin = block * _WAVES_TOGETHER
    several = min(_WAVES_TOGETHER, my - begin)
    lines, room = aligned(_WAVES_TOGETHER * 3 * length, waves), aligned(3 * length, waves)
    given = waves.reshape(waves.size)
    spare = aligned((fields - 1) * 3 * length, waves)
    kept = aligned((fields - 1) * several * 3 * two * px, waves)
    for v in range(vectors):
        for i in range(px):
            for c in range(3):
                at = (((i * 3 + c) * vectors + v) * my + begin) * two
                for s in range(several):
                    _copy(given, at + s * two, lines, (3 * s + c) * length + two * i, two)
        for s in range(several):
            j, swapped = begin + s, False
            row = min(j, my - j)
            own = lines[3 * s * length : 3 * (s + 1) * length]
            for c in range(3):
                x, y = own[c * length : (c + 1) * length], room[c * length : (c + 1) * length]
                x[two * px :] = 0.0
                swapped = transform(x, y, *along_x)
            x, y = (room, own) if swapped else (own, room)
            sign = spread(kind(1.0 if row == j else -1.0))
            for f in range(fields):
                table, last = tables[f], f == fields - 1
                _cross_product(
                    x, y, table.reshape(table.size), (row * vectors + v) * (mx // 2 + 1), width, mx, sign
                )
                # The last field may overwrite the strengths; either way the result is in ``room``.
                other = x if last else spare
                found = other if swapped else y
                to, stride = (own, length) if last else (kept[3 * s * two * px :], two * px)
                for c in range(3):
                    transform(
                        y[c * length : (c + 1) * length], other[c * length : (c + 1) * length], *along_x
                    )
                    _copy(found, c * length, to, c * stride, two * px)
        for f in range(fields):
            out, last = outs[f], f == fields - 1
            flat, done, stride = out.reshape(out.size), lines if last else kept, length if last else two * px
            for i in range(px):
                for c in range(3):
                    to = (((i * 3 + c) * vectors + v) * my + begin) * two
                    for s in range(several):
                        at = (3 * s + c) * stride + two * i
                        if more:
                            for q in range(two):
                                flat[to + s * two + q] += done[at + q]
                        else:
                            _copy(done, at, flat, to + s * two, two)


@parallel("out.shape[0]", **FAST_LOOP)
def _inverse_plane(i: int, waves: Array, along_y: Any, along_z: Any, out: Array) -> None:
    """For the i-th plane: transforms back along y, then along z, with two real lines from each complex one.

    In ``waves`` real and imaginary parts are exchanged.
    """
    py, pz, vectors, my = out.shape[1], out.shape[2], waves.shape[2], waves.shape[3]
    width, mz, lines = lanes_of(waves), along_z[1].shape[1], 3 * py
    two, kz = 2 * width, mz // 2 + 1
    size = two * max(my, mz)
    x, y = aligned(size, waves), aligned(size, waves)
    columns = (lines + two - 1) // two * two
    turned = np.zeros(2 * kz * columns, waves.dtype)  # by waves, parts and lines
    given, flat = waves.reshape(waves.size), out.reshape(out.size)
    for c in range(3):
        for v in range(vectors):
            _copy(given, ((i * 3 + c) * vectors + v) * two * my, x, 0, two * my)
            found = y if transform(x, y, *along_y) else x
            waves_here = min(width, kz - v * width)
            for part in range(2):
                to = (2 * v * width + part) * columns + c * py
                _transpose(found, part * width, two, turned, to, 2 * columns, py, waves_here)
    for first in range(0, columns, two):
        for k in range(kz):
            one, other, at = two * k, two * ((mz - k) % mz), 2 * k * columns + first
            # With parts exchanged, a + i b and c + i d of two lines become those of (a + i b) + i (c + i d).
            b, d = load(turned, at), load(turned, at + width)
            a, c = load(turned, at + columns), load(turned, at + columns + width)
            store(x, other, c - b)
            store(x, other + width, a + d)
            store(x, one, b + c)
            store(x, one + width, a - d)
        found = y if transform(x, y, *along_z) else x
        for q in range(min(two, lines - first)):
            c, j = (first + q) // py, (first + q) % py
            to, at = np.uintp(((i * py + j) * pz) * 3 + c), np.uintp((q + width) % two)
            for k in range(np.uintp(pz)):
                flat[to + np.uintp(3) * k] = found[np.uintp(two) * k + at]


def waves_of(strengths: Array, half: Sizes) -> Array:
    """Waves along y and z of strengths (px, py, pz, 3) m^3/s on the padded mesh.

    The axes of the result are planes, components, vectors of waves along z, waves along y, parts and lanes
    (px, 3, vectors, my, 2 lanes). Here and in `convolve`, axes in real space are kept without padding.
    """
    name, width = strengths.dtype.name, BYTES // strengths.itemsize
    vectors = -(-(half[2] + 1) // width)
    waves = np.empty((len(strengths), 3, vectors, 2 * half[1], 2 * width), strengths.dtype)
    _forward_plane(strengths, transform_tables(2 * half[1], name), transform_tables(2 * half[2], name), waves)
    return waves


def convolve(
    parts: list[tuple[Array, list[Array]]], half: Sizes, outs: list[Array], last: bool = False
) -> None:
    """Fill ``outs``, one or two fields (px, py, pz, 3) m/s, from the results of `waves_of`.

    Each part comes with its `kernel_transforms` for each field. With ``last`` its waves are overwritten,
    which takes less memory. The result is the same for any number of threads.
    """
    along_x, along_y, along_z = (transform_tables(2 * n, outs[0].dtype.name) for n in half)
    waves = [np.empty_like(parts[0][0]) for _ in outs[last:]]
    waves += [parts[0][0]] if last else []
    for number, (given, tables) in enumerate(parts):
        _multiply(given, along_x, (tables[0], tables[-1]), len(outs), number > 0, (waves[0], waves[-1]))
    for one, out in zip(waves, outs, strict=True):
        _inverse_plane(one, along_y, along_z, out)
