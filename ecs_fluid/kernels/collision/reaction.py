"""Momentum that particles give to the bodies they meet, as one linear system per body.

A particle of mass m at r from the centre of a body meets its surface, which moves at v + spin cross r, and
goes on with it: the whole of it (W = 1), or what is along the normal (W = n n^T). The impulse on the body is
m W (u - v' - spin' cross r), with the body's motion (v', spin') after all particles of the tick have met it.
With G = [1, [r]_x]^T these are six equations, (M + A) dV = b - A V, A = sum m G W G^T, b = sum m G W u,
so that light bodies among heavy particles end with the particles' velocity and not beyond it.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contacts import BALL, CONTAINER
from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_bound
from ecs_fluid.kernels.bodies.rotation import matrix_of, times, times_transposed


@njit(cache=True, error_model="numpy")
def surface_normal(shape: int, hull: int, hulls: Hulls, turn: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Unit normal (3,), towards the fluid, of a body's surface at a place r from its centre, world axes."""
    if shape == BALL:
        size = math.sqrt((r * r).sum())
        return r / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    local = times_transposed(turn, r)
    if shape == CONTAINER:
        wall = plane_bound(hulls, hull, local[0], local[1], local[2])[1]
        return -times(turn, hulls.planes[wall, :3])
    near = closest(hulls, hull, local[0], local[1], local[2])
    return times(turn, np.array([near[1], near[2], near[3]]))


@njit(cache=True, error_model="numpy")
def mass_matrices(mass: np.ndarray, inertia: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Masses (n,) and inertia tensors (n, 3, 3) of bodies turned by q (n, 4) as (n, 6, 6), world axes."""
    out = np.zeros((len(mass), 6, 6))
    for i in range(len(mass)):
        turn = matrix_of(q[i])
        out[i, 3:, 3:] = turn @ inertia[i] @ turn.T
        for k in range(3):
            out[i, k, k] = mass[i]
    return out


@njit(cache=True, error_model="numpy")
def meeting_matrices(
    x: np.ndarray,
    u: np.ndarray,
    touched: np.ndarray,
    before: np.ndarray,
    mass: float,
    sticking: bool,
    shape: np.ndarray,
    hull: np.ndarray,
    hulls: Hulls,
    centers: np.ndarray,
    q: np.ndarray,
    matrix: np.ndarray,
    given: np.ndarray,
) -> int:
    """Add every meeting to the bodies' equations; returns their number.

    A particle that met the same body in the last tick already goes along with it and is left out.

    Args:
        x, u: places (n, 3) m and velocities (n, 3) m/s of the particles.
        touched, before: (n,) bodies met in this tick and in the last, -1 for none.
        mass: of a particle, kg.
        sticking: whether W = 1.
        shape, hull, hulls, centers, q: the bodies, as in `Bodies`.
        matrix, given: A (b, 6, 6) and b (b, 6), added to.
    """
    count, last = 0, -1
    turn = np.eye(3)
    r, arms = np.empty(3), np.empty((6, 3))
    for row in range(len(x)):
        body = touched[row]
        if body < 0 or body == before[row]:
            continue
        count += 1
        if body != last:
            turn, last = matrix_of(q[body]), body
        for k in range(3):
            r[k] = x[row, k] - centers[body, k]
        if sticking:
            across = np.eye(3)
        else:
            n = surface_normal(shape[body], hull[body], hulls, turn, r)
            across = n.reshape(3, 1) * n
        for j in range(3):
            column = across[:, j]
            arms[0, j], arms[1, j], arms[2, j] = column[0], column[1], column[2]
            arms[3, j] = r[1] * column[2] - r[2] * column[1]
            arms[4, j] = r[2] * column[0] - r[0] * column[2]
            arms[5, j] = r[0] * column[1] - r[1] * column[0]
        # W is a projection, so that G W G^T = (G W) (G W)^T.
        for a in range(6):
            for b in range(6):
                dot = 0.0
                for j in range(3):
                    dot += arms[a, j] * arms[b, j]
                matrix[body, a, b] += mass * dot
            dot = 0.0
            for j in range(3):
                dot += arms[a, j] * u[row, j]
            given[body, a] += mass * dot
    return count
