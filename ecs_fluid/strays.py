"""Samples of particles, and boxes around most particles.

A grid around all particles would be too coarse for most of them if a few have strayed far away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

SAMPLE_SIZE = 2048
"""Particles in a sample; they are the same in every tick while no particle comes or goes."""

GOLDEN = 0.6180339887498949
"""Golden ratio less 1. The fractional parts of its multiples are spread evenly, and not in step with the rows
and layers of a lattice."""

FEW_CELLS = 2**14
"""A grid of up to this many cells is cheap, so it covers all particles, however far some have strayed."""

OUTSIDE, FEWER = 64, 4.0
"""A grid around most particles is made if it has fewer cells by a factor of at least FEWER. On each side, one
in OUTSIDE of the sampled particles may be left out."""

TRIMMED_FROM = 16
"""Particles in a sample from which on some may be left out; smaller samples count whole."""


@cache
def _sample_fractions(most: int) -> np.ndarray:
    """Places (most,) of the sampled particles among all rows, as fractions of their number, ascending."""
    return np.sort(np.arange(1, most + 1) * GOLDEN % 1.0)


def sample_rows(count: int, most: int = SAMPLE_SIZE) -> np.ndarray:
    """Numbers (m,), ascending, of about `most` of `count` rows; of all rows if there are no more."""
    if count <= most:
        return np.arange(count)
    rows = (_sample_fractions(most) * count).astype(np.int64)
    return np.asarray(rows[np.append(True, rows[1:] > rows[:-1])])


def box_around_most(
    low: np.ndarray,
    high: np.ndarray,
    edge: float,
    room: float,
    some: Callable[[], Sequence[np.ndarray]],
    few: float = FEW_CELLS,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners (3,), (3,) m of a part of the box low, high (3,) m that holds most particles.

    None if that part has not much fewer cells of the width `edge`, m, than the whole box, or if the whole box
    has no more than `few`. ``some`` returns the places (m, 3) m of a sample of each group of particles. The
    part encloses the extent of most of each sample, widened on each side by half of itself and by `room`, m.
    """

    def cells(lo: np.ndarray, hi: np.ndarray) -> float:
        return float(np.prod(np.maximum((hi - lo) / edge, 1.0)))

    if not 0.0 < edge < np.inf or not few < cells(low, high) < np.inf:
        return None
    lo, hi = np.full(3, np.inf), np.full(3, -np.inf)
    for x in some():
        beyond = max(1, len(x) // OUTSIDE)
        if len(x) >= TRIMMED_FROM:
            ends = beyond, len(x) - 1 - beyond
            first, last = np.partition(np.ascontiguousarray(x.T), ends)[:, ends].T.astype(np.float64)
        else:
            first, last = x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)
        around = 0.5 * (last - first) + room
        lo, hi = np.minimum(lo, first - around), np.maximum(hi, last + around)
    lo, hi = np.maximum(low, lo), np.minimum(high, hi)
    return (lo, hi) if FEWER * cells(lo, hi) <= cells(low, high) else None
