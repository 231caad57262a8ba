"""Data files that recipes read: where they may lie, and which are accepted."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import NPZ_DAMAGE, RecipeError
from ecs_fluid.input_limits import VORTON
from ecs_fluid.npz import read_array

_folder: ContextVar[Path | None] = ContextVar("folder of the world file", default=None)

MOST_BYTES = 8 * 2**30
"""Largest size of a world's data file, bytes, packed and unpacked; 50 million vortons need 4 GB."""

MOST_ARRAYS = 1000
"""Most arrays in an archive."""


@contextmanager
def files_from(folder: Path | str) -> Iterator[None]:
    """In this context recipes read files relative to `folder`, and only below it."""
    token = _folder.set(Path(folder).resolve())
    try:
        yield
    finally:
        _folder.reset(token)


def data_file(file: str) -> Path:
    """The path of a recipe's data file.

    Outside `files_from` (for recipes made in Python) the path is taken as it is. Links are followed first, so
    a link that leads out of the folder counts as a file outside.

    Raises:
        RecipeError: the file does not exist, is a folder, a device or a pipe, is larger than `MOST_BYTES`,
            or lies outside the world file's folder.
    """
    folder = _folder.get()
    try:
        path = Path(file) if folder is None else (folder / file).resolve()
        if folder is not None and not path.is_relative_to(folder):
            raise RecipeError(
                f"file = {file!r} lies outside the folder of the world file ({folder}); "
                "only files in that folder and below are allowed"
            )
        # Check the type without opening it: opening a pipe would wait until somebody writes to it.
        found = path.stat()
    except FileNotFoundError:
        raise RecipeError(f"file = {file!r} does not exist ({path})") from None
    except (OSError, ValueError, RuntimeError):
        raise RecipeError(f"file = {file!r} is not a path") from None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
        raise RecipeError(f"file = {file!r} is {what}; an ordinary file is needed")
    if found.st_size > MOST_BYTES:
        raise RecipeError(f"file = {file!r} has {found.st_size:,} bytes; at most {MOST_BYTES:,} are allowed")
    return path


UNREAD = np.empty(0)
"""Placeholder for columns that are not wanted: only their names are used."""


def read_npz(path: Path, wanted: Container[str], each: float = VORTON / 3) -> dict[str, Array]:
    """Arrays of a NumPy archive, `UNREAD` if not `wanted`; pickled objects are refused.

    Memory is checked with `each` bytes per number: three numbers are a vorton's strength.

    Raises:
        RecipeError: it is no archive, is damaged, too large, or holds something else than arrays of numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ARRAYS:
                raise RecipeError(f"{path} holds {len(entries):,} arrays; at most {MOST_ARRAYS} are allowed")
            if len({entry.filename for entry in entries}) < len(entries):
                raise ValueError("two of its arrays have one name")
            named = {entry.filename.removesuffix(".npy"): entry for entry in entries}
            return {
                name: read_array(archive, entry, "iuf", np.float64, each) if name in wanted else UNREAD
                for name, entry in named.items()
            }
    except (OSError, *NPZ_DAMAGE) as error:
        reason = str(error).split("\n")[0]
        raise RecipeError(f"{path} is not a readable .npz archive: {reason}") from None


def refuse_not_finite(path: Path, column: str, array: Array) -> None:
    """Raise RecipeError naming the first row of `array` that holds NaN or infinity."""
    if array.size == 0:
        return
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        row = int(bad[0])
        value = rows[row][~np.isfinite(rows[row])][0]
        raise RecipeError(f"{path}: {column!r} row {row} is {value}; finite numbers are needed")
