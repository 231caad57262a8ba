"""Convex polytopes made from vertices, from planes, or from the hull of a mesh file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError, warn
from ecs_fluid.worlds.hull_faces import closed_triangles, face_loops
from ecs_fluid.worlds.meshes import closed_surfaces, read_mesh

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls

MOST_FACES = 4096
"""Most faces of a polytope: every one is checked for particles that touch the polytope."""

COARSE = 0.05
"""Largest rounding of corners over the mean width of a polytope (its volume over its surface): here its
planes are wrong by some 5 % of its volume, and beyond it, separate faces are taken for one."""

HOLLOW = 1e-3
"""Depth of a given corner inside the hull, over the largest extent, above which there is a warning."""

FILLED = 1.02
"""Volume of a mesh's hull over that within its faces above which there is a warning."""

MOST_CORNERS = 8 * MOST_FACES
"""Most corners of a hull before rounding errors in its faces are corrected, which takes 0.3 ms per corner. A
polytope has at most twice as many corners as faces."""


class Hull(NamedTuple):
    """A polytope in axes about its centre of mass.

    table: `Hulls` with this one hull, m. center (3,): the centre of mass in the axes of the points or planes
    that it was made from, m. volume: m^3. inertia (3, 3): about the centre, over the density, m^5.
    """

    table: Hulls
    center: Array
    volume: float
    inertia: Array


def hull_of_vertices(points: Array, flat: str = "") -> Hull:
    """The convex hull of points (n, 3), m.

    Raises RecipeError if there are fewer than four points, if they are not finite, or if they lie in a plane;
    in that case the message is `flat`.
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
        # Centred and scaled to size 1, so that tolerances mean the same for every hull.
        hull = ConvexHull((points - middle) / max(size, 1e-300))
    except (QhullError, ValueError):
        said = (
            f"the {len(points)} points of a polytope lie in a plane or on a line; they must enclose a volume"
        )
        raise RecipeError(flat or said) from None
    if len(hull.vertices) > MOST_CORNERS:
        corners = f"{len(hull.vertices):,} corners; at most {MOST_CORNERS:,} are allowed"
        raise RecipeError(f"the hull of a polytope has {corners}")
    rounding = _rounding(points) / size
    if rounding.max() > COARSE * hull.volume / hull.area:
        raise RecipeError(
            f"a polytope is too thin for its distance from the origin, at which its corners are accurate to "
            f"{size * rounding.max():.2g} m only; move it to the origin, and give it a center"
        )
    triangles = closed_triangles(hull.points, hull.simplices, hull.equations[:, :3])
    if triangles is None:
        # Rounding errors may have moved corners such that no four lie in a plane.
        hull = ConvexHull(hull.points, qhull_options="QJ Pp")
        triangles = closed_triangles(hull.points, hull.simplices, hull.equations[:, :3])
    if triangles is None:
        raise RecipeError(
            f"the hull of the {len(points)} points of a polytope does not close: some lie too close together"
        )
    loops = face_loops(hull.points, triangles, hull.equations[:, :3], rounding)
    if len(loops) > MOST_FACES:
        raise RecipeError(f"the polytope has {len(loops)} faces; at most {MOST_FACES} are allowed")
    return _finished(points, triangles, loops)


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
    # The centre of the largest inscribed ball; its radius is unbounded or not positive for bad planes.
    best = linprog(
        [0, 0, 0, -1], A_ub=np.column_stack([n, np.ones(len(n))]), b_ub=d, bounds=[(None, None)] * 4
    )
    reach = 1e-9 * float(np.abs(d).max() + 1e-300)
    inside = np.zeros(4) if best.x is None else best.x
    if best.status == 2 or (best.status == 0 and inside[3] <= reach):
        raise RecipeError("the planes enclose no volume; normals must point out of the polytope")
    directions = np.vstack([np.eye(3), -np.eye(3)])
    if best.status != 0 or any(
        linprog(-way, A_ub=n, b_ub=d, bounds=[(None, None)] * 3).status != 0 for way in directions
    ):
        raise RecipeError("the planes leave the polytope open; add planes until they enclose it all round")
    try:
        corners = HalfspaceIntersection(np.column_stack([n, -d]), inside[:3]).intersections
    except QhullError:
        raise RecipeError("the planes do not make a polytope, because some are too nearly parallel") from None
    return hull_of_vertices(corners)


def hull_of_mesh(file: str, scale: float = 1.0) -> Hull:
    """Convex hull of the points of a mesh file that `read_mesh` reads, m, scaled by `scale`.

    Hollows of a mesh that is not convex are filled, with a warning; cut it into parts instead.
    """
    mesh = read_mesh(file, scale)
    hull, within = hull_of_vertices(mesh.x), abs(mesh.volume)
    if hull.volume > FILLED * within:
        warn(
            f"file = {file!r}: the mesh is not convex, or not closed: its faces enclose {within:.4g} m^3, "
            f"and the body is its convex hull of {hull.volume:.4g} m^3; cut it into convex parts, and join "
            "these by shape = 'compound'"
        )
    return hull


def hulls_of_mesh(file: str, scale: float, most: int) -> list[Hull]:
    """Convex hulls of the closed surfaces of a mesh file, m, scaled by `scale`; RecipeError above `most`.

    Hollows of surfaces that are not convex are filled, with a warning.
    """
    surfaces = closed_surfaces(read_mesh(file, scale), file)
    inward = [number for number, surface in enumerate(surfaces) if surface.volume < 0]
    if inward and len(inward) < len(surfaces):
        raise RecipeError(
            f"file = {file!r}: closed surface {inward[0]} faces inward, and others do not: a part cannot be "
            "the hollow of another; cut the mesh into parts that are convex"
        )
    if len(surfaces) > most:
        raise RecipeError(
            f"file = {file!r} has {len(surfaces):,} closed surfaces; at most {most:,} are allowed"
        )
    hulls: list[Hull] = []
    for number, surface in enumerate(surfaces):
        try:
            hulls.append(hull_of_vertices(surface.x))
        except RecipeError as error:
            raise RecipeError(f"file = {file!r}, closed surface {number}: {error}") from None
    within = [abs(surface.volume) for surface in surfaces]
    hollow = [k for k, hull in enumerate(hulls) if hull.volume > FILLED * within[k]]
    if hollow:
        worst = max(hollow, key=lambda k: hulls[k].volume - within[k])
        warn(
            f"file = {file!r}: {len(hollow)} of its {len(hulls)} closed surfaces are not convex, above all "
            f"number {worst}: its faces enclose {within[worst]:.4g} m^3, and the part is its "
            f"convex hull of {hulls[worst].volume:.4g} m^3; cut the mesh into parts that are convex"
        )
    return hulls


def placed(hull: Hull, turn: Array, center: Array) -> Hull:
    """The polytope turned by the matrix `turn` (3, 3), with its centre of mass at `center` (3,) m."""
    table = hull.table
    planes = np.column_stack([table.planes[:, :3] @ turn.T, table.planes[:, 3]])
    table = table._replace(planes=planes, vertices=table.vertices @ turn.T)
    return Hull(table, center, hull.volume, turn @ hull.inertia @ turn.T)


def about(hull: Hull, origin: Array) -> Hulls:
    """The polytope in axes about another `origin` (3,), m, than its centre of mass."""
    planes, arm = hull.table.planes.copy(), hull.center - origin
    planes[:, 3] += planes[:, :3] @ arm
    vertices = hull.table.vertices + arm
    radius = np.array([np.linalg.norm(vertices, axis=1).max()])
    return hull.table._replace(planes=planes, vertices=vertices, radius=radius)


def prism_of(section: Array, across: int) -> Hull:
    """The prism on the convex hull of points (n, 3) m in a plane; volume and inertia are those of a metre.

    The inertia about axes in the plane is that of a thin slice, without the contribution of the length.

    The prism extends 3/4 of its largest extent to either side of the plane, so that everywhere in the plane
    its sides are nearer than its ends. Normals in or across the plane are so exactly.
    """
    points = np.where(np.arange(3) == across, 0.0, section)
    half = 0.75 * float(np.ptp(points, axis=0).max())
    up = half * np.eye(3)[across]
    flat = f"the {len(points)} points of an outline lie on a line; they must enclose an area"
    hull = hull_of_vertices(np.concatenate([points - up, points + up]), flat)
    vertices, planes = hull.table.vertices.copy(), hull.table.planes.copy()
    vertices[:, across] = np.copysign(half, vertices[:, across])
    ends = np.abs(planes[:, across]) > 0.5
    planes[:, across] = np.where(ends, np.sign(planes[:, across]), 0.0)
    planes[ends, 3] = half
    table = hull.table._replace(vertices=vertices, planes=planes)
    volume = hull.volume / (2 * half)
    inertia = hull.inertia / (2 * half)
    # Less int z^2 dV, w^2/12 of the volume.
    slab = volume * (2 * half) ** 2 / 12 * (np.eye(3) - np.diag(np.eye(3)[across]))
    return Hull(table, np.where(np.arange(3) == across, 0.0, hull.center), volume, inertia - slab)


def warn_of_inner_points(points: Array, hull: Hull) -> None:
    """Warn of points (n, 3) m, given as corners, that lie inside their hull, which fills hollows."""
    planes = hull.table.planes
    depth = (planes[:, 3] - (points - hull.center) @ planes[:, :3].T).min(axis=1)
    within = np.flatnonzero(depth > HOLLOW * float(np.ptp(points, axis=0).max()))
    if len(within):
        first = ", ".join(f"{number:g}" for number in points[within[0]])
        warn(
            f"{len(within)} of the {len(points)} points of a body lie inside its convex hull and do not "
            f"change it, the first, [{first}], by {depth[within[0]]:.3g} m; leave them out, or join convex "
            "parts by shape = 'compound'"
        )


def section_of(hull: Hull, across: int) -> Hull:
    """The prism on the section of a polytope by the plane through its centre of mass across an axis."""
    start, end = (hull.table.vertices[hull.table.edges[:, k]] for k in (0, 1))
    low, high = start[:, across], end[:, across]
    cut = low * high < 0.0
    part = (low[cut] / (low[cut] - high[cut]))[:, None]
    level = hull.table.vertices[hull.table.vertices[:, across] == 0.0]
    prism = prism_of(np.concatenate([start[cut] + part * (end[cut] - start[cut]), level]), across)
    center = hull.center + prism.center
    if abs(center[across]) < 1e-12 * prism.table.radius[0]:
        center[across] = 0.0
    return prism._replace(center=center)


def _rounding(points: Array) -> Array:
    """Largest rounding error of each coordinate (3,), m: half a digit, of float32 if all values fit
    float32."""
    single = bool((points == points.astype(np.float32)).all())
    return np.asarray(np.abs(points).max(axis=0) * (2.0**-24 if single else 2.0**-53))


def _finished(points: Array, triangles: Array, faces: list[Array]) -> Hull:
    """The Hull of a closed polytope, about its centre of mass, with planes fitted to the faces' corners."""
    from ecs_fluid.kernels.bodies.mass_properties import mass_properties
    from ecs_fluid.kernels.bodies.polytope import Hulls

    hull, triangles = np.unique(triangles, return_inverse=True)
    volume, center, inertia = mass_properties(points[hull], triangles.reshape(-1, 3))
    corners, loops = np.unique(np.concatenate(faces), return_inverse=True)
    loop_start = np.cumsum([0, *(len(face) for face in faces)]).astype(np.int64)
    local = points[corners] - center
    numbered = [loops[first:last] for first, last in pairwise(loop_start)]
    planes = np.array([_plane(local[face], local) for face in numbered])
    pairs = np.concatenate([np.stack([face, np.roll(face, -1)], axis=1) for face in numbered])
    edges = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)
    table = Hulls(
        planes=planes,
        loops=loops.astype(np.int64),
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


def _plane(corners: Array, vertices: Array) -> Array:
    """[n, d] of a polygon by the sum of its cross products; no vertex lies beyond it."""
    after = np.roll(corners, -1, axis=0)
    normal = np.cross(corners - corners[0], after - corners[0]).sum(axis=0)
    normal /= np.linalg.norm(normal)
    return np.append(normal, (vertices @ normal).max())
