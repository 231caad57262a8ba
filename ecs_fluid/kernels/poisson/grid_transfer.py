"""Point fields between a fine and a coarse grid over the same box, for any numbers of points.

Axis by axis, fine point i lies at X = i N/n of the coarse grid (n fine, N coarse cells), in coarse cell
floor(X) with the fraction f. Prolongation is linear interpolation, weights 1 - f and f, and the product over
the axes is trilinear. Restriction is its transpose times N/n per axis: for n = 2 N that is full weighting,
(1/4, 1/2, 1/4) per axis; for odd n the two grids have no inner points in common, and nothing else changes.
Source: Trottenberg, Oosterlee, Schueller, Multigrid (2001), sections 2.3 and 2.8.

Fields are seen as rows, (px, py, pz m). ``span`` (3, 2) bounds the inner points of the field that is written:
for every axis the first index and one past the last; along z these count values of a row.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.poisson.smoothers import OPTIONS, pieces_of, rows_in

Axes = tuple[Array, Array, Array]

_TAPS = 4


class Prolongation(NamedTuple):
    """Linear interpolation from the points of one grid to those of another, finer or coarser."""

    lower: Axes
    """per axis, of every target index: the lower source index; along z for every value of a row"""
    fraction: Axes
    """per axis, of every target index: weight of the upper source index"""
    reach: NDArray[np.int64]
    """(3,) from the lower to the upper source index: 1, 1, m; 0 where both grids have the same points"""


class Restriction(NamedTuple):
    """Transpose of a ``Prolongation``, scaled to an average: every coarse index gathers up to four fine."""

    first: Axes
    """per axis, of every coarse index: the first fine index; along z for every value of a row"""
    share: Axes
    """per axis, (4, coarse indices): weights of that fine index and of the next three"""
    reach: NDArray[np.int64]
    """(3,) from one fine index to the next: 1, 1, m; 0 where both grids have the same points"""


def _linear(target: int, source: int) -> tuple[Array, Array]:
    """Lower source index and fraction of every target index; by integers, so common points coincide."""
    if target == source:
        return np.arange(target), np.zeros(target)
    n, wide = target - 1, source - 1
    lower = np.minimum(np.arange(target) * wide // n, wide - 1)
    return lower, (np.arange(target) * wide - lower * n) / n


def _gather(fine: int, coarse: int) -> tuple[Array, Array]:
    """First fine index and shares (4, coarse) of every coarse index."""
    share = np.zeros((_TAPS, coarse))
    if fine == coarse:
        share[0] = 1.0
        return np.arange(coarse), share
    lower, fraction = _linear(fine, coarse)
    matrix = np.zeros((fine, coarse))
    matrix[np.arange(fine), lower] = 1.0 - fraction
    matrix[np.arange(fine), lower + 1] = fraction
    first = np.minimum(np.argmax(matrix > 0.0, axis=0), fine - _TAPS)
    for tap in range(_TAPS):
        share[tap] = matrix[first + tap, np.arange(coarse)] * ((coarse - 1) / (fine - 1))
    return first, share


def _reach(a: tuple[int, ...], b: tuple[int, ...], m: int) -> NDArray[np.int64]:
    return np.array([0 if a[axis] == b[axis] else (1, 1, m)[axis] for axis in range(3)], np.int64)


def _in_row(index: Array, m: int) -> Array:
    """Point indices along z to value indices in a row, where the m components lie side by side."""
    return np.asarray((index[:, None] * m + np.arange(m)).ravel())


@lru_cache(maxsize=64)
def prolongation(target: tuple[int, ...], source: tuple[int, ...], dtype: Any) -> Prolongation:
    """Tables to interpolate a field of shape ``source``, (px, py, pz) or (px, py, pz, m), to ``target``."""
    m = math.prod(target[3:])
    (a, fa), (b, fb), (c, fc) = (_linear(target[axis], source[axis]) for axis in range(3))
    fractions = (fa.astype(dtype), fb.astype(dtype), np.repeat(fc, m).astype(dtype))
    return Prolongation((a, b, _in_row(c, m)), fractions, _reach(target, source, m))


@lru_cache(maxsize=64)
def restriction(coarse: tuple[int, ...], fine: tuple[int, ...], dtype: Any) -> Restriction:
    """Tables to restrict a field of shape ``fine`` to ``coarse``.

    An axis keeps its points, or has at least 3 fine cells and between half as many and all coarse ones.
    """
    m = math.prod(fine[3:])
    (a, sa), (b, sb), (c, sc) = (_gather(fine[axis], coarse[axis]) for axis in range(3))
    shares = (sa.astype(dtype), sb.astype(dtype), np.repeat(sc, m, axis=1).astype(dtype))
    return Restriction((a, b, _in_row(c, m)), shares, _reach(fine, coarse, m))


@parallel("pieces", **OPTIONS)
def _prolong_rows(
    piece: int, pieces: int, source: Array, target: Array, lower: Any, fraction: Any, reach: Array,
    span: Array, rows: int,
) -> None:  # fmt: skip
    """Add interpolated ``source`` to the rows of ``target`` inside ``span``, to all components."""
    wide_vectors()
    across = span[1, 1] - span[1, 0]
    size, reach_z = source.shape[2], reach[2]
    line = np.empty(size, source.dtype)
    index, upper_z = lower[2], fraction[2]
    one = source.dtype.type(1)
    for r in range(piece * rows // pieces, (piece + 1) * rows // pieces):
        i, j = span[0, 0] + r // across, span[1, 0] + r % across
        i0, j0, f, g = lower[0][i], lower[1][j], fraction[0][i], fraction[1][j]
        s00, s01 = source[i0, j0], source[i0, j0 + reach[1]]
        s10, s11 = source[i0 + reach[0], j0], source[i0 + reach[0], j0 + reach[1]]
        w00, w01, w10, w11 = (one - f) * (one - g), (one - f) * g, f * (one - g), f * g
        for k in range(size):
            line[k] = w00 * s00[k] + w01 * s01[k] + w10 * s10[k] + w11 * s11[k]
        row = target[i, j]
        for k in range(span[2, 0], span[2, 1]):
            below = line[index[k]]
            row[k] += below + upper_z[k] * (line[index[k] + reach_z] - below)


def prolong(source: Array, target: Array, tables: Prolongation, span: Array) -> None:
    """Interpolate ``source`` to the points of ``target`` inside ``span`` and add it to them, both as rows."""
    _prolong_rows(pieces_of(target), source, target, *tables, span, rows_in(span))


@parallel("pieces", **OPTIONS)
def _restrict_rows(
    piece: int, pieces: int, fine: Array, coarse: Array, first: Any, share: Any, reach: Array, span: Array,
    rows: int,
) -> None:  # fmt: skip
    wide_vectors()
    across = span[1, 1] - span[1, 0]
    size, reach_z = fine.shape[2], reach[2]
    line = np.empty(size, fine.dtype)
    index, shares = first[2], share[2]
    for r in range(piece * rows // pieces, (piece + 1) * rows // pieces):
        i, j = span[0, 0] + r // across, span[1, 0] + r % across
        line[:] = 0
        for a in range(_TAPS):
            for b in range(_TAPS):
                w = share[0][a, i] * share[1][b, j]
                if w != 0:
                    row = fine[first[0][i] + a * reach[0], first[1][j] + b * reach[1]]
                    for k in range(size):
                        line[k] += w * row[k]
        out = coarse[i, j]
        for k in range(span[2, 0], span[2, 1]):
            at = index[k]
            out[k] = (
                shares[0, k] * line[at]
                + shares[1, k] * line[at + reach_z]
                + shares[2, k] * line[at + 2 * reach_z]
                + shares[3, k] * line[at + 3 * reach_z]
            )


def restrict(fine: Array, coarse: Array, tables: Restriction, span: Array) -> None:
    """Weighted averages of ``fine`` at the points of ``coarse`` inside ``span``, both as rows."""
    _restrict_rows(pieces_of(fine), fine, coarse, *tables, span, rows_in(span))
