"""Reading files that strangers may have made: ordinary files only, and no more of them than memory holds.

A run folder that somebody sent can hold a link to a device that never ends, a pipe that nobody writes to, or
a sparse file that claims a terabyte. Reading those hangs a process or fills the memory of the machine.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.input_limits import limits
from ecs_fluid.io.disk import storage_error, when_free

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag of files that are written: a link in a run folder must not lead a write out of it."""


def not_a_link(path: str, flags: int) -> int:
    """Open a file to write it, as `opener` of `open`; OSError for a link."""
    return os.open(path, flags | NO_LINK, 0o666)


def check_file(path: Path, doing: str, most: float | None = None) -> int:
    """Size of an ordinary file in bytes, links followed; it is not opened, so no pipe is waited for.

    ``doing`` completes "cannot ..."; ``most`` is the largest size allowed, default the limit of memory.
    Raises StorageError for anything that is not a file, and for a larger one.
    """
    most = limits().memory if most is None else most
    try:
        found = path.stat()
    except OSError as error:
        raise storage_error(error, doing, path) from error
    if stat.S_ISDIR(found.st_mode):
        raise StorageError(f"cannot {doing} {path}: it is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"cannot {doing} {path}: it is a device or a pipe, not a file")
    if found.st_size > most:
        raise StorageError(
            f"cannot {doing} {path}: it has {found.st_size:,} bytes, and at most {most:,.0f} are read"
        )
    return found.st_size


def read_bytes(path: Path, doing: str, most: float | None = None) -> bytes:
    """Content of an ordinary file of at most ``most`` bytes, default the limit of text; see `check_file`."""
    size = check_file(path, doing, limits().text if most is None else most)
    try:
        with when_free(lambda: open(path, "rb")) as handle:
            return handle.read(size)
    except OSError as error:
        raise storage_error(error, doing, path) from error


def read_document(folder: Path, kind: str, version: int) -> dict[str, Any]:
    """Content of ``run.json`` or ``sweep.json`` in a folder; ``kind`` is ``run`` or ``sweep``.

    Raises StorageError if it is missing, damaged, not one of ecs_fluid or of another version.
    """
    path = folder / f"{kind}.json"
    try:
        document = json.loads(read_bytes(path, f"read {kind} information"))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{kind} information {path} is damaged: it is not JSON") from error
    if not isinstance(document, dict) or document.get("format") != f"ecs_fluid {kind}":
        raise StorageError(f"{folder} is not a {kind} folder: ecs_fluid did not write its {path.name}")
    if document.get("version") != version:
        raise StorageError(
            f"{kind} {folder} has format version {document.get('version')}, but this ecs_fluid reads only "
            f"version {version}; open it with the ecs_fluid that wrote it"
        )
    return document


def refuse_linked(folder: Path) -> None:
    """Raise StorageError when a folder that is to be written is a link: files elsewhere would change."""
    if folder.is_symlink():
        raise StorageError(
            f"{folder} is a symbolic link; a run writes in its own folder only, so move the files there"
        )
