"""Locks between processes: one writer per run folder, and no reader in the middle of a commit.

The kernel drops these locks when a process dies, however it dies, so nothing stale is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.io.disk import storage_error
from ecs_fluid.io.untrusted import NO_LINK

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_PATIENCE = 2.0  # s; a reader that was stopped while it held the lock must not stop a simulation


class WriterLock:
    """Held by the one process that writes into a folder, from construction to ``release`` or its death.

    Raises StorageError naming the other process if there is one. The file at ``path`` stays behind after
    release; it holds the last owner's process id and means nothing by itself.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            # Not through a link, which would empty the file it leads to; nor is a pipe waited for.
            flags = NO_LINK | getattr(os, "O_NONBLOCK", 0)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        except OSError as error:
            raise storage_error(error, "lock", self.path) from error
        try:
            self._take()
        except BaseException:
            os.close(self._handle)
            self._handle = -1
            raise

    def _take(self) -> None:
        try:
            free = _try_lock(self._handle)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise storage_error(error, "lock", self.path) from error
            free = not alive(self._owner())  # some network disks have no locks: ask who is still running
        if not free:
            owner = self._owner()
            who = "this process" if owner == os.getpid() else f"process {owner}" if owner else "a process"
            raise StorageError(
                f"{self.path.parent} is being written by {who} right now; wait for it or choose another "
                "folder."
            )
        with contextlib.suppress(OSError):  # a full disk must not keep a reader of old data out
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, json.dumps({"pid": os.getpid()}).encode())

    def _owner(self) -> int | None:
        try:
            os.lseek(self._handle, 0, os.SEEK_SET)
            return int(json.loads(os.read(self._handle, 200))["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def release(self) -> None:
        """Let others write; harmless when repeated."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def alive(pid: int | None) -> bool:
    """Whether another process of that number runs."""
    if pid is None or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def folder_guard(folder: Path, exclusive: bool) -> Iterator[None]:
    """Readers share the folder, the writer's short commit has it alone; best effort, 2 s patience.

    The folder itself is locked, not a file in it: that needs no right to write, and VTK's own lock on the
    data files stays out of the way. Where folders cannot be locked nothing happens.
    """
    if sys.platform == "win32":
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        _wait(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, kind: int) -> None:
    if sys.platform == "win32":
        return
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.0005)
        except OSError:
            return


@contextlib.contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Let Ctrl-C act at the end of the block: HDF5 calls Python and must not meet an exception there."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers in the main thread only
        return
    arrived: list[tuple[int, Any]] = []
    former = signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    if former is None:  # installed by other than Python code: it cannot be put back, nor does it raise
        former = signal.SIG_DFL
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        if arrived and callable(former):
            former(*arrived[-1])
