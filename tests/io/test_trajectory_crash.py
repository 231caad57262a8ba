"""Killed at every single write, at random moments, with a full disk: all finished frames read back.

The children are spawned. Those that die at a chosen write are forked from a spawned one, which holds no
threads, so that hundreds of deaths take seconds.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.errors import StorageError
from ecs_fluid.io import transaction
from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter

Frame = dict[str, dict[str, np.ndarray]]


def example(tick: int) -> Frame:
    """Two populations; the second appears at tick 2, and both change size."""
    frame: Frame = {}
    for number, name in enumerate(("ring", "smoke")[: 1 + (tick >= 2)]):
        rows = 700 + 311 * tick + number
        rng = np.random.default_rng([tick, number])
        frame[name] = {
            "Position.x": rng.standard_normal((rows, 3)).astype("float32"),
            "Strength.alpha": rng.standard_normal((rows, 3)),
            "RowId.id": np.arange(rows) + tick,
        }
    return frame


def assert_intact(folder: Path, at_least: int, at_most: int) -> int:
    """Every frame there is equals what was written; return how many there are."""
    trajectory = Trajectory(folder)
    assert at_least <= len(trajectory) <= at_most
    assert trajectory.ticks.tolist() == list(range(len(trajectory)))
    for tick in range(len(trajectory)):
        found, given = trajectory.frame(tick), example(tick)
        for name, data in found.items():
            for column, values in data.items():
                expected = given[name][column] if name in given else values[:0]
                assert values.tobytes() == expected.tobytes(), (tick, name, column)
    return len(trajectory)


def _die_at(step: int, torn: bool) -> None:
    """From now on the ``step``-th change of any file kills this process; ``torn`` amid a write."""
    left = [step]
    write, ftruncate, unlink = os.write, os.ftruncate, Path.unlink

    def last() -> bool:
        left[0] -= 1
        return left[0] < 0

    def dying_write(handle: int, data: Any) -> int:
        if last():
            if torn:
                write(handle, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(handle, data)

    def dying_ftruncate(handle: int, size: int) -> None:
        if last():
            os.kill(os.getpid(), signal.SIGKILL)
        ftruncate(handle, size)

    def dying_unlink(path: Path, missing_ok: bool = False) -> None:
        if last():
            os.kill(os.getpid(), signal.SIGKILL)
        unlink(path, missing_ok)

    os.write, os.ftruncate, Path.unlink = dying_write, dying_ftruncate, dying_unlink  # type: ignore[assignment]


def _die_everywhere(base: str, work: str, frames: int, stride: int) -> None:
    """Kill a copy of ``base`` at the changes that appending frame ``frames`` makes; check what is left."""
    folder, deaths, step, kept = Path(work), 0, 0, {False: 0, True: 0}
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base, folder)
        child = os.fork()
        if child == 0:
            writer = TrajectoryWriter(folder, resume_at_tick=frames - 1)
            _die_at(step, torn=(step // stride) % 2 == 1)
            writer.append(frames, frames * 0.1, example(frames))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        deaths += 1
        found = assert_intact(folder, frames, frames + 1)  # read without any repair
        kept[found > frames] += 1
        with TrajectoryWriter(folder, resume_at_tick=found - 1) as writer:
            for tick in range(found, frames + 2):
                writer.append(tick, tick * 0.1, example(tick))
        assert_intact(folder, frames + 2, frames + 2)
        step += stride
    # A commit touches at least the superblock of each file: before and after its decision must both occur.
    assert kept[False] > 2 and kept[True] > 2, (deaths, kept)


def spawned(target: Callable[..., None], *arguments: Any) -> None:
    """Call it in a process of its own."""
    child = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    child.start()
    child.join(600)
    assert child.exitcode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("frames", "stride"),
    [(2, 7), *(pytest.param(*how, marks=pytest.mark.nightly) for how in ((5, 4), (2, 1), (5, 1)))],
)
def test_death_at_any_write_loses_at_most_the_frame_in_work(tmp_path: Path, frames: int, stride: int) -> None:
    """Twenty deaths by day, and at every write by night."""
    with TrajectoryWriter(tmp_path / "base") as writer:
        for tick in range(frames):
            writer.append(tick, tick * 0.1, example(tick))
    spawned(_die_everywhere, str(tmp_path / "base"), str(tmp_path / "work"), frames, stride)


def _live_and_die(folder: str, moments: Sequence[float]) -> None:
    """Lives of one run, each ended so many seconds after its first frame; check what is left of each."""
    kept = 0
    for moment in moments:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with TrajectoryWriter(Path(folder), resume_at_tick=kept - 1) as writer:
                for tick in range(kept, 100_000):
                    writer.append(tick, tick * 0.1, example(tick))
                    os.write(writing, f"{tick}\n".encode())
            os._exit(1)
        os.close(writing)
        with os.fdopen(reading) as told:
            reported = [int(told.readline())]
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
            reported += [int(line) for line in told]
        kept = assert_intact(Path(folder), reported[-1] + 1, reported[-1] + 2)


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_random_moments(tmp_path: Path) -> None:
    """Six lives of one run, each ended by SIGKILL: whatever was reported as stored is there."""
    spawned(_live_and_die, str(tmp_path), np.random.default_rng(11).uniform(0.02, 0.25, 6).tolist())


class _Full:
    """``os`` for the transaction module, on a disk that is full after so many writes."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, handle: int, data: Any) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(handle, data)


def test_disk_full_at_every_write_costs_that_frame_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appending fails in words, the frames before are there, and works again once there is space."""
    failures = 0
    with TrajectoryWriter(tmp_path) as writer:
        for tick in range(2):
            writer.append(tick, tick * 0.1, example(tick))
        while True:
            monkeypatch.setattr(transaction, "os", full := _Full(failures))
            try:
                writer.append(2, 0.2, example(2))
            except StorageError as error:
                assert "disk or quota is full" in str(error) and "\n" not in str(error)
                assert full.left < 0
            else:
                break
            finally:
                monkeypatch.undo()
            failures += 1
            assert writer.ticks == (0, 1)
            assert_intact(tmp_path, 2, 2)
        monkeypatch.undo()
        writer.append(3, 0.3, example(3))
    assert failures > 20
    assert_intact(tmp_path, 4, 4)


@pytest.fixture
def small_files() -> Iterator[int]:
    """No file may grow beyond 300 kB in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield 300_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_real_size_limit_stops_with_a_sentence(tmp_path: Path, small_files: int) -> None:
    writer = TrajectoryWriter(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (small_files, hard))
    with pytest.raises(StorageError, match="size limit"):
        for tick in range(100):
            writer.append(tick, tick * 0.1, example(tick))
    stored = len(writer.ticks)
    assert stored >= 2
    assert_intact(tmp_path, stored, stored)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.append(stored, stored * 0.1, example(stored))
    writer.close()
    assert_intact(tmp_path, stored + 1, stored + 1)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_really_full_disk(tiny_disk: Path) -> None:
    """Not a byte is left for the sidecar either; leaving the block still reports the frame that failed."""
    refused = pytest.raises(StorageError, match=r"write trajectory frame .* disk or quota is full")
    with refused, TrajectoryWriter(tiny_disk / "t") as writer:
        try:
            for tick in range(100):
                writer.append(tick, tick * 0.1, example(tick))
        finally:
            stored = len(writer.ticks)
            with open(tiny_disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
                while True:
                    filler.write(bytes(512))
    assert stored >= 2
    assert_intact(tiny_disk / "t", stored, stored)


def test_an_interrupt_inside_append_lets_the_frame_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Ctrl-C during the k-th write, inside HDF5: the frame is whole, then KeyboardInterrupt arrives."""

    class Interrupting(_Full):
        def write(self, handle: int, data: Any) -> int:
            self.left -= 1
            if self.left == -1:
                signal.raise_signal(signal.SIGINT)
            return os.write(handle, data)

    # A shell ignores Ctrl-C for what it starts in the background, and so would this test.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, former))
    with TrajectoryWriter(tmp_path) as writer:
        for tick in range(12):
            monkeypatch.setattr(transaction, "os", Interrupting(5 * tick))
            with pytest.raises(KeyboardInterrupt):
                writer.append(tick, tick * 0.1, example(tick))
            monkeypatch.undo()
            assert writer.ticks == tuple(range(tick + 1))
    assert_intact(tmp_path, 12, 12)
