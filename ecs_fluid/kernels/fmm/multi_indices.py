"""Tables of multi-indices m = (i, j, k) up to a total order, order after order.

The place of a multi-index does not depend on the highest order, so the table of a lower order is the start of
that of a higher one. These tables turn the recurrences and the sums of ``expansions`` into plain loops.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLOCK = 3  # indices that share loaded values


class Orders(NamedTuple):
    """Tables for the orders 0 ... ``order``; c = (order + 1)(order + 2)(order + 3)/6 indices."""

    order: int
    size: NDArray[np.int64]
    """(order + 2,) number of indices of total order below q"""
    degree: NDArray[np.int64]
    """(c,) total order |m|"""
    axis: NDArray[np.int64]
    """(c,) axis a of the smallest positive entry of m"""
    entry: NDArray[np.int64]
    """(c,) m_a, that entry"""
    inverse: NDArray[np.float64]
    """(c,) 1/m_a"""
    first: NDArray[np.int64]
    """(c,) place of m - e_a"""
    second: NDArray[np.int64]
    """(c,) place of m - 2 e_a, or 0"""
    down: NDArray[np.int64]
    """(c, 3) place of m - e_b, or -1"""
    up: NDArray[np.int64]
    """(c, 3) place of m + e_b, or -1 beyond the highest order"""
    start: NDArray[np.int64]
    """(c + 1,) sums of m begin at start[m] in ``sums``"""
    sums: NDArray[np.int32]
    """sums[start[m] + n] = place of m + n, for all n with |m| + |n| <= order"""
    block: NDArray[np.int64]
    """(k, 2) first index and number of up to three indices m, each (0, -1, 1) from the one before: so are all
    m + n, and their places follow each other"""
    blocks: NDArray[np.int64]
    """(order + 2,) number of blocks of total order below q"""
    grades: NDArray[np.int64]
    """(3 c + 8,) total order of every component of a vector of moments, and some zeros"""


@cache
def orders(order: int) -> Orders:
    """The tables for one highest order (kept for the next call)."""
    indices = [
        (i, j, q - i - j) for q in range(order + 1) for i in range(q, -1, -1) for j in range(q - i, -1, -1)
    ]
    place = {m: at for at, m in enumerate(indices)}
    c = len(indices)
    size = np.array([q * (q + 1) * (q + 2) // 6 for q in range(order + 2)])
    degree = np.array([sum(m) for m in indices])
    axis, entry, first = np.zeros(c, np.int64), np.zeros(c, np.int64), np.zeros(c, np.int64)
    second, down, up = np.zeros(c, np.int64), np.full((c, 3), -1), np.full((c, 3), -1)
    for at, m in enumerate(indices):
        for b in range(3):
            down[at, b] = place.get((m[0] - (b == 0), m[1] - (b == 1), m[2] - (b == 2)), -1)
            up[at, b] = place.get((m[0] + (b == 0), m[1] + (b == 1), m[2] + (b == 2)), -1)
        if at == 0:
            continue
        a = min((value, b) for b, value in enumerate(m) if value > 0)[1]
        twice = (m[0] - 2 * (a == 0), m[1] - 2 * (a == 1), m[2] - 2 * (a == 2))
        axis[at], entry[at] = a, m[a]
        first[at] = down[at, a]
        second[at] = place.get(twice, 0)
    cube = np.full((order + 1,) * 3, -1, np.int32)
    grid = np.array(indices)
    cube[tuple(grid.T)] = np.arange(c, dtype=np.int32)
    counts = size[order + 1 - degree]
    start = np.zeros(c + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    sums = np.concatenate([cube[tuple((grid[m] + grid[: counts[m]]).T)] for m in range(c)])
    block, blocks = [], [0]
    for q in range(order + 1):
        low = int(size[q])
        for run in range(1, q + 2):  # indices of one i
            block += [(low + at, min(_BLOCK, run - at)) for at in range(0, run, _BLOCK)]
            low += run
        blocks.append(len(block))
    grades = np.zeros(3 * c + 8, np.int64)
    grades[: 3 * c] = np.repeat(degree, 3)
    return Orders(
        order, size, degree, axis, entry, 1.0 / np.maximum(entry, 1), first, second, down, up, start, sums,
        np.array(block), np.array(blocks), grades,
    )  # fmt: skip
