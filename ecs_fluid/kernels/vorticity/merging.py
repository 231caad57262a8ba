"""Merging of vortons that lie close together.

Vortons in the same cell are joined. The edges of cells are powers of two, so that a coarse cell consists of
whole fine ones. Sums run over the rows in their order, so the result depends only on the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.compiled.columns import equal_rows

KEYED_CELLS = 2**19
"""Number of cells along each axis, on either side of the origin, that have a key; vortons beyond stay
alone."""

LEVELS = 64


class Merged(NamedTuple):
    """The g vortons that remain: ``first`` (g,) is the first row that was joined into each of them."""

    first: np.ndarray
    x: np.ndarray
    alpha: np.ndarray
    sigma: np.ndarray
    volume: np.ndarray


def cell_levels(edge: np.ndarray) -> np.ndarray:
    """Exponent (n,) of the power of two that is nearest to ``edge`` (n,) m."""
    levels: np.ndarray = np.rint(np.log2(edge)).astype(np.int64)
    return levels


def merge(
    x: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, volume: np.ndarray, level: np.ndarray,
    side: np.ndarray,
) -> Merged:  # fmt: skip
    """Join all vortons (n rows, float64) that share a cell of edge 2^level m (level (n,)) into one vorton.

    Vortons of different `side` (n,), a number from 0 to 15, stay apart: a thin body may lie between them.

    The strength is the sum, so the total strength is conserved to rounding. The position is the mean c,
    weighted by |alpha|, moved by a cross m / a^2, with a the sum of the strengths and
    m = sum (x - c) cross alpha. The move, at most half a cell, conserves as much of the impulse
    1/2 sum x cross alpha as one vorton can. The squared core radius is the mean weighted by |alpha|, but the
    core is at least as wide as the cell, so that the vortons of coarse cells still overlap. The volume is the
    largest of them: all stand for the same place.
    """
    edge = np.ldexp(1.0, level)
    cell = np.floor(x / edge[:, None])
    inside = (np.abs(cell) < KEYED_CELLS).all(axis=1)
    # Two keys per row; rows with equal keys are joined. One key is the cell, in three numbers of 20 bits. The
    # other is level and side, or a number of its own for a vorton beyond the cells, which stays alone.
    index = (np.where(inside[:, None], cell, 0).astype(np.int64) + KEYED_CELLS) @ np.array(
        [1 << 40, 1 << 20, 1]
    )
    front = np.where(inside, 16 * (level % LEVELS) + side, 16 * LEVELS + np.cumsum(~inside))
    first, group = equal_rows([front, index])
    count = len(first)

    def sums(values: np.ndarray) -> np.ndarray:
        if values.ndim == 1:
            return np.bincount(group, values, count)
        return np.stack([np.bincount(group, column, count) for column in values.T], axis=1)

    # A vorton without strength gets a weight as small as rounding, so that a group of them has a mean too.
    size = np.linalg.norm(alpha, axis=1)
    weight = size + 1e-12 * size.max(initial=0.0) + 1e-300
    total = sums(weight)
    center = sums(weight[:, None] * x) / total[:, None]
    strength = sums(alpha)
    moment = sums(np.cross(x - center[group], alpha))
    square = (strength**2).sum(axis=1)
    move = np.cross(strength, moment) / np.where(square > 0.0, square, 1.0)[:, None]
    cells = edge[first]
    far = np.linalg.norm(move, axis=1)
    move *= np.minimum(1.0, 0.5 * cells / np.where(far > 0.0, far, 1.0))[:, None]
    largest = np.zeros(count)
    np.maximum.at(largest, group, volume)
    alone = np.bincount(group, minlength=count) == 1
    core = np.where(alone, sigma[first], np.maximum(np.sqrt(sums(weight * sigma**2) / total), cells))
    place = np.where(alone[:, None], x[first], center + move)
    order = np.argsort(first, kind="stable")
    return Merged(first[order], place[order], strength[order], core[order], largest[order])
