"""Moments of the neighbours of each particle, in vectors with one particle per lane.

A neighbour q of p has the weight V_q w_pq, with w_pq = (1 - |x_p - x_q|^2 / h_pq^2)^2 and h_pq^2 the mean of
the squares of both reaches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, larger, load, spread, store
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, wide_vectors

FLOOR = 0.02
"""Lower bound of the mean square extent of neighbours along any axis, over that in filled space; in the
corner of a block of particles it is still a third or more."""

CELL_EDGE = 1.0
"""Edge of the cells of the neighbour search, in reaches: smaller cells visit fewer pairs, but make smaller
groups."""


@njit(error_model="numpy", forceinline=True)
def _least_eigenvalue(a: float, b: float, c: float, d: float, e: float, f: float) -> float:
    """Least eigenvalue of a symmetric matrix: diagonal a, b, c and d = xy, e = xz, f = yz (Smith 1961)."""
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
    """Whether all eigenvalues of the same matrix exceed ``floor``, by Sylvester's criterion (no angles)."""
    a, b, c = a - floor, b - floor, c - floor
    minor = a * b - d * d
    return a > 0.0 and minor > 0.0 and c * minor - a * f * f - b * e * e + 2.0 * d * e * f > 0.0


@njit(**INLINE)
def closeness(dx: Any, dy: Any, dz: Any, inverse: Any, one: Any, zero: Any) -> Any:
    """The weight w_pq = (1 - d^2 / h_pq^2)^2, 0 beyond the reach; ``inverse`` is 1 / h_pq^2."""
    t = larger(one - (dx * dx + dy * dy + dz * dz) * inverse, zero)
    return t * t


@njit(fastmath=FAST, error_model="numpy")
def add_moments(
    rows: np.ndarray, runs: np.ndarray, number: int, targets: np.ndarray, uniform: bool, sums: np.ndarray
) -> None:
    """Write the moments 0, 1 and 2 (xx, yy, zz, xy, xz, yz) of V w about one target per lane into ``sums``.

    ``rows`` are x, y, z, h^2, V, and ``runs`` the first ``number`` ranges of rows that are neighbours. With
    ``uniform`` all reaches are equal, which saves a division per pair.
    """
    wide_vectors()
    kind, width = rows.dtype.type, lanes_of(rows)
    zero, one, two = spread(kind(0)), spread(kind(1)), spread(kind(2))
    px, py, pz = load(targets, 0), load(targets, width), load(targets, 2 * width)
    hp = load(targets, 3 * width)
    inverse = one / hp
    s = cx = cy = cz = xx = yy = zz = xy = xz = yz = zero
    for run in range(number):
        for q in range(runs[run, 0], runs[run, 1]):
            dx, dy, dz = spread(rows[q, 0]) - px, spread(rows[q, 1]) - py, spread(rows[q, 2]) - pz
            if not uniform:
                inverse = two / (hp + spread(rows[q, 3]))
            w = closeness(dx, dy, dz, inverse, one, zero) * spread(rows[q, 4])
            wx, wy, wz = w * dx, w * dy, w * dz
            s, cx, cy, cz = s + w, cx + wx, cy + wy, cz + wz
            xx, yy, zz = xx + wx * dx, yy + wy * dy, zz + wz * dz
            xy, xz, yz = xy + wx * dy, xz + wx * dz, yz + wy * dz
    for c, value in enumerate((s, cx, cy, cz, xx, yy, zz, xy, xz, yz)):
        store(sums, c * width, value)


@njit(forceinline=True)
def moment_of_lane(sums: np.ndarray, lane: int, row: int) -> float:
    """Moment ``row`` of the target in ``lane``, in double precision."""
    return np.float64(sums[row * lanes_of(sums) + lane])


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def inverse_moments(sums: np.ndarray, lane: int, hp: float, flat: int, out: np.ndarray) -> None:
    """Fill ``out`` (9,) with B c (3) and the six entries of B, from the sums of ``lane`` about its particle.

    ``hp`` is the square of the particle's reach, ``flat`` the axis across a flat population, or -1. In
    float64, since B may be large.
    """
    s = moment_of_lane(sums, lane, 0)
    cx = moment_of_lane(sums, lane, 1) / s
    cy = moment_of_lane(sums, lane, 2) / s
    cz = moment_of_lane(sums, lane, 3) / s
    xx, yy, zz = moment_of_lane(sums, lane, 4), moment_of_lane(sums, lane, 5), moment_of_lane(sums, lane, 6)
    xy, xz, yz = moment_of_lane(sums, lane, 7), moment_of_lane(sums, lane, 8), moment_of_lane(sums, lane, 9)
    xx, yy, zz = xx - s * cx * cx, yy - s * cy * cy, zz - s * cz * cz
    xy, xz, yz = xy - s * cx * cy, xz - s * cx * cz, yz - s * cy * cz
    # In filled space: h^2/(d + 6) is the mean of s_x^2 over the unit disc or ball, weighted by (1 - s^2)^2.
    full = s * hp / (8.0 if flat >= 0 else 9.0)
    # Across a flat population there is no gradient to find. Any value that keeps the matrix invertible will
    # do.
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
