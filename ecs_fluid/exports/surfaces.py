"""The surface of a liquid in a frame, contoured from the signed distances that the run stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ecs_fluid.exports.bodies import BodyShapes, Mesh
from ecs_fluid.exports.frames import Frame, Frames

NEIGHBOURS = 4
"""Particles whose velocities make that of a vertex, weighted by inverse distance."""


@dataclass(frozen=True)
class Surface:
    """A triangle mesh in one frame: vertices (v, 3) m, triangles (t, 3) seen counter-clockwise from outside.

    ``velocity`` (v, 3) m/s is that of the nearest particles, 0 where a frame has none. The name is that of
    the export's objects and files; ``row_id`` is -1 for what is no body.
    """

    name: str
    row_id: int
    vertices: np.ndarray
    triangles: np.ndarray
    velocity: np.ndarray

    @property
    def mesh(self) -> Mesh:
        """Faces as bodies have them."""
        starts = np.arange(0, 3 * len(self.triangles) + 1, 3)
        return Mesh(self.vertices, self.triangles.ravel(), starts)


class Surfaces:
    """The surfaces of an export's frames; ``name`` is None if the run stored none."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.name = frames.surface

    def of(self, frame: Frame) -> Surface | None:
        """The surface of a frame, None if the run stored none then."""
        from ecs_fluid.runs.surface_meshes import stored_mesh

        if self.name is None or frame.tick not in self._frames.surface_ticks:
            return None
        vertices, triangles = stored_mesh(self._frames.run.fields, frame.tick)
        return Surface(self.name, -1, vertices, triangles, _velocity(frame, vertices))


def meshes(frame: Frame, shapes: BodyShapes, surfaces: Surfaces) -> Iterator[Surface]:
    """Bodies and surface of a frame alike, as meshes in the world, by population."""
    for body in shapes.placed(frame):
        yield Surface(body.population, body.row_id, body.vertices, body.mesh.triangles, body.vertex_velocity)
    surface = surfaces.of(frame)
    if surface is not None:
        yield surface


def _velocity(frame: Frame, vertices: np.ndarray) -> np.ndarray:
    moving = [columns for columns in frame.particles.values() if "Velocity.u" in columns]
    x = np.concatenate([np.empty((0, 3)), *(columns["Position.x"] for columns in moving)])
    u = np.concatenate([np.empty((0, 3)), *(columns["Velocity.u"] for columns in moving)])
    if not len(x) or not len(vertices):
        return np.zeros(vertices.shape)
    from scipy.spatial import cKDTree

    count = min(NEIGHBOURS, len(x))
    distance, nearest = cKDTree(x).query(vertices, k=range(1, count + 1))
    weight = 1.0 / np.maximum(distance, 1e-12)
    mean: np.ndarray = np.einsum("vk,vki->vi", weight, u[nearest]) / weight.sum(axis=1)[:, None]
    return mean
