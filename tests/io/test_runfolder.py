"""A run folder says what was run, belongs to one process at a time, and is never silently overwritten."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.errors import StorageError
from ecs_fluid.io import disk, lock
from ecs_fluid.io.fields import append_field, field_ticks
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.runfolder import RunFolder

RECIPE = '[world]\ndt = 0.02  # s, "½ of a frame"\n'
INFO = {"seed": 7, "command": ["run", "ring"], "precision": "double"}


def make(path: Path, **options: Any) -> RunFolder:
    return RunFolder.create(path, RECIPE, INFO, **options)


def test_a_run_can_be_repeated_from_its_folder(tmp_path: Path) -> None:
    with make(tmp_path / "a" / "run"):
        pass
    run = RunFolder.open(tmp_path / "a" / "run")
    info = run.read_info()
    assert run.recipe == RECIPE and (run.path / "world.toml").read_text(encoding="utf-8") == RECIPE
    assert INFO.items() <= info.items() and info["status"] == "running"
    (stretch,) = info["stretches"]
    assert stretch["first_tick"] == 0 and stretch["computed_with"]["numpy"] == np.__version__
    assert stretch["computed_with"]["python"] == sys.version.split()[0]
    assert stretch["machine"]["cpus"] == os.cpu_count()
    assert f'"{os.uname().nodename}"' not in json.dumps(stretch)


def test_updates_keep_the_rest_and_need_the_writer(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        run.update(status="finished", ticks=240, timings={"VelocitySystem": 1.25})
    info = RunFolder.open(tmp_path).read_info()
    assert (info["status"], info["ticks"], info["timings"]) == ("finished", 240, {"VelocitySystem": 1.25})
    assert info["seed"] == 7
    with pytest.raises(StorageError, match="opened read-only; resume it to write"):
        RunFolder.open(tmp_path).update(status="x")
    with RunFolder.resume(tmp_path) as again, pytest.raises(StorageError, match="plain JSON"):
        again.update(status=object())
    # What could not be read again does not take the place of what can.
    plan = {"last_tick": 2**63, "every": 1, "checkpoint_seconds": 0.0}
    with (
        RunFolder.resume(tmp_path) as again,
        pytest.raises(StorageError, match=r"is refused: plan\.last_tick ="),
    ):
        again.update(plan=plan)
    assert RunFolder.open(tmp_path).read_info() == info


def test_existing_runs_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    with make(tmp_path / "run") as run:
        run.record(tick=1, time=0.1)
        run.save_checkpoint(1, {}, {"x": np.zeros(2)})
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="already holds a run; resume it, replace it"):
        make(tmp_path / "run")
    with make(tmp_path / "run", existing="replace") as run:
        assert run.records() == [] and not list(run.checkpoints.iterdir())
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"

    for existing in ("refuse", "replace"):
        foreign = tmp_path / f"foreign-{existing}"
        foreign.mkdir()
        (foreign / "world.toml").write_text("a recipe of the user's")
        with pytest.raises(StorageError, match=r"not empty and not a run folder \(it holds 'world.toml'\)"):
            make(foreign, existing=existing)
        assert (foreign / "world.toml").read_text() == "a recipe of the user's"
        assert [path.name for path in foreign.iterdir()] == ["world.toml"]
        (foreign / "run.json").write_text('{"format": "of another program"}')
        with pytest.raises(StorageError, match="ecs_fluid did not write its"):
            make(foreign, existing=existing)


def test_what_is_not_a_run_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, why in {
        "missing": "no such folder",
        "empty": "has no run.json",
        "file": "it is a file",
    }.items():
        with pytest.raises(StorageError, match=why):
            RunFolder.open(tmp_path / name)
    with pytest.raises(StorageError, match="a file is in the way"):
        make(tmp_path / "file")
    make(tmp_path / "run").close()
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    for text, why in {
        json.dumps({**document, "version": 4}): "format version 4, but this ecs_fluid reads only version 2",
        json.dumps(document)[:-5]: "is damaged: it is not JSON",
        "[" * 100_000: "is damaged: it is not JSON",
        "[]": "ecs_fluid did not write its",
        json.dumps({**document, "ticks": 10**400}): "ticks",
        json.dumps({**document, "ticks": -1}): "ticks",
        json.dumps(
            {**document, "plan": {"last_tick": 10**400, "every": 1, "checkpoint_seconds": 1.0}}
        ): "last_tick",
        json.dumps({**document, "systems": {"A": {"seconds": 1.0, "calls": 10**400}}}): "calls",
    }.items():
        (tmp_path / "run" / "run.json").write_text(text)
        with pytest.raises(StorageError, match=why):
            RunFolder.open(tmp_path / "run")


def test_a_start_killed_half_way_does_not_block_the_next(tmp_path: Path) -> None:
    make(tmp_path).close()
    (tmp_path / "run.json").unlink()
    (tmp_path / ".run.json.tmp").write_text("half")
    make(tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        "run.json",
        "trajectory",
        "world.toml",
        "writer.lock",
    ]


def test_records_survive_a_torn_line_and_rewind(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        for tick in range(5):
            run.record(tick=tick, energy=0.1 * tick, worst=float("nan") if tick == 2 else 0.0)
        whole = run.diagnostics.read_bytes()
        run.diagnostics.write_bytes(whole + b'{"tick": 5, "ener')
        assert [record["tick"] for record in run.records()] == [0, 1, 2, 3, 4]
        run.record(tick=5, energy=0.5)
        assert [record["tick"] for record in run.records()] == [0, 1, 2, 3, 4, 5]
        run.diagnostics.write_bytes(whole + b"x" * 10_000)  # longer than one block of the search
        run.record(tick=5, energy=0.5)
        assert [record["energy"] for record in run.records()] == [0.1 * tick for tick in range(5)] + [0.5]
        for tick in (2, 4):
            run.save_checkpoint(tick, {"tick": tick}, {})
            append_field(
                run.fields, "velocity", tick, 0.1, np.zeros(3), np.ones(3), {"u": np.ones((2, 2, 2))}
            )
        run.rewind(2, frames=2)
        assert field_ticks(run.fields, "velocity") == [2]
        assert run.diagnostics.read_bytes() == b"".join(whole.splitlines(keepends=True)[:3])
        assert run.newest_checkpoint().tick == 2
        run.diagnostics.write_bytes(b"not json\n")
        with pytest.raises(StorageError, match=r"line 1 of .*diagnostics.jsonl is damaged"):
            run.records()


def test_a_resumed_run_continues_trajectory_and_checkpoints(tmp_path: Path) -> None:
    def frame(tick: int) -> dict[str, dict[str, np.ndarray]]:
        return {"ring": {"Position.x": np.full((3, 3), float(tick))}}

    with make(tmp_path) as run, run.write_trajectory() as trajectory:
        for tick in range(6):
            trajectory.append(tick, tick * 0.5, frame(tick))
            run.save_checkpoint(tick, {"tick": tick}, {"x": np.array([tick])})
    with RunFolder.resume(tmp_path) as run:
        (run.checkpoints / "checkpoint-00000005.npz").unlink()
        newest = run.newest_checkpoint()
        assert newest.tick == 4 and newest.arrays["x"].tolist() == [4]
        run.rewind(newest.tick, frames=newest.tick)
        with run.write_trajectory(resume_at_tick=newest.tick) as trajectory:
            assert trajectory.ticks == (0, 1, 2, 3, 4)
            trajectory.append(5, 2.5, frame(50))
        found = run.read_trajectory()
    assert found.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert found.frame(5)["ring"]["Position.x"][0, 0] == 50.0


HOLD = "import sys, time; from ecs_fluid.io.runfolder import RunFolder; run = RunFolder.resume(sys.argv[1]); "
HOLD += "print('held', flush=True); time.sleep(60)"


def test_two_processes_cannot_write_and_a_dead_one_does_not_count(tmp_path: Path) -> None:
    make(tmp_path).close()
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"held\n"
        for attempt in (lambda: RunFolder.resume(tmp_path), lambda: make(tmp_path, existing="replace")):
            with pytest.raises(StorageError, match=f"being written by process {child.pid} right now"):
                attempt()
        RunFolder.open(tmp_path)  # reading is always possible
        child.kill()
    with RunFolder.resume(tmp_path) as run:
        run.update(status="resumed")


def test_without_locks_on_the_disk_the_process_id_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network disks: flock is not supported there, so the owner's process is looked for."""

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock.FileLock, "acquire", unsupported)
    path = tmp_path / "writer.lock"
    path.write_text(json.dumps({"pid": os.getppid()}))
    with pytest.raises(StorageError, match=f"being written by process {os.getppid()}"):
        WriterLock(path)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    path.write_text(json.dumps({"pid": gone.pid}))
    WriterLock(path).release()
    path.write_text("garbage")
    WriterLock(path).release()


def test_on_windows_no_process_is_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """os.kill(pid, 0) is Ctrl-C there; without it every other process counts as running."""

    def kill(*_: object) -> None:
        raise AssertionError("a process was signalled")

    monkeypatch.setattr(lock.sys, "platform", "win32")
    monkeypatch.setattr(lock.os, "kill", kill)
    assert lock.alive(os.getppid()) and not lock.alive(os.getpid()) and not lock.alive(None)


def test_on_windows_files_that_a_reader_has_open_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They can be neither replaced nor removed there: a look at a run would have ended it."""
    replace, remove = os.replace, Path.unlink
    refused: list[str] = []

    def in_use(act: Any, name: str, times: int) -> Any:
        def attempt(path: Any, *rest: Any, **options: Any) -> Any:
            if Path(path).name == name and refused.count(name) < times:
                refused.append(name)
                raise PermissionError(errno.EACCES, "Access is denied")
            return act(path, *rest, **options)

        return attempt

    monkeypatch.setattr(disk, "WINDOWS", True)
    monkeypatch.setattr(Path, "unlink", in_use(remove, "checkpoint-00000001.npz", 2))
    with make(tmp_path) as run:
        monkeypatch.setattr(os, "replace", in_use(replace, ".run.json.tmp", 2))
        run.update(ticks=3)
        for tick in (1, 2, 3):
            run.save_checkpoint(tick, {}, {"x": np.zeros(3)})
        assert refused == [".run.json.tmp"] * 2 + ["checkpoint-00000001.npz"] * 2
        assert len(list(run.checkpoints.iterdir())) == 2
        monkeypatch.setattr(os, "replace", in_use(replace, ".run.json.tmp", 10**9))
        monkeypatch.setattr(disk, "PATIENCE", 0.05)
        with pytest.raises(StorageError, match="another program has it open, or the place is read-only"):
            run.update(ticks=4)
        assert run.read_info()["ticks"] == 3


def test_without_locks_of_folders_reading_and_writing_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: no fcntl, and folders cannot be opened."""
    opened = os.open

    def refuse(path: str | Path, *rest: object, **named: object) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.delattr(lock, "fcntl")
    monkeypatch.setattr(os, "open", refuse)
    with make(tmp_path) as run:
        run.update(status="finished")
    assert RunFolder.open(tmp_path).read_info()["status"] == "finished"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "the disk or quota is full; free some space"),
        (errno.EROFS, "read-only or you have no permission"),
        (errno.EACCES, "read-only or you have no permission"),
        (errno.EFBIG, "exceed the size limit"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_refusing_disk_is_explained_and_the_former_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    with make(tmp_path) as run:
        run.save_checkpoint(3, {"tick": 3}, {"x": np.arange(4)})
        before = (run.path / "run.json").read_bytes()

        def refuse(_: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(disk.os, "fsync", refuse)
        with pytest.raises(StorageError, match=why):
            run.save_checkpoint(3, {"tick": 3}, {"x": np.zeros(9)})
        with pytest.raises(StorageError, match=why):
            run.update(status="finished")
        monkeypatch.undo()
        assert run.newest_checkpoint().arrays["x"].tolist() == [0, 1, 2, 3]
        assert (run.path / "run.json").read_bytes() == before
        assert not list(run.path.rglob("*.tmp"))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_really_full_disk_the_former_checkpoint_survives(tiny_disk: Path) -> None:
    with make(tiny_disk / "run") as run:
        run.save_checkpoint(1, {"tick": 1}, {"x": np.arange(50_000)})  # 400 kB of 1 MB
        with pytest.raises(StorageError, match="disk or quota is full"):
            run.save_checkpoint(2, {"tick": 2}, {"x": np.arange(100_000)})
        assert run.newest_checkpoint().tick == 1
        with pytest.raises(StorageError, match="disk or quota is full"):
            for tick in range(100_000):
                run.record(tick=tick, filler="x" * 1000)
        records = run.records()
        assert [record["tick"] for record in records] == list(range(len(records))) and len(records) > 100


def test_on_a_read_only_disk_reading_works_and_writing_is_explained(tiny_disk: Path) -> None:
    with make(tiny_disk / "run") as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"ring": {"Position.x": np.ones((2, 3))}})
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    run = RunFolder.open(tiny_disk / "run")
    assert run.read_trajectory().frame(0)["ring"]["Position.x"].tolist() == [[1.0] * 3] * 2
    for attempt in (lambda: RunFolder.resume(tiny_disk / "run"), lambda: make(tiny_disk / "other")):
        with pytest.raises(StorageError, match="read-only or you have no permission"):
            attempt()
