"""Uniform grids over boxes: how many cells, how large, and where.

A grid is (origin (3,) float64 m, spacing (3,) float64 m, cells (3,) int64); it has cells + 1 points per
axis. Cell (i, j, k) has the linear index (i ny + j) nz + k. Source: Fluid Simulation for Video Games,
part 3 (uniform grid); the box there is stretched a little so that its maximal corner is inside the last cell.
"""

from __future__ import annotations

import numpy as np

STRETCH = 1e-9
"""Relative widening of the box: it puts the maximal corner inside the last cell, at float64 resolution."""

FLAT = 1e-6
"""An axis is flat if its extent is below this fraction of the longest one (float32 noise of a plane)."""

Grid = tuple[np.ndarray, np.ndarray, np.ndarray]


def flat_axes(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Which axes of the box have no extent: bool (3,); all of them for an empty or a point-like box."""
    extent = np.asarray(hi, dtype=np.float64) - np.asarray(lo, dtype=np.float64)
    if not np.isfinite(extent).all():
        return np.ones(3, dtype=np.bool_)
    return np.asarray(extent <= FLAT * max(float(extent.max()), 0.0))


def _box(lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Origin, stretched extent and flat mask; the box of no points (+inf, -inf) sits at zero."""
    low = np.array(lo, dtype=np.float64)
    extent = np.asarray(hi, dtype=np.float64) - low
    if not np.isfinite(extent).all():
        low, extent = np.zeros(3), np.zeros(3)
    return low, extent * (1.0 + STRETCH), flat_axes(low, low + extent)


def _spacing(extent: np.ndarray, cells: np.ndarray, flat: np.ndarray, edge: float) -> np.ndarray:
    """Cell edges: the box divided evenly; a flat axis gets ``edge``, or its extent if that is larger."""
    return np.asarray(np.where(flat, np.maximum(extent, edge), extent / cells))


def uniform_grid(lo: np.ndarray, hi: np.ndarray, count: int, power_of_two: bool = False) -> Grid:
    """Grid with about one of ``count`` elements per cell, as nearly cubic as the box allows.

    With extents E_a of the d axes that are not flat: l = (prod E_a / count)^(1/d), cells_a = max(1,
    round(E_a / l)), to the nearest power of two if asked; all axes are halved while there are at least
    8 count cells. A flat axis gets one cell of edge l starting at the plane, so interpolation there reads
    exactly the points of the plane. Points all equal, or none at all, get one cell of 1 m.

    ``lo``, ``hi`` (3,) m as ``reduce.bounds`` returns them. Both corners are inside the grid:
    floor((hi - origin) / spacing) <= cells - 1.
    """
    low, extent, flat = _box(lo, hi)
    cells = np.ones(3, dtype=np.int64)
    if flat.all():
        return low, np.maximum(extent, 1.0), cells
    count = max(int(count), 1)
    axes = ~flat
    edge = float(np.prod(extent[axes] / count ** (1.0 / axes.sum())) ** (1.0 / axes.sum()))
    wanted = np.maximum(1.0, np.round(extent[axes] / edge))
    if power_of_two:
        wanted = 2.0 ** np.round(np.log2(wanted))
    cells[axes] = wanted.astype(np.int64)
    while cells.prod() >= 8 * count:
        cells = np.maximum(1, cells // 2)
    return low, _spacing(extent, cells, flat, edge), cells


def grid_for_radius(lo: np.ndarray, hi: np.ndarray, radius: float, max_cells: int) -> Grid:
    """Grid whose cells are at least ``radius`` wide on every axis, for neighbour search.

    Two points closer than ``radius`` are in the same or in adjacent cells. The cells are as small as that
    allows, but grow until there are at most ``max_cells`` of them. ``radius`` in m, positive.
    """
    if not radius > 0:
        raise ValueError(f"grid_for_radius: radius must be positive, but it is {radius}")
    low, extent, flat = _box(lo, hi)
    edge = float(radius)
    while True:
        wanted = np.where(flat, 1.0, np.maximum(1.0, np.floor(extent / edge)))
        if wanted.prod() <= max(max_cells, 1):
            break
        edge *= 1.0625
    cells = wanted.astype(np.int64)
    return low, np.maximum(_spacing(extent, cells, flat, edge), edge), cells


def grid_points(grid: Grid, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Positions of all grid points, shape (nx+1, ny+1, nz+1, 3) m, C order."""
    origin, spacing, cells = grid
    x, y, z = (origin[a] + spacing[a] * np.arange(cells[a] + 1) for a in range(3))
    out = np.empty((len(x), len(y), len(z), 3), dtype)
    out[..., 0], out[..., 1], out[..., 2] = x[:, None, None], y[:, None], z
    return out
