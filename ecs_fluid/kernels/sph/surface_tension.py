"""Surface tension of liquid: the surface is a mesh of triangles, which pulls at the particles within reach.

The surface is where c = w_0 sum phi(q), images included, is 1/2. c is sampled on a lattice with the spacing
of the liquid, whose cells are cut into tetrahedra; each edge of these that the surface crosses has one corner
of the mesh. The lattice consists of blocks two reaches wide, only where liquid is. A block has one of eight
colours (even or odd along each axis). Blocks of one colour share no corner and no particle, so threads work
on them at once, one colour after the other.

The energy is sigma times the area. The force on a corner is minus the derivative of the energy with respect
to its position,

    f_v = - sigma sum_triangles n x (b - a) / 2,    a, b the other two corners in turn, n the normal,

so the total force and moment of a closed surface are 0. A corner shares its force among the particles within
reach in the parts l_i = phi_i / sum phi. The moment of the corner's force about their weighted centre m is
handed on as forces that turn them, l_i w x (x_i - m). So momentum and angular momentum are conserved to
rounding. Walls get the share of images (`kernels.sph.wetting`).

The force depends only on the shape of the surface, not on the arrangement of the particles. Energies that are
sums over particles or pairs do depend on it: they make the liquid solid, or tear it (docs/notes/liquids.md).
Source of the surface by tetrahedra: Doi and Koide, IEICE Trans. E74 (1991); of forces by the area of
triangles: Brakke, Exp. Math. 1 (1992).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.neighbours import runs_around, search_grid
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.sph.forces import lattice_weight
from ecs_fluid.kernels.sph.step import CELL_EDGE

FLAT = 1e-7
"""The particles around a corner count as lying in a line, and take no moment, if the determinant of their
inertia divided by the cube of its trace is below this."""

POINT = 1e-4
"""They count as lying in a point if the trace divided by the square of the reach is below this: what is left
is rounding."""

TETRAHEDRA = np.array([[0, 3, 5, 6], [1, 0, 3, 5], [2, 0, 3, 6], [4, 0, 5, 6], [7, 3, 5, 6]])
"""Corners of the five tetrahedra of a cell whose lowest node is even, as bits: 1 along x, 2 along y, 4 along
z. In a cell whose lowest node is odd they are 7 minus these. So all diagonals of faces join even nodes, and
the mesh prefers no direction: a cut into six tetrahedra along one diagonal pushed drops along a floor."""


class Tension(NamedTuple):
    """Force (n, 3) N on particles, then on images, and energy of the surface [J] without that of images."""

    force: Array
    energy: float


class Blocks(NamedTuple):
    """The k blocks of width^3 nodes each.

    edge: that of a cell, m. place (k, 3): integer coordinates of the blocks, in blocks. beside (k, 8):
    numbers of the block itself and of those one further along x (bit 1), y (bit 2) and z (bit 4), -1 for
    none.
    """

    width: int
    edge: float
    place: Array
    beside: Array


class SortedParticles(NamedTuple):
    """Particles and images ``x`` (n, 3) m in the order of a neighbour search, and its grid.

    ``real`` (n,) is true for particles, false for images; ``reach`` of the kernel, m.
    """

    x: Array
    real: Array
    start: Array
    origin: Array
    spacing: Array
    cells: Array
    reach: float


@njit(forceinline=True)
def _hash_slot(table: Array, place: Array, a: int, b: int, e: int) -> int:
    """Index in the hash ``table`` at which the block (a, b, e) is, or a free one where it would go."""
    at = ((a * 73856093) ^ (b * 19349663) ^ (e * 83492791)) & (len(table) - 1)
    while table[at] >= 0 and not (
        place[table[at], 0] == a and place[table[at], 1] == b and place[table[at], 2] == e
    ):
        at = (at + 1) & (len(table) - 1)
    return at


@njit(cache=True)
def _number_blocks(x: Array, reach: float, size: float, table: Array, place: Array, beside: Array) -> int:
    """Fill ``place`` and ``beside`` (see `Blocks`) with the blocks within ``reach`` of any particle.

    ``x`` (n, 3) m are the particles, ``size`` is the width of a block, m, ``table`` scratch. Returns the
    number of blocks, or -1 if there is not enough room.
    """
    count, first, last = 0, np.zeros(3, np.int64), np.full(3, -1, np.int64)
    table[:] = -1
    for i in range(len(x)):
        changed = False
        for k in range(3):
            low, high = math.floor((x[i, k] - reach) / size), math.floor((x[i, k] + reach) / size)
            changed |= low != first[k] or high != last[k]
            first[k], last[k] = low, high
        if not changed:
            continue
        for a in range(first[0], last[0] + 1):
            for b in range(first[1], last[1] + 1):
                for e in range(first[2], last[2] + 1):
                    at = _hash_slot(table, place, a, b, e)
                    if table[at] < 0:
                        if count == len(place):
                            return -1
                        table[at] = count
                        place[count, 0], place[count, 1], place[count, 2] = a, b, e
                        count += 1
    for i in range(count):
        for k in range(8):
            a, b, e = place[i, 0] + (k & 1), place[i, 1] + (k >> 1 & 1), place[i, 2] + (k >> 2)
            beside[i, k] = table[_hash_slot(table, place, a, b, e)]
    return count


def _blocks(x: Array, edge: float, reach: float) -> Blocks:
    width = math.ceil(2 * reach / edge)
    room = 64
    while True:
        place, beside = np.empty((room, 3), np.int64), np.empty((room, 8), np.int64)
        table = np.empty(2 * room, np.int64)
        if (count := _number_blocks(x, reach, width * edge, table, place, beside)) >= 0:
            return Blocks(width, edge, place[:count], beside[:count])
        room *= 2


@parallel(error_model="numpy")
def _sample_density(
    chunk: int, blocks: Blocks, near: SortedParticles, most: int, weight: float, c: Array
) -> None:
    """Fill ``c`` (k, nodes of a block) with the sums w_0 phi at all nodes; ``weight`` is w_0."""
    width, edge, count = blocks.width, blocks.edge, len(blocks.place)
    box, runs, first, last = (
        np.empty((2, 3)), np.empty((most, 2), np.int64), np.empty(3, np.int64), np.empty(3, np.int64)
    )  # fmt: skip
    inverse, support, p = edge / near.reach, near.reach / edge, np.empty(3)
    for block in range(chunk * count // CHUNKS, (chunk + 1) * count // CHUNKS):
        for k in range(3):
            box[0, k] = blocks.place[block, k] * width * edge
            box[1, k] = box[0, k] + (width - 1) * edge
        own = c[block]
        own[:] = 0.0
        number = runs_around(box, near.start, near.origin, near.spacing, near.cells, near.reach, runs)
        for run in range(number):
            for i in range(runs[run, 0], runs[run, 1]):
                for k in range(3):
                    p[k] = (near.x[i, k] - box[0, k]) / edge
                    first[k] = int(max(p[k] - support + 1, 0.0))
                    last[k] = min(int(p[k] + support + 1), width)
                for a in range(first[0], last[0]):
                    dx = (a - p[0]) * inverse
                    for b in range(first[1], last[1]):
                        dy = (b - p[1]) * inverse
                        base = (a * width + b) * width
                        for e in range(first[2], last[2]):
                            dz = (e - p[2]) * inverse
                            square = dx * dx + dy * dy + dz * dz
                            if square < 1.0:
                                q = math.sqrt(square)
                                u = (1.0 - q) * (1.0 - q)
                                own[base + e] += weight * u * u * (4.0 * q + 1.0)


@njit(forceinline=True)
def _block_and_node(width: int, beside: Array, a: int, b: int, e: int) -> tuple[int, int]:
    """Block, or -1, and number in it of the node (a, b, e), counted from the start of a block.

    Each of a, b, e may be ``width``: then the node is the first of the next block. ``beside`` (8,) is the row
    of the block in `Blocks`.
    """
    way = (a == width) + 2 * (b == width) + 4 * (e == width)
    return beside[way], ((a % width) * width + b % width) * width + e % width


@njit(error_model="numpy")
def _copy_block(c: Array, width: int, beside: Array, cube: Array) -> bool:
    """Fill ``cube``, width + 1 nodes along each axis, with c of a block and the first nodes behind it.

    Returns whether the surface crosses it.
    """
    wet = 0
    for a in range(width + 1):
        for b in range(width + 1):
            for e in range(width + 1):
                block, node = _block_and_node(width, beside, a, b, e)
                cube[a, b, e] = c[block, node] if block >= 0 else 0.0
                wet += cube[a, b, e] > 0.5
    return 0 < wet < (width + 1) ** 3


@njit(forceinline=True)
def _value_at(cube: Array, a: int, b: int, e: int, k: int) -> float:
    """c at the corner ``k``, given as bits, of the cell (a, b, e)."""
    return cube[a + (k & 1), b + (k >> 1 & 1), e + (k >> 2)]


@njit(forceinline=True)
def _is_odd(blocks: Blocks, block: int, a: int, b: int, e: int) -> bool:
    """Whether the sum of a node's integer coordinates in the whole lattice is odd."""
    place = blocks.place[block]
    return ((place[0] + place[1] + place[2]) * blocks.width + a + b + e) & 1 == 1


@njit(forceinline=True)
def _edge_ends(k: int, odd: bool) -> tuple[int, int]:
    """Both ends, as bits, of the edge along ``k`` (bits) that starts at a node.

    If the node is odd, a diagonal is replaced by the other one of its face, which joins even nodes.
    """
    first = k & -k if odd else 0
    return first, k ^ first


@parallel(error_model="numpy")
def _find_corners(
    chunk: int, blocks: Blocks, c: Array, begin: Array, number: Array, corner: Array, node: Array,
    counts: Array,
) -> None:  # fmt: skip
    """Fill ``counts`` (k,) with the number of mesh corners in each block: edges that the surface crosses.

    With ``begin`` (k + 1,), the first corner of each block, also fill the position ``corner`` (m, 3) m and
    the ``node`` (m,) in its block of each mesh corner; ``number`` (k, nodes, 6) gets the number of the corner
    on each edge.
    """
    width, edge, count = blocks.width, blocks.edge, len(blocks.place)
    cube = np.empty((width + 1, width + 1, width + 1))
    for block in range(chunk * count // CHUNKS, (chunk + 1) * count // CHUNKS):
        counts[block], base = 0, blocks.place[block]
        if not _copy_block(c, width, blocks.beside[block], cube):
            continue
        for at in range(width**3):
            a, b, e = at // (width * width), at // width % width, at % width
            odd = _is_odd(blocks, block, a, b, e)
            for k in range(1, 7):
                first, second = _edge_ends(k, odd)
                one, other = _value_at(cube, a, b, e, first), _value_at(cube, a, b, e, second)
                if (one > 0.5) == (other > 0.5):
                    continue
                if len(begin):
                    v = begin[block] + counts[block]
                    number[block, at, k - 1], node[v] = v, at
                    part = (one - 0.5) / (one - other)
                    for s, place in enumerate((a, b, e)):
                        low, high = first >> s & 1, second >> s & 1
                        corner[v, s] = edge * (base[s] * width + place + low + (high - low) * part)
                counts[block] += 1


@parallel(error_model="numpy")
def _add_tension(
    chunk: int, which: Array, blocks: Blocks, c: Array, number: Array, corner: Array, tetrahedra: Array,
    pull: Array, area: Array, outward: Array,
) -> None:  # fmt: skip
    """Add the forces of the triangles in the blocks ``which``, all of one colour, to their corners.

    ``pull`` (m, 3) m is the force for sigma = 1; ``area`` (m,) m^2 gets a third of each triangle per corner,
    and ``outward`` (m, 3) m^2 the same along the normal.
    """
    width, edge, count = blocks.width, blocks.edge, len(which)
    cube = np.empty((width + 1, width + 1, width + 1))
    v, spot, normal, way = np.empty(4, np.int64), np.empty((4, 3)), np.empty(3), np.empty(3)
    wet, dry = np.empty(4, np.int64), np.empty(4, np.int64)
    for t in range(chunk * count // CHUNKS, (chunk + 1) * count // CHUNKS):
        beside = blocks.beside[which[t]]
        if not _copy_block(c, width, beside, cube):
            continue
        for cell in range(width**3):
            a, b, e = cell // (width * width), cell // width % width, cell % width
            inside = 0
            for k in range(8):
                inside += _value_at(cube, a, b, e, k) > 0.5
            if inside == 0 or inside == 8:
                continue
            flip = 7 if _is_odd(blocks, which[t], a, b, e) else 0
            for tetrahedron in range(len(tetrahedra)):
                within, without = 0, 0
                for s in range(4):
                    k = tetrahedra[tetrahedron, s] ^ flip
                    if _value_at(cube, a, b, e, k) > 0.5:
                        wet[within] = k
                        within += 1
                    else:
                        dry[without] = k
                        without += 1
                crossings = 0
                for p in range(within):
                    for s in range(without):
                        # The corners of a quadrangle follow one another around it.
                        one, other = wet[p], dry[without - 1 - s if within == 2 and p == 1 else s]
                        both = one & other
                        block, node = _block_and_node(
                            width, beside, a + (both & 1), b + (both >> 1 & 1), e + (both >> 2)
                        )
                        v[crossings] = number[block, node, (one ^ other) - 1]
                        for k in range(3):
                            spot[crossings, k] = corner[v[crossings], k]
                        crossings += 1
                low, high = wet[0], dry[0]
                for axis in range(3):
                    way[axis] = (high >> axis & 1) - (low >> axis & 1)
                for s in range(crossings - 2):
                    i, j, k = 0, s + 1, s + 2
                    ax, ay, az = spot[j, 0] - spot[i, 0], spot[j, 1] - spot[i, 1], spot[j, 2] - spot[i, 2]
                    bx, by, bz = spot[k, 0] - spot[i, 0], spot[k, 1] - spot[i, 1], spot[k, 2] - spot[i, 2]
                    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
                    size = math.sqrt(nx * nx + ny * ny + nz * nz)
                    if size < 1e-12 * edge * edge:
                        continue
                    normal[0], normal[1], normal[2] = nx / size, ny / size, nz / size
                    out = math.copysign(size / 6, nx * way[0] + ny * way[1] + nz * way[2])
                    for _ in range(3):
                        dx, dy, dz = spot[k, 0] - spot[j, 0], spot[k, 1] - spot[j, 1], spot[k, 2] - spot[j, 2]
                        pull[v[i], 0] -= 0.5 * (normal[1] * dz - normal[2] * dy)
                        pull[v[i], 1] -= 0.5 * (normal[2] * dx - normal[0] * dz)
                        pull[v[i], 2] -= 0.5 * (normal[0] * dy - normal[1] * dx)
                        area[v[i]] += size / 6
                        for axis in range(3):
                            outward[v[i], axis] += out * normal[axis]
                        i, j, k = j, k, i


@njit(forceinline=True)
def _solve_inertia(
    xx: float, yy: float, zz: float, xy: float, xz: float, yz: float, least: float, x: float, y: float,
    z: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Solve inertia times vector = (x, y, z) for the vector; the inertia is a symmetric matrix.

    Returns 0 if the inertia is singular to `FLAT`, or its trace is at most ``least``.
    """
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    d, e, f = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    size = xx * a + xy * b + xz * c
    trace = xx + yy + zz
    if trace > least and size > FLAT * trace**3:
        return (a * x + b * y + c * z) / size, (b * x + d * y + e * z) / size, (c * x + e * y + f * z) / size
    return 0.0, 0.0, 0.0


@njit(error_model="numpy")
def _rows_near_box(x: Array, rows: Array, low: Array, high: Array, reach: float, found: Array) -> int:
    """Fill ``found`` with those of the ``rows`` of ``x`` within reach of a box; returns how many."""
    count = 0
    for i in rows:
        square = 0.0
        for k in range(3):
            gap = max(max(low[k] - x[i, k], x[i, k] - high[k]), 0.0)
            square += gap * gap
        if square < reach * reach:
            found[count] = i
            count += 1
    return count


@parallel(error_model="numpy")
def _distribute_forces(
    chunk: int, which: Array, blocks: Blocks, near: SortedParticles, most: int, begin: Array, corner: Array,
    node: Array, pull: Array, particle_share: Array, force: Array,
) -> None:  # fmt: skip
    """Add to ``force`` (n, 3) the shares in the corners' forces, for the blocks ``which``, all of one colour.

    ``particle_share`` (m,) gets the part of each corner's force that goes to particles, not to images.
    """
    width, edge, reach, count = blocks.width, blocks.edge, near.reach, len(which)
    box, runs, x = np.empty((2, 3)), np.empty((most, 2), np.int64), near.x
    rows, close, member = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    part, arm, least = np.empty(0), np.empty((0, 3)), POINT * reach * reach
    for t in range(chunk * count // CHUNKS, (chunk + 1) * count // CHUNKS):
        block = which[t]
        if begin[block + 1] == begin[block]:
            continue
        for k in range(3):
            box[0, k] = blocks.place[block, k] * width * edge
            box[1, k] = box[0, k] + width * edge
        number, total = runs_around(box, near.start, near.origin, near.spacing, near.cells, reach, runs), 0
        for run in range(number):
            total += runs[run, 1] - runs[run, 0]
        if total > len(rows):
            rows, close = np.empty(2 * total, np.int64), np.empty(2 * total, np.int64)
            member, part, arm = np.empty(2 * total, np.int64), np.empty(2 * total), np.empty((2 * total, 3))
        total = 0
        for run in range(number):
            for i in range(runs[run, 0], runs[run, 1]):
                rows[total] = i
                total += 1
        total = _rows_near_box(x, rows[:total], box[0], box[1], reach, rows)
        around, last = 0, -1
        for v in range(begin[block], begin[block + 1]):
            if node[v] != last:
                last = node[v]
                for k, at in enumerate((last // (width * width), last // width % width, last % width)):
                    box[0, k] = (blocks.place[block, k] * width + at) * edge
                    box[1, k] = box[0, k] + edge
                around = _rows_near_box(x, rows[:total], box[0], box[1], reach, close)
            found, whole, own, mx, my, mz = 0, 0.0, 0.0, 0.0, 0.0, 0.0
            xx, yy, zz, xy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for s in range(around):
                i = close[s]
                dx, dy, dz = x[i, 0] - corner[v, 0], x[i, 1] - corner[v, 1], x[i, 2] - corner[v, 2]
                square = (dx * dx + dy * dy + dz * dz) / (reach * reach)
                if square < 1.0:
                    q = math.sqrt(square)
                    u = (1.0 - q) * (1.0 - q)
                    phi = u * u * (4.0 * q + 1.0)
                    member[found], part[found] = i, phi
                    arm[found, 0], arm[found, 1], arm[found, 2] = dx, dy, dz
                    found += 1
                    whole += phi
                    own += phi if near.real[i] else 0.0
                    px, py, pz = phi * dx, phi * dy, phi * dz
                    mx, my, mz = mx + px, my + py, mz + pz
                    xx, yy, zz = xx + px * dx, yy + py * dy, zz + pz * dz
                    xy, xz, yz = xy + px * dy, xz + px * dz, yz + py * dz
            particle_share[v] = 0.0
            if whole == 0.0:
                continue
            particle_share[v] = own / whole
            mx, my, mz = mx / whole, my / whole, mz / whole
            xx, yy, zz = xx / whole - mx * mx, yy / whole - my * my, zz / whole - mz * mz
            xy, xz, yz = xy / whole - mx * my, xz / whole - mx * mz, yz / whole - my * mz
            fx, fy, fz = pull[v, 0], pull[v, 1], pull[v, 2]
            # The moment about the centre m of the particles. m is relative to the corner, so the arm is -m.
            moment = mz * fy - my * fz, mx * fz - mz * fx, my * fx - mx * fy
            tx, ty, tz = _solve_inertia(yy + zz, xx + zz, xx + yy, -xy, -xz, -yz, least, *moment)
            for s in range(found):
                i, share = member[s], part[s] / whole
                dx, dy, dz = arm[s, 0] - mx, arm[s, 1] - my, arm[s, 2] - mz
                force[i, 0] += share * (fx + ty * dz - tz * dy)
                force[i, 1] += share * (fy + tz * dx - tx * dz)
                force[i, 2] += share * (fz + tx * dy - ty * dx)


def surface_tension(
    x: Array, real: int, spacing: float, support: float, sigma: float,
    push: Callable[[Array, Array], Array] | None = None,
) -> Tension:  # fmt: skip
    """Forces of the surface tension ``sigma`` N/m on the particles.

    ``x`` (n, 3) m holds the particles in the rows below ``real``, then their images. ``spacing`` is that of
    the liquid, m; ``support`` the reach of the kernel divided by it. ``push`` takes the corners of the mesh
    (m, 3) m and the area vectors of their shares (m, 3) m^2, which point outward, and returns further forces
    (m, 3) m on the corners, for sigma = 1.
    """
    if not real:
        return Tension(np.zeros((len(x), 3)), 0.0)
    place, reach = x.astype(np.float64), support * spacing
    grid = search_grid(place, CELL_EDGE * reach, 8 * len(x) + 64)
    start, order = partition(place, *grid)
    near = SortedParticles(place[order], order < real, start, *grid, reach)
    blocks = _blocks(near.x, spacing, reach)
    across = np.ceil((blocks.width * spacing + 2 * reach) / grid[1][:2]).astype(int) + 1
    most, many = int(across.prod()), len(blocks.place)
    c, counts = np.empty((many, blocks.width**3)), np.empty(many, np.int64)
    _sample_density(blocks, near, most, lattice_weight(support), c)
    number = np.empty((many, blocks.width**3, 6), np.int64)
    begin, corner, node = np.empty(0, np.int64), np.empty((0, 3)), np.empty(0, np.int64)
    _find_corners(blocks, c, begin, number, corner, node, counts)
    begin = np.concatenate([[0], np.cumsum(counts)])
    corner, node = np.empty((begin[-1], 3)), np.empty(begin[-1], np.int64)
    _find_corners(blocks, c, begin, number, corner, node, counts)
    pull, area, particle_share = np.zeros_like(corner), np.zeros(begin[-1]), np.empty(begin[-1])
    outward = np.zeros_like(corner)
    colour = (blocks.place & 1) @ np.array([1, 2, 4])
    colours = [np.flatnonzero(colour == k) for k in range(8)]
    for which in colours:
        _add_tension(which, blocks, c, number, corner, TETRAHEDRA, pull, area, outward)
    if push is not None:
        pull += push(corner, outward)
    force = np.zeros_like(place)
    for which in colours:
        _distribute_forces(which, blocks, near, most, begin, corner, node, pull, particle_share, force)
    back = np.empty_like(force)
    back[order] = force
    return Tension(sigma * back, sigma * float((particle_share * area).sum()))
