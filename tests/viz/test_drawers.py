"""Several processes draw the same pixels as one, in order, and say what went wrong."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.drawers import Drawing, draw
from ecs_fluid.viz.movie import movie
from ecs_fluid.viz.scene import Scene
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import Options
from tests.viz.numbered import Numbers


def test_order_is_kept() -> None:
    found = list(draw(Numbers(7), 3))
    assert [int(picture[0, 0, 0]) for picture in found] == list(range(7))
    assert all(picture.shape == (3, 5, 3) for picture in found)


def test_error_of_a_child_is_told_after_the_frames_before_it() -> None:
    pictures = draw(Numbers(9, "error"), 2)
    assert [int(next(pictures)[0, 0, 0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FluidError, match="frame 3 is damaged"):
        next(pictures)


def test_death_of_a_child_is_told() -> None:
    with pytest.raises(FluidError, match="ended with status 7"):
        list(draw(Numbers(9, "dies"), 2))


def test_pixels_are_those_of_one_process(frame: Frame, tmp_path: Path) -> None:
    """Also where a population is there from the second frame on only, so that every process meets the
    populations in another order; and the arrows' colours are those of all frames."""
    x = frame["smoke"]["Position.x"]
    late = {"ring": frame["ring"]}
    frames = [
        (0.1 * k, {"smoke": {"Position.x": x + 0.1 * k}} if k % 2 == 0 else {**late, **frame})
        for k in range(4)
    ]
    options = Options(size=(64, 48), smooth=False, orbit=90.0)
    drawing = Drawing(frames, partial(Scene, survey(frames, options), options), 10.0)
    alone, together = list(draw(drawing, 1)), list(draw(drawing, 2))
    assert len(alone) == len(together) == 4
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (alone[0] != alone[1]).any()


def test_what_cannot_be_shared(frame: Frame, tmp_path: Path) -> None:
    frames = [(0.0, frame), (0.1, frame)]
    with pytest.raises(FluidError, match="jobs = 0; a whole number from 1"):
        movie(tmp_path / "a.gif", frames, jobs=0)
    with pytest.raises(FluidError, match="not as an iterator"):
        movie(tmp_path / "a.gif", iter(frames), jobs=2)
    with pytest.raises(FluidError, match="cannot be drawn by several processes"):
        movie(tmp_path / "a.gif", frames, jobs=2, velocity_of=lambda one: lambda points: points)
    assert not list(tmp_path.iterdir())
