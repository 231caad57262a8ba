"""What all exports share: frames, folder, what is said about them; every mistake in one sentence."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import StorageError
from ecs_fluid.exports.frames import selected_frames
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import frame_of, is_refused, make_run
from tests.memory import peak_of


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (None, range(11)),
        ("3", [3]),
        ("-1", [10]),
        ("2:5", [2, 3, 4]),
        (":", range(11)),
        ("::4", [0, 4, 8]),
        ("-3:", [8, 9, 10]),
        (":11", range(11)),
        (slice(1, 8, 3), [1, 4, 7]),
        (10, [10]),
    ],
)
def test_frames_are_chosen_as_python_does(text: str | None, numbers: list[int]) -> None:
    assert list(selected_frames(text, 11, Path("run"))) == list(numbers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "usdd"], "unknown format 'usdd'; did you mean 'usd'?"),
        (["--to", "npz", "--frames", "11"], "frames 11: {run} has frames 0 to 10, or -1 for the last"),
        (["--to", "npz", "--frames", "5:12"], "frames 5:12: {run} has frames 0 to 10, or -1 for the last"),
        (["--to", "npz", "--frames=-12"], "frames -12: {run} has frames 0 to 10, or -1 for the last"),
        (["--to", "npz", "--frames", "7:3"], "frames 7:3 select none of {run}; it has frames 0 to 10"),
        (["--to", "npz", "--frames", "::0"], "a step of at least 1 is needed"),
        (
            ["--to", "npz", "--frames", "1:2:3:4"],
            "frames '1:2:3:4' cannot be understood; one number or first:stop:step",
        ),
        (
            ["--to", "npz", "--frames", "x"],
            "frames 'x' cannot be understood; one number or first:stop:step without stop itself",
        ),
        (["--to", "npz", "--only", "smok"], "{run} stores no population 'smok'; did you mean 'smoke'?"),
        (["--to", "vdb", "--voxel", "0"], "voxel = 0.0; the edge of a voxel in m, above 0, is needed"),
        (["--to", "vti", "--voxel", "1e-4"], "GB are allowed, choose a larger voxel"),
        (
            ["--to", "npz", "--voxel", "0.1"],
            "voxel has no effect on npz, which has no volumes; it is for usd",
        ),
        (["--to", "vdb", "--only", "box"], "only box has no effect on vdb, which holds volumes of particles"),
        (["--to", "obj", "--only", "smoke"], "only smoke has no effect on obj, which holds surfaces only"),
        (["--to", "npz", "--out", "{run}/run.json"], "it is a file; a folder is needed"),
        (
            ["--to", "npz", "--out", "{run}/trajectory"],
            "already exists; replace it (--replace, ",
        ),
        (
            ["--to", "npz", "--out", "{run}/trajectory", "--replace"],
            "is not an export of ecs_fluid, so it is not",
        ),
    ],
)
def test_every_mistake_is_one_sentence(
    run: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_refused(run, ["export", str(run), *arguments], sentence, capsys)


def test_no_run_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "nowhere"), "--to", "npz"]) == 2
    assert "is not a run folder: there is no such folder" in capsys.readouterr().err


def test_bodies_without_a_checkpoint_are_one_sentence(run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("*.npz", "exports"))
    with pytest.raises(ef.StorageError, match="the shapes of box are in a checkpoint, but"):
        ef.export(copy, "obj")
    assert ef.export(copy, "ply", only=["smoke", "balls"]).is_dir()  # what needs no checkpoint works


def test_only_an_export_is_replaced_and_only_by_a_whole_one(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "npz", frames="0:3", out=tmp_path / "out")
    with pytest.raises(ef.StorageError, match="already exists"):
        ef.export(run, "npz", out=target)
    ef.export(run, "npz", frames="4:6", out=target, replace=True)
    names = sorted(path.name for path in target.iterdir())
    assert names == ["export.json", "small_run.00004.npz", "small_run.00005.npz"]
    with pytest.raises(ef.StorageError, match="larger voxel"):
        ef.export(run, "vti", out=target, voxel=1e-4, replace=True)
    assert sorted(path.name for path in target.iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_manifest_tells_units_times_and_rate(run: Path, tmp_path: Path) -> None:
    """Every second frame of 25 per second leaves 12.5 per second; time codes count the exported frames."""
    target = ef.export(run, "npz", frames="2::2", out=tmp_path / "out")
    told = json.loads((target / "export.json").read_text())
    assert told["frames_per_second"] == 12.5
    assert (told["length_unit"], told["time_unit"], told["up_axis"]) == ("m", "s", "z")
    assert [frame["time_code"] for frame in told["frames"]] == [1, 2, 3, 4, 5]
    assert [frame["tick"] for frame in told["frames"]] == [8, 16, 24, 32, 40]
    assert [frame["number"] for frame in told["frames"]] == [2, 4, 6, 8, 10]
    assert [frame["file"] for frame in told["frames"]] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(
        [frame["time"] for frame in told["frames"]], 0.08 * np.arange(1, 6), rtol=1e-15
    )
    smoke = told["populations"]["smoke"]
    assert smoke["temperature"] == {"column": "Temperature.T", "unit": "K"}
    assert smoke["velocity"] == {"column": "Velocity.u", "unit": "m/s"}
    assert told["populations"]["ring"]["strength"]["unit"] == "m^3/s"


def test_manifest_tells_only_of_columns_that_the_files_have(run: Path, tmp_path: Path) -> None:
    """Bodies of USD and OBJ are places and shapes; those of glTF have their velocities beside these."""
    told = {}
    for to in ("usd", "gltf", "obj", "vti", "ply"):
        target = ef.export(run, to, frames=3, out=tmp_path / to)
        told[to] = json.loads((target / "export.json").read_text())["populations"]
    assert told["obj"] == told["vti"] == {}
    assert told["gltf"]["balls"].keys() == {"velocity", "angular_velocity"}
    assert told["usd"].keys() == {"ring", "smoke"}
    assert told["usd"]["smoke"] == told["ply"]["smoke"]
    assert told["gltf"]["smoke"].keys() == told["ply"]["smoke"].keys() - {"id"}
    assert told["ply"].keys() == {"ring", "smoke", "balls", "box"}


@pytest.mark.parametrize(
    ("frames", "files"), [(None, range(11)), ("4:7", (4, 5, 6)), ("::5", (0, 1, 2)), ("1::3", (0, 1, 2, 3))]
)
def test_files_are_numbered_without_gaps(
    run: Path, tmp_path: Path, frames: str | None, files: Sequence[int]
) -> None:
    """As programs that play sequences need them; each holds the frame that the manifest says."""
    target = ef.export(run, "npz", frames=frames, out=tmp_path / "out")
    told = json.loads((target / "export.json").read_text())["frames"]
    assert [frame["file"] for frame in told] == list(files)
    names = [f"small_run.{number:05d}.npz" for number in files]
    assert sorted(path.name for path in target.glob("*.npz")) == names
    for name, frame in zip(names, told, strict=True):
        with np.load(target / name) as file:
            assert (int(file["tick"]), float(file["time"])) == (frame["tick"], frame["time"])


@pytest.mark.nightly
def test_memory_does_not_grow_with_frames(tmp_path: Path) -> None:
    """Seven times the frames: the peak may differ by their numbers, times and file names, 1 kB a frame.

    Each frame ends with a full search for garbage: Python keeps tuples that nobody has any more, up to
    2,000 of each length, until then, 0.4 to 0.9 kB a frame that no list of ours holds. But for what
    opening a run leaves, the search must find nothing, or it would hide frames that hang in circles.
    """
    peaks, found = {}, []
    for frames in (3, 20):
        path = tmp_path / f"run{frames}"
        with RunFolder.create(path, "", {}) as run, run.write_trajectory() as trajectory:
            for number in range(frames):
                trajectory.append(number, 0.01 * number, {"ring": frame_of(0)["ring"]})
        peaks[frames] = peak_of(
            lambda k, path=path: ef.export(
                path,
                "vti",
                out=path.with_name(f"{path.name}-{k}"),
                voxel=0.1,
                progress=lambda done: found.append((done, gc.collect())),
            )
        )
    assert len(found) == 2 * (3 + 20)
    assert {garbage for done, garbage in found if done > 1} == {0}
    assert peaks[20] < peaks[3] + 17 * 1024
    assert peaks[3] > 17 * 8192  # keeping a frame's volume, of 23 x 23 x 4 points or so, would be seen


def test_a_disk_that_takes_no_more_is_one_sentence_and_leaves_nothing(run: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: both come from the system while writing."""
    script = f"""
import resource
from ecs_fluid.cli import main
from ecs_fluid.errors import StorageError
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
for to in ("npz", "ply", "vdb", "gltf", "obj", "vtp", "vti"):
    words = ["export", {str(run)!r}, "--to", to, "--out", {str(tmp_path / "out")!r}]
    words += ["--voxel", "0.1"] if to in ("vdb", "vti") else []
    assert main(words) == 2
"""
    # -B: compiled modules are written in part too, which nothing tells their readers.
    done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 7
    for line in lines:
        sentence = f"error: cannot write export {tmp_path / 'out'}: the "
        # VTK calls every refused write a full disk.
        assert line.startswith((sentence + "file would exceed the size", sentence + "disk or quota is full"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"Velocity.u": np.ones((2, 2))}, r"Velocity\.u of 'odd' has rows of shape \(2,\); \(3,\) is needed"),
        ({"Pose.q": np.ones((2, 4))}, r"the bodies 'odd' have no RowId\.id"),
        ({"Position.x": np.array([[0, 0, 0], [np.nan, 0, 0]])}, "frame 0 of .* is not a finite number"),
        (
            {"Pose.q": np.ones((2, 4)), "RowId.id": np.arange(2)},
            "the bodies 'odd' of .* have no stored shape",
        ),
    ],
)
def test_a_strange_trajectory_is_one_sentence(
    tmp_path: Path, change: dict[str, np.ndarray], sentence: str
) -> None:
    """Run folders come from anywhere: what does not fit is refused, by every format that would use it."""
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"odd": {"Position.x": np.zeros((2, 3))} | change})
    for to in ("vtp", "ply", "gltf"):
        with pytest.raises(ef.StorageError, match=sentence):
            ef.export(tmp_path / "run", to, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_two_exports_at_once_leave_one(run: Path, tmp_path: Path) -> None:
    """The one that ends first stays; the other says so; what a killed one left behind is cleared."""
    from ecs_fluid.exports.target import MANIFEST, new_folder

    target = tmp_path / "twice"
    left = tmp_path / f".twice.tmp{2**22 + 1}"  # beyond the largest number of a process
    left.mkdir()
    with pytest.raises(StorageError, match="already exists"), new_folder(target, replace=False) as slow:
        assert not left.exists()
        slow.with_name(".twice.tmp1").mkdir()  # of a process that lives
        ef.export(run, "npz", ":1", target.with_name("other"))
        target.with_name("other").rename(target)
    assert (target / MANIFEST).is_file() and not slow.exists()
    assert [path.name for path in tmp_path.glob(".twice*")] == [".twice.tmp1"]


@pytest.mark.parametrize(("command", "name"), [(["export", "--to", "npz"], "npz"), (["page"], "page")])
def test_a_link_in_the_run_does_not_lead_out_of_it(
    command: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the folder of exports, and of the one export; nothing is written, in neither place."""
    run, other = make_run(tmp_path / "run", 2), tmp_path / "other"
    other.mkdir()
    for link in (run / "exports", run / "exports" / name):
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(other)
        assert main([*command, str(run), "--replace"]) == 2
        said = capsys.readouterr().err
        assert (
            f"{link} is a symbolic link" in said and "choose another folder" in said and said.count("\n") == 1
        )
        assert not list(other.iterdir())
        link.unlink()
    (tmp_path / "named").symlink_to(other)
    assert main([*command, str(run), "--out", str(tmp_path / "named")]) == 2
    assert "is a symbolic link; a folder is needed" in capsys.readouterr().err


def test_the_present_folder_may_be_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecs_fluid.exports.target import new_folder

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with new_folder(Path(), replace=False) as partial:
        (partial / "a").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "a"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names of files are in UTF-8 or UTF-16")
@pytest.mark.parametrize("to", ["vtp", "usd"])
def test_names_in_other_encodings_are_told(
    run: Path, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """VTK and USD want UTF-8. On Linux a name is any bytes, and Python has lone surrogates for them."""
    words = ["export", "{run}", "--to", to, "--out", str(tmp_path / "r\udce4n")]
    is_refused(run, words, "a name in it is not in UTF-8", capsys)
    assert not list(tmp_path.iterdir())


def test_frames_may_be_counted_from_another_number(run: Path, tmp_path: Path) -> None:
    """As in a shot whose first frame is 1001: names of files and time codes are 1001 plus the time over that
    from frame to frame."""
    target = ef.export(run, "npz", frames="3:5", out=tmp_path / "out", start=1001)
    told = json.loads((target / "export.json").read_text())["frames"]
    assert [frame["time_code"] for frame in told] == [frame["file"] for frame in told] == [1004, 1005]
    assert [frame["number"] for frame in told] == [3, 4]
    names = sorted(path.name for path in target.glob("*.npz"))
    assert names == ["small_run.01004.npz", "small_run.01005.npz"]
    for wrong in (-1, 1.5, True):
        with pytest.raises(ef.StorageError, match="whole number from 0 to 1,000,000"):
            ef.export(run, "npz", out=tmp_path / "wrong", start=wrong)
    with pytest.raises(ef.FluidError, match="start has no effect on xdmf"):
        ef.export(run, "xdmf", out=tmp_path / "wrong", start=1)


def test_bodies_keep_their_names_with_more_particles(tmp_path: Path) -> None:
    """Materials and links in other programs go by names; a finer spacing changed them with the RowIds."""
    dust = {"kind": "tracers", "name": "dust", "box": {"low": [1, 1, 1], "high": [2, 2, 2]}}
    balls = {"kind": "spheres", "name": "balls", "centers": [[0, 0, 0], [0, 0, 3]], "radius": 0.1}
    names = []
    for number, cell in enumerate((0.2, 0.1)):
        table = {"world": {"dt": 0.1}, "entity": [dust | {"cell": cell}, balls]}
        run = ef.run(table, ticks=1, out=tmp_path / f"run{number}", progress=False)
        text = (run.export("obj", frames=-1) / f"run{number}.00001.obj").read_text()
        names.append([line for line in text.splitlines() if line.startswith("o ")])
    assert names == 2 * [["o balls_0", "o balls_1"]]
