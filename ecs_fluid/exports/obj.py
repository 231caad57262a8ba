"""Wavefront OBJ: all surfaces of a frame, of bodies and of a liquid, each an object.

OBJ knows surfaces only: particles go to PLY, USD or VTK. It has no place for how much a file holds, so a
comment says it, by which our own reader knows a file that was cut short.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.bodies import Mesh
from ecs_fluid.exports.frames import Job
from ecs_fluid.exports.surfaces import Surfaces
from ecs_fluid.exports.target import frame_file


def write(job: Job) -> dict[str, Any]:
    """Write ``NAME.NUMBER.obj``; vertices in m in the world. Refuses a run without surfaces."""
    frames = job.frames
    if not frames.bodies and frames.surface is None:
        raise StorageError(
            f"{frames.run.path} has no surfaces, and OBJ holds surfaces only; particles go to ply, usd, vtp "
            "or gltf"
        )
    surfaces, files = Surfaces(frames), []
    for frame in frames:
        file = frame_file(frames.name, frame.file, "obj")
        lines: list[str] = []
        first, faces = 1, 0  # OBJ counts vertices from 1 through the whole file
        for surface in surfaces.of(frame):
            lines += _lines(surface.label, surface.vertices, surface.mesh, first)
            first += len(surface.mesh.vertices)
            faces += len(surface.mesh.sizes)
        about = f"frame {frame.number}, t = {frame.time!r} s, metres, {frames.up} up"
        head = [f"# ecs_fluid {frames.name}, {about}"]
        lines = [*head, f"# {first - 1} vertices, {faces} faces", *lines]
        (job.folder / file).write_text("\n".join(lines) + "\n", encoding="ascii")
        files.append(file)
    return {"files": files, "populations": {}}


def _lines(name: str, points: np.ndarray, mesh: Mesh, first: int) -> list[str]:
    """Name, vertices and faces."""
    vertices = ["v {:.9g} {:.9g} {:.9g}".format(*point) for point in points.tolist()]
    corners = (mesh.corners + first).tolist()
    faces = [
        "f " + " ".join(map(str, corners[start:stop]))
        for start, stop in itertools.pairwise(mesh.starts.tolist())
    ]
    return [f"o {name}", *vertices, *faces]
