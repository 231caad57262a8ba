"""A velocity field and its gradient at particles, from the coefficients of the field's cubic spline.

The gradient is that of the spline itself: the weights are differentiated along one axis at a time,
dw/dx = w'(f) / h. So it needs no points of the grid but the 64 that the velocity needs. Particles come in the
order of a cell sort, so that neighbours find these points in the cache. The velocity is of fourth order, its
gradient of third.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE
from ecs_fluid.kernels.grids.cubic import SPLINE, TAPS, mesh_of, places_of, weights_of
from ecs_fluid.kernels.grids.interpolation import BLOCK
from ecs_fluid.kernels.grids.partition import view_as

SLOPES = np.roll(SPLINE, -1, axis=1) * [1.0, 2.0, 3.0, 0.0]
"""Derivatives of the weights ``SPLINE`` with respect to the fraction."""


@njit(fastmath=FAST, forceinline=True)
def _blend(flat: Any, at: Any, steps: Any, weight: Any, slope: Any, q: Any, number: int, lines: Any) -> None:
    """Weighted sums over four planes of four rows each, for ``number`` values from ``at`` on, by vectors.

    Written to the three rows of ``lines``: the sum, and its derivatives with respect to x and to y.
    """
    y0, y1, y2, y3 = spread(weight[4, q]), spread(weight[5, q]), spread(weight[6, q]), spread(weight[7, q])
    d0, d1, d2, d3 = spread(slope[4, q]), spread(slope[5, q]), spread(slope[6, q]), spread(slope[7, q])
    for c in range(0, number, lanes_of(flat)):
        total = spread(weight.dtype.type(0))
        by_x, by_y = total, total
        for s in range(TAPS):
            a = at + steps[0, s] + c
            e, f = load(flat, a), load(flat, a + steps[1, 1])
            g, h = load(flat, a + steps[1, 2]), load(flat, a + steps[1, 3])
            row = y0 * e + y1 * f + (y2 * g + y3 * h)
            x = spread(weight[s, q])
            total += x * row
            by_x += spread(slope[s, q]) * row
            by_y += x * (d0 * e + d1 * f + (d2 * g + d3 * h))
        store(lines[0], c, total)
        store(lines[1], c, by_x)
        store(lines[2], c, by_y)


@njit(**INLINE)
def _blend_singly(flat: Any, at: int, steps: Any, weight: Any, slope: Any, number: int, lines: Any) -> None:
    """The same as ``_blend``, one value after the other."""
    for c in range(number):
        lines[0, c] = lines[1, c] = lines[2, c] = 0.0
        for s in range(TAPS):
            for t in range(TAPS):
                value = flat[at + steps[0, s] + steps[1, t] + c]
                lines[0, c] += weight[s] * weight[4 + t] * value
                lines[1, c] += slope[s] * weight[4 + t] * value
                lines[2, c] += weight[s] * slope[4 + t] * value


@parallel(fastmath=FAST, error_model="numpy")
def _interpolate(
    chunk: int, x: np.ndarray, order: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    flat_axes: np.ndarray, field: np.ndarray, cubics: np.ndarray, slopes: np.ndarray, u: np.ndarray,
    du: np.ndarray,
) -> None:  # fmt: skip
    n, m = len(order), 3
    mesh, steps = mesh_of(origin, spacing, field)
    flat, taps = field.reshape(field.size), 2 if field.shape[2] < TAPS else TAPS
    corner = np.empty(BLOCK, np.int64)
    weight, slope = np.empty((3 * TAPS, BLOCK), field.dtype), np.empty((3 * TAPS, BLOCK), field.dtype)
    fraction, beside = np.empty((3, BLOCK), field.dtype), np.empty((3, BLOCK), field.dtype)
    width = (TAPS * m + lanes_of(flat) - 1) // lanes_of(flat) * lanes_of(flat)
    safe = flat.size - steps[0, TAPS - 1] - steps[1, TAPS - 1] - width if taps == TAPS else np.int64(-1)
    positions, lines = np.empty(3 * BLOCK, x.dtype), np.empty((3, width), field.dtype)
    blocks = (n + BLOCK - 1) // BLOCK
    for block in range(chunk * blocks // CHUNKS, (chunk + 1) * blocks // CHUNKS):
        begin = block * BLOCK
        count = min(BLOCK, n - begin)
        for k in range(BLOCK):
            row = order[begin + k] if k < count else order[begin]
            for a in range(3):
                positions[3 * k + a] = x[row, a]
        places_of(positions, mesh, corner, fraction, beside)
        for a in range(3):
            w, d = weight[TAPS * a : TAPS * (a + 1)], slope[TAPS * a : TAPS * (a + 1)]
            if field.shape[a] < TAPS:  # too few points for a cubic
                w[0], w[1], w[2], w[3] = 1.0 - fraction[a], fraction[a], 0.0, 0.0
                d[0], d[1], d[2], d[3] = -1.0, 1.0, 0.0, 0.0
            else:
                weights_of(fraction[a], beside[a], cubics, w[0], w[1], w[2], w[3])
                weights_of(fraction[a], beside[a], slopes, d[0], d[1], d[2], d[3])
            per = field.dtype.type(0.0 if flat_axes[a] else mesh[1, a])
            for s in range(TAPS):
                for k in range(BLOCK):
                    d[s, k] *= per
        for k in range(count):
            q: Any = np.uintp(k)  # not negative: no index is tested for it
            if corner[q] > safe:  # vectors would end beyond the field, or rows have too few points
                _blend_singly(flat, corner[q], steps, weight[:, q], slope[:, q], taps * m, lines)
            else:
                _blend(flat, corner[q], steps, weight, slope, q, width, lines)
            row = order[begin + k]
            for e in range(m):
                total, by_z = weight[8, q] * lines[0, e], slope[8, q] * lines[0, e]
                by_x, by_y = weight[8, q] * lines[1, e], weight[8, q] * lines[2, e]
                for s in range(1, taps):
                    total += weight[8 + s, q] * lines[0, s * m + e]
                    by_z += slope[8 + s, q] * lines[0, s * m + e]
                    by_x += weight[8 + s, q] * lines[1, s * m + e]
                    by_y += weight[8 + s, q] * lines[2, s * m + e]
                u[row, e] = total
                du[row, 3 * e], du[row, 3 * e + 1], du[row, 3 * e + 2] = by_x, by_y, by_z


def interpolate(
    x: np.ndarray, order: np.ndarray, origin: np.ndarray, spacing: np.ndarray, flat: np.ndarray,
    field: np.ndarray, u: np.ndarray, du: np.ndarray,
) -> None:  # fmt: skip
    """Fill rows ``order`` of u (n, 3) m/s and du (n, 3, 3) 1/s, du[i, j] = du_i / dx_j, at x (n, 3) m.

    ``field`` (px, py, pz, 3) m/s holds ``cubic.coefficients`` of the velocity at the grid's points; outside,
    a position gets the values of the nearest point of the box. Derivatives are 0 along an axis that is
    ``flat`` (3,), and differences of points along an axis of one or two cells. ``order`` (k,) int64 lists the
    rows that are wanted, best sorted by cell.
    """
    cubics, slopes = SPLINE.astype(field.dtype), SLOPES.astype(field.dtype)
    _interpolate(x, order, origin, spacing, flat, field, cubics, slopes, u, view_as(du, len(du), 9))
