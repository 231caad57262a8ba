"""Between particles and grid points by Monaghan's M4', which keeps three moments where the linear one
keeps two.

M4'(s) = 1 - 5/2 s^2 + 3/2 s^3 for s < 1, (2 - s)^2 (1 - s) / 2 for 1 <= s < 2, with s the distance from
the particle to a grid point in spacings; the weight of a point is the product over the axes. The weights
of the 4^3 points sum to one, and so do their first and second moments to those of a point at the
particle, so smooth fields are passed on with third-order accuracy. Some weights are negative: M4' may
overshoot at jumps, the linear one not. At the faces of the grid the points that are missing give their
weight to the last one, so totals stay. Source: Monaghan, J. Comput. Phys. 60 (1985). Point fields have
the shape (nx+1, ny+1, nz+1, m), C order."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS, FAST
from ecs_fluid.kernels.partition import axis_cell, view_as


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _weights(f: float, w: np.ndarray) -> None:
    """Weights of the points -1, 0, 1, 2 for a particle at the fraction f between the points 0 and 1."""
    kind = w.dtype.type
    one, half = kind(1), kind(0.5)
    g = one - f
    w[0] = -half * f * g * g
    w[1] = one - kind(2.5) * f * f + kind(1.5) * f * f * f
    w[2] = one - kind(2.5) * g * g + kind(1.5) * g * g * g
    w[3] = -half * g * f * f


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _axis(x: float, origin: float, inverse: float, cells: int, w: np.ndarray, at: np.ndarray) -> None:
    """Weights and the four point indices along one axis, the missing ones folded onto the last point."""
    cell = axis_cell(x, origin, inverse, cells)
    f = (x - origin) * inverse - cell
    _weights(w.dtype.type(min(max(f, 0.0), 1.0)), w)
    for tap in range(4):
        at[tap] = min(max(cell - 1 + tap, 0), cells)


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _scatter_smooth(
    sx: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
    origin: np.ndarray,
    spacing: np.ndarray,
    out: np.ndarray,
) -> None:
    """A row of cells (i, j) writes to the points i-1 to i+2; rows four apart share none: sixteen colours."""
    m = values.shape[0]
    nx, ny, nz = out.shape[0] - 1, out.shape[1] - 1, out.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for colour in range(16):
        i_first, j_first = colour // 4, colour % 4
        i_count, j_count = (nx - i_first + 3) // 4, (ny - j_first + 3) // 4
        for task in prange(i_count * j_count):
            w = np.empty((3, 4), out.dtype)
            at = np.empty((3, 4), np.int64)
            cell = ((i_first + 4 * (task // j_count)) * ny + j_first + 4 * (task % j_count)) * nz
            for p in range(start[cell], start[cell + nz]):
                _axis(sx[0, p], origin[0], inv0, nx, w[0], at[0])
                _axis(sx[1, p], origin[1], inv1, ny, w[1], at[1])
                _axis(sx[2, p], origin[2], inv2, nz, w[2], at[2])
                for a in range(4):
                    for b in range(4):
                        row, wab = out[at[0, a], at[1, b]], w[0, a] * w[1, b]
                        for d in range(4):
                            here, share = row[at[2, d]], wab * w[2, d]
                            for c in range(m):
                                here[c] += share * values[c, p]


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def _interpolate_smooth(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray, out: np.ndarray
) -> None:
    n, m = out.shape
    nx, ny, nz = field.shape[0] - 1, field.shape[1] - 1, field.shape[2] - 1
    inv0, inv1, inv2 = 1.0 / spacing[0], 1.0 / spacing[1], 1.0 / spacing[2]
    for chunk in prange(CHUNKS):
        w = np.empty((3, 4), field.dtype)
        at = np.empty((3, 4), np.int64)
        for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            _axis(x[p, 0], origin[0], inv0, nx, w[0], at[0])
            _axis(x[p, 1], origin[1], inv1, ny, w[1], at[1])
            _axis(x[p, 2], origin[2], inv2, nz, w[2], at[2])
            for c in range(m):
                out[p, c] = 0
            for a in range(4):
                for b in range(4):
                    row, wab = field[at[0, a], at[1, b]], w[0, a] * w[1, b]
                    for d in range(4):
                        here, share = row[at[2, d]], wab * w[2, d]
                        for c in range(m):
                            out[p, c] += share * here[c]


def scatter_smooth(
    sx: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
    origin: np.ndarray,
    spacing: np.ndarray,
    cells: np.ndarray,
) -> np.ndarray:
    """Share each row's values among the 64 points around it: out[point] = sum_p w_p(point) values_p.

    ``sx`` (3, n) m and ``values`` (m, n), sorted by cell with ``start`` (ncells + 1,) as ``partition``
    made it for this same grid. Returns (nx+1, ny+1, nz+1, m) in the dtype and unit of ``values``; totals
    are kept.
    """
    shape = (int(cells[0]) + 1, int(cells[1]) + 1, int(cells[2]) + 1, len(values))
    out = np.zeros(shape, values.dtype)
    _scatter_smooth(sx, values, start, origin, spacing, out)
    return out


def interpolate_smooth(
    x: np.ndarray, origin: np.ndarray, spacing: np.ndarray, field: np.ndarray
) -> np.ndarray:
    """Transpose of ``scatter_smooth``: point field (nx+1, ny+1, nz+1, ...) at ``x`` (n, 3) m, (n, ...).

    Exact for quadratic fields away from the faces. Positions outside take the value at the nearest place
    inside.
    """
    m = int(np.prod(field.shape[3:]))
    out = np.empty((len(x), *field.shape[3:]), field.dtype)
    _interpolate_smooth(x, origin, spacing, view_as(field, *field.shape[:3], m), view_as(out, len(x), m))
    return out
