"""A run that goes on elsewhere than it was made says so, and wants to be asked to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.io import provenance
from ecs_fluid.io.runfolder import RunFolder

WORLD = """
[world]
dt = 0.1
duration = 0.4
[[entity]]
kind = "vortex_ring"
name = "ring"
radius = 1.0
circulation = 1.0
core = 0.2
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of two ticks."""
    (tmp_path / "ring.toml").write_text(WORLD, encoding="utf-8")
    assert main(["run", str(tmp_path / "ring.toml"), "--frames", "2", "--out", str(tmp_path / "run")]) == 0
    return tmp_path / "run"


def told(run: Path) -> list[dict[str, Any]]:
    """Its stretches, as run.json has them."""
    found: list[dict[str, Any]] = json.loads((run / "run.json").read_text())["stretches"]
    return found


def edit(path: Path, name: str, value: str) -> None:
    """Let the last stretch of a run, or a sweep, be computed with something else."""
    document = json.loads(path.read_text())
    (document["stretches"][-1] if "stretches" in document else document)["computed_with"][name] = value
    path.write_text(json.dumps(document))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["python", "ecs-fluid", "numba", "numpy", "processor", "kernels"])
def test_another_one_is_refused_and_accepted(
    run: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    edit(run / "run.json", name, "of old")
    before = everything(run)
    assert main(["resume", str(run), "--frames", "4"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"computed with {name} of old (here " in said and "--anyway" in said
    assert everything(run) == before
    assert main(["resume", str(run), "--frames", "4", "--anyway"]) == 0
    first, second = told(run)
    assert (first["first_tick"], second["first_tick"]) == (0, 2)
    assert first["computed_with"][name] == "of old" and second["computed_with"] == provenance.provenance()
    # What it is now is here: no word is needed any more.
    assert main(["resume", str(run), "--frames", "5"]) == 0
    assert [each["first_tick"] for each in told(run)] == [0, 2, 4]
    capsys.readouterr()
    assert main(["info", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "from tick 0" in said and f"{name} of old" in said and "from tick 4" in said and "as before" in said
    )


def test_stretches_that_left_nothing_are_not_told(run: Path) -> None:
    for _ in range(2):
        ef.runs.runner.Run.resume(run, 4)[0].folder.close()
    assert [each["first_tick"] for each in told(run)] == [0, 2]


def test_a_checkpoint_knows_what_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = ef.World(dt=0.1)
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.save(tmp_path / "a.npz")
    ours = provenance.provenance()
    monkeypatch.setattr(provenance, "provenance", lambda: {**ours, "numba": "0.99", "more": "1"})
    with pytest.raises(
        ef.StorageError, match=r"a.npz was computed with numba .* \(here 0.99\), more \(unknown\)"
    ):
        ef.resume(tmp_path / "a.npz")
    assert ef.resume(tmp_path / "a.npz", anyway=True).state_hash() == world.state_hash()


def test_numbas_own_variables_are_seen(run: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "ecs-fluid", "resume", str(run), "--frames", "3"],
        env={**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "(here generic " in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr and len(told(run)) == 1


def test_a_sweep_goes_on_where_it_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ring.toml").write_text(WORLD, encoding="utf-8")
    command = ["sweep", str(tmp_path / "ring.toml"), "--vary", "ring.core=0.2,0.3", "--workers", "0"]
    command += ["--out", str(tmp_path / "sweep"), "--frames"]
    assert main([*command, "2"]) == 0
    edit(tmp_path / "sweep" / "sweep.json", "scipy", "1.0")
    capsys.readouterr()
    assert main([*command, "2"]) == 2
    assert "was computed with scipy 1.0 (here " in " ".join(capsys.readouterr().err.split())
    assert main([*command, "2", "--anyway"]) == 0
    assert "bits may differ" in " ".join(capsys.readouterr().err.split())


def test_a_damaged_list_of_stretches_is_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ([], [{}], None, [{"first_tick": -1, "started": "", "computed_with": {}}]):
        with RunFolder.resume(run) as folder:
            document = {**folder.read_info(), "stretches": wrong}
        kept = (run / "run.json").read_bytes()
        (run / "run.json").write_text(json.dumps(document))
        assert main(["info", str(run)]) == 2
        assert "run.json" in capsys.readouterr().err
        (run / "run.json").write_bytes(kept)
