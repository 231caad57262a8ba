"""The surfaces in a frame: of bodies, and of a liquid, by stored distances or by its particles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.bodies import Mesh, Placed, Polytopes, placed, polytopes
from ecs_fluid.exports.colours import WATER, liquid_colours
from ecs_fluid.exports.frames import Frame, Frames
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.particle_surface import mixed, rest_spacing, surface_of_particles
from ecs_fluid.runs.surface_frames import stored_mesh

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Columns = Mapping[str, np.ndarray]
NEIGHBOURS = 12
"""Particles whose velocities give that of a vertex."""
LEAST = 1e-3
"""Of the sum of the mean squares of their places along three axes, added to each"""
AMONG = 1.1
"""Largest distance of a place in a liquid from the nearest particle, over the spacing: sqrt(3)/2 in a cubic
lattice, more in one that is sheared."""


class Particles(NamedTuple):
    """Particles that made a surface, in the order of their populations."""

    x: np.ndarray
    """(n, 3) m"""
    velocity: np.ndarray
    """(n, 3) m/s"""
    drops: np.ndarray
    """mask (n,) of those that the surface leaves out"""
    spacing: float
    """of particles in the liquid, m"""
    counts: dict[str, int]
    """how many are of each population"""


@dataclass(frozen=True)
class Liquid:
    """The surface of a liquid in one frame: triangles in the world, and the velocity (v, 3) m/s of vertices.

    Velocities are those of the nearest particles, 0 in a frame without any. ``vertex_colour`` (v, 3) is sRGB
    from 0 to 1 where liquids of several colours have one surface. No body has the ``row_id`` -1.
    """

    population: str
    mesh: Mesh
    vertex_velocity: np.ndarray
    vertex_colour: np.ndarray | None = None
    made_of: Particles | None = None
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


def _first_id(frames: Frames, name: str) -> int:
    """Smallest RowId in the first frame of the run in which the population has rows; 0 without rows."""
    numbers = np.flatnonzero(frames.stored.index(name).counts[: len(frames.stored)])
    return int(frames.stored.column(int(numbers[0]), name, "RowId.id").min()) if len(numbers) else 0


class Surfaces:
    """The surfaces of an export's frames.

    ``polytopes`` are those of the run's newest checkpoint; ``colours`` of liquids colour the vertices of
    their surface.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.polytopes: Polytopes = {}
        self._first = {name: _first_id(frames, name) for name in frames.bodies}
        self.colours = liquid_colours(frames) if frames.surface else {}
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
            yield from placed(name, columns, self.polytopes.get(name, ()), self._first.get(name, 0))

    def liquid(self, frame: Frame) -> Liquid | None:
        """The surface of the liquid in a frame, None if there is none."""
        frames = self._frames
        if frames.surface is None:
            return None
        if frames.liquids:
            return self._of_particles(frame, frames.surface)
        if frame.tick not in frames.surface_ticks:
            return None
        vertices, triangles = stored_mesh(frames.run.fields, frame.tick)
        vertices = vertices @ frames.matrix.T
        colour = None
        if self.colours:
            liquids = {one: frame.everything[one] for one in frames.all_liquids}
            x = np.concatenate([columns["Position.x"] for columns in liquids.values()])
            colour = np.tile(WATER, (len(vertices), 1))
            if len(x):
                colour = mixed(vertices, x, np.zeros(len(x), bool), self._of_each(liquids))
        beside = [frame.everything[one] for one in frames.beside]
        return _liquid(frames.surface, vertices, triangles, beside, colour)

    def _of_particles(self, frame: Frame, name: str) -> Liquid:
        """One surface of all liquids: where they mix, none has a closed surface alone."""
        liquids = [frame.everything[one] for one in self._frames.liquids]
        x = np.concatenate([columns["Position.x"] for columns in liquids])
        spacing = max((rest_spacing(columns) or 0.0 for columns in liquids), default=0.0)
        if not len(x):
            none = np.empty((0, 3))
            return _liquid(name, none, none.astype(np.int64), (), none if self.colours else None)
        if not 0.0 < spacing < np.inf:
            raise StorageError(
                f"frame {frame.number} of {self._frames.run.path}: Liquid.volume has a median of "
                f"{spacing**3:g} m^3; volumes above 0 are needed"
            )
        bodies = self.placed({body: frame.everything[body] for body in self._frames.around})
        found = surface_of_particles(x, spacing, list(bodies))
        still = np.zeros((len(x), 3))
        u = np.concatenate([one.get("Velocity.u", still[: len(one["Position.x"])]) for one in liquids])
        named = dict(zip(self._frames.liquids, liquids, strict=True))
        counts = {one: len(columns["Position.x"]) for one, columns in named.items()}
        colour = mixed(found.points, x, found.drops, self._of_each(named)) if self.colours else None
        made_of = Particles(x, u, found.drops, spacing, counts)
        return _liquid(name, found.points, found.triangles, liquids, colour, made_of)

    def _of_each(self, liquids: Mapping[str, Columns]) -> np.ndarray:
        """Colours (n, 3) of the particles of `liquids`."""
        counts = [len(columns["Position.x"]) for columns in liquids.values()]
        return np.repeat([self.colours[one] for one in liquids], counts, axis=0)


def _liquid(
    name: str,
    vertices: np.ndarray,
    triangles: np.ndarray,
    particles: Iterable[Columns],
    colour: np.ndarray | None = None,
    made_of: Particles | None = None,
) -> Liquid:
    mesh = Mesh(vertices, triangles.ravel(), np.arange(0, 3 * len(triangles) + 1, 3))
    return Liquid(name, mesh, Near(particles)(vertices), colour, made_of)


def colours_in_bytes(surfaces: Sequence[Surface]) -> np.ndarray | None:
    """Colours (v, 3) of the vertices of surfaces, sRGB from 0 to 255; None where they have none."""
    found = [one.vertex_colour for one in surfaces if isinstance(one, Liquid)]
    colours = [colour for colour in found if colour is not None]
    return np.rint(255.0 * np.concatenate(colours)).astype(np.uint8) if colours else None


def of_vertices(columns: Columns, surfaces: Sequence[Surface]) -> dict[str, np.ndarray]:
    """Columns of bodies under plain names, with a row for each vertex; each vertex has its own velocity."""
    counts = [len(surface.mesh.vertices) for surface in surfaces]
    named = plain_names(columns).items()
    return {name: np.repeat(columns[label], counts, axis=0) for label, name in named if name != "velocity"}


class Near:
    """Velocities, or another column, at any places by the particles near, of a liquid for example.

    Least squares fit u(x) = a + (x - v) G to the `NEIGHBOURS` particles nearest to a place v, weighted by
    (1 - d^2 / d_far^2)^2 of their distances d, and a is the value: at a surface the middle of those particles
    lies up to a spacing inside of the liquid. No a differs from their mean by more than one of them does. It
    is 0 without any particles.
    """

    def __init__(self, populations: Iterable[Columns], column: str = "Velocity.u") -> None:
        self._moving = [columns for columns in populations if len(columns.get(column, ()))]
        self._column = column

    def __bool__(self) -> bool:
        return bool(self._moving)

    @cached_property
    def _values(self) -> np.ndarray:
        values = [np.asarray(columns[self._column], np.float64) for columns in self._moving]
        return np.concatenate([each.reshape(len(each), -1) for each in values])

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest number that a particle has."""
        return float(self._values.min()), float(self._values.max())

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(np.concatenate([columns["Position.x"] for columns in self._moving]))

    def holds(self, places: np.ndarray) -> np.ndarray:
        """Mask (v,) of the places (v, 3) m among particles of liquid."""
        spacings = [spacing for one in self._moving if (spacing := rest_spacing(one)) is not None]
        if not spacings:
            return np.zeros(len(places), bool)
        distance, _ = self._tree.query(places)
        return np.asarray(distance <= AMONG * max(spacings))

    def __call__(self, vertices: np.ndarray) -> np.ndarray:
        """Values (v, k) at places (v, 3) m; velocities (v, 3) m/s."""
        if not self or not len(vertices):
            return np.zeros(vertices.shape)
        u = self._values
        count = min(NEIGHBOURS, len(u))
        found = self._tree.query(vertices, k=[*range(1, count + 1)])
        distance, near = np.asarray(found[0]), np.asarray(found[1])
        far = np.maximum(1.01 * distance[:, -1:], 1e-12)
        weight = (1.0 - (distance / far) ** 2) ** 2
        weight /= weight.sum(axis=1, keepdims=True)
        u_mean = np.einsum("vk,vki->vi", weight, u[near])
        place = (self._tree.data[near] - vertices[:, None]) / far[..., None]
        middle = np.einsum("vk,vki->vi", weight, place)
        place -= middle[:, None]
        change = u[near] - u_mean[:, None]
        square = np.einsum("vk,vki,vkj->vij", weight, place, place)
        # Across a sheet or a line of particles nothing is known of the slope, and none is taken.
        square += (LEAST * np.trace(square, axis1=1, axis2=2) + 1e-12)[:, None, None] * np.eye(3)
        slope = np.linalg.solve(square, np.einsum("vk,vki,vkj->vij", weight, place, change))
        step = -np.einsum("vi,vij->vj", middle, slope)
        most = np.linalg.norm(change, axis=2).max(axis=1)
        size = np.linalg.norm(step, axis=1)
        share = np.where(size > most, most / np.where(size > 0.0, size, 1.0), 1.0)
        return np.asarray(u_mean + share[:, None] * step)
