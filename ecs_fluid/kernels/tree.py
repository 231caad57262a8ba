"""Velocity and its gradient by the influence tree, one walk per block of targets.

A walk starts at the root and collects a list: a node far enough from the whole block gives its supervorton, a
nearer one is opened, and a near leaf gives its supervorton or, with ``originals``, its vortons (Gourlay, part
12: then a vorton moves itself by exactly nothing). The list is summed by the loops of the direct sum. "Far
enough" is

* ``BOX`` (Gourlay, part 3): the block does not touch the box of the node, grown on each side by ``opening``
  times the cell size of its layer. Useful values are 1e-4 (fast, rough) to 4; infinity with ``originals`` is
  the direct sum. The root is always opened, and a tree of one cell is the direct sum.
* ``ANGLE`` (Barnes and Hut 1986): radius < opening x distance, with the distance from the centre of the node
  to the nearest point of the block and the radius to the farthest corner of its cell; 0 < opening <= 1.

Supervortons act with the regularised kernel at every distance. The singular far field is not used anywhere,
so a node inside a few core radii needs no guard of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels import CHUNKS, FAST
from ecs_fluid.kernels.blocks import Blocks, point_blocks
from ecs_fluid.kernels.pairwise import (
    GRADIENT_SUMS,
    SCALE,
    VELOCITY_SCALE,
    VELOCITY_SUMS,
    add_gradient,
    add_velocity,
    block_arrays,
    load_block,
    pad_pack,
    store_block,
)
from ecs_fluid.kernels.regularisation import core_constant
from ecs_fluid.kernels.supervortons import Tree

BOX, ANGLE = 0, 1

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
_STACK = (
    512  # a walk holds at most 7 nodes per layer and 8 for the last; 64 layers are more than int64 can count
)


@njit(**_PART)
def touches(tree: Any, layer: int, index: Any, low: Any, high: Any, margin: float) -> bool:
    """Does the block low..high touch the cell of this layer, grown by margin x its size?"""
    nz, ny = tree.cells[layer, 2], tree.cells[layer, 1]
    scale = float(np.int64(1) << np.int64(layer))
    for a in range(3):
        i = index // (ny * nz) if a == 0 else ((index // nz) % ny if a == 1 else index % nz)
        size = tree.spacing[a] * scale
        left = tree.origin[a] + size * i
        if high[a] < left - margin * size or low[a] > left + size + margin * size:
            return False
    return True


@njit(**_PART)
def is_far(tree: Any, node: Any, low: Any, high: Any, theta: float) -> bool:
    """Is the radius of the node smaller than theta x the distance of its centre from the block?"""
    if tree.vortons[node] == 1:
        return True
    d2 = 0.0
    for a in range(3):
        x = np.float64(tree.x[a, node])
        d2 += max(low[a] - x, x - high[a], 0.0) ** 2
    return bool(np.float64(tree.radius[node]) ** 2 < theta * theta * d2)


@njit(**_PART)
def _append(code: int, pack: Any, at: int, x: Any, alpha: Any, sigma: Any, row: Any) -> None:
    for a in range(3):
        pack[a, at] = x[a, row]
        pack[3 + a, at] = alpha[a, row]
    s2 = sigma[row] * sigma[row]
    pack[6, at] = s2
    pack[7, at] = core_constant(code, s2)


@njit(**_PART)
def _push_children(tree: Any, layer: int, index: Any, stack: Any, depth: int) -> int:
    """Put the children of a node that hold vortons on the stack; the first child will be taken first."""
    ny, nz = tree.cells[layer, 1], tree.cells[layer, 2]
    cx, cy, cz = tree.cells[layer - 1]
    i0, j0, k0 = 2 * (index // (ny * nz)), 2 * ((index // nz) % ny), 2 * (index % nz)
    for i in range(min(i0 + 1, cx - 1), i0 - 1, -1):
        for j in range(min(j0 + 1, cy - 1), j0 - 1, -1):
            for k in range(min(k0 + 1, cz - 1), k0 - 1, -1):
                child = (i * cy + j) * cz + k
                if tree.vortons[tree.first[layer - 1] + child] > 0:
                    stack[depth, 0] = layer - 1
                    stack[depth, 1] = child
                    depth += 1
    return depth


@njit(**_PART)
def _walk(
    code: int, tree: Any, criterion: int, opening: float, originals: bool, low: Any, high: Any,
    stack: Any, depth: int, resume: int, pack: Any,
) -> Any:  # fmt: skip
    """Go on with a walk until the pack is full or the stack is empty.

    Returns the filled length, the depth of the stack, and how many vortons of the leaf on its top are
    already in an earlier pack.
    """
    width = pack.shape[1]
    filled = 0
    while depth > 0:
        layer, index = stack[depth - 1, 0], stack[depth - 1, 1]
        node = tree.first[layer] + index
        if layer == 0 and not originals:
            far = True
        elif criterion == BOX:
            root = layer == tree.cells.shape[0] - 1
            far = not root and not touches(tree, layer, index, low, high, opening)
        else:
            far = is_far(tree, node, low, high, opening)
        if far:
            if filled == width:
                break
            _append(code, pack, filled, tree.x, tree.alpha, tree.sigma, node)
            filled += 1
            depth -= 1
        elif layer > 0:
            depth = _push_children(tree, layer, index, stack, depth - 1)
        else:
            first = tree.start[index] + resume
            last = min(tree.start[index + 1], first + width - filled)
            for row in range(first, last):
                _append(code, pack, filled, tree.sx, tree.sa, tree.ssigma, row)
                filled += 1
            if last < tree.start[index + 1]:
                resume += last - first
                break
            resume = 0
            depth -= 1
    return filled, depth, resume


@njit(**_PART)
def _bounds(points: Any, count: int, low: Any, high: Any) -> None:
    for a in range(3):
        low[a] = points[a, 0]
        high[a] = points[a, 0]
        for t in range(1, count):
            low[a] = min(low[a], np.float64(points[a, t]))
            high[a] = max(high[a], np.float64(points[a, t]))


@njit(**_OPTIONS)
def _velocity(
    code: int,
    targets: Any,
    order: Any,
    starts: Any,
    tree: Any,
    criterion: int,
    opening: float,
    originals: bool,
    u: Any,
) -> int:
    blocks, pairs = starts.size - 1, 0
    chunks = min(blocks, 4 * CHUNKS)
    for chunk in prange(chunks):
        pack, points, sums = block_arrays(tree.ssigma, VELOCITY_SUMS)
        stack, low, high = np.empty((_STACK, 2), np.int64), np.empty(3), np.empty(3)
        for b in range(chunk * blocks // chunks, (chunk + 1) * blocks // chunks):
            first, count = starts[b], starts[b + 1] - starts[b]
            load_block(targets, order, first, count, points)
            _bounds(points, count, low, high)
            sums[:] = 0.0
            stack[0, 0], stack[0, 1] = tree.cells.shape[0] - 1, 0
            depth, resume = 1, 0
            while depth > 0:
                filled, depth, resume = _walk(
                    code, tree, criterion, opening, originals, low, high, stack, depth, resume, pack
                )
                add_velocity(code, pack, pad_pack(pack, filled), points, count, sums)
                pairs += filled * count
            store_block(sums, 0, VELOCITY_SCALE, order, first, count, u)
    return pairs


@njit(**_OPTIONS)
def _velocity_gradient(
    code: int, targets: Any, order: Any, starts: Any, tree: Any,
    criterion: int, opening: float, originals: bool,
    u: Any, du: Any,
) -> int:  # fmt: skip
    blocks, pairs = starts.size - 1, 0
    chunks = min(blocks, 4 * CHUNKS)
    for chunk in prange(chunks):
        pack, points, sums = block_arrays(tree.ssigma, GRADIENT_SUMS)
        stack, low, high = np.empty((_STACK, 2), np.int64), np.empty(3), np.empty(3)
        for b in range(chunk * blocks // chunks, (chunk + 1) * blocks // chunks):
            first, count = starts[b], starts[b + 1] - starts[b]
            load_block(targets, order, first, count, points)
            _bounds(points, count, low, high)
            sums[:] = 0.0
            stack[0, 0], stack[0, 1] = tree.cells.shape[0] - 1, 0
            depth, resume = 1, 0
            while depth > 0:
                filled, depth, resume = _walk(
                    code, tree, criterion, opening, originals, low, high, stack, depth, resume, pack
                )
                add_gradient(code, pack, pad_pack(pack, filled), points, count, sums)
                pairs += filled * count
            store_block(sums, 0, SCALE, order, first, count, u)
            store_block(sums, 3, SCALE, order, first, count, du)
    return pairs


def at_leaves(tree: Tree, originals: bool) -> bool:
    """Whether vortons stand at the leaves."""
    # One supervorton for everything would be no answer: a tree of one cell is summed directly.
    return bool(originals) or len(tree.cells) == 1


def velocity(
    code: int,
    targets: NDArray[Any],
    tree: Tree,
    u: NDArray[Any],
    *,
    blocks: Blocks | None = None,
    criterion: int = BOX,
    opening: float,
    originals: bool = False,
) -> int:
    """Velocity ``u (m, 3)`` [m/s] at ``targets (m, 3)`` [m] with regularisation ``code``; overwrites ``u``.

    ``blocks`` groups the targets (``grid_blocks`` for grid points); without it they are sorted here.
    All arrays have the dtype of the tree. ``opening``: see the top of this file. Returns the number of pairs
    of a target and a vorton or supervorton.
    """
    order, starts = point_blocks(targets) if blocks is None else blocks
    leaves = at_leaves(tree, originals)
    return int(_velocity(code, targets, order, starts, tree, criterion, float(opening), leaves, u))


def velocity_gradient(
    code: int,
    targets: NDArray[Any],
    tree: Tree,
    u: NDArray[Any],
    du: NDArray[Any],
    *,
    blocks: Blocks | None = None,
    criterion: int = BOX,
    opening: float,
    originals: bool = False,
) -> int:
    """Like ``velocity``, with the gradient ``du (m, 3, 3)``, du[:, i, j] = du_i/dx_j [1/s]."""
    order, starts = point_blocks(targets) if blocks is None else blocks
    rows = du.reshape(targets.shape[0], 9)
    leaves = at_leaves(tree, originals)
    how = criterion, float(opening), leaves
    return int(_velocity_gradient(code, targets, order, starts, tree, *how, u, rows))
