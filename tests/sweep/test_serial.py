"""Sweeps without Dask: what they store, and what they refuse."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError, RecipeError, StorageError
from ecs_fluid.io.records import read_records
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.sweeps.axes import setting
from ecs_fluid.sweeps.plan import DIAGNOSTICS, VECTORS
from tests.sweep.made_sweep import ALONE, CORES, ENERGY, hashes, rows, stamps


def test_members_are_the_runs_that_their_commands_make(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 cores x 2 seeds: four states, each that of `ecs-fluid run` with the same settings, bit for bit."""
    arguments = ["sweep", str(world), *CORES, "--seeds", "2", "--out", "s", "--workers", "0", "--ticks", "4"]
    assert main(arguments) == 0
    assert "4 of 4 members finished" in capsys.readouterr().out
    found = hashes("s")
    assert list(found) == [f"core={core}_seed={seed}" for core in (0.25, 0.35) for seed in (1, 2)]
    assert len(set(found.values())) == 4
    for name, state in found.items():
        run = RunFolder.open(Path("s/members") / name)
        command = shlex.split(run.read_info()["command"])
        assert command[0] == "ecs-fluid"
        assert main([*command[1:], "--out", f"alone/{name}"]) == 0
        alone = RunFolder.open(Path("alone") / name)
        assert alone.read_info()["state_hash"] == state
        assert alone.recipe == run.recipe
        assert alone.records() == run.records()
    # A member is a run like any other: it can be made longer.
    name = "core=0.25_seed=2"
    assert main(["resume", f"s/members/{name}", "--ticks", "6"]) == 0
    assert main(["run", f"s/members/{name}/world.toml", "--out", "long", "--ticks", "6"]) == 0
    assert (
        RunFolder.open("long").read_info()["state_hash"]
        == (RunFolder.open(f"s/members/{name}").read_info()["state_hash"])
    )


def test_a_member_of_a_world_from_python_is_made_by_its_own_file(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A world of tables has no file; a system made in Python is named by its import path."""
    code = "import ecs_fluid as ef\n\n\nclass Idle(ef.System):\n    def process(self, dt): ...\n"
    Path("idle_here.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(world.parent))
    system = importlib.import_module("idle_here").Idle()
    tables = tomllib.loads(world.read_text(encoding="utf-8")) | {"system": [system]}
    done = ef.sweep(tables, {"ring.core": [0.35]}, out="s", ticks=2, **ALONE)
    run = RunFolder.open(done.members[0].path)
    command = shlex.split(run.read_info()["command"])
    assert command[:2] == ["ecs-fluid", "run"] and main([*command[1:], "--out", "alone"]) == 0
    alone = RunFolder.open("alone")
    assert alone.read_info()["state_hash"] == run.read_info()["state_hash"]
    assert tomllib.loads(alone.recipe)["system"] == [{"kind": "idle_here:Idle"}]


def test_a_member_tells_what_looks_wrong_in_its_recipe(world: Path) -> None:
    """As `run` does; the other member, whose fluid is warm enough, says nothing."""
    done = ef.sweep(world, {"fluid.temperature": [20.0, 300.0]}, out="s", ticks=1, **ALONE)
    cold, warm = ([text for text in member.warnings if "kelvin" in text] for member in done.members)
    assert len(cold) == 1 and "temperature = 20 K is colder than liquid nitrogen" in cold[0] and not warm


def test_tables_hold_what_the_records_say(world: Path) -> None:
    """10 ticks with a record each 2: 5 rows for each member; chosen columns only, vectors by their parts."""
    done = ef.sweep(
        world,
        {"ring.core": [0.25, 0.35]},
        out="s",
        diagnostics=["energy", "impulse.z", "strength"],
        workers=0,
    )
    table = rows("s/table.csv")
    assert list(table[0]) == [
        "member", "ring.core", "tick", "time", "energy", "impulse.z",
        "strength.x", "strength.y", "strength.z",
    ]  # fmt: skip
    assert [int(row["tick"]) for row in table] == 2 * [2, 4, 6, 8, 10]
    assert repr(done) == f"Sweep({str(done.folder)!r}, 2 members, 0 failed)"
    assert "<td>core=0.25</td><td>finished</td><td>10</td>" in done._repr_html_()
    for member in done.members:
        mine = [row for row in table if row["member"] == member.name]
        assert {float(row["ring.core"]) for row in mine} == {member.values["ring.core"]}
        assert [float(row["energy"]) for row in mine] == [record["energy"] for record in member.records()]
        # The impulse of a ring is pi R^2 Gamma, here sum x cross alpha / 2 with one core line: exact but for
        # the spread of the vortons over the core, 5 % at most.
        assert float(mine[0]["impulse.z"]) == pytest.approx(np.pi * 5.0, rel=0.1)
    picture = (done.folder / "plot.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    parquet = pytest.importorskip("pyarrow.parquet", reason="table.parquet is written where pyarrow is")
    stored = parquet.read_table("s/table.parquet").to_pylist()
    assert [row["energy"] for row in stored] == [float(row["energy"]) for row in table]


def test_every_diagnostic_has_its_name_known(world: Path) -> None:
    """What DiagnosticsSystem measures can be asked for, and nothing else: a force needs a ReactionSystem."""
    liquid = ef.load("dam_break")
    liquid.step()
    measured = ef.load(world).diagnostics() | liquid.diagnostics()
    forces = {"force_by_tracers", "force_by_vortons"}
    assert {*measured, *forces} == set(DIAGNOSTICS)
    assert {name for name, value in measured.items() if isinstance(value, list)} | forces == set(VECTORS)


@pytest.mark.parametrize(
    ("file", "words"),
    [("/dev/zero", "lies outside the folder"), ("pipe.csv", "is a device or a pipe"), ("none", "not exist")],
)
def test_data_files_are_looked_at_before_they_are_opened(
    file: str, words: str, world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device never ends, a pipe waits for whoever writes to it: neither is opened for a digest."""
    os.mkfifo(world.with_name("pipe.csv"))
    arrays = f"[[entity]]\nkind = 'vortons_from_arrays'\nname = 'a'\ncore = 0.1\nfile = '{file}'\n"
    world.write_text(arrays, encoding="utf-8")
    assert main(["sweep", world.name, "--seeds", "2", "--workers", "0", "--out", "s"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--vary", "fluid.viscosty=1e-5"), "did you mean 'viscosity'?"),
        (("--vary", "rign.core=0.2"), "did you mean 'ring'?"),
        (("--vary", "ring.core=0.2,-0.1"), "core=-0.1: puffs.toml: [[entity]] 1 'ring': core = -0.1"),
        (("--vary", "ring.core=0.2", "--vary", "ring.core=0.3"), "is given twice"),
        (("--vary", "world.seed=1,2", "--seeds", "2"), "give only one of them"),
        (("--seeds", "0"), "seeds = 0"),
        (("--seeds", "2", "--ticks", "0"), "ticks = 0"),
        (("--seeds", "2", "--diagnostics", "energy,impuls"), "did you mean 'impulse'?"),
        (("--seeds", "2", "--diagnostics", "impulse.w"), "parts are x, y and z"),
        (("--seeds", "2", "--diagnostics", "energy.x"), "energy is one number, without parts"),
        (("--seeds", "2", "--diagnostics", "impulse."), "parts are x, y and z"),
        (
            ("--vary", "entity.0.core=0.2,0.3", "--seeds", "2", "--vary", "ring.core=0.2,0.3"),
            "entity.0.core and ring.core set the same value; vary only one of them",
        ),
        (("--seeds", "2", "--set", "ring.radius=-1"), "radius = -1"),
        (("--seeds", "2", "--scheduler", "tcp://127.0.0.1:1"), "give only one of them"),
        ((), "nothing is varied"),
    ],
)
def test_nothing_runs_before_all_members_are_checked(
    world: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main(["sweep", str(world), *arguments, "--out", "s", "--workers", "0"]) == 2
    errors = capsys.readouterr().err
    assert said in errors and "Traceback" not in errors
    assert not Path("s").exists()


def test_missing_dask_is_one_sentence(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # importing it fails now
    assert main(["sweep", str(world), "--seeds", "2"]) == 2
    errors = capsys.readouterr().err
    assert "pip install 'ecs-fluid[sweep]'" in errors and "--workers 0" in errors
    assert not Path("sweeps").exists()


def test_a_dry_run_lists_the_members(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(world), *CORES, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["core=0.25", "core=0.35"]
    assert not Path("sweeps").exists()


def test_a_bad_member_is_reported_and_stops_no_other(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps beyond the range of float32 (see test_run.py) between two good members; the exit code is 1."""
    arguments = [
        "sweep", str(world), "--vary", "world.dt=1e-11,1e30,2e-11", "--set", "ring.circulation=1e9",
        "--set", "nozzle.rate=0", "--set", "world.duration=1e-10", "--ticks", "4",
        *ENERGY, "--workers", "0", "--out", "s",
    ]  # fmt: skip
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "diverged: dt=1e+30: " in said and "last good state" in said
    assert [row["status"] for row in rows("s/members.csv")] == ["finished", "diverged", "finished"]
    assert "System" in rows("s/members.csv")[1]["error"]
    before = stamps("s")
    assert main(arguments) == 1, "what diverged would do so again"
    assert "last good state" in capsys.readouterr().err
    assert stamps("s") == before


def test_code_that_fails_is_a_bad_member_too(world: Path) -> None:
    """A user's system that divides by zero for one value; the next member in the same process is unharmed."""
    Path("fragile.py").write_text(
        "import ecs_fluid as ef\n\n\nclass Fragile(ef.System):\n    writes = (ef.Position,)\n"
        "    phase = 'move'\n    after = (ef.AdvectionSystem,)\n    bottom: int = 1\n\n"
        "    def process(self, dt: float) -> None:\n        1 // self.bottom\n",
        encoding="utf-8",
    )
    text = world.read_text(encoding="utf-8").replace(
        "[output]", "[[system]]\nkind = 'fragile:Fragile'\n\n[output]"
    )
    world.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match="--allow-code"):
        ef.sweep(world, {"system.0.bottom": [0, 1]}, **ALONE)
    done = ef.sweep(world, {"system.0.bottom": [0, 1]}, **ALONE, ticks=2, allow_code=True)
    bad, good = done.members
    assert (bad.status, good.status) == ("failed", "finished")
    assert "ZeroDivisionError" in bad.error


def test_a_study_runs_each_point_once(world: Path) -> None:
    """Also across processes: a second study in the folder finds the points of the first."""
    with ef.Study(world, "fit", ticks=2, **ALONE) as study:
        first = study.run({"ring.circulation": 2.0})
        pair = study.run_all([{"ring.circulation": 2.0}, {"ring.circulation": 3.0, "ring.core": 0.25}])
        assert pair[0] == first
        with pytest.raises(RecipeError, match="radius = -1"):
            study.run_all([{"ring.circulation": 4.0}, {"ring.radius": -1}])
    assert len(study.members) == 2, "a bad point keeps the good ones of its call from running"
    with ef.Study(world, "fit", ticks=2, **ALONE) as study:
        assert study.run({"ring.circulation": 2.0}) == first
    assert len(read_records(Path("fit/history.jsonl"))) == 2
    assert hashes("fit") == {m.name: m.state_hash for m in pair}, (
        "also of the one that was not asked for again"
    )
    with pytest.raises(StorageError, match="ticks was 2 and is now 3"):
        ef.Study(world, "fit", ticks=3, **ALONE)


def test_a_failed_point_of_a_study_is_an_error(world: Path) -> None:
    fixed = ["ring.circulation=1e9", "nozzle.rate=0", "world.duration=1e-10"]
    with ef.Study(world, "fit", settings=fixed, ticks=4, **ALONE) as study:
        with pytest.raises(FluidError, match=r"dt=1e\+30 diverged: .*last good state"):
            study.run({"world.dt": 1e30})
        assert study.run({"world.dt": 1e-11}).finished


def test_a_second_attempt_tells_nothing_of_the_first(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ends with an error of the disk, the second well; one that a stop leaves out is no attempt."""
    from ecs_fluid.sweeps import member

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no room")

    with ef.Study(world, "s", vary={"ring.core": [0.25]}, ticks=1, **ALONE) as study:
        with monkeypatch.context() as patched:
            patched.setattr(member, "_runner_of", refuse)
            (first,) = study.run_planned()
        assert first.status == "failed" and "no room" in first.error
        study.stop()
        study.run_planned()
        assert len(read_records(Path("s/history.jsonl"))) == 1
        (Path("s") / "stop").unlink()
        (second,) = study.run_planned()
    assert (second.status, second.error) == ("finished", "")
    assert [record.get("error", "") for record in read_records(Path("s/history.jsonl"))][1:] == [""]


def test_a_recipe_and_tables_from_python_are_swept_like_their_file(world: Path) -> None:
    from ecs_fluid.worlds.world_recipe import read

    by_file = ef.sweep(world, {"ring.core": (0.25, 0.35)}, out="a", ticks=2, **ALONE)
    by_recipe = ef.sweep(read(world), {"ring.core": "0.25,0.35"}, out="b", ticks=2, **ALONE)
    tables = tomllib.loads(world.read_text(encoding="utf-8"))
    tables["entity"][0]["radius"] = 2.0
    asked = {"settings": "ring.radius=1.0", **ALONE}
    by_tables = ef.sweep(tables, {"ring.core": np.array([0.25, 0.35])}, out="c", ticks=2, **asked)
    assert [m.state_hash for m in by_recipe.members] == [m.state_hash for m in by_file.members]
    assert [m.state_hash for m in by_tables.members] == [m.state_hash for m in by_file.members]
    assert tables["entity"][0]["radius"] == 2.0


def test_what_was_asked_is_kept(world: Path) -> None:
    ef.sweep(world, {"ring.core": [0.25]}, seeds=1, out="s", ticks=1, **ALONE)
    kept: dict[str, Any] = json.loads(Path("s/sweep.json").read_text(encoding="utf-8"))
    assert kept["vary"] == {"ring.core": [0.25], "world.seed": [1]}
    assert kept["members"] == [{"name": "core=0.25_seed=1", "values": {"ring.core": 0.25, "world.seed": 1}}]
    assert kept["status"] == "finished" and kept["ticks"] == 1
    assert {"ecs-fluid", "numpy", "numba"} <= set(kept["computed_with"][-1])
    assert setting("ring.core", 0.25) == "ring.core=0.25"


def test_fit_of_a_rings_speed(world: Path) -> None:
    """The example of docs/sweeps.md in small: circulation by which a ring travels at 1 m/s.

    Without viscosity velocities are proportional to circulation and nothing else sets a time, so a ring that
    goes a distance d in a time T at circulation 1 goes the same path in the time T / circulation. The thin
    ring's speed, Gamma / (4 pi R) [ln(8 R / core) - 1/2], says 4.9 m^2/s for R = 1, core = 0.3; a core that
    thick and vortons on one line leave 25 % to it. What is fitted travels at 1 m/s to the tolerance asked.
    """
    from scipy.optimize import brentq

    fixed = ["fluid.viscosity=0", "nozzle.rate=0", "world.precision='double'"]
    with ef.Study(world, "fit", settings=fixed, ticks=5, **ALONE) as study:

        def excess(circulation: float) -> float:
            stored = study.run({"ring.circulation": circulation}).trajectory()
            first, last = (stored.frame(i)["ring"]["Position.x"][:, 2].mean() for i in (0, -1))
            return float((last - first) / stored.times[-1]) - 1.0

        found = brentq(excess, 1.0, 10.0, xtol=1e-4)
        runs = len(study.members)
        # dU / dGamma is about 0.2 /m, so 1e-4 m^2/s is 2e-5 m/s.
        assert abs(excess(found)) < 1e-4
        assert len(study.members) <= runs + 1
    assert found == pytest.approx(4 * np.pi / (np.log(8 / 0.3) - 0.5), rel=0.25)
    assert runs <= 10
