"""Liquid made of particles as one glossy surface, with foam where it is torn or meets something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ecs_fluid.exports.bodies import Placed
from ecs_fluid.exports.particle_surface import below, mixed, surface_of_particles
from ecs_fluid.fluid import EARTH
from ecs_fluid.viz.columns import Array, Columns

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

NEIGHBOURS = 32  # within two spacings, in a full lattice
FOAM = (0.93, 0.96, 0.98)
DROP = 0.3  # radius of a lonely particle of liquid, in spacings
# Whitewater: radius of a particle of each kind, and how far it whitens the surface, in spacings; how much one
# of each kind does there, and at most how many are looked at.
DROPS, COVER = (0.06, 0.07, 0.05), 1.0
WHITENS, SEEN = (0.0, 0.15, 0.1), 32
# Where foam begins, and where all is foam: relative speed over that of Hirt's eddies, drops among neighbours.
STIRRED, TORN = (0.35, 0.85), (0.05, 0.2)


def liquid_surface(
    x: Array, spacing: float, bodies: Sequence[Placed] = ()
) -> tuple[pv.PolyData, NDArray[np.bool_]]:
    """Mesh with normals, and mask (n,) of the drops; see `exports.particle_surface`."""
    found = surface_of_particles(x, spacing, bodies)
    if not len(found.points):
        return pv.PolyData(), found.drops
    corners = np.column_stack((np.full(len(found.triangles), 3), found.triangles))
    mesh = pv.PolyData(found.points, corners.ravel())
    mesh.point_data["Normals"] = found.normals
    mesh.point_data.active_normals_name = "Normals"
    return mesh, found.drops


def foam(x: Array, u: Array, drops: NDArray[np.bool_], spacing: float, rows: Rows) -> Vector:
    """Share of foam, 0 to 1, of the particles `rows` (k,) among those at `x` (n, 3) m with `u` (n, 3) m/s.

    Foam is where neighbours, up to two spacings away, near or leave each other fast: liquid that is torn or
    meets something. What moves as a whole, or turns as a whole, is clear. `drops` that are alone are spray,
    and white; those near others, and what has many of them for neighbours, are white if they are fast. After
    the trapped air and the crests of Ihmsen et al., Unified spray, foam and air bubbles for particle-based
    fluids (2012), with this frame alone.

    Fast is a share of the speed sqrt(g L + s / L) of eddies as large as a spacing L from which water takes up
    air, as their pressure is above that of weight and surface tension (s = 7.3e-5 m^3/s^2 for water). Source:
    C. W. Hirt, Modeling Turbulent Entrainment of Air at a Free Surface, Flow Science TN61 (2003).
    """
    x, u = np.asarray(x, np.float64), np.asarray(u, np.float64)
    near, reach = min(NEIGHBOURS + 1, len(x)), 2.0 * spacing
    distance, other = cKDTree(x).query(x[rows], k=[*range(1, near + 1)], distance_upper_bound=reach)
    known = np.isfinite(distance) & (distance > 0.0)
    other = np.where(known, other, rows[:, None])
    weight = np.where(known, 1.0 - distance / reach, 0.0)
    apart, faster = x[other] - x[rows, None], u[other] - u[rows, None]
    change = np.abs(np.einsum("ijk,ijk->ij", apart, faster)) / np.where(known, distance, 1.0)
    crowd = weight.sum(axis=1)
    typical = np.sqrt(EARTH * spacing + 7.3e-5 / spacing)
    stirred = _rise((weight * change).sum(axis=1) / np.where(crowd > 0.0, crowd, 1.0) / typical, STIRRED)
    flying = _rise(np.linalg.norm(u[rows], axis=1) / typical, STIRRED)
    torn = _rise((known & drops[other]).sum(axis=1) / np.maximum(known.sum(axis=1), 1), TORN)
    spray = 1.0 - np.minimum(crowd, 1.0) * (1.0 - flying)
    whole = 1.0 - (1.0 - stirred) * (1.0 - torn * flying)
    return np.where(drops[rows], spray, whole)


def _rise(value: Vector, ends: tuple[float, float]) -> Vector:
    """From 0 at the first of two ends to 1 at the second, smoothly."""
    share = np.clip((value - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


def surface_colours(
    points: Array,
    x: Array,
    u: Array,
    drops: NDArray[np.bool_],
    spacing: float,
    water: Array,
    whitewater: Sequence[Columns],
) -> Vector:
    """Colours (m, 3) at points (m, 3) m of a surface, whose particles at `x` (n, 3) m have colours `water`.

    It is white where foam lies, or, without whitewater, where it is torn.
    """
    if not whitewater:
        return foaming(points, x, u, drops, spacing, water)
    colours = mixed(points, x, drops, water)
    for foamy in whitewater:
        colours = whitened(points, foamy, spacing, colours)
    return colours


def drop_colours(
    x: Array, u: Array, drops: NDArray[np.bool_], spacing: float, water: Array, white: Array
) -> Vector:
    """Colours (d, 3) of the drops among particles at `x` (n, 3) m: `water` (n, 3), and `white` by `foam`."""
    share = foam(x, u, drops, spacing, np.flatnonzero(drops))[:, None]
    return np.asarray((1.0 - share) * water[drops] + share * white[drops])


def foaming(
    points: Array, x: Array, u: Array, drops: NDArray[np.bool_], spacing: float, water: Array
) -> Vector:
    """Colours (m, 3) at points (m, 3) m of a surface: those `water` (n, 3) of its particles, and foam."""
    near = below(points, x, drops)
    rows, place = np.unique(near, return_inverse=True)
    share = foam(x, u, drops, spacing, rows)[place].reshape(near.shape).mean(axis=1)[:, None]
    return np.asarray((1.0 - share) * np.asarray(water)[near].mean(axis=1) + share * np.array(FOAM))


def whitened(points: Array, whitewater: Columns, spacing: float, colours: Vector) -> Vector:
    """Colours (m, 3) at points (m, 3) m of a surface, whitened by a population of whitewater.

    1 - exp(-sum) of it is foam; each particle adds the more, the nearer it lies: bubbles shine through.
    """
    x, kind = np.asarray(whitewater["Position.x"], np.float64), whitewater["Whitewater.kind"]
    if not len(x) or not len(points):
        return colours
    reach = COVER * spacing
    near = min(SEEN, len(x))
    distance, other = cKDTree(x).query(points, k=[*range(1, near + 1)], distance_upper_bound=reach)
    known = np.isfinite(distance)
    weight = np.where(known, 1.0 - (np.where(known, distance, 0.0) / reach) ** 2, 0.0)
    amount = (weight * np.array(WHITENS)[kind[np.where(known, other, 0)]]).sum(axis=1)
    share = -np.expm1(-amount)[:, None]
    return np.asarray((1.0 - share) * colours + share * np.array(FOAM))
