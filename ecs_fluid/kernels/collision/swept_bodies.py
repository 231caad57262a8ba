"""Bodies as obstacles for particles: both ends of their motion, and a grid of the bodies near each cell.

Every cell of the grid lists the bodies that may reach into it between the start and the end of the tick: by
the ball around each, and by the box around the corners of a polytope that turns by little. A particle tests
the cells of its own path only, so the cost grows with the number of particles near bodies. Containers are not
in the grid: a particle inside is first tested against the inner ball.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, extent_along
from ecs_fluid.kernels.bodies.rotation import matrices_of
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import INLINE_EXACT, Vector, row_of

MOST_CELLS = 32
"""Most cells of the grid along one axis."""

MOST_TURN = 0.5
"""Angle in a tick, rad, from which on the ball around a body is listed, and not the box."""


class Obstacles(NamedTuple):
    """Bodies (n rows) during one tick.

    x0, q0, x1, q1: poses at its start and end, turn0, turn1 (n, 3, 3) their matrices. v, spin: velocities.
    shape, radius, hull, leader: as in `Bodies`.
    containers: rows of the containers. origin (3,), edge (3,), inverse (3,) 1/edge, cells (3,): of the
    grid; cell c lists the bodies near[start[c]:start[c + 1]]. bend: how far from the straight line a path of
    1 m may be that is straight in the axes of a body that turns, m.
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
    bend: float


@njit(cache=True, error_model="numpy")
def _swept(
    x0: Array, x1: Array, turn0: Array, shape: Array, radius: Array, hull: Array, hulls: Hulls,
    clearance: float, stray: Array,
) -> tuple[Array, ...]:  # fmt: skip
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
        rounding = 1e-5 * (radius[i] + clearance)
        for a in range(3):
            least, most = -radius[i], radius[i]
            if shape[i] != BALL:
                below, above = extent_along(hulls, hull[i], row_of(turn0[i], a))
                least, most = max(least, below - stray[i]), min(most, above + stray[i])
            low[k, a] = np.minimum(x0[i, a], x1[i, a]) + least - clearance - rounding
            high[k, a] = np.maximum(x0[i, a], x1[i, a]) + most + clearance + rounding
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
    hulls: Hulls,
    clearance: float,
    leader: Array | None = None,
    stray: Array | None = None,
) -> Obstacles:
    """The obstacles of a tick: poses (x, q) at its ends, (v, spin), and the `clearance` kept around, m.

    Without `leader` no body has parts. ``stray`` (n,) is how far from where they are at the start, beside
    moving with their body, the surfaces of polytopes may come, m; without it bodies turn from one pose to the
    other.
    """
    (x0, q0), (x1, q1), (v, angular_velocity) = former, present, motion
    turn1, bend = matrices_of(q1), 0.0
    turn0 = turn1 if q0 is q1 else matrices_of(q0)
    if stray is None:
        stray, bend = _bends_of_paths(former, present, radius, clearance)
    containers, rows, low, high, sizes = _swept(x0, x1, turn0, shape, radius, hull, hulls, clearance, stray)
    sizes.sort()
    middle = 0.5 * (sizes[(sizes.size - 1) // 2] + sizes[sizes.size // 2]) if sizes.size else 1.0
    origin, edge, cells, start, near = _grid(low, high, rows, float(middle))
    return Obstacles(
        x0, q0, x1, q1, v, angular_velocity, shape, radius, hull, containers,
        origin, edge, 1.0 / edge, cells, start, near, turn0, turn1,
        np.arange(len(x0)) if leader is None else leader, bend,
    )  # fmt: skip


def _bends_of_paths(
    former: tuple[Array, Array], present: tuple[Array, Array], radius: Array, clearance: float
) -> tuple[Array, float]:
    """(How far from a body's box, (n,) m, a path that meets it may pass by; that for 1 m of the path).

    In axes that turn by the angle w the path from a to b is straight. It meets the body at h = (1 - s) a +
    s b, |h| <= r. In the axes of the world a place turns by at most 2 sin(w/4) of its distance from halfway
    between both poses, so the path is off the straight line by at most 2 sin(w/4) max(|a|, |b|). With l and d
    the ways of particle and body |b - a| <= l + d + 2 sin(w/2) |a|, thus |a| and |b| are at most
    2 (r + l + d) where w is below 0.5. The box is that of the first pose, 2 sin(w/4) r from halfway.
    """
    (x0, q0), (x1, q1) = former, present
    quarter = np.sqrt(0.5 - 0.5 * np.minimum(np.abs((q0 * q1).sum(axis=1)), 1.0))
    quarter[(q0 == q1).all(axis=1)] = 0.0
    little = quarter < math.sin(MOST_TURN / 4)
    way = np.linalg.norm(x1 - x0, axis=1) + clearance
    bend = 4.0 * float(quarter[little].max(initial=0.0))
    return np.where(little, 2.0 * quarter * (3.0 * radius + 2.0 * way), np.inf), bend
