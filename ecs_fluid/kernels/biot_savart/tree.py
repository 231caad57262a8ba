"""Velocity and its gradient by the influence tree, one walk per block of targets.

A walk starts at the root and collects a list of sources. A node far enough from the whole block contributes
its supervorton; a nearer one is opened; and a near leaf contributes its supervorton or, with ``originals``,
its vortons (Gourlay, part 12: then a vorton has exactly no effect on itself). The list is summed by the loops
of the direct sum. "Far enough" means

* ``BOX`` (Gourlay, part 3): the block does not touch the box of the node, grown on each side by ``opening``
  times the cell size of its layer. Useful values are 1e-4 (fast, rough) to 4; infinity with ``originals`` is
  the direct sum. The root is always opened, and a tree of one cell is the direct sum.
* ``ANGLE`` (Barnes and Hut 1986): radius < opening x distance, with the distance from the centre of the node
  to the nearest point of the block and the radius to the farthest corner of its cell; 0 < opening <= 1.

A supervorton has the strength of its cluster (monopole). With ``dipoles`` four vortons represent a cluster,
at the corners t_k of a tetrahedron around its centre c, stretched along each axis to a fraction s_a of the
cluster's spread: x_k = c + s t_k, alpha_kb = alpha_b/4 + 3/4 sum_a t_ka dipole_ab / s_a. Since sum t_k = 0
and sum t_ka t_kb = 4/3 delta_ab, they have the strength of the cluster and its dipole, for any kernel; their
contribution to higher moments is of the order s^2. A cluster whose dipole is small compared with strength
times spread, as where all strengths are alike, remains one supervorton.

Supervortons act with the regularised kernel at every distance. The singular far field is never used, so a
node within a few core radii needs no special treatment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.pairwise import (
    GRADIENT_SUMS,
    PAIR_SCALE,
    VELOCITY_SUMS,
    add_gradient,
    add_velocity,
    block_arrays,
    join_gradient,
    load_block,
    pad_pack,
    store_block,
)
from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import core_constant, renamed
from ecs_fluid.kernels.biot_savart.target_blocks import Blocks, point_blocks
from ecs_fluid.kernels.biot_savart.tree_build import Tree
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE

BOX, ANGLE = 0, 1

_OFFSET = 0.3
"""Distance of a cluster's four vortons, as a fraction of its spread: less would lose digits, more
accuracy."""
_LEAST_DIPOLE = 0.1
"""A dipole below this fraction of strength times spread is left out: the next moment matters more."""
_CORNER = 1.0 / np.sqrt(3.0)
_STACK_SIZE = 512
"""A walk holds at most 7 nodes per layer and 8 for the last; 64 layers are more than int64 can count."""


# Functions called for each node get plain numbers: passing a tuple of arrays would cost two reference counts
# for each array, more than everything else.


@njit(**INLINE)
def touches(layer: int, cell: Any, last: Any, mesh: Any, low: Any, high: Any, margin: float) -> bool:
    """Does the block low..high touch the ``cell`` (i, j, k) of this layer, grown by margin x its size?

    ``last`` (i, j, k) is the last cell of the layer, and ``mesh`` the result of `mesh_of`; all are tuples.
    """
    origin, spacing, least, most = mesh
    scale = float(np.int64(1) << np.int64(layer))
    for a in range(3):
        size = spacing[a] * scale
        left = origin[a] + size * cell[a]
        right = left + size
        left = min(left, least[a]) if cell[a] == 0 else left
        right = max(right, most[a]) if cell[a] == last[a] else right
        if high[a] < left - margin * size or low[a] > right + margin * size:
            return False
    return True


@njit(**INLINE)
def mesh_of(tree: Any) -> Any:
    """Origin, spacing and ends of the cells of a tree, as tuples of numbers."""
    o, s, e = tree.origin, tree.spacing, tree.ends
    return (
        (o[0], o[1], o[2]), (s[0], s[1], s[2]), (e[0, 0], e[0, 1], e[0, 2]), (e[1, 0], e[1, 1], e[1, 2])
    )  # fmt: skip


@njit(**INLINE)
def is_far(vortons: Any, x: Any, y: Any, z: Any, radius: Any, low: Any, high: Any, theta: float) -> bool:
    """Is the radius of a node smaller than theta x the distance of its centre from the block low..high?"""
    dx = max(low[0] - np.float64(x), np.float64(x) - high[0], 0.0)
    dy = max(low[1] - np.float64(y), np.float64(y) - high[1], 0.0)
    dz = max(low[2] - np.float64(z), np.float64(z) - high[2], 0.0)
    r = np.float64(radius)
    return bool(vortons == 1 or r * r < theta * theta * (dx * dx + dy * dy + dz * dz))


@njit(**INLINE)
def _append_source(code: Code, pack: Any, at: int, x: Any, alpha: Any, sigma: Any, row: Any) -> None:
    for a in range(3):
        pack[a, at] = x[a, row]
        pack[3 + a, at] = alpha[a, row]
    s2 = sigma[row] * sigma[row]
    pack[6, at] = s2
    pack[7, at] = core_constant(code, s2)


@njit(**INLINE)
def _has_dipole(moments: Any, alpha: Any, node: Any) -> bool:
    """Is the dipole of a node more than the fraction `_LEAST_DIPOLE` of its strength times its spread?"""
    kind = type(alpha[0, node])
    dipole = strength = spread = kind(0)
    for a in range(3):
        strength += alpha[a, node] * alpha[a, node]
        spread += moments[node, a] * moments[node, a]
        for b in range(3):
            dipole += moments[node, 3 + 3 * a + b] * moments[node, 3 + 3 * a + b]
    return bool(dipole > kind(_LEAST_DIPOLE * _LEAST_DIPOLE) * strength * spread)


@njit(**INLINE)
def _append_dipole(pack: Any, at: int, moments: Any, node: Any) -> None:
    """Replace the vorton at place ``at`` of the pack by four.

    They lie at the corners (1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1), over the root of 3.
    """
    kind = type(pack[0, at])
    for b in range(3):
        quarter, x = kind(0.25) * pack[3 + b, at], pack[b, at]
        offset = kind(_OFFSET * _CORNER) * moments[node, b]
        e0 = e1 = e2 = kind(0)
        if moments[node, 0] > kind(0):
            e0 = kind(0.75 * _CORNER / _OFFSET) * moments[node, 3 + b] / moments[node, 0]
        if moments[node, 1] > kind(0):
            e1 = kind(0.75 * _CORNER / _OFFSET) * moments[node, 6 + b] / moments[node, 1]
        if moments[node, 2] > kind(0):
            e2 = kind(0.75 * _CORNER / _OFFSET) * moments[node, 9 + b] / moments[node, 2]
        pack[3 + b, at] = quarter + e0 + e1 + e2
        pack[3 + b, at + 1] = quarter + e0 - e1 - e2
        pack[3 + b, at + 2] = quarter - e0 + e1 - e2
        pack[3 + b, at + 3] = quarter - e0 - e1 + e2
        pack[b, at] = x + offset
        for k in range(3):
            pack[b, at + 1 + k] = x + offset if k == b else x - offset
    for row in range(6, 8):
        for k in range(1, 4):
            pack[row, at + k] = pack[row, at]


@njit(**FAST_LOOP)
def _start_walk(
    code: Code, tree: Any, criterion: int, opening: float, originals: bool, dipoles: bool, low: Any,
    high: Any, stack: Any, pack: Any,
) -> Any:  # fmt: skip
    """Put the root on the stack or into the pack; returns the stack's depth and the pack's filled length."""
    layer = tree.cells.shape[0] - 1
    root = tree.first[layer]
    if tree.vortons[root] == 0:
        return 0, 0
    x, y, z, radius = tree.x[0, root], tree.x[1, root], tree.x[2, root], tree.radius[root]
    box = (low[0], low[1], low[2]), (high[0], high[1], high[2])
    alone = layer == 0 and not originals
    if alone or (criterion == ANGLE and is_far(tree.vortons[root], x, y, z, radius, *box, opening)):
        _append_source(code, pack, 0, tree.x, tree.alpha, tree.sigma, root)
        if dipoles and tree.vortons[root] > 1 and _has_dipole(tree.moments, tree.alpha, root):
            _append_dipole(pack, 0, tree.moments, root)
            return 0, 4
        return 0, 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = layer, 0, 0, 0
    return 1, 0


@njit(**FAST_LOOP)
def _walk(
    code: Code, tree: Any, criterion: int, opening: float, originals: bool, dipoles: bool, low: Any,
    high: Any, stack: Any, depth: int, resume: int, pack: Any, filled: int,
) -> Any:  # fmt: skip
    """Continue a walk until the pack is full or the stack of nodes to be opened is empty.

    Returns the filled length, the depth of the stack, and how many vortons of the leaf on its top are
    already in an earlier pack.
    """
    width = pack.shape[1]
    cells, first, vortons, radius, start = tree.cells, tree.first, tree.vortons, tree.radius, tree.start
    x, alpha, moments, sigma = tree.x, tree.alpha, tree.moments, tree.sigma
    sx, sa, ssigma = tree.sx, tree.sa, tree.ssigma
    box = (low[0], low[1], low[2]), (high[0], high[1], high[2])
    mesh = mesh_of(tree)
    while depth > 0 and filled + 8 * 4 <= width:
        depth -= 1
        layer, i, j, k = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if layer == 0:
            cell = (i * cells[0, 1] + j) * cells[0, 2] + k
            begin = start[cell] + resume
            end = min(start[cell + 1], begin + width - filled)
            for row in range(begin, end):
                _append_source(code, pack, filled, sx, sa, ssigma, row)
                filled += 1
            resume = 0
            if end < start[cell + 1]:
                resume = end - start[cell]
                depth += 1
            continue
        below = layer - 1
        nx, ny, nz = cells[below, 0], cells[below, 1], cells[below, 2]
        for ci in range(2 * i, min(2 * i + 2, nx)):
            for cj in range(2 * j, min(2 * j + 2, ny)):
                row = first[below] + (ci * ny + cj) * nz
                for ck in range(2 * k, min(2 * k + 2, nz)):
                    node = row + ck
                    count = vortons[node]
                    if count == 0:
                        continue
                    if below == 0 and not originals:
                        whole = True
                    elif criterion == BOX:
                        last = nx - 1, ny - 1, nz - 1
                        whole = not touches(below, (ci, cj, ck), last, mesh, *box, opening)
                    else:
                        place = x[0, node], x[1, node], x[2, node]
                        whole = is_far(count, *place, radius[node], *box, opening)
                    if whole:
                        _append_source(code, pack, filled, x, alpha, sigma, node)
                        if dipoles and count > 1 and _has_dipole(moments, alpha, node):
                            _append_dipole(pack, filled, moments, node)
                            filled += 3
                        filled += 1
                    else:
                        stack[depth, 0], stack[depth, 1] = below, ci
                        stack[depth, 2], stack[depth, 3] = cj, ck
                        depth += 1
    return filled, depth, resume


@njit(**FAST_LOOP)
def _bounds(points: Any, count: int, low: Any, high: Any) -> None:
    """Bounds of a block, whose last point is repeated to a multiple of four, in four independent chains."""
    for a in range(3):
        x0 = y0 = points[a, 0]
        x1 = y1 = points[a, 1]
        x2 = y2 = points[a, 2]
        x3 = y3 = points[a, 3]
        for t in range(4, count, 4):
            x0, y0 = min(x0, points[a, t]), max(y0, points[a, t])
            x1, y1 = min(x1, points[a, t + 1]), max(y1, points[a, t + 1])
            x2, y2 = min(x2, points[a, t + 2]), max(y2, points[a, t + 2])
            x3, y3 = min(x3, points[a, t + 3]), max(y3, points[a, t + 3])
        low[a], high[a] = min(min(x0, x1), min(x2, x3)), max(max(y0, y1), max(y2, y3))


def _chunk_kernel(name: str, add: Any, rows: int) -> Any:
    """Kernel: velocity, and gradient if ``du`` has columns, by the pair loop ``add``; and the number of pairs
    of each chunk of blocks."""

    def chunk_of_blocks(
        chunk: int, code: Code, targets: Any, order: Any, starts: Any, tree: Any, criterion: int,
        opening: float, originals: bool, dipoles: bool, u: Any, du: Any, pairs: Any,
    ) -> None:  # fmt: skip
        blocks, chunks = starts.size - 1, len(pairs)
        pack, points, sums = block_arrays(tree.ssigma, rows)
        stack, low, high = np.empty((_STACK_SIZE, 4), np.int64), np.empty(3), np.empty(3)
        for b in range(chunk * blocks // chunks, (chunk + 1) * blocks // chunks):
            first, count = starts[b], starts[b + 1] - starts[b]
            load_block(targets, order, first, count, points)
            _bounds(points, count, low, high)
            sums[:] = 0.0
            arguments = criterion, opening, originals, dipoles, low, high, stack
            depth, filled = _start_walk(code, tree, *arguments, pack)
            resume = 0
            while depth + filled > 0:
                filled, depth, resume = _walk(code, tree, *arguments, depth, resume, pack, filled)
                add(code, pack, pad_pack(pack, filled), points, count, sums)
                pairs[chunk] += filled * count
                filled = 0
            if rows == GRADIENT_SUMS:
                join_gradient(count, sums)
            store_block(sums, 0, PAIR_SCALE, order, first, count, u)
            store_block(sums, 3, PAIR_SCALE, order, first, count, du)

    return parallel("len(pairs)", **FAST_LOOP)(renamed(chunk_of_blocks, name))


_velocity = _chunk_kernel("velocity_chunk", add_velocity, VELOCITY_SUMS)
_gradient = _chunk_kernel("gradient_chunk", add_gradient, GRADIENT_SUMS)


def uses_originals(tree: Tree, originals: bool) -> bool:
    """Whether the leaves contribute vortons, not supervortons."""
    # One supervorton for all vortons would be useless: a tree of one cell is summed directly.
    return bool(originals) or len(tree.cells) == 1


def velocity(
    code: Code, targets: NDArray[Any], tree: Tree, u: NDArray[Any], du: NDArray[Any] | None = None, *,
    blocks: Blocks | None = None, criterion: int = BOX, opening: float, originals: bool = False,
    dipoles: bool = False,
) -> int:  # fmt: skip
    """Velocity ``u (m, 3)`` [m/s] at ``targets (m, 3)`` [m] with regularisation ``code``; overwrites ``u``.

    With ``du (m, 3, 3)`` also its gradient, du[:, i, j] = du_i/dx_j [1/s]. ``blocks`` groups the targets
    (``grid_blocks`` for grid points); without it they are sorted here. All arrays have the dtype of the tree.
    ``opening``, ``originals`` and ``dipoles``: see the top of this file. Returns the
    number of pairs of a target and a (super)vorton.
    """
    record(code)
    order, starts = point_blocks(targets) if blocks is None else blocks
    given = tree, criterion, float(opening), uses_originals(tree, originals), bool(dipoles)
    pairs = np.zeros(min(len(starts) - 1, 4 * CHUNKS), np.int64)
    if du is None:
        _velocity(code, targets, order, starts, *given, u, u[:, :0], pairs)
    else:
        _gradient(code, targets, order, starts, *given, u, du.reshape(len(targets), 9), pairs)
    return int(pairs.sum())
