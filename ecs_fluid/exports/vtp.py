"""VTK PolyData: one .vtp per population and frame, and a .pvd per population that ParaView plays.

Particles are vertices with all their columns; bodies and liquids are surfaces, with the velocity of
every vertex.
Source: VTK file formats, XML PolyData.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.exports.bodies import BodyShapes, Placed
from ecs_fluid.exports.frames import Columns, Job
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.surfaces import Surface, Surfaces
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.vtk_files import add_array, save, write_pvd


def write(job: Job) -> dict[str, Any]:
    """Write ``POPULATION.NUMBER.vtp`` and ``POPULATION.pvd``."""
    frames, shapes, surfaces = job.frames, BodyShapes(job.frames), Surfaces(job.frames)
    parts: dict[str, list[tuple[float, str, str]]] = {}
    for frame in frames:
        made = {name: _points(columns) for name, columns in frame.particles.items()}
        bodies = list(shapes.placed(frame))
        for name in frame.bodies:
            made[name] = _surfaces([body for body in bodies if body.population == name])
        if frames.surface:
            made[frames.surface] = _surface(surfaces.of(frame))
        for name, data in made.items():
            file = frame_file(name, frame.number, "vtp")
            save(data, job.folder / file, frame.time)
            parts.setdefault(name, []).append((frame.time, name, file))
    for name, entries in parts.items():
        write_pvd(job.folder / f"{name}.pvd", entries)
    return {"files": [f"{name}.pvd" for name in parts]}


def _polydata(points: np.ndarray) -> Any:
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    places = vtkPoints()
    places.SetData(numpy_to_vtk(np.ascontiguousarray(points), deep=True))
    data = vtkPolyData()
    data.SetPoints(places)
    return data


def _cells(corners: np.ndarray, starts: np.ndarray) -> Any:
    from vtkmodules.util.numpy_support import numpy_to_vtkIdTypeArray
    from vtkmodules.vtkCommonDataModel import vtkCellArray

    cells = vtkCellArray()
    cells.SetData(
        numpy_to_vtkIdTypeArray(np.ascontiguousarray(starts, np.int64), deep=True),
        numpy_to_vtkIdTypeArray(np.ascontiguousarray(corners, np.int64), deep=True),
    )
    return cells


def _points(columns: Columns) -> Any:
    rows = len(columns["Position.x"])
    data = _polydata(columns["Position.x"])
    data.SetVerts(_cells(np.arange(rows), np.arange(rows + 1)))
    for label, name in plain_names(columns).items():
        add_array(data.GetPointData(), name, columns[label])
    return data


def _surfaces(bodies: list[Placed]) -> Any:
    counts = [len(body.mesh.vertices) for body in bodies]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    corners = [body.mesh.corners + start for body, start in zip(bodies, first[:-1], strict=True)]
    sizes = [body.mesh.sizes for body in bodies]
    data = _polydata(np.concatenate([np.empty((0, 3)), *(body.vertices for body in bodies)]))
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *sizes]))])
    data.SetPolys(_cells(np.concatenate([np.empty(0, np.int64), *corners]), starts))
    velocity = np.concatenate([np.empty((0, 3)), *(body.vertex_velocity for body in bodies)])
    add_array(data.GetPointData(), "velocity", velocity)
    add_array(data.GetPointData(), "id", np.repeat([body.row_id for body in bodies], counts).astype(np.int64))
    return data


def _surface(surface: Surface | None) -> Any:
    if surface is None:
        return _polydata(np.empty((0, 3)))
    data = _polydata(surface.vertices)
    data.SetPolys(_cells(surface.mesh.corners, surface.mesh.starts))
    add_array(data.GetPointData(), "velocity", surface.velocity)
    return data
