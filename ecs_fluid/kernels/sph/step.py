"""Steps of liquid particles in time: drift, kick, drift, with one evaluation of the forces in each.

x += v s/2; v += s a(x, v); x += v s/2. Without viscosity this is the symplectic position form of Verlet's
method, of second order, and nothing is carried from step to step: a run can stop between any two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import matrix_of, product, quaternion_of
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.compiled.vectors import LANES
from ecs_fluid.kernels.grids.grid import grid_for_radius
from ecs_fluid.kernels.grids.neighbours import stacked
from ecs_fluid.kernels.grids.partition import partition, scatter_sorted
from ecs_fluid.kernels.sph.forces import FAR, compression, forces, lattice_weight, tait
from ecs_fluid.kernels.sph.walls import TOUCHED, wall_forces, wall_law, walls

CELL = 0.75
"""Edge of the cells of the neighbour search, in reaches."""


class LiquidLaw(NamedTuple):
    """What all particles share.

    reach: R, m. support: R over the spacing, 1. volume: V_0, m^3. stiffness: B, Pa. viscosity: m^2/s.
    """

    reach: float
    support: float
    volume: float
    stiffness: float
    viscosity: float


class Evaluation(NamedTuple):
    """Forces at one moment: force (n, 3) N without gravity, of which walls (3,) N by walls; nu (n,), load
    (n,) s P [J]; loss W; loads (bodies, 6) N and N m on bodies."""

    force: Array
    nu: Array
    load: Array
    loss: float
    loads: Array


@njit(parallel=True, cache=True)
def kick_and_drift(
    force: Array, mass: Array, pull: Array, kick: float, drift: float, x: Array,
    v: Array,
) -> None:  # fmt: skip
    """v += kick (force / mass + pull), then x += drift v, of every particle.

    ``force`` (n, 3) N, ``mass`` (n,) kg, ``pull`` (n, 3) m/s^2; ``kick`` and ``drift`` s.
    """
    n, kind = x.shape[0], x.dtype.type
    s, d = kind(kick), kind(drift)
    for chunk in prange(CHUNKS):
        for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            for k in range(3):
                v[row, k] += s * (force[row, k] / mass[row] + pull[row, k])
                x[row, k] += d * v[row, k]


@njit(parallel=True, cache=True)
def sorted_columns(x: Array, v: Array, mass: Array, order: Array, data: Array) -> None:
    """Rows of ``x``, ``v`` (n, 3) and ``mass`` (n,) in sorted order: 0 to 5 and 7 of ``data`` (8, m)."""
    n = len(order)
    for chunk in prange(CHUNKS):
        for s in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            row = order[s]
            for k in range(3):
                data[k, s] = x[row, k]
                data[3 + k, s] = v[row, k]
            data[7, s] = mass[row]


def moved(obstacles: Obstacles, time: float) -> Obstacles:
    """The bodies `time` s after the start of the tick, by their velocities and spins."""
    if time == 0.0 or not (obstacles.v.any() or obstacles.angular_velocity.any()):
        return obstacles
    turned = np.array(
        [
            matrix_of(product(quaternion_of(time * angular_velocity), q))
            for angular_velocity, q in zip(obstacles.angular_velocity, obstacles.q0, strict=True)
        ]
    )
    return obstacles._replace(x1=obstacles.x0 + time * obstacles.v, turn1=turned)


def evaluate(
    law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, obstacles: Obstacles |
    None, hulls: Hulls | None,
) -> Evaluation:  # fmt: skip
    """Forces between particles and from walls.

    ``x``, ``v`` (n, 3) m and m/s, ``mass`` (n,) kg, ``size`` (n,) V / V_0; the bodies as they stand, None
    without.
    """
    n, kind = len(x), x.dtype.type
    weight = lattice_weight(law.support)
    low, high = bounds(x)
    units = ((x - low.astype(x.dtype)) * kind(1 / law.reach) + kind(FAR)).astype(x.dtype)
    extent = (high - low) / law.reach
    grid = stacked(*grid_for_radius(np.full(3, FAR), FAR + extent, CELL, max_cells=8 * n + 64))
    start, order = partition(units, *grid)
    data, crowd = np.zeros((8, n + LANES), x.dtype), np.empty(n, x.dtype)
    sorted_columns(units, v, mass, order, data)
    compression(data[:3], start, *grid, crowd)
    wall = np.zeros(n, x.dtype)
    touching = obstacles is not None and hulls is not None
    if obstacles is not None and hulls is not None:
        body, slope = np.empty((n, TOUCHED), np.int32), np.empty((n, TOUCHED, 3), x.dtype)
        walls(obstacles, hulls, x, law.reach / law.support, wall_law(law.support), wall, body, slope)
    nu, load = np.empty(n, x.dtype), np.empty(n, x.dtype)
    tait(crowd, order, wall, size, weight, law.stiffness, law.volume, nu, load, data[6])
    sorted_force, force, loss = np.empty((3, n), x.dtype), np.empty((n, 3), x.dtype), np.empty(n, x.dtype)
    forces(
        data, start, *grid, kind(20 * weight / law.reach), kind(5 * law.viscosity / law.reach), sorted_force,
        loss,
    )  # fmt: skip
    scatter_sorted(sorted_force, order, force)
    loads = np.zeros((CHUNKS, 0, 6))
    if touching:
        assert obstacles is not None
        loads = np.zeros((CHUNKS, len(obstacles.x1), 6))
        wall_forces(x, load / size, body, slope, obstacles.x1, force, loads)
    return Evaluation(force, nu, load, float(loss.sum(dtype=np.float64)), loads.sum(axis=0))
