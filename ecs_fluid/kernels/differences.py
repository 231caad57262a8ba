"""First derivatives of point fields: Jacobian, gradient, curl and divergence by finite differences.

Second-order central differences inside, first-order one-sided ones on the six faces, so all four are exact
for linear fields. An axis whose spacing is given as 0 is flat (a 2-D domain): derivatives along it are 0.
Source: Fluid Simulation for Video Games, part 3. The Jacobian is J[..., i, j] = du_i / dx_j.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import FAST
from ecs_fluid.kernels.partition import view_as


@njit(forceinline=True)
def _inverse(spacing: np.ndarray, points: tuple[int, int, int]) -> tuple[float, float, float]:
    """1 / spacing per axis, 0 where the axis is flat or has a single point."""
    inv0 = 1.0 / spacing[0] if spacing[0] > 0.0 and points[0] > 1 else 0.0
    inv1 = 1.0 / spacing[1] if spacing[1] > 0.0 and points[1] > 1 else 0.0
    inv2 = 1.0 / spacing[2] if spacing[2] > 0.0 and points[2] > 1 else 0.0
    return inv0, inv1, inv2


@njit(forceinline=True)
def _stencil(i: int, points: int, inverse: float) -> tuple[int, int, float]:
    """Lower point, upper point and 1 / their distance: central inside, one-sided at both ends."""
    lower, upper = max(i - 1, 0), min(i + 1, points - 1)
    return lower, upper, inverse / max(upper - lower, 1)


@njit(parallel=True, cache=True, fastmath=FAST)
def _jacobian(field: np.ndarray, spacing: np.ndarray, out: np.ndarray) -> None:
    """``field`` (px, py, pz, m) into ``out`` (px, py, pz, m, 3)."""
    px, py, pz, m = field.shape
    kind = field.dtype.type
    inv0, inv1, inv2 = _inverse(spacing, (px, py, pz))
    for row in prange(px * py):
        i, j = row // py, row % py
        i0, i1, hx = _stencil(i, px, inv0)
        j0, j1, hy = _stencil(j, py, inv1)
        sx, sy = kind(hx), kind(hy)
        x0, x1, y0, y1, z = field[i0, j], field[i1, j], field[i, j0], field[i, j1], field[i, j]
        here = out[i, j]
        for k in range(pz):
            k0, k1, hz = _stencil(k, pz, inv2)
            sz = kind(hz)
            for c in range(m):
                here[k, c, 0] = (x1[k, c] - x0[k, c]) * sx
                here[k, c, 1] = (y1[k, c] - y0[k, c]) * sy
                here[k, c, 2] = (z[k1, c] - z[k0, c]) * sz


def jacobian(field: np.ndarray, spacing: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """J[..., i, j] = du_i / dx_j of a vector field (px, py, pz, 3): (px, py, pz, 3, 3), unit of field per m.

    ``spacing`` (3,) m, 0 for a flat axis; fills ``out`` if given. Any number of components m works.
    """
    if out is None:
        out = np.empty((*field.shape, 3), field.dtype)
    _jacobian(field, spacing, out)
    return out


def gradient(field: np.ndarray, spacing: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Gradient of a scalar field (px, py, pz): (px, py, pz, 3), unit of field per m; ``spacing`` (3,) m."""
    if out is None:
        out = np.empty((*field.shape, 3), field.dtype)
    _jacobian(field[..., None], spacing, view_as(out, *field.shape, 1, 3))
    return out


@njit(parallel=True, cache=True, fastmath=FAST)
def _curl_divergence(
    field: np.ndarray, spacing: np.ndarray, rotation: np.ndarray, divergence: np.ndarray
) -> None:
    """Either output may have no points (size 0); it is then left out."""
    px, py, pz, _ = field.shape
    kind = field.dtype.type
    inv0, inv1, inv2 = _inverse(spacing, (px, py, pz))
    with_curl, with_divergence = rotation.size > 0, divergence.size > 0
    for row in prange(px * py):
        i, j = row // py, row % py
        i0, i1, hx = _stencil(i, px, inv0)
        j0, j1, hy = _stencil(j, py, inv1)
        sx, sy = kind(hx), kind(hy)
        x0, x1, y0, y1, z = field[i0, j], field[i1, j], field[i, j0], field[i, j1], field[i, j]
        for k in range(pz):
            k0, k1, hz = _stencil(k, pz, inv2)
            sz = kind(hz)
            if with_curl:
                rotation[i, j, k, 0] = (y1[k, 2] - y0[k, 2]) * sy - (z[k1, 1] - z[k0, 1]) * sz
                rotation[i, j, k, 1] = (z[k1, 0] - z[k0, 0]) * sz - (x1[k, 2] - x0[k, 2]) * sx
                rotation[i, j, k, 2] = (x1[k, 1] - x0[k, 1]) * sx - (y1[k, 0] - y0[k, 0]) * sy
            if with_divergence:
                across = (x1[k, 0] - x0[k, 0]) * sx + (y1[k, 1] - y0[k, 1]) * sy
                divergence[i, j, k] = across + (z[k1, 2] - z[k0, 2]) * sz


def curl(field: np.ndarray, spacing: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Curl of a vector field (px, py, pz, 3): same shape, unit of field per m; ``spacing`` (3,) m.

    (d_y u_z - d_z u_y, d_z u_x - d_x u_z, d_x u_y - d_y u_x).
    """
    if out is None:
        out = np.empty_like(field)
    _curl_divergence(field, spacing, out, np.empty((0, 0, 0), field.dtype))
    return out


def divergence(field: np.ndarray, spacing: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Divergence d_i u_i of a vector field (px, py, pz, 3): (px, py, pz), unit of field per m."""
    if out is None:
        out = np.empty(field.shape[:3], field.dtype)
    _curl_divergence(field, spacing, np.empty((0, 0, 0, 3), field.dtype), out)
    return out
