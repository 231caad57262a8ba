"""Momentum that bodies gain, and spin that they lose, under linear resistance: exact solutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.table import Bodies


def gained(mass: Array, loss: Array, pull: Array, motion: Array, dt: float) -> Array:
    """The momentum gained, M (w(dt) - w(0)) (n, 3), by the exact solution of M dw/dt = p - K w.

    Args:
        mass: M (n, 3, 3), kg or kg m^2; symmetric and positive.
        loss: K (n, 3, 3), kg/s or N m s.
        pull: p (n, 3), N or N m.
        motion: w (n, 3) at the start, m/s or rad/s.
        dt: time, s.
    """
    from ecs_fluid.kernels.bodies.linear_resistance import momentum_change

    (m, other), (k, sideways) = ((a[:, 0, 0], a != a[:, :1, :1] * np.eye(3)) for a in (mass, loss))
    tensors = (other | sideways).any(axis=(1, 2))
    z = k * dt / m
    part = -np.expm1(-z) / np.where(z == 0.0, 1.0, z)
    out = np.asarray((dt * np.where(z == 0.0, 1.0, part))[:, None] * (pull - k[:, None] * motion))
    if tensors.any():
        change = np.empty((int(tensors.sum()), 3))
        momentum_change(mass[tensors], loss[tensors], pull[tensors], motion[tensors], dt, change)
        out[tensors] = change
    return out


def brake_spin(bodies: Bodies, brake: Array, swirl: Array, dt: float) -> None:
    """Advance the spins by the exact solution of I dw/dt = s - b w over dt seconds, in place.

    Orientations are held fixed. `brake` b (n,) N m s is 0 where the spin stays as it is; `swirl` s (n, 3) N m
    is in world axes.
    """
    from ecs_fluid.kernels.bodies.linear_resistance import matrices_unless_isotropic

    rows = np.flatnonzero(brake)
    if not len(rows):
        return
    inertia, turn = bodies.inertia[rows], np.empty((len(rows), 3, 3))
    matrices_unless_isotropic(bodies.q[rows], inertia, turn)
    spin, pull = (np.einsum("nji,nj->ni", turn, of[rows]) for of in (bodies.angular_velocity, swirl))
    impulse = gained(inertia, brake[rows, None, None] * np.eye(3), pull, spin, dt)
    change = np.linalg.solve(inertia, impulse[..., None])[..., 0]
    bodies.angular_velocity[rows] += np.einsum("nij,nj->ni", turn, change)
