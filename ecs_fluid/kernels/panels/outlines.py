"""Panels of a body in a plane: straight segments of its outline, each a metre wide across the plane.

The ring round such a panel is two vortices across the plane at its ends, of opposite circulation, so that the
sum of an outline's vortices is zero whatever the rings are. Outlines run counterclockwise about the axis
across the plane; ends and centres lie in it.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.panels.panels import Panels

MOST_SEGMENTS = 2048
"""Approximate largest number of segments of one body; a matrix of this many rows is factorised once."""


def outline_of(points: Array, across: int) -> Panels:
    """Segments between points (n, 3) m of a plane, in their order, and from the last to the first."""
    n = len(points)
    corners = np.stack([np.arange(n), np.roll(np.arange(n), -1)], axis=1)
    way = points[corners[:, 1]] - points[corners[:, 0]]
    area = np.sqrt((way**2).sum(axis=1))
    normal = np.cross(way, np.eye(3)[across]) / area[:, None]
    center = 0.5 * (points[corners[:, 0]] + points[corners[:, 1]])
    return Panels(
        vertices=points,
        corners=corners,
        edges=corners[:, :1],
        lines=np.tile(np.eye(3)[across], (n, 1)),
        # The vortex at a point closes the ring of the segment that ends there, and opens the next one.
        sides=np.stack([np.roll(np.arange(n), 1), np.arange(n)], axis=1),
        center=center,
        normal=normal,
        area=area,
        volume=0.5 * float((area * (normal * center).sum(axis=1)).sum()),
    )


def disk_outline(radius: float, edge: float, across: int) -> Panels:
    """A regular polygon with the area of a disk and sides of about `edge` m.

    Sides come in fours, so that it is the same from each end of both axes of the plane.
    """
    n = 4 * int(np.clip(np.ceil(np.pi * radius / (2 * edge)), 2, MOST_SEGMENTS // 4))
    turn = 2 * np.pi / n
    out, phi = radius * np.sqrt(turn / np.sin(turn)), turn * np.arange(n)
    points = np.zeros((n, 3))
    points[:, (across + 1) % 3], points[:, (across + 2) % 3] = out * np.cos(phi), out * np.sin(phi)
    return outline_of(points, across)


def prism_outline(hulls: Hulls, hull: int, edge: float, across: int) -> Panels:
    """Sides of a prism across the plane, in equal parts of at most `edge` m, or as many as are allowed."""
    corners = hulls.vertices[hulls.vertex_start[hull] : hulls.vertex_start[hull + 1]]
    low = corners[corners[:, across] < 0.0]
    # Convex, with the origin inside.
    low = low[np.argsort(np.arctan2(low[:, (across + 2) % 3], low[:, (across + 1) % 3]), kind="stable")]
    low[:, across] = 0.0
    way = np.roll(low, -1, axis=0) - low
    size = np.sqrt((way**2).sum(axis=1))
    least = max(edge, float(size.sum()) / MOST_SEGMENTS)
    parts = np.maximum(np.ceil(size / least - 1e-9).astype(np.int64), 1)
    points = [p + np.arange(k)[:, None] / k * w for p, w, k in zip(low, way, parts, strict=True)]
    return outline_of(np.concatenate(points), across)


def segment_layers(panels: Panels) -> tuple[Array, Array]:
    """S in m and K in 1 (n, n): potentials of the segments j at the centres i, by -ln(r/L)/(2 pi).

    L is the length of the outline, which makes no difference where as much flows in as out. With h the
    distance of a centre behind the line of a segment, and s the way along it from there, the segment is seen
    at the angle atan(s/h), from end to end, and int ln(r) ds = s (ln(r) - 1) + h atan(s/h).
    """
    start, end = (panels.vertices[panels.corners[:, k]] for k in (0, 1))
    along = (end - start) / panels.area[:, None]
    # The axes of the plane alone: a third number would triple the time.
    first, second = np.flatnonzero(along.any(axis=0))

    def part(ends: Array, way: Array) -> Array:
        """Parts (n, n) along the ways of segments j of what leads from the centres i to their ends."""
        x, y = ((ends[:, k] - panels.center[:, k, None]) * way[:, k] for k in (first, second))
        return np.asarray(x + y)

    height = part(start, panels.normal)
    np.fill_diagonal(height, 0.0)
    s0, s1 = part(start, along), part(end, along)
    angle = np.arctan2(height * (s1 - s0), height**2 + s0 * s1)
    np.fill_diagonal(angle, 0.0)
    size = panels.area.sum()
    logs = [s * (0.5 * np.log((s**2 + height**2) / size**2) - 1.0) for s in (s0, s1)]
    return -(logs[1] - logs[0] + height * angle) / (2 * np.pi), -angle / (2 * np.pi)
