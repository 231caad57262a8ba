"""First derivatives of point fields: Jacobian, gradient and curl by finite differences.

Differences are central inside, of second or fourth order; one point from a face always of second order; and
on the six faces one-sided, of first order. So all are exact for linear fields. The derivative along an axis
is the same matrix for all lines along it, and matrices along different axes commute: the divergence of a curl
is zero to round-off.
An axis whose spacing is given as 0 is flat (a 2-D domain): derivatives along it are 0. Source: Fluid
Simulation for Video Games, part 3 (second order). The Jacobian is J[..., i, j] = du_i / dx_j.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.parallel import parallel

Order = Literal[2, 4]

_PART: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True}
"""Options of functions that both the Jacobian and the curl call, which have different options themselves."""


@njit(**_PART)
def _inverse(spacing: np.ndarray, points: tuple[int, int, int]) -> tuple[float, float, float]:
    """1 / spacing per axis, 0 where the axis is flat or has a single point."""
    inv0 = 1.0 / spacing[0] if spacing[0] > 0.0 and points[0] > 1 else 0.0
    inv1 = 1.0 / spacing[1] if spacing[1] > 0.0 and points[1] > 1 else 0.0
    inv2 = 1.0 / spacing[2] if spacing[2] > 0.0 and points[2] > 1 else 0.0
    return inv0, inv1, inv2


@njit(**_PART)
def _stencil(i: int, points: int, inverse: float, order: int) -> tuple[int, int, int, int, float, float]:
    """Points a, b, c, d and weights v, w: df/dx = v (f_c - f_b) + w (f_d - f_a)."""
    b, c = max(i - 1, 0), min(i + 1, points - 1)
    if order == 4 and i > 1 and i < points - 2:
        return i - 2, b, c, i + 2, inverse * (2.0 / 3.0), inverse * (-1.0 / 12.0)
    return b, b, c, c, inverse / max(c - b, 1), 0.0


@njit(**_PART)
def _around(field: np.ndarray, i: int, j: int, inverse: Any, order: int) -> Any:
    """Four lines of points (pz, m) along x, with two weights, and four along y, of the line (i, j)."""
    kind = field.dtype.type
    i0, i1, i2, i3, vx, wx = _stencil(i, field.shape[0], inverse[0], order)
    j0, j1, j2, j3, vy, wy = _stencil(j, field.shape[1], inverse[1], order)
    x = field[i0, j], field[i1, j], field[i2, j], field[i3, j], kind(vx), kind(wx)
    return x, (field[i, j0], field[i, j1], field[i, j2], field[i, j3], kind(vy), kind(wy))


@njit(fastmath=FAST, forceinline=True)
def _along(line: np.ndarray, m: int, inverse: float, order: int, out: np.ndarray) -> None:
    """Derivatives along a line (pz m,) of points: in vectors but for two points at each end."""
    points, kind = line.size // m, line.dtype.type
    for k in range(points):
        if not 1 < k < points - 2:
            a, b, c, d, v, w = _stencil(k, points, inverse, order)
            for e in range(m):
                near, far = line[c * m + e] - line[b * m + e], line[d * m + e] - line[a * m + e]
                out[k * m + e] = near * kind(v) + far * kind(w)
    size = (points - 4) * m
    if size > 0:
        a, b, c, d, v, w = _stencil(2, points, inverse, order)
        low, below, above, high = line[a * m :], line[b * m :], line[c * m :], line[d * m :]
        near_weight, far_weight, inner = kind(v), kind(w), out[2 * m :]
        for e in range(size):
            inner[e] = (above[e] - below[e]) * near_weight + (high[e] - low[e]) * far_weight


@parallel("field.shape[0] * field.shape[1]", fastmath=FAST)
def _jacobian(row: int, field: np.ndarray, spacing: np.ndarray, order: int, out: np.ndarray) -> None:
    """``field`` (px, py, pz, m) into ``out`` (px, py, pz, m, 3); a fourth column takes the field itself."""
    px, py, pz, m = field.shape
    columns, inverse = out.shape[4], _inverse(spacing, (px, py, pz))
    size, i, j = pz * m, row // py, row % py
    lines = field.reshape(px, py, 1, size)
    (x0, x1, x2, x3, ax, bx), (y0, y1, y2, y3, ay, by) = _around(lines, i, j, inverse, order)
    z, here = lines[i, j, 0], out.reshape(px, py, size * columns)[i, j]
    slope = np.empty(size, field.dtype)
    _along(z, m, inverse[2], order, slope)
    for e in range(size):
        here[columns * e] = (x2[0, e] - x1[0, e]) * ax + (x3[0, e] - x0[0, e]) * bx
        here[columns * e + 1] = (y2[0, e] - y1[0, e]) * ay + (y3[0, e] - y0[0, e]) * by
        here[columns * e + 2] = slope[e]
        if columns == 4:
            here[columns * e + 3] = z[e]


def jacobian(
    field: np.ndarray, spacing: np.ndarray, order: Order = 2, with_field: bool = False
) -> np.ndarray:
    """J[..., i, j] = du_i / dx_j of a field (px, py, pz, m): (px, py, pz, m, 3), unit of field per m.

    ``spacing`` (3,) m, 0 for a flat axis. With the field as a further column it is (px, py, pz, m, 4).
    """
    out = np.empty((*field.shape, 3 + with_field), field.dtype)
    _jacobian(field, spacing, order, out)
    return out


def gradient(field: np.ndarray, spacing: np.ndarray, order: Order = 2) -> np.ndarray:
    """Gradient of a scalar field (px, py, pz): (px, py, pz, 3), unit of field per m; ``spacing`` (3,) m."""
    return jacobian(field[..., None], spacing, order)[..., 0, :]


# With sums that may be reordered, this kernel differed in the last bit between compiled and loaded code.
@parallel("field.shape[0] * field.shape[1]", fastmath={"contract"})
def _curl(row: int, field: np.ndarray, spacing: np.ndarray, order: int, out: np.ndarray) -> None:
    px, py, pz, _ = field.shape
    kind, inverse = field.dtype.type, _inverse(spacing, (px, py, pz))
    i, j = row // py, row % py
    (x0, x1, x2, x3, ax, bx), (y0, y1, y2, y3, ay, by) = _around(field, i, j, inverse, order)
    z, here = field[i, j], out[i, j]
    for k in range(pz):
        k0, k1, k2, k3, vz, wz = _stencil(k, pz, inverse[2], order)
        az, bz = kind(vz), kind(wz)
        xy = (x2[k, 1] - x1[k, 1]) * ax + (x3[k, 1] - x0[k, 1]) * bx
        xz = (x2[k, 2] - x1[k, 2]) * ax + (x3[k, 2] - x0[k, 2]) * bx
        yx = (y2[k, 0] - y1[k, 0]) * ay + (y3[k, 0] - y0[k, 0]) * by
        yz = (y2[k, 2] - y1[k, 2]) * ay + (y3[k, 2] - y0[k, 2]) * by
        zx = (z[k2, 0] - z[k1, 0]) * az + (z[k3, 0] - z[k0, 0]) * bz
        zy = (z[k2, 1] - z[k1, 1]) * az + (z[k3, 1] - z[k0, 1]) * bz
        here[k, 0], here[k, 1], here[k, 2] = yz - zy, zx - xz, xy - yx


def curl(field: np.ndarray, spacing: np.ndarray, order: Order = 2) -> np.ndarray:
    """Curl of a vector field (px, py, pz, 3): same shape, unit of field per m; ``spacing`` (3,) m.

    (d_y u_z - d_z u_y, d_z u_x - d_x u_z, d_x u_y - d_y u_x).
    """
    out = np.empty_like(field)
    _curl(field, spacing, order, out)
    return out
