"""Between vortons and the points of a mesh by B-splines of order five: five points an axis.

The spline of order p is the p-fold convolution of a box one cell wide; on an axis with points at the whole
numbers a position X shares with the points X - p/2 < i < X + p/2. Scatter and reading use the same weights,
and the gradient of what is read is that of the splines. Source: de Boor, A Practical Guide to Splines, 1978,
chapter IX; Essmann et al., J. Chem. Phys. 103 (1995), who smooth Ewald sums so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vectors import INLINE

Array = NDArray[Any]

ORDER = 5
"""Of the splines. Order 6 has half the error of the gradient at 1.7 times the points, and three numbers at
six points fill no vector of 16."""

ROW = 16
"""Numbers that are read at once: three at each of the points of an axis, and one more."""

_SLAB = 4
"""Planes of points that one piece of a scatter fills."""


@njit(**INLINE)
def axis_weights(place: float, weights: Any, slopes: Any) -> int:
    """First of the points at a place, in cells from the point 0; fills weights and their slopes per cell."""
    y = place + 0.5 * ORDER
    last = int(np.floor(y))
    f = y - last
    weights[0], weights[1] = 1.0 - f, f
    for k in range(3, ORDER + 1):
        if k == ORDER:
            slopes[0], slopes[ORDER - 1] = -weights[0], weights[ORDER - 2]
            for j in range(1, ORDER - 1):
                slopes[j] = weights[j - 1] - weights[j]
        by = 1.0 / (k - 1)
        weights[k - 1] = by * f * weights[k - 2]
        for j in range(1, k - 1):
            at = k - 1 - j
            weights[at] = by * ((f + j) * weights[at - 1] + (k - j - f) * weights[at])
        weights[0] *= by * (1.0 - f)
    return last - (ORDER - 1)


@parallel(f"(out.shape[0] + {_SLAB} - 1) // {_SLAB}", fastmath=FAST, error_model="numpy")
def scatter(
    slab: int, rows: Array, start: Array, cells: Array, edge: int, origin: Array, inverse: float, out: Array
) -> None:
    """Share strengths, rows 3, 4, 5 of ``rows`` (k, n), from the places in rows 0, 1, 2 among the points.

    Fills ``out`` (px, py, pz, 3) m^3/s, points from ``origin`` m on with ``inverse`` in a metre. Rows are
    sorted by ``cells`` (3,), of which each has ``edge`` points along x; ``start`` as `partition` gives it.
    Every piece fills planes of its own, with all rows that reach them in their order.
    """
    first, end = slab * _SLAB, min((slab + 1) * _SLAB, out.shape[0])
    out[first:end] = 0.0
    kind, plane = out.dtype.type, cells[1] * cells[2]
    wx, wy, wz, slopes = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    line, flat = np.empty(3 * ORDER, out.dtype), out.reshape(out.size)
    low = max(first - ORDER // 2 - 1, 0) // edge
    high = min((end + ORDER // 2) // edge + 1, cells[0])
    for p in range(start[low * plane], start[high * plane]):
        i = axis_weights((rows[0, p] - origin[0]) * inverse, wx, slopes)
        if i >= end or i + ORDER <= first:
            continue
        j = axis_weights((rows[1, p] - origin[1]) * inverse, wy, slopes)
        k = axis_weights((rows[2, p] - origin[2]) * inverse, wz, slopes)
        for e in range(ORDER):
            for c in range(3):
                line[3 * e + c] = kind(wz[e]) * rows[3 + c, p]
        for s in range(max(first - i, 0), min(end - i, ORDER)):
            for t in range(ORDER):
                share = kind(wx[s] * wy[t])
                at = (((i + s) * out.shape[1] + j + t) * out.shape[2] + k) * 3
                for e in range(3 * ORDER):
                    flat[at + e] += share * line[e]


@njit(**INLINE)
def read(
    x: float, y: float, z: float, inverse: float, points: Any, flat: Any, gradient: bool, scratch: Any,
    lines: Any, out: Any,
) -> None:  # fmt: skip
    """Fill out[:3] with the field, and with ``gradient`` out[3 + 3 i + j] with du_i/dx_j, at one place.

    The place is in metres from the point 0 of the mesh, ``points`` the numbers (px, py, pz), ``flat`` the
    field (px, py, pz, 3) as one row, with a number more at its end; ``scratch`` (6, ORDER) and ``lines``
    (3 ROW,) are room.
    """
    i = axis_weights(x * inverse, scratch[0], scratch[3])
    j = axis_weights(y * inverse, scratch[1], scratch[4])
    k = axis_weights(z * inverse, scratch[2], scratch[5])
    kind = flat.dtype.type
    for part in range(0, ROW, lanes_of(flat)):
        a = b = c = spread(kind(0.0))
        for s in range(ORDER):
            for t in range(ORDER):
                row = load(flat, (((i + s) * points[1] + j + t) * points[2] + k) * 3 + part)
                a += row * spread(kind(scratch[0, s] * scratch[1, t]))
                if gradient:
                    b += row * spread(kind(scratch[3, s] * scratch[1, t]))
                    c += row * spread(kind(scratch[0, s] * scratch[4, t]))
        store(lines, part, a)
        store(lines, ROW + part, b)
        store(lines, 2 * ROW + part, c)
    by = kind(inverse)
    for e in range(3):
        u = ux = uy = uz = kind(0.0)
        for q in range(ORDER):
            w, slope = kind(scratch[2, q]), kind(scratch[5, q])
            u += w * lines[3 * q + e]
            if gradient:
                uz += slope * lines[3 * q + e]
                ux += w * lines[ROW + 3 * q + e]
                uy += w * lines[2 * ROW + 3 * q + e]
        out[e] = u
        if gradient:
            out[3 + 3 * e], out[4 + 3 * e], out[5 + 3 * e] = by * ux, by * uy, by * uz
