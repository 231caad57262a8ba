"""Sums, bounds and extremes over rows that give the same bits for any number of threads.

Rows are cut into ``CHUNKS`` pieces whatever the thread count; every piece is reduced on its own and the
pieces are then combined in order. Everything is accumulated in float64, whatever the dtype of the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS, FAST

_ABREAST = 48
"""Numbers of 16 rows of three, whose bounds are taken side by side in vectors."""


@njit(parallel=True, cache=True, fastmath=FAST)
def _bounds(x: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
    """Bounds of the rows ``x`` (3 n,) into lo, hi (3,)."""
    n = x.shape[0] // 3
    least, most = np.empty((CHUNKS, 3)), np.empty((CHUNKS, 3))
    for c in prange(CHUNKS):
        first, last = 3 * (c * n // CHUNKS), 3 * ((c + 1) * n // CHUNKS)
        low, high = np.full(_ABREAST, np.inf, x.dtype), np.full(_ABREAST, -np.inf, x.dtype)
        for start in range(first, last - _ABREAST + 1, _ABREAST):
            some = x[start : start + _ABREAST]
            for k in range(_ABREAST):
                # In this form a NaN is never taken.
                low[k] = some[k] if some[k] < low[k] else low[k]
                high[k] = some[k] if some[k] > high[k] else high[k]
        for i in range(first + (last - first) // _ABREAST * _ABREAST, last):
            k = i - first
            low[k % 3] = min(x[i], low[k % 3]) if x[i] == x[i] else low[k % 3]
            high[k % 3] = max(x[i], high[k % 3]) if x[i] == x[i] else high[k % 3]
        for a in range(3):
            least[c, a], most[c, a] = low[a], high[a]
            for k in range(a + 3, _ABREAST, 3):
                least[c, a], most[c, a] = min(least[c, a], low[k]), max(most[c, a], high[k])
    for a in range(3):
        lo[a], hi[a] = least[0, a], most[0, a]
        for c in range(1, CHUNKS):
            lo[a], hi[a] = min(lo[a], least[c, a]), max(hi[a], most[c, a])


def bounds(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis-aligned box of points: (lo (3,), hi (3,)) in float64, the unit of ``x``.

    ``x`` has shape (n, 3). No points give (+inf, -inf), the neutral element: boxes of several populations
    are merged by ``np.minimum(lo_a, lo_b), np.maximum(hi_a, hi_b)``. NaN coordinates are skipped; ask
    ``all_finite`` for them.
    """
    lo, hi = np.empty(3), np.empty(3)
    _bounds(x.reshape(-1), lo, hi)
    return lo, hi


@njit(parallel=True, cache=True, fastmath=FAST)
def _chunk_invariants(x: np.ndarray, alpha: np.ndarray, out: np.ndarray) -> None:
    """Sums of alpha, x cross alpha and x cross (x cross alpha) of every chunk into out (CHUNKS, 9)."""
    n = x.shape[0]
    for c in prange(CHUNKS):
        a0 = a1 = a2 = 0.0
        b0 = b1 = b2 = 0.0
        c0 = c1 = c2 = 0.0
        for i in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
            px, py, pz = np.float64(x[i, 0]), np.float64(x[i, 1]), np.float64(x[i, 2])
            ax, ay, az = np.float64(alpha[i, 0]), np.float64(alpha[i, 1]), np.float64(alpha[i, 2])
            mx, my, mz = py * az - pz * ay, pz * ax - px * az, px * ay - py * ax
            a0 += ax
            a1 += ay
            a2 += az
            b0 += mx
            b1 += my
            b2 += mz
            c0 += py * mz - pz * my
            c1 += pz * mx - px * mz
            c2 += px * my - py * mx
        out[c, 0], out[c, 1], out[c, 2] = a0, a1, a2
        out[c, 3], out[c, 4], out[c, 5] = b0, b1, b2
        out[c, 6], out[c, 7], out[c, 8] = c0, c1, c2


def vortex_invariants(x: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Total strength, linear impulse and angular impulse of vortons, each (3,) float64.

    sum alpha [m^3/s], I = 1/2 sum x cross alpha [m^4/s], A = 1/3 sum x cross (x cross alpha) [m^5/s],
    with ``x`` (n, 3) m and ``alpha`` (n, 3) m^3/s. All three are constant in unbounded inviscid flow
    (Saffman, Vortex Dynamics, chapter 3).
    """
    parts = np.empty((CHUNKS, 9))
    _chunk_invariants(x, alpha, parts)
    # cumsum adds strictly in order; np.sum would pair terms up in a way that numpy may change.
    total = parts.cumsum(axis=0)[-1]
    return total[0:3], total[3:6] / 2, total[6:9] / 3


@njit(parallel=True, cache=True, fastmath=FAST)
def _chunk_max_square(rows: np.ndarray, out: np.ndarray) -> None:
    """Largest sum of squares of a row in every chunk into out (CHUNKS,); a NaN stays."""
    n, m = rows.shape
    for c in prange(CHUNKS):
        largest = 0.0
        for i in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
            square = 0.0
            for j in range(m):
                value = np.float64(rows[i, j])
                square += value * value
            # "not <=" and the second test keep the first NaN for good.
            if not (square <= largest) and largest == largest:
                largest = square
        out[c] = largest


def max_norm(rows: np.ndarray) -> float:
    """Largest Euclidean norm of the rows of an (n, ...) array: Frobenius for (n, 3, 3), speed for (n, 3).

    In the unit of ``rows``; 0 for no rows; NaN if any entry is NaN.
    """
    out = np.empty(CHUNKS)
    width = math.prod(rows.shape[1:])
    _chunk_max_square(rows.reshape(rows.shape[0], width), out)
    return math.sqrt(float(out.max()))


@njit(parallel=True, cache=True, fastmath=FAST)
def _chunk_residue(values: np.ndarray, out: np.ndarray) -> None:
    """Sum of 0 * value of every chunk: 0 for finite values, NaN otherwise (and it vectorises)."""
    n = values.shape[0]
    for c in prange(CHUNKS):
        part = values[c * n // CHUNKS : (c + 1) * n // CHUNKS]
        zero = values.dtype.type(0)
        residue = zero
        for i in range(part.shape[0]):
            residue += part[i] * zero
        out[c] = residue


def all_finite(values: np.ndarray) -> bool:
    """True if no entry of a float32 or float64 array of any shape is NaN or infinite."""
    out = np.empty(CHUNKS, values.dtype)
    _chunk_residue(values.reshape(-1), out)
    return bool(np.all(out == 0))
