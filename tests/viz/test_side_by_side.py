"""Pictures side by side."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.kernels.surface import shapes
from ecs_fluid.viz.side_by_side import beside
from ecs_fluid.viz.surfaces import Distances, render_surface


def test_side_by_side_keeps_every_pixel() -> None:
    """The left and right halves are the pictures themselves; different heights are refused."""
    axis = np.linspace(-1.0, 1.0, 17)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    ball = Distances(shapes.sphere(points, np.zeros(3), 0.6), np.full(3, -1.0), np.full(3, 0.125))
    pictures = [render_surface(ball, size=size) for size in ((120, 100), (90, 100), (90, 80))]
    whole = beside(pictures[:2])
    assert whole.shape == (100, 210, 3)
    # Around the middle of each there is the ball, which is not the background of its corner.
    for left, right in ((0, 120), (120, 210)):
        part = whole[:, left:right].astype(int)
        assert np.abs(part[50, (right - left) // 2] - part[2, 2]).max() > 30
    with pytest.raises(FluidError, match="need one height; given: 80, 100"):
        beside(pictures)
    with pytest.raises(FluidError, match="no picture"):
        beside([])
    for picture in pictures:
        picture.close()
