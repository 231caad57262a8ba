"""A grid twice as fine, to read a cubic spline linearly: eight points for each position in place of 64.

Where the spline s has the second derivative s'', linear interpolation between points H apart is too large by
s'' H^2 / 12 on average over a cell. So the finer points, H = h / 2 apart, hold s - s'' h^2 / 48 along each
axis. In the spline's coefficients c_i that is (7 c_i-1 + 34 c_i + 7 c_i+1) / 48 at a point of the grid and
(c_i-1 + 47 c_i + 47 c_i+1 + c_i+2) / 96 between two. The remaining RMS error is s'' H^2 / (12 sqrt 5); with
values of the spline itself it would be s'' H^2 / sqrt 120. Reading is of second order; constant and linear
fields are exact.

Beyond the ends of an axis a coefficient is extrapolated as in ``cubic``, c_-1 = 3 c_0 - 3 c_1 + c_2. An axis
of one or two cells, which is read linearly anyway, is left as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, load_four, spread, spread_four, store, store_four
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, wide_vectors
from ecs_fluid.kernels.grids.cubic import TAPS
from ecs_fluid.kernels.grids.partition import view_as

WEIGHTS = np.array([7.0 / 48.0, 34.0 / 48.0, 1.0 / 96.0, 47.0 / 96.0])
"""Shares of the outer and inner coefficients: two numbers for a point of the grid, two between points."""


@njit(**INLINE)
def _extrapolate(a: Any, b: Any, c: Any, out: Any) -> None:
    """Extrapolate a row beyond the end from the last three."""
    three = type(a[0])(3)
    for e in range(out.size):
        out[e] = three * (a[e] - b[e]) + c[e]


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _finer_line(given: Any, points: Any, shares: Any, out: Any) -> None:
    """Finer points in a row of that many, of three numbers each, in ``out``; ``given`` has one more at both
    ends, and a number behind."""
    wide_vectors()
    p, q = spread_four(shares[0]), spread_four(shares[1])
    r, s = spread_four(shares[2]), spread_four(shares[3])
    a, b, c = load_four(given, 0), load_four(given, 3), load_four(given, 6)
    for k in range(points - 1):
        at = np.uintp(3 * k)
        d = load_four(given, at + np.uintp(9))
        # The fourth number belongs to the next point, which is written afterwards.
        store_four(out, np.uintp(2) * at, p * (a + c) + q * b)
        store_four(out, np.uintp(2) * at + np.uintp(3), r * (a + d) + s * (b + c))
        a, b, c = b, c, d
    for e in range(3 * points, 3 * points + 3):
        out[e + 3 * points - 6] = shares[0] * (given[e - 3] + given[e + 3]) + shares[1] * given[e]


@njit(**INLINE)
def _finer_row(
    given: Any, begin: Any, step: Any, between: Any, shares: Any, out: Any, to: Any, width: Any
) -> None:
    """A finer row of ``width`` numbers, from ``to`` on, of the three or, ``between`` two, four rows of a flat
    array from ``begin`` on, a ``step`` behind one another."""
    p, q, r, s = spread(shares[0]), spread(shares[1]), spread(shares[2]), spread(shares[3])
    whole = width if width >= lanes_of(out) else 0
    for e in range(0, whole, lanes_of(out)):
        k = min(e, width - lanes_of(out))  # the last vector may write again what the one before wrote
        at: Any = np.uintp(begin + k)
        a, b, c = load(given, at), load(given, at + np.uintp(step)), load(given, at + np.uintp(2 * step))
        if between:
            found = r * (a + load(given, at + np.uintp(3 * step))) + s * (b + c)
        else:
            found = p * (a + c) + q * b
        store(out, np.uintp(to + k), found)
    for e in range(whole, width):
        at = begin + e
        if between:
            outer, inner = given[at] + given[at + 3 * step], given[at + step] + given[at + 2 * step]
            out[to + e] = shares[2] * outer + shares[3] * inner
        else:
            out[to + e] = shares[0] * (given[at] + given[at + 2 * step]) + shares[1] * given[at + step]


@parallel("out.shape[0]", fastmath=FAST, error_model="numpy")
def _finer_rows(i: int, given: np.ndarray, wanted: np.ndarray, shares: np.ndarray, out: np.ndarray) -> None:
    """Finer points along the last axis of ``given`` (px, py, 3 pz), where rows are ``wanted`` (px, py).

    ``out`` has a plane more at both ends, unless the first axis stays as it is.
    """
    px, size = given.shape[0], given.shape[2]
    plane = i - (out.shape[0] - px) // 2
    at, back = min(max(plane, 0), px - 1), (plane < 0) - (plane == px)
    padded = np.zeros(size + 7, given.dtype)
    row = padded[3 : 3 + size]
    for j in range(given.shape[1]):
        if not wanted[at, j]:
            continue
        if back:
            _extrapolate(given[at, j], given[at + back, j], given[at + 2 * back, j], row)
        else:
            row[:] = given[at, j]
        if size < 3 * TAPS:
            out[i, j] = row
        else:
            _extrapolate(row[0:3], row[3:6], row[6:9], padded[0:3])
            _extrapolate(
                row[size - 3 : size], row[size - 6 : size - 3], row[size - 9 : size - 6],
                padded[size + 3 : size + 6],
            )  # fmt: skip
            _finer_line(padded, size // 3, shares, out[i, j])


@parallel("out.shape[0]", fastmath=FAST, error_model="numpy")
def _finer_plane(x: int, given: np.ndarray, wanted: np.ndarray, shares: np.ndarray, out: np.ndarray) -> None:
    """The finer plane ``x``, of finer rows, from what ``_finer_rows`` gave, beside what is ``wanted``."""
    (px, py), width = wanted.shape, given.shape[2]
    flat, to = given.reshape(given.size), out[x].reshape(out[x].size)
    # The planes, then the rows, of the grid between which a finer one lies: the same one where it lies on it.
    twice, more = (2, 1) if px >= TAPS else (1, 0), 1 if py >= TAPS else 0
    first, between = x // twice[0], x % twice[0]
    known = np.empty(py, np.bool_)
    plane = np.zeros((py + 2 * more) * width, given.dtype)
    for j in range(py):
        known[j] = wanted[first, j] or wanted[first + between, j]
        if known[j]:
            begin, row = (first * py + j) * width, (j + more) * width
            if twice[1]:
                _finer_row(flat, begin, py * width, between, shares, plane, row, width)
            else:
                plane[row : row + width] = flat[begin : begin + width]
    if not more:
        for y in range(py):
            to[y * width : (y + 1) * width] = plane[y * width : (y + 1) * width]
        return
    a, b, c, d = 0, width, 2 * width, 3 * width
    _extrapolate(plane[b:c], plane[c:d], plane[d : d + width], plane[a:b])
    a, b, c, d = plane.size, plane.size - b, plane.size - c, plane.size - d
    _extrapolate(plane[c:b], plane[d:c], plane[d - width : d], plane[b:a])
    for y in range(2 * py - 1):
        if known[y // 2] or known[(y + 1) // 2]:
            _finer_row(plane, y // 2 * width, width, y % 2, shares, to, y * width, width)


def refined(
    field: np.ndarray, spacing: np.ndarray, read: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a grid twice as fine for ``interpolation.interpolate``, and its spacing (3,) m.

    ``field`` (px, py, pz, 3) holds ``cubic.coefficients`` at points ``spacing`` (3,) m apart; the finer grid
    has the same origin, and 2 px - 1 points along an axis of px >= 4. ``read`` (px, py, pz) tells which of
    the points are known (``read_points``): in the cells that read them the finer ones are found, and others
    may not be set.
    """
    px, py, pz = field.shape[:3]
    finer = [2 * points - 1 if points >= TAPS else points for points in (px, py, pz)]
    wanted = np.ones((px, py), bool) if read is None else read.any(axis=2)
    shares = WEIGHTS.astype(field.dtype)
    rows = np.empty((px + 2 if px >= TAPS else px, py, 3 * finer[2]), field.dtype)
    _finer_rows(view_as(field, px, py, 3 * pz), wanted, shares, rows)
    out = np.empty((*finer, 3), field.dtype)
    _finer_plane(rows, wanted, shares, view_as(out, finer[0], finer[1], 3 * finer[2]))
    return out, np.where(np.array(finer) > (px, py, pz), 0.5 * np.asarray(spacing), spacing)
