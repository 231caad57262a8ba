"""Movies read back: count, size, motion; and what happens when they cannot be written."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.movie import movie
from ecs_fluid.viz.shared_limits import TimedFrame

iio = pytest.importorskip("imageio.v3")
pytest.importorskip("imageio_ffmpeg")


def rising(frame: Frame, count: int = 6) -> list[TimedFrame]:
    """The frame's smoke, 0.4 m higher every time."""
    x = frame["smoke"]["Position.x"]
    return [(0.1 * k, {"smoke": {"Position.x": x + np.array([0.0, 0.0, 0.4 * k])}}) for k in range(count)]


def heights(film: np.ndarray) -> np.ndarray:
    """Mean row of the brightness of every frame."""
    light = film.astype(float).mean(axis=3)
    return light.sum(axis=2) @ np.arange(film.shape[1]) / light.sum(axis=(1, 2))


def test_mp4_has_the_frames_the_even_size_and_the_motion(frame: Frame, tmp_path: Path) -> None:
    done: list[int] = []
    path = movie(
        tmp_path / "ring.mp4", rising(frame), fps=10, size=(161, 121), camera="front", background="black",
        progress=done.append,
    )  # fmt: skip
    film = iio.imread(path)
    assert film.shape == (6, 122, 162, 3)
    assert iio.immeta(path)["fps"] == 10.0 and iio.immeta(path)["codec"] == "h264"
    assert "yuv420p" in iio.immeta(path)["pix_fmt"]
    assert done == [1, 2, 3, 4, 5, 6]
    step = np.diff(heights(film))
    # Equal rises of 0.4 m: equal steps up, to the rounding of compression and a little perspective.
    assert (step < -4.0).all() and np.ptp(step) < 0.35 * -step.mean()
    assert [entry.name for entry in tmp_path.iterdir()] == ["ring.mp4"]


def test_gif(frame: Frame, tmp_path: Path) -> None:
    path = movie(tmp_path / "ring.gif", rising(frame, 3), fps=10, size=(160, 120), background="black")
    film = iio.imread(path, mode="RGB")  # later frames may be transparent where nothing changes
    assert film.shape == (3, 120, 160, 3)
    assert (np.diff(heights(film)) < -3.0).all()


def test_iterator_is_drawn_once_and_starts_empty(frame: Frame, tmp_path: Path) -> None:
    def one_pass() -> Iterator[TimedFrame]:
        yield 0.0, {"smoke": {"Position.x": np.zeros((0, 3))}}
        yield from rising(frame, 2)

    film = iio.imread(movie(tmp_path / "a.mp4", one_pass(), size=(160, 120), background="black"))
    assert len(film) == 3
    # Only the time label is in the first frame.
    assert film[0, 30:].max() < 20 and film[1, 30:].max() > 60


def test_slice_movie_asks_for_every_frames_velocity(frame: Frame, tmp_path: Path) -> None:
    """The colour range is that of all frames: where the speed doubles and trebles they are brighter and
    brighter, and the last shows its fastest alone in the brightest colour."""
    asked: list[float] = []

    def velocity_of(timed: TimedFrame):  # type: ignore[no-untyped-def]
        one = timed[1]
        asked.append(1.0 + one["smoke"]["Position.x"][:, 2].mean() / 0.4)
        return lambda points: np.tile([asked[-1], 0.0, 0.0], (len(points), 1)) * points[:, :1]

    options = {"what": "slice", "size": (160, 120), "resolution": 20}
    film = iio.imread(movie(tmp_path / "a.mp4", rising(frame, 3), velocity_of=velocity_of, **options))
    assert np.round(asked) == pytest.approx([1.0, 2.0, 3.0] * 2)
    light = film[:, 30:80].astype(float).mean(axis=3)
    assert (np.diff(light.mean(axis=(1, 2))) > 2.0).all()
    assert (light[2] > 0.9 * light[2].max()).mean() < 0.25


@pytest.mark.nightly
def test_memory_does_not_grow(frame: Frame, tmp_path: Path) -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    sizes: dict[int, int] = {}

    def watch(count: int) -> None:
        if count in (20, 120):
            sizes[count] = resident()

    x = frame["smoke"]["Position.x"]
    frames = ((0.01 * k, {"smoke": {"Position.x": x + 0.001 * k}}) for k in range(120))
    movie(tmp_path / "long.mp4", frames, size=(160, 120), progress=watch)
    # One frame's arrays are 4000 x (12 + 3) bytes and more on the way there: kept, 100 of them are > 6 MB,
    # and 100 kept pictures are 5.8 MB. 4 MB are allowed for the allocator.
    assert sizes[120] - sizes[20] < 4_000_000


def test_failure_leaves_nothing_and_keeps_what_was_there(frame: Frame, tmp_path: Path) -> None:
    target = tmp_path / "ring.mp4"
    target.write_bytes(b"former")

    def breaks() -> Iterator[TimedFrame]:
        yield from rising(frame, 1)
        raise FluidError("the run ends here")

    with pytest.raises(FluidError, match="the run ends here"):
        movie(target, breaks(), size=(160, 120))
    assert target.read_bytes() == b"former"
    assert [entry.name for entry in tmp_path.iterdir()] == ["ring.mp4"]


def test_missing_encoder_names_the_extra(
    frame: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(FluidError, match=r'pip install "ecs-fluid\[movie\]"'):
        movie(tmp_path / "a.mp4", rising(frame, 1))


def test_bad_requests(frame: Frame, tmp_path: Path) -> None:
    frames = rising(frame, 1)
    with pytest.raises(FluidError, match=r"does not end in \.mp4 or \.gif"):
        movie(tmp_path / "a.avi", frames)
    with pytest.raises(FluidError, match=r"the folder .* does not exist"):
        movie(tmp_path / "no" / "a.mp4", frames)
    with pytest.raises(FluidError, match="fps 0"):
        movie(tmp_path / "a.mp4", frames, fps=0)
    with pytest.raises(FluidError, match="nothing to draw"):
        movie(tmp_path / "a.mp4", [])
    with pytest.raises(FluidError, match="nothing to draw"):
        movie(tmp_path / "a.mp4", iter([]))
    with pytest.raises(FluidError, match="unknown camera"):
        movie(tmp_path / "a.mp4", frames, camera="above")
    assert not list(tmp_path.iterdir())
