"""Data files that recipes read: where they may lie, and what a readable one is."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError

_folder: ContextVar[Path | None] = ContextVar("folder of the world file", default=None)
_outside: ContextVar[bool] = ContextVar("files outside are allowed", default=False)


@contextmanager
def files_from(folder: Path | str, outside: bool = False) -> Iterator[None]:
    """While this holds, recipes read files relative to `folder` and, unless `outside`, only below it."""
    first, second = _folder.set(Path(folder).resolve()), _outside.set(outside)
    try:
        yield
    finally:
        _folder.reset(first)
        _outside.reset(second)


def data_file(file: str) -> Path:
    """The path of a recipe's data file.

    Outside of `files_from` (recipes made in Python) the path is taken as it is.

    Raises:
        RecipeError: the file does not exist, or lies outside the world file's folder.
    """
    folder = _folder.get()
    try:
        path = Path(file) if folder is None else (folder / file).resolve()
        if folder is not None and not _outside.get() and not path.is_relative_to(folder):
            raise RecipeError(
                f"file = {file!r} lies outside the folder of the world file ({folder}); "
                "only files in that folder and below are allowed"
            )
        found = path.is_file()
    except (OSError, ValueError, RuntimeError):
        raise RecipeError(f"file = {file!r} is not a path") from None
    if not found:
        raise RecipeError(f"file = {file!r} does not exist ({path})")
    return path


def read_npz(path: Path) -> dict[str, Array]:
    """Arrays of a NumPy archive; pickled objects are refused.

    Raises:
        RecipeError: it is no archive, is damaged, or holds something else than arrays of numbers.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise RecipeError(f"{path} holds one bare array; an .npz archive is needed")
            arrays = {key: np.asarray(archive[key]) for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise RecipeError(f"{path} is not a readable .npz archive: {reason}") from None
    for key, array in arrays.items():
        if array.dtype.kind not in "iuf":
            raise RecipeError(f"{path}: {key!r} has dtype {array.dtype}; numbers are needed")
    return {key: array.astype(np.float64) for key, array in arrays.items()}


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
