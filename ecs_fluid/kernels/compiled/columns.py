"""Whole columns at once: advanced in time, shifted, and reduced to sums, bounds and extremes.

Rows are cut into ``CHUNKS`` pieces for any number of threads. In a reduction every piece is reduced by itself
in float64, and the pieces are combined in order, so that the bits do not depend on threads.

A stage of Williamson's low-storage Runge-Kutta form is q <- a q + dt f(y), y <- y + b q (J. H. Williamson,
J. Comput. Phys. 35, 1980); columns come flattened, so that one kernel serves every shape. Loops over the
slice of a chunk start at 0, which compilers turn into vectors. The kernels of squares, which only core radii
need, stay scalar: over vectors the last bit of y^2 + b q would depend on where a row lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel

_ROWS_PER_CHUNK = 1024
"""Chunks with fewer rows take longer to distribute than to process."""


@parallel(fastmath=FAST)
def advance(
    chunk: int, y: NDArray[Any], q: NDArray[Any], rate: NDArray[Any], a: float, b: float, dt: float
) -> None:
    """One stage for all columns: y and q are updated in place; all arrays (n,), one dtype."""
    n = y.size
    first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
    state, register, slope = y[first:last], q[first:last], rate[first:last]
    for k in range(state.size):
        register[k] = a * register[k] + dt * slope[k]
        state[k] += b * register[k]


@parallel(fastmath=FAST)
def advance_square(
    chunk: int, y: NDArray[Any], q: NDArray[Any], rate: NDArray[Any], a: float, b: float, dt: float
) -> None:
    """One stage for columns whose square has the given rate: y^2 and q are advanced."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for k in range(chunk * span, min(n, (chunk + 1) * span)):
        q[k] = a * q[k] + dt * rate[k]
        y[k] = np.sqrt(y[k] * y[k] + b * q[k])


@parallel(fastmath=FAST)
def euler(chunk: int, y: NDArray[Any], rate: NDArray[Any], dt: float) -> None:
    """y <- y + dt rate, without a register."""
    n = y.size
    first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
    state, slope = y[first:last], rate[first:last]
    for k in range(state.size):
        state[k] += dt * slope[k]


@parallel(fastmath=FAST)
def euler_square(chunk: int, y: NDArray[Any], rate: NDArray[Any], dt: float) -> None:
    """y^2 <- y^2 + dt rate, without a register."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for k in range(chunk * span, min(n, (chunk + 1) * span)):
        y[k] = np.sqrt(y[k] * y[k] + dt * rate[k])


@parallel(fastmath=FAST)
def shift(chunk: int, rows: NDArray[Any], by: NDArray[Any]) -> None:
    """Add one vector (3,) to all rows (n, 3), in place; numpy takes ten times as long with such short
    rows."""
    n = rows.shape[0]
    flat = rows.reshape(rows.size)
    x, y, z = by[0], by[1], by[2]
    part = flat[3 * (chunk * n // CHUNKS) : 3 * ((chunk + 1) * n // CHUNKS)]
    for k in range(part.size // 3):
        part[3 * k] += x
        part[3 * k + 1] += y
        part[3 * k + 2] += z


@parallel()
def add_products(chunk: int, factors: NDArray[Any], vectors: NDArray[Any], rows: NDArray[Any]) -> None:
    """rows (n, 3) += factors (n, m) times vectors (m, 3), whose m products are added up in order."""
    n, m = factors.shape
    for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        x = y = z = factors.dtype.type(0)
        for k in range(m):
            x += factors[i, k] * vectors[k, 0]
            y += factors[i, k] * vectors[k, 1]
            z += factors[i, k] * vectors[k, 2]
        rows[i, 0] += x
        rows[i, 1] += y
        rows[i, 2] += z


@parallel()
def wrap(chunk: int, x: NDArray[Any], periods: NDArray[Any]) -> None:
    """Move points (n, 3) in place by whole periods (3,), 0 along open axes, into the box about the origin."""
    n, half = x.shape[0], x.dtype.type(0.5)
    for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        for a in range(3):
            if periods[a] > 0:
                x[i, a] -= periods[a] * np.floor(x[i, a] / periods[a] + half)


@parallel()
def _mark_inside(chunk: int, x: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray) -> None:
    n = x.shape[0]
    for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        inside = True
        for a in range(3):
            inside &= low[a] <= x[i, a] <= high[a]
        out[i] = inside


def inside(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Mask (n,) of the points (n, 3) in the box from ``low`` to ``high`` (3,), including its faces.

    The box is float64, in the unit of ``x``. numpy would take ten times as long with such short rows.
    """
    out = np.empty(len(x), np.bool_)
    _mark_inside(x, low, high, out)
    return out


@parallel("len(lowest)")
def _chunk_bounds(piece: int, x: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> None:
    """Least and largest of every third number of a piece of ``x``; NaN is never taken."""
    n, chunks = x.shape[0] // 3, len(lowest)
    a = b = c = np.inf
    d = e = f = -np.inf
    for i in range(piece * n // chunks, (piece + 1) * n // chunks):
        p, q, r = np.float64(x[3 * i]), np.float64(x[3 * i + 1]), np.float64(x[3 * i + 2])
        a, b, c = p if p < a else a, q if q < b else b, r if r < c else c
        d, e, f = p if p > d else d, q if q > e else e, r if r > f else f
    lowest[piece, 0], lowest[piece, 1], lowest[piece, 2] = a, b, c
    highest[piece, 0], highest[piece, 1], highest[piece, 2] = d, e, f


def bounds(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis-aligned box of points: (lo (3,), hi (3,)) in float64, the unit of ``x``.

    ``x`` has shape (n, 3). No points give (+inf, -inf), the neutral element: boxes of several populations
    are merged by ``np.minimum(lo_a, lo_b), np.maximum(hi_a, hi_b)``. NaN coordinates are skipped.
    """
    lowest, highest = np.empty((2, min(CHUNKS, 1 + len(x) // _ROWS_PER_CHUNK), 3))
    _chunk_bounds(x.reshape(-1), lowest, highest)
    return lowest.min(axis=0), highest.max(axis=0)


@parallel(fastmath=FAST)
def _chunk_invariants(c: int, x: np.ndarray, alpha: np.ndarray, out: np.ndarray) -> None:
    """Sums of alpha, x cross alpha and x cross (x cross alpha) of every chunk into out (CHUNKS, 9)."""
    n = x.shape[0]
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


@parallel("len(out)", fastmath=FAST)
def _chunk_flow(c: int, x: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, out: np.ndarray) -> None:
    """Twelve sums over every chunk into out (:, 12).

    |alpha|, the squares of alpha's three components, alpha . alpha of the next row, sigma, the components of
    x - x_0, and their squares.
    """
    n, chunks = sigma.size, len(out)
    a = bx = by = bz = d = e = 0.0
    x0, y0, z0 = np.float64(x[0, 0]), np.float64(x[1, 0]), np.float64(x[2, 0])
    p = q = r = pp = qq = rr = 0.0
    for i in range(c * n // chunks, (c + 1) * n // chunks):
        after = min(i + 1, n - 1)
        ax, ay, az = np.float64(alpha[0, i]), np.float64(alpha[1, i]), np.float64(alpha[2, i])
        a += np.sqrt(ax * ax + ay * ay + az * az)
        bx, by, bz = bx + ax * ax, by + ay * ay, bz + az * az
        d += (
            ax * np.float64(alpha[0, after])
            + ay * np.float64(alpha[1, after])
            + az * np.float64(alpha[2, after])
        )
        e += np.float64(sigma[i])
        dx, dy, dz = np.float64(x[0, i]) - x0, np.float64(x[1, i]) - y0, np.float64(x[2, i]) - z0
        p, q, r = p + dx, q + dy, r + dz
        pp, qq, rr = pp + dx * dx, qq + dy * dy, rr + dz * dz
    for k, value in enumerate((a, bx, by, bz, d, e, p, q, r, pp, qq, rr)):
        out[c, k] = value


def flow_sums(x: np.ndarray, alpha: np.ndarray, sigma: np.ndarray) -> tuple[float, ...]:
    """Seven numbers that characterise the flow of n > 0 vortons.

    From x (3, n) m, alpha (3, n) m^3/s and sigma (n,) m: the sums of |alpha| [m^3/s], of the squares of
    alpha's x, y and z components and of alpha . alpha of successive vortons [m^6/s^2], and of sigma [m]; and
    the largest standard deviation of a coordinate [m].
    """
    parts = np.empty((min(CHUNKS, 1 + len(sigma) // _ROWS_PER_CHUNK), 12))
    _chunk_flow(x, alpha, sigma, parts)
    sums = parts.cumsum(axis=0)[-1].tolist()
    (strength, *squares, beside, width), moments = sums[:6], sums[6:]
    n, last = len(sigma), alpha[:, -1].tolist()  # the loop takes the last one as its own neighbour
    beside -= sum(value * value for value in last)
    spread = max(
        second / n - (first / n) ** 2 for first, second in zip(moments[:3], moments[3:], strict=True)
    )
    return strength, *squares, beside, width, math.sqrt(max(spread, 0.0))


@parallel(fastmath=FAST)
def _chunk_max_square(c: int, rows: np.ndarray, out: np.ndarray) -> None:
    """Largest sum of squares of a row in every chunk into out (CHUNKS,); a NaN stays."""
    n, m = rows.shape
    largest = 0.0
    for i in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        square = 0.0
        for j in range(m):
            value = np.float64(rows[i, j])
            square += value * value
        # "not <=" and the second test make the first NaN stay.
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


def equal_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Groups of rows that are equal in all columns (n,): first row of each group (g,), group of every row.

    Groups are sorted by their values, the first column before the next, as in ``np.unique`` with ``axis=0``,
    which takes 7 to 20 times as long.
    """
    order = np.lexsort(columns[::-1])
    begins = np.ones(len(order), bool)
    begins[1:] = np.any([along[1:] != along[:-1] for along in (column[order] for column in columns)], axis=0)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[begins], group
