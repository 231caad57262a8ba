"""Burning in time steps of any length: fractions stay in [0, 1], heat and burnt mass belong together exactly.

One step Arrhenius reaction fuel -> flame -> smoke in a parcel without exchange:

    dY_flame/dt = burnt - A_s exp(-(T/T_s)^2) Y_flame,   dY_fuel/dt = -burnt,   burnt = A Y_fuel [Y_air]
    exp(-T_a/T) c_p dT = Q d(burnt)

The fuel burns by exponentials whose rate is the mean of those at both ends of a sub-step, in which the
temperature may rise by a bounded part of T^2/T_a; the flame decays at a given temperature exactly. The
CombustionSystem takes that of both ends of the step, and lets new flame see its end. Second order where
nothing ignites within a step, and never out of bounds. Source: Fluid Simulation for Video Games, part 11,
whose explicit steps go negative and whose heat is multiplied by c_p instead of divided.
"""

from __future__ import annotations

import numpy as np

SUBSTEPS = 4
"""Exponential steps of the fuel in a tick."""


def flame_decay(flame: np.ndarray, T: np.ndarray, rate: float, scale: float, dt: float) -> np.ndarray:
    """Flame (n,) that is left after dt [s] of dY/dt = -rate exp(-(T/scale)^2) Y; rate in 1/s, scale in K."""
    kind = flame.dtype.type
    return np.asarray(flame * np.exp(-kind(rate * dt) * np.exp(-((T / kind(scale)) ** 2))))


def burn(
    fuel: np.ndarray, air: np.ndarray | None, T: np.ndarray, rate: float, activation: float, ignition: float,
    rise: float, need: float, dt: float,
) -> np.ndarray:  # fmt: skip
    """Mass fraction of fuel (n,) that burns in dt [s].

    ``fuel`` (n,), ``T`` (n,) K; ``rate`` A in 1/s, ``activation`` T_a in K; nothing burns below
    ``ignition`` K. ``rise`` Q/c_p in K: the temperature rises by that times the burnt fraction. With
    ``air`` (n,) the rate is proportional to it, and a part of fuel takes ``need`` parts of air; without
    (None) oxygen is unlimited.
    """
    kind = fuel.dtype.type
    burnt = np.zeros_like(fuel)
    step = kind(dt / SUBSTEPS)

    def rate_constant(so_far: np.ndarray) -> np.ndarray:
        hot = T + kind(rise) * so_far
        k = kind(rate) * np.exp(-kind(activation) / hot)
        if air is not None:
            k = k * np.maximum(air - kind(need) * so_far, kind(0))
        return np.asarray(np.where(hot >= kind(ignition), k, kind(0)))

    limit = fuel if air is None or need == 0 else np.minimum(fuel, air / kind(need))
    for _ in range(SUBSTEPS):
        left = fuel - burnt
        first = rate_constant(burnt)
        ahead = np.minimum(burnt + left * -np.expm1(-step * first), limit)
        mean = kind(0.5) * (first + rate_constant(ahead))
        burnt = np.minimum(burnt + left * -np.expm1(-step * mean), limit)
    return burnt
