"""Binary glTF 2.0: one .glb per frame with points, bodies and surfaces.

glTF has no point clouds whose number changes, so there is one file per frame. A root node turns what is
upwards in the world into its y. Columns are attributes such as ``_TEMPERATURE`` and ``_VELOCITY_X``: one
number each, because Blender 5.0 fails on a mesh whose attributes differ in width. glTF has no 64-bit numbers:
ids are left out, other whole numbers are floats, exact up to 2^24. Each population has a material, in the
colour of its recipe.

Source: Khronos glTF 2.0 specification, sections 3.6 (accessors), 3.7 (meshes), 3.9 (materials)
and 4.4 (GLB).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ecs_fluid.exports.bodies import Mesh, Placed, smooth_normals
from ecs_fluid.exports.colours import SOLID, WATER, Colour, colours_of, linear, of_points
from ecs_fluid.exports.frames import Columns, Frame, Job
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.surfaces import Liquid, Surfaces
from ecs_fluid.exports.target import frame_file
from ecs_fluid.upward import turn

_FLOAT, _UINT, _VERTICES, _INDICES = 5126, 5125, 34962, 34963
MOTION = ("RigidMotion.v", "RigidMotion.angular_velocity")
"""Columns of bodies that stand beside the place of each, as extras"""


def write(job: Job) -> dict[str, Any]:
    """Write ``NAME.NUMBER.glb``."""
    frames, surfaces, files = job.frames, Surfaces(job.frames), []
    colours = colours_of(frames)
    held: dict[str, Sequence[str]] = {
        name: [
            label
            for label, column in frames.columns(name).items()
            if label != "RowId.id" and column.shape in ((), (3,))
        ]
        for name in frames.particles
    }
    for frame in frames:
        file = frame_file(frames.name, frame.file, "glb")
        scene = _Scene(frame, colours, frames.up)
        for name, columns in frame.particles.items():
            if len(columns["Position.x"]):
                scene.add_points(name, columns, held[name])
        for body in surfaces.placed(frame.bodies):
            scene.add_body(body)
        liquid = surfaces.liquid(frame)
        if liquid is not None and len(liquid.mesh.corners):
            scene.add_liquid(liquid)
        (job.folder / file).write_bytes(scene.packed())
        files.append(file)
    held |= dict.fromkeys(frames.bodies, MOTION)
    told = {name: frames.told(name, labels) for name, labels in held.items()}
    return {"files": files, "up_axis": "y", "populations": told}


class _Scene:
    """A glTF document and its binary part under construction."""

    def __init__(self, frame: Frame, colours: Mapping[str, Colour], up: str) -> None:
        self.buffer = bytearray()
        rotation = Rotation.from_matrix(turn(up, "y")).as_quat().tolist()
        self.nodes: list[dict[str, Any]] = [{"name": f"{up}_up", "rotation": rotation, "children": []}]
        self.meshes: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self._colours = colours
        self._known: dict[tuple[int, int], int] = {}
        self.extras = {"frame": frame.number, "tick": frame.tick, "time": frame.time}

    def add_points(self, name: str, columns: Columns, held: Container[str]) -> None:
        """Add a population with those columns that are `held`."""
        attributes = {"POSITION": self._accessor(columns["Position.x"], bounds=True)}
        for label, plain in plain_names(columns).items():
            if label not in held:
                continue
            if columns[label].ndim == 1:
                attributes[f"_{plain.upper()}"] = self._accessor(columns[label])
            else:
                for axis, numbers in zip("XYZ", columns[label].T, strict=True):
                    attributes[f"_{plain.upper()}_{axis}"] = self._accessor(numbers)
        primitive = {
            "mode": 0,
            "attributes": attributes,
            "material": self._material(name, of_points(columns)),
        }
        self.meshes.append({"name": name, "primitives": [primitive]})
        self._add_node({"name": name, "mesh": len(self.meshes) - 1})

    def add_body(self, body: Placed) -> None:
        """Add a body; containers are transparent, so that what is inside is seen."""
        material = self._material(body.population, SOLID, 0.15 if body.container else 1.0)
        w, x, y, z = (body.q / np.linalg.norm(body.q)).tolist()
        self._add_node(
            {
                "name": body.label,
                "mesh": self._mesh(body.mesh, material, body.mesh.vertices if body.ball else None),
                "translation": body.x.tolist(),
                "rotation": [x, y, z, w],
                "scale": [body.scale] * 3,
                "extras": {
                    "velocity": body.velocity.tolist(),
                    "angular_velocity": body.angular_velocity.tolist(),
                },
            }
        )

    def add_liquid(self, liquid: Liquid) -> None:
        """Add the surface of a liquid; colours of vertices are factors of a white material's."""
        name, colour = liquid.label, liquid.vertex_colour
        material = self._material(name, WATER if colour is None else (1.0, 1.0, 1.0))
        mesh = self._mesh(liquid.mesh, material, smooth_normals(liquid.mesh), colour)
        self._add_node({"name": name, "mesh": mesh})

    def _material(self, population: str, colour: Colour, opacity: float = 1.0) -> int:
        """Number of a population's material: in that colour unless the recipe names another."""
        base = [*linear(self._colours.get(population, colour)).tolist(), opacity]
        surface = {"baseColorFactor": base, "metallicFactor": 0.0}
        made: dict[str, Any] = {"name": population, "pbrMetallicRoughness": surface}
        if opacity < 1.0:
            made["alphaMode"] = "BLEND"
        if made not in self.materials:
            self.materials.append(made)
        return self.materials.index(made)

    def _mesh(
        self, mesh: Mesh, material: int, normals: np.ndarray | None, colour: np.ndarray | None = None
    ) -> int:
        """Number of a mesh, which bodies of one population and shape share, named as its material."""
        key = (id(mesh), material)
        if key not in self._known:
            attributes = {"POSITION": self._accessor(mesh.vertices, bounds=True)}
            if normals is not None:  # without, a viewer shows flat faces, which is right for polytopes only
                attributes["NORMAL"] = self._accessor(normals)
            if colour is not None:
                attributes["COLOR_0"] = self._accessor(linear(colour))
            primitive = {
                "attributes": attributes,
                "indices": self._accessor(mesh.triangles.ravel(), indices=True),
                "material": material,
            }
            self.meshes.append({"name": self.materials[material]["name"], "primitives": [primitive]})
            self._known[key] = len(self.meshes) - 1
        return self._known[key]

    def _add_node(self, node: dict[str, Any]) -> None:
        self.nodes.append(node)
        self.nodes[0]["children"].append(len(self.nodes) - 1)

    def _accessor(self, values: np.ndarray, bounds: bool = False, indices: bool = False) -> int:
        """Append numbers to the binary part; all have 4 bytes, so every piece of it starts aligned."""
        numbers = np.ascontiguousarray(values, dtype="<u4" if indices else "<f4")
        kind, target = (_UINT, _INDICES) if indices else (_FLOAT, _VERTICES)
        place = {"buffer": 0, "byteOffset": len(self.buffer), "byteLength": numbers.nbytes}
        self.views.append({**place, "target": target})
        self.buffer += numbers.tobytes()
        accessor: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": kind,
            "count": len(numbers),
            "type": f"VEC{numbers.shape[1]}" if numbers.ndim > 1 else "SCALAR",
        }
        if bounds:
            accessor |= {"min": numbers.min(axis=0).tolist(), "max": numbers.max(axis=0).tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def packed(self) -> bytes:
        """The .glb: header, JSON, binary, each padded to 4 bytes."""
        if not self.nodes[0]["children"]:
            del self.nodes[0]["children"]  # the format allows no empty lists
        document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "ecs_fluid"},
            "scene": 0,
            "scenes": [{"nodes": [0], "extras": self.extras}],
            "nodes": self.nodes,
        }
        if self.meshes:
            document |= {
                "meshes": self.meshes,
                "materials": self.materials,
                "accessors": self.accessors,
                "bufferViews": self.views,
                "buffers": [{"byteLength": len(self.buffer)}],
            }
        text = json.dumps(document, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        if self.buffer:
            chunks += struct.pack("<I4s", len(self.buffer), b"BIN\0") + bytes(self.buffer)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
