"""Balanced binary tree over points: every node is cut at the median of its longest side.

Node k of level l holds rows (k n) >> l up to ((k + 1) n) >> l of the sorted points and stands at 2^l - 1 + k
in the node arrays, so the tree needs no pointers, all leaves are of nearly one size, and a ring, a plane or
two clusters a thousand diameters apart are cut as well as a full cube. Coincident points do no harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.fmm.lane_rows import PART

_LEAST_SCALE, _LEAST_RADIUS = 1e-5, 0.1
"""A node is scaled by its radius, but not by less than this fraction of its parent's scale: expansions of a
node of one point are divided by powers of it. And its radius counts as this part of its scale at least, or
powers of scale/distance would overflow in float32 where points coincide."""

_FEW, _BRANCHES = 8192, 6
"""Up to this many points one thread is quicker; with more, threads share the tree's branches from this level
down."""


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
    """(nodes,) distance from the centre to the farthest point, and not much less than the scale"""
    scale: NDArray[np.float64]
    """(nodes,) unit of length of the expansions of the node, positive"""

    def holds(self, rows: NDArray[Any]) -> bool:
        """Whether the tree is one over just these ``rows (n, 3)`` in this sequence."""
        same = np.ones(CHUNKS, bool)
        _compare(np.ascontiguousarray(rows), self.order, self.x, same)
        return bool(same.all())


@parallel(**FAST_LOOP)
def _compare(chunk: int, rows: Any, order: Any, x: Any, same: Any) -> None:
    """Whether the rows of each chunk are those of the tree."""
    for i in range(chunk * order.size // CHUNKS, (chunk + 1) * order.size // CHUNKS):
        for a in range(3):
            if rows[order[i], a] != x[a, i]:
                same[chunk] = False
                return


@njit(**PART)
def _swap(x: Any, order: Any, i: Any, j: Any) -> None:
    for a in range(3):
        x[a, i], x[a, j] = x[a, j], x[a, i]
    order[i], order[j] = order[j], order[i]


@njit(**PART)
def _select(x: Any, order: Any, axis: Any, first: Any, last: Any, middle: Any) -> None:
    """Reorder rows first:last so that those before ``middle`` are not above those from it on (Hoare)."""
    low, high = first, last - 1
    while low < high:
        a, b, c = x[axis, low], x[axis, (low + high) // 2], x[axis, high]
        if a > b:
            a, b = b, a
        pivot = c if a < c < b else (a if c <= a else b)
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


@njit(**PART)
def _measure(x: Any, first: Any, last: Any, node: Any, centre: Any, radius: Any, scale: Any) -> int:
    """Centre, radius and scale of a node; returns its longest axis."""
    longest, axis = -1.0, 0
    for a in range(3):
        low = high = x[a, first]
        for i in range(first + 1, last):
            value = x[a, i]
            low = value if value < low else low
            high = value if value > high else high
        centre[node, a] = 0.5 * (np.float64(low) + np.float64(high))
        if np.float64(high) - np.float64(low) > longest:
            longest, axis = np.float64(high) - np.float64(low), a
    farthest = 0.0
    for i in range(first, last):
        d2 = 0.0
        for a in range(3):
            d2 += (np.float64(x[a, i]) - centre[node, a]) ** 2
        farthest = d2 if d2 > farthest else farthest
    radius[node] = np.sqrt(farthest)
    unit, above = radius[node], (node - 1) // 2
    if node > 0 and unit < _LEAST_SCALE * scale[above]:
        # Below a node of one point the scale stays the same: repeated reduction would underflow float32.
        single = radius[above] <= _LEAST_RADIUS * scale[above]
        unit = scale[above] if single else _LEAST_SCALE * scale[above]
    scale[node] = unit if unit > 0.0 else 1.0
    if radius[node] < _LEAST_RADIUS * scale[node]:
        radius[node] = _LEAST_RADIUS * scale[node]
    return axis


@parallel("1 << level", **FAST_LOOP)
def _grow(
    node: int, depth: int, level: int, deepest: int, x: Any, order: Any, centre: Any, radius: Any, scale: Any
) -> None:
    """Every node of a level and all below it down to level ``deepest``; leaves are not cut."""
    n, first, last = order.size, node, node + 1
    while level <= deepest:
        nodes = np.int64(1) << np.int64(level)
        for k in range(first, last):
            begin, end = (k * n) >> level, ((k + 1) * n) >> level
            axis = _measure(x, begin, end, nodes - 1 + k, centre, radius, scale)
            if level < depth:
                _select(x, order, axis, begin, end, ((2 * k + 1) * n) >> (level + 1))
        level, first, last = level + 1, 2 * first, 2 * last


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
    arrays = (points, tree.order, tree.centre, tree.radius, tree.scale)
    # One level after the other while there are few nodes, then whole branches.
    top = branch_level(depth, n)
    for level in range(top + 1):
        _grow(depth, level, depth if level == top else level, *arrays)
    return tree


def branch_level(depth: int, n: int) -> int:
    """Level whose nodes are the branches that threads share out: the root for few points."""
    return min(depth, _BRANCHES) if n > _FEW else 0
