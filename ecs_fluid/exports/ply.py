"""PLY, binary: points with all columns, and surfaces with the velocity of every vertex.

Vertices of bodies have all columns of their body.

Velocities are ``vx vy vz``, colours ``red green blue`` in bytes of sRGB, other vectors ``name_x name_y
name_z``. Ids are 32-bit integers, the longest that PLY has, if they fit, and else doubles (exact up to 2^53).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ecs_fluid.exports.frames import Columns, Job, flat_rows
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.surfaces import Surface, Surfaces, colours_in_bytes, of_vertices
from ecs_fluid.exports.target import frame_file

_TYPES = {"f4": "float", "f8": "double", "i4": "int", "u1": "uchar"}


def write(job: Job) -> dict[str, Any]:
    """Write ``POPULATION.NUMBER.ply``: vertices in m, and the faces of surfaces."""
    frames, files = job.frames, []
    surfaces = Surfaces(frames)
    for frame in frames:
        for name, columns in frame.particles.items():
            files.append(frame_file(name, frame.file, "ply"))
            _save(job.folder / files[-1], frame.time, frames.up, _table(columns))
        for name, chosen in surfaces.by_population(frame).items():
            files.append(frame_file(name, frame.file, "ply"))
            table = _surface_table(chosen, frame.bodies.get(name, {}))
            _save(job.folder / files[-1], frame.time, frames.up, table, chosen)
    return {"files": files}


def _table(columns: Columns) -> np.ndarray:
    """One row per point, one field per number."""
    named = {name: columns[label] for label, name in plain_names(columns).items()}
    return _packed(_numbers(columns["Position.x"], named))


def _surface_table(surfaces: list[Surface], columns: Columns) -> np.ndarray:
    """One row per vertex, with the columns of its body."""
    empty = np.empty((0, 3))
    places = np.concatenate([empty, *(surface.vertices for surface in surfaces)])
    velocity = np.concatenate([empty, *(surface.vertex_velocity for surface in surfaces)])
    named = {"velocity": velocity} | of_vertices(columns, surfaces)
    if not columns:
        named["id"] = np.full(len(places), -1)
    numbers = _numbers(places, named)
    if (colour := colours_in_bytes(surfaces)) is not None:
        numbers |= zip(("red", "green", "blue"), colour.T, strict=True)
    return _packed(numbers)


def _numbers(places: np.ndarray, named: Columns) -> dict[str, np.ndarray]:
    """Places and columns, one array per number."""
    parts = dict(zip("xyz", places.T, strict=True))
    for name, values in named.items():
        if values.ndim == 1:
            parts[name] = values
        elif values.shape[1:] == (3,):
            names = ("vx", "vy", "vz") if name == "velocity" else (f"{name}_{axis}" for axis in "xyz")
            parts |= zip(names, values.T, strict=True)
        else:
            parts |= {f"{name}_{k}": numbers for k, numbers in enumerate(flat_rows(values).T)}
    return parts


def _packed(parts: dict[str, np.ndarray]) -> np.ndarray:
    fields = []
    for name, values in parts.items():
        byte = values.dtype == np.uint8
        small = values.dtype.kind in "iu" and (not len(values) or np.abs(values).max() < 2**31)
        kind = "u1" if byte else "i4" if small else "f4" if values.dtype == np.float32 else "f8"
        fields.append((name, kind if byte else "<" + kind))
    table = np.empty(len(parts["x"]), dtype=fields)
    for name, values in parts.items():
        table[name] = values
    return table


def _save(path: Path, time: float, up: str, table: np.ndarray, surfaces: list[Surface] | None = None) -> None:
    header = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment ecs_fluid, t = {time:.12g} s, metres, {up} up",
    ]
    header.append(f"element vertex {len(table)}")
    for name in table.dtype.names or ():
        header.append(f"property {_TYPES[table.dtype[name].str[1:]]} {name}")
    triangles, first = [np.empty((0, 3), dtype=np.int64)], 0
    for surface in surfaces or []:
        triangles.append(surface.mesh.triangles + first)
        first += len(surface.mesh.vertices)
    faces = np.zeros(sum(map(len, triangles)), dtype=[("count", "u1"), ("corners", "<i4", (3,))])
    faces["count"], faces["corners"] = 3, np.concatenate(triangles)
    if surfaces is not None:
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    with open(path, "wb") as file:
        file.write(("\n".join([*header, "end_header"]) + "\n").encode("ascii"))
        file.write(table.tobytes())
        file.write(faces.tobytes())
