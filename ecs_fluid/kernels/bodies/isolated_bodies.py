"""Isolated bodies, which nothing can touch during a tick: their motion needs no substeps.

A body is alone if no other body, and no wall of a container, comes within its reach, radius + 2 dt (speed +
dt acceleration), with the largest speed and acceleration of all bodies. The factor 2 is there because an
impact may accelerate another body to twice the speed of the one that hit it.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.close_bodies import close_pairs
from ecs_fluid.kernels.bodies.polytope import Hulls, plane_bound
from ecs_fluid.kernels.bodies.rigid_substep import turn_body
from ecs_fluid.kernels.bodies.rotation import matrix_of, rotation_at, times, times_transposed
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, SOLID, Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import length, minus, rotated_back, row_of


@njit(cache=True, error_model="numpy")
def are_isolated(bodies: Bodies, hulls: Hulls, acceleration: Array, dt: float) -> Array:
    """Which bodies (n,) are isolated for dt seconds, with their `acceleration` (n, 3) m/s^2."""
    n = len(bodies.x)
    largest_speed, largest_acceleration = 0.0, 0.0
    for i in range(n):
        own_speed = length(bodies.v[i])
        if bodies.shape[i] == CONTAINER:
            own_speed += length(bodies.angular_velocity[i]) * bodies.radius[i]
        largest_speed = max(largest_speed, own_speed)
        largest_acceleration = max(largest_acceleration, length(acceleration[i]))
    reach = 1.01 * bodies.radius + 2.0 * dt * (largest_speed + dt * largest_acceleration)
    out = bodies.shape != CONTAINER
    solid = np.flatnonzero(out)
    pairs = close_pairs(
        bodies.x[solid], reach[solid], bodies.shape[solid], bodies.motion[solid], bodies.leader[solid]
    )
    for p in range(len(pairs)):
        out[solid[pairs[p, 0]]] = False
        out[solid[pairs[p, 1]]] = False
    for c in range(n):
        if bodies.shape[c] != CONTAINER:
            continue
        turn = rotation_at(bodies.q, c)
        for k in range(len(solid)):
            i = solid[k]
            if out[i] and bodies.motion[i] == 2:
                place = rotated_back(turn, minus(row_of(bodies.x, i), row_of(bodies.x, c)))
                if plane_bound(hulls, bodies.hull[c], place)[0] > -reach[i]:
                    out[i] = False
    for i in range(n):  # a body is isolated if all of its parts are
        if not out[i]:
            out[bodies.leader[i]] = False
    return out & out[bodies.leader]


@njit(cache=True, error_model="numpy")
def drift(bodies: Bodies, which: Array, acceleration: Array, torque: Array, dt: float, steps: int) -> None:
    """Move the bodies `which` (n,) by dt seconds without contacts, in place.

    Places follow the parabola of the `acceleration` (n, 3). A `torque` (n, 3), N m in world axes, is given by
    halves at both ends of `steps` equal parts.
    """
    for i in range(len(which)):
        if not which[i] or bodies.motion[i] == 0:
            continue
        for k in range(3):
            bodies.x[i, k] += dt * bodies.v[i, k] + 0.5 * dt * dt * acceleration[i, k]
            bodies.v[i, k] += dt * acceleration[i, k]
        if bodies.motion[i] != 2 or length(torque[i]) == 0.0:
            turn_body(bodies, i, dt)
            continue
        inverse, h = np.linalg.inv(bodies.inertia[i]), dt / steps
        for _ in range(steps):
            for side in range(2):
                turn = matrix_of(bodies.q[i])
                local = times(inverse, times_transposed(turn, torque[i]))
                bodies.angular_velocity[i] += (0.5 * h) * times(turn, local)
                if side == 0:
                    turn_body(bodies, i, h)


@njit(cache=True, error_model="numpy")
def move_isolated(
    bodies: Bodies, hulls: Hulls, acceleration: Array, torque: Array, dt: float, least: int, most: int
) -> tuple[Array, int, float]:
    """Move all bodies that are alone by dt seconds, in place: (rows of the others, substeps, acceleration).

    The substeps, `least` to `most`, are as many as keep polytopes from moving by more than half the smallest
    inner radius, or turning by more than half a radian, in one; `most` where a speed is not a number. The
    acceleration is the largest, m/s^2.
    """
    inner, speed, angular_velocity, largest_acceleration = math.inf, 0.0, 0.0, 0.0
    for i in range(len(bodies.x)):
        # Unlike max, these propagate NaN.
        largest_acceleration = np.maximum(largest_acceleration, length(row_of(acceleration, i)))
        own_speed, turning = length(row_of(bodies.v, i)), length(row_of(bodies.angular_velocity, i))
        if bodies.leader[i] != i:  # a part moves about the centre of its body
            own_speed += turning * bodies.radius[i]
        speed = np.maximum(speed, own_speed)
        if bodies.shape[i] != BALL:
            angular_velocity = np.maximum(angular_velocity, turning)
        if bodies.shape[i] == SOLID:
            inner = min(inner, hulls.inner[bodies.hull[i]])
    wanted = 0.0
    if inner < math.inf:
        wanted = np.maximum(dt * speed / (0.5 * inner), dt * angular_velocity / 0.5)
    steps = max(least, math.ceil(wanted)) if wanted < most else most
    isolated = are_isolated(bodies, hulls, acceleration, dt)
    drift(bodies, isolated, acceleration, torque, dt, steps)
    return np.flatnonzero(~isolated), steps, largest_acceleration
