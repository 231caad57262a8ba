"""XDMF 2 sidecars: the same data for ParaView versions that cannot read temporal VTKHDF (5.11 and older).

Each frame is a grid of ``Polyvertex`` points whose arrays are hyperslabs (start, stride, count) of the
trajectory's datasets, so nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ecs_fluid.io.disk import replace_file
from ecs_fluid.io.vtkhdf import POINTS, Column, Index, dataset_path

_KINDS = {1: "Scalar", 3: "Vector", 6: "Tensor6", 9: "Tensor"}


def write_xdmf(folder: Path, name: str, index: Index, frames: Iterable[int], data: str | None = None) -> Path:
    """Write ``folder/<name>.xdmf`` for some frames of ``<name>.vtkhdf``; return its path.

    ``data`` is where that file is, as seen from ``folder``; default beside it.
    """
    data = data or f"{name}.vtkhdf"
    root = Element("Xdmf", Version="2.0")
    domain = SubElement(root, "Domain")
    series = SubElement(domain, "Grid", Name=name, GridType="Collection", CollectionType="Temporal")
    indent(root)
    series.text = "\n"
    head, end, foot = _text(root).partition(b"</Grid>")
    total = int(index.counts.sum())

    def write(handle: BinaryIO) -> None:
        # Frame by frame: the elements of all frames of a long run would take more memory than the run did.
        handle.write(b'<?xml version="1.0"?>\n' + head)
        for number in frames:
            grid = _grid(name, index, number, total, data)
            indent(grid, level=3)
            handle.write(b"      " + _text(grid) + b"\n")
        handle.write(b"    " + end + foot + b"\n")

    path = folder / f"{name}.xdmf"
    replace_file(path, write, "write XDMF file")
    return path


def _text(element: Element) -> bytes:
    return tostring(element, encoding="unicode").encode()


def _grid(name: str, index: Index, number: int, total: int, data: str) -> Element:
    """The grid of one frame."""
    start, rows = int(index.starts[number]), int(index.counts[number])
    grid = Element("Grid", Name=name, GridType="Uniform")
    SubElement(grid, "Time", Value=repr(float(index.times[number])))
    SubElement(grid, "Topology", TopologyType="Polyvertex", NumberOfElements=str(rows))
    geometry = SubElement(grid, "Geometry", GeometryType="XYZ")
    _slab(geometry, f"{data}:/{dataset_path(POINTS)}", index.columns[POINTS], start, rows, total)
    for column_name, column in index.columns.items():
        if column_name != POINTS:
            kind = _KINDS.get(column.width, "Matrix")
            attribute = SubElement(grid, "Attribute", Name=column_name, Center="Node", AttributeType=kind)
            _slab(attribute, f"{data}:/{dataset_path(column_name)}", column, start, rows, total)
    return grid


def _slab(parent: Element, where: str, column: Column, start: int, rows: int, total: int) -> None:
    width = str(column.width)
    columns = [width] if column.shape else []
    slab = SubElement(parent, "DataItem", ItemType="HyperSlab", Dimensions=" ".join([str(rows), *columns]))
    selection = [[start, *[0] * len(columns)], [1] * (1 + len(columns)), [rows, *map(int, columns)]]
    corners = SubElement(slab, "DataItem", Format="XML", Dimensions=f"3 {1 + len(columns)}")
    corners.text = "  ".join(" ".join(map(str, line)) for line in selection)
    number_type, precision = _number_type(column.dtype)
    data = SubElement(
        slab,
        "DataItem",
        Format="HDF",
        NumberType=number_type,
        Precision=precision,
        Dimensions=" ".join([str(total), *columns]),
    )
    data.text = where


def _number_type(dtype: str) -> tuple[str, str]:
    bits = int(dtype.lstrip("uintfloa"))
    if bits == 8:
        return ("UChar" if dtype.startswith("u") else "Char"), "1"
    kind = "UInt" if dtype.startswith("u") else "Int" if dtype.startswith("i") else "Float"
    return kind, str(bits // 8)
