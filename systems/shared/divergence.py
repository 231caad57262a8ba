"""Strengths on a lattice with less divergence, by changes that reach only a few points."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array

SWEEPS = 2
"""How often the gradient is taken off."""

REACH = 2
"""Points that a difference reaches."""

ROOM = 2 * REACH * SWEEPS
"""Points that the change reaches beyond the strengths."""

STEEPEST = 1.883
"""Largest square of (8 sin k - sin 2k)/6, the slope of a wave by differences of fourth order per spacing."""


def less_divergence(field: Array, edges: Array) -> Array:
    """Strengths (px, py, pz, 3) at lattice points with less of their part that is a gradient.

    Each sweep is alpha += c D (D . alpha), with D the differences of fourth order and 1/c = sum_i
    `STEEPEST`/edges_i^2. It takes the part c |D_k|^2, at most 1, of a gradient's wave k, and nothing of a
    field without divergence by these differences. The sums of D f and of x cross D f are zero, so total
    strength and impulse stay to rounding. Along axes that do not repeat `field` has to end with ROOM points
    of zeros, so that nothing reaches from one end to the other.

    Args:
        field: strengths, m^3/s.
        edges: (3,) m, from one point to the next.
    """
    field = field.copy()
    share = 1.0 / (STEEPEST / edges**2).sum()
    for _ in range(SWEEPS):
        divergence = np.zeros(field.shape[:3])
        for i in range(3):
            divergence += _difference(field[..., i], i) / edges[i]
        for i in range(3):
            field[..., i] += share / edges[i] * _difference(divergence, i)
    return field


def _difference(f: Array, axis: int) -> Array:
    """Differences of fourth order along an axis, per point; beyond the ends f repeats."""
    near, far = (np.roll(f, -n, axis) - np.roll(f, n, axis) for n in (1, 2))
    return np.asarray((8.0 * near - far) / 12.0)
