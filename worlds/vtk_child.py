"""Program that reads a mesh file in a process of its own.

    python vtk_child.py FILE OUT BYTES SECONDS MOST_POINTS [NAME OF POINT DATA ...]

A file can make VTK take all memory, or crash the process, and no exception handler can catch either. So this
process first limits its own resources. It imports nothing of ecs_fluid, and writes an archive of numbers.
"""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from contextlib import suppress
from typing import Any, Literal


def limit(bytes_: int, seconds: int) -> None:
    """Let the operating system end this process when it takes more, where it can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    asked = {resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: bytes_, resource.RLIMIT_CPU: seconds}
    for kind, most in asked.items():
        # The inherited limit may be lower, and cannot be raised.
        hard = resource.getrlimit(kind)[1]
        given = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):  # macOS refuses a limit of addresses
            resource.setrlimit(kind, (given, given))


READERS = {
    "stl": ("vtkIOGeometry", "vtkSTLReader"),
    "obj": ("vtkIOGeometry", "vtkOBJReader"),
    "ply": ("vtkIOPLY", "vtkPLYReader"),
    "vtk": ("vtkIOLegacy", "vtkDataSetReader"),
    "vtp": ("vtkIOXML", "vtkXMLPolyDataReader"),
    "vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"),
}
"""Module and class that read a file, by its ending."""


def dataset(path: str) -> Any:
    """The data that VTK reads from the file; VTK reports problems on standard error."""
    module, name = READERS[path.lower().rpartition(".")[2]]
    reader = getattr(importlib.import_module(f"vtkmodules.{module}"), name)()
    reader.SetFileName(path)
    if path.lower().endswith(".vtk"):
        reader.ReadAllScalarsOn()
        reader.ReadAllVectorsOn()
        reader.ReadAllFieldsOn()
    reader.Update()
    return None if reader.GetErrorCode() else reader.GetOutput()


SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "int32", "uint32", "float", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}
"""Bytes of the types of numbers in a .ply."""


def is_cut_short(path: str) -> bool:
    """Whether a .ply, .stl or .obj holds less than it says; VTK reads that, or memory it has not written.

    Of .obj files only our own exports say how much they hold, in a comment.
    """
    ending = path.lower().rpartition(".")[2]
    if ending not in ("ply", "stl", "obj"):
        return False
    with open(path, "rb") as file:
        content = file.read()
    if ending == "ply":
        return _is_ply_cut_short(content)
    if ending == "obj":
        said = re.search(rb"^# (\d+) vertices, (\d+) faces\r?$", content[:1000], re.MULTILINE)
        held = [len(re.findall(rb"^%b .*\n" % kind, content, re.MULTILINE)) for kind in (b"v", b"f")]
        return said is not None and any(n < int(most) for n, most in zip(held, said.groups(), strict=True))
    start = content[:100_000].lstrip().lower()
    if start.startswith(b"solid") and b"facet" in start:
        return b"endsolid" not in content[-100_000:].lower()
    return len(content) < 84 + 50 * int.from_bytes(content[80:84], "little")


def _is_ply_cut_short(content: bytes) -> bool:
    head, end, body = content.partition(b"end_header")
    if not end:
        return True
    lines = [line.decode("latin-1").split() for line in head.splitlines()]
    text = ["format", "ascii", "1.0"] in lines
    order: Literal["big", "little"] = "big" if ["format", "binary_big_endian", "1.0"] in lines else "little"
    # What one number takes, as words of a text or in bytes.
    numbers: Any = body.split() if text else body.partition(b"\n")[2]
    at = 0
    for number, line in enumerate(lines):
        if line[:1] != ["element"]:
            continue
        rows = int(line[2])
        after = itertools.takewhile(lambda words: words[:1] != ["element"], lines[number + 1 :])
        kinds = [
            [1 if text else SIZES[word] for word in words[1:-1] if word != "list"]
            for words in after
            if words[:1] == ["property"]
        ]
        if all(len(sizes) == 1 for sizes in kinds):
            at += rows * sum(size for (size,) in kinds)
            continue
        for _ in range(rows):
            for size, *each in kinds:
                if each:
                    count = numbers[at : at + size]
                    at += each[0] * (int(count[0]) if text else int.from_bytes(count, order)) if count else 0
                at += size
            if not 0 <= at <= len(numbers):
                return True
    return at > len(numbers)


def triangles_of(data: Any) -> Any:
    """Corners (m, 3, 3), m, of the triangles of the data's faces (m may be 0), face by face, strips last.

    None if a corner is not a point of the file.
    """
    import numpy as np
    from vtkmodules.util.numpy_support import vtk_to_numpy

    if data.IsA("vtkUnstructuredGrid"):
        from vtkmodules.vtkFiltersGeometry import vtkGeometryFilter

        outside = vtkGeometryFilter()  # the outer faces of volume cells
        outside.SetInputData(data)
        outside.Update()
        data = outside.GetOutput()
    if not data.IsA("vtkPolyData"):
        return np.empty((0, 3, 3))
    parts = [np.empty((0, 3, 3))]
    for faces, strips in ((data.GetPolys(), False), (data.GetStrips(), True)):
        if not faces.GetNumberOfCells():
            continue
        corners = vtk_to_numpy(faces.GetConnectivityArray())
        first = vtk_to_numpy(faces.GetOffsetsArray())
        x = vtk_to_numpy(data.GetPoints().GetData()).astype(np.float64)
        if not ((corners >= 0) & (corners < len(x))).all():
            return None
        sides, first, cut, faces_of = np.diff(first), first[:-1], [], []
        for k in range(1, int(sides.max()) - 1):
            of = first[sides > k + 1]
            # Faces are fans of triangles; in strips every other triangle has the opposite orientation.
            numbers = (of + k - k % 2, of + k - 1 + k % 2, of + k + 1) if strips else (of, of + k, of + k + 1)
            cut.append(x[np.stack([corners[of] for of in numbers], axis=1)])
            faces_of.append(of)
        if cut:
            parts.append(np.concatenate(cut)[np.argsort(np.concatenate(faces_of), kind="stable")])
    return np.concatenate(parts)


def main(path: str, out: str, bytes_: int, seconds: int, most: int, wanted: list[str]) -> str:
    """Read the file; write points, triangles of faces, the wanted point data, and the names of other data.

    Returns an error message, or "".
    """
    limit(bytes_, seconds)
    import numpy as np
    from vtkmodules.util.numpy_support import vtk_to_numpy

    if is_cut_short(path):
        return "it is cut short"
    data = dataset(path)
    if data is None:
        return "it is damaged"
    points: Any = data.GetPoints() if hasattr(data, "GetPoints") else None
    rows = points.GetNumberOfPoints() if points else 0
    if not 0 < rows <= most:
        return f"it holds {rows:,} points; at most {most:,} are allowed" if rows else "it holds no points"
    if (triangles := triangles_of(data)) is None:
        return "it has a face with a corner that is no point of it"
    arrays = {"points": vtk_to_numpy(points.GetData()), "triangles": triangles}
    table = data.GetPointData()
    for number in range(table.GetNumberOfArrays()):
        array = table.GetArray(number)  # None if it does not hold numbers
        name = table.GetArrayName(number)
        if array is not None and name and array.GetNumberOfTuples() == rows:
            arrays["data " + name] = vtk_to_numpy(array) if name in wanted else np.empty(0)
    with open(out, "wb") as file:
        np.savez(file, **arrays)
    return ""


if __name__ == "__main__":
    try:
        file, archive, memory, patience, points, *names = sys.argv[1:]
        sys.exit(main(file, archive, int(memory), int(patience), int(points), names) or 0)
    except MemoryError:
        sys.exit("it takes too much memory")
    except OSError as error:
        sys.exit(f"it cannot be unpacked: {error}")
