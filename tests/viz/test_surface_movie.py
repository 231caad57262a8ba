"""Movies of signed distances: what changes from frame to frame, and what must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import median_filter

from ecs_fluid.errors import FluidError
from ecs_fluid.kernels.surface import shapes
from ecs_fluid.viz.surface_movie import surface_movie
from ecs_fluid.viz.surface_scene import SurfaceOptions, TimedDistances, survey_surfaces
from ecs_fluid.viz.surfaces import Distances


def ball(radius: float, at: float = 0.0, n: int = 25) -> Distances:
    """Distances to a ball in a box of 2 m, and a temperature that grows along x."""
    x = np.linspace(-1.0, 1.0, n)
    points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    phi = shapes.sphere(points, np.array([at, 0.0, 0.0]), radius)
    return Distances(phi, np.full(3, -1.0), np.full(3, 2 / (n - 1)), 300.0 + 100.0 * points[..., 0])


def timed(*fields: Distances | None) -> list[TimedDistances]:
    return [TimedDistances(0.5 * k, field) for k, field in enumerate(fields)]


def film(tmp_path: Path, frames: list[TimedDistances], **options: Any) -> list[np.ndarray]:
    surface_movie(tmp_path / "f_%d.png", frames, size=(120, 90), **options)
    pictures = []
    for number in range(len(frames)):
        with Image.open(tmp_path / f"f_{number}.png") as image:
            pictures.append(np.asarray(image).astype(int))
    return pictures


def water(picture: np.ndarray) -> np.ndarray:
    return (picture[..., 2] > 60) & (picture[..., 2] > 1.5 * picture[..., 0])


def test_camera_stays_while_the_surface_grows_vanishes_and_comes_back(tmp_path: Path) -> None:
    """Discs of balls of 0.4 m and 0.8 m from a camera that stays: areas as 1 to 4, the same middle. Where
    there is no liquid, and where the grid holds no surface, the picture is empty but for its clock."""
    outside = ball(0.4)._replace(phi=np.ones((25, 25, 25)))
    frames = timed(ball(0.4), None, ball(0.8), outside, ball(0.4))
    small, none, large, empty, again = film(tmp_path, frames, camera="front")
    areas = [water(picture).sum() for picture in (small, large)]
    # Perspective (nearer balls look larger) and edges of pixels: 10 %.
    assert areas[1] / areas[0] == pytest.approx(4.0, rel=0.1)
    assert water(none).sum() == water(empty).sum() == 0
    middle = [np.argwhere(water(picture)).mean(axis=0) for picture in (small, large, again)]
    assert np.ptp(middle, axis=0).max() < 1.0
    np.testing.assert_array_equal(small[20:], again[20:])  # below the clock


def test_colours_are_those_of_all_frames(tmp_path: Path) -> None:
    """A ball at x = -0.5 m is colder (250 K) than one at 0.5 m: brightness grows with temperature over the
    frames. Were each frame coloured by itself, the two would look alike."""
    frames = timed(ball(0.3, -0.5), ball(0.3, 0.5))
    view = survey_surfaces(frames, SurfaceOptions(color_by="temperature"))
    # The spheres reach from -0.8 to -0.2 m and 0.2 to 0.8 m: 220 to 280 K and 320 to 380 K. The ends are the
    # 2nd and 98th percentiles; on a sphere x is spread evenly (Archimedes): they lie 2 % of 60 K further in.
    assert view.limits == pytest.approx((221.2, 378.8), abs=2.0)
    cold, hot = film(tmp_path, frames, color_by="temperature", camera="front")
    above_bar = np.s_[20:70]
    assert hot[above_bar].max() > 1.4 * cold[above_bar].max()


def test_slices_and_cuts(tmp_path: Path) -> None:
    """The zero line of a slice is a black circle: twice the radius, twice the pixels; a cut ball is no full
    disc any more but shows the plane's colours."""
    frames = timed(ball(0.3), ball(0.6))
    first, second = ((picture[:70].max(axis=2) < 12).sum() for picture in film(tmp_path, frames, slices=True))
    assert second / first == pytest.approx(2.0, rel=0.25)  # lines of 5 pixels in pictures of 90
    # Contours stand 1/12 of the largest distance apart, (sqrt(3) - 0.3) / 12 = 0.119 m: five lie on the way
    # of 0.6 m from the zero line to the middle of the second ball, the last of them nearly in the middle.
    surface_movie(tmp_path / "wide_%d.png", frames, slices=True, size=(480, 360))
    with Image.open(tmp_path / "wide_1.png") as image:
        bright = np.asarray(image).astype(int).max(axis=2)[:280]  # above the edge of the plane
    middle = np.argwhere(bright < 12).mean(axis=0).round().astype(int)  # of the zero line
    way = bright[middle[0] + 2, middle[1] :]
    inside = way[: int(np.argmax(way < 12))]
    line = inside < median_filter(inside, 9) - 8
    assert 4 <= (line[1:] & ~line[:-1]).sum() <= 6
    whole, cut = film(tmp_path, frames), film(tmp_path, frames, clip=True)
    assert all(np.abs(a - b).mean() > 2.0 for a, b in zip(whole, cut, strict=True))


def test_speed_asks_for_every_frames_velocity(tmp_path: Path) -> None:
    frames = [
        TimedDistances(float(k), ball(0.5), lambda x, k=k: (k + 1.0) * np.ones_like(x)) for k in range(3)
    ]
    view = survey_surfaces(frames, SurfaceOptions(color_by="speed"))
    assert view.limits == pytest.approx((0.0, 3.0 * np.sqrt(3.0)))  # a speed begins at 0
    slow, _, fast = film(tmp_path, frames, color_by="speed")
    assert fast[20:70].mean(axis=2).max() > 1.5 * slow[20:70].mean(axis=2).max()


@pytest.mark.nightly
def test_several_processes_draw_the_same(tmp_path: Path) -> None:
    """By day test_drawers has two of them draw particles and arrows with the pixels of one."""
    frames = timed(None, ball(0.3), ball(0.6))
    for folder, jobs in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        film(tmp_path / folder, frames, jobs=jobs, color_by="curvature", orbit=45.0)
    for number in range(3):
        one, two = ((tmp_path / folder / f"f_{number}.png").read_bytes() for folder in ("one", "two"))
        assert one == two


def test_mistakes_are_named(tmp_path: Path) -> None:
    target = tmp_path / "a.gif"
    with pytest.raises(FluidError, match=r"no surface at the level 3 m; .* -0.5 m to"):
        surface_movie(target, timed(ball(0.5)), level=3.0)
    with pytest.raises(FluidError, match="none of these frames has a signed distance"):
        surface_movie(target, timed(None, None))
    with pytest.raises(FluidError, match="no frames to make a movie of"):
        surface_movie(target, [])
    with pytest.raises(FluidError, match="did you mean 'curvature'"):
        surface_movie(target, timed(ball(0.5)), color_by="curvatur")
    bare = ball(0.5)._replace(T=None)
    with pytest.raises(FluidError, match="this surface has no 'temperature'"):
        surface_movie(target, timed(bare), color_by="temperature")
    with pytest.raises(FluidError, match="unknown look 'smok'"):
        surface_movie(target, timed(bare), look="smok")
    assert not list(tmp_path.iterdir())
