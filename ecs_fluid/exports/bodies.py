"""Bodies of a frame as placed meshes: polytopes from the run's checkpoint, balls from an octahedron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.frames import Frame, Frames

_TABLE = ("vertices", "loops", "loop_start", "plane_start", "vertex_start")


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
        fans = [
            np.column_stack(
                [
                    np.full(last - first - 2, self.corners[first]),
                    self.corners[first + 1 : last - 1],
                    self.corners[first + 2 : last],
                ]
            )
            for first, last in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        return np.concatenate(fans).astype(np.int64)


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

    @property
    def vertices(self) -> np.ndarray:
        """Vertices (v, 3) in the world, m."""
        placed: np.ndarray = self.x + self.scale * self.mesh.vertices @ matrix(self.q).T
        return placed

    @property
    def vertex_velocity(self) -> np.ndarray:
        """Velocity (v, 3) of the vertices, v + spin x (r - x), m/s."""
        return self.velocity + np.cross(self.angular_velocity, self.vertices - self.x)


class BodyShapes:
    """The polytopes of a run's bodies, which checkpoints hold and frames refer to."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._meshes: dict[str, list[Mesh]] = {}
        polytopes = [name for name in frames.bodies if "HullShape.hull" in frames.columns(name)]
        if not polytopes:
            return
        try:
            arrays = frames.run.newest_checkpoint().arrays
        except StorageError as error:
            raise StorageError(
                f"the shapes of {', '.join(polytopes)} are in a checkpoint, but {error}"
            ) from None
        for name in polytopes:
            try:
                self._meshes[name] = _meshes(*(arrays[f"{name}/HullTable.{part}"] for part in _TABLE))
            except (KeyError, IndexError, ValueError):
                raise StorageError(
                    f"the newest checkpoint of {frames.run.path} has no shape of {name!r}"
                ) from None

    def placed(self, frame: Frame) -> Iterator[Placed]:
        """Every body of a frame."""
        for name, columns in frame.bodies.items():
            rows = len(columns["Position.x"])
            angular_velocity = columns.get("RigidMotion.angular_velocity", np.zeros((rows, 3)))
            velocity = columns.get("RigidMotion.v", np.zeros((rows, 3)))
            balls = columns.get("BallShape.radius")
            hulls = columns.get("HullShape.hull")
            inside_out = columns.get("HullShape.container", np.zeros(rows, dtype=np.int64))
            if balls is None and (hulls is None or name not in self._meshes):
                raise StorageError(f"the bodies {name!r} of {self._frames.run.path} have no stored shape")
            for row in range(rows):
                yield Placed(
                    name,
                    int(columns["RowId.id"][row]),
                    unit_ball() if hulls is None else self._mesh(name, int(hulls[row])),
                    columns["Position.x"][row].astype(np.float64),
                    columns["Pose.q"][row].astype(np.float64),
                    1.0 if balls is None else float(balls[row]),
                    velocity[row].astype(np.float64),
                    angular_velocity[row].astype(np.float64),
                    balls is not None,
                    bool(inside_out[row]),
                )

    def _mesh(self, name: str, hull: int) -> Mesh:
        meshes = self._meshes[name]
        if not 0 <= hull < len(meshes):
            raise StorageError(f"body {name!r} of {self._frames.run.path} has shape {hull} of {len(meshes)}")
        return meshes[hull]


def _meshes(
    vertices: np.ndarray,
    loops: np.ndarray,
    loop_start: np.ndarray,
    plane_start: np.ndarray,
    vertex_start: np.ndarray,
) -> list[Mesh]:
    """The polytopes of a HullTable one by one. Raises ValueError or IndexError for what is none."""
    made = []
    for hull in range(len(plane_start) - 1):
        starts = loop_start[plane_start[hull] : plane_start[hull + 1] + 1].astype(np.int64)
        points = vertices[vertex_start[hull] : vertex_start[hull + 1]].astype(np.float64)
        corners = loops[starts[0] : starts[-1]].astype(np.int64)
        if np.diff(starts).min() < 3 or not 0 <= corners.min() <= corners.max() < len(points):
            raise ValueError("a face has corners that are not there")
        made.append(Mesh(points, corners, starts - starts[0]))
    return made


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion (w, x, y, z), which is normalised first."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


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

        def middle(i: int, j: int, middles: dict[tuple[int, int], int] = middles) -> int:
            key = (min(i, j), max(i, j))
            if key not in middles:
                point = vertices[i] + vertices[j]
                vertices.append(point / np.linalg.norm(point))
                middles[key] = len(vertices) - 1
            return middles[key]

        cut = []
        for a, b, c in faces:
            ab, bc, ca = middle(a, b), middle(b, c), middle(c, a)
            cut += [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        faces = cut
    return Mesh(np.array(vertices), np.array(faces).ravel(), np.arange(0, 3 * len(faces) + 1, 3))
