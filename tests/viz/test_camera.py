"""A named camera shows the whole box, and no more than it must."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.camera import CAMERAS, VIEW_ANGLE, of_world, place
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import Options
from ecs_fluid.world_options import WorldOptions


@pytest.mark.parametrize("name", CAMERAS)
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
        seen = of_world(world, told)
        assert seen == told | {"normal": normal, "camera": camera, "periods": world.periodic}
        assert of_world(world, told | {"camera": "left"})["camera"] == "left"
    space = WorldOptions(periodic=(1.0, 0.0, 0.0))
    assert of_world(space, told) == told | {"periods": (1.0, 0.0, 0.0)}


def test_all_of_a_box_that_repeats_is_seen() -> None:
    """A tall box with little in it: its edges are drawn, and were cut off above and below."""
    x = np.random.default_rng(1).uniform(-0.1, 0.1, (50, 3))
    view = survey([(0.0, {"dust": {"Position.x": x}})], Options(periods=(0.0, 0.0, 4.0)))
    assert view.points is not None
    np.testing.assert_array_equal([view.lo[2], view.hi[2]], [-2.0, 2.0])
    np.testing.assert_array_equal([view.points[:, 2].min(), view.points[:, 2].max()], [-2.0, 2.0])
