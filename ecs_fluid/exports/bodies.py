"""Bodies as placed meshes: polytopes from the tables of a checkpoint, balls from an octahedron."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from ecs_fluid.errors import StorageError
from ecs_fluid.systems.shared.walls import Walls

_TABLE = ("vertices", "loops", "loop_start", "plane_start", "vertex_start")
_AT_ONCE = 2**20
"""Depths of points below planes that are in memory together."""


@dataclass(frozen=True)
class Mesh:
    """A closed surface in body axes: vertices (v, 3) m, and convex faces end to end.

    Corners run counter-clockwise seen from outside. Face k has ``corners[starts[k]:starts[k + 1]]``.
    """

    vertices: np.ndarray
    corners: np.ndarray
    starts: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Corners of every face."""
        return np.diff(self.starts)

    @property
    def triangles(self) -> np.ndarray:
        """(t, 3): every face as a fan from its first corner."""
        fans = self.sizes - 2
        first = np.repeat(self.starts[:-1], fans)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(fans) - fans, fans)
        corners: np.ndarray = self.corners[np.column_stack([first, second, second + 1])]
        return corners.astype(np.int64)

    @property
    def edges(self) -> np.ndarray:
        """(e, 2): edges of a closed mesh, as pairs of its vertices."""
        following = np.arange(1, len(self.corners) + 1)
        following[self.starts[1:] - 1] = self.starts[:-1]
        pairs = np.column_stack([self.corners, self.corners[following]])
        return np.unique(np.sort(pairs, axis=1), axis=0)


def smooth_normals(mesh: Mesh) -> np.ndarray:
    """Outward unit normals (v, 3) at the vertices: means over their triangles, weighted by area."""
    a, b, c = mesh.vertices[mesh.triangles].transpose(1, 0, 2)
    normals = np.zeros(mesh.vertices.shape)
    np.add.at(normals, mesh.triangles.T, np.cross(b - a, c - a))
    normals[~normals.any(axis=1)] = [0.0, 0.0, 1.0]  # triangles without area
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


Polytopes = Mapping[str, Sequence[Mesh]]
"""Shapes of bodies that are not balls, by population."""


@dataclass(frozen=True)
class Placed:
    """One body in one frame: a mesh (a ball has radius 1) scaled, turned by q = (w, x, y, z), put at x."""

    population: str
    row_id: int
    mesh: Mesh
    x: np.ndarray
    q: np.ndarray
    scale: float
    velocity: np.ndarray
    angular_velocity: np.ndarray
    ball: bool
    container: bool
    temperature: float
    """K; NaN for a body without heat"""
    number: int = 0
    """Its RowId, counted from that of the first body of its population"""

    @property
    def label(self) -> str:
        """Its name among all bodies, which does not depend on how many particles there are."""
        return f"{self.population}_{self.number}"

    @property
    def vertices(self) -> np.ndarray:
        """Vertices (v, 3) in the world, m."""
        placed: np.ndarray = self.x + self.scale * self.mesh.vertices @ rotation_matrix(self.q).T
        return placed

    @property
    def vertex_velocity(self) -> np.ndarray:
        """Velocity (v, 3) of the vertices, v + angular velocity x (r - x), m/s."""
        return self.velocity + np.cross(self.angular_velocity, self.vertices - self.x)


def placed(
    name: str, columns: Mapping[str, np.ndarray], meshes: Sequence[Mesh], first: int = 0
) -> Iterator[Placed]:
    """Every body of a population; ``meshes`` are those of its polytopes, ``first`` its first RowId."""
    x = columns["Pose.x" if "Pose.x" in columns else "Position.x"].astype(np.float64)
    rows = len(x)
    still, zero, unknown = np.zeros((rows, 3)), np.zeros(rows, dtype=np.int64), np.full(rows, np.nan)
    radius = columns.get("BallShape.radius")
    hulls = columns.get("HullShape.hull", zero)
    if radius is None and rows and not 0 <= hulls.min() <= hulls.max() < len(meshes):
        raise StorageError(
            f"the bodies {name!r} refer to shape {hulls.max()}, but only {len(meshes)} shapes are stored"
        )
    velocity = columns.get("RigidMotion.v", still).astype(np.float64)
    angular_velocity = columns.get("RigidMotion.angular_velocity", still).astype(np.float64)
    numbers = (x, columns["Pose.q"], zero if radius is None else radius, velocity, angular_velocity)
    if not all(np.isfinite(one).all() for one in numbers) or not columns["Pose.q"].any(axis=1).all():
        raise StorageError(
            f"the bodies {name!r} are damaged: places, turns, radii and velocities are finite numbers, and "
            "no turn is 0"
        )
    for row in range(rows):
        row_id = int(columns.get("RowId.id", zero)[row])
        yield Placed(
            name,
            row_id,
            unit_ball() if radius is not None else meshes[int(hulls[row])],
            x[row],
            columns["Pose.q"][row].astype(np.float64),
            1.0 if radius is None else float(radius[row]),
            velocity[row],
            angular_velocity[row],
            radius is not None,
            bool(columns.get("HullShape.container", zero)[row]),
            float(columns.get("BodyHeat.T", unknown)[row]),
            row_id - first,
        )


def polytopes(arrays: Mapping[str, np.ndarray]) -> dict[str, list[Mesh]]:
    """Meshes of the HullTables among ``entity/Component.column`` arrays, such as those of a checkpoint."""
    found = {}
    for name in {label.partition("/")[0]: None for label in arrays if "/HullTable." in label}:
        try:
            found[name] = _meshes(*(arrays[f"{name}/HullTable.{part}"] for part in _TABLE))
        except (KeyError, IndexError, ValueError):
            raise StorageError(f"the checkpoint does not hold the whole shape of {name!r}") from None
    return found


def _meshes(
    vertices: np.ndarray,
    loops: np.ndarray,
    loop_start: np.ndarray,
    plane_start: np.ndarray,
    vertex_start: np.ndarray,
) -> list[Mesh]:
    """Meshes of the polytopes of a HullTable. Raises ValueError or IndexError for a damaged one."""
    made = []
    for hull in range(len(plane_start) - 1):
        starts = loop_start[plane_start[hull] : plane_start[hull + 1] + 1].astype(np.int64)
        points = vertices[vertex_start[hull] : vertex_start[hull + 1]].astype(np.float64)
        corners = loops[starts[0] : starts[-1]].astype(np.int64)
        if np.diff(starts).min() < 3 or not 0 <= corners.min() <= corners.max() < len(points):
            raise ValueError("a face has corners that are not there")
        if not np.isfinite(points).all():
            raise ValueError("a corner is nowhere")
        made.append(Mesh(points, corners, starts - starts[0]))
    return made


def rotation_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion (w, x, y, z), which is normalised first."""
    return Rotation.from_quat(np.roll(q, -1)).as_matrix()  # scipy takes w last


@cache
def unit_ball() -> Mesh:
    """Ball of radius 1: an octahedron whose faces were cut in four three times; 258 vertices."""
    vertices = [
        np.array(point, dtype=float)
        for point in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
    ]
    faces = [
        (a, b, c) if sign > 0 else (b, a, c)
        for a in (0, 1)
        for b in (2, 3)
        for c in (4, 5)
        for sign in ((-1) ** (a + b + c),)
    ]
    for _ in range(3):
        middles: dict[tuple[int, int], int] = {}
        cut = []
        for a, b, c in faces:
            edges = ((min(pair), max(pair)) for pair in ((a, b), (b, c), (c, a)))
            ab, bc, ca = (middles.setdefault(edge, len(vertices) + len(middles)) for edge in edges)
            cut += [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        points = [vertices[i] + vertices[j] for i, j in middles]
        vertices += [point / np.linalg.norm(point) for point in points]
        faces = cut
    return Mesh(np.array(vertices), np.array(faces).ravel(), np.arange(0, 3 * len(faces) + 1, 3))


def depth_in_solids(bodies: Sequence[Placed], x: np.ndarray) -> np.ndarray:
    """Depth (m,) m of points (m, 3) m in solid bodies or outside all containers; elsewhere below 0.

    The depth is that below the nearest plane of a polytope, so less than the distance beside its edges.
    """
    containers = [body for body in bodies if body.container]
    found = np.full(len(x), np.inf if containers else -np.inf)
    for body in containers:
        found = np.minimum(found, -_depth(body, x))
    for body in bodies:
        if not body.container:
            found = np.maximum(found, _depth(body, x))
    return found


def _depth(body: Placed, x: np.ndarray) -> np.ndarray:
    """Depth (m,) m of points (m, 3) m in a convex body, below 0 outside."""
    if body.ball:
        return np.asarray(body.scale - np.linalg.norm(x - body.x, axis=1))
    normals, offsets = _planes(body)
    depth, many = np.empty(len(x)), max(1, _AT_ONCE // len(offsets))
    for first in range(0, len(x), many):
        some = x[first : first + many]
        low, high = some.min(axis=0), some.max(axis=0)
        # Of the box around these points: its middle's depth below each plane, and how much that varies.
        middle, varies = offsets - normals @ (low + high) / 2.0, np.abs(normals) @ (high - low) / 2.0
        near = ~(middle - varies > (middle + varies).min())
        depth[first : first + many] = (offsets[near] - some @ normals[near].T).min(axis=1)
    return depth


def _planes(body: Placed) -> tuple[np.ndarray, np.ndarray]:
    """Outward normals (k, 3) and offsets (k,) m of the faces of a convex body."""
    vertices = body.vertices
    a, b, c = (vertices[body.mesh.corners[body.mesh.starts[:-1] + k]] for k in range(3))
    normals = np.cross(b - a, c - b)
    normals *= np.sign(np.einsum("ij,ij->i", normals, a - vertices.mean(axis=0)))[:, None]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return normals, np.einsum("ij,ij->i", normals, a)


def walls_of(bodies: Sequence[Placed]) -> list[Walls]:
    """Walls of the containers among bodies."""
    return [Walls(*_planes(body), np.inf, body.vertices) for body in bodies if body.container]
