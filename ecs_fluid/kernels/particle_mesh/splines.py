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
from ecs_fluid.kernels.compiled.vectors import INLINE, wide_vectors

Array = NDArray[Any]

ORDER = 5
"""Of the splines. Order 6 has half the error of the gradient at 1.7 times the points, and three numbers at
six points fill no vector of 16."""

ROW = 16
"""Numbers that are read at once: three at each of the points of an axis, and one more."""

_SLAB = 4
"""Planes of points that one piece of a scatter fills."""


@njit(**INLINE)
def shares(f: Any) -> Any:
    """The shares of five points, and how they change in a cell, f = 0 ... 1 after the first has begun to
    lose: de Boor's recursion from order to order, unrolled."""
    kind = type(f)
    one, two, three, four = kind(1.0), kind(2.0), kind(3.0), kind(4.0)
    left, by = one - f, kind(0.5)
    a, b, c = by * left * left, by * ((f + one) * left + (two - f) * f), by * f * f
    by = kind(1.0 / 3.0)
    d = by * f * c
    c = by * ((f + one) * b + (three - f) * c)
    b = by * ((f + two) * a + (two - f) * b)
    a = by * left * a
    slopes = -a, a - b, b - c, c - d, d
    by = kind(0.25)
    e = by * f * d
    d = by * ((f + one) * c + (four - f) * d)
    c = by * ((f + two) * b + (three - f) * c)
    b = by * ((f + three) * a + (two - f) * b)
    return (by * left * a, b, c, d, e), slopes


@njit(**INLINE)
def axis_weights(place: float, weights: Any) -> int:
    """First of the points at a place, in cells from the point 0; fills their weights."""
    y = place + 0.5 * ORDER
    last = int(np.floor(y))
    weights[0], weights[1], weights[2], weights[3], weights[4] = shares(y - last)[0]
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
    wx, wy, wz = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    line, flat = np.empty(3 * ORDER, out.dtype), out.reshape(out.size)
    low = max(first - ORDER // 2 - 1, 0) // edge
    high = min((end + ORDER // 2) // edge + 1, cells[0])
    for p in range(start[low * plane], start[high * plane]):
        i = axis_weights((rows[0, p] - origin[0]) * inverse, wx)
        if i >= end or i + ORDER <= first:
            continue
        j = axis_weights((rows[1, p] - origin[1]) * inverse, wy)
        k = axis_weights((rows[2, p] - origin[2]) * inverse, wz)
        for e in range(ORDER):
            for c in range(3):
                line[3 * e + c] = kind(wz[e]) * rows[3 + c, p]
        for s in range(max(first - i, 0), min(end - i, ORDER)):
            for t in range(ORDER):
                share = kind(wx[s] * wy[t])
                at = (((i + s) * out.shape[1] + j + t) * out.shape[2] + k) * 3
                for e in range(3 * ORDER):
                    flat[at + e] += share * line[e]


@njit(fastmath=FAST, error_model="numpy")
def weigh(
    points: Any, count: int, origin: Any, inverse: float, mesh_points: Any, weights: Any, corner: Any
) -> None:
    """Weights and slopes of ``count`` places at once, ``points`` (3, ...) m, from ``origin`` on.

    Fills ``weights`` (6 ORDER, ...), three axes of weights, then of slopes per m, and ``corner``, the numbers
    of their first points in a field (px, py, pz).
    """
    wide_vectors()
    kind = weights.dtype.type
    corner[:count] = 0
    for axis in range(3):
        w, size = weights[ORDER * axis : ORDER * (axis + 1)], mesh_points[axis]
        slopes = weights[ORDER * (3 + axis) : ORDER * (4 + axis)]
        per = kind(inverse)
        for t in range(count):
            y = (points[axis, t] - origin[axis]) * inverse + 0.5 * ORDER
            last = int(y)
            found, steep = shares(kind(y - last))
            w[0, t], w[1, t], w[2, t], w[3, t], w[4, t] = found
            slopes[0, t], slopes[1, t], slopes[2, t] = per * steep[0], per * steep[1], per * steep[2]
            slopes[3, t], slopes[4, t] = per * steep[3], per * steep[4]
            corner[t] = corner[t] * size + (last - (ORDER - 1))


@njit(**INLINE)
def read(
    corner: int, t: int, weights: Any, points: Any, flat: Any, gradient: bool, lines: Any, out: Any
) -> None:
    """Fill out[:3] with the field, and with ``gradient`` out[3 + 3 i + j] with du_i/dx_j, at one place.

    ``corner`` and the t-th ``weights`` are those of `weigh`, ``points`` the numbers (px, py, pz), ``flat``
    the field (px, py, pz, 3) as one row, with a number more at its end, and ``lines`` (3 ROW,) is room.
    """
    kind = flat.dtype.type
    for part in range(0, ROW, lanes_of(flat)):
        a = b = c = spread(kind(0.0))
        for s in range(ORDER):
            for r in range(ORDER):
                row = load(flat, (corner + (s * points[1] + r) * points[2]) * 3 + part)
                x, y = weights[s, t], weights[ORDER + r, t]
                a += row * spread(x * y)
                if gradient:
                    b += row * spread(weights[3 * ORDER + s, t] * y)
                    c += row * spread(x * weights[4 * ORDER + r, t])
        store(lines, part, a)
        store(lines, ROW + part, b)
        store(lines, 2 * ROW + part, c)
    for e in range(3):
        u = ux = uy = uz = kind(0.0)
        for q in range(ORDER):
            w, slope = weights[2 * ORDER + q, t], weights[5 * ORDER + q, t]
            u += w * lines[3 * q + e]
            if gradient:
                uz += slope * lines[3 * q + e]
                ux += w * lines[ROW + 3 * q + e]
                uy += w * lines[2 * ROW + 3 * q + e]
        out[e] = u
        if gradient:
            out[3 + 3 * e], out[4 + 3 * e], out[5 + 3 * e] = ux, uy, uz
