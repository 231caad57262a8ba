"""Sweeps that go on where they were stopped or killed, and folders that are not theirs."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError, StorageError
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.records import read_records
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.sweeps.study import Watcher
from tests.sweep.made_sweep import ALONE, COMMAND, CORES, EACH_TICK, hashes, stamps


def test_the_same_command_again_does_nothing_over(world: Path) -> None:
    arguments = ["sweep", str(world), *CORES, "--workers", "0", "--ticks", "2"]
    assert main(arguments) == 0
    before, history = stamps("sweeps/puffs"), read_records(Path("sweeps/puffs/history.jsonl"))
    table = Path("sweeps/puffs/table.csv").read_bytes()
    assert len(history) == 2
    assert main(arguments) == 0
    assert stamps("sweeps/puffs") == before
    assert read_records(Path("sweeps/puffs/history.jsonl")) == history
    assert Path("sweeps/puffs/table.csv").read_bytes() == table


def test_a_damaged_member_is_reported_and_stops_no_other(world: Path) -> None:
    done = ef.sweep(world, {"ring.core": [0.25, 0.35]}, out="s", ticks=1, **ALONE)
    (done.members[0].path / "run.json").write_text("{", encoding="utf-8")
    (done.members[1].path / "run.json").unlink()  # begun, but not to its first line
    again = ef.sweep(world, {"ring.core": [0.25, 0.35]}, out="s", ticks=1, **ALONE)
    assert [member.status for member in again.members] == ["failed", "finished"]
    assert "run.json is damaged" in again.failed[0].error
    assert again.members[1].state_hash == done.members[1].state_hash


def test_another_sweep_in_the_folder_is_refused_by_name(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ("--workers", "0", "--out", "s")
    assert main(["sweep", str(world), *CORES, "--ticks", "2", *fixed]) == 0
    before = stamps("s")
    for change, said in [
        (("--vary", "ring.core=0.25,0.36"), "ring.core was 0.25, 0.35 and is now 0.25, 0.36"),
        ((*CORES, "--seeds", "2"), "world.seed was absent and is now 1, 2"),
        ((*CORES, "--ticks", "3"), "ticks was 2 and is now 3"),
        ((*CORES, "--set", "ring.circulation=4.0"), "circulation was 5.0 and is now 4.0"),
        (
            ("--vary", "ring.cor=0.25,0.35"),
            "unknown key 'cor'; did you mean 'core'?",
        ),  # the reason goes first
        (("--vary", "ring.core=0.25-0.35"), "a number is needed"),
    ]:
        ticks = () if "--ticks" in change else ("--ticks", "2")
        assert main(["sweep", str(world), *change, *ticks, *fixed]) == 2
        assert said in capsys.readouterr().err
    assert stamps("s") == before


def test_commands_for_runs_say_that_it_is_a_sweep(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and what to do; its members are runs for them."""
    assert main(["sweep", str(world), *CORES, "--ticks", "2", "--workers", "0", "--out", "s"]) == 0
    capsys.readouterr()
    for command in (["info", "s"], ["page", "s"], ["resume", "s"], ["export", "s", "--to", "npz"]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: s is a sweep: the runs are in s/members") and said.count("\n") == 1
    assert main(["info", "s/members/core=0.25"]) == 0


def test_a_folder_of_other_things_is_refused(world: Path) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(StorageError, match=r"'letter\.txt'"):
        ef.sweep(world, {"ring.core": [0.25]}, out="mine", **ALONE)
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]


def test_two_sweeps_do_not_share_a_folder(world: Path) -> None:
    with ef.Study(world, "s", ticks=1, **ALONE), pytest.raises(StorageError, match="this process"):
        ef.Study(world, "s", ticks=1, **ALONE)


def test_a_stopped_sweep_goes_on_where_it_stood(world: Path) -> None:
    """Stopped in the fourth tick of the second member of three; its end is that of an unbroken run."""

    class Stopper(Watcher):
        def tick(self, name: str, tick: int, last: int) -> None:
            if name == "core=0.35" and tick == 1:
                study.stop()

    vary = {"ring.core": [0.25, 0.35, 0.45]}
    with ef.Study(world, "s", vary=vary, **ALONE, watch=Stopper()) as study:
        first, second, third = study.run_planned()
    assert (first.status, second.status, third.status) == ("finished", "stopped", "waiting")
    assert 1 <= second.ticks < 10
    kept = stamps("s/members/core=0.25")
    done = ef.sweep(world, vary, out="s", **ALONE)
    assert [member.status for member in done.members] == 3 * ["finished"]
    assert stamps("s/members/core=0.25") == kept
    history = read_records(Path("s/history.jsonl"))
    assert [(r["member"], r["first_tick"], r["ticks"]) for r in history] == [
        ("core=0.25", 0, 10),
        ("core=0.35", 0, second.ticks),
        ("core=0.35", second.ticks, 10),
        ("core=0.45", 0, 10),
    ]
    whole = ef.sweep(world, vary, out="whole", **ALONE)
    assert hashes("s") == hashes("whole")
    assert [m.records() for m in done.members] == [m.records() for m in whole.members]


def test_a_killed_sweep_does_over_only_what_was_lost(world: Path) -> None:
    """SIGKILL in the middle of a member; with a checkpoint after every tick at most one is done twice."""
    arguments = ["sweep", str(world), *CORES, "--workers", "0", "--ticks", "16", *EACH_TICK, "--out", "s"]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    second = Path("s/members/core=0.35/checkpoints")
    deadline = time.monotonic() + 300
    while not list(second.glob("checkpoint-*.npz")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = RunFolder.open("s/members/core=0.35").newest_checkpoint().tick
    assert reached < 16, "the sweep ended before it was killed; make it longer"
    kept = stamps("s/members/core=0.25")
    assert main(arguments) == 0
    assert stamps("s/members/core=0.25") == kept
    history = read_records(Path("s/history.jsonl"))
    assert [(r["member"], r["first_tick"]) for r in history] == [("core=0.25", 0), ("core=0.35", reached)]
    assert main([*arguments[:-1], "whole"]) == 0
    assert hashes("s") == hashes("whole")


def test_a_member_that_another_process_still_writes_is_waited_for(world: Path) -> None:
    """What a killed sweep left behind on a foreign scheduler ends first; a stop ends the waiting too."""
    said: list[str] = []

    class Listener(Watcher):
        def say(self, text: str) -> None:
            said.append(text)
            if "waits" in text:
                threading.Timer(0.2, release.pop()).start()

    with ef.Study(world, "s", ticks=1, **ALONE, watch=Listener()) as study:
        folder = study.folder / "members" / "ring.core=0.25"
        folder.mkdir(parents=True)
        lock = WriterLock(folder / "writer.lock")
        release = [lock.release, study.stop]
        with pytest.raises(FluidError, match="stopped"):
            study.run({"ring.core": 0.25})
        (study.folder / "stop").unlink()
        assert study.run({"ring.core": 0.25}).finished
    assert sum("waits: " in text and "is being written by this process" in text for text in said) == 2


def test_a_sweep_made_by_another_process_before_the_lock_is_not_overwritten(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found the folder empty; the other one made its sweep and ended before this one had the lock."""

    class Late(WriterLock):
        def __init__(self, path: Path) -> None:
            monkeypatch.undo()
            monkeypatch.chdir(world.parent)
            with ef.Study(world, out="s", vary={"ring.core": [0.25]}, **ALONE):
                pass
            super().__init__(path)

    monkeypatch.setattr("ecs_fluid.sweeps.study.WriterLock", Late)
    with pytest.raises(StorageError, match=r"ring\.core was 0\.25 and is now 0\.35"):
        ef.Study(world, out="s", vary={"ring.core": [0.35]}, **ALONE)
    assert json.loads(Path("s/sweep.json").read_text(encoding="utf-8"))["vary"] == {"ring.core": [0.25]}
    WriterLock(Path("s/writer.lock")).release()  # the refused one let the folder go
