"""Liquid made of particles as one glossy surface, with foam where it is fast."""

from __future__ import annotations

import numpy as np
import pyvista as pv
from numpy.typing import NDArray

from ecs_fluid.exports.volumes import scatter
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.viz.columns import Array

MAX_CELLS = 3_000_000  # of the grid on which particles are counted: 24 MB
BLUR = 0.75  # of the particles, in spacings
FULL = 0.5  # at the surface
FOAM = (0.93, 0.96, 0.98)


def liquid_mesh(x: Array, spacing: float) -> pv.PolyData:
    """Surface (with normals) of the liquid of particles at `x` (n, 3) m, `spacing` m apart.

    Their number per volume, smoothed by a Gaussian of 3/4 of a spacing, is 1 where a lattice is full; the
    surface is where it is a half, as at the face of a block. A single particle has
    (2 pi)^(-3/2) (4/3)^3 = 0.15 of that at most, so that drops need `spray` to be seen.
    """
    count = _fullness(x, spacing)
    if count is None:
        return pv.PolyData()
    fullness, origin, cell = count
    points, faces = contour(-fullness, origin, np.full(3, cell), -FULL)
    if not len(points) or faces.shape[1] != 3:
        return pv.PolyData()
    cells = np.column_stack((np.full(len(faces), 3), faces)).ravel()
    mesh = pv.PolyData(np.asarray(points, np.float64), cells)
    mesh.point_data["Normals"] = _normals(fullness, origin, cell, np.asarray(points, np.float64))
    mesh.point_data.active_normals_name = "Normals"
    return mesh


def spray(x: Array, spacing: float) -> NDArray[np.bool_]:
    """Which particles (n,) the surface leaves out: it is more than half a spacing away, as in a torn sheet.

    Those at edges of a block are outside of the surface, but beside it.
    """
    from scipy import ndimage

    count = _fullness(x, spacing)
    if count is None:
        return np.zeros(len(x), bool)
    fullness, origin, cell = count
    beside = ndimage.maximum_filter(fullness, 2 * int(np.ceil(0.5 * spacing / cell)) + 1)
    here = ndimage.map_coordinates(beside, ((x - origin) / cell).T, order=0, mode="nearest")
    return np.asarray(here < FULL)


def _fullness(x: Array, spacing: float) -> tuple[NDArray[np.float32], NDArray[np.float64], float] | None:
    """Density of particles over that of a full lattice, on a grid; its origin (3,) m and its cell m."""
    from scipy import ndimage

    x = np.asarray(x, np.float64)
    if not len(x):
        return None
    lo, hi = np.percentile(x, [0.2, 99.8], axis=0) if len(x) > 500 else (x.min(axis=0), x.max(axis=0))
    pad = 3.0 * spacing
    lo, hi = lo - pad, hi + pad
    cell = max(0.5 * spacing, float(np.prod(hi - lo) / MAX_CELLS) ** (1.0 / 3.0))
    shape = tuple(int(n) for n in np.ceil((hi - lo) / cell).astype(np.int64) + 2)
    inside = ((x >= lo) & (x <= hi)).all(axis=1)
    total = scatter((x[inside] - lo) / cell, np.ones((int(inside.sum()), 1)), shape)
    smoothed = ndimage.gaussian_filter(total.reshape(shape), BLUR * spacing / cell, mode="constant")
    return (smoothed * (spacing / cell) ** 3).astype(np.float32), lo, cell


def _normals(
    fullness: NDArray[np.float32], origin: NDArray[np.float64], cell: float, points: Array
) -> NDArray[np.float64]:
    """Outward directions (n, 3): down the slope of the fullness."""
    from scipy import ndimage

    where = ((points - origin) / cell).T
    slopes: list[NDArray[np.float64]] = [
        ndimage.map_coordinates(np.asarray(part, np.float64), where, order=1, mode="nearest")
        for part in np.gradient(fullness)
    ]
    slope = np.stack(slopes, axis=1)
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    return -slope / np.where(length > 0.0, length, 1.0)


def foaming(
    mesh: pv.PolyData, x: Array, speed: Array, between: tuple[float, float], water: Array
) -> NDArray[np.float64]:
    """Colours (n, 3) of a surface: water's up to the lower of two speeds (m/s), foam from the higher one on.

    `speed` (m,) and `water` (m, 3) are those of the particles at `x` (m, 3); a point of the surface has those
    of its neighbours.
    """
    from scipy.spatial import cKDTree

    _, near = cKDTree(np.asarray(x, np.float64)).query(mesh.points, k=min(6, len(x)))
    near = near.reshape(mesh.n_points, -1)
    here = np.asarray(speed, np.float64)[near].mean(axis=1)
    calm, wild = between
    share = np.clip((here - calm) / max(wild - calm, 1e-12), 0.0, 1.0)[:, None] ** 2
    return np.asarray((1.0 - share) * np.asarray(water)[near].mean(axis=1) + share * np.array(FOAM))
