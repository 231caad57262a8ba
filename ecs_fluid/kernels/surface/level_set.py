"""Signed distances on a grid: interpolation, advection by a flow, normals and curvature.

Fields (px, py, pz) are on a uniform grid, negative inside. An axis with one layer of points is flat: nothing
changes along it. Advection is semi-Lagrangian: the new value at x is the old value at the point from which
the fluid came,

    phi(x, t + dt) = phi(x - dt u(x - dt u(x) / 2), t),

by cubic interpolation. It is stable for any step and keeps thin parts better than linear interpolation.
Curvature is that of the level set, div(grad phi / |grad phi|): 2 / R for a ball, 1 / R for a disc. Source:
Osher and Fedkiw, Level Set Methods and Dynamic Implicit Surfaces (2003), chapters 1 and 3; Enright, Losasso
and Fedkiw, Comput. Struct. 83 (2005) 479.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids import cubic, interpolation
from ecs_fluid.kernels.surface.facets import cell_widths, facet_distances

SLOPE_TOLERANCE = 0.25
"""Deviation of |grad phi| from 1 that is tolerated near an advected surface."""
KEPT_POINTS = 3
"""Advected values may be kept within this number of points from a change of sign."""


def _layers(field: Array) -> Array:
    """The field with at least two layers along every axis, as interpolation needs."""
    for axis in range(3):
        if field.shape[axis] == 1:
            field = np.repeat(field, 2, axis=axis)
    return np.ascontiguousarray(field)


def sample(x: Array, origin: Array, spacing: Array, field: Array, third_order: bool = False) -> Array:
    """Values (n, ...) of a field (px, py, pz, ...) at points ``x`` (n, 3) m, linear or cubic.

    Outside the grid it is the value at the nearest point of its box.
    """
    read = cubic.interpolate if third_order else interpolation.interpolate
    base, h = np.asarray(origin, np.float64), cell_widths(field.shape, spacing)
    return np.asarray(read(np.ascontiguousarray(x), base, h, _layers(field)))


def distance_at(x: Array, origin: Array, spacing: Array, phi: Array) -> Array:
    """Signed distance (n,) m at points ``x`` (n, 3) m, linear between grid points.

    Outside the grid it is the value at the nearest point of its box plus the distance from there, so it goes
    on rising: an upper bound of the true distance, positive wherever the surface does not touch the border.
    """
    low = np.asarray(origin, np.float64)
    wide = np.array(phi.shape) > 1
    high = low + np.asarray(spacing, np.float64) * (np.array(phi.shape) - 1)
    beyond = np.maximum(np.maximum(low - x, x - high), 0.0) * wide
    return np.asarray(sample(x, origin, spacing, phi) + np.linalg.norm(beyond, axis=1).astype(phi.dtype))


def normal_at(x: Array, origin: Array, spacing: Array, phi: Array) -> Array:
    """Unit gradient (n, 3) of the distance at points ``x`` (n, 3) m, outward; 0 where there is none.

    It is the gradient of the linear interpolation of `distance_at`, by differences over one cell.
    """
    h = cell_widths(phi.shape, spacing)
    wide = np.array(phi.shape) > 1
    slope = np.zeros((len(x), 3), phi.dtype)
    step = 0.5 * h
    for axis in np.flatnonzero(wide):
        shift = np.zeros(3)
        shift[axis] = step[axis]
        ahead = distance_at((x + shift).astype(x.dtype), origin, spacing, phi)
        slope[:, axis] = (ahead - distance_at((x - shift).astype(x.dtype), origin, spacing, phi)) / h[axis]
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    return np.asarray(slope / np.where(length > 0, length, 1))


def grid_rows(phi: Array, origin: Array, spacing: Array, near: Array) -> Array:
    """Positions (n, 3) m of the grid points where ``near`` (px, py, pz) is True, in C order."""
    index = np.argwhere(near)
    return np.asarray(np.asarray(origin, np.float64) + index * np.asarray(spacing, np.float64)).astype(
        phi.dtype
    )


def surface_points(phi: Array, origin: Array, spacing: Array, near: Array) -> Array:
    """Surface points (n, 3) m nearest to the grid points ``near``: x - phi grad phi / |grad phi|."""
    index = np.nonzero(near)
    slope = geometry(phi, spacing, float(np.abs(phi[index]).max(initial=0.0)))[index][:, :3]
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    x = grid_rows(phi, origin, spacing, near)
    return np.asarray(x - phi[index][:, None] * (slope / np.where(length > 0, length, 1)))


def advected(phi: Array, origin: Array, spacing: Array, near: Array, u: Array, dt: float) -> Array:
    """``phi`` (px, py, pz) m advected for ``dt`` s at the points ``near``, with velocities ``u`` (n, 3) m/s.

    Second order in time for a steady flow. At other points phi stays, so ``near`` has to reach a few cells
    further than the surface moves. The result is no longer a distance.
    """
    x = grid_rows(phi, origin, spacing, near)
    field = np.zeros((*phi.shape, 3), phi.dtype)
    field[near] = u
    step = phi.dtype.type(dt)
    half = sample(x - step / 2 * u, origin, spacing, field)
    moved = phi.copy()
    moved[near] = sample(x - step * half, origin, spacing, phi, third_order=True)
    return moved


def kept_distances(phi: Array, spacing: Array, width: float) -> tuple[Array, Array]:
    """The part of an advected distance that is kept while the rest is computed anew: (phi m, pinned bool).

    A value is kept if it is within ``width`` m, the point is within `KEPT_POINTS` points of a change of sign,
    and the slope |grad phi| (central differences) is near 1. The second condition is needed since a part of
    the liquid that was lost leaves small values without a surface. Computing all distances anew in every step
    would move the surface a little each time: facets cut off bulges, phi / |grad phi| amplifies waves of two
    cells, and sweeps roughen the values beside them. Kept values are only interpolated.

    Elsewhere only the points beside the surface are pinned. They get phi / |grad phi| if the slope is too
    large. If it is too small, as it is beside kinks, they get the distance to the facets: dividing by the
    slope would keep thin parts alive.
    """
    near, pinned = facet_distances(phi, spacing)
    at = np.nonzero((np.abs(phi) <= width) & _dilated(pinned))
    square = np.zeros(len(at[0]))
    inverse = 1.0 / cell_widths(phi.shape, spacing)
    for axis, n in enumerate(phi.shape):
        low, high = list(at), list(at)
        low[axis], high[axis] = np.maximum(at[axis] - 1, 0), np.minimum(at[axis] + 1, n - 1)
        span = np.maximum(high[axis] - low[axis], 1)
        rise = phi[tuple(high)].astype(np.float64) - phi[tuple(low)]
        square += (rise * inverse[axis] / span) ** 2
    slope = np.sqrt(square)
    fair, steep = np.abs(slope - 1.0) <= SLOPE_TOLERANCE, slope > 1.0
    near[at] = np.where(fair, phi[at], np.where(steep, phi[at] / np.maximum(slope, 1.0), near[at]))
    pinned[at] |= fair
    return near, pinned


def _dilated(mask: Array) -> Array:
    """All points within `KEPT_POINTS` points of a True one along every axis."""
    for axis in range(3):
        line = np.moveaxis(mask, axis, 0)
        wide = line.copy()
        for step in range(1, KEPT_POINTS + 1):
            wide[step:] |= line[:-step]
            wide[:-step] |= line[step:]
        mask = np.moveaxis(wide, 0, axis)
    return mask


@njit(forceinline=True)
def _neighbours(i: int, n: int) -> tuple[int, int]:
    return max(i - 1, 0), min(i + 1, n - 1)


@parallel("phi.shape[0]", error_model="numpy")
def _geometry(i: int, phi: Array, inverse: Array, width: float, out: Array) -> None:
    nx, ny, nz = phi.shape
    kind = phi.dtype.type
    half, zero = kind(0.5), kind(0)
    hx, hy, hz = kind(inverse[0]), kind(inverse[1]), kind(inverse[2])
    a, b = _neighbours(i, nx)
    for j in range(ny):
        c, d = _neighbours(j, ny)
        for k in range(nz):
            here = phi[i, j, k]
            out[i, j, k] = zero
            if abs(here) > width:
                continue
            e, f = _neighbours(k, nz)
            # One-sided at the faces, where a difference spans one cell in place of two.
            x = (phi[b, j, k] - phi[a, j, k]) * hx / kind(max(b - a, 1))
            y = (phi[i, d, k] - phi[i, c, k]) * hy / kind(max(d - c, 1))
            z = (phi[i, j, f] - phi[i, j, e]) * hz / kind(max(f - e, 1))
            xx = (phi[b, j, k] + phi[a, j, k] - here - here) * hx * hx
            yy = (phi[i, d, k] + phi[i, c, k] - here - here) * hy * hy
            zz = (phi[i, j, f] + phi[i, j, e] - here - here) * hz * hz
            xy = (phi[b, d, k] + phi[a, c, k] - phi[a, d, k] - phi[b, c, k]) * hx * hy * half * half
            xz = (phi[b, j, f] + phi[a, j, e] - phi[a, j, f] - phi[b, j, e]) * hx * hz * half * half
            yz = (phi[i, d, f] + phi[i, c, e] - phi[i, d, e] - phi[i, c, f]) * hy * hz * half * half
            square = x * x + y * y + z * z
            length = np.sqrt(square)
            bend = (xx * (y * y + z * z) + yy * (x * x + z * z) + zz * (x * x + y * y)) - (
                x * y * xy + x * z * xz + y * z * yz
            ) / half
            out[i, j, k, 0], out[i, j, k, 1], out[i, j, k, 2] = x, y, z
            out[i, j, k, 3] = bend / (square * length) if length > zero else zero


def geometry(phi: Array, spacing: Array, width: float) -> Array:
    """Gradient (3 components) and curvature [1/m], (px, py, pz, 4), where |phi| <= ``width`` m, elsewhere 0.

    By differences of second order. At the faces of the grid the gradient is of first order only, and second
    derivatives across the face are wrong, so surfaces should stay a cell away. Curvature needs distances of
    second order at least: its error is that of phi divided by h^2.
    """
    wide = np.array(phi.shape) > 1
    inverse = np.where(wide, 1.0 / cell_widths(phi.shape, spacing), 0.0)
    out = np.empty((*phi.shape, 4), phi.dtype)
    _geometry(phi, inverse, width, out)
    return out
