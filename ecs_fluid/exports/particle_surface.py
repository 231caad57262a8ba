"""The surface of a liquid that particles make, found from their places alone, in any frame of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from ecs_fluid.exports.bodies import Placed, depth_in_solids, walls_of
from ecs_fluid.exports.volumes import scatter
from ecs_fluid.systems.shared.walls import mirrored, mirrors
from ecs_fluid.systems.surface.contour import contour

Array = NDArray[Any]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

BLUR = 0.75  # of the particles, in spacings
FULL = 0.5  # at the surface
SLOPE = 1.0 / (np.sqrt(2.0 * np.pi) * BLUR)  # of the fullness at a flat face, per spacing
CELL = 0.5  # of the lattice on which particles are counted, in spacings
MIDDLE = 0.5  # of a cell: its points lie between whole multiples, where walls are likely
REACH = int(4.0 * BLUR / CELL + 0.5) + 1  # of a particle's blur, in cells
BLOCK = 64  # cells along the side of a block of the lattice: 4 MB with its surroundings
FARTHEST = 2.0**52  # cells from the origin: beyond, there is no lattice of half spacings in double precision
FEWEST = 4  # particles that a surface can enclose
LONELY = 4.0  # spacings around a particle without FEWEST in it: there is no surface near, and next to no blur
AROUND = np.array(list(np.ndindex(3, 3, 3))) - 1


class ParticleSurface(NamedTuple):
    """Points (m, 3) m, outward normals (m, 3) and triangles (k, 3) of a surface; mask (n,) of the drops."""

    points: Vector
    normals: Vector
    triangles: Rows
    drops: NDArray[np.bool_]


def rest_spacing(columns: Mapping[str, Array]) -> float | None:
    """Distance of neighbours [m] in a liquid that is whole, whatever its spray is apart; None: no liquid."""
    volume = columns.get("Liquid.volume")
    return None if volume is None or not len(volume) else float(np.cbrt(np.median(volume)))


def surface_of_particles(x: Array, spacing: float, bodies: Sequence[Placed] = ()) -> ParticleSurface:
    """Surface of particles at `x` (n, 3) m that are `spacing` m apart, and its drops.

    Their number per volume, smoothed by a Gaussian of 3/4 of a spacing, is 1 where a lattice is full; the
    surface is where it is a half, as at the face of a block. A single particle has
    (2 pi)^(-3/2) (4/3)^3 = 0.15 of that at most. Drops are particles that the surface leaves out: it is more
    than half a spacing away, as in a torn sheet. Those at edges of a block are outside of the surface, but
    beside it.

    As in a SurfaceSystem, liquid goes on behind walls of containers by mirror images, or it would be round
    at walls, and the surface is that of the liquid outside of `bodies`.

    The lattice of half spacings is the same in all frames, and only its blocks with particles are made: what
    flies far away makes the surface elsewhere no coarser.
    """
    x = np.asarray(x, np.float64)
    cell = CELL * spacing
    drops = np.ones(len(x), bool)
    apart, _ = cKDTree(x).query(x, k=[FEWEST], distance_upper_bound=LONELY * spacing)
    together = np.flatnonzero(np.isfinite(apart)[:, 0] & (np.abs(x) < FARTHEST * cell).all(axis=1))
    parts = [(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), np.int64))]
    real = x[together]
    images = mirrored(mirrors(walls_of(bodies)), real, REACH * cell).places
    for first, fullness, rows, place in _blocks(np.concatenate((real, images)) / cell - MIDDLE):
        own = rows < len(real)
        beside = np.rint(place[own]).astype(np.int64)[:, None] + AROUND
        drops[together[rows[own]]] = fullness[tuple(np.moveaxis(beside, -1, 0))].max(axis=1) < FULL
        if bodies:
            fullness = _outside_of(bodies, fullness, first, cell, spacing)
        points, faces = contour(-fullness[1:-1, 1:-1, 1:-1], np.ones(3), np.ones(3), -FULL, closed=False)
        if len(points):
            parts.append((first + np.asarray(points, np.float64), _normals(fullness, points), faces))
    counts = np.cumsum([0, *(len(points) for points, *_ in parts)])
    points, normals, faces = (np.concatenate(one) for one in zip(*parts, strict=True))
    faces = faces + np.repeat(counts[:-1], [len(one) for *_, one in parts])[:, None]
    if not len(points):
        return ParticleSurface(points, normals, faces, drops)
    same = _welded(points)
    kept = same == np.arange(len(points))
    faces = (np.cumsum(kept) - 1)[same[faces]]
    return ParticleSurface(cell * (points[kept] + MIDDLE), normals[kept], faces, drops)


def _outside_of(
    bodies: Sequence[Placed], fullness: NDArray[np.float32], first: Vector, cell: float, spacing: float
) -> NDArray[np.float32]:
    """The fullness of a block, at most that beside a flat face of liquid where `bodies` are.

    Its first point has the index `first` (3,) on the lattice.
    """
    some = np.argwhere(fullness > 0.02)  # those next to points that are half full, and more
    x = cell * (first + MIDDLE + some)
    lo, hi = (x.min(axis=0), x.max(axis=0)) if len(x) else (np.zeros(3), np.zeros(3))
    near = [body for body in bodies if body.container or _meets(body, lo, hi)]
    found = fullness.copy()
    most = FULL - SLOPE / spacing * depth_in_solids(near, x)
    at = tuple(some.T)
    found[at] = np.minimum(found[at], np.clip(most, 0.0, 2.0))
    return found


def _meets(body: Placed, lo: Vector, hi: Vector) -> bool:
    """Whether a body may reach into a box."""
    size = body.scale * float(np.linalg.norm(body.mesh.vertices, axis=1).max())
    return bool((body.x + size > lo).all() and (body.x - size < hi).all())


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
