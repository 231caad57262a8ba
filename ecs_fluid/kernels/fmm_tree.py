"""Balanced binary tree over points: every node is cut at the median of its longest side.

Node k of level l holds rows (k n) >> l up to ((k + 1) n) >> l of the sorted points and stands at 2^l - 1 + k
in the node arrays, so the tree needs no pointers, all leaves are of nearly one size, and a ring, a plane or
two clusters a thousand diameters apart are cut as well as a full cube. Coincident points do no harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels import FAST

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}

_LEAST_SCALE = 0.01
"""A node is scaled by its radius, but not by less than this part of the scale of its parent: expansions of a
node of one point are divided by powers of it."""


class PointTree(NamedTuple):
    """Sorted points and the nodes over them; all lengths in m."""

    depth: int
    """level of the leaves; the root is level 0"""
    order: NDArray[np.int64]
    """(n,) sorted row -> given row"""
    x: NDArray[Any]
    """(3, n) sorted points"""
    centre: NDArray[np.float64]
    """(nodes, 3) middle of the bounding box"""
    radius: NDArray[np.float64]
    """(nodes,) from the centre to the farthest point"""
    scale: NDArray[np.float64]
    """(nodes,) unit of length of the expansions of the node, positive"""


@njit(**_PART)
def _swap(x: Any, order: Any, i: Any, j: Any) -> None:
    for a in range(3):
        x[a, i], x[a, j] = x[a, j], x[a, i]
    order[i], order[j] = order[j], order[i]


@njit(**_PART)
def _select(x: Any, order: Any, axis: Any, first: Any, last: Any, middle: Any) -> None:
    """Reorder rows first:last so that those before ``middle`` are not above those from it on (Hoare)."""
    low, high = first, last - 1
    while low < high:
        a, b, c = x[axis, low], x[axis, (low + high) // 2], x[axis, high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while x[axis, i] < pivot:
                i += 1
            while x[axis, j] > pivot:
                j -= 1
            if i <= j:
                _swap(x, order, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break


@njit(**_PART)
def _measure(x: Any, first: Any, last: Any, node: Any, centre: Any, radius: Any, scale: Any) -> int:
    """Centre, radius and scale of a node; returns its longest axis."""
    longest, axis = -1.0, 0
    for a in range(3):
        low = high = x[a, first]
        for i in range(first + 1, last):
            low = min(low, x[a, i])
            high = max(high, x[a, i])
        centre[node, a] = 0.5 * (np.float64(low) + np.float64(high))
        if np.float64(high) - np.float64(low) > longest:
            longest, axis = np.float64(high) - np.float64(low), a
    farthest = 0.0
    for i in range(first, last):
        d2 = 0.0
        for a in range(3):
            d2 += (np.float64(x[a, i]) - centre[node, a]) ** 2
        farthest = max(farthest, d2)
    radius[node] = np.sqrt(farthest)
    least = _LEAST_SCALE * scale[(node - 1) // 2] if node > 0 else 0.0
    scale[node] = max(radius[node], least)
    if scale[node] == 0.0:
        scale[node] = 1.0
    return axis


@njit(**_OPTIONS)
def _grow(depth: int, x: Any, order: Any, centre: Any, radius: Any, scale: Any) -> None:
    n = order.size
    for level in range(depth + 1):
        nodes = np.int64(1) << np.int64(level)
        for k in prange(nodes):
            first, last = (k * n) >> level, ((k + 1) * n) >> level
            axis = _measure(x, first, last, nodes - 1 + k, centre, radius, scale)
            if level < depth:
                _select(x, order, axis, first, last, ((2 * k + 1) * n) >> (level + 1))


def build(x: NDArray[Any], leaf: int) -> PointTree:
    """Tree over the points ``x (3, n)`` [m], n >= 1, at most ``leaf`` in a leaf; ``x`` is not changed."""
    n = x.shape[1]
    depth = 0
    while (n + (1 << depth) - 1) >> depth > leaf:
        depth += 1
    nodes = (2 << depth) - 1
    points = np.array(x, order="C")
    tree = PointTree(
        depth, np.arange(n, dtype=np.int64), points,
        np.empty((nodes, 3)), np.empty(nodes), np.empty(nodes),
    )  # fmt: skip
    _grow(depth, points, tree.order, tree.centre, tree.radius, tree.scale)
    return tree
