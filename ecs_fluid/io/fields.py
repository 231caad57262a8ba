"""Grid fields of a run: one small VTKHDF image per stored tick, and an index that ParaView plays in time.

A temporal VTKHDF ImageData has one extent, origin and spacing for all its steps, but our grids follow the
fluid. So every tick is a file of its own, renamed into place when complete, which makes it crash-safe by
itself::

    RUN/trajectory/fields/<name>-<tick>.vtkhdf
    RUN/trajectory/fields/<name>.vtkhdf.series     {"file-series-version": "1.0", "files": [...]}
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from ecs_fluid.errors import DAMAGE, StorageError
from ecs_fluid.io.disk import (
    COLUMN,
    NAME,
    check_name,
    damage_error,
    make_folder,
    replace_file,
    replace_text,
    storage_error,
)
from ecs_fluid.io.untrusted import check_file, not_a_link, read_bytes, refuse_linked
from ecs_fluid.io.vtkhdf import stored_member, stored_rows

_FILE = re.compile(rf"({NAME.pattern})-(\d{{1,18}})\.vtkhdf")
_END = "\n ]\n}"
"""How an index ends, behind its last entry"""
_MOST_LAST = 512
"""Bytes at the end of an index among which its last entry is"""


@dataclass(frozen=True)
class FieldFrame:
    """Point fields on one uniform grid at one tick; lengths in m, times in s.

    ``arrays[name]`` has the shape (nx+1, ny+1, nz+1), followed by the shape of one value.
    """

    tick: int
    time: float
    origin: np.ndarray
    spacing: np.ndarray
    arrays: dict[str, np.ndarray]


def append_field(
    folder: str | Path,
    name: str,
    tick: int,
    time: float,
    origin: np.ndarray,
    spacing: np.ndarray,
    arrays: Mapping[str, np.ndarray],
) -> Path:
    """Store fields of one tick as ``folder/<name>-<tick>.vtkhdf`` and list it in the series; return the path.

    ``origin`` (3,) and ``spacing`` (3,) are in m, ``time`` in s; arrays are point fields of shape
    (nx+1, ny+1, nz+1), (..., 3) or (..., 3, 3), float32 or float64, k fastest. The grid may differ from tick
    to tick. Raises StorageError; former ticks stay as they were.
    """
    folder = Path(folder)
    check_name(name, what="field")
    _check_grid(name, arrays)
    frame = FieldFrame(tick, time, np.asarray(origin, float), np.asarray(spacing, float), dict(arrays))
    make_folder(folder)
    refuse_linked(folder)
    path = folder / _file(name, tick)

    def write(handle: BinaryIO) -> None:
        # HDF5 builds the image in memory: a full disk then fails in our write, not inside HDF5.
        with h5py.File("field", "w", driver="core", backing_store=False) as file:
            _fill(file, frame)
            file.flush()
            handle.write(file.id.get_file_image())

    replace_file(path, write, "write field")
    if not _listed_last(folder, name, tick, time):
        _write_series(folder, name, field_ticks(folder, name))
    return path


def field_names(folder: str | Path) -> list[str]:
    """Names under which fields were stored, sorted."""
    return sorted({name for name, _ in _stored(Path(folder))})


def field_ticks(folder: str | Path, name: str) -> list[int]:
    """Ticks at which the field was stored, ascending."""
    return sorted(tick for stored, tick in _stored(Path(folder)) if stored == name)


def newest_tick(folder: str | Path, name: str, tick: int) -> int | None:
    """The last tick up to ``tick`` at which the field was stored; None if there is none."""
    if (Path(folder) / _file(name, tick)).exists():  # mostly; looking through the folder takes longer
        return tick
    return max((stored for stored in field_ticks(folder, name) if stored <= tick), default=None)


def missing_files(folder: str | Path, name: str) -> list[str]:
    """Files of the field that its index names and that are gone, or that index, where it is gone itself."""
    index = _index(Path(folder), name)
    if not index.exists():
        return [index.name]
    present = {_file(name, tick) for tick in field_ticks(folder, name)}
    return [file for file in _listed(index) if file not in present]


def _file(name: str, tick: int) -> str:
    """Name of the file of a field at a tick; `_FILE` finds both in it again."""
    return f"{name}-{tick:08d}.vtkhdf"


def _index(folder: Path, name: str) -> Path:
    """The index of the files of a field."""
    return folder / f"{name}.vtkhdf.series"


def _stored(folder: Path) -> list[tuple[str, int]]:
    """Name and tick of every file of a field."""
    matches = (_FILE.fullmatch(path.name) for path in folder.iterdir()) if folder.is_dir() else ()
    return [(match[1], int(match[2])) for match in matches if match]


def read_field(folder: str | Path, name: str, tick: int) -> FieldFrame:
    """Read what ``append_field`` stored at ``tick``, bit for bit. Raises StorageError."""
    path = Path(folder) / _file(check_name(name, what="field"), tick)
    check_file(path, "read field")
    try:
        with h5py.File(path, "r", locking=False) as file:
            vtk = stored_member(file, "VTKHDF", h5py.Group)
            x, y, z = (int(n) + 1 for n in vtk.attrs["WholeExtent"][1::2])
            arrays = {}
            for key in stored_member(vtk, "PointData", h5py.Group):
                where = f"PointData/{check_name(key, COLUMN, 'array')}"
                dataset = stored_member(vtk, where, h5py.Dataset)
                values = stored_rows(vtk, where, 0, len(dataset))
                if values.dtype.kind != "f":
                    raise ValueError(f"{key} does not hold floating-point numbers")
                tail = tuple(int(n) for n in dataset.attrs["row_shape"])
                # VTK runs through x fastest, so its first array axis is z.
                arrays[key] = np.ascontiguousarray(np.swapaxes(values.reshape(z, y, x, *tail), 0, 2))
            time = float(stored_member(file, "ecs_fluid", h5py.Group).attrs["time"])
            origin, spacing = (np.asarray(vtk.attrs[key], dtype=float) for key in ("Origin", "Spacing"))
            sound = origin.shape == spacing.shape == (3,) and np.isfinite([*origin, *spacing, time]).all()
            if not sound or (spacing <= 0).any():
                raise ValueError("its origin, spacing or time is not finite, or its spacing is not positive")
            return FieldFrame(tick, time, origin, spacing, arrays)
    except (OSError, *DAMAGE) as error:
        raise damage_error(error, "field file", path) from error


def drop_fields_after(folder: str | Path, name: str, tick: int) -> None:
    """Delete the field's files later than ``tick``: a run resumed there writes them anew."""
    folder = Path(folder)
    ticks = field_ticks(folder, name)
    remaining = [stored for stored in ticks if stored <= tick]
    # After a power failure the index may also lack files that are there.
    if remaining == ticks and list(_listed(_index(folder, name))) == [_file(name, one) for one in ticks]:
        return
    # The index goes first, so that all files in it exist even if this is interrupted.
    _write_series(folder, name, remaining)
    try:
        for stored in ticks[len(remaining) :]:
            (folder / _file(name, stored)).unlink()
    except OSError as error:
        raise storage_error(error, "delete later fields in", folder) from error


def _check_grid(name: str, arrays: Mapping[str, np.ndarray]) -> None:
    shapes = {array.shape[:3] for array in arrays.values()}
    if len(shapes) != 1 or min(map(len, shapes)) < 3:
        raise StorageError(f"the arrays of field {name!r} must share one grid of three axes, not {shapes}")
    for key, array in arrays.items():
        check_name(key, COLUMN, f"array of field {name!r}, its")
        if array.dtype.name not in ("float32", "float64") or array.size == 0:
            raise StorageError(
                f"array {key} of field {name!r} must be non-empty float32 or float64, not {array.dtype} of "
                f"shape {array.shape}"
            )


def _fill(file: h5py.File, frame: FieldFrame) -> None:
    points = next(iter(frame.arrays.values())).shape[:3]
    vtk = file.create_group("VTKHDF")
    vtk.attrs["Version"] = np.array([2, 0], dtype=np.int64)
    vtk.attrs.create("Type", np.bytes_("ImageData"))
    vtk.attrs["WholeExtent"] = np.array([[0, n - 1] for n in points], dtype=np.int64).ravel()
    vtk.attrs["Origin"], vtk.attrs["Spacing"] = frame.origin, frame.spacing
    vtk.attrs["Direction"] = np.eye(3).ravel()
    data = vtk.create_group("PointData")
    for key, array in frame.arrays.items():
        tail = array.shape[3:]
        width = (math.prod(tail),) if tail else ()
        flat = np.swapaxes(array, 0, 2).reshape(*points[::-1], *width)
        data.create_dataset(key, data=flat).attrs["row_shape"] = np.array(tail, dtype=np.int64)
    ours = file.create_group("ecs_fluid")
    ours.attrs["tick"], ours.attrs["time"] = np.int64(frame.tick), np.float64(frame.time)


def _write_series(folder: Path, name: str, ticks: list[int]) -> None:
    """Write the index of the files of `ticks`, with times from the former index or from new files."""
    path = _index(folder, name)
    known = _listed(path)
    files = []
    for tick in ticks:
        file = _file(name, tick)
        # The newest file may have been replaced since, with another time.
        fresh = tick == ticks[-1] or file not in known
        files.append({"name": file, "time": read_field(folder, name, tick).time if fresh else known[file]})
    replace_text(path, _series(files), "write field series")


def _listed_last(folder: Path, name: str, tick: int, time: float) -> bool:
    """Write the file of ``tick`` behind all others in the index; False if it cannot just be added there.

    Only the end of the index is written, so that the time it takes does not grow with the number of files.
    If that is cut off by a power failure, or altered by anyone, the index is written anew.
    """
    last_entry = rf'"{name}-(\d{{1,18}})\.vtkhdf",[^{{}}]*}}{re.escape(_END)}\Z'
    added = "," + _series([{"name": _file(name, tick), "time": time}]).partition("[")[2]
    try:
        with open(_index(folder, name), "r+b", buffering=0, opener=not_a_link) as handle:
            size = handle.seek(0, os.SEEK_END)
            handle.seek(max(size - _MOST_LAST, 0))
            last = re.search(last_entry.encode(), handle.read())
            if last is None or int(last[1]) >= tick:
                return False
            start = handle.seek(size - len(_END))
            if handle.write(added.encode()) < len(added):  # a full disk
                handle.seek(start)
                handle.write(_END.encode())
                handle.truncate(size)
                return False
    except OSError:
        return False
    return True


def _series(files: list[dict[str, Any]]) -> str:
    """The text of an index."""
    return json.dumps({"file-series-version": "1.0", "files": files}, indent=1)


def _listed(index: Path) -> dict[str, float]:
    """Times of the files that an index names; none where it is missing or damaged."""
    try:
        listed = json.loads(read_bytes(index, "read field series"))["files"]
        return {str(entry["name"]): entry["time"] for entry in listed}
    except (StorageError, ValueError, KeyError, TypeError, RecursionError):
        return {}
