"""Transfer between vortons and the points of a mesh by B-splines of order five: five points per axis.

The spline of order p is the p-fold convolution of a box one cell wide. On an axis with points at the whole
numbers, a position X has weights at the points X - p/2 < i < X + p/2. Scatter and reading use the same
weights, and gradients are read with the derivatives of the splines. Source: de Boor, A Practical Guide to
Splines, 1978, chapter IX; Essmann et al., J. Chem. Phys. 103 (1995), who use them for Ewald sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.pairwise import BLOCK
from ecs_fluid.kernels.compiled import FAST, Array
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, LANES, wide_vectors

ORDER = 5
"""Order of the splines. Order 6 has half the error of the gradient, but 1.7 times the points, and three
numbers at six points do not fit a vector of 16."""

ROW = 16
"""Numbers read at once: three at each of the points along an axis, and one more."""

_BLOCK_WIDTH = 4
"""Width, in cells along x and y, of the blocks of a scatter: with their reach they are narrower than two
blocks."""

_PIECES = " * ".join(f"((cells[{a}] + {2 * _BLOCK_WIDTH - 1}) // {2 * _BLOCK_WIDTH})" for a in range(2))


@njit(**INLINE)
def spline_weights(f: Any) -> Any:
    """Weights of five points, and their derivatives by the fraction f, 0 to 1, of a cell.

    By de Boor's recursion from order to order, unrolled.
    """
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


@njit(fastmath=FAST, error_model="numpy")
def fill_weights(
    points: Any, count: int, origin: Any, inverse: float, mesh_points: Any, weights: Any, corner: Any
) -> None:
    """Weights and slopes of ``count`` places at once, ``points`` (3, ...) m, from ``origin`` on.

    Fills ``weights`` (6 ORDER, ...), three axes of weights, then of slopes per m, and ``corner``, the numbers
    of their first points in a field (px, py, pz).
    """
    wide_vectors()
    kind = weights.dtype.type
    whole = (count + LANES - 1) // LANES * LANES
    corner[:whole] = 0
    for axis in range(3):
        w, size = weights[ORDER * axis : ORDER * (axis + 1)], mesh_points[axis]
        slopes = weights[ORDER * (3 + axis) : ORDER * (4 + axis)]
        per = kind(inverse)
        for t in range(whole):
            y = (points[axis, t] - origin[axis]) * inverse + 0.5 * ORDER
            last = int(y)
            found, steep = spline_weights(kind(y - last))
            w[0, t], w[1, t], w[2, t], w[3, t], w[4, t] = found
            slopes[0, t], slopes[1, t], slopes[2, t] = per * steep[0], per * steep[1], per * steep[2]
            slopes[3, t], slopes[4, t] = per * steep[3], per * steep[4]
            corner[t] = corner[t] * size + (last - (ORDER - 1))


@parallel("out.shape[0]")
def _clear(plane: int, out: Array) -> None:
    out[plane] = 0.0


@parallel(_PIECES, fastmath=FAST, error_model="numpy")
def _scatter_piece(
    piece: int, rows: Array, start: Array, cells: Array, odd: tuple[int, int], origin: Array, inverse: float,
    points: Any, flat: Array,
) -> None:  # fmt: skip
    """Scatter one piece: every other block of _BLOCK_WIDTH^2 columns of cells on both axes, ``odd`` or
    even."""
    many = (cells[1] + 2 * _BLOCK_WIDTH - 1) // (2 * _BLOCK_WIDTH)
    low_x, low_y = (2 * (piece // many) + odd[0]) * _BLOCK_WIDTH, (2 * (piece % many) + odd[1]) * _BLOCK_WIDTH
    places, line = np.empty((3, BLOCK), rows.dtype), np.zeros(ROW, rows.dtype)
    weights, corner = np.empty((6 * ORDER, BLOCK), rows.dtype), np.empty(BLOCK, np.int64)
    for i in range(low_x, min(low_x + _BLOCK_WIDTH, cells[0])):
        for j in range(low_y, min(low_y + _BLOCK_WIDTH, cells[1])):
            column = (i * cells[1] + j) * cells[2]
            for low in range(start[column], start[column + cells[2]], BLOCK):
                count = min(BLOCK, start[column + cells[2]] - low)
                for a in range(3):
                    for t in range((count + LANES - 1) // LANES * LANES):
                        places[a, t] = rows[a, low + min(t, count - 1)]
                fill_weights(places, count, origin, inverse, points, weights, corner)
                for t in range(count):
                    for e in range(ORDER):
                        for c in range(3):
                            line[3 * e + c] = weights[2 * ORDER + e, t] * rows[3 + c, low + t]
                    _add_line(corner[t], t, weights, points, line, flat)


@njit(**INLINE)
def _add_line(corner: int, t: int, weights: Any, points: Any, line: Any, flat: Any) -> None:
    """Add a ``line`` of values along z, times the weights along x and y, to 25 lines of the field."""
    for part in range(0, ROW, lanes_of(flat)):
        along = load(line, part)
        for s in range(ORDER):
            across = along * spread(weights[s, t])
            for r in range(ORDER):
                at = (corner + (s * points[1] + r) * points[2]) * 3 + part
                store(flat, at, load(flat, at) + across * spread(weights[ORDER + r, t]))


def scatter(rows: Array, start: Array, cells: Array, origin: Array, inverse: float, out: Array) -> None:
    """Share strengths (rows 3, 4, 5 of ``rows`` (8, n)) at the places in rows 0, 1, 2 among the points.

    Fills ``out`` (px, py, pz, 3) m^3/s, on points from ``origin`` m on, ``inverse`` of them per metre. Rows
    are sorted by ``cells`` (3,) of 2 x 2 points in x and y; ``start`` is that of `partition`. Every other
    block of such cells is done at the same time, so that no two threads write to the same point.
    """
    _clear(out)
    for odd in ((0, 0), (0, 1), (1, 0), (1, 1)):
        _scatter_piece(rows, start, cells, odd, origin, inverse, out.shape[:3], out.reshape(out.size))


@njit(**INLINE)
def read(
    corner: int, t: int, weights: Any, points: Any, flat: Any, gradient: bool, lines: Any, out: Any
) -> None:
    """Fill out[:3] with the field, and with ``gradient`` out[3 + 3 i + j] with du_i/dx_j, at one place.

    ``corner`` and the t-th ``weights`` are those of `fill_weights`; ``points`` are the numbers (px, py, pz);
    ``flat`` is the field (px, py, pz, 3) as one row, with one more number at its end; ``lines`` (3 ROW,) is
    scratch.
    """
    kind = flat.dtype.type
    plane, line = 3 * points[1] * points[2], 3 * points[2]
    none = spread(kind(0.0))
    y0, y1, y2 = spread(weights[ORDER, t]), spread(weights[ORDER + 1, t]), spread(weights[ORDER + 2, t])
    y3, y4 = spread(weights[ORDER + 3, t]), spread(weights[ORDER + 4, t])
    if gradient:
        g = 4 * ORDER
        v0, v1, v2 = spread(weights[g, t]), spread(weights[g + 1, t]), spread(weights[g + 2, t])
        v3, v4 = spread(weights[g + 3, t]), spread(weights[g + 4, t])
    for part in range(0, ROW, lanes_of(flat)):
        a = b = c = none
        at = 3 * corner + part
        for s in range(ORDER):
            r0, r1, r2 = load(flat, at), load(flat, at + line), load(flat, at + 2 * line)
            r3, r4 = load(flat, at + 3 * line), load(flat, at + 4 * line)
            at += plane
            x = spread(weights[s, t])
            row = y0 * r0 + y1 * r1 + y2 * r2 + y3 * r3 + y4 * r4
            a += x * row
            if gradient:
                b += spread(weights[3 * ORDER + s, t]) * row
                c += x * (v0 * r0 + v1 * r1 + v2 * r2 + v3 * r3 + v4 * r4)
        store(lines, part, a)
        if gradient:
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
