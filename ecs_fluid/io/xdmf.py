"""XDMF 2 sidecars: the same data for ParaView versions that cannot read temporal VTKHDF (5.11 and older).

Each frame is a grid of ``Polyvertex`` points whose arrays are hyperslabs (start, stride, count) of the
trajectory's datasets, so nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ecs_fluid.io.disk import replace_text
from ecs_fluid.io.vtkhdf import POINTS, Column, Index

_KINDS = {1: "Scalar", 3: "Vector", 6: "Tensor6", 9: "Tensor"}


def write_xdmf(folder: Path, name: str, index: Index, frames: Iterable[int], data: str | None = None) -> Path:
    """Write ``folder/<name>.xdmf`` for some frames of ``<name>.vtkhdf``; return its path.

    ``data`` is where that file is, as seen from ``folder``; default beside it.
    """
    data = data or f"{name}.vtkhdf"
    root = Element("Xdmf", Version="2.0")
    domain = SubElement(root, "Domain")
    series = SubElement(domain, "Grid", Name=name, GridType="Collection", CollectionType="Temporal")
    total = int(index.counts.sum())
    for number in frames:
        start, rows = int(index.starts[number]), int(index.counts[number])
        grid = SubElement(series, "Grid", Name=name, GridType="Uniform")
        SubElement(grid, "Time", Value=repr(float(index.times[number])))
        SubElement(grid, "Topology", TopologyType="Polyvertex", NumberOfElements=str(rows))
        geometry = SubElement(grid, "Geometry", GeometryType="XYZ")
        _slab(geometry, f"{data}:/VTKHDF/Points", index.columns[POINTS], start, rows, total)
        for column_name, column in index.columns.items():
            if column_name != POINTS:
                kind = _KINDS.get(column.width, "Matrix")
                attribute = SubElement(grid, "Attribute", Name=column_name, Center="Node", AttributeType=kind)
                where = f"{data}:/VTKHDF/PointData/{column_name}"
                _slab(attribute, where, column, start, rows, total)
    indent(root)
    path = folder / f"{name}.xdmf"
    text = '<?xml version="1.0"?>\n' + tostring(root, encoding="unicode") + "\n"
    replace_text(path, text, "write XDMF file")
    return path


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
