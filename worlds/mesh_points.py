"""Points of mesh files in the formats STL, OBJ and PLY, read without any library of meshes.

Counts in their headers are held against what the file has before anything is allocated, and only points are
read, so nothing in these files can do harm. They keep single precision, as most programs do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from ecs_fluid.component import Array

MOST_POINTS = 10_000_000
"""Points that a mesh file may have; an STL has three for each triangle."""

_LINE = 4096  # bytes; a longer line is taken as several, so that memory does not grow with it
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_NUMBERS = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip


def stl_points(path: Path) -> Array:
    """Corners (n, 3) of a binary or text STL file, each once, m. Raises ValueError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(84)
        triangles = int.from_bytes(head[80:], "little") if len(head) == 84 else 0
        whole = size == 84 + _TRIANGLE.itemsize * triangles
        if head.lstrip().startswith(b"solid") and not whole:
            file.seek(0)
            x = _numbers((line for line in _lines(file) if line.startswith("vertex")), (1, 2, 3))
        else:
            if size < 84 + _TRIANGLE.itemsize * triangles or len(head) < 84:
                raise ValueError(
                    f"it has {size:,} bytes, too few for the {triangles:,} triangles it announces"
                )
            _refuse_more(3 * triangles)
            x = np.fromfile(file, _TRIANGLE, triangles)["corners"].reshape(-1, 3)
    _, first = np.unique(x, axis=0, return_index=True)
    return np.asarray(x[np.sort(first)])


def obj_points(path: Path) -> Array:
    """Vertices (n, 3) of a Wavefront OBJ file, m. Raises ValueError."""
    with path.open("rb") as file:
        return _numbers((line for line in _lines(file) if line[:2] in ("v ", "v\t")), (1, 2, 3))


def ply_points(path: Path) -> Array:
    """Vertices (n, 3) of a PLY file, text or binary, m. Raises ValueError."""
    with path.open("rb") as file:
        kind, elements = _ply_header(file)
        for name, count, properties in elements:
            _refuse_more(count)
            if any(form not in _NUMBERS for _, form in properties):
                raise ValueError(f"its element {name} has lists and stands before or in the vertices")
            if name == "vertex":
                return _ply_vertices(file, kind, count, properties)
            if kind == "ascii":
                for _ in islice(_lines(file), count):
                    pass
            else:
                file.seek(count * _row(properties, kind).itemsize, 1)
    raise ValueError("it has no vertices")


_Element = tuple[str, int, list[tuple[str, str]]]


def _ply_header(file: IO[bytes]) -> tuple[str, list[_Element]]:
    """(format, elements in their order) of a PLY file; a list property has the form "list"."""
    lines = _lines(file)
    if next(lines, "") != "ply":
        raise ValueError("it does not begin with the line ply")
    kind, elements = "", list[_Element]()
    for line in islice(lines, 1000):
        match line.split():
            case ["format", ("ascii" | "binary_little_endian" | "binary_big_endian") as kind, "1.0"]:
                pass
            case ["element", name, count] if count.isdecimal():
                elements.append((name, int(count[:20]), []))
            case ["property", "list", _, _, name] if elements:
                elements[-1][2].append((name, "list"))
            case ["property", form, name] if elements and form in _NUMBERS:
                elements[-1][2].append((name, form))
            case ["comment" | "obj_info", *_] | []:
                pass
            case ["end_header"] if kind:
                return kind, elements
            case _:
                break
    raise ValueError("its header cannot be understood")


def _ply_vertices(file: IO[bytes], kind: str, count: int, properties: list[tuple[str, str]]) -> Array:
    names = [name for name, _ in properties]
    if not {"x", "y", "z"} <= set(names) or len(set(names)) < len(names):
        raise ValueError("its vertices need one x, y and z each")
    if kind == "ascii":
        columns = (names.index("x"), names.index("y"), names.index("z"))
        x = _numbers(islice(_lines(file), count), columns)
    else:
        row = _row(properties, kind)
        data = file.read(count * row.itemsize)  # a file ends where it ends, whatever the header says
        table = np.frombuffer(data[: len(data) // row.itemsize * row.itemsize], row)
        x = np.stack([table[axis].astype(np.float32) for axis in "xyz"], axis=1)
    if len(x) < count:
        raise ValueError(f"it has {len(x):,} of the {count:,} vertices it announces")
    return x


def _row(properties: list[tuple[str, str]], kind: str) -> np.dtype:
    order = ">" if kind == "binary_big_endian" else "<"
    names = [name if name in ("x", "y", "z") else f"property {k}" for k, (name, _) in enumerate(properties)]
    forms = [order + _NUMBERS[form] for _, form in properties]
    return np.dtype(list(zip(names, forms, strict=True)))


def _lines(file: IO[bytes]) -> Iterator[str]:
    """Lines from where the file stands, without blanks around them."""
    while line := file.readline(_LINE):
        yield line.decode("latin-1").strip()


def _numbers(lines: Iterable[str], columns: tuple[int, int, int]) -> Array:
    """Those columns (n, 3) of lines of words; ValueError names the first line that has no number there."""
    rows = islice(lines, MOST_POINTS + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of no lines at all: the caller says it better
        x = np.loadtxt(rows, dtype=np.float32, comments=None, usecols=columns, ndmin=2)
    _refuse_more(len(x))
    return x


def _refuse_more(points: int) -> None:
    if points > MOST_POINTS:
        raise ValueError(f"it announces {points:,} points; at most {MOST_POINTS:,} are allowed")


POINTS_OF = {".stl": stl_points, ".obj": obj_points, ".ply": ply_points}
"""The reader of each ending."""
