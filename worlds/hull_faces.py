"""Faces of a convex hull, merged from the triangles that qhull makes.

Triangles are merged by adjacency, not by comparing planes: the planes of slivers, and of rounded corners, are
unreliable, and a search for corners near a plane may find those of a neighbouring face.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from ecs_fluid.component import Array

FLAT = 1e-6
"""Adjacent triangles belong to one face if the angle between them is below this, rad, or if rounding of the
corners' coordinates alone may have caused the angle."""


def closed_triangles(points: Array, simplices: Array, outward: Array) -> Array | None:
    """Triangles (t, 3), all counterclockwise seen from outside; None if they do not form a closed surface.

    The orientation spreads from the largest triangle to its neighbours: a sliver's normal is unreliable.

    Args:
        points: (n, 3), any unit. simplices: vertex numbers (t, 3), in any sense. outward: normals (t, 3).
    """
    triangles = np.array(simplices, dtype=np.int64)
    at_edge: dict[tuple[int, int], list[int]] = {}
    for number, corners in enumerate(triangles.tolist()):
        for a, b in _sides(corners):
            at_edge.setdefault((min(a, b), max(a, b)), []).append(number)
    if any(len(pair) != 2 for pair in at_edge.values()):
        return None
    normals = _normals(points, triangles)
    first = int(np.argmax(np.linalg.norm(normals, axis=1)))
    if normals[first] @ outward[first] < 0.0:
        triangles[first] = triangles[first][::-1]
    seen, left = {first}, [first]
    while left:
        here = left.pop()
        for a, b in _sides(triangles[here].tolist()):
            there = sum(at_edge[min(a, b), max(a, b)]) - here
            if there not in seen:
                if (a, b) in _sides(triangles[there].tolist()):
                    triangles[there] = triangles[there][::-1]
                seen.add(there)
                left.append(there)
    sides = {side for corners in triangles.tolist() for side in _sides(corners)}
    return triangles if len(seen) == len(triangles) and len(sides) == 3 * len(triangles) else None


def face_loops(points: Array, triangles: Array, outward: Array, rounding: Array) -> list[Array]:
    """Vertex numbers of each face, counterclockwise seen from outside, in the order of the triangles.

    A face is its largest triangle and all triangles that are reached from it over common sides and lie in its
    plane: the corner opposite to that side is off the plane by less than FLAT times its distance from the
    side, or than `rounding`.

    Args:
        points: (n, 3), any unit. triangles: of `closed_triangles`. outward: their unit normals (t, 3), also
            of slivers. rounding: by how much each coordinate may be wrong (3,), of that unit.
    """
    normals = _normals(points, triangles)
    area = np.linalg.norm(normals, axis=1)
    left_of = {side: t for t, row in enumerate(triangles.tolist()) for side in _sides(row)}
    size = float(np.ptp(points[triangles], axis=(0, 1)).max())
    assigned = np.zeros(len(triangles), dtype=bool)
    loops: list[tuple[int, Array]] = []
    for seed in np.argsort(-area, kind="stable").tolist():
        if assigned[seed]:
            continue
        assigned[seed] = True
        normal = normals[seed] / max(area[seed], np.finfo(float).tiny)
        base, noise = points[triangles[seed, 0]], 4.0 * float(np.abs(normal) @ rounding) + 1e-15 * size
        face = [seed]
        for triangle in face:
            for a, b in _sides(triangles[triangle].tolist()):
                other = left_of[b, a]
                if assigned[other]:
                    continue
                far = points[triangles[other].sum() - a - b]
                height = area[other] / max(float(np.linalg.norm(points[b] - points[a])), np.finfo(float).tiny)
                # A sliver about as thin as the rounding has no normal; the normals of others must agree.
                alike = height <= 16.0 * noise or normals[other] @ normal > 0.9 * area[other]
                if alike and abs(float((far - base) @ normal)) <= FLAT * height + noise:
                    assigned[other] = True
                    face.append(other)
        outline = _outline(triangles[face].tolist())
        if outline is None:
            loops += [(t, triangles[t]) for t in face]
        else:
            loops.append((min(face), _started(points, outline, outward[min(face)])))
    return [loop for _, loop in sorted(loops, key=itemgetter(0))]


def _started(points: Array, loop: Array, normal: Array) -> Array:
    """The loop, begun with the first corner after the place opposite to the corner of the lowest number.

    Code that cuts a face into triangles begins there, so it must not depend on how the face was found.
    """
    on = np.sort(loop)
    middle = points[on].mean(axis=0)
    first = (points[on[0]] - middle) / np.linalg.norm(points[on[0]] - middle)
    across = points[loop] - middle
    angle = np.arctan2(across @ np.cross(normal, first), across @ first)
    return np.roll(loop, -int(np.argmin(angle)))


def _sides(corners: list[int]) -> list[tuple[int, int]]:
    a, b, c = corners
    return [(a, b), (b, c), (c, a)]


def _normals(points: Array, triangles: Array) -> Array:
    """Twice the area vectors (t, 3)."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _outline(triangles: list[list[int]]) -> Array | None:
    """Vertices around connected triangles; None if their rim is not one simple loop."""
    sides = {side for corners in triangles for side in _sides(corners)}
    rim = {a: b for a, b in sides if (b, a) not in sides}
    if not rim or len(rim) != sum((b, a) not in sides for a, b in sides):
        return None
    start = min(rim)
    loop = [start]
    while rim[loop[-1]] != start:
        loop.append(rim[loop[-1]])
    return np.array(loop) if len(loop) == len(rim) else None
