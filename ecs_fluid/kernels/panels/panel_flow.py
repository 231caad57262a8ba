"""Potential flow about a closed surface, and the vortex sheet that makes it.

With the velocity g along the outward normal given on the surface, the potentials outside and inside obey
(1/2 - K) phi_out = -S g and (1/2 + K) phi_in = S g, K f = int f dG/dn dS, S g = int g G dS, G = 1/(4 pi r),
in a plane -ln(r)/(2 pi), both constant on every triangle, or segment. Their jump mu is a vortex ring of
circulation mu round every triangle; see docs/notes/bodies.md for what its flow is. Linear systems are solved
by Gauss elimination whose sums do not depend on the number of threads.

Source: Katz and Plotkin, Low-Speed Aerodynamics (2001), chapters 3 and 10; van Oosterom and Strackee, IEEE
Trans. Biomed. Eng. 30 (1983), for solid angles; Wilton et al., IEEE Trans. Antennas Propag. 32 (1984), for
the potential of a triangle.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import cross_of, divided, dot, length, minus, row_of
from ecs_fluid.kernels.panels.outlines import segment_layers
from ecs_fluid.kernels.panels.panels import Panels

BLOCK = 16
"""Number of columns that are eliminated together."""

STRIP = 256
"""Columns from which they are eliminated in one go, so that the rows to take off stay in the cache."""

UNREORDERED = FAST - {"reassoc"}
"""Compiler flags of elimination, with which each number has the same bits however the work is divided."""


@njit(cache=True, error_model="numpy")
def triangle_integrals(x: Array, a: Array, b: Array, c: Array) -> tuple[float, float]:
    """(int dS/r in m, solid angle) of the triangle a b c seen from x; the angle is positive from inside."""
    corners = np.stack((a - x, b - x, c - x))
    u, v, w = row_of(corners, 0), row_of(corners, 1), row_of(corners, 2)
    n = cross_of(b - a, c - a)
    n = divided(n, length(n))
    height = abs(dot(u, n))
    r = (length(u), length(v), length(w))
    total = 0.0
    for k in range(3):
        start, end = row_of(corners, k), row_of(corners, (k + 1) % 3)
        r0, r1 = r[k], r[(k + 1) % 3]
        way = minus(end, start)
        size = length(way)
        way = divided(way, size)
        # In the plane, out of the triangle across this edge.
        across = dot(start, cross_of(way, n))
        l0, l1 = dot(start, way), dot(end, way)
        square = across * across + height * height
        if square <= 1e-24 * size * size:
            continue
        total += across * math.log((r1 + l1) / (r0 + l0) if l0 + l1 > 0.0 else (r0 - l0) / (r1 - l1))
        if height > 0.0:
            total -= height * (
                math.atan(across * l1 / (square + height * r1))
                - math.atan(across * l0 / (square + height * r0))
            )
    bottom = r[0] * r[1] * r[2] + dot(u, v) * r[2] + dot(v, w) * r[0] + dot(w, u) * r[1]
    return total, 2.0 * math.atan2(dot(u, cross_of(v, w)), bottom)


@parallel("len(center)", error_model="numpy")
def triangle_layers(
    i: int, center: Array, vertices: Array, triangles: Array, single: Array, double: Array
) -> None:
    """Fill S and K (n, n): potentials of the triangles j at the centres i."""
    n = len(center)
    for j in range(n):
        t = triangles[j]
        found = triangle_integrals(center[i], vertices[t[0]], vertices[t[1]], vertices[t[2]])
        single[i, j] = found[0] / (4.0 * math.pi)
        double[i, j] = -found[1] / (4.0 * math.pi) if i != j else 0.0


@njit(cache=True, fastmath=UNREORDERED, error_model="numpy")
def _column_block(a: Array, pivot: Array, first: int, last: int) -> None:
    """Eliminate the columns first to last - 1 of a, within these columns only."""
    n = len(a)
    for k in range(first, last):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        pivot[k] = best
        if best != k:
            for j in range(n):
                a[k, j], a[best, j] = a[best, j], a[k, j]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, last):
                a[i, j] -= a[i, k] * a[k, j]


@njit(cache=True, fastmath=UNREORDERED, error_model="numpy")
def _subtract_rows(a: Array, i: int, first: int, last: int, start: int, end: int) -> None:
    """Subtract the rows first to last - 1, times their factors, from row i in the columns start to end - 1.

    Eight rows at a time: a number of row i is fetched and stored once for all of them.
    """
    row = a[i, start:end]
    m = first
    while m + 8 <= last:
        f0, f1, f2, f3, f4, f5, f6, f7 = (
            a[i, m], a[i, m + 1], a[i, m + 2], a[i, m + 3], a[i, m + 4], a[i, m + 5], a[i, m + 6], a[i, m + 7]
        )  # fmt: skip
        r0, r1, r2, r3 = a[m, start:end], a[m + 1, start:end], a[m + 2, start:end], a[m + 3, start:end]
        r4, r5, r6, r7 = a[m + 4, start:end], a[m + 5, start:end], a[m + 6, start:end], a[m + 7, start:end]
        for j in range(len(row)):
            left = row[j] - f0 * r0[j]
            left -= f1 * r1[j]
            left -= f2 * r2[j]
            left -= f3 * r3[j]
            left -= f4 * r4[j]
            left -= f5 * r5[j]
            left -= f6 * r6[j]
            row[j] = left - f7 * r7[j]
        m += 8
    for k in range(m, last):
        factor, other = a[i, k], a[k, start:end]
        for j in range(len(row)):
            row[j] -= factor * other[j]


@parallel(error_model="numpy")
def _eliminate(chunk: int, a: Array, first: int, last: int) -> None:
    """Subtract the rows ``first`` to ``last`` - 1 from all rows below, in the columns from ``last`` on."""
    n = len(a)
    rows = n - last
    for start in range(last, n, STRIP):
        end = min(start + STRIP, n)
        for i in range(last + chunk * rows // CHUNKS, last + (chunk + 1) * rows // CHUNKS):
            _subtract_rows(a, i, first, last, start, end)


@njit(cache=True, error_model="numpy")
def factorise(a: Array, pivot: Array) -> None:
    """L U factors of a (n, n), in place; `pivot` (n,) gets the exchanges of rows.

    By blocks of columns: the rest of a row then stays in the cache while a whole block is taken from it.
    """
    n = len(a)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        _column_block(a, pivot, first, last)
        for k in range(first + 1, last):
            _subtract_rows(a, k, first, k, last, n)
        _eliminate(a, first, last)


@njit(cache=True, error_model="numpy")
def solve(a: Array, pivot: Array, b: Array) -> Array:
    """x (n,) with A x = b, from the factors of A."""
    n = len(b)
    x = b.copy()
    for k in range(n):
        p = pivot[k]
        x[k], x[p] = x[p], x[k]
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= a[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= a[i, j] * x[j]
        x[i] = total / a[i, i]
    return x


@parallel("len(out)", error_model="numpy")
def _product(i: int, a: Array, x: Array, out: Array) -> None:
    total = 0.0
    for j in range(a.shape[1]):
        total += a[i, j] * x[j]
    out[i] = total


@njit(cache=True)
def product(a: Array, x: Array) -> Array:
    """a x (n,) of a matrix (n, m) and a vector (m,), the same for any number of threads."""
    out = np.empty(len(a))
    _product(a, x, out)
    return out


@njit(cache=True, error_model="numpy")
def solve_many(a: Array, pivot: Array, b: Array) -> Array:
    """The same as `solve`, bit for bit, for each column of b (n, k); faster from four columns on."""
    n, many = b.shape
    x = b.copy()
    for k in range(n):
        p = pivot[k]
        for r in range(many):
            x[k, r], x[p, r] = x[p, r], x[k, r]
    for i in range(n):
        for j in range(i):
            factor = a[i, j]
            for r in range(many):
                x[i, r] -= factor * x[j, r]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            factor = a[i, j]
            for r in range(many):
                x[i, r] -= factor * x[j, r]
        for r in range(many):
            x[i, r] /= a[i, i]
    return x


@parallel("len(out)", error_model="numpy")
def _product_many(i: int, a: Array, x: Array, out: Array) -> None:
    row = out[i]
    row[:] = 0.0
    for j in range(a.shape[1]):
        factor = a[i, j]
        for r in range(len(row)):
            row[r] += factor * x[j, r]


@njit(cache=True)
def product_many(a: Array, x: Array) -> Array:
    """The same as `product`, bit for bit, for each column of x (m, k)."""
    out = np.empty((len(a), x.shape[1]))
    _product_many(a, x, out)
    return out


class Factors(NamedTuple):
    """What `ring_circulations` needs of a surface of n triangles.

    single (n, n): S, m. outside, inside: factors (n, n) and row exchanges (n,) of 1/2 - K and 1/2 + K.
    """

    single: Array
    outside: tuple[Array, Array]
    inside: tuple[Array, Array]


def ring_factors(panels: Panels) -> Factors:
    """Matrices of a surface and their factors, for `ring_circulations`.

    A constant potential inside has no slope, so 1/2 + K is singular: the mean over the surface is added to
    every row, which fixes it at zero.
    """
    n = len(panels.area)
    if panels.corners.shape[1] == 2:
        single, double = segment_layers(panels)
    else:
        single, double = np.empty((n, n)), np.empty((n, n))
        triangle_layers(panels.center, panels.vertices, panels.corners, single, double)
    weight = panels.area / panels.area.sum()
    parts = []
    for matrix in (0.5 * np.eye(n) - double, 0.5 * np.eye(n) + double + weight):
        pivot = np.empty(n, np.int64)
        factorise(matrix, pivot)
        parts.append((matrix, pivot))
    return Factors(single, parts[0], parts[1])


def are_regular(factors: Factors) -> bool:
    """Whether both matrices can be solved with."""
    return all(np.isfinite(matrix).all() and np.diag(matrix).all() for matrix, _ in factors[1:])


def ring_circulations(panels: Panels, factors: Factors, normal_velocity: Array) -> Array:
    """Circulations (n,) m^2/s of the rings for the velocity (n,) m/s along the normals at the centres.

    Its mean over the surface is taken out first: rings cannot blow a body up. So is the mean of the
    circulations, which makes no flow.
    """
    weight = panels.area / panels.area.sum()
    right = product(factors.single, normal_velocity - (normal_velocity * weight).sum())
    mu = -solve(*factors.outside, right) - solve(*factors.inside, right)
    # The line on an edge turns with the triangle on its left, against the jump as counted outwards.
    return np.asarray((mu * weight).sum() - mu)


def line_circulations(panels: Panels, mu: Array) -> Array:
    """Circulations (e,) m^2/s of the edges, from those of the rings."""
    return np.asarray(mu[panels.sides[:, 0]] - mu[panels.sides[:, 1]])


def sheet_strengths(panels: Panels, mu: Array) -> Array:
    """Strengths (n, 3) m^3/s of the triangles: half of each of their edges' Gamma times its length.

    Their sum is that of all vortex lines, zero; with the edges' middles in place of the triangles' centres
    the impulse 1/2 sum x cross alpha would be exact too, here it is to second order.
    """
    half = 0.5 * line_circulations(panels, mu)[:, None] * panels.lines
    out = np.zeros((len(mu), 3))
    np.add.at(out, panels.sides[:, 0], half)
    np.add.at(out, panels.sides[:, 1], half)
    return out
