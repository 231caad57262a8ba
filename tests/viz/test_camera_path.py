"""Cameras that move: the way between keys, turning about the scene, and files that say it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.camera import VIEW_ANGLE, cameras
from ecs_fluid.viz.camera_motion import Aim
from ecs_fluid.viz.camera_path import CameraPath, read_camera

ORIGIN = (0.0, 0.0, 0.0)


def path(*keys: tuple[float, float], **more: str) -> CameraPath:
    """A camera that moves along x at (time, x) and looks at the origin from y = -5."""
    return CameraPath(
        key=tuple({"time": t, "position": (x, -5.0, 0.0), "focal": ORIGIN} for t, x in keys),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def along(camera: CameraPath, time: float) -> float:
    return camera.at(time, 0.0)[0][0]


def test_keys_are_met_and_kept_before_and_after() -> None:
    camera = path((1.0, 0.0), (2.0, 3.0), (4.0, -2.0))
    for time, x in ((1.0, 0.0), (2.0, 3.0), (4.0, -2.0), (0.0, 0.0), (9.0, -2.0)):
        assert along(camera, time) == pytest.approx(x, abs=1e-12)


def test_two_keys_start_and_stop_gently() -> None:
    """Hermite's cubic at rest at both ends is 3 s^2 - 2 s^3: at a quarter 3/16 - 2/64 = 5/32 of the way."""
    camera = path((0.0, 0.0), (4.0, 32.0))
    assert along(camera, 1.0) == pytest.approx(5.0)
    assert along(camera, 2.0) == pytest.approx(16.0)


def test_inner_pieces_follow_a_parabola_exactly() -> None:
    """Slopes are those of parabolas, so between inner keys on x = t^2 the way is t^2, at uneven times too."""
    times = (0.0, 1.0, 1.5, 3.0, 4.0)
    camera = path(*((t, t * t) for t in times))
    for time in np.linspace(1.0, 3.0, 9):
        assert along(camera, time) == pytest.approx(time**2, abs=1e-12)


def test_speed_does_not_jump_at_keys() -> None:
    camera = path((0.0, 0.0), (1.0, 4.0), (1.2, 4.5), (3.0, -1.0))
    for key in (0.0, 1.0, 1.2, 3.0):
        before = (along(camera, key) - along(camera, key - 1e-6)) / 1e-6
        after = (along(camera, key + 1e-6) - along(camera, key)) / 1e-6
        # The speed changes by the acceleration, some 100 m/s^2 at most, times 1e-6 s.
        assert after == pytest.approx(before, abs=1e-3)


def test_linear_is_even_and_clock_of_the_movie_counts() -> None:
    camera = path((0.0, 0.0), (2.0, 8.0), between="linear", clock="movie")
    assert camera.at(99.0, 0.5)[0][0] == pytest.approx(2.0)


def turned(camera: str | CameraPath, played: float, points: np.ndarray) -> np.ndarray:
    lo, hi = points.min(axis=0), points.max(axis=0)
    return np.array(Aim(camera, 30.0, lo, hi, 16 / 9, points).at(0.0, played))


def edge(placed: np.ndarray, points: np.ndarray) -> float:
    """How far out the points reach in the picture; 1 is its edge."""
    position, focal, up = placed
    forward = (focal - position) / np.linalg.norm(focal - position)
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    rays = points - position
    tangent = math.tan(math.radians(VIEW_ANGLE / 2))
    depth = rays @ forward
    assert (depth > 0).all()
    across = np.abs(rays @ right) / (depth * tangent * 16 / 9)
    upwards = np.abs(rays @ np.cross(right, forward)) / (depth * tangent)
    return float(np.maximum(across, upwards).max())


@pytest.mark.parametrize("name", cameras("z"))
def test_orbit_sees_everything_all_the_way_round(name: str) -> None:
    """A long thin cloud, off the origin: its end comes near the camera and must not leave the picture."""
    points = np.random.default_rng(1).uniform((2.0, -0.3, 1.0), (8.0, 0.3, 2.0), (300, 3))
    edges = [edge(turned(name, played, points), points) for played in np.linspace(0.0, 12.0, 25)]
    # ROOM leaves 1/1.12 across and 1/1.2 upwards; between the 24 angles nothing moves by more than 1 %.
    assert max(edges) < 0.92
    assert max(edges) > 0.6


def test_orbit_turns_by_the_angle_about_the_middle() -> None:
    points = np.random.default_rng(2).uniform(-1.0, 1.0, (200, 3))
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    first, third = turned("front", 0.0, points), turned("front", 3.0, points)
    # 3 s at 30 degrees a second: what was at -y is at +x.
    np.testing.assert_allclose(
        third[0] - centre, np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ (first[0] - centre), atol=1e-9
    )
    np.testing.assert_allclose(turned("front", 12.0, points), first, atol=1e-9)


def test_orbit_of_a_path_goes_about_its_focal_point() -> None:
    camera = CameraPath(key=({"time": 0, "position": (3, 2, 1), "focal": (1, 2, 1)},))  # type: ignore[arg-type]
    placed = turned(camera, 3.0, np.eye(3))
    np.testing.assert_allclose(placed[0], (1.0, 4.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(placed[1], (1.0, 2.0, 1.0), atol=1e-12)


KEY = "[[key]]\ntime = 0\nposition = [0, -5, 0]\nfocal = [0, 0, 0]\n"


def test_file_is_the_same_path(tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text(f'between = "linear"\n{KEY}[[key]]\ntime = 2\nposition = [8, -5, 0]\nfocal = [0, 0, 0]\n')
    assert read_camera(file) == path((0.0, 0.0), (2.0, 8.0), between="linear")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KEY.replace("focal", "focus"), "unknown key 'key.0.focus'; did you mean 'focal'"),
        (KEY.replace("[0, -5, 0]", "[0, -5]"), "key.0.position"),
        (KEY.replace("[0, -5, 0]", "[0, 0, 5]"), "along its own up direction"),
        (KEY + KEY, "key 2 is at 0 s; it must be after"),
        (KEY + KEY.replace("-5", "5").replace("= 0", "= 1"), "put another key there"),
        ("between = 3\n" + KEY, "allowed: 'smooth' or 'linear'"),
        ("key = 3", "key = 3"),
        ("", "'key' is missing"),
        ("[[key]", "not valid TOML"),
        (KEY.replace("-5", "nan"), "finite"),
        ("a" * 1_000_001, "1000000 are allowed"),
    ],
)
def test_typos_are_told_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text(text)
    with pytest.raises(FluidError, match=r"camera .*path\.toml") as caught:
        read_camera(file)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_missing_file() -> None:
    with pytest.raises(FluidError, match=r"camera no\.toml cannot be read: No such file"):
        read_camera("no.toml")
