"""The bar that says what the colours of a picture mean."""

from __future__ import annotations

from typing import Any

import pyvista as pv

from ecs_fluid.viz.look import Look


def scalar_bar(
    plotter: pv.Plotter, title: str, table: pv.LookupTable, span: tuple[float, float], look: Look
) -> Any:
    """Add a bar to the lower right of the picture and return its actor; `title` says name and unit."""
    key = pv.DataSetMapper()
    key.lookup_table = table
    key.scalar_range = span
    height = plotter.window_size[1]
    return plotter.add_scalar_bar(
        title + "\n",  # or the title would stand among the labels
        mapper=key,
        color=look.text,
        n_labels=4,
        # Close values, such as densities, need another digit to differ.
        fmt="{0:.4g}" if span[1] - span[0] < 0.1 * abs(span[1]) else "{0:.3g}",
        vertical=False,
        width=0.3,
        height=0.1,
        position_x=0.67,
        position_y=0.03,
        unconstrained_font_size=True,
        label_font_size=max(8, height // 42),
        title_font_size=max(8, height // 38),
    )
