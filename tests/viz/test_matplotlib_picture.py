"""Pictures without OpenGL: drawn by matplotlib, measured; and how it comes to that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.matplotlib_picture import plain_distances, plain_picture
from ecs_fluid.viz.probe import require_gl


def picture(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image).astype(int)


def dark(image: np.ndarray, row: slice, column: slice) -> int:
    """Pixels that are not white there."""
    return int((image[row, column].min(axis=2) < 200).sum())


def test_ring_from_the_top_is_a_ring_and_from_the_front_a_bar(frame: Frame, tmp_path: Path) -> None:
    """Radius 1 m, tube 0.2 m: from above there is nothing within 0.8 m; from the front it is flat."""
    target = tmp_path / "a.png"
    plain_picture(target, {"smoke": frame["smoke"]}, time=0.25, camera="top", size=(240, 240))
    top = picture(target)
    assert top.shape == (240, 240, 3)
    grey = np.ptp(top, axis=2) < 8
    dots = grey & (top.max(axis=2) < 180) & (top.max(axis=2) > 100)
    rows, columns = np.nonzero(dots[20:200, 40:])
    assert dots[95:115, 125:145].sum() < 5  # the hole
    assert np.ptp(rows) > 90 and np.ptp(columns) > 90
    plain_picture(target, {"smoke": frame["smoke"]}, camera="front", size=(240, 240))
    front = picture(target)
    assert ((front.max(axis=2) < 180) & (front.max(axis=2) > 100) & (np.ptp(front, axis=2) < 8)).sum() > 300


def axes_of(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes that are drawn, caught on the way to the file: numbers, not pixels."""
    from ecs_fluid.viz import matplotlib_picture

    caught: list[Any] = []
    written = matplotlib_picture._written

    def write(figure: Any, axes: Any, *rest: Any) -> Path:
        caught.append((figure, axes))
        return written(figure, axes, *rest)

    monkeypatch.setattr(matplotlib_picture, "_written", write)
    return caught


def test_axes_units_and_colour_bar(frame: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caught = axes_of(monkeypatch)
    plain_picture(tmp_path / "a.png", frame, time=0.25, camera="back", size=(240, 160))
    figure, axes = caught[-1]
    assert axes.get_xlabel() == "x [m]" and axes.get_ylabel() == "z [m]" and axes.xaxis_inverted()
    assert axes.get_title(loc="left") == "t = 0.250 s"
    assert figure.axes[1].get_ylabel() == "vorticity [1/s]"
    low, high = axes.collections[-1].get_clim()
    # |alpha| / V of row k is 0.5 (1 + k / 60) / 0.01: from 0, as magnitudes do, to nearly 99.2.
    assert low == 0.0 and high == pytest.approx(50.0 * (1.0 + 58.7 / 60.0), rel=1e-3)
    drawn = np.asarray(axes.collections[-1].get_offsets())
    order = np.argsort(drawn[:, 0])
    np.testing.assert_allclose(drawn[order, 0], np.sort(frame["ring"]["Position.x"][:, 0]), atol=1e-12)


def test_slice_holds_the_speed_of_its_plane(
    frame: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught = axes_of(monkeypatch)

    def rotation(points: np.ndarray) -> np.ndarray:
        return np.stack((-points[:, 1], points[:, 0], 0.0 * points[:, 2]), axis=1)

    plain_picture(tmp_path / "a.png", frame, velocity=rotation, what="slice", normal="z", size=(240, 160))
    figure, axes = caught[-1]
    mesh = axes.collections[0]
    corners = np.asarray(mesh.get_coordinates())
    # |u| is the distance from the axis at every point of the plane.
    speed = np.hypot(corners[..., 0], corners[..., 1])
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(speed.shape), speed, atol=1e-12)
    assert figure.axes[1].get_ylabel() == "speed [m/s]"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x [m]", "y [m]")


def test_distances_have_their_zero_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caught = axes_of(monkeypatch)
    x = np.linspace(-1.0, 1.0, 41)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    phi = np.linalg.norm(grid, axis=-1) - 0.5
    plain_distances(tmp_path / "a.png", phi, np.full(3, -1.0), np.full(3, 0.05), "x", time=1.0)
    _, axes = caught[-1]
    line = np.concatenate([path.vertices for path in axes.collections[-1].get_paths()])
    # Linear interpolation of a circle of radius R on cells h is off by h^2 / (8 R) at most.
    np.testing.assert_allclose(np.linalg.norm(line, axis=1), 0.5, atol=0.05**2 / (8 * 0.5) + 1e-9)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y [m]", "z [m]")


def test_what_cannot_be_drawn(frame: Frame, tmp_path: Path) -> None:
    target = tmp_path / "a.png"
    with pytest.raises(FluidError, match="streamlines cannot be drawn without OpenGL"):
        plain_picture(target, frame, what="streamlines")
    with pytest.raises(FluidError, match="drawn from a side"):
        plain_picture(target, frame, camera=((5, 5, 5), (0, 0, 0), (0, 0, 1)))
    with pytest.raises(FluidError, match=r"did you mean 'Age\.t'"):
        plain_picture(target, frame, color_by="Aget")
    with pytest.raises(FluidError, match="nothing to draw"):
        plain_picture(target, {})
    assert not list(tmp_path.iterdir())


def test_command_line_falls_back_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ECS_FLUID_GL=no` is the answer of a machine without OpenGL."""
    monkeypatch.setenv("ECS_FLUID_GL", "no")
    with pytest.raises(FluidError, match="ECS_FLUID_GL"):
        require_gl()
    target = tmp_path / "ring.png"
    show = ["show", "vortex_ring", "--size", "160", "120", "--save", str(target)]
    assert main(show) == 0
    said = capsys.readouterr()
    assert said.err.startswith("warning: drawn plainly, by matplotlib: ") and said.err.count("\n") == 1
    image = picture(target)
    assert image.shape == (120, 160, 3) and np.median(image) == 255  # on white, not on the dark of `smoke`
    target.unlink()
    assert main([*show, "--what", "streamlines"]) == 2
    assert "only particles, slice, sdf_slice can be drawn" in capsys.readouterr().err
    assert main(["show", "vortex_ring", "--movie", str(tmp_path / "a.mp4")]) == 2
    assert "ECS_FLUID_GL" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
