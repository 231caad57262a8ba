"""Uniform grids over boxes: how many cells, how large, and where.

A grid is (origin (3,) float64 m, spacing (3,) float64 m, cells (3,) int64); it has cells + 1 points per
axis. Cell (i, j, k) has the linear index (i ny + j) nz + k. Source: Fluid Simulation for Video Games,
part 3 (uniform grid); the box there is stretched a little so that its maximal corner is inside the last cell.
"""

from __future__ import annotations

import math
import sys

import numpy as np

STRETCH = 1e-9
"""Relative widening of the box: it puts the maximal corner inside the last cell, at float64 resolution."""

FLAT = 1e-6
"""An axis is flat if its extent is below this fraction of the longest one (float32 noise of a plane)."""

Grid = tuple[np.ndarray, np.ndarray, np.ndarray]


def _box(lo: np.ndarray, hi: np.ndarray) -> tuple[list[float], list[float], list[bool]]:
    """Origin and stretched extent, m, and which axes have none; of no points it is the origin."""
    # Plain numbers: for three axes they are some ten times as fast as arrays.
    low = [float(a) for a in lo]
    extent = [(float(b) - a) * (1.0 + STRETCH) for a, b in zip(low, hi, strict=True)]
    if not all(map(math.isfinite, extent)):
        low, extent = [0.0] * 3, [0.0] * 3
    # What is left of an extent so far from the origin.
    resolved = [(a + e) - a for a, e in zip(low, extent, strict=True)]
    return low, extent, [e <= FLAT * max(resolved) for e in resolved]


def flat_axes(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Which axes of the box have no extent: bool (3,); all of them for an empty or a point-like box."""
    return np.array(_box(lo, hi)[2])


def uniform_grid(lo: np.ndarray, hi: np.ndarray, count: int) -> Grid:
    """Grid with about one of ``count`` elements per cell, as nearly cubic as the box allows.

    With extents E_a of the d axes that are not flat: l = (prod E_a / count)^(1/d), cells_a = max(1,
    round(E_a / l)); all axes are halved while there are at least 8 count cells. A flat axis gets one cell of
    edge l starting at the plane, so interpolation there reads exactly the points of the plane. Points all
    equal, or none at all, get one cell of 1 m.

    ``lo``, ``hi`` (3,) m as ``columns.bounds`` returns them. Both corners are inside the grid:
    floor((hi - origin) / spacing) <= cells - 1.
    """
    low, extent, flat = _box(lo, hi)
    edge, cells, count = 1.0, [1, 1, 1], max(int(count), 1)
    if axes := [a for a in range(3) if not flat[a]]:
        # The count is divided among the axes before they are multiplied, so that nothing overflows.
        share = count ** (1.0 / len(axes))
        edge = max(math.prod(extent[a] / share for a in axes) ** (1.0 / len(axes)), sys.float_info.min)
    for a in axes:
        cells[a] = max(1, round(extent[a] / edge))
    while math.prod(cells) >= 8 * count:
        cells = [max(1, n // 2) for n in cells]
    spacing = [max(e, edge) if f else e / n for e, n, f in zip(extent, cells, flat, strict=True)]
    return np.array(low), np.array(spacing), np.array(cells)


def grid_for_radius(lo: np.ndarray, hi: np.ndarray, radius: float, max_cells: int) -> Grid:
    """Grid whose cells are at least ``radius`` wide on every axis, for neighbour search.

    Two points closer than ``radius`` are in the same or in adjacent cells. The cells are as small as that
    allows, but grow until there are at most ``max_cells`` of them. ``radius`` in m, positive.
    """
    if not radius > 0:
        raise ValueError(f"grid_for_radius: radius must be positive, but it is {radius}")
    low, extent, flat = _box(lo, hi)
    edge, most = float(radius), max(max_cells, 1)
    # Written out: grids that many vortons share a cell of take some twenty rounds, each of them a tick.
    a, b, c = (0.0 if f else e for e, f in zip(extent, flat, strict=True))
    far = 1e18 * edge
    while True:
        nx = int(a / edge) if a < far else 10**18
        ny = int(b / edge) if b < far else 10**18
        nz = int(c / edge) if c < far else 10**18
        if (nx or 1) * (ny or 1) * (nz or 1) <= most:
            break
        edge *= 1.0625
        far *= 1.0625
    cells = [nx or 1, ny or 1, nz or 1]
    spacing = [max(e if f else e / n, edge) for e, n, f in zip(extent, cells, flat, strict=True)]
    return np.array(low), np.array(spacing), np.array(cells)


def grid_points(grid: Grid, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Positions of all grid points, shape (nx+1, ny+1, nz+1, 3) m, C order."""
    origin, spacing, cells = grid
    x, y, z = (origin[a] + spacing[a] * np.arange(cells[a] + 1) for a in range(3))
    out = np.empty((len(x), len(y), len(z), 3), dtype)
    out[..., 0], out[..., 1], out[..., 2] = x[:, None, None], y[:, None], z
    return out
