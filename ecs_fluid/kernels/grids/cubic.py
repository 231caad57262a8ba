"""Transfer between particles and grid points by four points per axis; weights multiply over the axes.

Along an axis the points at -1, 0, 1, 2 from the lower end of a cell have weights that are cubics of the
fraction f:

* ``CONVOLUTION``, Keys' kernel with a = -1/2, which vortex methods call M4', of third order. A scatter keeps
  the moments 0, 1 and 2.
* ``SPLINE``, the cubic B-spline, with coefficients that ``coefficients`` finds such that the spline has the
  given values at the points: of fourth order.

Both reproduce quadratic fields exactly. In the outermost cells the missing point is extrapolated, f_-1 =
3 f_0 - 3 f_1 + f_2, which keeps that property. Source: Keys, IEEE Trans. Acoust. Speech Signal Process. 29
(1981); Monaghan, J. Comput. Phys. 60 (1985); Unser, IEEE Signal Process. Mag. 16 (1999).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, wide_vectors
from ecs_fluid.kernels.grids.interpolation import BLOCK, axis_weight, cell_and_fraction
from ecs_fluid.kernels.grids.partition import axis_cell, view_as

TAPS = 4
"""Number of points that a position reads along an axis."""

CONVOLUTION = np.array(
    [[0.0, -0.5, 1.0, -0.5], [1.0, 0.0, -2.5, 1.5], [0.0, 0.5, 2.0, -1.5], [0.0, 0.0, -0.5, 0.5]]
)
SPLINE = (
    np.array([[1.0, -3.0, 3.0, -1.0], [4.0, 0.0, -6.0, 3.0], [1.0, 3.0, 3.0, -3.0], [0.0, 0.0, 0.0, 1.0]])
    / 6.0
)
"""Weights of the four points, a row each: coefficients of 1, f, f^2 and f^3, with the fraction f."""


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def axis_weights(f: float, cell: int, cells: int, cubics: np.ndarray, weights: np.ndarray) -> int:
    """First of four points, and their weights; the share of a point off the grid goes to the three others."""
    a = cubics[0, 0] + f * (cubics[0, 1] + f * (cubics[0, 2] + f * cubics[0, 3]))
    b = cubics[1, 0] + f * (cubics[1, 1] + f * (cubics[1, 2] + f * cubics[1, 3]))
    c = cubics[2, 0] + f * (cubics[2, 1] + f * (cubics[2, 2] + f * cubics[2, 3]))
    d = cubics[3, 0] + f * (cubics[3, 1] + f * (cubics[3, 2] + f * cubics[3, 3]))
    first = cell - 1
    if cells < 3:  # too few points for a cubic
        first, a, b, c, d = cell, 1.0 - f, f, 0.0, 0.0
    elif cell == 0:
        first, a, b, c, d = 0, b + 3.0 * a, c - 3.0 * a, d + a, 0.0
    elif cell == cells - 1:
        first, a, b, c, d = cell - 2, 0.0, a + d, b - 3.0 * d, c + 3.0 * d
    weights[0], weights[1], weights[2], weights[3] = a, b, c, d
    return first


@njit(fastmath=FAST, forceinline=True)
def weights_at(
    x: float, origin: float, inverse: float, cells: int, cubics: np.ndarray, weights: np.ndarray
) -> int:
    """``axis_weights`` of a coordinate ``x`` [m] on an axis of that many ``cells``."""
    cell = axis_cell(x, origin, inverse, cells)
    return int(axis_weights(axis_weight(x, origin, inverse, cell), cell, cells, cubics, weights))


@njit(**INLINE)
def _axis(x: float, origin: float, inverse: float, cells: float) -> tuple[float, float, float]:
    """Along one axis: first of four points, fraction, and adjacent face: -1 lower, 1 upper, 0 none."""
    cell, fraction = cell_and_fraction(x, origin, inverse, cells)
    back = 1.0 if cells > 2.0 else 0.0  # the points of a short axis are the ends of the cell
    first = cell - back if cell > back else 0.0
    last = cells - 1.0 - 2.0 * back
    lower, upper = 1.0 if cell < 1.0 else 0.0, 1.0 if cell > cells - 2.0 else 0.0
    return first if first < last else last, fraction, upper - lower


@njit(**INLINE)
def mesh_of(origin: np.ndarray, spacing: np.ndarray, field: np.ndarray) -> tuple[Any, Any]:
    """The ``mesh`` that ``places_of`` needs for a ``field`` (px, py, pz, m), and offsets of planes and
    rows."""
    mesh, steps = np.empty((4, 3)), np.zeros((2, TAPS), np.int64)
    py, pz, m = field.shape[1], field.shape[2], field.shape[3]
    mesh[3, 0], mesh[3, 1], mesh[3, 2] = py * pz * m, pz * m, m
    for a in range(3):
        mesh[0, a], mesh[1, a], mesh[2, a] = origin[a], 1.0 / spacing[a], field.shape[a] - 1.0
    for a in range(2):
        # On a short axis only two points have a weight, and the others are not read.
        for s in range(2 if field.shape[a] < TAPS else TAPS):
            steps[a, s] = s * np.int64(mesh[3, a])
    return mesh, steps


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def places_of(x: Any, mesh: Any, corner: Any, fraction: Any, beside: Any) -> None:
    """For BLOCK flat rows x, the first of their 64 points in the flat field, and the results of `_axis`.

    The rows of ``mesh`` are origin, inverse spacing, cells, and strides in the field.
    """
    wide_vectors()
    kind = fraction.dtype.type
    fx, fy, fz, bx, by, bz = fraction[0], fraction[1], fraction[2], beside[0], beside[1], beside[2]
    for q in range(BLOCK):
        i, f, b = _axis(x[3 * q], mesh[0, 0], mesh[1, 0], mesh[2, 0])
        j, g, c = _axis(x[3 * q + 1], mesh[0, 1], mesh[1, 1], mesh[2, 1])
        k, h, d = _axis(x[3 * q + 2], mesh[0, 2], mesh[1, 2], mesh[2, 2])
        fx[q], fy[q], fz[q], bx[q], by[q], bz[q] = kind(f), kind(g), kind(h), kind(b), kind(c), kind(d)
        corner[q] = np.int64(i * mesh[3, 0] + j * mesh[3, 1] + k * mesh[3, 2])


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def weights_of(fraction: Any, beside: Any, cubics: Any, w0: Any, w1: Any, w2: Any, w3: Any) -> None:
    """Weights of four points along an axis of three cells or more."""
    wide_vectors()
    kind = fraction.dtype.type
    three = kind(3)
    a0, a1, a2, a3 = cubics[0, 0], cubics[0, 1], cubics[0, 2], cubics[0, 3]
    b0, b1, b2, b3 = cubics[1, 0], cubics[1, 1], cubics[1, 2], cubics[1, 3]
    c0, c1, c2, c3 = cubics[2, 0], cubics[2, 1], cubics[2, 2], cubics[2, 3]
    d0, d1, d2, d3 = cubics[3, 0], cubics[3, 1], cubics[3, 2], cubics[3, 3]
    for q in range(BLOCK):
        f = fraction[q]
        a, b = a0 + f * (a1 + f * (a2 + f * a3)), b0 + f * (b1 + f * (b2 + f * b3))
        c, d = c0 + f * (c1 + f * (c2 + f * c3)), d0 + f * (d1 + f * (d2 + f * d3))
        # In an outermost cell the other points take the share of the point off the grid.
        upper = beside[q] if beside[q] > kind(0) else kind(0)
        lower = upper - beside[q]
        w0[q] = a + lower * (b + three * a - a) - upper * a
        w1[q] = b + lower * (c - three * a - b) + upper * (a + d - b)
        w2[q] = c + lower * (d + a - c) + upper * (b - three * d - c)
        w3[q] = d - lower * d + upper * (c + three * d - d)


@njit(fastmath=FAST, forceinline=True)
def _blend(flat: Any, at: Any, steps: Any, weight: Any, q: Any, number: int, line: Any) -> None:
    """Sum over four planes of four rows each, for ``number`` values from ``at`` on, in vectors, to
    ``line``."""
    y0, y1, y2, y3 = spread(weight[4, q]), spread(weight[5, q]), spread(weight[6, q]), spread(weight[7, q])
    for c in range(0, number, lanes_of(flat)):
        total = spread(weight.dtype.type(0))
        for s in range(TAPS):
            a = at + steps[0, s] + c
            row = y0 * load(flat, a) + y1 * load(flat, a + steps[1, 1])
            row += y2 * load(flat, a + steps[1, 2]) + y3 * load(flat, a + steps[1, 3])
            total += spread(weight[s, q]) * row
        store(line, c, total)


@njit(**INLINE)
def _blend_singly(flat: Any, at: int, steps: Any, weight: Any, number: int, line: Any) -> None:
    """The same, one after the other."""
    for c in range(number):
        line[c] = 0.0
        for s in range(TAPS):
            for t in range(TAPS):
                line[c] += weight[s] * weight[4 + t] * flat[at + steps[0, s] + steps[1, t] + c]


@parallel(fastmath=FAST, error_model="numpy")
def _interpolate(
    chunk: int, x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, cubics: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """``field`` (nx+1, ny+1, nz+1, m) at flat ``x`` (3 n,) into ``out`` (n, m)."""
    n, m = out.shape
    mesh, steps = mesh_of(origin, spacing, field)
    flat, taps = field.reshape(field.size), 2 if field.shape[2] < TAPS else TAPS
    corner, weight = np.empty(BLOCK, np.int64), np.empty((3 * TAPS, BLOCK), field.dtype)
    fraction, beside = np.empty((3, BLOCK), field.dtype), np.empty((3, BLOCK), field.dtype)
    width = (TAPS * m + lanes_of(flat) - 1) // lanes_of(flat) * lanes_of(flat)
    safe = flat.size - steps[0, TAPS - 1] - steps[1, TAPS - 1] - width if taps == TAPS else np.int64(-1)
    padded, line = np.empty(3 * BLOCK, x.dtype), np.empty(width, field.dtype)
    blocks = (n + BLOCK - 1) // BLOCK
    for block in range(chunk * blocks // CHUNKS, (chunk + 1) * blocks // CHUNKS):
        begin = block * BLOCK
        count = min(BLOCK, n - begin)
        positions = x[3 * begin : 3 * (begin + count)]
        if count < BLOCK:
            # Every row is computed in a whole block, so that its bits do not depend on its position.
            for a in range(3 * BLOCK):
                padded[a] = positions[a] if a < positions.size else positions[0]
            positions = padded
        places_of(positions, mesh, corner, fraction, beside)
        for a in range(3):
            w = weight[TAPS * a : TAPS * (a + 1)]
            if field.shape[a] < TAPS:  # too few points for a cubic
                w[0], w[1], w[2], w[3] = 1.0 - fraction[a], fraction[a], 0.0, 0.0
            else:
                weights_of(fraction[a], beside[a], cubics, w[0], w[1], w[2], w[3])
        for k in range(count):
            q: Any = np.uintp(k)  # unsigned, so that indices need no test for negative ones
            if corner[q] > safe:  # vectors would end beyond the field, or rows have too few points
                _blend_singly(flat, corner[q], steps, weight[:, q], taps * m, line)
            else:
                _blend(flat, corner[q], steps, weight, q, width, line)
            for e in range(m):
                total = weight[8, q] * line[e]
                for s in range(1, taps):
                    total += weight[8 + s, q] * line[s * m + e]
                out[begin + k, e] = total


def interpolate(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray | None = None,
    cubics: np.ndarray = CONVOLUTION,
) -> np.ndarray:  # fmt: skip
    """Like ``interpolation.interpolate``, by ``cubics``; a position outside takes the nearest point's value.

    ``SPLINE`` takes a field of ``coefficients``. An axis of one or two cells is interpolated linearly.
    Overshoots by up to an eighth of a jump.
    """
    if out is None:
        out = np.empty((len(x), *field.shape[3:]), field.dtype)
    m = int(np.prod(field.shape[3:]))
    if out.size:
        points = view_as(field, *field.shape[:3], m)
        _interpolate(
            x.reshape(-1), origin, spacing, points, cubics.astype(field.dtype), view_as(out, len(x), m)
        )
    return out


@lru_cache(maxsize=32)
def elimination_factors(points: int, closed: bool = False) -> np.ndarray:
    """Factors of the elimination of a tridiagonal matrix with the diagonal 5, 4, 4, ... and 1 beside it.

    With ``closed`` the diagonal of the last point but one is 5 too, or 6 if it is the only one inside.
    """
    factors, before = np.zeros(points), 0.0
    for i in range(1, points):
        before = factors[i] = 1.0 / (4.0 + (i == 1) + (closed and i == points - 2) - before)
    return factors


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _solve_lines(lines: Any, columns: int, factors: Any) -> None:
    """Replace values (points, columns) by the coefficients of splines along the first axis."""
    wide_vectors()
    last, six = lines.shape[0] - 1, lines.dtype.type(6)
    low, second, inner, high = lines[0], lines[1], lines[last - 1], lines[last]
    for e in range(columns):
        low[e] -= second[e]
        high[e] -= inner[e]
        second[e] = (six * second[e] - low[e]) * factors[1]
    for i in range(2, last - 1):
        row, before = lines[i], lines[i - 1]
        for e in range(columns):
            row[e] = (six * row[e] - before[e]) * factors[i]
    for e in range(columns):
        inner[e] = (six * inner[e] - high[e] - lines[last - 2, e]) * factors[last - 1]
    for i in range(last - 2, 0, -1):
        row, after = lines[i], lines[i + 1]
        for e in range(columns):
            row[e] -= factors[i] * after[e]
    for e in range(columns):
        low[e] += second[e]
        high[e] += inner[e]


@njit(fastmath=FAST, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _copy(source: Any, target: Any) -> None:
    """Copy the rows of one array (points, columns) to another."""
    if source.shape[1] == 3:  # a loop of unknown length would take much longer
        for i in range(source.shape[0]):
            target[i, 0], target[i, 1], target[i, 2] = source[i, 0], source[i, 1], source[i, 2]
    else:
        for i in range(source.shape[0]):
            for e in range(source.shape[1]):
                target[i, e] = source[i, e]


@parallel("tasks", fastmath=FAST, error_model="numpy")
def _filter_axis(task: int, tasks: int, given: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Coefficients of splines through (a, points, b) along the middle axis; ``out`` may be ``given``.

    A task is BLOCK columns at one index of the first axis, or all columns of so many indices that they are
    BLOCK together.
    """
    many, points, width = given.shape
    blocks = (width + BLOCK - 1) // BLOCK
    each = max(BLOCK // width, 1)
    first, begin = task // blocks * each, task % blocks * BLOCK
    count, width = min(each, many - first), min(BLOCK, width - begin)
    lines = np.empty((points, BLOCK), given.dtype)
    for k in range(count):
        _copy(given[first + k, :, begin : begin + width], lines[:, k * width : (k + 1) * width])
    _solve_lines(lines, count * width, factors)
    for k in range(count):
        _copy(lines[:, k * width : (k + 1) * width], out[first + k, :, begin : begin + width])


def coefficients(field: np.ndarray) -> np.ndarray:
    """Coefficients of the cubic spline through the values (px, py, pz, ...) of a grid, for ``SPLINE``.

    Along each axis of three cells or more (c_i-1 + 4 c_i + c_i+1)/6 = f_i at every point, with c_-1 = 3 c_0
    - 3 c_1 + c_2 beyond the first and likewise beyond the last. The difference of the first two rows is c_0 -
    c_1 = f_0 - f_1, which leaves a tridiagonal system for the points inside.
    """
    out, found = np.empty_like(field), field
    for axis in range(3):
        points = field.shape[axis]
        if points >= TAPS:
            many, width = math.prod(field.shape[:axis]), math.prod(field.shape[axis + 1 :])
            tasks = -(-many // max(BLOCK // width, 1)) * -(-width // BLOCK)
            seen = view_as(found, many, points, width), view_as(out, many, points, width)
            _filter_axis(
                tasks, seen[0], elimination_factors(points, closed=True).astype(field.dtype), seen[1]
            )
            found = out
    return found


@lru_cache(maxsize=32)
def _coarsening(fine: int, coarse: int, dtype: str) -> np.ndarray:
    """Weights (coarse + 1, fine + 1) of the points of ``fine`` cells at those of ``coarse`` on one axis."""
    shares, weights = np.zeros((coarse + 1, fine + 1)), np.empty(TAPS)
    for point in range(fine + 1):
        cell = min(point * coarse // fine, coarse - 1)
        first = axis_weights.py_func(point * coarse / fine - cell, cell, coarse, CONVOLUTION, weights)
        for tap in range(min(TAPS, coarse + 1 - first)):
            shares[first + tap, point] += weights[tap]
    return shares.astype(dtype)


@parallel(fastmath=FAST)
def _gather_axis(chunk: int, field: np.ndarray, shares: np.ndarray, out: np.ndarray) -> None:
    """out[a, j] = sum_i shares[j, i] field[a, i]: (a, fine points, b) to (a, coarse points, b)."""
    coarse, fine = shares.shape
    width = field.shape[2]
    rows = out.shape[0] * coarse
    for r in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        a, j = r // coarse, r % coarse
        row = out[a, j]
        for e in range(width):
            row[e] = 0.0
        for i in range(fine):
            w = shares[j, i]
            if w != 0.0:
                given = field[a, i]
                for e in range(width):
                    row[e] += w * given[e]


def coarsen(field: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Amounts at the points of a grid, (px, py, pz, m), shared among the points of a coarser grid.

    The coarser grid has ``cells`` (3,) and covers the same box. The sum over the points and, as in a scatter,
    the moments 1 and 2 stay.
    """
    for axis in range(3):
        shares = _coarsening(field.shape[axis] - 1, int(cells[axis]), field.dtype.name)
        before, after = field.shape[:axis], field.shape[axis + 1 :]
        out = np.empty((*before, len(shares), *after), field.dtype)
        ends = math.prod(before), math.prod(after)
        _gather_axis(
            view_as(field, ends[0], field.shape[axis], ends[1]), shares, view_as(out, ends[0], -1, ends[1])
        )
        field = out
    return field
