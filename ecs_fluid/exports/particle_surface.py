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
MOST = 1.001 / (2.0 * np.pi * BLUR**2) ** 1.5  # fullness by one particle
APART = 2.0 * (4.0 * BLUR + CELL)  # spacings: two that are farther from each other reach no common point
COUNTED = 8  # neighbours, itself among them: with so many within that distance a particle is not alone
LONELY = 4.0  # spacings around a particle without FEWEST in it: there is no surface near, and next to no blur
BELOW = 6  # particles under a point of the surface whose colours it shows
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


def below(points: Array, x: Array, drops: NDArray[np.bool_]) -> Rows:
    """The particles (m, `BELOW` or fewer) of a surface nearest to its points (m, 3) m, among those at `x`."""
    body = np.flatnonzero(~drops) if not drops.all() else np.arange(len(x))
    return np.asarray(body[cKDTree(x[body]).query(points, k=[*range(1, min(BELOW, len(body)) + 1)])[1]])


def mixed(points: Array, x: Array, drops: NDArray[np.bool_], colours: Array) -> Vector:
    """Colours (m, 3) at points (m, 3) m of a surface, whose particles at `x` (n, 3) m have `colours` (n, 3).

    The mean of the nearest: so the colours of liquids run into each other over a spacing or two.
    """
    return np.asarray(np.asarray(colours)[below(points, x, drops)].mean(axis=1))


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
    and the particles in it, as rows and by their place in that array. Blocks without a surface are left out.
    """
    dense = _dense(CELL * place)
    for block, rows in _rows_by_block(place):
        if len(rows) < FEWEST or not dense[rows].any():
            continue
        local = place[rows] - BLOCK * block
        low = np.maximum(np.floor(local.min(axis=0)) - REACH - 1, -REACH - 1)
        high = np.minimum(np.floor(local.max(axis=0)) + REACH + 2, BLOCK + REACH + 1)
        shape = tuple((high - low).astype(np.int64) + 1)
        total = scatter(local - low, np.ones((len(rows), 1)), shape).reshape(shape)
        fullness = ndimage.gaussian_filter(total, BLUR / CELL, mode="constant") / CELL**3
        start, end = np.maximum(low, -1.0), np.minimum(high, BLOCK + 1.0)
        if (end - start < 3.0).any():
            continue
        core = tuple(slice(int(a), int(b) + 1) for a, b in zip(start - low, end - low, strict=True))
        found = fullness[core].astype(np.float32)
        if found.max() < FULL:
            continue
        inside = ((local >= 0.0) & (local < BLOCK)).all(axis=1)
        yield BLOCK * block + start, found, rows[inside], local[inside] - start


def _rows_by_block(place: Vector) -> Iterator[tuple[Rows, Rows]]:
    """Blocks (3,) and the rows of the particles at `place` (n, 3), in cells, whose blur reaches into them."""
    cube = np.floor(place / BLOCK).astype(np.int64)
    local = place - BLOCK * cube
    # Along each axis, whether a particle reaches the block before its own, its own, and the next.
    reached = np.stack((local < REACH + 1, np.ones(local.shape, bool), local >= BLOCK - REACH - 1))
    parts = []
    for step in AROUND:
        rows = np.flatnonzero(np.logical_and.reduce([reached[s + 1, :, k] for k, s in enumerate(step)]))
        parts.append(np.column_stack((cube[rows] + step, rows)))
    found = np.concatenate(parts)
    found = found[np.lexsort(found.T[::-1])]
    starts = np.flatnonzero(np.diff(found[:, :3], axis=0, prepend=found[:1, :3] - 1).any(axis=1))
    for rows in np.split(found, starts[1:]) if len(found) else ():
        yield rows[0, :3], rows[:, 3]


def _dense(x: Vector) -> NDArray[np.bool_]:
    """Mask (n,) of the particles at `x` (n, 3), in spacings, beside which there may be a surface.

    Of a point p whose fullness is `FULL`, let q be the nearest particle. All others, i, are at least as far
    from p, so |x_q - x_i| <= 2 |p - x_i|, and what i adds at p is at most `MOST` exp(-r^2 / (8 s^2)) with
    r = |x_q - x_i|. Its blur has the variance `BLUR`^2, and before that it is shared between two points of
    the lattice along each axis, which by Hoeffding's lemma spreads it no more than `CELL`^2 / 4 does:
    s^2 is their sum. The sum over all particles is then at least `FULL` at q. Those farther than `APART` from
    q add less than 1e-5 each, and in a full lattice there are 300 of them in the cube that reaches p.
    """
    count = min(COUNTED, len(x))
    if not count:
        return np.zeros(0, bool)
    distance = np.asarray(cKDTree(x).query(x, k=[*range(1, count + 1)], distance_upper_bound=APART)[0])
    most = MOST * np.exp(-(distance**2) / (8.0 * (BLUR**2 + 0.25 * CELL**2)))
    return np.asarray((most.sum(axis=1) > 0.99 * FULL) | (np.isfinite(distance[:, -1]) & (count == COUNTED)))


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
