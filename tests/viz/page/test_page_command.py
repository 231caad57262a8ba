"""What the command page and its options do, refuse and leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.viz.page import writer
from ecs_fluid.viz.style import LOOKS
from tests.exports.made_run import (
    is_refused,
    make_run,
    time_of,
)
from tests.memory import peak_of
from tests.viz.page.read_page import Page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("pages") / "small_run")


def test_fields_and_populations_are_chosen(run: Path, tmp_path: Path) -> None:
    words = ["--field", "Velocity.u.z", "--color-by", "Temperature.T", "--only", "smoke", "--frames", "3::4"]
    assert main(["page", str(run), "--out", str(tmp_path / "page"), *words]) == 0
    page = Page(tmp_path / "page")
    assert [part["name"] for part in page.header["populations"]] == ["smoke"]
    assert page.header["bodies"] == []
    assert [field["name"] for field in page.header["fields"]] == ["Velocity.u.z", "Temperature.T"]
    assert page.header["colour"] == 1
    assert page.header["times"] == [time_of(3), time_of(7)]
    np.testing.assert_allclose(page.values(0, 1)[0], 1.0, rtol=1e-7)
    told = json.loads((tmp_path / "page" / "export.json").read_text())
    assert told["to"] == "page" and [frame["tick"] for frame in told["frames"]] == [12, 28]


def test_looks_that_paint_hide_the_vortons(run: Path, tmp_path: Path) -> None:
    header = Page(ef.page(run, out=tmp_path / "page", look="temperature", frames="-1")).header
    shown = {part["name"]: (part["shown"], part["planes"]) for part in header["populations"]}
    assert shown == {"ring": (False, 0), "smoke": (True, 4)}
    assert header["look"]["background"] == LOOKS["temperature"].background
    # Colours end at the outermost 0.5 % of the temperatures, 300 K + id, of the last frame's ids 150 to 249.
    assert header["painted"]["title"] == "Temperature.T [K]"
    np.testing.assert_allclose(header["painted"]["range"], [450 + 0.005 * 99, 549 - 0.005 * 99], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--field", "temprature"], "unknown field 'temprature': known are"),
        (["--field", "Temperature.T", "--color-by", "sped"], "did you mean 'speed'?"),
        (
            ["--look", "smoek"],
            "unknown look 'smoek': known are ",
        ),
        (["--only", "smok"], "{run} stores no population 'smok'; did you mean 'smoke'?"),
        (["--only", "box", "--field", "speed"], "unknown field 'speed': known are none"),
        (["--frames", "11"], "frames 11: {run} has frames 0 to 10, or -1 for the last"),
        (["--frames", "7:3"], "frames 7:3 select none of {run}; it has frames 0 to 10"),
        (["--title", "r\udcff"], "the title 'r\\udcff' is not text in UTF-8, which is needed"),
        (["--title", " "], "a title of 1 characters is not allowed: give 1 to 200 characters"),
        (["--out", "{run}/run.json"], "it is a file; a folder is needed"),
        (
            ["--out", "{run}/trajectory"],
            "already exists; replace it (--replace, ",
        ),
        (["--out", "{run}/trajectory", "--replace"], "is not an export of ecs_fluid, so it is not replaced"),
    ],
)
def test_every_mistake_is_one_sentence(
    run: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_refused(run, ["page", str(run), *arguments], sentence, capsys)


def test_no_run_and_no_frames_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["page", str(tmp_path / "nowhere")]) == 2
    assert "is not a run folder: there is no such folder" in capsys.readouterr().err
    with RunFolder.create(tmp_path / "empty", "", {}) as run, run.write_trajectory():
        pass
    assert main(["page", str(tmp_path / "empty")]) == 2
    assert "has no stored frames" in capsys.readouterr().err
    assert not (tmp_path / "empty" / "exports").exists()
    with RunFolder.create(tmp_path / "bare", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"dust": {"Position.x": np.zeros((0, 3))}})
    assert main(["page", str(tmp_path / "bare")]) == 2
    assert "there is nothing to draw" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "[world"])
def test_a_damaged_recipe_does_not_hide_the_particles(text: str | None, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "world.toml").unlink() if text is None else (run / "world.toml").write_text(text)
    assert Page(ef.page(run, frames="0:2")).header["times"] == [time_of(0), time_of(1)]


def test_only_a_whole_page_takes_the_place_of_one(run: Path, tmp_path: Path) -> None:
    target = ef.page(run, out=tmp_path / "out", frames="0:3")
    ef.page(run, out=target, frames="4:6", replace=True)
    assert Page(target).header["times"] == [time_of(4), time_of(5)]
    with pytest.raises(ef.FluidError, match="unknown field"):
        ef.page(run, out=target, fields=["nothing"], replace=True)
    assert Page(target).header["times"] == [time_of(4), time_of(5)]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.nightly
def test_memory_does_not_grow_with_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty more frames: their ticks, times and file names, 1 kB each, and no more.

    (Up to 48 frames are looked through for the view, and points of them kept, as for movies.)
    """
    monkeypatch.setattr(writer, "GROUP_FRAMES", 4)
    draw, peaks = np.random.default_rng(1), {}
    x = draw.uniform(-1, 1, (1000, 3))
    for frames in (50, 90):
        path = tmp_path / f"run{frames}"
        with RunFolder.create(path, "", {}) as run, run.write_trajectory() as trajectory:
            for k in range(frames):
                trajectory.append(k, 0.01 * k, {"dust": {"Position.x": x, "Age.t": x[:, 0]}})
        ef.page(path, out=tmp_path / "first", frames="0:2", replace=True)  # what is imported once
        peaks[frames] = peak_of(lambda k, path=path: ef.page(path, out=path.with_name(f"{path.name}-{k}")))
    # Keeping the packed frames would add 40 x 1000 x 9 bytes = 360 kB.
    assert peaks[90] < peaks[50] + 40 * 1024
