"""Writing VTK's XML files, and the .pvd by which ParaView plays them over time."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.frames import flat_rows


def add_array(data: Any, name: str, values: np.ndarray) -> None:
    """Add a named array, rows or flattened matrices, to point or field data."""
    from vtkmodules.util.numpy_support import numpy_to_vtk

    rows = np.ascontiguousarray(flat_rows(values))
    made = numpy_to_vtk(rows if rows.shape[1] != 1 else rows[:, 0], deep=True)
    made.SetName(name)
    data.AddArray(made)


def save(data: Any, path: Path, time: float) -> None:
    """Write a data set as raw appended XML, compressed, with its time as VTK readers expect it."""
    from vtkmodules.vtkCommonCore import vtkObject
    from vtkmodules.vtkCommonMisc import vtkErrorCode
    from vtkmodules.vtkIOXML import vtkXMLImageDataWriter, vtkXMLPolyDataWriter

    add_array(data.GetFieldData(), "TimeValue", np.array([time]))
    writer = vtkXMLImageDataWriter() if path.suffix == ".vti" else vtkXMLPolyDataWriter()
    writer.SetFileName(str(path))
    writer.SetInputData(data)
    writer.SetDataModeToAppended()
    writer.EncodeAppendedDataOff()
    writer.SetCompressorTypeToLZ4()
    loud = vtkObject.GetGlobalWarningDisplay()
    vtkObject.SetGlobalWarningDisplay(0)  # the error says what VTK would print
    try:
        written = writer.Write()
    finally:
        vtkObject.SetGlobalWarningDisplay(loud)
    code = writer.GetErrorCode()
    if code == vtkErrorCode.OutOfDiskSpaceError:
        code = errno.ENOSPC
    if code in errno.errorcode:  # codes below 20000 are those of the system
        raise OSError(code, os.strerror(code))
    if not written or code:
        raise StorageError(f"VTK cannot write {path.name}: error {code}")


def write_pvd(path: Path, parts: list[tuple[float, str, str]]) -> None:
    """A ParaView collection: (time [s], name, file) of every part."""
    root = Element("VTKFile", type="Collection", version="0.1", byte_order="LittleEndian")
    collection = SubElement(root, "Collection")
    for time, name, file in parts:
        SubElement(collection, "DataSet", timestep=repr(time), group="", part="0", name=name, file=file)
    indent(root)
    path.write_text('<?xml version="1.0"?>\n' + tostring(root, encoding="unicode") + "\n", encoding="utf-8")
