"""Bodies in pictures: balls and polytopes as shaded surfaces, containers as the lines of their edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyvista as pv

from ecs_fluid.exports.bodies import Mesh, Placed, Polytopes, depth_in_solids, placed, polytopes
from ecs_fluid.viz.columns import Array, Frame


def hulls_in(world: Any) -> dict[str, list[Mesh]]:
    """The polytopes of a world's entities."""
    from ecs_fluid.components.bodies import HullTable

    return polytopes(
        {
            f"{entity.name}/HullTable.{field.name}": array
            for entity in world.entities
            if HullTable in entity
            for field, array in entity[HullTable].items()
        }
    )


def bodies_in(frame: Frame, hulls: Polytopes) -> Iterator[tuple[str, list[Placed]]]:
    """The bodies of a frame that can be drawn: balls, and polytopes whose shapes are known."""
    for name, columns in frame.items():
        somewhere = "Pose.q" in columns and ("Pose.x" in columns or "Position.x" in columns)
        if somewhere and len(columns["Pose.q"]) and ("BallShape.radius" in columns or name in hulls):
            yield name, list(placed(name, columns, hulls.get(name, ())))


def extent(bodies: Sequence[Placed]) -> Array:
    """Points (m, 3) m whose box holds the bodies."""
    ends = np.array([[-1.0], [1.0]])
    return np.concatenate([body.x + body.scale * ends if body.ball else body.vertices for body in bodies])


def fluid_within(bodies: Sequence[Placed]) -> Callable[[Array], Array] | None:
    """A function from points (m, 3) m to a mask of those in the fluid; None if there are no bodies.

    In the fluid means inside a container, if there are any, and in no solid body.
    """
    if not bodies:
        return None

    return lambda x: depth_in_solids(bodies, x) <= 0.0


def surface(bodies: Sequence[Placed]) -> pv.PolyData | None:
    """Faces of all solid polytopes as one mesh of flat polygons; None if there are none."""
    solid = [body for body in bodies if not (body.ball or body.container)]
    if not solid:
        return None
    # Every face has separate corners, so that it is shaded uniformly.
    points = np.concatenate([body.vertices[body.mesh.corners] for body in solid])
    sizes = np.concatenate([body.mesh.sizes for body in solid])
    cells = np.insert(np.arange(len(points)), np.cumsum(sizes) - sizes, sizes)
    return pv.PolyData(points.astype(np.float32), cells)


def wires(bodies: Sequence[Placed]) -> pv.PolyData | None:
    """Edges of all containers as lines; None if there are none."""
    containers = [body for body in bodies if body.container]
    if not containers:
        return None
    first = np.cumsum([0, *(len(body.mesh.vertices) for body in containers)])
    pairs = [body.mesh.edges + start for body, start in zip(containers, first, strict=False)]
    cells = np.insert(np.concatenate(pairs), 0, 2, axis=1)
    points = np.concatenate([body.vertices for body in containers])
    return pv.PolyData(points.astype(np.float32), lines=cells.ravel())
