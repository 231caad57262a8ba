"""Some particles that stand for all, and boxes around most of them.

Grids around all would be coarse for all where a few are far away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

SOME = 2048
"""Particles that are looked at, the same in every tick while none comes or goes."""

GOLDEN = 0.6180339887498949
"""Multiples of it, less their whole parts, are spread evenly, and unlike rows and layers of a lattice."""

FEW_CELLS = 2**14
"""Cells that are no matter: up to these a grid is around all particles, however far some have strayed."""

OUTSIDE, FEWER = 64, 4.0
"""A grid around most particles is made where it has fewer cells by a factor FEWER; one in OUTSIDE of those
that are looked at may be left out on each side."""

ENOUGH = 16
"""Particles from which on one may be left out on each side; of less, each is one of the most."""


@cache
def _parts(most: int) -> np.ndarray:
    """Where those that are looked at are among all rows, in parts of them, ascending."""
    return np.sort(np.arange(1, most + 1) * GOLDEN % 1.0)


def some_of(every: int, most: int = SOME) -> np.ndarray:
    """Numbers (m,), ascending, of about `most` of so many rows, or of all."""
    if every <= most:
        return np.arange(every)
    rows = (_parts(most) * every).astype(np.int64)
    return np.asarray(rows[np.append(True, rows[1:] > rows[:-1])])


def around_most(
    low: np.ndarray,
    high: np.ndarray,
    edge: float,
    room: float,
    some: Callable[[], Sequence[np.ndarray]],
    few: float = FEW_CELLS,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The part of the box low, high (3,) m in which most particles are; None where that saves little.

    Cells are to have that `edge`, m; up to `few` of them are no matter. On each side of what most of each
    group of particles take the box is half as wide again, and `room` m more. ``some`` returns the places
    (m, 3) m of some of each group.
    """

    def cells(lo: np.ndarray, hi: np.ndarray) -> float:
        return float(np.prod(np.maximum((hi - lo) / edge, 1.0)))

    if not 0.0 < edge < np.inf or not few < cells(low, high) < np.inf:
        return None
    lo, hi = np.full(3, np.inf), np.full(3, -np.inf)
    for x in some():
        beyond = max(1, len(x) // OUTSIDE)
        if len(x) >= ENOUGH:
            along = np.sort(np.ascontiguousarray(x.T)).astype(np.float64)
            first, last = along[:, beyond], along[:, len(x) - 1 - beyond]
        else:
            first, last = x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)
        around = 0.5 * (last - first) + room
        lo, hi = np.minimum(lo, first - around), np.maximum(hi, last + around)
    lo, hi = np.maximum(low, lo), np.minimum(high, hi)
    return (lo, hi) if FEWER * cells(lo, hi) <= cells(low, high) else None
