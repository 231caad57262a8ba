"""Pairs of bodies that may meet: a sweep along x over balls around them. Everything is float64."""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, extent_along, plane_bound
from ecs_fluid.kernels.bodies.rotation import matrix_of, rotation_at
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import Vector, minus, rotated_back, row_of


@njit(cache=True, error_model="numpy")
def doubled(rows: Array) -> Array:
    """Rows (n, k) at the beginning of an array of twice the length."""
    more = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@njit(cache=True, error_model="numpy")
def close_pairs(x: Array, reach: Array, shape: Array, motion: Array, leader: Array) -> Array:
    """Pairs (m, 2) of rows whose balls of radius `reach` meet, one of them free; not parts of one body.

    Containers pair with every free body, whether it is inside them or not. The order depends on the rows and
    positions only.
    """
    n = len(x)
    order = np.argsort(x[:, 0] - reach, kind="mergesort")
    # Neighbours in the sweep lie side by side in memory.
    sx, sy, sz, sr = x[order, 0], x[order, 1], x[order, 2], reach[order]
    solid, free = shape[order] != CONTAINER, motion[order] == 2
    pairs = np.empty((max(64, 4 * n), 2), np.int64)
    count = 0
    for k in range(n):
        if not solid[k]:
            continue
        end = sx[k] + sr[k]
        for m in range(k + 1, n):
            if sx[m] - sr[m] > end:
                break
            total = sr[k] + sr[m]
            d = (sx[k] - sx[m]) ** 2 + (sy[k] - sy[m]) ** 2 + (sz[k] - sz[m]) ** 2
            if d > total * total or not solid[m] or not (free[k] or free[m]):
                continue
            a, b = order[k], order[m]
            if leader[a] == leader[b]:
                continue
            if count == len(pairs):
                pairs = doubled(pairs)
            pairs[count, 0], pairs[count, 1] = min(a, b), max(a, b)
            count += 1
    for a in range(n):
        if shape[a] != CONTAINER:
            continue
        for b in range(n):
            if b == a or shape[b] == CONTAINER or (motion[a] != 2 and motion[b] != 2):
                continue
            if count == len(pairs):
                pairs = doubled(pairs)
            pairs[count, 0], pairs[count, 1] = a, b
            count += 1
    # In the order of the rows: the sweep's own order would change with every body that overtakes another.
    # No pair comes twice, so these keys are all different.
    return pairs[np.argsort(pairs[:count, 0] * n + pairs[:count, 1])]


@njit(cache=True, error_model="numpy")
def boxes_around(bodies: Bodies, hulls: Hulls, reach: Array) -> Array:
    """Boxes (n, 6), m, least then largest coordinates, that hold what comes within ``reach`` (n,) m.

    ``reach`` counts from the centre, to the radius and beyond it. The balls around parts hold nearly all of
    their body; boxes are far smaller. Containers have no bounds.
    """
    boxes = np.empty((len(reach), 6))
    for i in range(len(reach)):
        turn = matrix_of(bodies.q[i])
        for k in range(3):
            least, most = -bodies.radius[i], bodies.radius[i]
            if bodies.shape[i] == CONTAINER:
                least, most = -np.inf, np.inf
            elif bodies.shape[i] != BALL:
                least, most = extent_along(hulls, bodies.hull[i], row_of(turn, k))
            beyond = reach[i] - bodies.radius[i]
            boxes[i, k], boxes[i, 3 + k] = bodies.x[i, k] + least - beyond, bodies.x[i, k] + most + beyond
    return boxes


@njit(cache=True, error_model="numpy")
def are_apart(boxes: Array, a: int, b: int) -> bool:
    """Whether two of the boxes (n, 6) have no place in common."""
    apart = False
    for k in range(3):
        apart = apart or boxes[a, 3 + k] < boxes[b, k] or boxes[b, 3 + k] < boxes[a, k]
    return apart


@njit(cache=True, error_model="numpy")
def depth_outside(bodies: Bodies, hulls: Hulls, a: int, place: Vector) -> float:
    """How far a place (3,) m is outside container a, m; negative inside."""
    apart = minus(place, row_of(bodies.x, a))
    return plane_bound(hulls, bodies.hull[a], rotated_back(rotation_at(bodies.q, a), apart))[0]


@njit(cache=True, error_model="numpy")
def belongs_to_container(bodies: Bodies, hulls: Hulls, a: int, b: int) -> bool:
    """Whether the walls of container a are for body b: its centre is in a, or in none and a is nearest."""
    place = row_of(bodies.x, b)
    own = depth_outside(bodies, hulls, a, place)
    if own <= 0.0:
        return True
    for c in range(len(bodies.x)):
        if c != a and bodies.shape[c] == CONTAINER:
            other = depth_outside(bodies, hulls, c, place)
            if other <= 0.0 or other < own or (other == own and c < a):
                return False
    return True
