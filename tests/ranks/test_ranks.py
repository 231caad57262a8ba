"""One world on many processes: the bits of one process, whatever the number of ranks."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.ranks.machine import PER_MACHINE, release_pages
from ecs_fluid.ranks.start import on_ranks
from ecs_fluid.worlds.world_recipe import read, shipped
from tests.ranks import worker

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec; pip install 'ecs-fluid[mpi]'")

ROOT = Path(__file__).parents[2]
ECS_FLUID = str(Path(sys.executable).parent / "ecs-fluid")


@pytest.mark.parametrize("advices", [["MADV_REMOVE", "MADV_DONTNEED"], []])
def test_pages_are_released_where_the_system_can(monkeypatch: pytest.MonkeyPatch, advices: list[str]) -> None:
    """Released pages come back as zeros. Windows has no madvise, and asking for it was an error."""
    for name in {"MADV_REMOVE", "MADV_DONTNEED"}.difference(advices):
        monkeypatch.delattr(mmap, name, raising=False)
    if not advices:
        monkeypatch.setattr(ctypes, "CDLL", None)
    array = np.frombuffer(mmap.mmap(-1, 4 * mmap.PAGESIZE), np.uint8)
    array[:] = 7
    release_pages(array[1:-1])
    assert (array[: mmap.PAGESIZE] == 7).all()  # not a whole page
    assert (
        array[mmap.PAGESIZE : 3 * mmap.PAGESIZE] == (0 if advices and hasattr(mmap, advices[0]) else 7)
    ).all()


def mpi(ranks: int, *command: str, cwd: Path = ROOT, machine: int = 8) -> subprocess.CompletedProcess[str]:
    """Run a command on so many ranks, of which so many have a machine in common."""
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), *command],
        cwd=cwd, capture_output=True, text=True, timeout=1500, env={**os.environ, PER_MACHINE: str(machine)},
    )  # fmt: skip


def outcomes(ranks: int, ticks: dict[str, int], machine: int = 8) -> dict[str, Any]:
    """Outcome of each world after so many ticks on so many ranks; asked twice, it is one job."""
    for name, count in ticks.items():
        expected(name, count)  # compiles once what each rank would compile at the same time
    return _job(ranks, machine, *(f"{name}={count}" for name, count in ticks.items()))


@cache
def _job(ranks: int, machine: int, *worlds: str) -> dict[str, Any]:
    done = mpi(ranks, sys.executable, "-m", "tests.ranks.worker", *worlds, machine=machine)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@cache
def expected(name: str, ticks: int) -> dict[str, Any]:
    """Outcome of a world after so many ticks in this process."""
    return worker.outcome(worker.made(name), ticks)


CLOUDS = {f"clouds:{how}": 2 for how in worker.SUMS}
QUICK = {"ring:tree": 2, "ring:fmm": 2, "ring:direct": 2, "fire_and_balloon": 2, "cloud": 12, "few": 6}
QUICK |= {"asking": 3, "coarse": 2, "clouds:auto": 2, "clouds:strays": 2, "room": 2}
BROKEN = {"nan": 6, "error": 6}
SLOW = {
    "ring:auto": 9,
    "ring:hybrid": 3,
    "ring:poisson": 3,
    "vortex_ring": 20,
    "dye_drop": 20,
    "fire_and_balloon": 20,
}


def check(ranks: int, ticks: dict[str, int], machine: int = 8) -> None:
    """The same hash, rows, tick and error as in one process; rows spread over the ranks."""
    for name, found in outcomes(ranks, ticks, machine).items():
        alone = expected(name, ticks[name])
        assert bool(alone["error"]) == (name in BROKEN)
        assert {key: found[key] for key in alone} == alone, name
        held = [rank["rows"] for rank in found["ranks"]]
        assert len(held) == ranks
        for population in held[0]:
            counts = [rows[population] for rows in held]
            assert sum(counts) == alone["rows"][population]
            assert max(counts) <= 1.2 * sum(counts) / ranks + 2


@pytest.mark.nightly
@pytest.mark.parametrize(("ranks", "machine"), [(4, 1), (3, 2)])
def test_machines_have_parts_of_the_tree(ranks: int, machine: int) -> None:
    """Each machine has some of the vortons and nodes, and gets what its targets look at: the same bits."""
    check(ranks, CLOUDS, machine)


@pytest.mark.parametrize(("ranks", "machine"), [pytest.param(2, 8, marks=pytest.mark.nightly), (3, 2)])
def test_any_number_of_ranks_gives_the_bits_of_one_process(ranks: int, machine: int) -> None:
    """Every way to share a sum, spawning and killing (cloud), fewer rows than ranks (few), bodies, fire."""
    check(ranks, QUICK | BROKEN, machine)


@pytest.mark.nightly
@pytest.mark.parametrize(("ranks", "machine"), [(1, 8), (2, 8), (2, 1), (4, 8), (4, 3)])
def test_20_ticks_on_1_2_and_4_ranks(ranks: int, machine: int) -> None:
    """Issue 8: ring, dye_drop, fire_and_balloon; and the solvers that all ranks run alike."""
    check(ranks, SLOW, machine)


@pytest.mark.nightly
def test_every_shipped_world_on_3_ranks() -> None:
    alone = {"fireball", "smoulder"}  # gas that swells; mirrors
    shared = [name for name in shipped() if not any(read(name).world.periodic) and name not in alone]
    check(3, dict.fromkeys(shared, 8))


def test_what_one_rank_runs_into_all_say() -> None:
    """Row 0 alone is broken; the message names system, entity and row as that of one process does."""
    found = outcomes(3, QUICK | BROKEN, 2)
    for name, ticks in BROKEN.items():
        alone = expected(name, ticks)
        assert {key: found[name][key] for key in alone} == alone
        assert found[name]["tick"] == 3
    assert "Breaks" in found["nan"]["error"]
    assert "this rank does not like what it sees" in found["error"]["error"]


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on two ranks, resumed on three and then by one process: frames and hash of a run without."""
    monkeypatch.chdir(tmp_path)
    run = ["run", "vortex_ring", "--set", "output.every=2", "--out"]
    done = mpi(2, ECS_FLUID, *run, "shared", "--ticks", "3", "--mpi", "--threads", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished") == 1, "one rank speaks"
    again = mpi(3, ECS_FLUID, "resume", "shared", "--ticks", "5", "--mpi", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert main(["resume", "shared", "--ticks", "6"]) == 0
    assert main([*run, "alone", "--ticks", "6"]) == 0
    infos = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("shared", "alone")]
    assert infos[0]["state_hash"] == infos[1]["state_hash"]
    assert infos[0]["particles"] == infos[1]["particles"]
    frames, expected = (RunFolder.open(tmp_path / name).read_trajectory() for name in ("shared", "alone"))
    assert list(expected.ticks) == [0, 2, 4, 6]
    for number, tick in enumerate(frames.ticks):
        if tick in (0, 2, 4, 6):
            columns = expected.frame(list(expected.ticks).index(tick))
            for name, population in frames.frame(number).items():
                for label, array in population.items():
                    np.testing.assert_array_equal(array, columns[name][label])


def test_mistakes(tmp_path: Path) -> None:
    """A world that does not exist is said once; several processes without --mpi are refused."""
    done = mpi(2, ECS_FLUID, "run", "vortex_rin", "--mpi", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("there is no world 'vortex_rin'") == 1
    done = mpi(2, ECS_FLUID, "run", "vortex_ring", cwd=tmp_path)
    assert done.returncode == 2
    assert "add --mpi" in done.stderr
    assert not list(tmp_path.iterdir())


CIRCLE = """
import ecs_fluid as ef


class Left(ef.System):
    after = ("Right",)

    def process(self, dt: float) -> None: ...


class Right(ef.System):
    after = ("Left",)

    def process(self, dt: float) -> None: ...
"""


def test_a_world_that_is_refused_before_it_is_shared(tmp_path: Path) -> None:
    """Its schedule runs in a circle: one sentence from one rank, and no folder that looks like a run."""
    (tmp_path / "circle.py").write_text(CIRCLE, encoding="utf-8")
    ring = 'kind = "vortex_ring"\nname = "ring"\nradius = 1.0\ncore = 0.3\ncirculation = 1.0\nspacing = 0.2\n'
    systems = "".join(f'[[system]]\nkind = "circle:{name}"\n' for name in ("Left", "Right"))
    (tmp_path / "world.toml").write_text(f"[[entity]]\n{ring}{systems}", encoding="utf-8")
    done = mpi(2, ECS_FLUID, "run", "world.toml", "--allow-code", "--mpi", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("ordered in a circle") == 1
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


ON_ONE_RANK = """
import ecs_fluid as ef
from ecs_fluid.ranks.start import on_ranks

with on_ranks(threads=1) as share:
    if share is not None:
        class OnlyHere(ef.System):
            def process(self, dt: float) -> None: ...

        world = ef.World()
        world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]] * 4))
        world.add_system(OnlyHere())
        try:
            share(world)
        except ef.FluidError as error:
            print(error)
"""


def test_what_the_other_ranks_refuse_the_first_says(tmp_path: Path) -> None:
    """A class that only the first rank knows: the others cannot make the world, and nobody waits for them."""
    (tmp_path / "one.py").write_text(ON_ONE_RANK, encoding="utf-8")
    done = mpi(2, sys.executable, "one.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("OnlyHere', which is not loaded") == 1
    assert done.stderr == ""


UNLIKE = """
import os, sys

rank = os.environ["PMI_RANK"]
sys.path.insert(0, "on" + rank)
if rank == "1":
    os.environ["NUMBA_OPT"] = "1"

import ecs_fluid as ef
import idle
from ecs_fluid.ranks.start import on_ranks

with on_ranks(threads=1) as share:
    if share is not None:
        world = ef.World()
        world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]] * 4))
        world.add_system(idle.Idle())
        try:
            share(world)
        except ef.FluidError as error:
            print(error)
"""


def test_ranks_that_compute_by_other_means_are_refused(tmp_path: Path) -> None:
    """Another setting of the compiler, and another text of a module of one's own, on rank 1."""
    for rank in (0, 1):
        (tmp_path / f"on{rank}").mkdir()
        text = (
            f"import ecs_fluid as ef\n\n\nclass Idle(ef.System):\n    def process(self, dt): return {rank}\n"
        )
        (tmp_path / f"on{rank}" / "idle.py").write_text(text, encoding="utf-8")
    (tmp_path / "unlike.py").write_text(UNLIKE, encoding="utf-8")
    done = mpi(2, sys.executable, "unlike.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("rank 1: rank 0 has kernels ", "numba's OPT (unknown) (here 1), ", "module idle "):
        assert words in done.stdout
    assert done.stdout.count("all ranks need the same") == 1 and done.stderr == ""


def _process_of_rank(rank: int) -> int:
    """The process of that rank whose command is a run of the folder `broken`."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if b"broken" in told and b"ecs-fluid" in told and b"PMI_RANK=%d\0" % rank in told:
            return int(folder.name)
    raise AssertionError(f"there is no rank {rank}")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")
def test_a_rank_that_dies_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends with a message; one process takes the run up again, to the hash of a run without."""
    monkeypatch.chdir(tmp_path)
    run = ["run", "vortex_ring", "--set", "output.checkpoint_seconds=0", "--out"]
    command = [str(MPIEXEC), "-n", "2", ECS_FLUID, *run, "broken", "--ticks", "100000", "--mpi"]
    job = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    folder = tmp_path / "broken"
    try:
        deadline = time.monotonic() + 300
        while len(list(folder.glob("checkpoints/*.npz"))) < 2:
            assert time.monotonic() < deadline and job.poll() is None
            time.sleep(0.1)
        os.kill(_process_of_rank(1), signal.SIGKILL)
        told, _ = job.communicate(timeout=60)
    finally:
        job.kill()
    assert job.returncode != 0
    # mpiexec, or the other rank, whichever notices first.
    assert "KILLED" in told.upper() or "error: rank 0 of 2: " in told
    assert "Traceback" not in told
    tick = json.loads((folder / "run.json").read_text())["ticks"] + 2
    for words in (["resume", "broken"], [*run, "alone"]):
        assert main([*words, "--ticks", str(tick)]) == 0
    infos = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("broken", "alone")]
    assert infos[0]["state_hash"] == infos[1]["state_hash"]


IDLE = """
import os
import signal
import time

from mpi4py import MPI

import ecs_fluid as ef


class Idles(ef.System):
    how: str = ""

    def process(self, dt: float) -> None:
        if self.world.processes.comm.rank != 1 or self.world.tick != 2:
            return
        if self.how == "stops":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.how == "hangs":
            time.sleep(1000.0)
        elif self.how == "fails":
            raise KeyError("here alone")
        elif self.how == "is lost":
            raise MPI.Exception(MPI.ERR_OTHER)
        else:
            until = time.monotonic() + 5.0
            while time.monotonic() < until:
                pass
"""

LATE = """
import time
from pathlib import Path

import ecs_fluid as ef
import idle
from ecs_fluid.ranks.start import on_ranks

with on_ranks(threads=1, code=Path()) as share:
    if share is not None:
        world = ef.World()
        world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]] * 4))
        world.add_system(idle.Idles(how="works"))
        share(world)
        time.sleep(5.0)
        world.step(4)
        print("tick", world.tick)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="what processes do is told by /proc")
@pytest.mark.parametrize(
    ("how", "ranks", "told"),
    [
        pytest.param(
            "stops",
            3,
            r"rank 0 of 3: rank 1 \(process \d+\) has not answered for 2 s \(ECS_FLUID_TIMEOUT\)",
            marks=pytest.mark.nightly,
        ),
        ("hangs", 2, r"rank 0 of 2: rank 1 \(process \d+\) has not answered for 2 s \(ECS_FLUID_TIMEOUT\)"),
        ("fails", 3, r"rank 1 of 3: process of idle:Idles fails: KeyError: 'here alone'"),
        pytest.param(
            "is lost",
            2,
            r"rank 1 of 2: process of idle:Idles fails: Exception: Other MPI error",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_nobody_waits_for_ever(
    how: str, ranks: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence says which rank left the others, or the only other one, alone; what was stored stays."""
    monkeypatch.setenv("ECS_FLUID_TIMEOUT", "2")
    (tmp_path / "idle.py").write_text(IDLE, encoding="utf-8")
    ring = 'kind = "vortex_ring"\nname = "ring"\nradius = 1.0\ncore = 0.3\ncirculation = 1.0\nspacing = 0.2\n'
    system = f'[[system]]\nkind = "idle:Idles"\nhow = "{how}"\n'
    (tmp_path / "world.toml").write_text(f"[[entity]]\n{ring}{system}", encoding="utf-8")
    run = [ECS_FLUID, "run", "world.toml", "--allow-code", "--set", "output.checkpoint_seconds=0"]
    done = mpi(ranks, *run, "--ticks", "5", "--out", "idle", "--mpi", "--threads", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(f"^error: {told}", done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    assert RunFolder.open(tmp_path / "idle").newest_checkpoint().tick == 2


@pytest.mark.nightly
def test_ranks_that_work_or_have_nothing_to_do_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 sleeps between two calls, then rank 1 computes; both for longer than the time-out."""
    monkeypatch.setenv("ECS_FLUID_TIMEOUT", "2")
    (tmp_path / "idle.py").write_text(IDLE, encoding="utf-8")
    (tmp_path / "late.py").write_text(LATE, encoding="utf-8")
    done = mpi(2, sys.executable, "late.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tick 4\n", "")


@pytest.mark.parametrize("seconds", ["soon", "nan", "-1", "1e10"])
def test_a_time_out_that_is_none(seconds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECS_FLUID_TIMEOUT", seconds)
    with (
        pytest.raises(
            FluidError, match=f"ECS_FLUID_TIMEOUT = '{seconds}'; a time from 0 to 1e\\+09 s is needed"
        ),
        on_ranks(),
    ):
        pass


def test_ranks_a_machine_that_are_none(tmp_path: Path) -> None:
    """Of 0 there was a ZeroDivisionError in a traceback."""
    command = ("run", "vortex_ring", "--ticks", "1", "--mpi", "--out", str(tmp_path / "run"))
    done = mpi(1, ECS_FLUID, *command, machine=0)
    assert done.returncode == 2
    assert f"{PER_MACHINE} = '0': a whole number of ranks, at least 1, is needed" in done.stderr
