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
from ecs_fluid.kernels.partition import axis_cell, gap, gather_sorted, partition, scatter_sorted
from ecs_fluid.kernels.reduce import bounds

FLOOR = 0.02
"""Least second moment relative to filled space; in the corner of a block of particles it is still 0.045."""

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
def _closeness(dx: float, dy: float, dz: float, two: float, both: float, one: float, zero: float) -> float:
    """(1 - d^2 / h_pq^2)^2, 0 beyond; ``both`` is h_p^2 + h_q^2."""
    t = one - (dx * dx + dy * dy + dz * dz) * (two / both)
    t = t if t > zero else zero
    return t * t


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _neighbour_moments(
    sx: np.ndarray, h2: np.ndarray, volume: np.ndarray, start: np.ndarray, origin: np.ndarray,
    spacing: np.ndarray, cells: np.ndarray, reach: float, filled: float, flat: int, moments: np.ndarray,
) -> None:  # fmt: skip
    """moments (9, n): the centroid c_p relative to the particle, and the six entries of B_p."""
    n = sx.shape[1]
    kind = sx.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    nx, ny, nz = cells[0], cells[1], cells[2]
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for chunk in prange(CHUNKS):
        for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            px, py, pz, hp = sx[0, p], sx[1, p], sx[2, p], h2[p]
            s = cx = cy = cz = xx = yy = zz = xy = xz = yz = zero
            i1, j1 = axis_cell(px + reach, origin[0], inv0, nx), axis_cell(py + reach, origin[1], inv1, ny)
            for i in range(axis_cell(px - reach, origin[0], inv0, nx), i1 + 1):
                gx = gap(px, origin[0], spacing[0], i, nx)
                for j in range(axis_cell(py - reach, origin[1], inv1, ny), j1 + 1):
                    gy = gap(py, origin[1], spacing[1], j, ny)
                    left = reach * reach - gx * gx - gy * gy
                    if left < 0.0:
                        continue
                    half = math.sqrt(left)
                    row = (i * ny + j) * nz
                    first = start[row + axis_cell(pz - half, origin[2], inv2, nz)]
                    last = start[row + axis_cell(pz + half, origin[2], inv2, nz) + 1]
                    x, y, z = sx[0, first:last], sx[1, first:last], sx[2, first:last]
                    v, e = volume[first:last], h2[first:last]
                    for q in range(x.shape[0]):
                        dx, dy, dz = x[q] - px, y[q] - py, z[q] - pz
                        w = _closeness(dx, dy, dz, two, hp + e[q], one, zero) * v[q]
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
            _inverse_moments(
                np.float64(s), np.float64(cx), np.float64(cy), np.float64(cz), np.float64(xx), np.float64(yy),
                np.float64(zz), np.float64(xy), np.float64(xz), np.float64(yz), np.float64(hp), filled, flat,
                moments[:, p],
            )  # fmt: skip


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _inverse_moments(
    s: float, cx: float, cy: float, cz: float, xx: float, yy: float, zz: float, xy: float, xz: float,
    yz: float, hp: float, filled: float, flat: int, out: np.ndarray,
) -> None:  # fmt: skip
    """Centroid and inverse second moments about it from sums about the particle itself, into out (9,)."""
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
    lift = FLOOR * full - _least_eigenvalue(xx, yy, zz, xy, xz, yz)
    if lift > 0.0:
        xx, yy, zz = xx + lift, yy + lift, zz + lift
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = 1.0 / (xx * a + xy * b + xz * c)
    out[0], out[1], out[2] = cx, cy, cz
    out[3], out[4], out[5] = det * a, det * (xx * zz - xz * xz), det * (xx * yy - xy * xy)
    out[6], out[7], out[8] = det * b, det * c, det * (xy * xz - xx * yz)


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _weighted_gradient(
    sx: np.ndarray, h2: np.ndarray, volume: np.ndarray, start: np.ndarray, origin: np.ndarray,
    spacing: np.ndarray, cells: np.ndarray, reach: float, moments: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """``moments`` rows 3 to 8 are m_p B_p, rows 0 to 2 are m_p B_p c_p: G_q is linear in them."""
    n = sx.shape[1]
    kind = sx.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    nx, ny, nz = cells[0], cells[1], cells[2]
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for chunk in prange(CHUNKS):
        for q in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            px, py, pz, hq = sx[0, q], sx[1, q], sx[2, q], h2[q]
            gx = gy = gz = zero
            i1, j1 = axis_cell(px + reach, origin[0], inv0, nx), axis_cell(py + reach, origin[1], inv1, ny)
            for i in range(axis_cell(px - reach, origin[0], inv0, nx), i1 + 1):
                ex = gap(px, origin[0], spacing[0], i, nx)
                for j in range(axis_cell(py - reach, origin[1], inv1, ny), j1 + 1):
                    ey = gap(py, origin[1], spacing[1], j, ny)
                    left = reach * reach - ex * ex - ey * ey
                    if left < 0.0:
                        continue
                    half = math.sqrt(left)
                    row = (i * ny + j) * nz
                    first = start[row + axis_cell(pz - half, origin[2], inv2, nz)]
                    last = start[row + axis_cell(pz + half, origin[2], inv2, nz) + 1]
                    x, y, z, e = sx[0, first:last], sx[1, first:last], sx[2, first:last], h2[first:last]
                    cx, cy, cz = moments[0, first:last], moments[1, first:last], moments[2, first:last]
                    xx, yy, zz = moments[3, first:last], moments[4, first:last], moments[5, first:last]
                    xy, xz, yz = moments[6, first:last], moments[7, first:last], moments[8, first:last]
                    for p in range(x.shape[0]):
                        dx, dy, dz = px - x[p], py - y[p], pz - z[p]
                        w = _closeness(dx, dy, dz, two, hq + e[p], one, zero)
                        gx += w * (cx[p] - xx[p] * dx - xy[p] * dy - xz[p] * dz)
                        gy += w * (cy[p] - xy[p] * dx - yy[p] * dy - yz[p] * dz)
                        gz += w * (cz[p] - xz[p] * dx - yz[p] * dy - zz[p] * dz)
            out[0, q], out[1, q], out[2, q] = volume[q] * gx, volume[q] * gy, volume[q] * gz


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
    # Longer runs of sources pay more than the corners that smaller cells would leave out: 8 ms, not 15.
    grid = grid_for_radius(*bounds(x), far, max_cells=max(len(x), 64))
    start, order = partition(x, *grid)
    sx, h2 = gather_sorted(x, order), gather_sorted(reach * reach, order)
    v, m = gather_sorted(volume, order), gather_sorted(values, order)
    moments = np.empty((9, len(x)))
    filled = _FILLED[3 if flat < 0 else 2]
    # A little further than the reach, so that a pair at its end is met from both sides or from neither.
    far *= 1.0 + 1e-5
    _neighbour_moments(sx, h2, v, start, *grid, far, filled, flat, moments)
    cx, cy, cz, xx, yy, zz, xy, xz, yz = moments
    moments[:3] = xx * cx + xy * cy + xz * cz, xy * cx + yy * cy + yz * cz, xz * cx + yz * cy + zz * cz
    moments *= m
    result = np.empty_like(sx)
    _weighted_gradient(sx, h2, v, start, *grid, far, moments.astype(x.dtype), result)
    return scatter_sorted(result, order, out)
