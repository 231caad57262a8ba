"""The surface of a sampled field, cut into facets: distances to it, its area, and the volume it encloses.

A field g (px, py, pz) on a uniform grid is negative inside. Every cell is cut into six tetrahedra around the
diagonal from its lower to its upper corner (Kuhn), in which g is linear, so the surface g = 0 is flat in each
of them: one triangle, or two. Neighbouring cells cut their common face alike, so the surface has no gaps. A
flat axis (one layer of points) counts as one cell along which nothing changes: Kuhn's tetrahedra then cut the
plane into triangles, and distances, lengths (area per depth) and areas (volume per depth) are the plane's.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.compiled import Array

PATHS = np.array([[1, 3, 7], [1, 5, 7], [2, 3, 7], [2, 6, 7], [4, 5, 7], [4, 6, 7]], dtype=np.int64)
"""Corners of the six tetrahedra beside corner 0; corner 4 a + 2 b + c has the offsets a, b, c."""


@njit(forceinline=True, error_model="numpy")
def _to_segment(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    """Squared distance of the origin from the segment a b."""
    d0, d1, d2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    along, length = -(a[0] * d0 + a[1] * d1 + a[2] * d2), d0 * d0 + d1 * d1 + d2 * d2
    t = along / length if length > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    x, y, z = a[0] + t * d0, a[1] + t * d1, a[2] + t * d2
    return x * x + y * y + z * z


@njit(forceinline=True)
def _cross(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(forceinline=True, error_model="numpy")
def _to_triangle(
    a: tuple[float, float, float],
    u: tuple[float, float, float],
    v: tuple[float, float, float],
    n: tuple[float, float, float],
    nn: float,
    best: float,
) -> float:
    """Smaller of ``best`` and the squared distance of the origin from a triangle (or segment, or point).

    The triangle is a, a + u, a + v, and n = u x v with the square nn.
    """
    height = a[0] * n[0] + a[1] * n[1] + a[2] * n[2]
    square = height * height
    # No point of a triangle is nearer than its plane.
    if square >= best * nn and nn > 0.0:
        return best
    b, c = (a[0] + u[0], a[1] + u[1], a[2] + u[2]), (a[0] + v[0], a[1] + v[1], a[2] + v[2])
    if nn == 0.0:
        return min(min(best, _to_segment(a, b)), min(_to_segment(b, c), _to_segment(c, a)))
    # Barycentric coordinates of the foot point, times nn; one below 0 says that it lies beyond an edge.
    p, q = _cross(u, a), _cross(a, v)
    wc = -(p[0] * n[0] + p[1] * n[1] + p[2] * n[2])
    wb = -(q[0] * n[0] + q[1] * n[1] + q[2] * n[2])
    wa = nn - wb - wc
    if wa >= 0.0 and wb >= 0.0 and wc >= 0.0:
        return square / nn
    # The nearest point is on an edge beyond which the foot lies, and no nearer than that edge's line.
    if wc < 0.0 and square * _square(u) + wc * wc < best * nn * _square(u):
        best = min(best, _to_segment(a, b))
    if wb < 0.0 and square * _square(v) + wb * wb < best * nn * _square(v):
        best = min(best, _to_segment(c, a))
    if wa < 0.0:
        w = (v[0] - u[0], v[1] - u[1], v[2] - u[2])
        if square * _square(w) + wa * wa < best * nn * _square(w):
            best = min(best, _to_segment(b, c))
    return best


@njit(forceinline=True)
def _square(a: tuple[float, float, float]) -> float:
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]


@njit(forceinline=True, error_model="numpy")
def _between(corner: Array, g: Array, p: int, q: int) -> tuple[float, float, float]:
    """Where g is zero between the corners p and q."""
    t = g[p] / (g[p] - g[q])
    return (
        corner[p, 0] + t * (corner[q, 0] - corner[p, 0]),
        corner[p, 1] + t * (corner[q, 1] - corner[p, 1]),
        corner[p, 2] + t * (corner[q, 2] - corner[p, 2]),
    )


@njit(forceinline=True)
def _sides(g: Array, path: Array, order: Array) -> int:
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


@njit(forceinline=True, error_model="numpy")
def _facet(
    a: tuple[float, float, float], b: tuple[float, float, float], c: tuple[float, float, float], out: Array
) -> None:
    """A facet into ``out`` (9,)."""
    out[0], out[1], out[2] = a
    out[3], out[4], out[5] = b
    out[6], out[7], out[8] = c


@njit(forceinline=True, error_model="numpy")
def _facets(corner: Array, g: Array, paths: Array, order: Array, out: Array) -> int:
    """Corners of the facets of one cell into ``out`` (12, 9); returns how many facets there are."""
    count, signs = 0, 0
    for m in range(8):
        signs |= (1 if g[m] < 0.0 else 0) << m
    for tetrahedron in range(6):
        path = paths[tetrahedron]
        own = 1 | (1 << path[0]) | (1 << path[1]) | (1 << path[2])
        if signs & own == 0 or signs & own == own:
            continue
        inside = _sides(g, path, order)
        if inside == 1 or inside == 3:
            s = order[0] if inside == 1 else order[3]
            r = 1 if inside == 1 else 0
            a, b = _between(corner, g, s, order[r]), _between(corner, g, s, order[r + 1])
            _facet(a, b, _between(corner, g, s, order[r + 2]), out[count])
            count += 1
        elif inside == 2:
            a, b = _between(corner, g, order[0], order[2]), _between(corner, g, order[0], order[3])
            c, d = _between(corner, g, order[1], order[3]), _between(corner, g, order[1], order[2])
            _facet(a, b, c, out[count])
            _facet(a, c, d, out[count + 1])
            count += 2
    return count


@njit(forceinline=True, error_model="numpy")
def _nearest(corner: Array, facets: Array, count: int, best: Array) -> None:
    """Lower ``best`` (8,), squared distances of a cell's corners, to those from facets; < 0 stays."""
    for f in range(count):
        t = facets[f]
        u, v = (t[3] - t[0], t[4] - t[1], t[5] - t[2]), (t[6] - t[0], t[7] - t[1], t[8] - t[2])
        n = _cross(u, v)
        nn = _square(n)
        for m in range(8):
            if best[m] > 0.0:
                a = (t[0] - corner[m, 0], t[1] - corner[m, 1], t[2] - corner[m, 2])
                best[m] = _to_triangle(a, u, v, n, nn, best[m])


@njit(forceinline=True)
def _fill_cell(field: Array, i: int, j: int, k: int, g: Array) -> int:
    """Values at the eight corners of the cell (i, j, k) into ``g``; returns how many are negative.

    Along an axis with one layer of points both corners are that layer.
    """
    nx, ny, nz = field.shape
    count = 0
    for m in range(8):
        a, b, c = i + (m >> 2), j + ((m >> 1) & 1), k + (m & 1)
        a, b, c = (0 if nx == 1 else a), (0 if ny == 1 else b), (0 if nz == 1 else c)
        value = field[a, b, c]
        g[m] = value
        count += 1 if value < 0 else 0
    return count


@njit(parallel=True, cache=True)
def _pin(field: Array, phi: Array, pinned: Array) -> None:
    """Which points have a neighbour on the other side; their ``phi`` is infinite, that of others the field.

    In loops over single rows without a branch, which become vectors.
    """
    nx, ny, nz = field.shape
    kind = field.dtype.type
    zero, far = kind(0), kind(np.inf)
    for i in prange(nx):
        for j in range(ny):
            here, held, out = field[i, j], pinned[i, j], phi[i, j]
            back, front = field[max(i - 1, 0), j], field[min(i + 1, nx - 1), j]
            left, right = field[i, max(j - 1, 0)], field[i, min(j + 1, ny - 1)]
            for k in range(nz):
                side = here[k] < zero
                held[k] = ((back[k] < zero) != side) | ((front[k] < zero) != side)
            for k in range(nz):
                side = here[k] < zero
                held[k] = held[k] | ((left[k] < zero) != side) | ((right[k] < zero) != side)
            for k in range(1, nz):
                held[k] = held[k] | ((here[k - 1] < zero) != (here[k] < zero))
            for k in range(nz - 1):
                held[k] = held[k] | ((here[k + 1] < zero) != (here[k] < zero))
            for k in range(nz):
                out[k] = (-far if here[k] < zero else far) if held[k] else here[k]


@njit(parallel=True, cache=True, error_model="numpy")
def _facet_distances(field: Array, spacing: Array, paths: Array, phi: Array, pinned: Array) -> None:
    """Distances of pinned points to the facets of the cells around, where ``phi`` is infinite at first."""
    nx, ny, nz = field.shape
    cx, cy, cz = max(nx - 1, 1), max(ny - 1, 1), max(nz - 1, 1)
    kind = field.dtype.type
    zero = kind(0)
    # Layers of cells share points with the next layer only.
    for parity in range(2):
        for layer in prange((cx + 1 - parity) // 2):
            i = 2 * layer + parity
            corner, g, order = np.empty((8, 3)), np.empty(8), np.empty(4, np.int64)
            facets, best, inside = np.empty((12, 9)), np.empty(8), np.empty(nz, np.int8)
            for n in range(8):
                corner[n, 0], corner[n, 1] = (n >> 2) * spacing[0], ((n >> 1) & 1) * spacing[1]
                corner[n, 2] = (n & 1) * spacing[2]
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
                    for n in range(8):
                        a, b, c = (
                            min(i + (n >> 2), nx - 1),
                            min(j + ((n >> 1) & 1), ny - 1),
                            min(k + (n & 1), nz - 1),
                        )
                        best[n] = float(phi[a, b, c]) ** 2 if pinned[a, b, c] else -1.0
                    _nearest(corner, facets, count, best)
                    for n in range(8):
                        a, b, c = (
                            min(i + (n >> 2), nx - 1),
                            min(j + ((n >> 1) & 1), ny - 1),
                            min(k + (n & 1), nz - 1),
                        )
                        size = kind(np.sqrt(best[n]))
                        if best[n] >= 0.0 and size < abs(phi[a, b, c]):
                            phi[a, b, c] = -size if field[a, b, c] < zero else size


def facet_distances(field: Array, spacing: Array) -> tuple[Array, Array]:
    """Signed distances to the facets of ``field`` = 0 at the points beside it: (phi m, pinned bool).

    ``field`` (px, py, pz), any unit, negative inside; ``spacing`` (3,) m. Pinned are the points that have a
    neighbour along an axis on the other side. The surface is nearer to them than that neighbour, so in a grid
    of cubes the facets of the eight cells around are all that matter and the distance to the facets is exact;
    that to the smooth surface behind them is of second order in the spacing. Elsewhere phi is the field: its
    sign counts.
    """
    phi, pinned = np.empty_like(field), np.empty(field.shape, np.bool_)
    h = depths(field, spacing, 0.0)
    _pin(field, phi, pinned)
    _facet_distances(field, h, PATHS, phi, pinned)
    return phi, pinned


def depths(field: Array, spacing: Array, flat: float) -> Array:
    """The spacing (3,) m, with ``flat`` (or, for 0, that of the widest cells) along axes of one layer."""
    h = np.array(spacing, dtype=np.float64)
    single = np.array(field.shape) == 1
    h[single] = flat or (h[~single].max() if not single.all() else 1.0)
    return h


@njit(forceinline=True, error_model="numpy")
def _tetrahedron(corner: Array, g: Array, path: Array, order: Array) -> tuple[float, float]:
    """Part of a tetrahedron that is inside, and the area of its facet."""
    inside = _sides(g, path, order)
    if inside == 0 or inside == 4:
        return inside / 4.0, 0.0
    if inside == 2:
        p, q, r, s = order[0], order[1], order[2], order[3]
        pr, ps = g[p] / (g[p] - g[r]), g[p] / (g[p] - g[s])
        qr, qs = g[q] / (g[q] - g[r]), g[q] / (g[q] - g[s])
        a, b = _between(corner, g, p, r), _between(corner, g, p, s)
        c, d = _between(corner, g, q, s), _between(corner, g, q, r)
        return qr * qs + pr * qs * (1.0 - qr) + pr * ps * (1.0 - qs), _area(a, b, c) + _area(a, c, d)
    s = order[0] if inside == 1 else order[3]
    first = 1 if inside == 1 else 0
    part = 1.0
    for m in range(first, first + 3):
        part *= g[s] / (g[s] - g[order[m]])
    a, b = _between(corner, g, s, order[first]), _between(corner, g, s, order[first + 1])
    return (part if inside == 1 else 1.0 - part), _area(a, b, _between(corner, g, s, order[first + 2]))


@njit(forceinline=True)
def _area(
    a: tuple[float, float, float], b: tuple[float, float, float], c: tuple[float, float, float]
) -> float:
    n = _cross((b[0] - a[0], b[1] - a[1], b[2] - a[2]), (c[0] - a[0], c[1] - a[1], c[2] - a[2]))
    return 0.5 * np.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])


@njit(parallel=True, cache=True, error_model="numpy")
def _enclosed(field: Array, spacing: Array, paths: Array, out: Array) -> None:
    """Volume in cells and area in m^2 of every layer of cells along the first axis, into ``out`` (nx, 2)."""
    ny, nz = max(field.shape[1] - 1, 1), max(field.shape[2] - 1, 1)
    for i in prange(out.shape[0]):
        corner, g, order = np.empty((8, 3)), np.empty(8), np.empty(4, np.int64)
        for n in range(8):
            corner[n, 0], corner[n, 1] = (n >> 2) * spacing[0], ((n >> 1) & 1) * spacing[1]
            corner[n, 2] = (n & 1) * spacing[2]
        volume, area = 0.0, 0.0
        for j in range(ny):
            for k in range(nz):
                count = _fill_cell(field, i, j, k, g)
                if count == 8:
                    volume += 1.0
                elif count > 0:
                    for m in range(6):
                        part, facet = _tetrahedron(corner, g, paths[m], order)
                        volume += part / 6.0
                        area += facet
        out[i, 0], out[i, 1] = volume, area


def enclosed(field: Array, spacing: Array) -> tuple[float, float]:
    """Volume m^3 inside (``field`` < 0) and area m^2 of the surface, of the facets; both of second order.

    ``field`` (px, py, pz), ``spacing`` (3,) m. With a flat axis they are m^2 and m, per unit of depth. The
    surface is open where it leaves the grid: no area is counted there.
    """
    h = depths(field, spacing, 1.0)
    out = np.empty((max(field.shape[0] - 1, 1), 2))
    _enclosed(field, h, PATHS, out)
    volume, area = 0.0, 0.0
    for part, facet in out.tolist():
        volume, area = volume + part, area + facet
    return volume * float(np.prod(h)), area
