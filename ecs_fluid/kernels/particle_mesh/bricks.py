"""Sums at the targets of bricks of cells: near pairs from one list per brick, the rest from the mesh.

A list holds the sources within the reach of the box of a brick's targets. If there are many targets, those of
each octant of the box get a list of their own, culled again. A thread processes neighbouring bricks in turn,
so that sources and mesh points are still in its cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.pairwise import (
    BLOCK,
    GRADIENT_SUMS,
    PAIR_SCALE,
    VELOCITY_SUMS,
    join_gradient,
    pad_pack,
)
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import renamed
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import LANES
from ecs_fluid.kernels.grids.neighbours import runs_around
from ecs_fluid.kernels.particle_mesh.near_pairs import add_gradient, add_velocity, cull, near_pack
from ecs_fluid.kernels.particle_mesh.splines import ORDER, ROW, fill_weights, read

PIECES = 4 * CHUNKS
"""Number of stretches of bricks, with about equally many targets each."""

OCTANTS_ABOVE, OCTANTS_ABOVE_VELOCITY = 14, 35
"""Above this number of targets a brick is cut into octants, with gradients and without: culling a source
takes as long as four fifths of a pair with gradient, or two pairs without."""


@njit(**FAST_LOOP)
def _box(points: Any, first: int, end: int, box: Any) -> None:
    """Corners, ``box`` (2, 3) m, of points first:end of ``points`` (3, ...) m."""
    for a in range(3):
        low = high = points[a, first]
        for t in range(first + 1, end):
            low, high = min(low, points[a, t]), max(high, points[a, t])
        box[0, a], box[1, a] = low, high


@njit(**FAST_LOOP)
def _sort_by_octants(box: Any, first: int, end: int, points: Any, target: Any, ends: Any) -> None:
    """Sort points first:end and their targets' numbers by octants of their box; fills the octants'
    ``ends``."""
    half = points.dtype.type(0.5)
    x, y, z = half * (box[0, 0] + box[1, 0]), half * (box[0, 1] + box[1, 1]), half * (box[0, 2] + box[1, 2])
    octant, given, numbers = np.empty(BLOCK, np.int64), np.empty((3, BLOCK), points.dtype), target.copy()
    ends[:] = 0
    for t in range(first, end):
        for a in range(3):
            given[a, t] = points[a, t]
        octant[t] = 4 * (given[0, t] > x) + 2 * (given[1, t] > y) + (given[2, t] > z)
        ends[octant[t] + 1] += 1
    ends[0] = first
    for o in range(8):
        ends[o + 1] += ends[o]
    for t in range(first, end):
        to = ends[octant[t]]
        ends[octant[t]] += 1  # after the last one this is the end of the octant
        target[to] = numbers[t]
        for a in range(3):
            points[a, to] = given[a, t]


def _bricks(name: str, add: Any, rows_of_sums: int) -> Any:
    """Kernel: sums at the targets of all bricks, a chunk of which has some stretches of them, with the loop
    ``add`` over pairs."""
    gradient = rows_of_sums == GRADIENT_SUMS
    many = OCTANTS_ABOVE if gradient else OCTANTS_ABOVE_VELOCITY

    def near(
        code: Code, points: Any, target: Any, first: int, end: int, origin: Any, edges: Any, cells: Any,
        reach: float, start: Any, rows: Any, splits: Any, scratch: Any, sums: Any,
    ) -> None:  # fmt: skip
        """Add the near pairs of the points of one brick."""
        wide, wide_row, pack, pack_row, runs, whole, box, inner, ends = scratch
        square = points.dtype.type(reach * reach)
        _box(points, first, end, box)
        if end - first > many:
            _sort_by_octants(box, first, end, points, target, ends)
        for part in range(start.shape[0]):
            number, run = runs_around(box, start[part], origin, edges, cells, reach, runs), 0
            while run < number:
                listed, run = cull(rows, runs, number, run, box, square, wide_row)
                groups = pad_pack(wide, listed)
                if end - first <= many:
                    add(code, wide, groups, points, first, end, splits[part], sums)
                    continue
                low = first
                for octant in range(8):
                    high = ends[octant]
                    if low < high:
                        _box(points, low, high, inner)
                        whole[0, 0], whole[0, 1] = 0, listed
                        few, _ = cull(wide_row, whole, 1, 0, inner, square, pack_row)
                        add(code, pack, pad_pack(pack, few), points, low, high, splits[part], sums)
                    low = high

    add_near = njit(**FAST_LOOP)(renamed(near, f"{name}_near"))

    def fill(
        chunk: int, code: Code, x: Any, first: Any, order: Any, origin: Any, inverse: float,
        mesh_points: Any, edges: Any, cells: Any, reach: float, field: Any, start: Any, rows: Any,
        splits: Any, u: Any, du: Any,
    ) -> None:  # fmt: skip
        wide, pack, source_rows = near_pack(rows), near_pack(rows), rows.reshape(rows.size)
        scratch = (
            wide, wide.reshape(wide.size), pack, pack.reshape(pack.size),
            np.empty((cells[0] * cells[1], 2), np.int64), np.empty((1, 2), np.int64),
            np.empty((2, 3), rows.dtype), np.empty((2, 3), rows.dtype), np.empty(9, np.int64),
        )  # fmt: skip
        points, sums = np.empty((3, BLOCK), rows.dtype), np.empty((rows_of_sums, BLOCK), rows.dtype)
        target, scale = np.empty(BLOCK, np.int64), rows.dtype.type(PAIR_SCALE)
        lines, out = np.empty(3 * ROW, rows.dtype), np.empty(12, rows.dtype)
        weights, corner = np.empty((6 * ORDER, BLOCK), rows.dtype), np.empty(BLOCK, np.int64)
        for piece in range(chunk, PIECES, CHUNKS):
            brick = np.searchsorted(first, piece * order.size // PIECES)
            last = np.searchsorted(first, (piece + 1) * order.size // PIECES)
            while brick < last:
                beyond = brick + 1  # take as many bricks as fill a block
                while beyond < last and first[beyond + 1] - first[brick] <= BLOCK:
                    beyond += 1
                for low in range(first[brick], first[beyond], BLOCK):
                    count = min(BLOCK, first[beyond] - low)
                    for t in range((count + LANES - 1) // LANES * LANES):
                        target[t] = order[low + min(t, count - 1)]
                        for a in range(3):
                            points[a, t] = x[target[t], a]
                    sums[:] = 0.0
                    begin = 0
                    for one in range(brick, beyond):
                        end = min(first[one + 1] - low, count)
                        if begin < end:
                            add_near(
                                code, points, target, begin, end, origin, edges, cells, reach, start,
                                source_rows, splits, scratch, sums,
                            )  # fmt: skip
                            begin = end
                    if gradient:
                        join_gradient(count, sums)
                    fill_weights(points, count, origin, inverse, mesh_points, weights, corner)
                    for t in range(count):
                        row = target[t]
                        read(corner[t], t, weights, mesh_points, field, gradient, lines, out)
                        for a in range(3):
                            u[row, a] = out[a] + scale * sums[a, t]
                        for a in range(du.shape[1]):
                            du[row, a] = out[3 + a] + scale * sums[3 + a, t]
                brick = beyond

    return parallel(**FAST_LOOP)(renamed(fill, name))


brick_velocity = _bricks("particle_mesh_velocity", add_velocity, VELOCITY_SUMS)
brick_gradient = _bricks("particle_mesh_gradient", add_gradient, GRADIENT_SUMS)
