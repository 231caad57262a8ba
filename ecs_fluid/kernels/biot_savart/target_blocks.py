"""Blocks of nearby targets, each of which walks the tree once.

A grouping is a pair: ``order (m,) int64`` names the targets one after the other, and block b holds
``order[starts[b] : starts[b + 1]]``, at most ``pairwise.BLOCK`` of them. It depends on the targets alone,
never on the number of threads. Compact blocks are fast; any grouping gives a right answer.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Blocks = tuple[NDArray[np.int64], NDArray[np.int64]]

_BRICK_EDGE = 5
_BITS_PER_AXIS = 10
POINTS_PER_BLOCK = 32
"""Number of scattered points in a block."""


def grid_blocks(points: Any) -> Blocks:
    """Bricks of at most 5 x 5 x 5 points for the points of a grid, ``points`` = (nx + 1, ny + 1, nz + 1).

    Targets are numbered in C order, as in ``field.reshape(-1, 3)``. Every axis is divided evenly, so no brick
    is much smaller than the others. The arrays are cached for the next grid of that shape: do not change
    them.
    """
    return _grid_blocks(*(int(n) for n in points))


@lru_cache(maxsize=8)
def _grid_blocks(*shape: int) -> Blocks:
    pieces = [-(-n // _BRICK_EDGE) for n in shape]
    brick_of = [np.arange(n) * p // n for n, p in zip(shape, pieces, strict=True)]
    i, j, k = np.ix_(*brick_of)
    brick = ((i * pieces[1] + j) * pieces[2] + k).ravel()
    starts = np.zeros(pieces[0] * pieces[1] * pieces[2] + 1, np.int64)
    np.cumsum(np.bincount(brick, minlength=starts.size - 1), out=starts[1:])
    return np.argsort(brick, kind="stable").astype(np.int64), starts


def some_grid_blocks(some: NDArray[Any]) -> Blocks:
    """The bricks of ``grid_blocks`` with only the points that are not 0 in ``some`` (px, py, pz).

    Targets are numbered in C order, without counting points that are left out.
    """
    order, starts = np.empty(some.size, np.int64), np.zeros(some.size + 1, np.int64)
    points, blocks = _some_blocks(some.ravel(), *grid_blocks(some.shape), order, starts)
    return order[:points], starts[: blocks + 1]


@njit(cache=True)
def _some_blocks(some: Any, order: Any, starts: Any, kept_order: Any, kept_starts: Any) -> Any:
    """Fill ``kept_order`` and ``kept_starts``; returns the numbers of points and of blocks."""
    number, count = np.empty(some.size, np.int64), 0
    for p in range(some.size):
        number[p] = count
        count += some[p] != 0
    points = blocks = 0
    for b in range(starts.size - 1):
        for place in range(starts[b], starts[b + 1]):
            p = order[place]
            if some[p] != 0:
                kept_order[points] = number[p]
                points += 1
        if points > kept_starts[blocks]:
            blocks += 1
            kept_starts[blocks] = points
    return points, blocks


def point_blocks(targets: NDArray[Any]) -> Blocks:
    """Blocks for scattered points ``targets (m, 3)``: neighbours along the Z-order (Morton) curve."""
    m = targets.shape[0]
    starts = np.append(np.arange(0, m, POINTS_PER_BLOCK, dtype=np.int64), m)
    if m == 0:
        return np.empty(0, np.int64), starts
    # Keys are sorted with row numbers in their low bits, in a fraction of the time of a stable argsort.
    key = morton_keys(targets, targets.min(axis=0), targets.max(axis=0)).astype(np.uint64) << 32
    key |= np.arange(m, dtype=np.uint64)
    key.sort()
    return (key & (2**32 - 1)).astype(np.int64), starts


def morton_keys(targets: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.uint32]:
    """Place (m,) along the Z-order curve through the box from ``low`` to ``high``, below 2^30.

    All are 0 if the box is smaller than the precision resolves, so targets keep their order.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        extent = float((high - low).max())
    if not math.isfinite(extent):
        return np.zeros(len(targets), np.uint32)
    cells = ((targets - low) * ((2**_BITS_PER_AXIS - 1) / extent if extent > 0.0 else 0.0)).astype(np.uint32)
    spread = _spread_bits()
    key: NDArray[np.uint32] = (spread[cells[:, 0]] << 2) | (spread[cells[:, 1]] << 1) | spread[cells[:, 2]]
    return key


@lru_cache(maxsize=1)
def _spread_bits() -> NDArray[np.uint32]:
    """Table of the numbers below 2^10 with two zero bits between their bits, so that three axes
    interleave."""
    spread = np.zeros(2**_BITS_PER_AXIS, np.uint32)
    for bit in range(_BITS_PER_AXIS):
        spread |= ((np.arange(2**_BITS_PER_AXIS, dtype=np.uint32) >> bit) & 1) << (3 * bit)
    return spread


def block_boxes(
    targets: NDArray[Any], starts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high corners (b, 3) of the blocks ``targets[starts[b] : starts[b + 1]]``, none empty."""
    if len(starts) < 2:
        return np.empty((0, 3)), np.empty((0, 3))
    low = np.minimum.reduceat(targets, starts[:-1], axis=0)
    high = np.maximum.reduceat(targets, starts[:-1], axis=0)
    return low.astype(np.float64), high.astype(np.float64)
