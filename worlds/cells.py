"""Cells of a lattice that a population occupies, and jittered points in cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.input_limits import TRACER, check_memory
from ecs_fluid.systems.shared.nearest import nearest_distances

CANDIDATES = 1_000_000
"""Number of cells examined at once; limits the memory, does not change the result."""


def typical_distance(x: Array) -> float:
    """Median distance from a particle to its nearest neighbour, m; 0 for fewer than two particles."""
    if len(x) < 2:
        return 0.0
    return float(np.median(nearest_distances(x)))


def flat_axes(x: Array, reach: float, across: int | None) -> Array:
    """Axes (3,) on which cells around the particles have no extent."""
    return np.asarray((np.ptp(x, axis=0) == 0) & (reach == 0) | (np.arange(3) == across))


def candidates(x: Array, reach: float, cell: float, across: int | None = None) -> tuple[float, float]:
    """Numbers of cells that `occupied_cells` would examine: around one particle, and in the whole lattice."""
    around = np.where(flat_axes(x, reach, across), 1.0, 2 * np.ceil(reach / cell) + 1)
    whole = np.ptp(x, axis=0) / cell + around + 1
    return float(np.prod(around)), float(np.prod(whole))


def occupied_cells(x: Array, reach: float, cell: float, across: int | None = None) -> tuple[Array, Array]:
    """Cells of edge `cell` that hold a particle, or whose centre is within `reach` of one.

    The lattice is centred on the bounding box of the particles. Particles without a reach that lie in a
    plane across an axis get flat cells in that plane; vortons in a plane (a ring) have cores around it.

    Args:
        x: positions (n, 3), m.
        reach: distance from a particle, m.
        cell: edge of the cells, m.
        across: axis across the plane of a world of two dimensions.

    Returns:
        centres (m, 3) in lattice order, and sizes (3,) of a cell, 0 on flat axes.
    """
    middle, flat = (x.min(axis=0) + x.max(axis=0)) / 2, flat_axes(x, reach, across)
    shift = np.where(flat, 0.0, 0.5)
    own = np.floor((x - middle) / cell).astype(np.int64)
    own[:, flat] = 0
    steps = int(np.ceil(reach / cell))
    ticks = [np.zeros(1, dtype=np.int64) if f else np.arange(-steps, steps + 1) for f in flat]
    first = own.min(axis=0) - steps
    shape = own.max(axis=0) + steps + 1 - first
    stride = shape[1] * shape[2], shape[2], 1
    chunk = max(1, CANDIDATES // math.prod(map(len, ticks)))
    found = []
    for start in range(0, len(x), chunk):
        rows = slice(start, start + chunk)
        square: Any = 0.0
        key: Any = 0
        here: Any = True
        # Squared distances along each axis first; for each cell around a particle only three are added.
        for axis, tick in enumerate(ticks):
            at = own[rows, axis, None] + tick
            gap = (at + shift[axis]) * cell + middle[axis] - x[rows, axis, None]
            form = tuple(len(tick) if k == axis else 1 for k in range(3))
            square = square + (gap**2).reshape(-1, *form)
            key = key + ((at - first[axis]) * stride[axis]).reshape(-1, *form)
            here = here & (tick == 0).reshape(form)
        found.append(np.unique(key[(square <= reach**2) | here]))
        check_memory(TRACER, sum(map(len, found)), "cells to fill", "use larger ones")
    keys = np.unique(np.concatenate(found))
    index = np.stack(np.unravel_index(keys, tuple(int(part) for part in shape)), axis=1) + first
    return (index + shift) * cell + middle, np.where(flat, 0.0, cell)


def lattice(low: Array, high: Array, cell: float) -> tuple[Array, Array]:
    """Centres (m, 3) and sizes (3,) of cells of edge about `cell` that fill a box exactly."""
    size = high - low
    counts = lattice_counts(size, cell)
    edge = size / counts
    index = np.indices(tuple(int(part) for part in counts)).reshape(3, -1).T
    return low + (index + 0.5) * edge, edge


def lattice_of_at_most(
    each: int, what: str, remedy: str, low: Array, high: Array, cell: float, per_cell: int = 1
) -> tuple[Array, Array]:
    """Like `lattice`; LimitError if the cells, with `per_cell` items of `each` bytes, exceed the memory."""
    check_memory(each, float(np.prod(lattice_counts(high - low, cell))) * per_cell, what, remedy)
    return lattice(low, high, cell)


def lattice_counts(size: Array, cell: float) -> Array:
    """Cells of edge about `cell` along each axis, as floating-point numbers: huge ones can be refused."""
    return np.asarray(np.maximum(np.round(size / cell), 1.0))


def piece_counts(size: Any, spacing: float, least: float = 1.0) -> Any:
    """Number of pieces, of length at most `spacing`, along lengths `size`; at least `least`, as a float.

    Where `spacing` divides the length, rounding does not add a piece.
    """
    return np.maximum(np.ceil(size / spacing - 1e-6), least)


def points_in_cells(
    centers: Array, size: Array, per_cell: int, jitter: float, random: np.random.Generator
) -> Array:
    """`per_cell` points in each cell, in sub-cells of their own, shape (m * per_cell, 3).

    A cell is cut into k^3 sub-cells, k the smallest number with k^3 >= per_cell; when per_cell is no cube,
    each cell uses a random choice of its sub-cells. A point stands in the middle of its sub-cell, moved by
    up to `jitter` times half of it.
    """
    k = max(round(per_cell ** (1 / 3)), 1)
    k += k**3 < per_cell
    chosen = np.broadcast_to(np.arange(per_cell), (len(centers), per_cell))
    if k**3 != per_cell:
        chosen = np.argsort(random.random((len(centers), k**3)), axis=1)[:, :per_cell]
    sub = np.stack(np.unravel_index(chosen, (k, k, k)), axis=-1)
    moved = jitter * (random.random(sub.shape) - 0.5)
    points = centers[:, None, :] + ((sub + 0.5 + moved) / k - 0.5) * size
    return np.asarray(points.reshape(-1, 3))
