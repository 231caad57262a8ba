"""Whitewater: properties of the liquid around given points, crests of its surface, and motion of whitewater.

The weights are w = w_0 phi(r / R) as in `kernels.sph.forces`. Sums run over all particles j of the liquid and
their images. For a point at x that moves at u they are

    share c = sum w,    flow U = sum w u_j / sum w,
    closing = sum w max(0, -(u - u_j) . (x - x_j) / r),    slope s = sum (1 - q)^3 (x - x_j) / R.

With the part of bodies (`kernels.sph.wall_pressure`) c is 1 in the liquid, 1/2 at a flat surface and 0 away
from it; s points out of the liquid, and n = s / |s| is the normal. A particle i of the surface is on a crest
if other particles of the surface lie below its tangent plane:

    crest_i = sum w (1 - n_i . n_j) over j of the surface with (x_j - x_i) . n_i < 0.

Source: M. Ihmsen, N. Akinci, G. Akinci, M. Teschner, Unified spray, foam and air bubbles for particle-based
fluids, The Visual Computer 28 (2012). There are two differences: the weights w, which add up to 1, replace
their 1 - q, and trapped air is measured by the part of the relative velocity along the pair alone. That is 0
where liquid turns as a whole; theirs, |u_ij| (1 - cos), is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import WIDTH, box_of, fill_list, list_groups, runs_around
from ecs_fluid.kernels.grids.partition import gather_sorted, partition, scatter_sorted
from ecs_fluid.kernels.sph.forces import TINY, lattice_weight
from ecs_fluid.kernels.sph.step import LiquidLaw, Surroundings, in_reaches, sorted_columns

SPRAY, FOAM, BUBBLE = 0, 1, 2


class SortedLiquid(NamedTuple):
    """Liquid and its images in sorted order, ready for `properties_at` and `crests`.

    near: result of `step.surroundings_of`. data (6, m + LANES): positions in reaches and velocities in m/s.
    reach: R, m. weight: w_0.
    """

    near: Surroundings
    data: Array
    reach: float
    weight: float


def sort_liquid(law: LiquidLaw, near: Surroundings) -> SortedLiquid:
    """Sort the liquid in which points are to be looked up."""
    return SortedLiquid(near, sorted_columns(near)[:6], law.reach, lattice_weight(law.support))


class LiquidProperties(NamedTuple):
    """Liquid around n points: share (n,) 1, flow (n, 3) m/s, closing (n,) m/s, slope (n, 3) 1."""

    share: Array
    flow: Array
    closing: Array
    slope: Array


@njit(fastmath=FAST, error_model="numpy")
def _property_sums(
    near: Array, count: int, px: float, py: float, pz: float, pu: float, pv: float, pw: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Sums over a list of phi, phi u_j (3), phi max(0, -(u - u_j) . r / |r|) and (1 - q)^3 r / R (3)."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, four, half, tiny = kind(0), kind(1), kind(4), kind(0.5), kind(TINY)
    phi_sum, fx, fy, fz, closing, sx, sy, sz = zero, zero, zero, zero, zero, zero, zero, zero
    for j in range(count):
        dx, dy, dz = px - near[j], py - near[WIDTH + j], pz - near[2 * WIDTH + j]
        r2 = dx * dx + dy * dy + dz * dz + tiny
        root = half * double_inverse_root(r2)
        away = one - r2 * root
        away = away if away > zero else zero
        cube = away * away * away
        w = cube * away * (four * (r2 * root) + one)
        ju, jv, jw = near[3 * WIDTH + j], near[4 * WIDTH + j], near[5 * WIDTH + j]
        nearing = -root * ((pu - ju) * dx + (pv - jv) * dy + (pw - jw) * dz)
        nearing = nearing if nearing > zero else zero
        phi_sum += w
        fx += w * ju
        fy += w * jv
        fz += w * jw
        closing += w * nearing
        sx += cube * dx
        sy += cube * dy
        sz += cube * dz
    return phi_sum, fx, fy, fz, closing, sx, sy, sz


@parallel(fastmath=FAST, error_model="numpy")
def _properties(
    chunk: int,
    points: Array, order: Array, first: Array, data: Array, start: Array, origin: Array, spacing: Array,
    cells: Array, sums: Array,
) -> None:  # fmt: skip
    """Fill ``sums`` (8, n) by `_property_sums` at the sorted ``points`` (6, n), in reaches and m/s.

    ``first`` is the first point of each cell, ``start`` the first row of ``data``.
    """
    near, box = np.zeros(6 * WIDTH, data.dtype), np.empty((2, 3), data.dtype)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    for p, end in list_groups(chunk, order, len(order), first):
        sums[:, p:end] = 0.0
        box_of(points.T, p, end, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        run = 0
        while run < number:
            count, run = fill_list(data, runs, number, run, near)
            for t in range(p, end):
                part = _property_sums(
                    near, count, points[0, t], points[1, t], points[2, t], points[3, t], points[4, t],
                    points[5, t],
                )  # fmt: skip
                for k in range(8):
                    sums[k, t] += part[k]


def properties_at(liquid: SortedLiquid, x: Array, u: Array) -> LiquidProperties:
    """Properties of the liquid around points at `x` (n, 3) m that move at `u` (n, 3) m/s."""
    near, n = liquid.near, len(x)
    place = in_reaches(x, near.low, liquid.reach)
    first, order = partition(place, *near.grid)
    points = gather_sorted(np.concatenate([place, u], axis=1), order)
    sums = np.empty((8, n), x.dtype)
    _properties(points, order, first, liquid.data, near.start, *near.grid, sums)
    found = scatter_sorted(sums, order, np.empty((n, 8), x.dtype))
    weight, crowd = x.dtype.type(liquid.weight), found[:, :1]
    flow = found[:, 1:4] / np.where(crowd > 0, crowd, 1)
    return LiquidProperties(weight * found[:, 0], flow, weight * found[:, 4], found[:, 5:])


@parallel(fastmath=FAST, error_model="numpy")
def _crests(
    chunk: int,
    rows: Array, place: Array, normal: Array, data: Array, normals: Array, start: Array, origin: Array,
    spacing: Array, cells: Array, crest: Array,
) -> None:  # fmt: skip
    n, kind = len(rows), data.dtype.type
    zero, one, four, half, tiny = kind(0), kind(1), kind(4), kind(0.5), kind(TINY)
    box, runs = np.empty((2, 3), data.dtype), np.empty((cells[0] * cells[1], 2), np.int64)
    for k in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        row, total = rows[k], zero
        px, py, pz = place[row, 0], place[row, 1], place[row, 2]
        nx, ny, nz = normal[row, 0], normal[row, 1], normal[row, 2]
        box_of(place, row, row + 1, box)
        for run in range(runs_around(box, start, origin, spacing, cells, 1.0, runs)):
            for t in range(np.uintp(runs[run, 0]), np.uintp(runs[run, 1])):
                dx, dy, dz = px - data[0, t], py - data[1, t], pz - data[2, t]
                r2 = dx * dx + dy * dy + dz * dz + tiny
                q = half * r2 * double_inverse_root(r2)
                away = one - q
                away = away if away > zero else zero
                w = away * away * away * away * (four * q + one)
                turned = normals[3, t] - (nx * normals[0, t] + ny * normals[1, t] + nz * normals[2, t])
                total += w * turned if dx * nx + dy * ny + dz * nz > zero else zero
        crest[k] = total


def crests(liquid: SortedLiquid, rows: Array, normals: Array) -> Array:
    """Crest (k,) of the particles in the `rows` (k,) of the liquid.

    `normals` (m, 4) has the unit normal and a 1 for each particle of the surface, 0 for all others; images
    follow the particles.
    """
    near, crest = liquid.near, np.empty(len(rows), normals.dtype)
    ordered = gather_sorted(normals, near.order)
    _crests(rows, near.place, normals, liquid.data, ordered, near.start, *near.grid, crest)
    return np.asarray(liquid.weight * crest)


@parallel(error_model="numpy")
def carry(
    chunk: int,
    x: Array, v: Array, kind: Array, life: Array, share: Array, walls: Array, flow: Array, air: float,
    water: float, dt: float, pull: Array, glide: Array, rise: Array, follow: Array, fading: Array,
) -> None:  # fmt: skip
    """Move whitewater at ``x`` (n, 3) m with ``v`` (n, 3) m/s by a tick of ``dt`` s, and fill ``kind`` (n,).

    A particle is spray if its ``share`` (n,) is below ``air``. It flies: x += a v + b g, v = e v + a g, with
    ``pull`` g (3,) and ``glide`` e, a, b (1, dt, dt^2 / 2 without drag). It is a bubble if the share, plus
    the part of ``walls`` (n,), is above ``water``. It tends to the velocity w = U + ``rise`` (3,), where
    ``flow`` U (n, 3) is that of the liquid: x += dt w + a (v - w), v = w + e (v - w), with ``follow`` e, a.
    Else it is foam and moves with the liquid: x += dt / 2 (v + U), then v = U. ``life`` (n,) is lowered by
    the entry of ``fading`` (3,) for its kind.
    """
    n, number = len(x), x.dtype.type
    step, half = number(dt), number(0.5 * dt)
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        now = FOAM if share[row] + walls[row] <= water else BUBBLE
        now = SPRAY if share[row] < air else now
        for k in range(3):
            own, there = v[row, k], flow[row, k]
            if now == SPRAY:
                x[row, k] += number(glide[1]) * own + number(glide[2] * pull[k])
                v[row, k] = number(glide[0]) * own + number(glide[1] * pull[k])
            elif now == FOAM:
                x[row, k] += half * (own + there)
                v[row, k] = there
            else:
                end = there + number(rise[k])
                x[row, k] += step * end + number(follow[1]) * (own - end)
                v[row, k] = end + number(follow[0]) * (own - end)
        kind[row] = now
        life[row] -= number(fading[now])
