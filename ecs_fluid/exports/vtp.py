"""VTK PolyData: one .vtp per population and frame, and a .pvd per population that ParaView plays.

Particles are vertices with all their columns; bodies and liquids are surfaces, with the velocity of
every vertex, and vertices of bodies have all columns of their body.
Source: VTK file formats, XML PolyData.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyvista as pv

from ecs_fluid.exports.frames import Columns, Job
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.surfaces import Surface, Surfaces, colours_in_bytes, of_vertices
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.vtk_files import add_array, save, write_pvd


def write(job: Job) -> dict[str, Any]:
    """Write ``POPULATION.NUMBER.vtp`` and ``POPULATION.pvd``."""
    frames, surfaces = job.frames, Surfaces(job.frames)
    parts: dict[str, list[tuple[float, str, str]]] = {}
    for frame in frames:
        made = {name: points(columns) for name, columns in frame.particles.items()}
        for name, found in surfaces.by_population(frame).items():
            made[name] = surface_mesh(found)
            if name in frame.bodies:
                for title, values in of_vertices(frame.bodies[name], found).items():
                    add_array(made[name].GetPointData(), title, values)
        for name, data in made.items():
            file = frame_file(name, frame.file, "vtp")
            save(data, job.folder / file, frame.time)
            parts.setdefault(name, []).append((frame.time, name, file))
    for name, entries in parts.items():
        write_pvd(job.folder / f"{name}.pvd", entries)
    return {"files": [f"{name}.pvd" for name in parts]}


def points(columns: Columns) -> Any:
    """Particles as vertices, with their columns under plain names."""
    data = pv.PolyData(columns["Position.x"])
    for label, name in plain_names(columns).items():
        add_array(data.GetPointData(), name, columns[label])
    return data


def surface_mesh(surfaces: Sequence[Surface]) -> Any:
    """Surfaces as one mesh of polygons, with the velocities of vertices and, if any, their colours."""
    if not surfaces:
        return pv.PolyData(np.empty((0, 3)))
    first = np.cumsum([0, *(len(surface.mesh.vertices) for surface in surfaces)])
    corners = [surface.mesh.corners + start for surface, start in zip(surfaces, first, strict=False)]
    sizes = np.concatenate([surface.mesh.sizes for surface in surfaces])
    cells = np.insert(np.concatenate(corners), np.cumsum(sizes) - sizes, sizes)
    data = pv.PolyData(np.concatenate([surface.vertices for surface in surfaces]), cells)
    velocity = np.concatenate([surface.vertex_velocity for surface in surfaces])
    add_array(data.GetPointData(), "velocity", velocity)
    if (colour := colours_in_bytes(surfaces)) is not None:
        add_array(data.GetPointData(), "color", colour)
    return data
