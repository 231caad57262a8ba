"""The surfaces in a frame: of bodies, and of a liquid, by stored distances or by its particles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.bodies import Mesh, Placed, Polytopes, placed, polytopes
from ecs_fluid.exports.frames import Frame, Frames
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.particle_surface import rest_spacing, surface_of_particles
from ecs_fluid.runs.surface_frames import stored_mesh

Columns = Mapping[str, np.ndarray]
NEIGHBOURS = 4
"""Particles whose velocities, weighted by inverse distance, give the velocity of a vertex."""


@dataclass(frozen=True)
class Liquid:
    """The surface of a liquid in one frame: triangles in the world, and the velocity (v, 3) m/s of vertices.

    Velocities are those of the nearest particles, 0 in a frame without any. No body has the ``row_id`` -1.
    """

    population: str
    mesh: Mesh
    vertex_velocity: np.ndarray
    row_id: int = -1

    @property
    def label(self) -> str:
        """Its name among all surfaces."""
        return self.population

    @property
    def vertices(self) -> np.ndarray:
        """Vertices (v, 3) in the world, m."""
        return self.mesh.vertices


Surface = Placed | Liquid


class Surfaces:
    """The surfaces of an export's frames; ``polytopes`` are those of the run's newest checkpoint."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.polytopes: Polytopes = {}
        bodies = frames.around if frames.liquids else frames.bodies
        names = [name for name in bodies if "HullShape.hull" in frames.columns(name)]
        if names:
            try:
                self.polytopes = polytopes(frames.run.newest_checkpoint().arrays)
            except StorageError as error:
                raise StorageError(
                    f"the shapes of {', '.join(names)} are in a checkpoint, but {error}"
                ) from None

    def of(self, frame: Frame) -> Iterator[Surface]:
        """All surfaces of a frame: bodies by population, then the liquid."""
        yield from self.placed(frame.bodies)
        liquid = self.liquid(frame)
        if liquid is not None:
            yield liquid

    def by_population(self, frame: Frame) -> dict[str, list[Surface]]:
        """The surfaces of every population that has some in any frame."""
        liquid = self._frames.surface
        found: dict[str, list[Surface]] = {name: [] for name in (*frame.bodies, liquid) if name}
        for surface in self.of(frame):
            found[surface.population].append(surface)
        return found

    def placed(self, bodies: Mapping[str, Columns]) -> Iterator[Placed]:
        """Every body of these populations."""
        for name, columns in bodies.items():
            if "BallShape.radius" not in columns and name not in self.polytopes:
                raise StorageError(f"the bodies {name!r} of {self._frames.run.path} have no stored shape")
            yield from placed(name, columns, self.polytopes.get(name, ()))

    def liquid(self, frame: Frame) -> Liquid | None:
        """The surface of the liquid in a frame, None if there is none."""
        frames = self._frames
        if frames.surface is None:
            return None
        if frames.liquids:
            return self._of_particles(frame, frames.surface)
        if frame.tick not in frames.surface_ticks:
            return None
        mesh = stored_mesh(frames.run.fields, frame.tick)
        return _liquid(frames.surface, *mesh, [frame.everything[one] for one in frames.beside])

    def _of_particles(self, frame: Frame, name: str) -> Liquid:
        """One surface of all liquids: where they mix, none has a closed surface alone."""
        liquids = [frame.everything[one] for one in self._frames.liquids]
        x = np.concatenate([columns["Position.x"] for columns in liquids])
        spacing = max((rest_spacing(columns) or 0.0 for columns in liquids), default=0.0)
        if not len(x):
            return _liquid(name, np.empty((0, 3)), np.empty((0, 3), np.int64), ())
        if not 0.0 < spacing < np.inf:
            raise StorageError(
                f"frame {frame.number} of {self._frames.run.path}: Liquid.volume has a median of "
                f"{spacing**3:g} m^3; volumes above 0 are needed"
            )
        bodies = self.placed({body: frame.everything[body] for body in self._frames.around})
        found = surface_of_particles(x, spacing, list(bodies))
        return _liquid(name, found.points, found.triangles, liquids)


def _liquid(name: str, vertices: np.ndarray, triangles: np.ndarray, particles: Iterable[Columns]) -> Liquid:
    mesh = Mesh(vertices, triangles.ravel(), np.arange(0, 3 * len(triangles) + 1, 3))
    return Liquid(name, mesh, velocity_near(particles, vertices))


def of_vertices(columns: Columns, surfaces: Sequence[Surface]) -> dict[str, np.ndarray]:
    """Columns of bodies under plain names, with a row for each vertex; each vertex has its own velocity."""
    counts = [len(surface.mesh.vertices) for surface in surfaces]
    named = plain_names(columns).items()
    return {name: np.repeat(columns[label], counts, axis=0) for label, name in named if name != "velocity"}


def velocity_near(populations: Iterable[Columns], vertices: np.ndarray) -> np.ndarray:
    """Velocities (v, 3) m/s at vertices (v, 3) m: those of the nearest particles, 0 without any."""
    moving = [columns for columns in populations if "Velocity.u" in columns]
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
