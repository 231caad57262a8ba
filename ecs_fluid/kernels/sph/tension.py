"""Surface tension of liquid: the surface as triangles, which pull at the particles within reach.

The surface is where c = w_0 sum phi(q), images included, is 1/2, on a lattice of the liquid's spacing, by
tetrahedra whose crossed edges have a corner each. The energy is sigma times the area, and a corner of it is
pulled by minus its slope,

    f_v = - sigma sum_triangles n x (b - a) / 2,    a, b the other two corners in turn, n the normal,

so that forces and moments of a closed surface are 0. A corner hands its force to the particles within reach
by the parts l_i = phi_i / sum phi, and with it the moment that it has about their middle m, as what turns
them, l_i w x (x_i - m): momentum and angular momentum are kept to rounding. What images get stays with them.

Only the shape of the surface counts, not the places of the particles in it: energies that are sums over
particles or pairs are lowered by how particles lie, which makes a solid of the liquid or tears it:
docs/notes/liquids.md. Source of the surface by tetrahedra: Doi and Koide, IEICE Trans. E74 (1991); of forces
by the area of triangles: Brakke, Exp. Math. 1 (1992).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.sph.forces import lattice_weight

FLAT = 1e-7
"""Determinant of the inertia of the particles of a corner, over the cube of its trace, below which they lie
in a line and take no moment."""

TETRAHEDRA = np.array([[0, 1, 3, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 6, 4, 7], [0, 4, 5, 7], [0, 5, 1, 7]])
"""Corners of a cell by bits, 1 along x, 2 along y, 4 along z: six along one diagonal."""


class Tension(NamedTuple):
    """Force (n, 3) N of all particles, and the energy of the surface, J, of which images have a part."""

    force: Array
    energy: float


@njit(cache=True)
def _filled(x: Array, low: Array, edge: float, nodes: Array, reach: float, weight: float, c: Array) -> None:
    """Add what particles (n, 3) give to ``c`` (nodes,)."""
    inverse, first, last = 1 / reach, np.empty(3, np.int64), np.empty(3, np.int64)
    for i in range(len(x)):
        for k in range(3):
            first[k] = math.ceil((x[i, k] - reach - low[k]) / edge)
            last[k] = math.floor((x[i, k] + reach - low[k]) / edge)
        for a in range(first[0], last[0] + 1):
            dx = (low[0] + a * edge - x[i, 0]) * inverse
            for b in range(first[1], last[1] + 1):
                dy = (low[1] + b * edge - x[i, 1]) * inverse
                base = (a * nodes[1] + b) * nodes[2]
                for e in range(first[2], last[2] + 1):
                    dz = (low[2] + e * edge - x[i, 2]) * inverse
                    square = dx * dx + dy * dy + dz * dz
                    if square < 1.0:
                        q = math.sqrt(square)
                        u = (1.0 - q) * (1.0 - q)
                        c[base + e] += weight * u * u * (4.0 * q + 1.0)


@njit(cache=True)
def _crossed(c: Array, nodes: Array, offset: Array, cells: Array) -> int:
    """Fill ``cells`` with the cells that the surface crosses as far as there is room; their number."""
    count = 0
    for a in range(nodes[0] - 1):
        for b in range(nodes[1] - 1):
            for e in range(nodes[2] - 1):
                base = (a * nodes[1] + b) * nodes[2] + e
                inside = 0
                for k in range(8):
                    inside += c[base + offset[k]] > 0.5
                if 0 < inside < 8:
                    if count < len(cells):
                        cells[count] = base
                    count += 1
    return count


@njit(cache=True)
def _pulled(
    c: Array, low: Array, edge: float, nodes: Array, offset: Array, cells: Array, tetrahedra: Array,
    number: Array, place: Array, pull: Array, area: Array,
) -> int:  # fmt: skip
    """Corners of the surface: ``place`` (m, 3) m, ``pull`` (m, 3) m of sigma = 1, a third of the ``area``
    (m,) around; their number. ``number`` (nodes, 7) is -1 everywhere before."""
    count, corner, spot = 0, np.empty(4, np.int64), np.empty((4, 3))
    wet, dry, normal = np.empty(4, np.int64), np.empty(4, np.int64), np.empty(3)
    for base in cells:
        at = (base // (nodes[1] * nodes[2]), base // nodes[2] % nodes[1], base % nodes[2])
        for t in range(6):
            within, without = 0, 0
            for k in range(4):
                if c[base + offset[tetrahedra[t, k]]] > 0.5:
                    wet[within] = tetrahedra[t, k]
                    within += 1
                else:
                    dry[without] = tetrahedra[t, k]
                    without += 1
            found = 0
            for p in range(within):
                for s in range(without):
                    # Of a quadrangle one after the other around it.
                    one, other = wet[p], dry[without - 1 - s if within == 2 and p == 1 else s]
                    less = min(one, other)
                    node, way = base + offset[less], (max(one, other) ^ less) - 1
                    at_one, at_other = c[base + offset[one]], c[base + offset[other]]
                    part = (at_one - 0.5) / (at_one - at_other)
                    if number[node, way] < 0:
                        number[node, way] = count
                        for k in range(3):
                            step = ((one >> k) & 1) * (1 - part) + ((other >> k) & 1) * part
                            place[count, k] = low[k] + edge * (at[k] + step)
                            pull[count, k] = 0.0
                        area[count] = 0.0
                        count += 1
                    corner[found] = number[node, way]
                    for k in range(3):
                        spot[found, k] = place[corner[found], k]
                    found += 1
            for s in range(found - 2):
                i, j, k = 0, s + 1, s + 2
                ax, ay, az = spot[j, 0] - spot[i, 0], spot[j, 1] - spot[i, 1], spot[j, 2] - spot[i, 2]
                bx, by, bz = spot[k, 0] - spot[i, 0], spot[k, 1] - spot[i, 1], spot[k, 2] - spot[i, 2]
                nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
                size = math.sqrt(nx * nx + ny * ny + nz * nz)
                if size < 1e-12 * edge * edge:
                    continue
                normal[0], normal[1], normal[2] = nx / size, ny / size, nz / size
                for _ in range(3):
                    dx, dy, dz = (spot[k, 0] - spot[j, 0], spot[k, 1] - spot[j, 1], spot[k, 2] - spot[j, 2])
                    v = corner[i]
                    pull[v, 0] -= 0.5 * (normal[1] * dz - normal[2] * dy)
                    pull[v, 1] -= 0.5 * (normal[2] * dx - normal[0] * dz)
                    pull[v, 2] -= 0.5 * (normal[0] * dy - normal[1] * dx)
                    area[v] += size / 6
                    i, j, k = j, k, i
    return count


@njit(cache=True)
def _sorted_into(x: Array, low: Array, reach: float, boxes: Array, start: Array, rows: Array) -> None:
    """Rows of particles by boxes of the edge ``reach``, one after the other; start (boxes + 1,)."""
    box = np.empty(len(x), np.int64)
    start[:] = 0
    for i in range(len(x)):
        a, b, e = (int((x[i, 0] - low[0]) / reach), int((x[i, 1] - low[1]) / reach), 0)
        e = int((x[i, 2] - low[2]) / reach)
        box[i] = (a * boxes[1] + b) * boxes[2] + e
        start[box[i] + 1] += 1
    for b in range(len(start) - 1):
        start[b + 1] += start[b]
    behind = start.copy()
    for i in range(len(x)):
        rows[behind[box[i]]] = i
        behind[box[i]] += 1


@njit(cache=True)
def _turn(inertia: Array, moment: Array, turn: Array) -> None:
    """Solve ``inertia`` (3, 3), symmetric, times ``turn`` = ``moment``; 0 where it is flat."""
    xx, yy, zz = inertia[0, 0], inertia[1, 1], inertia[2, 2]
    xy, xz, yz = inertia[0, 1], inertia[0, 2], inertia[1, 2]
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    d, e, f = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    size = xx * a + xy * b + xz * c
    turn[:] = 0.0
    if size > FLAT * (xx + yy + zz) ** 3:
        turn[0] = (a * moment[0] + b * moment[1] + c * moment[2]) / size
        turn[1] = (b * moment[0] + d * moment[1] + e * moment[2]) / size
        turn[2] = (c * moment[0] + e * moment[1] + f * moment[2]) / size


@njit(cache=True)
def _handed_out(
    place: Array, pull: Array, area: Array, x: Array, real: int, low: Array, reach: float, boxes: Array,
    start: Array, rows: Array, force: Array,
) -> float:  # fmt: skip
    """Add to ``force`` (n, 3) what corners hand out; the area that those below ``real`` have a part of."""
    many = 4096
    near, part = np.empty(many, np.int64), np.empty(many)
    middle, inertia, arm, moment = np.empty(3), np.empty((3, 3)), np.empty(3), np.empty(3)
    own, turn, total_area = np.empty(3, np.int64), np.empty(3), 0.0
    for v in range(len(place)):
        found, total = 0, 0.0
        for k in range(3):
            own[k] = int((place[v, k] - low[k]) / reach)
        for a in range(max(own[0] - 1, 0), min(own[0] + 2, boxes[0])):
            for b in range(max(own[1] - 1, 0), min(own[1] + 2, boxes[1])):
                row = (a * boxes[1] + b) * boxes[2]
                first, last = start[row + max(own[2] - 1, 0)], start[row + min(own[2] + 2, boxes[2])]
                for t in range(first, last):
                    i = rows[t]
                    dx, dy, dz = x[i, 0] - place[v, 0], x[i, 1] - place[v, 1], x[i, 2] - place[v, 2]
                    square = (dx * dx + dy * dy + dz * dz) / (reach * reach)
                    if square < 1.0 and found < many:
                        q = math.sqrt(square)
                        u = (1.0 - q) * (1.0 - q)
                        near[found], part[found] = i, u * u * (4.0 * q + 1.0)
                        total += part[found]
                        found += 1
        if total == 0.0:
            continue
        middle[:], inertia[:], wet = 0.0, 0.0, 0.0
        for t in range(found):
            part[t] /= total
            wet += part[t] if near[t] < real else 0.0
            for k in range(3):
                middle[k] += part[t] * x[near[t], k]
        total_area += wet * area[v]
        for t in range(found):
            for k in range(3):
                arm[k] = x[near[t], k] - middle[k]
            square = arm[0] * arm[0] + arm[1] * arm[1] + arm[2] * arm[2]
            for k in range(3):
                inertia[k, k] += part[t] * square
                for m in range(3):
                    inertia[k, m] -= part[t] * arm[k] * arm[m]
        for k in range(3):
            arm[k] = place[v, k] - middle[k]
        moment[0] = arm[1] * pull[v, 2] - arm[2] * pull[v, 1]
        moment[1] = arm[2] * pull[v, 0] - arm[0] * pull[v, 2]
        moment[2] = arm[0] * pull[v, 1] - arm[1] * pull[v, 0]
        _turn(inertia, moment, turn)
        for t in range(found):
            i = near[t]
            for k in range(3):
                arm[k] = x[i, k] - middle[k]
            force[i, 0] += part[t] * (pull[v, 0] + turn[1] * arm[2] - turn[2] * arm[1])
            force[i, 1] += part[t] * (pull[v, 1] + turn[2] * arm[0] - turn[0] * arm[2])
            force[i, 2] += part[t] * (pull[v, 2] + turn[0] * arm[1] - turn[1] * arm[0])
    return total_area


def cells_around(x: Array, spacing: float, support: float) -> float:
    """About how many cells the lattice of ``surface_tension`` has."""
    least, most = bounds(x)
    return float(np.prod((most.astype(np.float64) - least) / spacing + 2 * support + 3))


def surface_tension(x: Array, real: int, spacing: float, support: float, sigma: float) -> Tension:
    """Forces of the surface tension ``sigma`` N/m on particles: rows below ``real`` of ``x`` (n, 3) m, behind
    which images follow; ``spacing`` m, the reach of the kernel over that."""
    place, reach, edge = x.astype(np.float64), support * spacing, spacing
    force = np.zeros((real, 3), x.dtype)
    if not real:
        return Tension(force, 0.0)
    least, most = bounds(place)
    low = edge * np.floor((least - reach) / edge - 1.0)
    nodes = np.ceil((most + reach - low) / edge + 1.0).astype(np.int64)
    offset = np.array([((k & 1) * nodes[1] + (k >> 1 & 1)) * nodes[2] + (k >> 2) for k in range(8)])
    c = np.zeros(nodes.prod())
    _filled(place, low, edge, nodes, reach, lattice_weight(support), c)
    cells = np.empty(_crossed(c, nodes, offset, np.empty(0, np.int64)), np.int64)
    _crossed(c, nodes, offset, cells)
    number = np.full((len(c), 7), -1, np.int32)
    corners, pull, area = (
        np.empty((19 * len(cells), 3)),
        np.empty((19 * len(cells), 3)),
        np.empty(19 * len(cells)),
    )
    count = _pulled(c, low, edge, nodes, offset, cells, TETRAHEDRA, number, corners, pull, area)
    boxes = (np.floor((most + reach - low) / reach) + 1).astype(np.int64)
    start, rows = np.empty(boxes.prod() + 1, np.int64), np.empty(len(x), np.int64)
    _sorted_into(place, low, reach, boxes, start, rows)
    total = np.zeros((len(x), 3))
    wet = _handed_out(
        corners[:count], pull[:count], area[:count], place, real, low, reach, boxes, start, rows, total
    )  # fmt: skip
    return Tension((sigma * total[:real]).astype(x.dtype), sigma * wet)
