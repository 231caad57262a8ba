"""Momentum that bodies gain while a resistance brakes them."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array


def gained(mass: Array, loss: Array, pull: Array, motion: Array, dt: float) -> Array:
    """M (w(dt) - w(0)) (n, 3) of M dw/dt = p - K w, exactly.

    Args:
        mass: M (n, 3, 3), kg or kg m^2; symmetric and positive.
        loss: K (n, 3, 3), kg/s or N m s.
        pull: p (n, 3), N or N m.
        motion: w (n, 3) at the start, m/s or rad/s.
        dt: time, s.
    """
    from ecs_fluid.kernels.bodies.decay import braked

    (m, other), (k, sideways) = ((a[:, 0, 0], a != a[:, :1, :1] * np.eye(3)) for a in (mass, loss))
    tensors = (other | sideways).any(axis=(1, 2))
    z = k * dt / m
    part = -np.expm1(-z) / np.where(z == 0.0, 1.0, z)
    out = np.asarray((dt * np.where(z == 0.0, 1.0, part))[:, None] * (pull - k[:, None] * motion))
    if tensors.any():
        some = np.empty((int(tensors.sum()), 3))
        braked(mass[tensors], loss[tensors], pull[tensors], motion[tensors], dt, some)
        out[tensors] = some
    return out
