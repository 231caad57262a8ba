"""Bodies in pictures: balls and polytopes as shaded surfaces, containers as the lines of their edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

from ecs_fluid.viz.columns import Columns, Frame
from ecs_fluid.viz.style import Colour

Array = NDArray[Any]
Hulls = Mapping[str, Mapping[str, Array]]
"""Polytopes of a world by entity: the columns of its HullTable, as `hulls_of` reads them."""

ORIENTATION, PLACES = "Pose.q", ("Pose.x", "Position.x")
SOLID, EDGE = (0.72, 0.7, 0.66), (0.75, 0.8, 0.88)


class Bodies(NamedTuple):
    """Rigid bodies of one population: places (n, 3) m, matrices (n, 3, 3), and radii (n,) m of balls, or
    numbers (n,) of polytopes, which of them are containers (n,), and their table."""

    x: Array
    turn: Array
    radius: Array | None
    hull: Array
    container: Array
    table: Mapping[str, Array]


def is_body(columns: Columns) -> bool:
    """Rows with an orientation are bodies."""
    return ORIENTATION in columns


def hulls_of(arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """The HullTables among ``entity/Component.column`` arrays, such as those of a checkpoint."""
    found: dict[str, dict[str, Array]] = {}
    for label, array in arrays.items():
        name, _, column = label.partition("/")
        if column.startswith("HullTable."):
            found.setdefault(name, {})[column.removeprefix("HullTable.")] = array
    return found


def hulls_in(world: Any) -> dict[str, dict[str, Array]]:
    """The HullTables of a world's entities."""
    from ecs_fluid.components.bodies import HullTable

    return {
        entity.name: {field.name: array for field, array in entity[HullTable].items()}
        for entity in world.entities
        if HullTable in entity
    }


def bodies_in(frame: Frame, hulls: Hulls) -> Iterator[tuple[str, Bodies]]:
    """The bodies of a frame that can be drawn: balls, and polytopes whose table is known."""
    for name, columns in frame.items():
        if not is_body(columns) or not len(columns[ORIENTATION]):
            continue
        place = next((column for column in PLACES if column in columns), None)
        if place is None:
            continue
        n = len(columns[ORIENTATION])
        hull = np.asarray(columns.get("HullShape.hull", np.zeros(n, np.int64)))
        container = np.asarray(columns.get("HullShape.container", np.zeros(n, np.int64)))
        radius = columns.get("BallShape.radius")
        if radius is None and name not in hulls:
            continue
        yield (
            name,
            Bodies(
                np.asarray(columns[place], np.float64),
                matrices(np.asarray(columns[ORIENTATION], np.float64)),
                None if radius is None else np.asarray(radius, np.float64),
                hull,
                container,
                hulls.get(name, {}),
            ),
        )


def matrices(q: Array) -> Array:
    """Rotation matrices (n, 3, 3) of unit quaternions (n, 4)."""
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def extent(bodies: Bodies) -> Array:
    """Points (m, 3) m whose box holds the bodies."""
    if bodies.radius is not None:
        reach = bodies.radius[:, None]
        return np.concatenate([bodies.x - reach, bodies.x + reach])
    return np.concatenate([corners(bodies, row) for row in range(len(bodies.x))])


def corners(bodies: Bodies, row: int) -> Array:
    """Corners (v, 3) m of a polytope where it is."""
    first, last = bodies.table["vertex_start"][bodies.hull[row] : bodies.hull[row] + 2]
    local = np.asarray(bodies.table["vertices"][first:last], np.float64)
    return np.asarray(local @ bodies.turn[row].T + bodies.x[row])


def surface(bodies: Sequence[Bodies]) -> pv.PolyData | None:
    """Faces of all solid polytopes as one mesh of flat polygons; None if there are none."""
    points: list[Array] = []
    faces: list[Array] = []
    count = 0
    for group in bodies:
        if group.radius is not None:
            continue
        table = group.table
        for row in np.flatnonzero(group.container == 0):
            where, h = corners(group, int(row)), group.hull[row]
            for k in range(int(table["plane_start"][h]), int(table["plane_start"][h + 1])):
                # Corners of their own for every face, so that its shade is even.
                loop = table["loops"][table["loop_start"][k] : table["loop_start"][k + 1]]
                points.append(where[loop])
                faces.append(np.concatenate([[len(loop)], count + np.arange(len(loop))]))
                count += len(loop)
    if not points:
        return None
    return pv.PolyData(np.concatenate(points).astype(np.float32), np.concatenate(faces))


def wires(bodies: Sequence[Bodies]) -> pv.PolyData | None:
    """Edges of all containers as lines; None if there are none."""
    points: list[Array] = []
    lines: list[Array] = []
    count = 0
    for group in bodies:
        if group.radius is not None:
            continue
        for row in np.flatnonzero(group.container == 1):
            where, h = corners(group, int(row)), group.hull[row]
            first, last = group.table["edge_start"][h : h + 2]
            edges = np.asarray(group.table["edges"][first:last]) + count
            points.append(where)
            lines.append(np.column_stack([np.full(len(edges), 2), edges]).ravel())
            count += len(where)
    if not points:
        return None
    return pv.PolyData(np.concatenate(points).astype(np.float32), lines=np.concatenate(lines))


class Mesh:
    """A mesh of one colour, shaded, or lines."""

    def __init__(self, colour: Colour, width: float = 0.0) -> None:
        self._data = pv.PolyData()
        mapper = vtkPolyDataMapper()
        mapper.SetInputData(self._data)
        mapper.ScalarVisibilityOff()
        self.actor = vtkActor()
        self.actor.SetMapper(mapper)
        material = self.actor.GetProperty()
        material.SetColor(*colour)
        if width:
            material.LightingOff()
            material.SetLineWidth(width)
        else:
            material.SetInterpolationToFlat()
            material.SetAmbient(0.22)
            material.SetDiffuse(0.85)
            material.SetSpecular(0.1)

    def update(self, mesh: pv.PolyData) -> None:
        """Draw `mesh`."""
        self._data.copy_from(mesh, deep=False)
