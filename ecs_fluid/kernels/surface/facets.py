"""The surface of a sampled field, made of flat facets: distances to it, its area, and the volume it encloses.

A field g (px, py, pz) on a uniform grid is negative inside. Every cell is cut into six tetrahedra around the
diagonal from its lower to its upper corner (Kuhn). g is taken as linear in each of them, so the surface g = 0
is flat there: one triangle, or two. Neighbouring cells cut their common face in the same way, so the surface
has no gaps. A flat axis (one layer of points) counts as one cell along which nothing changes. Kuhn's
tetrahedra then cut the plane into triangles, and distances, lengths (area per depth) and areas (volume per
depth) are those in the plane.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Vector,
    add_scaled,
    cross_of,
    dot,
    length,
    minus,
    row_of,
)

TETRAHEDRA = np.array([[1, 3, 7], [1, 5, 7], [2, 3, 7], [2, 6, 7], [4, 5, 7], [4, 6, 7]], dtype=np.int64)
"""Corners of the six tetrahedra, besides corner 0, which all share; corner 4 a + 2 b + c has the offsets
a, b, c."""


@njit(**INLINE_EXACT)
def _to_segment(a: Vector, b: Vector) -> float:
    """Squared distance from the origin to the segment from a to b."""
    way = minus(b, a)
    along, square = -dot(a, way), dot(way, way)
    t = along / square if square > 0.0 else 0.0
    foot = add_scaled(a, min(max(t, 0.0), 1.0), way)
    return dot(foot, foot)


@njit(**INLINE_EXACT)
def _to_triangle(a: Vector, u: Vector, v: Vector, n: Vector, nn: float, best: float) -> float:
    """Smaller of ``best`` and the squared distance from the origin to a triangle (or segment, or point).

    The triangle has the corners a, a + u and a + v; n = u cross v, and nn is its square.
    """
    height = dot(a, n)
    square = height * height
    # No point of a triangle is nearer than its plane.
    if square >= best * nn and nn > 0.0:
        return best
    b, c, w = add_scaled(a, 1.0, u), add_scaled(a, 1.0, v), minus(v, u)
    if nn == 0.0:
        return min(min(best, _to_segment(a, b)), min(_to_segment(b, c), _to_segment(c, a)))
    # Barycentric coordinates of the foot point, times nn; one below 0 says that it lies beyond an edge.
    wc, wb = -dot(cross_of(u, a), n), -dot(cross_of(a, v), n)
    wa = nn - wb - wc
    if wa >= 0.0 and wb >= 0.0 and wc >= 0.0:
        return square / nn
    # The nearest point is on an edge beyond which the foot lies, and no nearer than that edge's line.
    if wc < 0.0 and square * dot(u, u) + wc * wc < best * nn * dot(u, u):
        best = min(best, _to_segment(a, b))
    if wb < 0.0 and square * dot(v, v) + wb * wb < best * nn * dot(v, v):
        best = min(best, _to_segment(c, a))
    if wa < 0.0 and square * dot(w, w) + wa * wa < best * nn * dot(w, w):
        best = min(best, _to_segment(b, c))
    return best


@njit(**INLINE_EXACT)
def _between(corner: Array, g: Array, p: int, q: int) -> Vector:
    """The point between the corners p and q where g, linear between them, is zero."""
    start = row_of(corner, p)
    return add_scaled(start, g[p] / (g[p] - g[q]), minus(row_of(corner, q), start))


@njit(forceinline=True)
def _sort_corners(g: Array, path: Array, order: Array) -> int:
    """Corners of a tetrahedron into ``order`` (4,), those inside first; returns how many are inside."""
    inside, outside = 0, 3
    for m in range(4):
        c = 0 if m == 0 else path[m - 1]
        if g[c] < 0.0:
            order[inside] = c
            inside += 1
        else:
            order[outside] = c
            outside -= 1
    return inside


@njit(**INLINE_EXACT)
def _tetrahedron_facets(corner: Array, g: Array, order: Array, inside: int, out: Array) -> int:
    """Write the corners of the facets of a tetrahedron into ``out`` (2, 3, 3); returns the number of facets.

    ``order`` and ``inside`` are results of `_sort_corners`.
    """
    if inside == 2:
        a, b = _between(corner, g, order[0], order[2]), _between(corner, g, order[0], order[3])
        c, d = _between(corner, g, order[1], order[3]), _between(corner, g, order[1], order[2])
        for k in range(3):
            out[0, 0, k], out[0, 1, k], out[0, 2, k] = a[k], b[k], c[k]
            out[1, 0, k], out[1, 1, k], out[1, 2, k] = a[k], c[k], d[k]
        return 2
    if inside == 0 or inside == 4:
        return 0
    single, first = (order[0], 1) if inside == 1 else (order[3], 0)
    for m in range(3):
        out[0, m, 0], out[0, m, 1], out[0, m, 2] = _between(corner, g, single, order[first + m])
    return 1


@njit(**INLINE_EXACT)
def _facets(corner: Array, g: Array, paths: Array, order: Array, out: Array) -> int:
    """Corners of the facets of one cell into ``out`` (12, 3, 3); returns how many facets there are."""
    count, signs = 0, 0
    for m in range(8):
        signs |= (1 if g[m] < 0.0 else 0) << m
    for tetrahedron in range(6):
        path = paths[tetrahedron]
        own = 1 | (1 << path[0]) | (1 << path[1]) | (1 << path[2])
        if signs & own == 0 or signs & own == own:
            continue
        count += _tetrahedron_facets(corner, g, order, _sort_corners(g, path, order), out[count:])
    return count


@njit(forceinline=True, error_model="numpy")
def _nearest(corner: Array, facets: Array, count: int, best: Array) -> None:
    """Lower ``best`` (8,), squared distances of a cell's corners from the surface, to those from its facets.

    Negative entries stay: they mark corners without a distance to find.
    """
    for f in range(count):
        first = row_of(facets[f], 0)
        u, v = minus(row_of(facets[f], 1), first), minus(row_of(facets[f], 2), first)
        n = cross_of(u, v)
        for m in range(8):
            if best[m] > 0.0:
                best[m] = _to_triangle(minus(first, row_of(corner, m)), u, v, n, dot(n, n), best[m])


@njit(forceinline=True)
def _corners(spacing: Array) -> Array:
    """Corners (8, 3) m of a cell, relative to its lower one."""
    corner = np.empty((8, 3))
    for m in range(8):
        corner[m, 0], corner[m, 1] = (m >> 2) * spacing[0], ((m >> 1) & 1) * spacing[1]
        corner[m, 2] = (m & 1) * spacing[2]
    return corner


@njit(forceinline=True)
def _point_of(shape: tuple[int, int, int], i: int, j: int, k: int, m: int) -> tuple[int, int, int]:
    """Grid point at corner m of cell (i, j, k); along an axis with one layer it is always that layer."""
    a, b, c = i + (m >> 2), j + ((m >> 1) & 1), k + (m & 1)
    return min(a, shape[0] - 1), min(b, shape[1] - 1), min(c, shape[2] - 1)


@njit(forceinline=True)
def _fill_cell(field: Array, i: int, j: int, k: int, g: Array) -> int:
    """Values at the eight corners of the cell (i, j, k) into ``g``; returns how many are negative."""
    count = 0
    for m in range(8):
        g[m] = field[_point_of(field.shape, i, j, k, m)]
        count += 1 if g[m] < 0 else 0
    return count


@parallel("field.shape[0]")
def _pin(i: int, field: Array, phi: Array, pinned: Array) -> None:
    """Fill ``pinned`` with which points have a neighbour on the other side of the surface, and start ``phi``.

    ``phi`` becomes infinite, with the sign of the field, at these points, and the field at all others. The
    loops run over single rows and have no branch, so that they vectorise.
    """
    nx, ny, nz = field.shape
    kind = field.dtype.type
    zero, far = kind(0), kind(np.inf)
    for j in range(ny):
        here, pinned_row, out = field[i, j], pinned[i, j], phi[i, j]
        back, front = field[max(i - 1, 0), j], field[min(i + 1, nx - 1), j]
        left, right = field[i, max(j - 1, 0)], field[i, min(j + 1, ny - 1)]
        for k in range(nz):
            side = here[k] < zero
            pinned_row[k] = ((back[k] < zero) != side) | ((front[k] < zero) != side)
        for k in range(nz):
            side = here[k] < zero
            pinned_row[k] = pinned_row[k] | ((left[k] < zero) != side) | ((right[k] < zero) != side)
        for k in range(1, nz):
            pinned_row[k] = pinned_row[k] | ((here[k - 1] < zero) != (here[k] < zero))
        for k in range(nz - 1):
            pinned_row[k] = pinned_row[k] | ((here[k + 1] < zero) != (here[k] < zero))
        for k in range(nz):
            out[k] = (-far if here[k] < zero else far) if pinned_row[k] else here[k]


@parallel("(max(field.shape[0] - 1, 1) + 1 - parity) // 2", error_model="numpy")
def _layer_distances(
    layer: int, parity: int, field: Array, spacing: Array, paths: Array, phi: Array, pinned: Array
) -> None:
    nx, ny, nz = field.shape
    cy, cz = max(ny - 1, 1), max(nz - 1, 1)
    kind = field.dtype.type
    zero = kind(0)
    i = 2 * layer + parity
    corner, g, order = _corners(spacing), np.empty(8), np.empty(4, np.int64)
    facets, best, inside = np.empty((12, 3, 3)), np.empty(8), np.empty(nz, np.int8)
    ii = min(i + 1, nx - 1)
    for j in range(cy):
        jj = min(j + 1, ny - 1)
        r0, r1, r2, r3 = field[i, j], field[i, jj], field[ii, j], field[ii, jj]
        for k in range(nz):
            inside[k] = (
                np.int8(r0[k] < zero) + np.int8(r1[k] < zero)
                + np.int8(r2[k] < zero) + np.int8(r3[k] < zero)
            )  # fmt: skip
        for k in range(cz):
            total = inside[k] + inside[min(k + 1, nz - 1)]
            if total == 0 or total == 8:
                continue
            _fill_cell(field, i, j, k, g)
            count = _facets(corner, g, paths, order, facets)
            for m in range(8):
                at = _point_of(field.shape, i, j, k, m)
                best[m] = float(phi[at]) ** 2 if pinned[at] else -1.0
            _nearest(corner, facets, count, best)
            for m in range(8):
                at = _point_of(field.shape, i, j, k, m)
                size = kind(np.sqrt(best[m]))
                if best[m] >= 0.0 and size < abs(phi[at]):
                    phi[at] = -size if field[at] < zero else size


@njit(cache=True)
def _facet_distances(field: Array, spacing: Array, paths: Array, phi: Array, pinned: Array) -> None:
    """Lower ``phi`` of pinned points, infinite at first, to their distances from the facets around them."""
    # A layer of cells shares points only with the layers beside it, so every other layer can run in parallel.
    for parity in range(2):
        _layer_distances(parity, field, spacing, paths, phi, pinned)


def facet_distances(field: Array, spacing: Array) -> tuple[Array, Array]:
    """Signed distances to the facets of ``field`` = 0 at the points beside it: (phi m, pinned bool).

    ``field`` (px, py, pz), any unit, negative inside; ``spacing`` (3,) m. A point is pinned if a neighbour
    along an axis is on the other side. The surface is nearer to it than that neighbour, so in a grid of cubes
    only the facets of the eight cells around matter, and the distance to the facets is exact. Its error as a
    distance to the smooth surface is of second order in the spacing. At all other points phi is the field, of
    which only the sign counts.
    """
    phi, pinned = np.empty_like(field), np.empty(field.shape, np.bool_)
    h = cell_widths(field.shape, spacing)
    _pin(field, phi, pinned)
    _facet_distances(field, h, TETRAHEDRA, phi, pinned)
    return phi, pinned


def cell_widths(shape: tuple[int, ...], spacing: Array, flat: float = 0.0) -> Array:
    """The spacing (3,) m, but along axes of one layer ``flat``, or if that is 0 the largest other spacing."""
    h = np.array(spacing, dtype=np.float64)
    single = np.array(shape[:3]) == 1
    h[single] = flat or (h[~single].max() if not single.all() else 1.0)
    return h


@njit(**INLINE_EXACT)
def _fraction_inside(g: Array, order: Array, inside: int) -> float:
    """Fraction of a tetrahedron's volume that is inside; ``order`` and ``inside`` as by `_sort_corners`."""
    if inside == 0 or inside == 4:
        return inside / 4.0
    if inside == 2:
        p, q, r, s = order[0], order[1], order[2], order[3]
        pr, ps = g[p] / (g[p] - g[r]), g[p] / (g[p] - g[s])
        qr, qs = g[q] / (g[q] - g[r]), g[q] / (g[q] - g[s])
        return qr * qs + pr * qs * (1.0 - qr) + pr * ps * (1.0 - qs)
    single, first = (order[0], 1) if inside == 1 else (order[3], 0)
    part = 1.0
    for m in range(first, first + 3):
        part *= g[single] / (g[single] - g[order[m]])
    return part if inside == 1 else 1.0 - part


@parallel("out.shape[0]", error_model="numpy")
def _enclosed(i: int, field: Array, spacing: Array, paths: Array, out: Array) -> None:
    """Fill row i of ``out`` (layers, 2) with volume, in cells, and area, m^2, in layer i of cells along x."""
    ny, nz = max(field.shape[1] - 1, 1), max(field.shape[2] - 1, 1)
    corner, g, order = _corners(spacing), np.empty(8), np.empty(4, np.int64)
    facets = np.empty((2, 3, 3))
    volume, area = 0.0, 0.0
    for j in range(ny):
        for k in range(nz):
            count = _fill_cell(field, i, j, k, g)
            if count == 8:
                volume += 1.0
            elif count > 0:
                for m in range(6):
                    inside, own = _sort_corners(g, paths[m], order), 0.0
                    for f in range(_tetrahedron_facets(corner, g, order, inside, facets)):
                        first = row_of(facets[f], 0)
                        u, v = minus(row_of(facets[f], 1), first), minus(row_of(facets[f], 2), first)
                        own += 0.5 * length(cross_of(u, v))
                    volume += _fraction_inside(g, order, inside) / 6.0
                    area += own
    out[i, 0], out[i, 1] = volume, area


def enclosed(field: Array, spacing: Array) -> tuple[float, float]:
    """Volume m^3 inside the facets (``field`` < 0) and area m^2 of the facets; both of second order.

    ``field`` (px, py, pz), ``spacing`` (3,) m. With a flat axis the results are in m^2 and m, per unit of
    depth. Where the surface leaves the grid it is open: no area is counted at the border.
    """
    h = cell_widths(field.shape, spacing, 1.0)
    out = np.empty((max(field.shape[0] - 1, 1), 2))
    _enclosed(field, h, TETRAHEDRA, out)
    volume, area = 0.0, 0.0
    for part, facet in out.tolist():
        volume, area = volume + part, area + facet
    return volume * float(np.prod(h)), area
