"""Relaxation of lap A = rhs on the points of a uniform grid, and its residual.

The Laplacian is the second-order one, sum over axes of (A_+ - 2 A + A_-)/h^2; the values on the six faces are
given (Dirichlet) and never written. One Gauss-Seidel step of a point is

    A_GS = (sum_axes (A_+ + A_-)/h^2 - rhs) / (2 sum_axes 1/h^2),    A <- (1 - omega) A + omega A_GS

Rows along z take turns by the parity of i + j: the neighbours of a row all have the other colour, so rows of
one colour are relaxed in parallel and the result does not depend on threads. Inside a row the even points
go first, then the odd ones, which vectorises (the articles go point by point; convergence is the same, since
both orders are consistent in Young's sense). Source: Fluid Simulation for Video Games, part 6.

Fields have the shape (px, py, pz) or (px, py, pz, m), C order: m components are relaxed side by side. An axis
with one point or with spacing 0 is flat: nothing is coupled along it and it has no faces.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.grids.partition import view_as

ONE_THREAD_BELOW = 16384
"""Fields with fewer values are relaxed by one thread: waking a second one would take longer."""

# Multiplications and additions are fused, but sums are not reordered as elsewhere: those here vectorise
# without it.
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}


class Stencil(NamedTuple):
    """The Laplacian on one grid, for fields seen as rows: (px, py, pz m)."""

    span: NDArray[np.int64]
    """(3, 2) first inner index of every axis and one past the last; along z these count values of a row"""
    step: NDArray[np.int64]
    """(3,) distance to the neighbours: 1, 1, m; 0 along a flat axis"""
    weight: Array
    """(4,) 1/h^2 of the axes, 0 if flat, and 2 sum 1/h^2 [1/m^2], in the dtype of the field"""
    even: Array
    """(inner length of a row,) 1 on even inner points of a row, 0 on odd ones"""

    @property
    def inner(self) -> int:
        """Inner values: 0 if every point lies on a face."""
        return rows_in(self.span) * self.even.size


def rows_in(span: NDArray[np.int64]) -> int:
    """How many rows have values inside ``span`` (3, 2)."""
    (a, b), (c, d), (e, f) = span.tolist()
    return (b - a) * (d - c) if b > a and d > c and f > e else 0


def pieces_of(field: Array) -> int:
    """Into how many pieces loops over the rows of a field are cut."""
    return 1 if field.size < ONE_THREAD_BELOW else CHUNKS


def stencil(shape: tuple[int, ...], spacing: Any, dtype: Any) -> Stencil:
    """The Laplacian for fields of ``shape`` (px, py, pz) or (px, py, pz, m) and ``spacing`` (3,) m."""
    m = math.prod(shape[3:])
    span, step, weight = np.zeros((3, 2), np.int64), np.zeros(3, np.int64), np.zeros(4)
    for axis in range(3):
        flat = shape[axis] == 1 or spacing[axis] == 0
        span[axis] = (0, shape[axis]) if flat else (1, shape[axis] - 1)
        step[axis] = 0 if flat else (m if axis == 2 else 1)
        weight[axis] = 0.0 if flat else 1.0 / float(spacing[axis]) ** 2
    weight[3] = 2.0 * weight[:3].sum()
    even = np.repeat((np.arange(max(0, span[2, 1] - span[2, 0])) + 1) % 2, m)
    span[2] *= m
    return Stencil(span, step, weight.astype(dtype), even.astype(dtype))


def as_rows(field: Array) -> Array:
    """The same memory with z and the components as one axis: (px, py, pz m)."""
    return view_as(field, field.shape[0], field.shape[1], math.prod(field.shape[2:]))


@parallel("pieces", **OPTIONS)
def _relax_rows(
    piece: int, pieces: int, field: Array, rhs: Array, laplacian: Any, omega: Any, colour: int, rows: int
) -> None:
    """Relax those of the ``rows`` inner rows whose i + j has the parity ``colour``."""
    wide_vectors()
    span, step, weight, even = laplacian
    one = field.dtype.type(1)
    scale = one / weight[3]
    wx, wy, wz = weight[0] * scale, weight[1] * scale, weight[2] * scale
    _, py, width = field.shape
    values, given = field.reshape(field.size), rhs.reshape(rhs.size)
    across, length, dk = span[1, 1] - span[1, 0], np.uintp(even.size), np.uintp(step[2])
    fixed = np.empty(even.size, field.dtype)
    row = np.empty(width, field.dtype)
    for r in range(piece * rows // pieces, (piece + 1) * rows // pieces):
        i, j = span[0, 0] + r // across, span[1, 0] + r % across
        if (i + j) & 1 != colour:
            continue
        # Unsigned indices into flat arrays: making slices of such short rows took as long as the loops.
        start = (i * py + j) * width
        here = np.uintp(start) + dk
        x0, x1 = here - np.uintp(step[0] * py * width), here + np.uintp(step[0] * py * width)
        y0, y1 = here - np.uintp(step[1] * width), here + np.uintp(step[1] * width)
        for k in range(length):
            sides = wx * (values[x0 + k] + values[x1 + k]) + wy * (values[y0 + k] + values[y1 + k])
            fixed[k] = sides - scale * given[here + k]
        for k in range(dk):
            row[k], row[length + dk + k] = values[here - dk + k], values[here + length + k]
        for k in range(length):
            old = values[here + k]
            change = fixed[k] + wz * (values[here - dk + k] + values[here + dk + k]) - old
            row[dk + k] = old + omega * even[k] * change
        for k in range(length):
            middle = row[dk + k]
            change = fixed[k] + wz * (row[k] + row[dk + dk + k]) - middle
            values[here + k] = middle + omega * (one - even[k]) * change


def relax(field: Array, rhs: Array, laplacian: Stencil, omega: float, sweeps: int) -> None:
    """``sweeps`` sweeps over both colours, in place; ``field`` and ``rhs`` as rows."""
    rows, factor = rows_in(laplacian.span), field.dtype.type(omega)
    for half in range(2 * sweeps if rows else 0):
        _relax_rows(pieces_of(field), field, rhs, laplacian, factor, half % 2, rows)


@parallel("squares.shape[1]", **OPTIONS)
def _residual_rows(
    piece: int, field: Array, rhs: Array, laplacian: Any, out: Array, rows: int, squares: Array
) -> None:
    """rhs - lap A of the inner rows into ``out``, and the sums of squares of it and of rhs to ``squares``."""
    wide_vectors()
    span, step, weight, even = laplacian
    wx, wy, wz, centre = weight[0], weight[1], weight[2], weight[3]
    _, py, width = field.shape
    values, given, result = field.reshape(field.size), rhs.reshape(rhs.size), out.reshape(out.size)
    across, length, dk = span[1, 1] - span[1, 0], np.uintp(even.size), np.uintp(step[2])
    # One sum for every place in a row: a single sum would be added up number by number, without vectors.
    sums = np.zeros((2, even.size), field.dtype)
    pieces = squares.shape[1]
    for r in range(piece * rows // pieces, (piece + 1) * rows // pieces):
        start = ((span[0, 0] + r // across) * py + span[1, 0] + r % across) * width
        here = np.uintp(start) + dk
        x0, x1 = here - np.uintp(step[0] * py * width), here + np.uintp(step[0] * py * width)
        y0, y1 = here - np.uintp(step[1] * width), here + np.uintp(step[1] * width)
        for k in range(length):
            around = wx * (values[x0 + k] + values[x1 + k]) + wy * (values[y0 + k] + values[y1 + k])
            around += wz * (values[here - dk + k] + values[here + dk + k])
            f = given[here + k]
            left = f - (around - centre * values[here + k])
            result[here + k] = left
            sums[0, k] += left * left
            sums[1, k] += f * f
    total = source = 0.0
    for k in range(even.size):
        total += np.float64(sums[0, k])
        source += np.float64(sums[1, k])
    squares[0, piece], squares[1, piece] = total, source


def residual_rows(field: Array, rhs: Array, laplacian: Stencil, out: Array) -> tuple[float, float]:
    """Fill ``out`` inside with rhs - lap A; returns the RMS of the residual and of rhs."""
    rows = rows_in(laplacian.span)
    if rows == 0:
        return 0.0, 0.0
    squares = np.empty((2, pieces_of(field)))
    _residual_rows(field, rhs, laplacian, out, rows, squares)
    # cumsum adds strictly in order, np.sum does not promise to.
    total, source = squares.cumsum(axis=1)[:, -1].tolist()
    inner = rows * laplacian.even.size
    return math.sqrt(total / inner), math.sqrt(source / inner)
