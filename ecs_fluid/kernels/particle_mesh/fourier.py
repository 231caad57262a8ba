"""Fourier transforms of many lines at once, with one line in each lane of a SIMD vector.

``scipy.fft`` is compiled for vectors of 16 bytes; these transforms use the widest vectors available, and take
a third of its time on the meshes of this package.

A buffer holds the numbers of `lanes_of` lines, number after number: for each, the real parts of all lines,
then the imaginary parts. The transforms are Stockham's, which need no bit reversal, for lengths that are
products of 2, 3 and 5.

Source: Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST, Array
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, wide_vectors

RADICES = (4, 2, 3, 5)

_C1, _C2 = float(np.cos(2.0 * np.pi / 5.0)), float(np.cos(4.0 * np.pi / 5.0))
_S1, _S2 = float(np.sin(2.0 * np.pi / 5.0)), float(np.sin(4.0 * np.pi / 5.0))
_S3 = float(np.sin(2.0 * np.pi / 3.0))


@lru_cache(maxsize=32)
def transform_tables(length: int, dtype: str) -> tuple[Array, Array]:
    """Factors of a length, and (2, length): cos and -sin of 2 pi j/length."""
    factors, left = list[int](), length
    for radix in RADICES:
        while left % radix == 0:
            factors.append(radix)
            left //= radix
    if left > 1:
        raise ValueError(f"a length of {length} is no product of 2, 3 and 5")
    angle = 2.0 * np.pi * np.arange(length) / length
    return np.array(factors), np.stack([np.cos(angle), -np.sin(angle)]).astype(dtype)


@njit(**INLINE)
def _load_number(x: Any, at: int) -> Any:
    """Real and imaginary parts of the ``at``-th numbers of all lines."""
    width = lanes_of(x)
    return load(x, 2 * width * at), load(x, 2 * width * at + width)


@njit(**INLINE)
def _store_number(x: Any, at: int, real: Any, imaginary: Any) -> None:
    width = lanes_of(x)
    store(x, 2 * width * at, real)
    store(x, 2 * width * at + width, imaginary)


@njit(**INLINE)
def _store_rotated(x: Any, at: int, real: Any, imaginary: Any, cos: Any, sin: Any) -> None:
    _store_number(x, at, real * cos - imaginary * sin, real * sin + imaginary * cos)


@njit(fastmath=FAST, error_model="numpy")
def transform(x: Any, y: Any, factors: Any, twiddles: Any) -> bool:
    """Unscaled forward transforms of the lines in ``x``; returns whether the result is in ``y``, not in
    ``x``.

    For the inverse transforms, times the length, exchange real and imaginary parts before and after.
    ``factors`` and ``twiddles`` are those of `transform_tables`.
    """
    wide_vectors()
    kind = x.dtype.type
    length = twiddles.shape[1]
    n, s, swapped = length, 1, False
    for f in range(factors.size):
        radix = factors[f]
        m = n // radix
        for p in range(m):
            one = p * s
            c1, s1 = spread(twiddles[0, one]), spread(twiddles[1, one])
            if radix == 2:
                for q in range(s):
                    ar, ai = _load_number(x, q + s * p)
                    br, bi = _load_number(x, q + s * (p + m))
                    _store_number(y, q + s * 2 * p, ar + br, ai + bi)
                    _store_rotated(y, q + s * (2 * p + 1), ar - br, ai - bi, c1, s1)
                continue
            c2, s2 = spread(twiddles[0, 2 * one]), spread(twiddles[1, 2 * one])
            if radix == 3:
                half, root = spread(kind(0.5)), spread(kind(_S3))
                for q in range(s):
                    ar, ai = _load_number(x, q + s * p)
                    br, bi = _load_number(x, q + s * (p + m))
                    cr, ci = _load_number(x, q + s * (p + 2 * m))
                    tr, ti = br + cr, bi + ci
                    ur, ui = ar - half * tr, ai - half * ti
                    vr, vi = root * (bi - ci), root * (cr - br)
                    to = q + s * 3 * p
                    _store_number(y, to, ar + tr, ai + ti)
                    _store_rotated(y, to + s, ur + vr, ui + vi, c1, s1)
                    _store_rotated(y, to + 2 * s, ur - vr, ui - vi, c2, s2)
                continue
            c3, s3 = spread(twiddles[0, 3 * one]), spread(twiddles[1, 3 * one])
            if radix == 4:
                for q in range(s):
                    ar, ai = _load_number(x, q + s * p)
                    br, bi = _load_number(x, q + s * (p + m))
                    cr, ci = _load_number(x, q + s * (p + 2 * m))
                    dr, di = _load_number(x, q + s * (p + 3 * m))
                    er, ei, fr, fi = ar + cr, ai + ci, ar - cr, ai - ci
                    gr, gi, hr, hi = br + dr, bi + di, bi - di, dr - br
                    to = q + s * 4 * p
                    _store_number(y, to, er + gr, ei + gi)
                    _store_rotated(y, to + s, fr + hr, fi + hi, c1, s1)
                    _store_rotated(y, to + 2 * s, er - gr, ei - gi, c2, s2)
                    _store_rotated(y, to + 3 * s, fr - hr, fi - hi, c3, s3)
                continue
            c4, s4 = spread(twiddles[0, 4 * one]), spread(twiddles[1, 4 * one])
            near, far = spread(kind(_C1)), spread(kind(_C2))
            steep, flat = spread(kind(_S1)), spread(kind(_S2))
            for q in range(s):
                ar, ai = _load_number(x, q + s * p)
                br, bi = _load_number(x, q + s * (p + m))
                cr, ci = _load_number(x, q + s * (p + 2 * m))
                dr, di = _load_number(x, q + s * (p + 3 * m))
                er, ei = _load_number(x, q + s * (p + 4 * m))
                tr, ti, ur, ui = br + er, bi + ei, cr + dr, ci + di
                vr, vi, wr, wi = br - er, bi - ei, cr - dr, ci - di
                fr, fi = ar + near * tr + far * ur, ai + near * ti + far * ui
                gr, gi = ar + far * tr + near * ur, ai + far * ti + near * ui
                hr, hi = steep * vi + flat * wi, steep * vr + flat * wr
                kr, ki = flat * vi - steep * wi, flat * vr - steep * wr
                to = q + s * 5 * p
                _store_number(y, to, ar + tr + ur, ai + ti + ui)
                _store_rotated(y, to + s, fr + hr, fi - hi, c1, s1)
                _store_rotated(y, to + 2 * s, gr + kr, gi - ki, c2, s2)
                _store_rotated(y, to + 3 * s, gr - kr, gi + ki, c3, s3)
                _store_rotated(y, to + 4 * s, fr - hr, fi + hi, c4, s4)
        n, s = m, s * radix
        x, y, swapped = y, x, not swapped
    return swapped
