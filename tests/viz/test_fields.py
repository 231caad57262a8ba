"""Slices, grids and streamlines against flows with closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.fields import field_slice, streamlines, velocity_slice
from ecs_fluid.viz.scene import Scene
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import Options

BOX = ([-1.0, -1.0, -0.5], [1.0, 1.0, 0.5])


def rotation(points: NDArray) -> NDArray:
    """Rigid rotation about z at 2 rad/s: u = (-2 y, 2 x, 0), curl u = (0, 0, 4)."""
    return 2.0 * np.stack((-points[:, 1], points[:, 0], 0.0 * points[:, 2]), axis=1)


def quadratic(points: NDArray) -> NDArray:
    """u = (y^2, z x, x y): curl u = (x - x, -y, z - 2 y) = (0, -y, z - 2 y)."""
    x, y, z = points.T
    return np.stack((y * y, z * x, x * y), axis=1)


@pytest.mark.parametrize("normal", "xyz")
def test_slice_holds_the_velocity_at_its_points_on_its_plane(normal: str) -> None:
    origin = (0.1, -0.2, 0.3)
    plane = velocity_slice(quadratic, BOX, normal, origin, resolution=21)
    points = np.asarray(plane.points, dtype=np.float64)
    np.testing.assert_array_equal(plane["u"], quadratic(points))
    np.testing.assert_allclose(plane["speed"], np.linalg.norm(quadratic(points), axis=1), rtol=1e-15)
    n = np.eye(3)["xyz".index(normal)]
    np.testing.assert_allclose((points - origin) @ n, 0.0, atol=1e-15 * 4)
    # Second-order differences are exact for quadratic fields: only round-off remains.
    curl = np.stack((0.0 * points[:, 0], -points[:, 1], points[:, 2] - 2.0 * points[:, 1]), axis=1)
    np.testing.assert_allclose(plane["vorticity_normal"], curl @ n, atol=1e-12)


def test_axis_slice_spans_the_box() -> None:
    plane = velocity_slice(rotation, BOX, "y", resolution=41)
    np.testing.assert_allclose(plane.bounds, (-1.0, 1.0, 0.0, 0.0, -0.5, 0.5), atol=1e-15)
    assert plane.n_points == 41 * 21  # 2 m and 1 m at 0.05 m


def test_streamlines_of_rigid_rotation_are_closed_circles() -> None:
    radii = np.array([0.2, 0.5, 0.9])
    seeds = np.stack((radii, 0.0 * radii, 0.1 + 0.0 * radii), axis=1)
    lines = streamlines(rotation, BOX, seeds, longest=20.0)
    assert lines.n_cells == 3
    for index, radius in enumerate(radii):
        points = np.asarray(lines.get_cell(index).points)
        # RK4 with h = 3 m / 200 changes the radius by about (h/r)^6/144 a step: 1e-7 in a turn at 0.2 m.
        # PyVista keeps the points in double precision, so far less than the 1 % that an eye would see.
        np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), radius, rtol=1e-5)
        np.testing.assert_array_equal(points[0], points[-1])
        length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
        # Chords of h on radius r are shorter than the arc by (h/r)^2/24 = 2.3e-4 at r = 0.2.
        np.testing.assert_allclose(length, 2.0 * np.pi * radius, rtol=5e-4)
    np.testing.assert_allclose(
        lines["speed"], 2.0 * np.hypot(lines.points[:, 0], lines.points[:, 1]), rtol=1e-6
    )


def test_streamlines_go_both_ways_and_end_at_the_box() -> None:
    lines = streamlines(lambda points: np.tile([3.0, 0.0, 0.0], (len(points), 1)), BOX, [[0.2, 0.3, 0.0]])
    points = np.asarray(lines.points)
    step = 3.0 / 200.0  # the box's diagonal is 3 m
    assert -1.0 <= points[0, 0] < -1.0 + step and 1.0 - step < points[-1, 0] <= 1.0
    assert (np.diff(points[:, 0]) > 0.0).all()
    np.testing.assert_allclose(points[:, 1:], np.tile([0.3, 0.0], (len(points), 1)), atol=1e-15)


def test_streamlines_stay_in_the_fluid() -> None:
    """Of circles about the axis the fluid has only the half y > 0: they end there, none begins outside."""

    def upper(points: NDArray) -> NDArray:
        return points[:, 1] > 0.0

    lines = streamlines(rotation, BOX, 12, within=upper)
    assert lines.n_cells == 12
    assert lines.points[:, 1].min() > 0.0 and lines.points[:, 1].max() > 0.5
    assert streamlines(rotation, BOX, 12, within=lambda points: points[:, 1] > 9.0).n_points == 0


def test_a_slice_holds_any_field() -> None:
    plane = field_slice(lambda points: points[:, 0] + 2.0 * points[:, 2], "temperature", BOX, resolution=11)
    x, _, z = plane.points.T
    np.testing.assert_allclose(plane["temperature"], x + 2.0 * z, atol=1e-7)


def test_fluid_at_rest_has_no_streamlines() -> None:
    assert streamlines(lambda points: 0.0 * points, BOX, seeds=5).n_points == 0


def test_chosen_seeds_are_inside_and_the_same_every_time() -> None:
    first, second = (np.asarray(streamlines(rotation, BOX, seeds=7).points) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (np.abs(first) <= BOX[1]).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: velocity_slice(rotation, BOX, "w"), "slice normal 'w'"),
        (lambda: velocity_slice(rotation, ((0, 0, 0), (1, 0, 1)), "x"), "have no area in a slice"),
        (lambda: velocity_slice(rotation, (0.0, 1.0)), "not a box"),
        (lambda: velocity_slice(rotation, ((0, 0, 0), (0, 0, 0))), "are a point"),
        (lambda: velocity_slice(lambda points: points[:, :2], BOX), "returned shape"),
        (lambda: velocity_slice(lambda points: np.nan * points, BOX), "not finite"),
        (lambda: streamlines(rotation, BOX, np.zeros((2, 2))), "seeds of shape"),
        (lambda: streamlines(rotation, BOX, 3, step=-1.0), "steps of"),
    ],
)
def test_bad_input_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(FluidError, match=words):
        call()  # type: ignore[operator]


def test_a_slice_of_temperatures_shows_the_hottest() -> None:
    """A flame fills 0.3 % of the slice: the scale ends at its 1500 K, not at the last of 99.5 %, 300 K."""

    def velocity(points: np.ndarray) -> np.ndarray:
        return np.zeros_like(points)

    def carried(name: str, points: np.ndarray) -> np.ndarray:
        assert name == "temperature"
        return np.where(np.linalg.norm(points, axis=1) < 0.08, 1500.0, 300.0)

    vars(velocity)["field"] = carried
    corners = np.array(BOX, float)
    frame = {"smoke": {"Position.x": corners, "Velocity.u": np.zeros_like(corners)}}
    options = Options(what="slice", color_by="temperature", size=(80, 80), resolution=80)
    scene = Scene(survey([(0.0, frame)], options), options)
    scene.show(frame, velocity)
    assert scene._tables["temperature"].scalar_range == (300.0, 1500.0)
    scene.close()
