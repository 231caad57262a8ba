"""A named camera shows the whole box, and no more than it must."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.upward import axis_vector, turn, up_of
from ecs_fluid.viz.camera import NAMED, SIDES, VIEW_ANGLE, cameras, of_world, place
from ecs_fluid.viz.camera_motion import Aim
from ecs_fluid.viz.scene import pixels, render
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import Options
from ecs_fluid.world_options import WorldOptions


@pytest.mark.parametrize("name", cameras("z"))
@pytest.mark.parametrize("aspect", [0.5, 16 / 9])
def test_box_fills_the_picture(name: str, aspect: float) -> None:
    lo, hi = np.array([-1.0, 2.0, -3.0]), np.array([4.0, 3.0, 1.0])
    position, focal, up = (np.array(point) for point in place(name, lo, hi, aspect))
    forward = (focal - position) / np.linalg.norm(focal - position)
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    top = np.cross(right, forward)
    tangent = math.tan(math.radians(VIEW_ANGLE / 2))
    edge = 0.0
    for corner in itertools.product(*zip(lo, hi, strict=True)):
        ray = np.array(corner) - position
        depth = ray @ forward
        edge = max(edge, abs(ray @ right) / (depth * tangent * aspect), abs(ray @ top) / (depth * tangent))
    # Inside (below 1), with the margin of 12 % on the box and the perspective.
    assert 0.7 < edge < 1.0


def test_auto_looks_down_a_thin_axis() -> None:
    position, focal, _ = place("auto", np.zeros(3), np.array([2.0, 2.0, 0.0]), 1.0)
    assert position[:2] == focal[:2] == (1.0, 1.0) and position[2] > 0.0


@pytest.mark.parametrize("up", ["y", "-y", "x", "-x", "-z"])
def test_cameras_by_name_turn_with_the_scene(up: str) -> None:
    """A scene with another axis upwards is the one with z upwards turned, and so are its cameras and orbits.

    Cameras at a side stand there, with that axis upwards in the picture unless they look along it.
    """
    matrix = turn("z", up)
    np.testing.assert_array_equal(matrix @ [0.0, 0.0, 1.0], axis_vector(up))
    assert np.linalg.det(matrix) == 1.0
    x = np.random.default_rng(3).uniform([-1.0, 2.0, -3.0], [4.0, 3.0, 1.0], (20, 3))
    turned = x @ matrix.T
    box, other = (x.min(axis=0), x.max(axis=0)), (turned.min(axis=0), turned.max(axis=0))
    for name, orbit in itertools.product(NAMED, (0.0, 30.0)):
        straight = Aim(name, orbit, *box, 1.5, x).at(0.0, 0.7)
        seen = Aim(name, orbit, *other, 1.5, turned, up).at(0.0, 0.7)
        np.testing.assert_allclose(np.array(seen), np.array(straight) @ matrix.T, atol=1e-12)
    for side in SIDES:
        position, focal, hint = (np.array(vector) for vector in place(side, *other, 1.5, turned, up))
        assert np.argmax(np.abs(position - focal)) == np.argmax(np.abs(axis_vector(side)))
        assert (position - focal) @ axis_vector(side) > 0.0
        assert side[-1] == up[-1] or np.array_equal(hint, axis_vector(up))


def test_up_is_against_gravity() -> None:
    for axis in SIDES:
        assert up_of(-9.8 * axis_vector(axis)) == axis
    assert up_of((0.0, 0.0, 0.0)) == up_of((9.0, 0.0, -9.0)) == "z"  # none; as near as x
    assert up_of((2.0, -9.6, 0.5)) == "y"  # a tank that leans
    assert (
        up_of([(0.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -9.8)]) == "y"
    )  # keys: the first that is not zero


def test_a_picture_with_y_upwards_is_that_with_z_upwards() -> None:
    """Of smoke with its shadows, turned: the same pixels, but for the grid on which shadows are counted.

    Of the spread of the pixels they differ by 0.05 in the mean; by 0.15 with light from where z is up, and
    by 0.98 from a camera for z upwards.
    """
    x = np.random.default_rng(2).normal(size=(400, 3)) * [0.4, 0.2, 0.9]
    images = []
    for up in ("z", "y"):
        columns = {"smoke": {"Position.x": x @ turn("z", up).T}}
        plotter = render(columns, up=up, size=(120, 90), off_screen=True)
        images.append(pixels(plotter).astype(int))
        plotter.close()
    assert images[0].std() > 20.0
    assert np.abs(images[0] - images[1]).mean() < 0.1 * images[0].std()


def test_point_like_box_still_gives_a_camera() -> None:
    position, focal, _ = place("auto", np.ones(3), np.ones(3), 1.0)
    assert np.isfinite(position).all() and position != focal


@pytest.mark.parametrize(
    ("camera", "words"),
    [
        ("frnt", "unknown camera 'frnt'.*did you mean 'front'"),
        ([[0, 0, 0], [1, 0, 0]], "three points"),
        ([[0, 0, 0], [0, 0, 1], [0, 0, 1]], "its own up direction"),
    ],
)
def test_bad_cameras(camera: object, words: str) -> None:
    with pytest.raises(FluidError, match=words):
        place(camera, np.zeros(3), np.ones(3), 1.0)  # type: ignore[arg-type]


def test_a_flow_in_a_plane_is_seen_in_that_plane() -> None:
    """Bodies reach across the plane, so that the box tells nothing; slices were smears across it."""
    told = {"camera": "auto", "normal": "y", "what": "slice"}
    for plane, normal, camera in (("xy", "z", "top"), ("xz", "y", "front")):
        world = WorldOptions(dimension=2, plane=plane)
        seen = of_world(world, "z", told)
        assert seen == told | {"normal": normal, "camera": camera, "periods": world.periodic, "up": "z"}
        assert of_world(world, "z", told | {"camera": "left"})["camera"] == "left"
    space = WorldOptions(periodic=(1.0, 0.0, 0.0))
    assert of_world(space, "z", told) == told | {"periods": (1.0, 0.0, 0.0), "up": "z"}


def test_all_of_a_box_that_repeats_is_seen() -> None:
    """A tall box with little in it: its edges are drawn, and were cut off above and below."""
    x = np.random.default_rng(1).uniform(-0.1, 0.1, (50, 3))
    view = survey([(0.0, {"dust": {"Position.x": x}})], Options(periods=(0.0, 0.0, 4.0)))
    assert view.points is not None
    np.testing.assert_array_equal([view.lo[2], view.hi[2]], [-2.0, 2.0])
    np.testing.assert_array_equal([view.points[:, 2].min(), view.points[:, 2].max()], [-2.0, 2.0])
