"""Pictures, measured: what is bright where, and which colours there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.scene import pixels, render, save_png

SMALL = (200, 150)


def picture(frame: Frame, **options: Any) -> NDArray:
    """Brightness and colour 0 to 255, (150, 200, 3), as floats."""
    plotter = render(frame, **{"size": SMALL, "background": "black", **options})
    image = pixels(plotter).astype(float)
    plotter.close()
    return image


def rotation(points: NDArray) -> NDArray:
    return np.stack((-points[:, 1], points[:, 0], 0.0 * points[:, 2]), axis=1)


def test_smoke_ring_seen_along_its_axis_is_a_ring(frame: Frame) -> None:
    image = picture(frame, camera="top", populations=["smoke"]).mean(axis=2)
    assert image.shape == (150, 200)
    y, x = np.mgrid[:150, :200]
    from_centre = np.hypot(x - 99.5, y - 74.5)
    # The outermost 1.2 m lie within the 75 pixels of half a picture less the margin: the scale is between
    # 50 and 62 pixels per m, so the hole (0.8 m) is wider than 36 pixels and nothing is beyond 80.
    hole, outside = image[from_centre < 28], image[from_centre > 80]
    assert hole.max() < 3.0 and outside.max() < 3.0
    angles = np.arctan2(y - 74.5, x - 99.5)
    sectors = [
        image[(np.abs(angles - a) < np.pi / 16) & (from_centre > 28)].max()
        for a in np.linspace(-2.9, 2.9, 16)
    ]
    # Every sector has smoke, and none is darker than half the brightest: a closed, even ring.
    assert min(sectors) > 60.0 and min(sectors) > 0.5 * max(sectors)


def test_smoke_is_brighter_where_the_light_comes_from(frame: Frame) -> None:
    image = picture(frame, camera="top", populations=["smoke"]).mean(axis=2)
    # The light stands at (-0.55, -0.45): lower left, seen from above. Its side shades the other.
    assert image[75:, :100].mean() > 1.02 * image[:75, 100:].mean()


def test_colour_changes_with_color_by(frame: Frame) -> None:
    by_vorticity = picture(frame, populations=["ring"])
    by_speed = picture(frame, populations=["ring"], color_by="Velocity.u.z")
    drawn = by_vorticity.max(axis=2) > 30.0
    difference = np.abs(by_vorticity[drawn].mean(axis=0) - by_speed[drawn].mean(axis=0)).max()
    assert difference > 8.0  # levels of 255
    # One value everywhere (u_z = 2 m/s) has one hue: the spread of the share of red comes from shading alone.
    above_bar = np.s_[:110]  # the scalar bar below shows all colours

    def spread(image: NDArray) -> float:
        red = (image[..., 0] / np.maximum(image.sum(axis=2), 1.0))[above_bar][drawn[above_bar]]
        return float(np.ptp(np.percentile(red, [10, 90])))

    assert spread(by_speed) < 0.5 * spread(by_vorticity)


def test_tracers_can_be_coloured_too(frame: Frame) -> None:
    grey = picture(frame, camera="top", populations=["smoke"])
    aged = picture(frame, camera="top", populations=["smoke"], color_by="Age.t")

    def colourfulness(image: NDArray) -> float:
        return float(np.ptp(image[:110], axis=2).mean())

    assert colourfulness(aged) > 5.0 * colourfulness(grey)


@pytest.mark.parametrize("what", ["glyphs", "slice", "streamlines"])
def test_other_pictures_show_something(frame: Frame, what: str) -> None:
    image = picture(frame, what=what, velocity=rotation, populations=["ring"], camera="top", normal="z")
    empty = picture(frame, populations=["ring"], camera=((50, 0, 0), (60, 0, 0), (0, 0, 1)))
    # Nothing but the scalar bar is in view of a camera that looks away.
    assert (image[:110].max(axis=2) > 40).sum() > 300 and empty[:110].max() < 5


def test_slice_of_rigid_rotation_is_dark_in_the_middle_and_bright_outside(frame: Frame) -> None:
    image = picture(frame, what="slice", velocity=rotation, normal="z").mean(axis=2)
    # |u| = r: 0 in the centre, the most at the corners; inferno's brightness grows with the value.
    # The scene is the upper 87 % of the picture, and its middle at 65 of 150 rows.
    assert image[60:70, 95:105].mean() < 0.5 * image[20:110, 60:65].mean()


def test_a_picture_is_drawn_once(frame: Frame) -> None:
    """The first one too, which a screenshot draws by itself; drawing takes most of a picture's time."""
    plotter, drawn = render(frame, size=SMALL), []
    plotter.render_window.AddObserver("EndEvent", lambda *_: drawn.append(1))
    for number in (1, 2, 3):
        pixels(plotter)
        assert len(drawn) == number
    plotter.close()


def test_view_is_kept_over_frames(frame: Frame) -> None:
    from ecs_fluid.viz.scene import Scene
    from ecs_fluid.viz.shared_limits import survey
    from ecs_fluid.viz.style import Options

    higher = {name: {**columns} for name, columns in frame.items()}
    for columns in higher.values():
        columns["Position.x"] = columns["Position.x"] + [0.0, 0.0, 2.0]
    options = Options(size=SMALL, background="black", camera="front", populations=["smoke"])
    scene = Scene(survey([(0.0, frame), (1.0, higher)], options), options)
    rows = []
    actors = []
    for one in (frame, higher, frame):
        scene.show(one)
        image = pixels(scene.plotter).astype(float).mean(axis=2)
        rows.append(image.sum(axis=1) @ np.arange(150) / image.sum())
        actors.append(scene.plotter.renderer.GetActors().GetNumberOfItems())
    scene.close()
    # 2 m of a box of 2.4 m or so in 134 pixels: the ring rises, and comes back to where it was.
    assert rows[0] - rows[1] > 60.0
    assert rows[2] == pytest.approx(rows[0], abs=1e-9)
    assert len(set(actors)) == 1


def test_population_without_rows_is_hidden_again(frame: Frame) -> None:
    from ecs_fluid.viz.scene import Scene
    from ecs_fluid.viz.shared_limits import survey
    from ecs_fluid.viz.style import Options

    options = Options(size=SMALL, background="black")
    scene = Scene(survey([(0.0, {"smoke": frame["smoke"]})], options), options)
    scene.show({"smoke": frame["smoke"]})
    assert pixels(scene.plotter).max() > 60
    scene.show({"smoke": {"Position.x": np.zeros((0, 3))}})
    assert pixels(scene.plotter).max() == 0
    scene.close()


def test_time_is_written(frame: Frame) -> None:
    without, with_time = picture(frame), picture(frame, time=1.25)
    changed = np.argwhere(np.abs(without - with_time).max(axis=2) > 30)
    assert len(changed) > 10
    assert changed[:, 0].max() < 25 and changed[:, 1].max() < 80  # the upper left corner


def test_png_has_the_size_asked_for_and_the_pixels_drawn(frame: Frame, tmp_path: Path) -> None:
    plotter = render(frame, size=(203, 151), populations=["ring"])
    path = save_png(plotter, tmp_path / "ring.png")
    with Image.open(path) as image:
        assert image.size == (203, 151)
        np.testing.assert_array_equal(np.asarray(image), pixels(plotter))
    assert [entry.name for entry in tmp_path.iterdir()] == ["ring.png"]
    with pytest.raises(FluidError, match="cannot write the picture"):
        save_png(plotter, tmp_path / "no" / "ring.png")
    with pytest.raises(FluidError, match="does not end in"):
        save_png(plotter, tmp_path / "ring.bmp")
    plotter.close()
    with pytest.raises(FluidError, match="closed"):
        save_png(plotter, path)


def test_what_cannot_be_drawn_says_why(frame: Frame) -> None:
    with pytest.raises(FluidError, match="slice needs a velocity function"):
        render(frame, what="slice", size=SMALL)
    with pytest.raises(FluidError, match=r"unknown colour of a slice 'vorticity'.*vorticity_normal"):
        render(frame, what="slice", velocity=rotation, color_by="vorticity", size=SMALL)
    with pytest.raises(FluidError, match=r"unknown colour of streamlines 'Age\.t'"):
        render(frame, what="streamlines", velocity=rotation, color_by="Age.t", size=SMALL)
    with pytest.raises(FluidError, match="nothing to draw"):
        render({}, size=SMALL)
    with pytest.raises(FluidError, match="unknown background"):
        render(frame, size=SMALL, background="greyish-ish")
