"""Meshes of triangles from files, and which places lie inside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError, warn
from ecs_fluid.worlds.files import data_file
from ecs_fluid.worlds.vtk_files import MESHES, MOST_POINTS, read_vtk

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.winding_numbers import Columns

MOST_LOOKED_AT = 3_000_000_000
"""Most pairs of a place and a triangle near its upward ray to examine, which takes about a minute."""

FLAT = 1e-7
"""A volume up to this, over area times extent, may be rounding: corners are often stored in single precision.
For a closed plate the ratio is half of its thickness over its width."""


class Mesh(NamedTuple):
    """Points (n, 3) and triangles (m, 3, 3), m.

    volume, m^3, and center (3,), m: of the space inside the triangles, if they close; NaN without triangles.
    """

    x: Array
    triangles: Array
    volume: float
    center: Array


def read_mesh(file: str, scale: float) -> Mesh:
    """Read a mesh file, scaled by `scale`, from the world file's folder: one of the formats `MESHES`.

    Raises:
        RecipeError: the file lies outside that folder, has another format, is damaged, or has more than
            `MOST_POINTS` points.
    """
    path = data_file(file)
    if path.suffix.lower() not in MESHES:
        raise RecipeError(f"file = {file!r}: meshes ending in {', '.join(MESHES)} can be read")
    read = read_vtk(path, MOST_POINTS)
    x, triangles = scale * read["x"], scale * read["triangles"]
    return Mesh(x, triangles, *_enclosed(triangles))


def _enclosed(triangles: Array) -> tuple[float, Array]:
    """Volume, m^3, and centre (3,), m, of the space inside triangles (m, 3, 3); NaN without any."""
    from ecs_fluid.kernels.bodies.mass_properties import mass_properties

    if not len(triangles):
        return math.nan, np.full(3, math.nan)
    with np.errstate(all="ignore"):  # code that needs the volume checks it
        corners = np.arange(3 * len(triangles)).reshape(-1, 3)
        volume, center, _ = mass_properties(triangles.reshape(-1, 3), corners)
    return volume, center


class Edges(NamedTuple):
    """Sides of triangles, those of no length left out: a row for each.

    triangle (k,): whose side it is. edge (k,): the edge, of `number`, that it shares with sides
    between the same points. way (k,): 1 or -1, in which direction it passes that edge.
    """

    triangle: Array
    edge: Array
    way: Array
    number: int


def _edges(triangles: Array) -> Edges:
    """The sides of triangles (m, 3, 3)."""
    from ecs_fluid.kernels.compiled.columns import equal_rows

    point = equal_rows(list(triangles.reshape(-1, 3).T))[1].reshape(-1, 3)
    ends = np.stack([point, np.roll(point, -1, axis=1)], axis=-1).reshape(-1, 2)
    triangle = np.flatnonzero(ends[:, 0] != ends[:, 1])
    ends = ends[triangle]
    first, edge = equal_rows(list(np.sort(ends, axis=1).T))
    return Edges(triangle // 3, edge, np.where(ends[:, 0] < ends[:, 1], 1, -1), len(first))


def closed_surfaces(mesh: Mesh, file: str) -> list[Mesh]:
    """The closed surfaces of a mesh file, one after the other, as programs write them that cut up meshes.

    A surface ends where each of its edges has been passed as often in one direction as in the other. So
    surfaces may touch, and share points and edges.
    """
    corners = mesh.triangles
    flat = np.any([(corners[:, k] == corners[:, k - 1]).all(axis=1) for k in range(3)], axis=0)
    triangles = corners[~flat]
    if not len(triangles):
        raise RecipeError(
            f"file = {file!r} cannot be cut into parts: it has no faces, or all of them have corners in one "
            "place; far from the origin, single precision moves close corners together"
        )
    edges = _edges(triangles)
    # How often each edge is passed in excess in one direction, after each of its sides and before it.
    order = np.lexsort((edges.triangle, edges.edge))
    way, edge = edges.way[order], edges.edge[order]
    excess = np.cumsum(way)
    begins = np.flatnonzero(np.diff(edge, prepend=-1))
    excess -= (excess - way)[begins][edge]
    change = np.abs(excess) - np.abs(excess - way)
    loose = np.cumsum(np.bincount(edges.triangle[order], change, len(triangles)))
    ends = np.flatnonzero(loose == 0) + 1
    closed = int(ends[-1]) if len(ends) else 0
    if closed < len(triangles):
        raise RecipeError(
            f"file = {file!r} cannot be cut into parts: it needs closed surfaces one after the other, whose "
            f"faces all face outward; {len(ends)} of them are closed, and its last "
            f"{len(triangles) - closed:,} triangles do not close"
        )
    pieces = np.split(triangles, ends[:-1])
    return [Mesh(piece.reshape(-1, 3), piece, *_enclosed(piece)) for piece in pieces]


def check_closed(mesh: Mesh, file: str) -> None:
    """Refuse a mesh without an inside; warn of sides of triangles without exactly one neighbour."""
    if not abs(mesh.volume) > FLAT * _largest_volume(mesh.triangles):
        raise RecipeError(
            f"file = {file!r} cannot be filled: its faces enclose no volume, or those that face inward "
            "enclose as much as those that face outward; a closed mesh whose faces all face outward is "
            "needed"
        )
    edges = _edges(mesh.triangles)
    # In a closed mesh each side occurs once in each direction: else there is a hole, or a reversed face.
    loose = int(np.count_nonzero(np.bincount(edges.edge, edges.way, edges.number)))
    if loose:
        warn(
            f"file = {file!r}: the mesh is not closed, or not all of its faces face outward: {loose:,} of "
            f"{edges.number:,} edges do not join two faces; particles above or below them may be misplaced"
        )


def inside(columns: Columns, x: Array, file: str) -> Array:
    """Mask (n,) of the places x (n, 3), m, inside the mesh: those around which its triangles wind."""
    from ecs_fluid.kernels.bodies.winding_numbers import triangles_tested, windings

    if (pairs := triangles_tested(x, columns)) > MOST_LOOKED_AT:
        raise RecipeError(
            f"file = {file!r}: {len(x):,} places and {len(columns.faces):,} triangles make {pairs:.2g} "
            f"pairs, but at most {MOST_LOOKED_AT:.2g} are allowed; use larger cells or a simpler mesh"
        )
    times = windings(x, columns)
    out, into = int(np.count_nonzero(times > 0)), int(np.count_nonzero(times < 0))
    if out and into:
        warn(
            f"file = {file!r}: not all of its faces face outward: {out:,} of {len(x):,} places lie within "
            f"faces that face outward and {into:,} within faces that face inward; all are filled, but the "
            "centre of mass is that of the difference"
        )
    return np.asarray(times != 0)


def _largest_volume(triangles: Array) -> float:
    """Area of all triangles (m, 3, 3) times their largest extent, m^3: 6 times that of a ball."""
    if not len(triangles):
        return 0.0
    a, b, c = (triangles[:, k] for k in range(3))
    with np.errstate(all="ignore"):
        area = 0.5 * np.sqrt((np.cross(b - a, c - a) ** 2).sum(axis=1)).sum()
        return float(area * np.ptp(triangles, axis=(0, 1)).max())
