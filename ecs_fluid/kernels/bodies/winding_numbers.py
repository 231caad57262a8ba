"""Winding numbers of triangles around places: 1 inside a closed surface that faces outward, 0 outside.

A ray goes up from the place. Each triangle that it crosses adds 1 if it faces up and -1 if it faces down, so
overlapping parts count once each, and a hole elsewhere does no harm. Whether the ray crosses a triangle is
decided in the plane xy, edge by edge: one end has at most the y of the place and the other a larger one, and
the side of the edge on which the place lies is computed with the ends in a fixed order, so that two triangles
never disagree about their common edge. Triangles are sorted into columns of a lattice over xy, and a ray
tests only those of its own column.

Source: winding numbers of polygons by edges, Hormann and Agathos, Comp. Geom. 20 (2001); of surfaces as what
tells inside from outside, Jacobson, Kavan and Sorkine-Hornung, ACM Trans. Graph. 32 (2013).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array

COLUMNS = 1024
"""Most columns along x and along y."""

PER_TRIANGLE = 16
"""Most columns per triangle on average; where large triangles would need more, columns are wider."""


class Columns(NamedTuple):
    """Triangles (m, 3, 3) m by columns of a lattice over xy.

    listed: numbers of the triangles, column by column; those of column c are listed[start[c]:start[c + 1]].
    low, high (3,): of all, m. per_metre (2,): columns a metre. per_axis: columns along x, and along y.
    """

    faces: Array
    start: Array
    listed: Array
    low: Array
    high: Array
    per_metre: Array
    per_axis: int


def columns_of(faces: Array) -> Columns:
    """Triangles (m, 3, 3) m, one at least, for `windings`."""
    faces = np.array(faces, np.float64, order="C")  # for one that is read-only numba would compile all anew
    low, high = faces.min(axis=(0, 1)), faces.max(axis=(0, 1))
    per_axis = min(max(math.isqrt(len(faces)), 1), COLUMNS)
    while True:
        per_metre = per_axis / np.maximum(high[:2] - low[:2], 1e-300)
        # Counted before they are listed: a large triangle may be in a million columns.
        if per_axis == 1 or _count(faces, low, per_metre, per_axis) <= PER_TRIANGLE * len(faces):
            start = _column_starts(faces, low, per_metre, per_axis)
            return Columns(
                faces,
                start,
                _list_triangles(faces, start, low, per_metre, per_axis),
                low,
                high,
                per_metre,
                per_axis,
            )
        per_axis //= 2


@njit(cache=True, error_model="numpy")
def triangles_tested(x: Array, columns: Columns) -> int:
    """Number of triangles that `windings` tests for places (n, 3) m."""
    count = 0
    for i in range(len(x)):
        c = _column(x[i], columns.low, columns.per_metre, columns.per_axis)
        count += columns.start[c + 1] - columns.start[c]
    return count


@njit(cache=True, error_model="numpy")
def windings(x: Array, columns: Columns) -> Array:
    """Winding numbers (n,) of the triangles about places (n, 3) m."""
    out = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        within = True
        for k in range(3):
            within &= columns.low[k] <= x[i, k] <= columns.high[k]
        if within:
            c = _column(x[i], columns.low, columns.per_metre, columns.per_axis)
            for k in range(columns.start[c], columns.start[c + 1]):
                out[i] += _crossing(x[i], columns.faces[columns.listed[k]])
    return out


@njit(cache=True, error_model="numpy")
def _column_along(p: Array, k: int, low: Array, per_metre: Array, per_axis: int) -> int:
    """Column of a place along an axis; places beyond the ends are in the outermost columns."""
    return int(min(max((p[k] - low[k]) * per_metre[k], 0.0), per_axis - 1.0))


@njit(cache=True, error_model="numpy")
def _column(p: Array, low: Array, per_metre: Array, per_axis: int) -> int:
    """The column of a place."""
    return _column_along(p, 0, low, per_metre, per_axis) * per_axis + _column_along(
        p, 1, low, per_metre, per_axis
    )


@njit(cache=True, error_model="numpy")
def _column_range(face: Array, k: int, low: Array, per_metre: Array, per_axis: int) -> tuple[int, int]:
    """First column along an axis that a triangle is in, and the one after the last."""
    a = _column_along(face[0], k, low, per_metre, per_axis)
    b = _column_along(face[1], k, low, per_metre, per_axis)
    c = _column_along(face[2], k, low, per_metre, per_axis)
    return min(a, b, c), max(a, b, c) + 1


@njit(cache=True, error_model="numpy")
def _count(faces: Array, low: Array, per_metre: Array, per_axis: int) -> int:
    """Total number of entries of triangles in columns."""
    count = 0
    for i in range(len(faces)):
        a, b = _column_range(faces[i], 0, low, per_metre, per_axis)
        c, d = _column_range(faces[i], 1, low, per_metre, per_axis)
        count += (b - a) * (d - c)
    return count


@njit(cache=True, error_model="numpy")
def _column_starts(faces: Array, low: Array, per_metre: Array, per_axis: int) -> Array:
    """Start of each column in the list of entries, and the length of the list."""
    start = np.zeros(per_axis * per_axis + 1, np.int64)
    for i in range(len(faces)):
        a, b = _column_range(faces[i], 0, low, per_metre, per_axis)
        c, d = _column_range(faces[i], 1, low, per_metre, per_axis)
        for column in range(a, b):
            for row in range(c, d):
                start[column * per_axis + row + 1] += 1
    for k in range(per_axis * per_axis):
        start[k + 1] += start[k]
    return start


@njit(cache=True, error_model="numpy")
def _list_triangles(faces: Array, start: Array, low: Array, per_metre: Array, per_axis: int) -> Array:
    """Numbers of the triangles, column by column."""
    free, listed = start.copy(), np.empty(start[-1], np.int64)
    for i in range(len(faces)):
        a, b = _column_range(faces[i], 0, low, per_metre, per_axis)
        c, d = _column_range(faces[i], 1, low, per_metre, per_axis)
        for column in range(a, b):
            for row in range(c, d):
                listed[free[column * per_axis + row]] = i
                free[column * per_axis + row] += 1
    return listed


@njit(cache=True, error_model="numpy")
def _side(p: Array, a: Array, b: Array) -> float:
    """Twice the area of p, a, b in xy, positive counter-clockwise; exactly minus that of p, b, a."""
    if a[0] < b[0] or (a[0] == b[0] and a[1] < b[1]):
        return (b[0] - a[0]) * (p[1] - a[1]) - (p[0] - a[0]) * (b[1] - a[1])
    return -((a[0] - b[0]) * (p[1] - b[1]) - (p[0] - b[0]) * (a[1] - b[1]))


@njit(cache=True, error_model="numpy")
def _crossing(p: Array, face: Array) -> int:
    """1 or -1 where the ray up from p meets the triangle (3, 3), which faces up or down, else 0."""
    turns, height, total = 0, 0.0, 0.0
    for k in range(3):
        a, b = face[k], face[(k + 1) % 3]
        side = _side(p, a, b)
        if a[1] <= p[1] and b[1] > p[1] and side > 0.0:
            turns += 1
        elif b[1] <= p[1] and a[1] > p[1] and side < 0.0:
            turns -= 1
        # The area opposite a corner is the weight of its height.
        height += abs(side) * face[(k + 2) % 3, 2]
        total += abs(side)
    return turns if turns != 0 and height > p[2] * total else 0
