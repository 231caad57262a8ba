"""One population's frames in one HDF5 file that VTK and ParaView read as a temporal PolyData (VTKHDF 2.0).

Layout, beside what the VTKHDF specification asks for:

* a frame is one part; its points are consecutive rows of ``VTKHDF/Points`` and of every dataset in
  ``VTKHDF/PointData``; matrices are stored flattened, because VTK knows rows only;
* every point is its own vertex cell, so all frames share one ``0, 1, 2, ...`` as connectivity and offsets;
* index datasets that hold the same numbers are one dataset under several names (hard links), and those that
  hold a constant are never written, only resized: their fill value is the constant;
* the group ``ecs_fluid`` (outside VTK's part) holds the ticks and the columns' dtypes and shapes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.input_limits import check_bytes
from ecs_fluid.io.disk import COLUMN, check_name

POINTS = "Position.x"
FORMAT = "ecs_fluid trajectory"
VERSION = 1

_INDEX_CHUNK = 128  # rows; the last, partial chunk is rewritten with every frame, so it is kept small
_DTYPES = {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


@dataclass(frozen=True)
class Column:
    """Type of a column of a population: name of the dtype, and shape of a row."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Index:
    """Where the frames of a file are: tick, time [s], first row and number of rows of each."""

    columns: dict[str, Column]
    first_frame: int
    ticks: np.ndarray
    times: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


def describe(population: str, data: Mapping[str, np.ndarray]) -> tuple[int, dict[str, Column]]:
    """Check one population of a frame; return its row count and its columns.

    Raises StorageError naming population and column: no positions, a name or dtype no file can hold, rows
    that do not match.
    """
    check_name(population)
    if POINTS not in data:
        raise StorageError(f"population {population!r} has no {POINTS}, which every stored frame needs")
    arrays = {
        name: values if hasattr(values, "dtype") else np.asarray(values) for name, values in data.items()
    }
    rows, columns = arrays[POINTS].shape[0] if arrays[POINTS].ndim else 1, {}
    for name, array in arrays.items():
        check_name(name, COLUMN, f"column of population {population!r}, its")
        if array.ndim == 0 or array.shape[0] != rows or 0 in array.shape[1:]:
            raise StorageError(
                f"column {name} of population {population!r} has shape {array.shape}, but needs {rows} rows "
                f"like {POINTS}"
            )
        if array.dtype.name not in _DTYPES:
            raise StorageError(
                f"column {name} of population {population!r} has dtype {array.dtype}; allowed are "
                f"{', '.join(sorted(_DTYPES))}"
            )
        columns[name] = Column(array.dtype.name, tuple(array.shape[1:]))
    if columns[POINTS].shape != (3,) or not columns[POINTS].dtype.startswith("float"):
        raise StorageError(
            f"{POINTS} of population {population!r} must be (n, 3) floats, "
            f"not {columns[POINTS].dtype} rows of shape {columns[POINTS].shape}"
        )
    return rows, columns


def create(
    file: h5py.File, columns: Mapping[str, Column], rows: int, ticks: np.ndarray, times: np.ndarray
) -> None:
    """Fill a new file with an empty frame for each of ``ticks``; ``rows`` is a guess of rows per frame."""
    frames = len(ticks)
    vtk = file.create_group("VTKHDF")
    vtk.attrs["Version"] = np.array([2, 0], dtype=np.int64)
    vtk.attrs.create("Type", np.bytes_("PolyData"))
    vtk.create_group("PointData")
    for name, column in columns.items():
        width = (column.width,) if column.shape else ()
        _dataset(file, dataset_path(name), width, column.dtype, _chunk(rows))
    steps = vtk.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(frames)
    _dataset(steps, "Values", (), "float64", _INDEX_CHUNK, times)
    _create_index(vtk, steps, frames, [name for name in columns if name != POINTS])
    ours = file.create_group("ecs_fluid")
    described = {name: [column.dtype, list(column.shape)] for name, column in columns.items()}
    ours.attrs["format"] = FORMAT
    ours.attrs["version"] = np.int64(VERSION)
    ours.attrs["columns"] = json.dumps(described)
    ours.attrs["first_frame"] = np.int64(frames)
    _dataset(ours, "ticks", (), "int64", _INDEX_CHUNK, ticks)


def _create_index(vtk: h5py.Group, steps: h5py.Group, frames: int, names: list[str]) -> None:
    """Create the datasets by which VTK finds a frame, for `frames` empty frames; `names` of other columns."""
    zeros = np.zeros(frames, dtype=np.int64)
    counts = _dataset(vtk, "NumberOfPoints", (), "int64", _INDEX_CHUNK, zeros)
    starts = _dataset(steps, "PointOffsets", (), "int64", _INDEX_CHUNK, zeros)
    none = _dataset(vtk, "Lines/NumberOfCells", (), "int64", _INDEX_CHUNK)
    nowhere = _dataset(steps, "CellOffsets", (4,), "int64", _INDEX_CHUNK)
    ones = _dataset(steps, "NumberOfParts", (), "int64", _INDEX_CHUNK, fill=1)
    for constant in (none, nowhere, ones):
        constant.resize(frames, axis=0)
    _dataset(steps, "PartOffsets", (), "int64", _INDEX_CHUNK, np.arange(frames, dtype=np.int64))
    steps["ConnectivityIdOffsets"] = nowhere
    steps.create_group("PointDataOffsets")
    for name in names:
        steps[f"PointDataOffsets/{name}"] = starts
    vtk["Vertices/NumberOfCells"] = counts
    vtk["Vertices/NumberOfConnectivityIds"] = counts
    _dataset(vtk, "Vertices/Connectivity", (), "int64", 1024)
    _dataset(vtk, "Vertices/Offsets", (), "int64", 1024, np.zeros(1, dtype=np.int64))
    for kind in ("Lines", "Polygons", "Strips"):  # VTK 9.7 insists on all four kinds of cells
        if kind != "Lines":
            vtk[f"{kind}/NumberOfCells"] = none
        vtk[f"{kind}/NumberOfConnectivityIds"] = none
        vtk.create_dataset(f"{kind}/Connectivity", shape=(0,), dtype="int64")
        vtk.create_dataset(f"{kind}/Offsets", data=np.zeros(1, dtype=np.int64))


def _dataset(
    group: h5py.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    chunk: int,
    data: np.ndarray | None = None,
    fill: int = 0,
) -> Any:
    rows = 0 if data is None else len(data)
    made = group.create_dataset(
        name, (rows, *shape), dtype, maxshape=(None, *shape), chunks=(chunk, *shape), fillvalue=fill
    )
    if rows:
        made[:] = data
    return made


def _chunk(rows: int) -> int:
    """Rows per chunk: about a quarter of a frame, so that rewriting the last one costs little."""
    return 1 << min(max(rows // 4, 1024).bit_length() - 1, 14)


_STEPS = ("PointOffsets", "PartOffsets", "Values", "CellOffsets", "NumberOfParts")
_PER_FRAME = (
    "ecs_fluid/ticks",
    "VTKHDF/NumberOfPoints",
    "VTKHDF/Lines/NumberOfCells",
    *(f"VTKHDF/Steps/{name}" for name in _STEPS),
)


def dataset_path(column: str) -> str:
    """Path of a column's dataset in the file."""
    return "VTKHDF/Points" if column == POINTS else f"VTKHDF/PointData/{column}"


def _lengths(index: Index, frames: int) -> dict[str, int]:
    """Rows of all datasets that grow, where the file holds its first `frames` frames."""
    counts = index.counts[:frames]
    most = int(counts.max(initial=0))
    lengths = dict.fromkeys(_PER_FRAME, frames)
    lengths |= {"VTKHDF/Vertices/Connectivity": most, "VTKHDF/Vertices/Offsets": most + 1}
    return lengths | dict.fromkeys(map(dataset_path, index.columns), int(counts.sum()))


def check_extents(file: h5py.File, index: Index) -> None:
    """Raise ValueError unless all that appending and cutting change is stored here and as long as it must be.

    HDF5 visits every chunk when it shortens a dataset, so one that claims a million million rows stops it.
    """
    for name, column in index.columns.items():
        dataset = stored_member(file, dataset_path(name), h5py.Dataset)
        if dataset.dtype.name != column.dtype or math.prod(dataset.shape[1:]) != column.width:
            raise ValueError(f"column {name} does not have the type its description says")
    for name, length in _lengths(index, len(index.ticks)).items():
        dataset = stored_member(file, name, h5py.Dataset)
        if dataset.ndim < 1 or len(dataset) != length or dataset.maxshape[0] is not None:
            raise ValueError(f"{name} has shape {dataset.shape} where {length} rows are needed")


class FrameAppender:
    """Adds frames to an open file; keeps the handles, because looking them up costs more than writing."""

    def __init__(self, file: h5py.File, index: Index) -> None:
        self._frames = len(index.ticks)
        lengths = _lengths(index, self._frames)
        self._rows, self._vertices = lengths["VTKHDF/Points"], lengths["VTKHDF/Vertices/Connectivity"]
        self._handles = {name: file[name].id for name in lengths}
        self._counter = h5py.h5a.open(file["VTKHDF/Steps"].id, b"NSteps")

    def append(self, tick: int, time: float, rows: int, data: Mapping[str, np.ndarray]) -> None:
        """Add a frame; ``data`` may be empty if it has no rows. The frame counter is set last."""
        handles, frame, known = self._handles, self._frames, self._vertices
        if rows:
            for name, values in data.items():
                column = handles[dataset_path(name)]
                flat = np.ascontiguousarray(values).reshape(rows, *column.shape[1:])
                _extend(column, self._rows, flat)
        numbers = {
            "VTKHDF/NumberOfPoints": rows,
            "VTKHDF/Steps/PointOffsets": self._rows,
            "VTKHDF/Steps/PartOffsets": frame,
            "VTKHDF/Steps/Values": float(time),
            "ecs_fluid/ticks": tick,
        }
        for name in _PER_FRAME:
            if name in numbers:
                _extend(handles[name], frame, np.array([numbers[name]]))
            else:  # a constant, which is the fill value
                handles[name].set_extent((frame + 1, *handles[name].shape[1:]))
        if rows > known:
            _extend(handles["VTKHDF/Vertices/Connectivity"], known, np.arange(known, rows))
            _extend(handles["VTKHDF/Vertices/Offsets"], known + 1, np.arange(known + 1, rows + 1))
            self._vertices = rows
        self._rows += rows
        self._frames += 1
        self._counter.write(np.array(self._frames, dtype=np.int64))

    def release(self) -> None:
        """Close the handles; no frame can be added any more."""
        self._handles.clear()
        del self._counter


def _extend(dataset: Any, start: int, values: np.ndarray) -> None:
    """Write ``values`` behind the first ``start`` rows of a dataset, by its low-level handle."""
    dataset.set_extent((start + len(values), *values.shape[1:]))
    selection = dataset.get_space()
    selection.select_hyperslab((start,) + (0,) * (values.ndim - 1), values.shape)
    dataset.write(h5py.h5s.create_simple(values.shape), selection, values)


def cut(file: h5py.File, index: Index, frames: int) -> None:
    """Keep the first ``frames`` frames."""
    file["VTKHDF/Steps"].attrs.modify("NSteps", np.int64(frames))
    for name, length in _lengths(index, frames).items():
        file[name].resize(length, axis=0)


def read_index(file: h5py.File) -> Index:
    """Read and check where the frames are; raises ValueError in words if the numbers do not fit."""
    ours = stored_member(file, "ecs_fluid", h5py.Group)
    found, version = ours.attrs.get("format"), int(ours.attrs.get("version", -1))
    if found != FORMAT or version != VERSION:
        raise ValueError(
            f"it is {found!r} version {version}, but this ecs_fluid reads {FORMAT!r} version {VERSION}"
        )
    columns = {
        check_name(name, COLUMN, "column"): Column(_known_dtype(dtype), tuple(int(n) for n in shape))
        for name, (dtype, shape) in json.loads(ours.attrs["columns"]).items()
    }
    frames = int(stored_member(file, "VTKHDF/Steps", h5py.Group).attrs["NSteps"])
    numbers = ("ecs_fluid/ticks", "VTKHDF/Steps/Values", "VTKHDF/Steps/PointOffsets", "VTKHDF/NumberOfPoints")
    ticks, times, starts, counts = (stored_rows(file, name, 0, frames) for name in numbers)
    if POINTS not in columns or (counts < 0).any() or (starts != np.cumsum(counts) - counts).any():
        raise ValueError("its frame index contradicts itself")
    if columns[POINTS].shape != (3,) or any(min(one.shape, default=1) < 1 for one in columns.values()):
        raise ValueError("its columns have impossible shapes")
    kinds = [array.dtype.kind for array in (ticks, times, starts, counts)]
    if kinds != ["i", "f", "i", "i"] or any(array.ndim != 1 for array in (ticks, times, starts, counts)):
        raise ValueError("its frame index does not hold numbers of the right kind")
    if (np.diff(ticks) <= 0).any() or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise ValueError("its ticks and times do not increase")
    return Index(columns, int(ours.attrs["first_frame"]), ticks, times, starts, counts)


def read_frame(
    file: h5py.File, index: Index, frame: int, names: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """Columns of one frame, all or those named, with the dtypes and shapes they were written with."""
    start, rows = int(index.starts[frame]), int(index.counts[frame])
    columns = {}
    for name in index.columns if names is None else names:
        column = index.columns[name]
        values = stored_rows(file, dataset_path(name), start, rows)
        if values.dtype.name != column.dtype or values.size != rows * column.width:
            raise ValueError(f"column {name} does not have the type its description says")
        columns[name] = values.reshape(rows, *column.shape)
    return columns


def stored_rows(file: h5py.Group, name: str, start: int, rows: int) -> np.ndarray:
    """Rows of a dataset of numbers. Raises ValueError where they are not stored, LimitError for too many."""
    dataset = stored_member(file, name, h5py.Dataset)
    if rows < 0 or start < 0 or start + rows > len(dataset):
        raise ValueError(f"{name} has {len(dataset)} rows where {start + rows} are needed")
    if dataset.dtype.kind not in "iuf":
        raise ValueError(f"{name} does not hold numbers")
    # The data is stored as is, so a file that claims more rows than it has bytes is wrong (or hostile).
    size = rows * dataset.dtype.itemsize * math.prod(dataset.shape[1:])
    if size > dataset.id.get_storage_size():
        raise ValueError(f"{name} claims more rows than the file holds")
    check_bytes(size, f"{os.fsdecode(h5py.h5f.get_name(file.id))}: {rows:,} rows of {name} take")
    return np.asarray(dataset[start : start + rows])


def stored_member(file: h5py.Group, name: str, kind: type) -> Any:
    """A group or dataset stored in this very file. Raises ValueError for links that lead out of it."""
    path = b""
    for part in name.encode().split(b"/"):  # one by one, so that no link on the way is followed
        path = path + b"/" + part if path else part
        if not file.id.links.exists(path) or file.id.links.get_info(path).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{name} is missing")
    member: Any = file[name]
    if not isinstance(member, kind):
        raise ValueError(f"{name} is not stored in this file")
    if isinstance(member, h5py.Dataset):
        layout = member.id.get_create_plist()
        if layout.get_external_count() or layout.get_layout() == h5py.h5d.VIRTUAL:
            raise ValueError(f"{name} is not stored in this file")
        # A packed chunk is unpacked whole, whatever of it is wanted; ours are not packed.
        if layout.get_nfilters():
            raise ValueError(f"{name} is packed")
    return member


def _known_dtype(name: Any) -> str:
    if name not in _DTYPES:
        raise ValueError(f"it has a column of type {name!r}")
    return str(name)
