"""The folder that an export writes: whole or not at all, and never over something that is no export."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.frames import Frames
from ecs_fluid.io.disk import make_folder, storage_error, temporary_name, when_free
from ecs_fluid.io.lock import alive

MANIFEST = "export.json"
FORMAT = "ecs_fluid export"


def default_folder(run: Path, to: str) -> Path:
    """Where exports of a run go by default. Raises StorageError for a link, which may lead elsewhere."""
    folder = run / "exports"
    for path in (folder, folder / to):
        if path.is_symlink():
            raise StorageError(
                f"{path} is a symbolic link; by default exports are written in the folder of their run only, "
                "so choose another folder"
            )
    return folder / to


@contextmanager
def new_folder(target: Path, replace: bool) -> Iterator[Path]:
    """A folder beside ``target`` that takes its place if the block succeeds, and is removed if it fails."""
    if target.is_file():
        raise StorageError(f"cannot export to {target}: it is a file; a folder is needed")
    if target.is_symlink():
        raise StorageError(f"cannot export to {target}: it is a symbolic link; a folder is needed")
    _refuse_former(target, replace)
    target = target.absolute()  # so that the working folder has a name too
    make_folder(target.parent)
    # Two exports at once must not share a folder; what a killed one left is removed once its process is gone.
    partial = Path(f"{temporary_name(target)}{os.getpid()}")
    try:
        for left in target.parent.glob(f"{escape(temporary_name(target).name)}*"):
            number = left.name.rpartition("tmp")[2]
            if left == partial or not alive(int(number) if number.isdecimal() else None):
                shutil.rmtree(left)
        partial.mkdir()
        try:
            yield partial
            _refuse_former(target, replace)  # another process may have been faster
            if target.is_dir():
                shutil.rmtree(target)
            when_free(lambda: partial.rename(target))
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as error:
        raise storage_error(error, "write export", target) from error


def _refuse_former(target: Path, replace: bool) -> None:
    former = target.is_dir() and any(target.iterdir())
    if former and not replace:
        raise StorageError(
            f"{target} already exists; replace it (--replace, in Python replace=True) or choose another "
            "folder"
        )
    if former and not _is_export(target):
        raise StorageError(
            f"{target} is not an export of ecs_fluid, so it is not replaced; choose another folder"
        )


def _is_export(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_manifest(folder: Path, to: str, frames: Frames, more: dict[str, Any]) -> None:
    """Say in ``export.json`` what the files mean: units, up axis, frame rate, times, columns.

    ``more`` is what the format's module says of its files, in place of these or beside them.
    """
    document = {
        "format": FORMAT,
        "version": 1,
        "to": to,
        "run": frames.name,
        "length_unit": "m",
        "time_unit": "s",
        "up_axis": frames.up,
        "frames_per_second": frames.rate,
        "frames": [
            {"number": number, "tick": int(tick), "time": float(time), "time_code": float(code), "file": file}
            for number, tick, time, code, file in zip(
                frames.numbers, frames.ticks, frames.times, frames.codes, frames.files, strict=True
            )
        ],
        "populations": {name: frames.told(name) for name in (*frames.particles, *frames.bodies)},
        "surface": frames.surface,
        **more,
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def frame_file(name: str, number: int, ending: str) -> str:
    """``name.00012.vtp``: files with five digits sort and play in every program that reads sequences."""
    return f"{name}.{number:05d}.{ending}"
