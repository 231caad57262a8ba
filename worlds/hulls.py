"""Convex polytopes made from vertices, from planes, or from the hull of a mesh file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.kernels.mass_properties import mass_properties, triangles_of
from ecs_fluid.kernels.polytope import Hulls

MOST_FACES = 4096
"""Faces a polytope may have; every one of them is looked at for particles that touch it."""

SAME = 1e-9
"""Planes whose normals differ by less, and whose offsets do relative to the size, are one face."""


class Hull(NamedTuple):
    """A polytope in axes about its centre of mass.

    table: one-hull `Hulls`, m. center (3,): where the centre of mass was in the axes of what it was made
    from, m. volume: m^3. inertia (3, 3): per density about the centre, m^5.
    """

    table: Hulls
    center: Array
    volume: float
    inertia: Array


def hull_of_vertices(points: Array) -> Hull:
    """The convex hull of points (n, 3), m.

    Raises RecipeError when the points are fewer than four, not finite, or lie in a plane.
    """
    from scipy.spatial import ConvexHull, QhullError

    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.isfinite(points).all():
        raise RecipeError(
            f"a polytope was given points of shape {points.shape}; at least 4 finite points (n, 3) are needed"
        )
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    size = float(np.abs(points - middle).max())
    try:
        # About its middle and of size 1, so that tolerances mean the same for every hull.
        found = ConvexHull((points - middle) / max(size, 1e-300))
    except (QhullError, ValueError):
        raise RecipeError(
            f"the {len(points)} points of a polytope lie in a plane or on a line; they must enclose a volume"
        ) from None
    vertices = found.points[found.vertices]
    planes = _merged(found.equations)
    if len(planes) > MOST_FACES:
        raise RecipeError(f"the polytope has {len(planes)} faces; at most {MOST_FACES} are allowed")
    loops = [_loop(vertices, plane) for plane in planes]
    return _finished(vertices * size + middle, loops)


def hull_of_planes(planes: Array) -> Hull:
    """The polytope where n . x <= d for all planes (m, 4) of [nx, ny, nz, d]; normals of any length.

    Raises RecipeError when it is empty, flat or unbounded.
    """
    from scipy.optimize import linprog
    from scipy.spatial import HalfspaceIntersection, QhullError

    planes = np.asarray(planes, dtype=np.float64)
    if planes.ndim != 2 or planes.shape[1] != 4 or len(planes) < 4 or not np.isfinite(planes).all():
        raise RecipeError(
            f"planes have shape {planes.shape}; at least 4 finite planes [nx, ny, nz, d] are needed"
        )
    size = np.linalg.norm(planes[:, :3], axis=1)
    if not (size > 0).all():
        raise RecipeError(
            f"plane {int(np.argmin(size))} has no direction; a normal that is not zero is needed"
        )
    n, d = planes[:, :3] / size[:, None], planes[:, 3] / size
    # The centre of the largest ball inside; its radius is unbounded or not positive for bad planes.
    best = linprog(
        [0, 0, 0, -1], A_ub=np.column_stack([n, np.ones(len(n))]), b_ub=d, bounds=[(None, None)] * 4
    )
    reach = 1e-9 * float(np.abs(d).max() + 1e-300)
    inside = np.zeros(4) if best.x is None else best.x
    if best.status == 2 or (best.status == 0 and inside[3] <= reach):
        raise RecipeError(
            "the planes leave no room: normals must point out of the polytope and enclose a volume"
        )
    directions = np.vstack([np.eye(3), -np.eye(3)])
    if best.status != 0 or any(
        linprog(-way, A_ub=n, b_ub=d, bounds=[(None, None)] * 3).status != 0 for way in directions
    ):
        raise RecipeError("the planes leave the polytope open; add planes until they enclose it all round")
    try:
        corners = HalfspaceIntersection(np.column_stack([n, -d]), inside[:3]).intersections
    except QhullError:
        raise RecipeError("the planes do not make a polytope; they are too nearly parallel") from None
    return hull_of_vertices(corners)


def hull_of_mesh(file: str) -> Hull:
    """Convex hull of the points of a mesh file, m: one of the formats `MESHES`.

    A mesh that is not convex is filled up; split it and give its parts as several bodies.

    Raises:
        RecipeError: the file lies outside the world file's folder, has another format, is damaged, or has
            more than `MOST_POINTS` points.
    """
    from ecs_fluid.worlds.files import data_file
    from ecs_fluid.worlds.vtk_files import MESHES, MOST_POINTS, read_vtk

    path = data_file(file)
    if path.suffix.lower() not in MESHES:
        raise RecipeError(f"file = {file!r}: meshes ending in {', '.join(MESHES)} can be read")
    return hull_of_vertices(read_vtk(path, MOST_POINTS)["x"])


def _merged(equations: Array) -> Array:
    """One row [n, d] per face: qhull cuts faces of many corners into triangles of equal planes."""
    kept: list[Array] = []
    for row in equations:
        plane = np.append(row[:3], -row[3])
        if not kept or np.abs(np.array(kept) - plane).max(axis=1).min() > SAME:
            kept.append(plane)
    return np.array(kept)


def _loop(vertices: Array, plane: Array) -> Array:
    """Vertex numbers of a face, counterclockwise seen from outside."""
    normal = plane[:3]
    on = np.flatnonzero(np.abs(vertices @ normal - plane[3]) < 10 * SAME)
    across = vertices[on] - vertices[on].mean(axis=0)
    first = across[0] / np.linalg.norm(across[0])
    angle = np.arctan2(across @ np.cross(normal, first), across @ first)
    return on[np.argsort(angle)]


def _finished(vertices: Array, faces: list[Array]) -> Hull:
    """Recentred table of a closed polytope; planes are fitted to the faces' own corners again."""
    loops = np.concatenate(faces).astype(np.int64)
    loop_start = np.cumsum([0, *(len(face) for face in faces)]).astype(np.int64)
    volume, center, inertia = mass_properties(vertices, triangles_of(loops, loop_start))
    local = vertices - center
    planes = np.array([_plane(local[face]) for face in faces])
    pairs = np.concatenate([np.stack([face, np.roll(face, -1)], axis=1) for face in faces])
    edges = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)
    table = Hulls(
        planes=planes,
        loops=loops,
        loop_start=loop_start,
        vertices=local,
        edges=edges,
        plane_start=np.array([0, len(planes)]),
        vertex_start=np.array([0, len(local)]),
        edge_start=np.array([0, len(edges)]),
        radius=np.array([np.linalg.norm(local, axis=1).max()]),
        inner=np.array([planes[:, 3].min()]),
    )
    return Hull(table, center, volume, inertia)


def _plane(corners: Array) -> Array:
    """[n, d] of a polygon by the sum of its cross products; d reaches its farthest corner."""
    after = np.roll(corners, -1, axis=0)
    normal = np.cross(corners - corners[0], after - corners[0]).sum(axis=0)
    normal /= np.linalg.norm(normal)
    return np.append(normal, (corners @ normal).max())
