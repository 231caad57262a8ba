"""Influence tree over cell-sorted vortons: layers of supervortons, each with half the cells of the one below.

Source: Gourlay, part 3 (nested grid, supervortons) and part 12 (original vortons at the leaves). Layer 0 is
the uniform grid; a parent covers 2 x 2 x 2 children, or fewer at a far face: cell counts are halved rounding
up, so any count works. The supervorton of a node carries

    strength  sum alpha_i          centre  sum |alpha_i| x_i / sum |alpha_i|
    sigma^2   sum |alpha_i| sigma_i^2 / sum |alpha_i|   (core radius weighted like the centre)

and also the moments that are needed for four vortons in its place with the same dipole: with d_i = x_i -
centre,

    spread_a  sqrt(sum |alpha_i| d_ia^2 / sum |alpha_i|)      dipole_ab  sum d_ia alpha_ib

A node of one vorton is exactly that vorton, bit for bit. ``tree`` sums over the nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel


class Tree(NamedTuple):
    """Nodes of all layers in one set of arrays; layer l has rows first[l] : first[l + 1], the root last."""

    origin: NDArray[np.float64]
    """(3,) m"""
    spacing: NDArray[np.float64]
    """(3,) m, of layer 0; of layer l it is 2^l times that"""
    ends: NDArray[np.float64]
    """(2, 3) least and largest coordinates of the sources, m: the outermost cells extend at least that far"""
    cells: NDArray[np.int64]
    """(layers, 3); the linear index inside a layer is (i ny + j) nz + k"""
    first: NDArray[np.int64]
    """(layers + 1,)"""
    x: NDArray[Any]
    """(3, nodes) centre, m"""
    alpha: NDArray[Any]
    """(3, nodes) strength, m^3/s"""
    moments: NDArray[Any]
    """(nodes, 12) spread along the axes, m, and dipole, column 3 + 3 a + b, m^4/s; 0 for a single vorton"""
    sigma: NDArray[Any]
    """(nodes,) core radius, m"""
    radius: NDArray[Any]
    """(nodes,) distance from the centre to the farthest corner of the cell, m; 0 for a single vorton"""
    vortons: NDArray[np.int64]
    """(nodes,) number of vortons below the node"""
    start: NDArray[np.int64]
    """(cells of layer 0 + 1,) first sorted source of each leaf"""
    sx: NDArray[Any]
    """(3, n) sorted sources, m"""
    sa: NDArray[Any]
    """(3, n) m^3/s"""
    ssigma: NDArray[Any]
    """(n,) m"""


MOMENTS = 12
"""Columns of Tree.moments."""

NODES = 11
"""Fields of Tree that describe its nodes; the last four are the sources themselves."""


@njit(**FAST_LOOP)
def _magnitude(alpha: Any, i: Any) -> float:
    x, y, z = np.float64(alpha[0, i]), np.float64(alpha[1, i]), np.float64(alpha[2, i])
    return float(np.sqrt(x * x + y * y + z * z))


@njit(**FAST_LOOP)
def _add_moments(weight: float, x: Any, alpha: Any, i: Any, centre: Any, node: Any, about: Any) -> None:
    """Add the weighted squared spread and the dipole of strength i about a node's centre to ``about``."""
    for a in range(3):
        d = np.float64(x[a, i]) - np.float64(centre[a, node])
        about[a] += weight * d * d
        for b in range(3):
            about[3 + 3 * a + b] += d * alpha[b, i]


@njit(**FAST_LOOP)
def _store_moments(about: Any, weight: float, moments: Any, node: Any) -> None:
    for a in range(3):
        moments[node, a] = np.sqrt(about[a] / weight) if weight > 0.0 else 0.0
    for e in range(3, MOMENTS):
        moments[node, e] = about[e]


@parallel(**FAST_LOOP)
def fill_leaves(
    chunk: int,
    begin: int, end: int, start: Any, sx: Any, sa: Any, ssigma: Any, x: Any, alpha: Any, moments: Any,
    sigma: Any, count: Any, weight: Any,
) -> None:  # fmt: skip
    """Nodes of the cells begin to end, from their vortons; ``weight`` (nodes,) is the sum of |alpha|."""
    leaves, about = end - begin, np.empty(MOMENTS)
    for c in range(begin + chunk * leaves // CHUNKS, begin + (chunk + 1) * leaves // CHUNKS):
        first, last = start[c], start[c + 1]
        count[c] = last - first
        total_weight = 0.0
        for i in range(first, last):
            total_weight += _magnitude(sa, i)
        weight[c] = total_weight
        px = py = pz = ax = ay = az = s2 = weights = 0.0
        for i in range(first, last):
            w = 1.0  # the centre of a cell without strength is the mean position
            if total_weight > 0.0:
                w = _magnitude(sa, i)
            weights += w
            px += w * sx[0, i]
            py += w * sx[1, i]
            pz += w * sx[2, i]
            ax += sa[0, i]
            ay += sa[1, i]
            az += sa[2, i]
            s2 += w * np.float64(ssigma[i]) ** 2
        if last - first == 1:
            sigma[c] = ssigma[first]
            for a in range(3):
                x[a, c] = sx[a, first]
                alpha[a, c] = sa[a, first]
        elif last > first:
            sigma[c] = np.sqrt(s2 / weights)
            x[0, c], x[1, c], x[2, c] = px / weights, py / weights, pz / weights
            alpha[0, c], alpha[1, c], alpha[2, c] = ax, ay, az
        else:
            sigma[c] = 1.0
            for a in range(3):
                x[a, c] = 0.0
                alpha[a, c] = 0.0
        about[:] = 0.0
        if last - first > 1:
            for i in range(first, last):
                _add_moments(_magnitude(sa, i), sx, sa, i, x, c, about)
        _store_moments(about, total_weight, moments, c)


@parallel("min(CHUNKS, end - begin)", **FAST_LOOP)
def _fill_layer(
    chunk: int, below: int, begin: int, end: int, cells: Any, first: Any, x: Any, alpha: Any, moments: Any,
    sigma: Any, count: Any, weight: Any,
) -> None:  # fmt: skip
    """Nodes ``begin`` to ``end`` of the layer over ``below`` from their children."""
    nx, ny, nz = cells[below]
    _, my, mz = cells[below + 1]
    parents = end - begin
    chunks = min(CHUNKS, parents)
    mean, strength, about = np.empty((2, 4)), np.empty(3), np.empty(MOMENTS)
    for p in range(begin + chunk * parents // chunks, begin + (chunk + 1) * parents // chunks):
        node = first[below + 1] + p
        i0, j0, k0 = 2 * (p // (my * mz)), 2 * ((p // mz) % my), 2 * (p % mz)
        total = 0
        weights = plain = 0.0
        occupied = 0
        only = np.int64(-1)
        mean[:] = 0.0
        strength[:] = 0.0
        for i in range(i0, min(i0 + 2, nx)):
            for j in range(j0, min(j0 + 2, ny)):
                for k in range(k0, min(k0 + 2, nz)):
                    child = first[below] + (i * ny + j) * nz + k
                    if count[child] == 0:
                        continue
                    occupied += 1
                    only = child
                    total += count[child]
                    w = weight[child]
                    weights += w
                    plain += count[child]
                    s2 = np.float64(sigma[child]) ** 2
                    mean[0, 3] += w * s2
                    mean[1, 3] += count[child] * s2
                    for a in range(3):
                        mean[0, a] += w * x[a, child]
                        mean[1, a] += count[child] * x[a, child]
                        strength[a] += alpha[a, child]
        count[node] = total
        weight[node] = weights
        if occupied == 1:
            sigma[node] = sigma[only]
            for a in range(3):
                x[a, node] = x[a, only]
                alpha[a, node] = alpha[a, only]
            for e in range(MOMENTS):
                moments[node, e] = moments[only, e]
        else:
            by = 0 if weights > 0.0 else 1
            norm = max(weights if weights > 0.0 else plain, 1e-300)
            sigma[node] = np.sqrt(mean[by, 3] / norm) if total > 0 else 1.0
            for a in range(3):
                x[a, node] = mean[by, a] / norm
                alpha[a, node] = strength[a]
            about[:] = 0.0
            for i in range(i0, min(i0 + 2, nx)):
                for j in range(j0, min(j0 + 2, ny)):
                    for k in range(k0, min(k0 + 2, nz)):
                        child = first[below] + (i * ny + j) * nz + k
                        if count[child] > 0:
                            _add_moments(weight[child], x, alpha, child, x, node, about)
                            for a in range(3):
                                about[a] += weight[child] * np.float64(moments[child, a]) ** 2
                            for e in range(3, MOMENTS):
                                about[e] += moments[child, e]
            _store_moments(about, weights, moments, node)


@njit(cache=True)
def fill_parents(
    lowest: int, spans: Any, cells: Any, first: Any, x: Any, alpha: Any, moments: Any, sigma: Any,
    count: Any, weight: Any,
) -> None:  # fmt: skip
    """Fill nodes from their children: in the layers above ``lowest``, those in each row of ``spans``."""
    for step in range(spans.shape[0]):
        begin, end = spans[step, 0], spans[step, 1]
        _fill_layer(lowest + step, begin, end, cells, first, x, alpha, moments, sigma, count, weight)


@parallel("min(CHUNKS, end - begin)", **FAST_LOOP)
def _fill_radii(
    chunk: int, layer: int, begin: int, end: int, cells: Any, first: Any, origin: Any, spacing: Any,
    ends: Any, x: Any, count: Any, radius: Any,
) -> None:  # fmt: skip
    nodes = end - begin
    ny, nz = cells[layer, 1], cells[layer, 2]
    size = np.int64(1) << np.int64(layer)
    chunks = min(CHUNKS, nodes)
    for n in range(begin + chunk * nodes // chunks, begin + (chunk + 1) * nodes // chunks):
        node = first[layer] + n
        r2 = 0.0
        if count[node] > 1:
            for a in range(3):
                i = n // (ny * nz) if a == 0 else ((n // nz) % ny if a == 1 else n % nz)
                low = origin[a] + spacing[a] * (i * size)
                high = origin[a] + spacing[a] * min((i + 1) * size, cells[0, a])
                if i == 0:
                    low = min(low, ends[0, a])
                if i == cells[layer, a] - 1:
                    high = max(high, ends[1, a])
                centre = np.float64(x[a, node])
                r2 += max(centre - low, high - centre) ** 2
        radius[node] = np.sqrt(r2)


@njit(cache=True)
def fill_radii(
    lowest: int, spans: Any, cells: Any, first: Any, origin: Any, spacing: Any, ends: Any, x: Any,
    count: Any, radius: Any,
) -> None:  # fmt: skip
    """Fill the distances from the centre to the farthest corner of the cell, as far as grid or sources
    extend.

    In the layers from ``lowest`` upwards, those of the nodes in each row of ``spans``.
    """
    for step in range(spans.shape[0]):
        begin, end = spans[step, 0], spans[step, 1]
        _fill_radii(lowest + step, begin, end, cells, first, origin, spacing, ends, x, count, radius)


def layers_of(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Fields ``cells`` and ``first`` of the tree over a grid of that many cells (3,)."""
    layers = [np.asarray(cells, np.int64)]
    while layers[-1].max() > 1:
        layers.append((layers[-1] + 1) // 2)
    counts = np.array(layers)
    first = np.zeros(len(layers) + 1, np.int64)
    np.cumsum(counts.prod(axis=1), out=first[1:])
    return counts, first


def build(
    origin: NDArray[np.float64], spacing: NDArray[np.float64], cells: NDArray[np.int64],
    start: NDArray[np.int64], sx: NDArray[Any], sa: NDArray[Any], ssigma: NDArray[Any],
) -> Tree:  # fmt: skip
    """Tree over sources ``sx, sa (3, n)``, ``ssigma (n,)`` sorted by the cells of a uniform grid.

    ``origin, spacing (3,)`` [m] and ``cells (3,)`` are the grid; its cell c holds the sources
    start[c] : start[c + 1], which lie in the cell, or beyond it if it is at the border of the grid. Node
    arrays have the dtype of the sources; sums are float64.
    """
    counts, first = layers_of(cells)
    nodes, real = int(first[-1]), sx.dtype
    x, alpha = np.empty((3, nodes), real), np.empty((3, nodes), real)
    moments = np.empty((nodes, MOMENTS), real)
    sigma, radius = np.empty(nodes, real), np.empty(nodes, real)
    count, weight = np.empty(nodes, np.int64), np.empty(nodes)
    spans = np.zeros((len(counts), 2), np.int64)
    spans[:, 1] = np.diff(first)
    columns = x, alpha, moments, sigma, count, weight
    fill_leaves(0, int(spans[0, 1]), start, sx, sa, ssigma, *columns)
    fill_parents(0, spans[1:], counts, first, *columns)
    corner, size = np.asarray(origin, np.float64), np.asarray(spacing, np.float64)
    ends = np.stack([sx.min(axis=1, initial=np.inf), sx.max(axis=1, initial=-np.inf)]).astype(np.float64)
    fill_radii(0, spans, counts, first, corner, size, ends, x, count, radius)
    return Tree(
        corner, size, ends, counts, first, x, alpha, moments, sigma, radius, count, start, sx, sa, ssigma,
    )  # fmt: skip
