"""Sweeps on Dask: the same bits as one by one, and what happens when workers, sweeps and schedulers die."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.connections import FULL
from ecs_fluid.errors import FluidError
from ecs_fluid.io.records import read_records
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.sweeps.pool import DaskPool, check_address, cores
from ecs_fluid.sweeps.study import Watcher
from tests.cli.test_listening import ECS_FLUID, flood, frames, job

psutil = pytest.importorskip("psutil", reason="comes with Dask")
pytest.importorskip("distributed", reason="sweeps with workers need Dask: pip install 'ecs-fluid[sweep]'")

COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]
EACH_TICK = "output.checkpoint_seconds=0"


def hashes(folder: Path | str) -> dict[str, str]:
    with open(Path(folder) / "members.csv", encoding="utf-8", newline="") as handle:
        return {row["member"]: row["state_hash"] for row in csv.DictReader(handle)}


def stamps(folder: Path | str) -> dict[str, tuple[int, int]]:
    """Inode and time of last change of every file below a folder."""
    found = sorted(Path(folder).rglob("*"))
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found if path.is_file()}


def calls(run: str) -> int:
    """How often velocities were computed in a run, over all its stretches."""
    count: int = RunFolder.open(run).read_info()["systems"]["VelocitySystem"]["calls"]
    return count


def history(folder: Path | str) -> list[dict[str, Any]]:
    return read_records(Path(folder) / "history.jsonl")


class Killer(Watcher):
    """Kills or stops the process that runs a member, once, when some are finished and it is at some tick."""

    def __init__(self, finished: int, tick: int, by: signal.Signals = signal.SIGKILL) -> None:
        self.finished, self.tick_, self.ended, self.by = finished, tick, 0, by
        self.owner = 0
        self.study: ef.Study | None = None
        self.killed: tuple[str, int] | None = None
        self.said: list[str] = []
        self.environment: dict[str, str] = {}

    def end(self, member: object) -> None:
        self.ended += 1

    def tick(self, name: str, tick: int, last: int) -> None:
        if (
            self.study is not None
            and self.killed is None
            and self.ended >= self.finished
            and self.tick_ <= tick < last
        ):
            lock = self.study.folder / "members" / name / "writer.lock"
            told = lock.read_text(encoding="utf-8")
            if not told:
                return  # this word came late: the member has ended since
            owner = json.loads(told)["pid"]
            environment = Path(f"/proc/{owner}/environ")
            if environment.exists():  # on Linux
                self.environment = dict(
                    item.split("=", 1) for item in environment.read_text(encoding="utf-8").split("\0") if item
                )
            assert owner != os.getpid()
            os.kill(owner, self.by)
            self.killed = (name, tick)
            self.owner = owner

    def say(self, text: str) -> None:
        self.said.append(text)


def check_killed_worker(world: Path, vary: dict[str, Any], frames: int, killer: Killer) -> int:
    """Sweep with two workers of which one is killed on the way; returns the ticks that were done twice."""
    settings = (EACH_TICK,)
    with ef.Study(world, "s", vary=vary, ticks=frames, settings=settings, workers=2, watch=killer) as study:
        killer.study = study
        members = study.run_planned()
    assert killer.killed is not None, "the members ended before one could be killed; make them longer"
    name, tick = killer.killed
    # Two workers share the cores.
    assert killer.environment.get("NUMBA_NUM_THREADS", str(max(1, cores() // 2))) == str(max(1, cores() // 2))
    assert [m.status for m in members] == len(members) * ["finished"]
    assert any("died; a new one takes its place" in text for text in killer.said)
    # Every member ended once, and all but the killed one ran in one piece from its first tick.
    attempts = history("s")
    assert Counter(record["member"] for record in attempts) == Counter(m.name for m in members)
    resumed = {record["member"]: record["first_tick"] for record in attempts if record["first_tick"]}
    # It had stored the checkpoint of the tick that it told of.
    assert set(resumed) == {name} and resumed[name] >= tick
    done = ef.sweep(world, vary, out="serial", ticks=frames, settings=settings, workers=0)
    assert hashes("s") == hashes("serial") == {m.name: m.state_hash for m in done.members}
    assert len(set(hashes("s").values())) == len(members)
    assert Path("s/table.csv").read_bytes() == Path("serial/table.csv").read_bytes()
    return resumed[name] - tick


@pytest.mark.nightly
def test_two_workers_give_the_bits_of_one_process_though_one_is_stopped(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 members on 2 workers; the one that runs the third is stopped on the way, named and killed."""
    monkeypatch.setenv("ECS_FLUID_TIMEOUT", "3")
    killer = Killer(2, 1, signal.SIGSTOP)
    check_killed_worker(world, {"ring.core": [0.25, 0.3, 0.35, 0.4]}, 20, killer)
    named = [text for text in killer.said if text.endswith("has not answered for 3 s")]
    assert len(named) == 1 and f"(process {killer.owner})" in named[0]


@pytest.mark.nightly
def test_an_error_is_told_though_members_run(world: Path) -> None:
    """The workers end, and the sweep says that it does not run."""

    class Enemy(Watcher):
        def end(self, member: object) -> None:
            raise FluidError("enough")

    before = psutil.Process().children(recursive=True)
    with pytest.raises(FluidError, match="enough"):
        ef.sweep(world, {"ring.core": [0.3, 0.35, 0.4]}, out="s", ticks=20, workers=2, watch=Enemy())
    assert {*psutil.Process().children(recursive=True)} <= {*before}
    assert json.loads(Path("s/sweep.json").read_text(encoding="utf-8"))["status"] == "stopped"


@pytest.mark.nightly
def test_idle_connections_do_not_end_a_sweep(world: Path) -> None:
    """More of them than files that it may open: one sentence, and it goes on; all limits are the hard one."""
    limits = "ulimit -Sn 100; ulimit -Hn 150"
    words = f"{limits}; exec {ECS_FLUID} sweep {world} --seeds 2 --ticks 100000 --workers 2"
    with job("sh", "-c", words, ready=lambda *_: frames(4)) as (process, told):
        sweep = psutil.Process(process)
        for each in (sweep, *sweep.children(recursive=True)):
            assert each.rlimit(psutil.RLIMIT_NOFILE) == (150, 150)
        ((_, port),) = {tuple(one.laddr) for one in sweep.net_connections() if one.status == "LISTEN"}
        flood(port, 200, lambda: FULL in told.read_text())
        while sweep.num_fds() > 100:
            time.sleep(0.1)
    said = told.read_text()
    assert "the same command continues" in said and "Traceback" not in said and said.count(FULL) == 1


def test_no_scheduler_is_one_sentence(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: refuses at once
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(FluidError, match="no Dask scheduler answers there"):
            DaskPool(Path("s"), 0, None, address, lambda *_: None, print, patience=1.0)
    for wrong in ("nonsense", "tcp://host", "tcp://:8786", "tcp://host:99999", "http://host:8786"):
        assert main(["sweep", str(world), "--seeds", "2", "--scheduler", wrong]) == 2
        error = capsys.readouterr().err
        assert f"scheduler = '{wrong}' is not an address; protocol" in error and error.count("\n") == 1
        assert not Path("sweeps").exists()
    check_address("127.0.0.1:8786")  # Dask takes it for tcp


@pytest.mark.nightly
def test_forty_members_on_two_workers(world: Path) -> None:
    """2 viscosities x 5 cores x 4 seeds, one worker killed after a third of them: bits of one by one."""
    vary = {"fluid.viscosity": "1e-4,1e-3", "ring.core": "0.25:0.45:5", "world.seed": "1:4:4"}
    check_killed_worker(world, vary, 40, Killer(finished=13, tick=1))


@pytest.mark.nightly
def test_a_killed_sweep_takes_its_workers_along_and_goes_on(world: Path) -> None:
    """SIGKILL of the sweep: its workers stop after their tick; what was finished is not touched again."""
    arguments = [
        "sweep", str(world), "--vary", "ring.core=0.25:0.45:5", "--seeds", "2", "--ticks", "60",
        "--workers", "2", "--set", EACH_TICK, "--out", "s",
    ]  # fmt: skip
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while len(history("s")) < 3 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = [record["member"] for record in history("s")]
    kept = {name: stamps(f"s/members/{name}") for name in finished}
    assert main(arguments) == 0
    assert {name: stamps(f"s/members/{name}") for name in finished} == kept
    attempts = history("s")
    assert len(attempts) == len({record["member"] for record in attempts}) <= 10
    broken = [record["member"] for record in attempts if record["first_tick"]]
    assert len(broken) <= 2, "two members were under way"
    serial = [*arguments[:-1], "serial"]
    serial[serial.index("--workers") + 1] = "0"
    assert main(serial) == 0
    assert hashes("s") == hashes("serial")
    # The workers stored the tick that they were in, so not one was done twice; the first call of a stretch,
    # which may compile, is not counted.
    for name in hashes("s"):
        assert calls(f"s/members/{name}") == calls(f"serial/members/{name}") - (name in broken)


@contextmanager
def scheduler_with_workers(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler on a TCP port of the loopback with two workers, each with its own nanny."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    module = [sys.executable, "-m"]
    started = [
        subprocess.Popen(
            [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
             "--no-dashboard"], **quiet,
        )
    ]  # fmt: skip
    worker = [*module, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    started += [subprocess.Popen(worker, **quiet) for _ in range(2)]
    try:
        yield address, started
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


@pytest.mark.nightly
def test_a_scheduler_over_tcp_and_a_sweep_that_is_killed_there(world: Path) -> None:
    """Workers of a foreign scheduler finish what a killed sweep began; the next one waits for that."""
    arguments = [
        "sweep", str(world), "--vary", "ring.core=0.25:0.45:5", "--ticks", "40", "--set", EACH_TICK,
    ]  # fmt: skip
    with scheduler_with_workers(world.parent) as (address, _):
        there = [*arguments, "--scheduler", address, "--out", "s"]
        process = subprocess.Popen([*COMMAND, *there], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 300
        while len(history("s")) < 1 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert main(there) == 0
    attempts = history("s")
    assert len(attempts) <= 5
    assert main([*arguments, "--workers", "0", "--out", "serial"]) == 0
    assert hashes("s") == hashes("serial") and len(hashes("s")) == 5
    # Nobody began a member that another had begun.
    for name in hashes("s"):
        assert calls(f"s/members/{name}") == calls(f"serial/members/{name}")


@pytest.mark.nightly
def test_workers_that_hold_former_code_are_refused(world: Path) -> None:
    """A module of one's own was edited after they had imported it."""
    code = "import ecs_fluid as ef\n\n\nclass Idle(ef.System):\n    def process(self, dt): ...\n"
    Path("idle.py").write_text(code, encoding="utf-8")
    table = "[[system]]\nkind = 'idle:Idle'\n\n[output]"
    world.write_text(world.read_text(encoding="utf-8").replace("[output]", table), encoding="utf-8")
    command = [*COMMAND, "sweep", str(world), "--seeds", "2", "--ticks", "2", "--allow-code", "--scheduler"]
    with scheduler_with_workers(world.parent) as (address, _):
        for out, returned in (("first", 0), ("second", 2)):
            done = subprocess.run([*command, address, "--out", out], capture_output=True, text=True)
            said = " ".join(done.stderr.split())
            assert done.returncode == returned, said
            Path("idle.py").write_text(code + "# edited\n", encoding="utf-8")
    assert "the sweep has module idle " in said and "both need the same" in said


@pytest.mark.nightly
def test_workers_find_modules_beside_the_script_that_sweeps(world: Path) -> None:
    """A system of one's own, made in a script whose folder is not the working one."""
    code = "import ecs_fluid as ef\n\n\nclass Idle(ef.System):\n    def process(self, dt): ...\n"
    script = f"""
import tomllib
from pathlib import Path
import ecs_fluid as ef
from idle import Idle
if __name__ == "__main__":
    tables = tomllib.loads(Path({str(world)!r}).read_text()) | {{"system": [Idle()]}}
    ef.sweep(tables, {{"ring.core": [0.25, 0.35]}}, out="s", ticks=2, workers=1)
    ef.sweep(tables, {{"ring.core": [0.25, 0.35]}}, out="serial", ticks=2, workers=0)
"""
    Path("code of mine").mkdir()
    Path("code of mine/idle.py").write_text(code, encoding="utf-8")
    Path("code of mine/study.py").write_text(script, encoding="utf-8")
    done = subprocess.run([sys.executable, "code of mine/study.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert hashes("s") == hashes("serial") and len(hashes("s")) == 2


@pytest.mark.nightly
def test_a_scheduler_that_dies_is_one_sentence(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was finished stays, and the same sweep goes on without that scheduler."""

    class Enemy(Watcher):
        def end(self, member: object) -> None:
            processes[0].kill()

    vary = {"ring.core": "0.25:0.35:3"}
    with (
        scheduler_with_workers(world.parent) as (address, processes),
        pytest.raises(FluidError, match="the Dask scheduler is gone"),
    ):
        ef.sweep(world, vary, out="s", ticks=40, scheduler=address, watch=Enemy())
    first = history("s")
    assert [record["status"] for record in first] == ["finished"]
    ef.sweep(world, vary, out="s", ticks=40, workers=0)
    assert [record["member"] for record in history("s")].count(first[0]["member"]) == 1
    ef.sweep(world, vary, out="serial", ticks=40, workers=0)
    assert hashes("s") == hashes("serial")


@pytest.mark.nightly
def test_a_member_that_kills_its_workers_stops_no_other(world: Path) -> None:
    """It is tried on three workers, then given up; the others finish on those that took their place."""
    Path("deadly.py").write_text(
        "import os\nimport signal\n\nimport ecs_fluid as ef\n\n\nclass Deadly(ef.System):\n"
        "    writes = (ef.Position,)\n    phase = 'move'\n    after = (ef.AdvectionSystem,)\n"
        "    deadly: bool = False\n\n    def process(self, dt: float) -> None:\n        if self.deadly:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    table = "[[system]]\nkind = 'deadly:Deadly'\n\n[output]"
    world.write_text(world.read_text(encoding="utf-8").replace("[output]", table), encoding="utf-8")
    vary = {"system.0.deadly": [False, True], "ring.core": [0.3, 0.35]}
    done = ef.sweep(world, vary, out="s", ticks=4, workers=2, allow_code=True)
    assert [member.status for member in done.members] == ["finished", "finished", "failed", "failed"]
    assert all("every worker that ran it died" in member.error for member in done.failed)


@pytest.mark.nightly
def test_ctrl_c_stops_members_after_their_tick(world: Path) -> None:
    """SIGINT: exit code 130, what is under way is stored to its last tick, and the rest is not begun."""
    arguments = [
        "sweep", str(world), "--vary", "ring.core=0.25:0.45:5", "--ticks", "4000", "--workers", "2",
        "--out", "s",
    ]  # fmt: skip
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    # The world's own checkpoints are a minute apart: only the orderly stop stores a later one than tick 0.
    while len(list(Path("s/members").glob("*/trajectory/ring.vtkhdf"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert b"the same command continues" in output and b"Traceback" not in errors
    with open("s/members.csv", encoding="utf-8", newline="") as handle:
        statuses = Counter(row["status"] for row in csv.DictReader(handle))
    assert statuses == {"stopped": 2, "waiting": 3}
    for record in history("s"):
        run = RunFolder.open(Path("s/members") / record["member"])
        assert run.newest_checkpoint().tick == record["ticks"] > 0
