"""Checkpoints: every number of a world's state in one sealed file, bit for bit, or not at all.

A checkpoint is an uncompressed ``.npz`` that ``numpy.load`` opens too. Its last bytes, a zip comment, are a
seal: the format version and a BLAKE2 digest of everything before. The zip's own checksums cover the arrays
but not its headers; the seal covers every byte, so one flipped bit or one lost byte anywhere is noticed.
The same meta and arrays give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ecs_fluid.errors import NPZ_DAMAGE, StorageError
from ecs_fluid.input_limits import check_limit
from ecs_fluid.io.disk import replace_file, storage_error, temporary_name, when_free
from ecs_fluid.io.untrusted import check_file
from ecs_fluid.npz import read_array

VERSION = 1
"""Format of the checkpoints this version writes, and the only one it reads."""

_HEADER = "checkpoint.json"
_SEAL = re.compile(rb"ecs_fluid checkpoint format (\d{6}) blake2b ([0-9a-f]{64})")
_SEAL_LENGTH = len(b"ecs_fluid checkpoint format 000001 blake2b ") + 64
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_FILE_NAME = re.compile(r"checkpoint-(\d{1,18})\.npz")
_KINDS = "biufcSU"


@dataclass(frozen=True)
class LoadedCheckpoint:
    """The newest intact checkpoint of a folder, and a sentence for every damaged newer one."""

    tick: int
    path: Path
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    skipped: tuple[str, ...]


def save_checkpoint(path: str | Path, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``meta`` (what JSON can hold) and ``arrays`` (names like ``ring/Position.x``) to ``path``.

    The file appears whole, synced to the disk, or not at all: a former checkpoint of that name stays intact
    until the new one is finished. Raises StorageError: disk full, no permission, or data no file can hold;
    LimitError: a description that could not be read again.
    """
    path = Path(path)
    header = _header(meta, arrays)
    _check_length(len(header), path)

    def write(handle: BinaryIO) -> None:
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(_HEADER), header)
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
            archive.comment = b"ecs_fluid checkpoint format %06d blake2b %s" % (VERSION, b"0" * 64)
        end = handle.seek(-64, io.SEEK_END)
        digest = _digest(handle, end)
        handle.seek(end)
        handle.write(digest)

    replace_file(path, write, "write checkpoint")


def load_checkpoint(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read back ``(meta, arrays)`` exactly as saved: values, dtypes, shapes; arrays are writable copies.

    Raises StorageError in one sentence for a missing file, a folder, something else than a checkpoint, a
    damaged or cut file, and a checkpoint of another format version. Nothing in the file is ever executed.
    """
    path = Path(path)
    check_file(path, "read checkpoint")
    try:
        with open(path, "rb") as handle:
            _check_seal(handle, path)
            return _read(handle, path)
    except OSError as error:
        raise storage_error(error, "read checkpoint", path) from error


def checkpoint_path(folder: str | Path, tick: int) -> Path:
    """Where the checkpoint of ``tick`` belongs: ``folder/checkpoint-<tick>.npz``."""
    return Path(folder) / f"checkpoint-{tick:08d}.npz"


def list_checkpoints(folder: str | Path) -> list[tuple[int, Path]]:
    """All ``(tick, path)`` of a folder, oldest first; not opened, so damaged ones are listed too."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    named = ((_FILE_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in named if match)


def keep_last(folder: str | Path, count: int = 2) -> None:
    """Delete all but the ``count`` newest checkpoints, and what an interrupted save left behind.

    Two are kept by default, so that damage to the newest costs minutes and not the run.
    """
    for unfinished in Path(folder).glob(temporary_name(Path("checkpoint-*.npz")).name):
        _delete(unfinished)
    for _, path in list_checkpoints(folder)[: -max(count, 1)]:
        _delete(path)


def drop_after(folder: str | Path, tick: int) -> None:
    """Delete checkpoints later than ``tick``: a run resumed there writes them anew."""
    for stored, path in list_checkpoints(folder):
        if stored > tick:
            _delete(path)


def newest_checkpoint(folder: str | Path) -> LoadedCheckpoint:
    """Load the newest intact checkpoint; its ``skipped`` has a sentence on each damaged one that is newer.

    Raises StorageError when no intact one is left.
    """
    skipped: list[str] = []
    for tick, path in reversed(list_checkpoints(folder)):
        try:
            meta, arrays = load_checkpoint(path)
        except StorageError as error:
            skipped.append(str(error))
            continue
        return LoadedCheckpoint(tick, path, meta, arrays, tuple(skipped))
    reason = "; ".join(skipped) or "the folder has no file named checkpoint-<tick>.npz"
    raise StorageError(f"{folder} has no checkpoint to resume from: {reason}")


def _header(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The description of a checkpoint as JSON; StorageError for names and data that no file can hold."""
    for name, array in arrays.items():
        if not _ARRAY_NAME.fullmatch(name):
            raise StorageError(f"array name {name!r} cannot be stored: use words, dots, dashes and slashes")
        # Columns of a world on many ranks have a dtype, and are gathered only when they are written.
        dtype = array.dtype if hasattr(array, "dtype") else np.asarray(array).dtype
        if dtype.kind not in _KINDS:
            raise StorageError(f"array {name!r} has dtype {dtype}: only numbers and text can be stored")
    try:
        described = {"format": "ecs_fluid checkpoint", "meta": dict(meta), "arrays": list(arrays)}
        return json.dumps(described, ensure_ascii=True).encode()
    except (TypeError, ValueError) as error:
        raise StorageError(f"checkpoint meta data must be plain JSON values: {error}") from error


def _check_length(described: int, path: Path) -> None:
    """Raise LimitError for a description of too many bytes."""
    check_limit("text", described, f"the description in checkpoint {path} has {described:,} bytes")


def _digest(handle: BinaryIO, end: int) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    handle.seek(0)
    while end > 0:
        block = handle.read(min(end, 1 << 20))
        if not block:
            break
        digest.update(block)
        end -= len(block)
    return digest.hexdigest().encode()


def _check_seal(handle: BinaryIO, path: Path) -> None:
    """Raise StorageError for a file without a seal, with one that does not fit, or of another version."""
    size = handle.seek(0, io.SEEK_END)
    handle.seek(max(size - _SEAL_LENGTH, 0))
    seal = _SEAL.fullmatch(handle.read())
    if not seal:
        raise StorageError(
            f"{path} is not an intact ecs_fluid checkpoint: the seal at its end is missing, so it is "
            "damaged, cut short or another kind of file"
        )
    if _digest(handle, size - 64) != seal[2]:
        raise StorageError(
            f"checkpoint {path} is damaged: its content does not match its seal; use an older checkpoint"
        )
    if int(seal[1]) != VERSION:
        raise StorageError(
            f"checkpoint {path} has format version {int(seal[1])}, but this ecs_fluid reads only version "
            f"{VERSION}; resume it with the ecs_fluid that wrote it"
        )


def _read(handle: BinaryIO, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    # A seal proves nothing about who made the file, so sizes are still checked before memory is taken.
    try:
        with zipfile.ZipFile(handle) as archive:
            size = handle.seek(0, io.SEEK_END)
            entries = archive.infolist()
            packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
            if packed or sum(entry.file_size for entry in entries) > size:
                raise ValueError("it holds compressed or overlapping data")
            described = archive.getinfo(_HEADER).file_size
            _check_length(described, path)
            header = json.loads(archive.read(_HEADER))
            names = [str(name) for name in header["arrays"]]
            # One member for the header and one for each array: nothing twice, nothing that is not named.
            if sorted(entry.filename for entry in entries) != sorted([_HEADER, *(n + ".npy" for n in names)]):
                raise ValueError("its list of arrays does not fit what it holds")
            if len(set(names)) < len(names) or not all(map(_ARRAY_NAME.fullmatch, names)):
                raise ValueError("its arrays have impossible names")
            arrays = {name: read_array(archive, archive.getinfo(name + ".npy"), _KINDS) for name in names}
            return dict(header["meta"]), arrays
    except NPZ_DAMAGE as error:
        raise StorageError(f"checkpoint {path} cannot be understood: {error}") from error


def _delete(path: Path) -> None:
    try:
        when_free(lambda: path.unlink(missing_ok=True))
    except OSError as error:
        raise storage_error(error, "delete old checkpoint", path) from error
