"""`info` tells what run.json, the records and the stored frames hold; a closed pipe is no error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.runfolder import RunFolder
from tests.small_worlds import RING

WORLD = f"""
[world]
dt = 0.02
duration = 0.2

[fluid]
velocity.solver = "direct"
diagnostics.every = 2
{RING}
core = 0.25
spacing = 0.12

[output]
every = 5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 10 ticks."""
    place = tmp_path_factory.mktemp("info")
    (place / "ring.toml").write_text(WORLD, encoding="utf-8")
    assert main(["run", str(place / "ring.toml"), "--out", str(place / "run")]) == 0
    return place / "run"


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def told(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["info", str(folder)]) == 0
    return capsys.readouterr().out


def line(text: str, name: str) -> str:
    """What stands after `name` in the first lines."""
    return next(row[16:] for row in text.splitlines() if row.startswith(f"{name:<15} "))


def as_if_killed(folder: Path) -> None:
    """What run.json says while a run goes on: a plan, but not yet how far it came."""
    path = folder / "run.json"
    about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    about["status"] = "running"
    for name in ("ticks", "time", "wall_seconds", "particles", "systems", "state_hash"):
        about.pop(name, None)
    path.write_text(json.dumps(about), encoding="utf-8")


def test_numbers_are_those_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(folder, capsys)
    run = RunFolder.open(folder)
    about = run.read_info()
    assert line(text, "world") == "ring"
    assert line(text, "status") == about["status"] == "finished"
    assert line(text, "ticks") == f"{about['ticks']} of 10"
    assert float(line(text, "simulated time").split()[0]) == pytest.approx(about["time"])
    assert line(text, "stored frames") == str(len(run.read_trajectory())) == "3"
    assert line(text, "particles") == f"ring {about['particles']['ring']}"
    assert line(text, "state hash") == about["state_hash"]


def test_time_of_a_system_is_seconds_by_calls(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(folder, capsys)
    systems = RunFolder.open(folder).read_info()["systems"]
    total = sum(entry["seconds"] for entry in systems.values())
    for name, entry in systems.items():
        row = next(row for row in text.splitlines() if name in row).replace("%", "").replace("│", " ").split()
        assert row[0] == name and int(row[1]) == entry["calls"]
        assert float(row[2]) == pytest.approx(1e3 * entry["seconds"] / entry["calls"], abs=6e-4)
        assert float(row[3]) == pytest.approx(100 * entry["seconds"] / total, abs=0.06)


def test_diagnostics_are_whole_numbers_of_the_records(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number is there to the last digit (no column cut off), vectors by their magnitude."""
    text = told(folder, capsys)
    rows = text[text.index("diagnostics") :].splitlines()
    records = RunFolder.open(folder).records()
    assert [record["tick"] for record in records] == [2, 4, 6, 8, 10]
    assert "…" not in text
    for record in records:
        shown = next(row.split() for row in rows if row.split()[:1] == [str(record["tick"])])
        assert float(shown[2]) == pytest.approx(np.linalg.norm(record["impulse"]), rel=1e-3)
        # The impulse of a ring of blobs, pi R^2 Gamma, is kept.
        assert float(shown[2]) == pytest.approx(5.0 * np.pi, rel=1e-3)
        assert float(shown[4]) == pytest.approx(record["energy"], rel=1e-3)
        assert float(shown[7]) == pytest.approx(record["dt_grad_u"], rel=1e-3)
    most = 100.0 * max(record["velocity_error"] for record in records)
    assert line(text, "velocity error") == f"{most:.2g} % at most, RMS at a sample"


def test_killed_run_says_so_and_how_far_it_came(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_if_killed(copy)
    text = told(copy, capsys)
    assert line(text, "status") == f"killed; continue with: ecs-fluid resume {copy}"
    assert line(text, "ticks") == "10 of 10"  # of its last stored frame
    assert line(text, "simulated time") == "0.2 s"


def test_killed_run_without_a_checkpoint_does_not_promise_to_go_on(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says instead, works."""
    as_if_killed(copy)
    shutil.rmtree(copy / "checkpoints")
    status = line(told(copy, capsys), "status")
    said, _, command = status.partition("; from the start: ecs-fluid ")
    assert said == "killed; without a checkpoint, so it cannot continue"
    assert main(["resume", str(copy)]) == 2
    assert main([*command.split(), "--out", str(copy.parent / "anew")]) == 0


def test_running_run_is_not_called_killed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_if_killed(copy)
    # Another process holds the lock, as a run does; asked from this one, flock is per open file.
    with WriterLock(copy / "writer.lock"):
        assert line(told(copy, capsys), "status") == "running"


def test_run_killed_before_its_second_checkpoint_resumes(folder: Path, copy: Path) -> None:
    """Only the checkpoint of tick 0 is there, but frames of later ticks are."""
    run = RunFolder.open(copy)
    run.newest_checkpoint().path.unlink()
    as_if_killed(copy)
    assert run.newest_checkpoint().tick == 0
    assert main(["resume", str(copy)]) == 0
    assert run.read_info()["state_hash"] == RunFolder.open(folder).read_info()["state_hash"]
    assert list(run.read_trajectory().ticks) == [0, 5, 10]


def test_run_killed_after_its_last_checkpoint_is_finished(folder: Path, copy: Path) -> None:
    """All ticks are stored, but run.json is of an earlier one and the files for ParaView are missing."""
    as_if_killed(copy)
    shown = sorted(path.name for path in copy.rglob("*.xdmf"))
    assert shown
    for name in shown:
        next(copy.rglob(name)).unlink()
    assert main(["resume", str(copy)]) == 0
    about, whole = RunFolder.open(copy).read_info(), RunFolder.open(folder).read_info()
    assert (about["status"], about["ticks"]) == ("finished", 10)
    assert about["state_hash"] == whole["state_hash"]
    assert sorted(path.name for path in copy.rglob("*.xdmf")) == shown
    assert list(RunFolder.open(copy).read_trajectory().ticks) == [0, 5, 10]


def test_closed_pipe_is_no_error() -> None:
    """`ecs-fluid worlds | head -1`: the reader is gone when the second line is written."""
    code = "import os, sys; os.close(int(sys.argv.pop())); from ecs_fluid.cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    command = [sys.executable, "-c", code, "worlds", str(reading)]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, pass_fds=(reading,)) as process:
        os.close(reading)
        os.close(writing)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert errors == b""


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("latin-1", "utf-8"))]
)
def test_what_an_encoding_lacks_is_told_by_numbers(tmp_path: Path, encoding: str) -> None:
    """Names of files have any letters; the terminals, and files on Windows, that get them do not."""
    named = tmp_path / "Wörld ∇.toml"
    named.write_text('[[entity]]\nkind = "tracers"\nname = "dust"\npoints = [[0.0, 0.0, 0.0]]\n')
    said = subprocess.run(
        [sys.executable, "-m", "ecs_fluid", "validate", named.name],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert not said.stderr
    assert named.name.encode(encoding, "backslashreplace") in said.stdout


def test_diagnostics_are_drawn(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A panel each: of two, (2 * 4.2 + 1.6) / (4.2 + 1.6) = 1.72 times as wide as of one."""
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    def width(*words: str) -> int:
        target = tmp_path / "plot.png"
        assert main(["info", str(folder), "--plot", str(target), *words]) == 0
        assert f"wrote {target}" in capsys.readouterr().out.replace("\n", "")
        picture = imread(target)
        dark = (picture[..., :3].max(axis=2) - picture[..., :3].min(axis=2)) > 0.1
        assert dark.sum() > 100  # the coloured line; axes and letters are grey
        return int(picture.shape[1])

    assert width("--diagnostics", "energy,impulse.z") / width("--diagnostics", "energy") == pytest.approx(
        10.0 / 5.8, rel=0.01
    )
    assert width() > 0
    for words, said in (
        (["--plot", "a.jpg"], "--plot a.jpg: a file ending in .png is needed"),
        (["--plot", str(tmp_path / "a.png"), "--diagnostics", "enrgy"], "did you mean 'energy'"),
        (["--plot", str(tmp_path / "a.png"), "--diagnostics", "impulse.w"], "did you mean 'impulse.z'"),
        (["--plot", str(tmp_path / "a.png"), "--diagnostics", "energy.x"], "did you mean 'energy'"),
        (
            ["--plot", str(tmp_path / "a.png"), "--diagnostics", "energy," * 9 + "overlap"],
            "names 10; at most 9",
        ),
    ):
        assert main(["info", str(folder), *words]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


def test_damaged_records_are_drawn_as_far_as_they_are_numbers(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (copy / "diagnostics.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            '{"tick": 90, "time": "late", "energy": 1.0}\n{"tick": 91, "time": 9.0, "impulse": ["a", 2]}\n'
        )
        file.write('{"tick": 92, "time": 9.5, "energy": {"a": 1}, "impulse": [1, 2, 1e999]}\n')
    assert main(["info", str(copy), "--plot", str(tmp_path / "a.png")]) == 0
    (copy / "diagnostics.jsonl").write_text("")
    assert main(["info", str(copy), "--plot", str(tmp_path / "b.png")]) == 2
    assert "has recorded no diagnostics; every tenth tick is recorded" in capsys.readouterr().err.replace(
        "\n", " "
    )
    assert not (tmp_path / "b.png").exists()


def test_what_is_no_run_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, a folder inside of a run, and one inside of that: each says what it is, or where the run is."""
    for path, said in (
        (folder / "run.json", "it is a file"),
        (folder / "trajectory", f"it has no run.json; {folder} is one"),
        (folder / "checkpoints", f"it has no run.json; {folder} is one"),
        (folder.parent, "it has no run.json"),
        (folder.parent / "rum", f"there is no such folder; {folder} is one"),
    ):
        assert main(["info", str(path)]) == 2
        assert said in capsys.readouterr().err.replace("\n", " ")
    for path in (".", "/"):
        assert main(["schema", path]) == 2
        assert "it is a folder, not a file" in capsys.readouterr().err
    assert main(["info", str(folder), "--diagnostics", "energyy"]) == 2
    assert "add --plot file.png" in capsys.readouterr().err


def test_a_run_is_found_by_its_name_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ecs-fluid run ring` makes runs/ring, and `info ring` is what one tries."""
    shutil.copytree(folder, tmp_path / "runs" / "ring")
    monkeypatch.chdir(tmp_path)
    assert main(["info", "ring"]) == 2
    assert f"no such folder; {Path('runs', 'ring')} is one" in capsys.readouterr().err


def test_what_other_systems_record_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "diagnostics.jsonl"
    records = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    assert "other records" not in told(copy, capsys)
    for number, record in enumerate(records):
        record.update(spread=0.5 * number, drift=[3.0, 0.0, 4.0])
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert line(told(copy, capsys), "other records") == "spread 2, drift 5 (last values)"


@pytest.fixture(scope="module")
def two_rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two populations."""
    place = tmp_path_factory.mktemp("two")
    ring = WORLD[WORLD.index("[[entity]]") : WORLD.index("[output]")]
    text = WORLD + ring.replace('"ring"', '"other"') + "center = [0.0, 0.0, 3.0]\n"
    (place / "two.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(place / "two.toml"), "--out", str(place / "run")]) == 0
    return place / "run"


@pytest.mark.parametrize("command", ["info", "show --save a.png --size 64 48", "export --to npz", "page"])
def test_a_population_whose_file_is_missing_is_told(
    command: str,
    two_rings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(two_rings, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    name, *options = command.split()
    assert main([name, "run", *options]) == 0
    assert "warning" not in capsys.readouterr().err
    shutil.rmtree(folder / "exports", ignore_errors=True)
    (folder / "trajectory" / "other.vtkhdf").unlink()
    assert main([name, "run", *options]) == 0
    said = (
        "warning: other.vtkhdf is missing in run/trajectory; the run is read without what was stored there\n"
    )
    assert capsys.readouterr().err == said


def test_a_run_whose_population_is_missing_does_not_go_on(
    two_rings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(two_rings, tmp_path / "run")
    kept = (folder / "trajectory" / "other.vtkhdf").rename(tmp_path / "other.vtkhdf")
    assert main(["resume", str(folder), "--ticks", "12"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "which has no 'other' (is other.vtkhdf missing?) at tick 10" in said
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    about["populations"].append("spray")  # which had no rows at that tick
    (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
    shutil.copy(kept, folder / "trajectory")
    assert main(["resume", str(folder), "--ticks", "12"]) == 2
    said = f"error: spray.vtkhdf is missing in {folder / 'trajectory'}; put it back to continue the run"
    assert capsys.readouterr().err.startswith(said)
    shutil.copytree(two_rings, folder, dirs_exist_ok=True)
    assert main(["resume", str(folder), "--ticks", "12"]) == 0


def test_a_liquid_has_its_books(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its mass is that of the block, its energy falls by what viscosity takes, and what vortons would have is
    not in the table."""
    run = ef.run("dam_break", out=tmp_path / "dam", ticks=20, progress=False)
    before, after = run.diagnostics["liquid_energy"], run.diagnostics["liquid_dissipated"]
    assert run.diagnostics["liquid_mass"] == pytest.approx([500.0, 500.0], rel=1e-6)
    assert before[0] - before[1] == pytest.approx(after[1] - after[0], rel=0.5)
    height = run.diagnostics["liquid_center"][:, 2]
    assert height[1] < height[0] < -0.5
    assert main(["info", str(run.path), "--plot", str(tmp_path / "dam.png")]) == 0
    said = capsys.readouterr().out
    assert "tick  mass  kinetic  energy  dissipated  density" in said and "enstrophy" not in said
