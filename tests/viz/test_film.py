"""Sequences of pictures: names, numbers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.film import check_target
from ecs_fluid.viz.movie import movie
from ecs_fluid.viz.scene import pixels, render
from ecs_fluid.viz.shared_limits import survey


def rising(frame: Frame, count: int) -> list[tuple[float, dict[str, dict[str, np.ndarray]]]]:
    x = frame["smoke"]["Position.x"]
    return [(0.1 * k, {"smoke": {"Position.x": x + np.array([0.0, 0.0, 0.4 * k])}}) for k in range(count)]


def test_sequence_holds_the_pixels_of_single_pictures(frame: Frame, tmp_path: Path) -> None:
    from ecs_fluid.viz.style import Options

    frames = rising(frame, 3)
    target = tmp_path / "film" / "ring_%03d.png"
    options = {"size": (81, 61), "smooth": False}
    assert movie(target, frames, numbers=range(4, 10, 2), **options) == target  # type: ignore[arg-type]
    assert sorted(p.name for p in target.parent.iterdir()) == ["ring_004.png", "ring_006.png", "ring_008.png"]
    view = survey(frames, Options(size=(81, 61)))
    plotter = render(frames[1][1], time=0.1, view=view, **options)
    with Image.open(target.parent / "ring_006.png") as image:
        np.testing.assert_array_equal(np.asarray(image), pixels(plotter))  # an odd size is kept, too
    plotter.close()


def test_sequence_cut_short_keeps_what_is_done(frame: Frame, tmp_path: Path) -> None:
    def breaks():  # type: ignore[no-untyped-def]
        yield from rising(frame, 2)
        raise FluidError("the run ends here")

    with pytest.raises(FluidError, match="the run ends here"):
        movie(tmp_path / "%d.png", breaks(), size=(32, 32))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.png", "1.png"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.png", "put the frame's number into its name"),
        ("%d_%04d.png", "put the frame's number"),
        ("%s.png", "put the frame's number"),
        ("a%%d.png", "put the frame's number"),
        ("no/no/%d.png", "does not exist"),
        ("a.webm", "nor is it a sequence"),
    ],
)
def test_what_is_no_movie(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(FluidError, match=words):
        check_target(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_percent_signs_of_folders_are_left_alone(frame: Frame, tmp_path: Path) -> None:
    folder = tmp_path / "100%s"
    movie(folder / "%d.png", rising(frame, 1), size=(32, 32))
    assert [p.name for p in folder.iterdir()] == ["0.png"]
