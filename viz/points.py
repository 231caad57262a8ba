"""Particles as arrows in PyVista."""

from __future__ import annotations

import numpy as np
import pyvista as pv

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Columns, choose, positions, scalar


def glyphs(
    columns: Columns,
    of: str = "Strength.alpha",
    color_by: str | None = None,
    longest: float | None = None,
    limit: int = 3000,
) -> pv.PolyData:
    """Arrows along a vector column, as long as its magnitude; the 99th percentile is `longest` m long.

    `longest` is 1/8 of the cloud's diagonal if not given. At most `limit` rows, evenly picked, get an arrow.
    The colour's values (`color_by`, the magnitude of `of` if None) are the active point data ``color``.
    Raises FluidError for an unknown column, one that is not a vector, and no rows.
    """
    x = positions(columns)
    if of not in columns:
        raise choose(
            "vector column", of, [name for name, values in columns.items() if np.shape(values)[1:] == (3,)]
        )
    vectors = np.asarray(columns[of])
    if vectors.shape[1:] != (3,):
        raise FluidError(f"{of} has shape {vectors.shape}; arrows need a vector column of shape (rows, 3)")
    if not len(x):
        raise FluidError(f"there are no rows of {of} to draw arrows of")
    rows = np.unique(np.linspace(0, len(x) - 1, min(limit, len(x))).round().astype(np.int64))
    if longest is None:
        longest = 0.125 * float(np.linalg.norm(x.max(axis=0) - x.min(axis=0))) or 1.0
    scale = longest / (float(np.percentile(np.linalg.norm(vectors, axis=1), 99.0)) or 1.0)
    cloud = pv.PolyData(np.array(x[rows]))
    # A few runaway rows must not hide the picture behind their arrows: 1.5 times the longest is the limit.
    arrows = vectors[rows] * scale
    length = np.linalg.norm(arrows, axis=1)
    cloud.point_data["vector"] = arrows * np.minimum(1.0, 1.5 * longest / np.maximum(length, 1e-300))[:, None]
    cloud.point_data["color"] = np.array(scalar(columns, color_by or of)[rows])
    arrow = pv.Arrow(
        tip_length=0.3, tip_radius=0.12, shaft_radius=0.045, tip_resolution=12, shaft_resolution=8
    )
    drawn = cloud.glyph(orient="vector", scale="vector", factor=1.0, geom=arrow)
    drawn.set_active_scalars("color")
    return drawn
