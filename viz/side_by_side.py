"""Several pictures in one, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyvista as pv

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.viz.film import write_png
from ecs_fluid.viz.scene import pixels


def beside(plotters: Sequence[pv.Plotter], path: Path | str | None = None) -> Array:
    """What the plotters show, from left to right: pixels (height, width, 3) uint8, and a file at `path`.

    Raises FluidError where there is none, or where their heights differ.
    """
    images = [pixels(plotter) for plotter in plotters]
    heights = {len(image) for image in images}
    if len(heights) != 1:
        said = ", ".join(map(str, sorted(heights))) if heights else "no picture"
        raise FluidError(f"pictures side by side need one height; given: {said}")
    whole = np.concatenate(images, axis=1)
    if path is not None:
        write_png(whole, path)
    return whole
