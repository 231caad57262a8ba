"""Motion under linear resistance, M dw/dt = p - K w, over a whole tick, for any tensors.

With A = M^-1 K and r = M^-1 (p - K w) at the start, w changes by Phi(dt) r, Phi(t) = int_0^t exp(-A s) ds.
Phi is computed by its series for a fraction h of the tick so short that |A| h <= 1/2, and then by doubling,
Phi(2 h) = Phi(h) + exp(-A h) Phi(h). If the symmetric part of K is positive, w^T M w decreases for any dt
without a pull p; a stationary w, K w = p, stays as it is to the last bits. Everything is float64.

Source: Moler and Van Loan, "Nineteen dubious ways to compute the exponential of a matrix, twenty-five years
later", SIAM Review 45 (2003), method 3.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.contact_solver import is_isotropic
from ecs_fluid.kernels.bodies.rotation import matrix_of, times
from ecs_fluid.kernels.compiled import Array

TERMS = 14
"""Number of terms of the series; the first one left out is below 1e-16 of the sum."""

MOST_DOUBLINGS = 1100
"""Most doublings: more than any finite |A| dt needs."""


@njit(cache=True, error_model="numpy")
def _product(a: Array, b: Array) -> Array:
    """Product of two matrices (3, 3)."""
    out = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
    return out


@njit(cache=True, error_model="numpy")
def response(a: Array, dt: float) -> Array:
    """Phi(dt) = int_0^dt exp(-A s) ds (3, 3) s of a matrix A (3, 3) 1/s."""
    size = 0.0
    for i in range(3):
        size = max(size, (abs(a[i, 0]) + abs(a[i, 1]) + abs(a[i, 2])) * dt)
    doublings = 0
    while size > 0.5 and doublings < MOST_DOUBLINGS:
        size *= 0.5
        doublings += 1
    h = dt * 0.5**doublings
    term = h * np.eye(3)
    phi = term.copy()
    for j in range(2, TERMS + 1):
        term = _product(a, term) * (-h / j)
        phi += term
    decay = np.eye(3) - _product(a, phi)
    for _ in range(doublings):
        phi = phi + _product(decay, phi)
        decay = _product(decay, decay)
    return phi


@njit(cache=True, error_model="numpy")
def momentum_change(
    mass: Array, resistance: Array, force: Array, motion: Array, dt: float, momentum: Array
) -> None:
    """Momentum `momentum` (n, 3) = M (w(dt) - w(0)) of M dw/dt = p - K w, row by row.

    Args:
        mass: M (n, 3, 3), kg or kg m^2; symmetric and positive.
        resistance: K (n, 3, 3), kg/s or N m s.
        force: p (n, 3), N or N m, constant over the tick.
        motion: w (n, 3) at the start, m/s or rad/s.
        dt: time, s.
        momentum: what is filled, N s or N m s.
    """
    for i in range(len(mass)):
        inverse = np.linalg.inv(mass[i])
        rest = force[i] - times(resistance[i], motion[i])
        change = _product(response(_product(inverse, resistance[i]), dt), inverse)
        momentum[i] = times(mass[i], times(change, rest))


@njit(cache=True, error_model="numpy")
def matrices_unless_isotropic(q: Array, inertia: Array, out: Array) -> None:
    """Rotation matrices (n, 3, 3) from axes of bodies to the world; 1 where all axes are principal ones."""
    for i in range(len(q)):
        out[i] = np.eye(3) if is_isotropic(inertia[i]) else matrix_of(q[i])
