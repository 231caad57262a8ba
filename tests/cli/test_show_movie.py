"""`show --movie`: ranges, sequences, cameras, surfaces, several processes; and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ecs_fluid.cli import main
from tests.viz.test_surfaces import WORLD

SMALL = ["--size", "64", "48"]
PATH = """
clock = "movie"
[[key]]
time = 0.0
position = [0.0, -5.0, 0.0]
focal = [0.0, 0.0, 0.0]
[[key]]
time = 0.2
position = [0.0, -10.0, 0.0]
focal = [0.0, 0.0, 0.0]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames 0 to 3 at 0, 0.04, 0.08 and 0.12 s."""
    place = tmp_path_factory.mktemp("film")
    (place / "drop.toml").write_text(WORLD.replace("duration = 0.08", "duration = 0.12"))
    assert main(["run", str(place / "drop.toml"), "--out", str(place / "run")]) == 0
    return place / "run"


def picture(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image).astype(int)


def test_range_of_frames_keeps_its_numbers(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "film" / "f_%02d.png"
    assert main(["show", str(run), *SMALL, "--frames", "1::2", "--movie", str(target)]) == 0
    assert sorted(p.name for p in target.parent.iterdir()) == ["f_01.png", "f_03.png"]


@pytest.mark.nightly
def test_surface_by_two_processes_on_a_camera_path(run: Path, tmp_path: Path) -> None:
    """The camera goes from 5 m to 10 m in 0.2 s of movie, that is 2 frames at 10 per second: half as high."""
    (tmp_path / "path.toml").write_text(PATH)
    options = ["--size", "120", "90", "--what", "sdf", "--camera", str(tmp_path / "path.toml"), "--fps", "10"]
    more = ["--frames", "1:", "--jobs", "2", "--movie", str(tmp_path / "%d.png")]
    assert main(["show", str(run), *options, *more]) == 0
    pictures = [picture(tmp_path / f"{number}.png") for number in (1, 2, 3)]

    def height(image: np.ndarray) -> int:
        water = (image[12:, :, 2] > 100) & (image[12:, :, 2] > 1.5 * image[12:, :, 0])  # below the clock
        return int(np.ptp(np.flatnonzero(water.any(axis=1)))) + 1

    # The drop keeps its shape for 0.08 s; sines and tangents of 7 degrees and less, and 1 pixel at each end.
    assert height(pictures[0]) == pytest.approx(2.0 * height(pictures[2]), rel=0.12)
    assert height(pictures[0]) > 30


def test_frame_without_distances_is_empty(run: Path, tmp_path: Path) -> None:
    """Distances are there before the first tick already; a frame that has lost them shows its clock alone."""
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (copy / "trajectory" / "fields" / "sdf-00000002.vtkhdf").unlink()
    assert (
        main(["show", str(copy), *SMALL, "--what", "sdf", "--frames", ":2", "--movie", f"{tmp_path}/%d.png"])
        == 0
    )
    full, empty = (picture(tmp_path / name)[12:] for name in ("0.png", "1.png"))
    assert np.abs(np.diff(empty, axis=1)).max() <= 1  # nothing but the background, which is dithered by 1
    assert np.abs(np.diff(full, axis=1)).max() > 40


def test_lost_distances_are_told(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By all that read the run; and `resume` goes on, for it needs none of them."""
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    fields = copy / "trajectory" / "fields"
    (fields / "sdf-00000002.vtkhdf").unlink()
    said = f"sdf-00000002.vtkhdf is missing in {fields}; the run is read without what was stored there"
    for command in (
        ["export", str(copy), "--to", "obj", "--out", str(tmp_path / "obj")],
        ["page", str(copy), "--out", str(tmp_path / "page")],
        ["show", str(copy), *SMALL, "--what", "sdf", "--save", str(tmp_path / "a.png")],
        ["info", str(copy)],
    ):
        assert main(command) == 0
        told = capsys.readouterr().err
        assert told.count(said) == 1, told
    shutil.rmtree(fields)
    assert main(["export", str(copy), "--to", "npz", "--out", str(tmp_path / "npz")]) == 0
    assert f"sdf.vtkhdf.series is missing in {fields}; the run is read without" in capsys.readouterr().err
    assert main(["resume", str(copy), "--ticks", "8"]) == 0
    assert f"sdf.vtkhdf.series is missing in {fields}; the run continues" in capsys.readouterr().err
    assert main(["info", str(copy)]) == 0
    assert "missing" not in capsys.readouterr().err


def test_slice_of_distances_to_a_movie(run: Path, tmp_path: Path) -> None:
    import imageio_ffmpeg

    target = tmp_path / "a.mp4"
    assert main(["show", str(run), *SMALL, "--what", "sdf_slice", "--movie", str(target)]) == 0
    assert imageio_ffmpeg.count_frames_and_secs(str(target))[0] == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--frames", "9:", "--movie", "a.gif"], "has frames 0 to 3"),
        (["--frames", "1-3", "--movie", "a.gif"], "first:stop:step"),
        (["--frames", "1:2", "--save", "a.png"], "--frames has no effect without a movie"),
        (["--orbit", "30"], "--orbit has no effect without a movie"),
        (["--fps", "9", "--jobs", "2", "--save", "a.png"], "--fps and --jobs have no effect without a movie"),
        (["--frame", "1", "--movie", "a.gif"], "--frame has no effect on a movie; --frames"),
        (["--fps", "9", "--movie", "%d.png"], "fps has no effect on a sequence of pictures"),
        (["--ticks", "2"], "--ticks has no effect because "),
        (["--set", "world.dt=1"], "--set has no effect because "),
        (
            ["--level", "0.1", "--save", "a.png"],
            "level has no effect with what = 'particles'; it works",
        ),
        (["--what", "slice", "--clip", "--movie", "a.gif"], "clip has no effect with what = 'slice'"),
        (
            ["--normal", "x", "--save", "a.png"],
            "normal has no effect with what = 'particles'; it works with sl",
        ),
        (["--what", "sdf", "--normal", "x", "--save", "a.png"], "slice, sdf_slice (or sdf with clip)"),
        (["--what", "sdf", "--only", "pool", "--save", "a.png"], "only has no effect with what = 'sdf'"),
        (["--what", "sdf_slice", "--color-by", "speed", "--save", "a.png"], "color_by has no effect with"),
        (["--orbit", "1e9", "--movie", "a.gif"], "-3600 to 3600"),
        (["--jobs", "0", "--movie", "a.gif"], "1 to 256"),
        (["--movie", "a.png"], "frame_%04d.png"),
        (["--camera", "no.toml", "--movie", "a.gif"], "no.toml cannot be read"),
        (["--what", "sdf", "--level", "9", "--movie", "a.gif"], "no surface at the level 9 m"),
        (["--what", "sdf", "--look", "liqid", "--movie", "a.gif"], "did you mean 'liquid'"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    arguments: list[str],
    words: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["show", str(run), *SMALL, *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and said.startswith("error: ") and "\n" not in said
    assert list(tmp_path.iterdir()) == []


def test_run_without_a_surface_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ecs_fluid.io.runfolder import RunFolder

    with RunFolder.create(tmp_path / "run", "", {}) as folder, folder.write_trajectory() as frames:
        frames.append(0, 0.0, {"dot": {"Position.x": np.zeros((1, 3))}})
    assert main(["show", str(tmp_path / "run"), "--what", "sdf", "--movie", str(tmp_path / "a.gif")]) == 2
    assert "has a [[system]] of kind = 'surface'" in capsys.readouterr().err


def test_slice_has_the_colours_of_the_first_frame_in_every_process(run: Path, tmp_path: Path) -> None:
    """The second process begins with the second frame; its colours have the range of the first."""
    for folder, jobs in (("one", "1"), ("two", "2")):
        target = tmp_path / folder / "%d.png"
        options = ["--what", "slice", "--frames", ":2", "--jobs", jobs, "--movie", str(target)]
        assert main(["show", str(run), *SMALL, *options]) == 0
    for name in ("0.png", "1.png"):
        np.testing.assert_array_equal(picture(tmp_path / "one" / name), picture(tmp_path / "two" / name))
