"""Files written whole or not at all, one sentence for what a disk refuses, and names that files can have."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from ecs_fluid import validation_errors
from ecs_fluid.errors import StorageError
from ecs_fluid.validation_errors import LONGEST_NAME

WINDOWS = os.name == "nt"
"""Whether a file that any program has open can be neither removed nor replaced."""

PATIENCE = 1.0
"""Time that `when_free` waits, s; readers of a run, indexers and virus scanners have files open for less."""

NAME = re.compile(validation_errors.NAME[1:-1])
"""Names of populations: they become file names, so no dots, slashes or spaces."""

COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)?")
"""Names of columns: ``Velocity.u``, or a plain word."""

T = TypeVar("T")

_FULL = "the disk or quota is full; free some space or choose another folder, finished data is intact"
_FORBIDDEN = "the place is read-only or you have no permission there; change it or choose another folder"
_TOO_LARGE = "the file would exceed the size limit of this system (see `ulimit -f`), finished data is intact"
_IN_THE_WAY = "a file is in the way where a folder is needed"
_WHY = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL)
_WHY |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _FORBIDDEN)
_WHY |= dict.fromkeys((errno.ENOTDIR, errno.EEXIST), _IN_THE_WAY)
_WHY |= {errno.ENOENT: "there is no such file or folder", errno.EISDIR: "it is a folder, not a file"}
_WHY[errno.EFBIG] = _TOO_LARGE


def check_name(name: str, pattern: re.Pattern[str] = NAME, what: str = "population") -> str:
    """Return ``name`` if it can safely be part of a file; raise StorageError in one sentence otherwise."""
    if not pattern.fullmatch(name) or len(name) > LONGEST_NAME:
        raise StorageError(
            f"{what} name {name[:120]!r} cannot be used in a file: it must match {pattern.pattern} "
            f"and be at most {LONGEST_NAME} characters long"
        )
    return name


def storage_error(error: OSError, doing: str, path: Path) -> StorageError:
    """An error of the operating system as one sentence, with what to do about it.

    ``doing`` completes "cannot ...": for example ``"write checkpoint"``.
    """
    own = " ".join((error.strerror or str(error)).split())  # HDF5 adds the time and line ends
    why = _WHY.get(error.errno or 0, own)
    if doing.startswith("read") and error.errno in (errno.EACCES, errno.EPERM):
        why = "you have no permission to read it; ask for that, or read a copy"
    if WINDOWS and isinstance(error, PermissionError):
        why = f"another program has it open, or {why}"
    return StorageError(f"cannot {doing} {path}: {why}")


def damage_error(error: BaseException, what: str, path: Path) -> StorageError:
    """One sentence for a file that cannot be read as ``what`` it should be, such as ``"field file"``."""
    if isinstance(error, OSError) and error.errno is not None:
        return storage_error(error, f"read {what}", path)
    detail = " ".join(str(error.args[0] if error.args else error).split())
    return StorageError(f"{what} {path} is damaged, or another kind of file: {detail}")


def when_free(act: Callable[[], T]) -> T:
    """The result of `act`, tried again while a program may have its file open, where that hinders it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return act()
        except PermissionError:
            if not WINDOWS or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its parents; a StorageError says why that did not work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, "create folder", folder) from error


def sync_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` survive a power cut, where the system supports that."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some network disks refuse fsync on folders; nothing better exists
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def temporary_name(path: Path) -> Path:
    """Name of the unfinished sibling of ``path``; the same folder, so that renaming is atomic."""
    return path.with_name(f".{path.name}.tmp")


def replace_file(path: Path, write: Callable[[BinaryIO], object], doing: str) -> None:
    """Write a file beside ``path``, sync it and rename it over ``path``; on failure ``path`` is untouched.

    Raises StorageError for a folder, for a device or a pipe, and for anything the operating system refuses.
    Other errors of ``write`` pass through.
    """
    if path.is_dir():
        raise StorageError(f"cannot {doing} {path}: it is a folder, not a file")
    if not path.is_symlink() and path.exists() and not path.is_file():
        raise StorageError(f"cannot {doing} {path}: it is a device or a pipe, which a file would replace")
    unfinished = temporary_name(path)
    try:
        try:
            # Made anew, so that a link of that name is not followed to a file elsewhere.
            unfinished.unlink(missing_ok=True)
            with open(unfinished, "x+b") as handle:
                write(handle)
                handle.flush()
                os.fsync(handle.fileno())
            when_free(lambda: os.replace(unfinished, path))
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
    except OSError as error:
        raise storage_error(error, doing, path) from error
    sync_folder(path.parent)


def replace_text(path: Path, text: str, doing: str) -> None:
    """Atomically replace a small UTF-8 text file."""
    replace_file(path, lambda handle: handle.write(text.encode()), doing)
