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
    from ecs_fluid.kernels.bodies.mass_properties import mass_properties

    path = data_file(file)
    if path.suffix.lower() not in MESHES:
        raise RecipeError(f"file = {file!r}: meshes ending in {', '.join(MESHES)} can be read")
    read = read_vtk(path, MOST_POINTS)
    x, triangles = scale * read["x"], scale * read["triangles"]
    if not len(triangles):
        return Mesh(x, triangles, math.nan, np.full(3, math.nan))
    with np.errstate(all="ignore"):  # code that needs the volume checks it
        corners = np.arange(3 * len(triangles)).reshape(-1, 3)
        volume, center, _ = mass_properties(triangles.reshape(-1, 3), corners)
    return Mesh(x, triangles, volume, center)


def check_closed(mesh: Mesh, file: str) -> None:
    """Refuse a mesh without an inside; warn of sides of triangles without exactly one neighbour."""
    from ecs_fluid.kernels.compiled.columns import equal_rows

    if not abs(mesh.volume) > FLAT * _largest_volume(mesh.triangles):
        raise RecipeError(
            f"file = {file!r} cannot be filled: its faces enclose no volume, or those that face inward "
            "enclose as much as those that face outward; a closed mesh whose faces all face outward is "
            "needed"
        )
    number = equal_rows(list(mesh.triangles.reshape(-1, 3).T))[1].reshape(-1, 3)
    ways = np.stack([number, np.roll(number, -1, axis=1)], axis=-1).reshape(-1, 2)
    ways = ways[ways[:, 0] != ways[:, 1]]
    # In a closed mesh each side occurs once in each direction: else there is a hole, or a reversed face.
    sides, which = equal_rows(list(np.sort(ways, axis=1).T))
    sense = np.where(ways[:, 0] < ways[:, 1], 1, -1)
    loose = int(np.count_nonzero(np.bincount(which, sense, len(sides))))
    if loose:
        warn(
            f"file = {file!r}: the mesh is not closed, or not all of its faces face outward: {loose:,} of "
            f"{len(sides):,} edges do not join two faces; particles above or below them may be misplaced"
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
