"""Bodies as obstacles for particles: both ends of their motion, and a grid of the bodies near each cell.

Every cell of the grid lists the bodies whose ball, swept from the start to the end of the tick, reaches into
it. A particle tests the cells of its own path only, so the cost grows with the number of particles near
bodies. Containers are not in the grid: a particle inside is first tested against the inner ball.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.rotation import matrices_of
from ecs_fluid.kernels.bodies.table import CONTAINER
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import INLINE_EXACT, Vector

MOST_CELLS = 32
"""Most cells of the grid along one axis."""


class Obstacles(NamedTuple):
    """Bodies (n rows) during one tick.

    x0, q0, x1, q1: poses at its start and end, turn0, turn1 (n, 3, 3) their matrices. v, spin: velocities.
    shape, radius, hull, leader: as in `Bodies`.
    containers: rows of the containers. origin (3,), edge (3,), inverse (3,) 1/edge, cells (3,): of the
    grid; cell c lists the bodies near[start[c]:start[c + 1]].
    """

    x0: Array
    q0: Array
    x1: Array
    q1: Array
    v: Array
    angular_velocity: Array
    shape: Array
    radius: Array
    hull: Array
    containers: Array
    origin: Array
    edge: Array
    inverse: Array
    cells: Array
    start: Array
    near: Array
    turn0: Array
    turn1: Array
    leader: Array


@njit(cache=True, error_model="numpy")
def _swept(x0: Array, x1: Array, shape: Array, radius: Array, clearance: float) -> tuple[Array, ...]:
    """(Rows of the containers, of the others, low, high, size): boxes (r, 3), m, that the others stay in."""
    boxes, rows, count = np.empty(len(x0), np.int64), np.empty(len(x0), np.int64), 0
    for i in range(len(x0)):
        if shape[i] == CONTAINER:
            boxes[i - count] = i
        else:
            rows[count] = i
            count += 1
    low, high, size = np.empty((count, 3)), np.empty((count, 3)), np.empty(3 * count)
    for k in range(count):
        i = rows[k]
        # The stretch covers the displacement of a particle by rounding to single precision.
        reach = (radius[i] + clearance) * (1 + 1e-5)
        for a in range(3):
            low[k, a] = np.minimum(x0[i, a], x1[i, a]) - reach
            high[k, a] = np.maximum(x0[i, a], x1[i, a]) + reach
            size[3 * k + a] = high[k, a] - low[k, a]
    return boxes[: len(x0) - count].copy(), rows[:count].copy(), low, high, size


@njit(cache=True, error_model="numpy", forceinline=False)
def cell_of(x: float, origin: float, edge: float) -> int:
    """Cell along one axis, not clamped to the grid but kept within whole numbers."""
    return math.floor(min(max((x - origin) / edge, -1.0e6), 1.0e6))


@njit(**INLINE_EXACT)
def listed_at(origin: Array, edge: Array, cells: Array, start: Array, p: Vector) -> tuple[int, int]:
    """First and last (not included) of the bodies listed by the cell of a place; outside the grid none."""
    i, j = cell_of(p[0], origin[0], edge[0]), cell_of(p[1], origin[1], edge[1])
    k = cell_of(p[2], origin[2], edge[2])
    if 0 <= i < cells[0] and 0 <= j < cells[1] and 0 <= k < cells[2]:
        cell = (i * cells[1] + j) * cells[2] + k
        return start[cell], start[cell + 1]
    return 0, 0


@njit(cache=True, error_model="numpy")
def _grid(low: Array, high: Array, rows: Array, wanted: float) -> tuple[Array, ...]:
    """(origin, edge, cells, start, near) of bodies `rows`, whose boxes are low and high (r, 3), m."""
    origin, edge, cells = np.zeros(3), np.ones(3), np.ones(3, np.int64)
    span = np.empty((len(rows), 6), np.int64)
    for a in range(3):
        if len(rows):
            top = high[0, a]
            origin[a] = low[0, a]
            for k in range(1, len(rows)):
                origin[a], top = min(origin[a], low[k, a]), max(top, high[k, a])
            extent = top - origin[a]
            many = extent / wanted
            # Also used if a place is not finite: the guard reports whose.
            if many > 1.0:
                cells[a] = MOST_CELLS if many >= MOST_CELLS else math.ceil(many)
            edge[a] = extent / cells[a]
        for k in range(len(rows)):
            span[k, a] = min(max(cell_of(low[k, a], origin[a], edge[a]), 0), cells[a] - 1)
            span[k, 3 + a] = min(max(cell_of(high[k, a], origin[a], edge[a]), 0), cells[a] - 1)
    start = np.zeros(cells[0] * cells[1] * cells[2] + 1, np.int64)
    near = np.empty(0, np.int64)
    # First count the bodies of each cell; then list them, where start[c] runs up to what start[c + 1] was.
    for listing in range(2):
        for k in range(len(rows)):
            for i in range(span[k, 0], span[k, 3] + 1):
                for j in range(span[k, 1], span[k, 4] + 1):
                    for m in range(span[k, 2], span[k, 5] + 1):
                        c = (i * cells[1] + j) * cells[2] + m
                        if listing:
                            near[start[c]] = rows[k]
                        start[c] += 1
        before = 0
        for c in range(len(start)):
            count = start[c]
            start[c] = before
            before = count if listing else before + count
        if not listing:
            near = np.empty(before, np.int64)
    return origin, edge, cells, start, near


def obstacles(
    former: tuple[Array, Array],
    present: tuple[Array, Array],
    motion: tuple[Array, Array],
    shape: Array,
    radius: Array,
    hull: Array,
    clearance: float,
    leader: Array | None = None,
) -> Obstacles:
    """The obstacles of a tick: poses (x, q) at its ends, (v, spin), and the `clearance` kept around, m.

    Without `leader` no body has parts.
    """
    (x0, q0), (x1, q1), (v, angular_velocity) = former, present, motion
    containers, rows, low, high, sizes = _swept(x0, x1, shape, radius, clearance)
    sizes.sort()
    middle = 0.5 * (sizes[(sizes.size - 1) // 2] + sizes[sizes.size // 2]) if sizes.size else 1.0
    origin, edge, cells, start, near = _grid(low, high, rows, float(middle))
    turn1 = matrices_of(q1)
    turn0 = turn1 if q0 is q1 else matrices_of(q0)
    return Obstacles(
        x0, q0, x1, q1, v, angular_velocity, shape, radius, hull, containers,
        origin, edge, 1.0 / edge, cells, start, near, turn0, turn1,
        np.arange(len(x0)) if leader is None else leader,
    )  # fmt: skip
