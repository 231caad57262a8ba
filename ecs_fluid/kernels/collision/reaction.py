"""Momentum that particles give to the bodies they meet, as one linear system per body.

A particle of mass m at r from the centre of a body meets its surface, which moves at v + spin cross r, and
takes on its velocity: all of it (W = 1), or the component along the normal (W = n n^T). The impulse on the
body is m W (u - v' - spin' cross r), with the motion (v', spin') of the body after all particles of the tick
have met it. With G = [1, [r]_x]^T these are six equations, (M + A) dV = b - A V, A = sum m G W G^T, b = sum m
G W u. So light bodies among heavy particles end with the particles' velocity, and do not overshoot it.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_bound
from ecs_fluid.kernels.bodies.rotation import in_world, rotation_at
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    Matrix,
    Vector,
    cross_of,
    divided,
    dot,
    length,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)


@njit(cache=True, error_model="numpy")
def surface_normal(shape: int, hull: int, hulls: Hulls, turn: Matrix, r: Vector) -> Vector:
    """Unit normal, towards the fluid, of a body's surface at a place r from its centre, world axes."""
    if shape == BALL:
        return divided(r, length(r)) if length(r) > 0.0 else (0.0, 0.0, 1.0)
    place = rotated_back(turn, r)
    if shape == CONTAINER:
        wall = plane_bound(hulls, hull, place)[1]
        return scaled(-1.0, rotated(turn, row_of(hulls.planes, wall)))
    return rotated(turn, closest(hulls, hull, place)[1])


@njit(cache=True, error_model="numpy")
def mass_matrices(mass: Array, inertia: Array, q: Array) -> Array:
    """Masses (n,) and inertia tensors (n, 3, 3) of bodies turned by q (n, 4) as (n, 6, 6), world axes."""
    out = np.zeros((len(mass), 6, 6))
    out[:, 3:, 3:] = in_world(inertia, q)
    for i in range(len(mass)):
        for k in range(3):
            out[i, k, k] = mass[i]
    return out


@njit(cache=True, error_model="numpy")
def meeting_matrices(
    x: Array,
    u: Array,
    touched: Array,
    before: Array,
    mass: float,
    sticking: bool,
    shape: Array,
    hull: Array,
    hulls: Hulls,
    centers: Array,
    q: Array,
    leader: Array,
    matrix: Array,
    right_side: Array,
) -> int:
    """Add every meeting to the bodies' equations; returns their number.

    A particle that met the same body in the last tick, or another part of it, has its velocity already and is
    left out.

    Args:
        x, u: places (n, 3) m and velocities (n, 3) m/s of the particles.
        touched, before: (n,) bodies met in this tick and in the last, -1 for none.
        mass: of a particle, kg.
        sticking: whether W = 1.
        shape, hull, hulls, centers, q, leader: the bodies, as in `Bodies`.
        matrix, right_side: A (b, 6, 6) and b (b, 6), added to.
    """
    count = 0
    arms = np.empty((6, 3))
    for row in range(len(x)):
        body, last = touched[row], before[row]
        if body < 0 or (last >= 0 and leader[last] == leader[body]):
            continue
        count += 1
        r, projection = minus(row_of(x, row), row_of(centers, body)), np.eye(3)
        if not sticking:
            n = surface_normal(shape[body], hull[body], hulls, rotation_at(q, body), r)
            for j in range(3):
                projection[j, 0], projection[j, 1], projection[j, 2] = scaled(n[j], n)
        for j in range(3):
            arms[0, j], arms[1, j], arms[2, j] = projection[0, j], projection[1, j], projection[2, j]
            arms[3, j], arms[4, j], arms[5, j] = cross_of(r, projection[:, j])
        # W is a projection, so that G W G^T = (G W) (G W)^T.
        for a in range(6):
            for b in range(6):
                matrix[body, a, b] += mass * dot(arms[a], arms[b])
            right_side[body, a] += mass * dot(arms[a], u[row])
    return count
