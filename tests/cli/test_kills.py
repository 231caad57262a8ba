"""Killed at any change of a file, also the last of a run, and continued: it ends as if nothing had been."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from docs.generator import programs
from ecs_fluid.errors import StorageError
from ecs_fluid.io.fields import field_names, field_ticks, read_field
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.runfolder import RunFolder
from tests.cli.killed import Deaths
from tests.small_worlds import NOZZLE, RING

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files are known by /proc")

COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
TICKS, KILLS = 3, 10
EACH_TICK = ("--set", "output.checkpoint_seconds=0", "--set", "output.every=1")
WORLD = f"""
[world]
dt = 0.02
duration = 0.06
[fluid]
viscosity = 1e-3
diffusion.method = "core_spreading"
diagnostics.every = 1
{RING}
core = 0.3
spacing = 0.2
{NOZZLE}
rate = 300.0
[[system]]
kind = "age_limit"
seconds = 0.03
on = ["smoke"]
"""
WORLDS = ("vortex_ring", "candle", "curve_ball", "drop_oscillates", "filled_container", "leapfrog")
WORLDS += ("shear_layer", "two_layers", "smoulder", "wind_fountain")


def outcome(path: Path) -> dict[str, Any]:
    """All that a run left but times: names of files, state, frames, fields, records."""
    run = RunFolder.open(path)
    info, stored, digest = run.read_info(), run.read_trajectory(), hashlib.blake2b()
    for number in range(len(stored)):
        for name, columns in stored.frame(number).items():
            for label, array in columns.items():
                digest.update(
                    f"{number} {name} {label} {array.dtype} {array.shape}".encode() + array.tobytes()
                )
    for name in field_names(run.fields):
        for tick in field_ticks(run.fields, name):
            for label, array in read_field(run.fields, name, tick).arrays.items():
                digest.update(f"{name} {tick} {label} {array.shape}".encode() + array.tobytes())
    return {
        "files": sorted(str(file.relative_to(path)) for file in path.rglob("*")),
        "sidecars": [file.read_text() for file in sorted(path.rglob("*.xdmf"))],
        "ticks": stored.ticks.tolist(),
        "arrays": digest.hexdigest(),
        "records": run.records(),
        "recipe": run.recipe,
        "stretches": [stretch["first_tick"] for stretch in info["stretches"]],
        **{key: info[key] for key in ("state_hash", "status", "ticks", "time", "particles")},
    }


def done(command: Sequence[str], environment: dict[str, Any], deaths: Deaths) -> bool:
    """Whether a command, which somebody may be killed in, came to its end."""
    return ran(subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600), deaths)


def ran(process: subprocess.CompletedProcess[str], deaths: Deaths) -> bool:
    """Whether it came to its end; it went wrong only where somebody was killed."""
    assert "Traceback" not in process.stderr, process.stderr
    if not deaths.happened:
        assert process.returncode == 0, (process.args, process.stderr)
    return process.returncode == 0


def wait_for_writers(folder: Path) -> None:
    """Until no process writes there, ranks and workers that outlived what started them."""
    until = time.monotonic() + 120.0
    while time.monotonic() < until:
        try:
            for lock in folder.rglob("writer.lock"):
                WriterLock(lock).release()
            return
        except StorageError:
            time.sleep(0.1)
    raise AssertionError(f"{folder} is written still")


def ended(world: str, out: Path, kills: Sequence[int], deaths: Deaths) -> int:
    """Run a world, killed at such changes of its first lives; how often it was."""
    count = 0
    for change in (*kills, 0):
        begun = (out / "run.json").is_file() and any((out / "checkpoints").glob("*.npz"))
        words = ["resume", str(out)] if begun else ["run", world, *EACH_TICK, "--out", str(out), "--replace"]
        words += ["--ticks", str(TICKS), "--threads", str(1 + count % 2)]
        told = deaths.at(change, out)
        finished = ran(programs.run(deaths.command, *words, folder=Path.cwd(), **told), deaths)
        assert finished != deaths.happened
        count += deaths.happened
        if finished:
            return count
    raise AssertionError(f"{out} did not end")


def whole_run(world: str, tmp_path: Path, deaths: Deaths) -> tuple[dict[str, Any], int, int]:
    """What a run without deaths leaves, how many changes it makes, and which begins its last checkpoint."""
    assert ended(world, tmp_path / "whole", (), deaths) == 0
    changes = deaths.changes
    last = next(n for n, text in enumerate(changes, 1) if f"checkpoint-{TICKS:08d}" in text)
    assert 20 < len(changes) - last < len(changes) / 2
    return outcome(tmp_path / "whole"), len(changes), last


def test_killed_at_its_end(tmp_path: Path) -> None:
    """While the last checkpoint is written; when the trajectory is closed; before the last word is told."""
    (tmp_path / "ring.toml").write_text(WORLD)
    world, deaths = str(tmp_path / "ring.toml"), Deaths(tmp_path / "notes")
    expected, changes, last = whole_run(world, tmp_path, deaths)
    for change in (last + 2, (last + changes) // 2, changes - 2):
        assert ended(world, tmp_path / "run", (change,), deaths) == 1
        assert outcome(tmp_path / "run") == expected, change
        shutil.rmtree(tmp_path / "run")


@pytest.mark.nightly
@pytest.mark.parametrize("world", WORLDS)
def test_ten_kills_of_a_shipped_world(tmp_path: Path, world: str) -> None:
    """Half of the first kills are in the end of the run; a second one comes soon after it went on."""
    deaths, draw, count = Deaths(tmp_path / "notes"), random.Random(world), 0
    expected, changes, last = whole_run(world, tmp_path, deaths)
    while count < KILLS:
        first = draw.randint(last, changes) if count % 4 == 0 else draw.randint(1, last)
        kills = first, draw.randint(1, 30)
        count += ended(world, tmp_path / "run", kills, deaths)
        assert outcome(tmp_path / "run") == expected, kills
        shutil.rmtree(tmp_path / "run")


@pytest.mark.nightly
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec; pip install 'ecs-fluid[mpi]'")
@pytest.mark.parametrize("victims", ["0", "1", "0,1", "mpiexec"])
def test_ranks_that_are_killed(tmp_path: Path, victims: str) -> None:
    """On the way and at the end; they go on as ranks, and as one process."""
    (tmp_path / "ring.toml").write_text(WORLD)
    world, deaths, out = str(tmp_path / "ring.toml"), Deaths(tmp_path / "notes"), tmp_path / "run"
    expected, changes, last = whole_run(world, tmp_path, deaths)
    mpi = [str(MPIEXEC), "-n", "2", *COMMAND]
    for number, change in enumerate((last // 2, last + 3, changes - 2)):
        command = [*mpi, "run", world, *EACH_TICK, "--out", str(out), "--ticks", str(TICKS), "--mpi"]
        assert not done(command, deaths.at(change, out, victims), deaths)
        assert deaths.happened
        wait_for_writers(out)
        again = ["resume", str(out), "--ticks", str(TICKS)]
        assert done([*mpi, *again, "--mpi"] if number % 2 else [*COMMAND, *again], deaths.at(0, out), deaths)
        assert outcome(out) == expected, change
        shutil.rmtree(out)


def swept(folder: Path) -> dict[str, Any]:
    """All that a sweep left but times and its history."""
    members = {path.name: outcome(path) for path in sorted((folder / "members").iterdir())}
    files = {name: (folder / name).read_bytes() for name in ("table.csv", "members.csv", "sweep.json")}
    return {**members, **files}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("workers", "where"), [("0", "ecs_fluid.cli"), ("2", "ecs_fluid.cli"), ("2", "multiprocessing")]
)
def test_sweeps_that_are_killed(tmp_path: Path, workers: str, where: str) -> None:
    """The sweep itself without and with workers, and a worker; on the way and in the last changes."""
    pytest.importorskip("distributed")
    (tmp_path / "ring.toml").write_text(WORLD)
    deaths, out = Deaths(tmp_path / "notes"), tmp_path / "sweep"
    command = [
        *COMMAND,
        "sweep",
        str(tmp_path / "ring.toml"),
        "--vary",
        "ring.core=0.25,0.3,0.35",
        *EACH_TICK,
    ]
    command += ["--diagnostics", "energy", "--out", str(out), "--workers", workers]
    assert done(command, deaths.at(0, out, where=where), deaths)
    expected, changes = swept(out), len(deaths.changes) // (2 if where == "multiprocessing" else 1)
    draw = random.Random(workers + where)
    for number in range(6):
        shutil.rmtree(out)
        change = draw.randint(changes - 12, changes) if number % 2 else draw.randint(1, changes)
        finished = done(command, deaths.at(change, out, where=where), deaths)
        assert deaths.happened and finished == (where == "multiprocessing")
        assert done(command, deaths.at(0, out), deaths)
        assert swept(out) == expected, change
