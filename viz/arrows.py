"""Strengths of vortons as arrows, in PyVista."""

from __future__ import annotations

import numpy as np
import pyvista as pv

from ecs_fluid.viz.columns import Columns, positions, scalar

MOST = 3000  # arrows of a population


def glyphs(columns: Columns, longest: float, color_by: str | None = None) -> pv.PolyData:
    """Arrows along the strengths, with lengths in proportion; the 99th percentile is `longest` m long.

    At most `MOST` rows, evenly picked, get an arrow. The colour's values (`color_by`, their size if
    None) are the active point data ``color``. Raises FluidError for an unknown colour.
    """
    x, vectors = positions(columns), np.asarray(columns["Strength.alpha"])
    rows = np.unique(np.linspace(0, len(x) - 1, min(MOST, len(x))).round().astype(np.int64))
    scale = longest / (float(np.percentile(np.linalg.norm(vectors, axis=1), 99.0)) or 1.0)
    cloud = pv.PolyData(np.array(x[rows]))
    # Arrows of a few runaway rows must not hide the picture: 1.5 times `longest` is the limit.
    arrows = vectors[rows] * scale
    length = np.linalg.norm(arrows, axis=1)
    cloud.point_data["vector"] = arrows * np.minimum(1.0, 1.5 * longest / np.maximum(length, 1e-300))[:, None]
    cloud.point_data["color"] = np.array(scalar(columns, color_by or "strength")[rows])
    arrow = pv.Arrow(
        tip_length=0.3, tip_radius=0.12, shaft_radius=0.045, tip_resolution=12, shaft_resolution=8
    )
    drawn = cloud.glyph(orient="vector", scale="vector", factor=1.0, geom=arrow)
    drawn.set_active_scalars("color")
    return drawn
