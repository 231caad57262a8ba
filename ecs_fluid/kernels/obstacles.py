"""Bodies as what particles run into: both ends of their motion, and a grid that tells who is near.

Every cell of the grid lists the bodies whose ball, swept from the start to the end of the tick, reaches into
it. A particle looks at the cells of its own path only, so the cost grows with what is near bodies.
Containers are not in the grid: what is inside one is looked at by its inner ball, which is one comparison.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.contacts import CONTAINER
from ecs_fluid.kernels.rotation import matrix_of

MOST_CELLS = 32
"""Cells of the grid along one axis."""


class Obstacles(NamedTuple):
    """Bodies (n rows) during one tick.

    x0, q0, x1, q1: poses at its start and end, turn0, turn1 (n, 3, 3) their matrices. v, spin: velocities.
    shape, radius, hull: as in `Bodies`.
    containers: rows of the containers. origin (3,), edge (3,), cells (3,): of the grid; cell c lists the
    bodies near[start[c]:start[c + 1]].
    """

    x0: np.ndarray
    q0: np.ndarray
    x1: np.ndarray
    q1: np.ndarray
    v: np.ndarray
    spin: np.ndarray
    shape: np.ndarray
    radius: np.ndarray
    hull: np.ndarray
    containers: np.ndarray
    origin: np.ndarray
    edge: np.ndarray
    cells: np.ndarray
    start: np.ndarray
    near: np.ndarray
    turn0: np.ndarray
    turn1: np.ndarray


@njit(cache=True, error_model="numpy")
def _matrices(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    out = np.empty((len(q), 3, 3))
    for i in range(len(q)):
        out[i] = matrix_of(q[i])
    return out


@njit(cache=True, error_model="numpy")
def cell_of(x: float, origin: float, edge: float) -> int:
    """Cell along one axis, not clamped to the grid but kept within whole numbers."""
    return math.floor(min(max((x - origin) / edge, -1.0e6), 1.0e6))


@njit(cache=True, error_model="numpy")
def _fill(
    low: np.ndarray,
    high: np.ndarray,
    rows: np.ndarray,
    origin: np.ndarray,
    edge: np.ndarray,
    cells: np.ndarray,
    start: np.ndarray,
    near: np.ndarray,
    counting: bool,
) -> None:
    """Count (or list) the bodies of each cell."""
    first, last = np.empty(3, np.int64), np.empty(3, np.int64)
    for k in range(len(rows)):
        for a in range(3):
            first[a] = min(max(cell_of(low[k, a], origin[a], edge[a]), 0), cells[a] - 1)
            last[a] = min(max(cell_of(high[k, a], origin[a], edge[a]), 0), cells[a] - 1)
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for m in range(first[2], last[2] + 1):
                    c = (i * cells[1] + j) * cells[2] + m
                    if not counting:
                        near[start[c]] = rows[k]
                    start[c] += 1


def obstacles(
    former: tuple[np.ndarray, np.ndarray],
    present: tuple[np.ndarray, np.ndarray],
    motion: tuple[np.ndarray, np.ndarray],
    shape: np.ndarray,
    radius: np.ndarray,
    hull: np.ndarray,
    clearance: float,
) -> Obstacles:
    """The obstacles of a tick: poses (x, q) at its ends, (v, spin), and the `clearance` kept around, m."""
    (x0, q0), (x1, q1), (v, spin) = former, present, motion
    rows = np.flatnonzero(shape != CONTAINER)
    # The stretch covers what rounding to single precision can move a particle by.
    reach = (radius[rows] + clearance)[:, None] * (1 + 1e-5)
    low = np.minimum(x0[rows], x1[rows]) - reach
    high = np.maximum(x0[rows], x1[rows]) + reach
    origin, edge, cells = np.zeros(3), np.ones(3), np.ones(3, np.int64)
    if len(rows):
        origin, extent = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
        wanted = float(np.median(high - low))
        cells = np.clip(np.ceil(extent / wanted), 1, MOST_CELLS).astype(np.int64)
        edge = extent / cells
    count = int(np.prod(cells))
    start, near = np.zeros(count + 1, np.int64), np.zeros(0, np.int64)
    _fill(low, high, rows, origin, edge, cells, start[1:], near, True)
    start = np.cumsum(start)
    near = np.empty(start[-1], np.int64)
    _fill(low, high, rows, origin, edge, cells, start[:-1].copy(), near, False)
    containers = np.flatnonzero(shape == CONTAINER)
    return Obstacles(
        x0, q0, x1, q1, v, spin, shape, radius, hull, containers, origin, edge, cells, start, near,
        _matrices(q0), _matrices(q1),
    )  # fmt: skip
