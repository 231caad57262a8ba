"""The part of an influence tree that a set of targets needs: its locally essential tree.

A walk of ``kernels.biot_savart.tree`` opens a node that is not far enough from its block of targets, and then
reads its children, or the vortons of a leaf. A box around several blocks is at most as far from any node as
each of the blocks is, so the nodes opened for such boxes include all that are opened for the blocks. Source:
Salmon and Warren, J. Comput. Phys. 111 (1994), for gravity on many processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.tree import BOX, is_far, mesh_of, touches
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel

_SLACK = 1e-6
"""Nodes beyond the limit by up to this much are opened too: sums may be rounded differently than in a
walk."""


@njit(**FAST_LOOP)
def _opens(tree: Any, layer: int, index: Any, criterion: int, opening: float, low: Any, high: Any) -> bool:
    box = (low[0], low[1], low[2]), (high[0], high[1], high[2])
    if criterion == BOX:
        root = layer == tree.cells.shape[0] - 1
        ny, nz = tree.cells[layer, 1], tree.cells[layer, 2]
        cell = (index // (ny * nz), index // nz % ny, index % nz)
        last = (tree.cells[layer, 0] - 1, ny - 1, nz - 1)
        return bool(root or touches(layer, cell, last, mesh_of(tree), *box, opening + _SLACK))
    node = tree.first[layer] + index
    place = tree.x[0, node], tree.x[1, node], tree.x[2, node]
    return not is_far(tree.vortons[node], *place, tree.radius[node], *box, opening * (1.0 - _SLACK))


@parallel(**FAST_LOOP)
def _open_layer(
    chunk: int,
    tree: Any, layer: int, a: int, b: int, above: int, opened_above: Any,
    criterion: int, opening: float, low: Any, high: Any, opened: Any,
) -> None:  # fmt: skip
    ny, nz = tree.cells[layer, 1], tree.cells[layer, 2]
    py, pz = (ny + 1) // 2, (nz + 1) // 2
    nodes, boxes = b - a, low.shape[0] - 1
    for n in range(a + chunk * nodes // CHUNKS, a + (chunk + 1) * nodes // CHUNKS):
        if tree.vortons[tree.first[layer] + n] == 0:
            continue
        parent = (n // (ny * nz) // 2 * py + (n // nz) % ny // 2) * pz + n % nz // 2 - above
        if 0 <= parent < opened_above.size and not opened_above[parent]:
            continue
        # The last box encloses all others.
        if not _opens(tree, layer, n, criterion, opening, low[boxes], high[boxes]):
            continue
        for box in range(boxes):
            if _opens(tree, layer, n, criterion, opening, low[box], high[box]):
                opened[n - a] = True
                break


def opened_nodes(
    tree: Any, ranges: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64], *,
    criterion: int, opening: float, originals: bool,
) -> list[NDArray[np.int64]]:  # fmt: skip
    """Indices within their layers, by layer, of the nodes that walks for targets in the boxes may open.

    ``tree`` is a Tree with at least the nodes ``ranges`` (layers, 2) of each layer; only those are tested.
    ``low`` and ``high`` (k, 3) m are the corners of the boxes; the rest as in ``kernels.biot_savart.tree``.
    """
    opened_by_layer: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(ranges)
    if len(low) == 0:
        return opened_by_layer
    low, high = np.vstack([low, low.min(axis=0)]), np.vstack([high, high.max(axis=0)])
    above, opened_above = 0, np.empty(0, np.bool_)
    for layer in range(len(ranges) - 1, -1 if originals else 0, -1):
        a, b = (int(end) for end in ranges[layer])
        opened = np.zeros(b - a, np.bool_)
        _open_layer(tree, layer, a, b, above, opened_above, criterion, opening, low, high, opened)
        opened_by_layer[layer] = a + np.flatnonzero(opened)
        above, opened_above = a, opened
    return opened_by_layer


def children_of(cells: NDArray[np.int64], layer: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices in the layer below of the children of nodes of a layer, node after node.

    ``cells`` (layers, 3) is the field of the tree.
    """
    (nx, ny, nz), (_, my, mz) = cells[layer - 1], cells[layer]
    i, j, k = (2 * axis[:, None] for axis in (nodes // (my * mz), nodes // mz % my, nodes % mz))
    i, j, k = (axis + np.arange(8) // step % 2 for axis, step in ((i, 4), (j, 2), (k, 1)))
    inside = (i < nx) & (j < ny) & (k < nz)
    children: NDArray[np.int64] = ((i * ny + j) * nz + k)[inside]
    return children


def first_parent(cells: NDArray[np.int64], layer: int, node: int) -> int:
    """Index in ``layer`` of the first node whose first child is not before ``node`` of the layer below."""
    (_, ny, nz), (_, my, mz) = cells[layer - 1].tolist(), cells[layer].tolist()
    i, j, k = node // (ny * nz), node // nz % ny, node % nz
    if i % 2:
        return int((i + 1) // 2 * my * mz)
    if j % 2:
        return int((i // 2 * my + (j + 1) // 2) * mz)
    return int((i // 2 * my + j // 2) * mz + (k + 1) // 2)


def end_of_children(cells: NDArray[np.int64], layer: int, end: int) -> int:
    """An index in the layer below that is beyond all children of the nodes before ``end`` of a layer."""
    nx, ny, nz = cells[layer - 1].tolist()
    _, my, mz = cells[layer].tolist()
    if end == 0:
        return 0
    i, j, k = (end - 1) // (my * mz), (end - 1) // mz % my, (end - 1) % mz
    return int(min((2 * i * ny + 2 * j) * nz + 2 * k + (ny + 1) * nz + 2, nx * ny * nz))


def concatenated_ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers first[0], first[0] + 1, ..., `count[0]` of them, then those of the next, and so on."""
    ends = np.cumsum(count)
    shift = np.repeat(first - (ends - count), count)
    numbers: NDArray[np.int64] = shift + np.arange(len(shift))
    return numbers
