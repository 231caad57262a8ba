"""Gradient of what particles carry, from neighbours, such that its first two moments are exact.

With extensive values m_p (excess mass [kg]: excess density times volume) the result is G_q ~ V_q grad(m /
V)(x_q),

    G_q = - sum_p m_p V_q w_pq B_p (x_q - x_p - c_p),   w_pq = (1 - |x_q - x_p|^2 / h_pq^2)^2,

where c_p is the centroid of the neighbours of p, itself among them, weighted by V w, and B_p the inverse
of their second moments about it. It is the transpose of a moving least-squares gradient, and hence for
any arrangement

    sum_q G_q = 0   and   sum_q x_q (G_q . e) = - (sum_p m_p) e   for every direction e:

a cloud whose vorticity grows at the rate G x g / rho_0 keeps its total strength at zero, and its impulse
1/2 sum x cross alpha grows by exactly its weight, as in the continuum, even where the cloud ends without
particles around it. Where particles fill space evenly it is a second-order gradient. h_pq^2 is the mean
of both reaches squared.

A particle with too few neighbours, or with neighbours on a line or sheet only, cannot give its weight to
them by small strengths: there the least second moment is lifted to `FLOOR` of that of filled space, and
it gives less."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS, FAST
from ecs_fluid.kernels.grid import grid_for_radius
from ecs_fluid.kernels.neighbours import (
    GROUP,
    WIDTH,
    columns,
    fill_list,
    first_cell,
    group_end,
    runs_around,
    stacked,
)
from ecs_fluid.kernels.partition import gather_sorted, partition, scatter_sorted
from ecs_fluid.kernels.reduce import bounds
from ecs_fluid.kernels.vectors import wide_vectors

FLOOR = 0.02
"""Least second moment relative to filled space; in the corner of a block of particles it is still 0.045."""

CELL = 1.0
"""Edge of the stacks of cells in reaches: smaller ones leave out more pairs, but make smaller groups."""

_FILLED = {2: math.pi / 24.0, 3: 4.0 * math.pi / 3.0 * 8.0 / 315.0}
"""Second moment of w over filled space, int (1 - s^2)^2 s_x^2 over the unit disc or ball, over h^(d+2)."""


@njit(error_model="numpy", forceinline=True)
def _least_eigenvalue(a: float, b: float, c: float, d: float, e: float, f: float) -> float:
    """Of the symmetric matrix with the diagonal a, b, c and d = xy, e = xz, f = yz (Smith 1961)."""
    mean = (a + b + c) / 3.0
    a, b, c = a - mean, b - mean, c - mean
    square = (a * a + b * b + c * c + 2.0 * (d * d + e * e + f * f)) / 6.0
    if square <= 0.0:
        return mean
    det = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
    angle = 0.5 * det / (square * math.sqrt(square))
    return mean + 2.0 * math.sqrt(square) * math.cos(
        math.acos(min(max(angle, -1.0), 1.0)) / 3.0 + 2.0 * math.pi / 3.0
    )


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _exceeds(a: float, b: float, c: float, d: float, e: float, f: float, floor: float) -> bool:
    """Whether all eigenvalues of that matrix exceed ``floor``: Sylvester's criterion, without angles."""
    a, b, c = a - floor, b - floor, c - floor
    minor = a * b - d * d
    return a > 0.0 and minor > 0.0 and c * minor - a * f * f - b * e * e + 2.0 * d * e * f > 0.0


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _closeness(dx: float, dy: float, dz: float, inverse: float, one: float, zero: float) -> float:
    """(1 - d^2 / h_pq^2)^2, 0 beyond; ``inverse`` is 1 / h_pq^2."""
    t = one - (dx * dx + dy * dy + dz * dz) * inverse
    t = t if t > zero else zero
    return t * t


@njit(fastmath=FAST, error_model="numpy")
def _add_moments(
    near: np.ndarray, count: int, data: np.ndarray, p: int, end: int, uniform: bool, sums: np.ndarray
) -> None:
    """Moments 0, 1, 2 (xx, yy, zz, xy, xz, yz) of V w about the particles p:end, into ``sums`` (., 10).

    ``uniform``: all reaches are equal, which saves a division per pair.
    """
    wide_vectors()
    kind = near.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    for t in range(p, end):
        px, py, pz, hp = data[0, t], data[1, t], data[2, t], data[3, t]
        same = one / hp
        s = cx = cy = cz = xx = yy = zz = xy = xz = yz = zero
        for q in range(count):
            dx, dy, dz = near[q] - px, near[WIDTH + q] - py, near[2 * WIDTH + q] - pz
            inverse = same if uniform else two / (hp + near[3 * WIDTH + q])
            w = _closeness(dx, dy, dz, inverse, one, zero) * near[4 * WIDTH + q]
            wx, wy, wz = w * dx, w * dy, w * dz
            s += w
            cx += wx
            cy += wy
            cz += wz
            xx += wx * dx
            yy += wy * dy
            zz += wz * dz
            xy += wx * dy
            xz += wx * dz
            yz += wy * dz
        for c, more in enumerate((s, cx, cy, cz, xx, yy, zz, xy, xz, yz)):
            sums[t - p, c] += more


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _neighbour_moments(
    data: np.ndarray, values: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    cells: np.ndarray, reach: float, filled: float, flat: int, uniform: bool, moments: np.ndarray,
) -> None:  # fmt: skip
    """From the columns ``data`` x, y, z, h^2, V and the values m: ``moments`` (13, n), that is x, y, z, h^2,
    m_p B_p c_p (3 rows, c_p relative to the particle) and the six entries of m_p B_p."""
    n = values.shape[0]
    for chunk in prange(CHUNKS):
        p, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        if p == last:
            continue
        near, runs = np.empty(5 * WIDTH, data.dtype), np.empty((cells[0] * cells[1], 2), np.int64)
        sums = np.empty((GROUP, 10), data.dtype)
        inverse = np.empty(9, np.float64)
        cell = first_cell(p, start)
        while p < last:
            cell, end = group_end(p, last, start, cell)
            number = runs_around(data, p, end, start, origin, spacing, cells, reach, runs)
            sums[:] = 0.0
            run = 0
            while run < number:
                count, run = fill_list(data, runs, number, run, near)
                _add_moments(near, count, data, p, end, uniform, sums)
            for t in range(p, end):
                _inverse_moments(sums[t - p], np.float64(data[3, t]), filled, flat, inverse)
                for c in range(4):
                    moments[c, t] = data[c, t]
                for c in range(9):
                    moments[4 + c, t] = values[t] * inverse[c]
            p = end


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _inverse_moments(sums: np.ndarray, hp: float, filled: float, flat: int, out: np.ndarray) -> None:
    """B c and B from sums about the particle itself, into out (9,); in float64, for B may be large."""
    xx: float
    yy: float
    zz: float
    xy: float
    xz: float
    yz: float
    s, cx, cy, cz = np.float64(sums[0]), np.float64(sums[1]), np.float64(sums[2]), np.float64(sums[3])
    xx, yy, zz = np.float64(sums[4]), np.float64(sums[5]), np.float64(sums[6])
    xy, xz, yz = np.float64(sums[7]), np.float64(sums[8]), np.float64(sums[9])
    cx, cy, cz = cx / s, cy / s, cz / s
    xx, yy, zz = xx - s * cx * cx, yy - s * cy * cy, zz - s * cz * cz
    xy, xz, yz = xy - s * cx * cy, xz - s * cx * cz, yz - s * cy * cz
    full = filled * hp * hp * (1.0 if flat >= 0 else math.sqrt(hp))
    # Across a flat population nothing is known and nothing is asked: any value there is invertible.
    if flat == 0:
        xx, xy, xz = full, 0.0, 0.0
    elif flat == 1:
        yy, xy, yz = full, 0.0, 0.0
    elif flat == 2:
        zz, xz, yz = full, 0.0, 0.0
    if not _exceeds(xx, yy, zz, xy, xz, yz, FLOOR * full):
        lift = FLOOR * full - _least_eigenvalue(xx, yy, zz, xy, xz, yz)
        xx, yy, zz = xx + lift, yy + lift, zz + lift
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = 1.0 / (xx * a + xy * b + xz * c)
    bxx, byy, bzz = det * a, det * (xx * zz - xz * xz), det * (xx * yy - xy * xy)
    bxy, bxz, byz = det * b, det * c, det * (xy * xz - xx * yz)
    out[0] = bxx * cx + bxy * cy + bxz * cz
    out[1] = bxy * cx + byy * cy + byz * cz
    out[2] = bxz * cx + byz * cy + bzz * cz
    out[3], out[4], out[5], out[6], out[7], out[8] = bxx, byy, bzz, bxy, bxz, byz


@njit(fastmath=FAST, error_model="numpy")
def _add_gradient(
    near: np.ndarray, count: int, data: np.ndarray, q: int, end: int, uniform: bool, sums: np.ndarray
) -> None:
    """What the particles q:end get from a list, G / V, added to ``sums`` (., 3)."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    for t in range(q, end):
        px, py, pz, hq = data[0, t], data[1, t], data[2, t], data[3, t]
        same = one / hq
        gx = gy = gz = zero
        for p in range(count):
            dx, dy, dz = px - near[p], py - near[WIDTH + p], pz - near[2 * WIDTH + p]
            inverse = same if uniform else two / (hq + near[3 * WIDTH + p])
            w = _closeness(dx, dy, dz, inverse, one, zero)
            xy, xz, yz = near[10 * WIDTH + p], near[11 * WIDTH + p], near[12 * WIDTH + p]
            gx += w * (near[4 * WIDTH + p] - near[7 * WIDTH + p] * dx - xy * dy - xz * dz)
            gy += w * (near[5 * WIDTH + p] - xy * dx - near[8 * WIDTH + p] * dy - yz * dz)
            gz += w * (near[6 * WIDTH + p] - xz * dx - yz * dy - near[9 * WIDTH + p] * dz)
        sums[t - q, 0] += gx
        sums[t - q, 1] += gy
        sums[t - q, 2] += gz


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _weighted_gradient(
    moments: np.ndarray, volume: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    cells: np.ndarray, reach: float, uniform: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """G (3, n) from the ``moments`` of ``_neighbour_moments``, in which it is linear."""
    n = volume.shape[0]
    for chunk in prange(CHUNKS):
        p, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        if p == last:
            continue
        near, runs = np.empty(13 * WIDTH, moments.dtype), np.empty((cells[0] * cells[1], 2), np.int64)
        sums = np.empty((GROUP, 3), moments.dtype)
        cell = first_cell(p, start)
        while p < last:
            cell, end = group_end(p, last, start, cell)
            number = runs_around(moments, p, end, start, origin, spacing, cells, reach, runs)
            sums[:] = 0.0
            run = 0
            while run < number:
                count, run = fill_list(moments, runs, number, run, near)
                _add_gradient(near, count, moments, p, end, uniform, sums)
            for t in range(p, end):
                for c in range(3):
                    out[c, t] = volume[t] * sums[t - p, c]
            p = end


def weighted_gradient(
    x: np.ndarray, values: np.ndarray, reach: np.ndarray, volume: np.ndarray, flat: int = -1
) -> np.ndarray:
    """G (n, 3): volume times gradient of values per volume, with exact moments (see above).

    ``x`` (n, 3) m, ``values`` (n,) extensive (kg, say), ``reach`` (n,) m: distance at which neighbours
    end, some two to three spacings; ``volume`` (n,) m^3. ``flat`` 0, 1 or 2 names the axis across a
    population in one plane, whose volumes are areas; its G has no part along it. Unit of values per m.
    """
    out = np.empty_like(x)
    if len(x) == 0:
        return out
    far = float(reach.max())
    grid = stacked(*grid_for_radius(*bounds(x), far * CELL, max_cells=max(len(x), 64)))
    start, order = partition(x, *grid)
    v = gather_sorted(volume, order)
    data = columns(gather_sorted(x, order), gather_sorted(reach * reach, order), v)
    moments = np.zeros((13, data.shape[1]), x.dtype)
    # A little further than the reach, so that a pair at its end is met from both sides or from neither.
    far *= 1.0 + 1e-5
    filled, uniform = _FILLED[3 if flat < 0 else 2], bool(reach.min() == reach.max())
    _neighbour_moments(data, gather_sorted(values, order), start, *grid, far, filled, flat, uniform, moments)
    result = np.empty((3, len(x)), x.dtype)
    _weighted_gradient(moments, v, start, *grid, far, uniform, result)
    return scatter_sorted(result, order, out)
