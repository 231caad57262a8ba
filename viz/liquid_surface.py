"""Liquid made of particles as one glossy surface, with foam where it is torn or meets something."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from ecs_fluid.exports.volumes import scatter
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.viz.columns import Array, Columns

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

BLUR = 0.75  # of the particles, in spacings
FULL = 0.5  # at the surface
CELL = 0.5  # of the lattice on which particles are counted, in spacings
REACH = int(4.0 * BLUR / CELL + 0.5) + 1  # of a particle's blur, in cells
BLOCK = 64  # cells along the side of a block of the lattice: 4 MB with its surroundings
FEWEST = 4  # particles that a surface can enclose
LONELY = 4.0  # spacings around a particle without FEWEST in it: there is no surface near, and next to no blur
NEIGHBOURS = 32  # within two spacings, in a full lattice
AROUND = np.array(list(np.ndindex(3, 3, 3))) - 1
FOAM = (0.93, 0.96, 0.98)
# Whitewater: radius of a particle of each kind, and how far it whitens the surface, in spacings; how much one
# of each kind does there, and at most how many are looked at.
DROPS, COVER = (0.06, 0.07, 0.05), 1.0
WHITENS, SEEN = (0.0, 0.15, 0.1), 32
# Where foam begins, and where all is foam: relative speed over that of Hirt's eddies, drops among neighbours.
STIRRED, TORN = (0.35, 0.85), (0.05, 0.2)


def liquid_surface(x: Array, spacing: float) -> tuple[pv.PolyData, NDArray[np.bool_]]:
    """Surface (with normals) of particles at `x` (n, 3) m that are `spacing` m apart, and its drops (n,).

    Their number per volume, smoothed by a Gaussian of 3/4 of a spacing, is 1 where a lattice is full; the
    surface is where it is a half, as at the face of a block. A single particle has
    (2 pi)^(-3/2) (4/3)^3 = 0.15 of that at most. Drops are particles that the surface leaves out: it is more
    than half a spacing away, as in a torn sheet. Those at edges of a block are outside of the surface, but
    beside it.

    The lattice of half spacings is the same in all frames, and only its blocks with particles are made: what
    flies far away makes the surface elsewhere no coarser.
    """
    x = np.asarray(x, np.float64)
    cell = CELL * spacing
    drops = np.ones(len(x), bool)
    apart, _ = cKDTree(x).query(x, k=[FEWEST], distance_upper_bound=LONELY * spacing)
    together = np.flatnonzero(np.isfinite(apart))
    parts = [(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), np.int64))]
    for first, fullness, rows, place in _blocks(x[together] / cell):
        beside = np.rint(place).astype(np.int64)[:, None] + AROUND
        drops[together[rows]] = fullness[tuple(np.moveaxis(beside, -1, 0))].max(axis=1) < FULL
        points, faces = contour(-fullness[1:-1, 1:-1, 1:-1], np.ones(3), np.ones(3), -FULL, closed=False)
        if len(points):
            parts.append((first + np.asarray(points, np.float64), _normals(fullness, points), faces))
    counts = np.cumsum([0, *(len(points) for points, *_ in parts)])
    points, normals, faces = (np.concatenate(one) for one in zip(*parts, strict=True))
    faces = faces + np.repeat(counts[:-1], [len(one) for *_, one in parts])[:, None]
    if not len(points):
        return pv.PolyData(), drops
    same = _welded(points)
    kept = same == np.arange(len(points))
    faces = (np.cumsum(kept) - 1)[same[faces]]
    mesh = pv.PolyData(cell * points[kept], np.column_stack((np.full(len(faces), 3), faces)).ravel())
    mesh.point_data["Normals"] = normals[kept]
    mesh.point_data.active_normals_name = "Normals"
    return mesh, drops


def _blocks(place: Vector) -> Iterator[tuple[Vector, NDArray[np.float32], Rows, Vector]]:
    """Density of particles at `place` (n, 3), in cells, over that of a full lattice, block by block.

    Each has the index of its first point, the fullness with one point more than the block has on each side,
    and the particles in it, as rows and by their place in that array.
    """
    cube = np.floor(place / BLOCK).astype(np.int64)
    order = np.lexsort(cube.T)
    starts = np.flatnonzero(np.diff(cube[order], axis=0, prepend=cube[order[:1]] - 1).any(axis=1))
    cubes = cube[order[starts]]
    in_cube = dict(zip(map(tuple, cubes.tolist()), np.split(order, starts[1:]), strict=False))
    for block in np.unique((cubes[:, None] + AROUND).reshape(-1, 3), axis=0):
        rows = np.sort(
            np.concatenate([in_cube.get(tuple(one), order[:0]) for one in (block + AROUND).tolist()])
        )
        local = place[rows] - BLOCK * block
        near = ((local >= -REACH - 1) & (local < BLOCK + REACH + 1)).all(axis=1)
        rows, local = rows[near], local[near]
        if len(rows) < FEWEST:
            continue
        low = np.maximum(np.floor(local.min(axis=0)) - REACH - 1, -REACH - 1)
        high = np.minimum(np.floor(local.max(axis=0)) + REACH + 2, BLOCK + REACH + 1)
        shape = tuple((high - low).astype(np.int64) + 1)
        total = scatter(local - low, np.ones((len(rows), 1)), shape).reshape(shape)
        fullness = ndimage.gaussian_filter(total, BLUR / CELL, mode="constant") / CELL**3
        start, end = np.maximum(low, -1.0), np.minimum(high, BLOCK + 1.0)
        if (end - start < 3.0).any():
            continue
        core = tuple(slice(int(a), int(b) + 1) for a, b in zip(start - low, end - low, strict=True))
        inside = ((local >= 0.0) & (local < BLOCK)).all(axis=1)
        yield BLOCK * block + start, fullness[core].astype(np.float32), rows[inside], local[inside] - start


def _welded(points: Vector) -> Rows:
    """Of points (n, 3), in cells, each on an edge of the lattice, the first one on the same edge (n,)."""
    edge = (np.floor(points) + np.ceil(points)).astype(np.int64)
    seam = np.flatnonzero((edge % (2 * BLOCK) == 0).any(axis=1))
    same = np.arange(len(points))
    _, one, which = np.unique(edge[seam], axis=0, return_index=True, return_inverse=True)
    same[seam] = seam[one][which.ravel()]
    return same


def _normals(fullness: NDArray[np.float32], points: Array) -> Vector:
    """Outward directions (n, 3) at points (n, 3), in cells: down the slope of the fullness."""

    def at(where: Array) -> Vector:
        return np.asarray(ndimage.map_coordinates(fullness, where.T, np.float64, order=1, mode="nearest"))

    slope = np.stack([at(points + step) - at(points - step) for step in np.eye(3)], axis=1)
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    return -slope / np.where(length > 0.0, length, 1.0)


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
    typical = np.sqrt(9.81 * spacing + 7.3e-5 / spacing)
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


def foaming(
    points: Array, x: Array, u: Array, drops: NDArray[np.bool_], spacing: float, water: Array
) -> Vector:
    """Colours (m, 3) at points (m, 3) m of a surface: those `water` (n, 3) of its particles, and foam."""
    near = _nearest(points, x, drops)
    rows, place = np.unique(near, return_inverse=True)
    share = foam(x, u, drops, spacing, rows)[place].reshape(near.shape).mean(axis=1)[:, None]
    return np.asarray((1.0 - share) * np.asarray(water)[near].mean(axis=1) + share * np.array(FOAM))


def clear(points: Array, x: Array, drops: NDArray[np.bool_], water: Array) -> Vector:
    """The same without foam."""
    return np.asarray(np.asarray(water)[_nearest(points, x, drops)].mean(axis=1))


def _nearest(points: Array, x: Array, drops: NDArray[np.bool_]) -> Rows:
    """The particles (m, 6 or fewer) of a surface nearest to its points (m, 3) m."""
    body = np.flatnonzero(~drops) if not drops.all() else np.arange(len(x))
    return np.asarray(body[cKDTree(x[body]).query(points, k=[*range(1, min(6, len(body)) + 1)])[1]])


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
