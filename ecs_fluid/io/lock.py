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
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ecs_fluid.errors import DAMAGE, StorageError
from ecs_fluid.io.disk import storage_error
from ecs_fluid.io.untrusted import read_bytes
from ecs_fluid.signals import handled

with contextlib.suppress(ImportError):  # Windows
    import fcntl

LOCK = "writer.lock"
"""Name of the file, in every folder that a process writes into, that the writer holds."""

_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_PATIENCE = 2.0  # s; a reader that was stopped while it held the lock must not stop a simulation


class WriterLock:
    """Held by the one process that writes into a folder, from construction to ``release`` or its death.

    Raises StorageError naming the other process if there is one. The file at ``path`` stays behind after
    release; it holds the last owner's process id and means nothing by itself.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        # FileLock follows no link and waits for no pipe. Any thread of this process may release it.
        self._lock = FileLock(self.path, blocking=False, thread_local=False, fallback_to_soft=False)
        try:
            self._lock.acquire()
            free = True
        except Timeout:
            free = False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise storage_error(error, "lock", self.path) from error
            free = not alive(self._owner())  # some network disks have no locks
        if not free:
            owner = self._owner()
            who = "this process" if owner == os.getpid() else f"process {owner}" if owner else "a process"
            raise StorageError(
                f"{self.path.parent} is being written by {who} right now; wait for it or choose another "
                "folder"
            )
        self._held = True
        self._write_owner(json.dumps({"pid": os.getpid()}))

    def _write_owner(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not keep a reader of old data out
            self.path.write_text(text, encoding="utf-8")

    def _owner(self) -> int | None:
        try:
            return int(json.loads(read_bytes(self.path, "read"))["pid"])
        except (StorageError, *DAMAGE):
            return None

    def release(self) -> None:
        """Let others write; harmless when repeated."""
        if self._held:
            self._held = False
            self._write_owner("")
            self._lock.release()

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def alive(pid: int | None) -> bool:
    """Whether another process of that number runs; on Windows any number counts as one that does."""
    if pid is None or pid == os.getpid():
        return False
    if sys.platform == "win32":  # os.kill would send it Ctrl-C there
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def folder_guard(folder: Path, exclusive: bool) -> Iterator[None]:
    """Readers share the folder, a commit of the writer has it alone; after 2 s of waiting both go on anyway.

    The folder itself is locked, not a file in it: that needs no right to write, and VTK's own lock on the
    data files stays out of the way. Where folders cannot be locked (Windows) nothing happens. filelock has
    no lock that readers share without a file of its own, so flock is called directly.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            _wait(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def _wait(handle: int, kind: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() <= deadline:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.0005)


@contextlib.contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Let Ctrl-C and other signals act when the block ends: Python code that HDF5 calls must not raise."""
    arrived: list[int] = []
    try:
        with handled(lambda number, frame: arrived.append(number)):
            yield
    finally:
        if arrived:
            signal.raise_signal(arrived[-1])
