"""Colour bars: beside the scene, not on it, in numbers and colours that can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pyvista as pv
from numpy.typing import NDArray

from ecs_fluid.exports.colours import linear
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.labels import STRIP, digits
from ecs_fluid.viz.scene import Scene, pixels, render
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import LOOKS, Options, clock, readable_on

SIZE = (200, 150)
EDGE = round((1.0 - STRIP) * 150)  # row at which the strip begins
FRAME = {"smoke": {"Position.x": np.eye(3)}}
INSIDE = (
    (1.0, 0.0, 0.0),
    (1.5, 0.0, 0.0),
    (0.0, 0.0, 1.0),
)  # a camera in the smoke of the ring


def drawn(frame: Frame, **options: Any) -> NDArray:
    plotter = render(frame, **{"size": SIZE, "background": "black", **options})
    image = pixels(plotter).astype(int)
    plotter.close()
    return image


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        ((300.0, 1832.0), "1832"),  # not 1.83e+03, which is wider than its place
        ((-2.5e4, 10.0), "-25000"),
        ((998.0, 1002.04), "1002"),
        ((0.0, 39.84), "39.8"),
        ((0.0, 3.2e6), "3.2e+06"),
    ],
)
def test_numbers_at_a_bar_are_short(span: tuple[float, float], shown: str) -> None:
    assert digits(span).format(max(span, key=abs)) == shown


@pytest.mark.parametrize(
    ("time", "last", "shown"),
    [
        (0.0, 0.0, "t = 0.00 s"),
        (12.3456, 40.0, "t = 12.35 s"),
        (0.0123, 0.02, "t = 0.0123 s"),  # frames of a drop of a millimetre, 0.4 ms apart
        (0.5, 0.999, "t = 0.500 s"),
    ],
)
def test_clock_has_decimals_for_its_frames(time: float, last: float, shown: str) -> None:
    assert clock(time, last) == shown
    assert survey([(0.0, FRAME), (last, FRAME)], Options()).last == last


def test_scene_does_not_reach_into_the_strip_of_the_bar(frame: Frame) -> None:
    """From within the smoke every row shows smoke, those of the strip the bar and the background alone: no
    part of them changes with the smoke. Without anything in colours of a bar there is no strip."""
    barred = drawn(frame, camera=INSIDE)
    without = drawn({"ring": frame["ring"]}, camera=INSIDE)
    assert (barred[: EDGE - 1].max(axis=(1, 2)) > 20).all()
    np.testing.assert_array_equal(barred[EDGE + 1 :], without[EDGE + 1 :])
    assert (barred[EDGE + 1 :, :20] == 0).all()
    whole = drawn(frame, camera=INSIDE, populations=["smoke"])
    assert (whole.max(axis=(1, 2)) > 20).all()


def test_bar_shows_the_colours_from_left_to_right(frame: Frame) -> None:
    """Those of the look's map between its ends, to the rounding of bytes and the width of a pixel."""
    image = drawn(frame, size=(800, 600), populations=["ring"])
    row = image[round(600 * (1.0 - STRIP * 0.51)), 245:555]
    scene = Scene(survey([(0.0, frame)], Options()), Options())
    table = scene.colours("vorticity", scene.view.limits).values
    scene.close()
    share = (np.arange(245, 555) + 0.5 - 240.0) / 320.0
    assert np.abs(row - table[(256 * share).astype(int), :3]).max() <= 6


def test_frames_without_coloured_particles_keep_the_strip(frame: Frame) -> None:
    """Or the scene would jump when the first vortons come; and a frame looks the same whichever came
    before."""
    later = {"smoke": frame["smoke"]}
    options = Options(size=SIZE, background="black", camera="front")
    scene = Scene(survey([(0.0, later), (1.0, frame)], options), options)
    pictures = []
    for one in (later, frame, later):
        scene.show(one)
        pictures.append(pixels(scene.plotter).astype(int))
    scene.close()
    np.testing.assert_array_equal(pictures[0], pictures[2])
    assert pictures[0][EDGE + 1 :].max() == 0 < pictures[1][EDGE + 1 :].max()


@pytest.mark.parametrize(
    ("options", "bar"),
    [
        ({}, True),  # vortons by their vorticity
        ({"populations": ["smoke"]}, False),
        ({"populations": ["smoke"], "color_by": "Age.t"}, True),
        ({"look": "dye"}, False),  # which hides vortons, and there is no density
        ({"look": "dye", "populations": ["ring"]}, True),
        ({"colors": {"ring": "red"}}, False),
        ({"colors": {"ring": "red"}, "what": "glyphs"}, True),
        ({"what": "streamlines", "populations": ["smoke"]}, True),
    ],
)
def test_room_for_a_bar_where_there_is_one(frame: Frame, options: dict[str, Any], bar: bool) -> None:
    chosen = Options(size=SIZE, **options)
    view = survey([(0.0, frame)], chosen)
    scene = Scene(view, chosen)
    scene.show(frame, np.ones_like)
    assert view.bar is bar is bool(scene._coloured)
    scene.close()


@pytest.mark.parametrize("background", ["white", "black", "grey", "#c9d6df", "#ff8c1a"])
def test_words_can_be_read_on_any_background(background: str) -> None:
    """Black and white paper have the contrasts c and 21 / c, so one is at least sqrt(21) = 4.58; our nearly
    black and nearly white words have a little less, and 3 is what large letters need (WCAG 2.1)."""

    def luminance(color: str) -> float:
        return float(np.dot((0.2126, 0.7152, 0.0722), linear(pv.Color(color).float_rgb)))

    for look in LOOKS.values():
        words = readable_on(pv.Color(background).float_rgb, look.text)
        low, high = sorted((luminance(background), luminance(words)))
        assert (high + 0.05) / (low + 0.05) > 3.5
        assert readable_on(pv.Color(look.background).float_rgb, look.text) == look.text
