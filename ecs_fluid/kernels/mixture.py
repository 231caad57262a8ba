"""What fills the cells of a grid: means of density, temperature and species, and how fire looks, in one pass.

With sums over particles per cell volume, each point holds filled = sum w V, mass = sum w rho V, heat =
sum w T rho V and sum w Y rho V; the rest of its cell, max(1 - filled, 0), is ambient fluid of the density
rho_a(z) and the temperature T_a(z). Then

    total = mass + max(1 - filled, 0) rho_a,  rho = total / max(filled, 1),
    T = (heat + (total - mass) T_a) / total,  Y = sum w Y rho V / total,
    luminosity = c (T^4 - T_a^4) flame,  opacity = e rho smoke,

with T held to given limits and Y to [0, 1], which rounding may pass by a little.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS

AMOUNTS = 7
"""Columns that particles share: volume, mass, excess mass, m T, and m Y of fuel, flame and smoke."""

TINY = 1e-37
"""Least mass per volume that is divided by, kg/m^3."""

FIELDS = 8
"""Fields that come of it: density, excess, temperature, fuel, flame, smoke, luminosity, opacity."""


@njit(parallel=True, cache=True, fastmath={"contract"}, error_model="numpy")
def mix(
    shared: np.ndarray, rest: np.ndarray, warm: np.ndarray, low: float, high: float, light: float,
    dark: float, held: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Fields ``out`` (FIELDS, rows, nz+1) from the amounts ``shared`` (rows, nz+1, AMOUNTS) per cell volume.

    ``rest``, ``warm`` (nz+1,) are the ambient density [kg/m^3] and temperature [K] of each height; ``low``
    and ``high`` [K] hold the temperature; ``light`` is 4 a sigma_SB [W/(m^3 K^4)] and ``dark`` the extinction
    per mass [m^2/kg]. ``held``: amounts below zero, which kernels with negative weights leave, count as zero.
    All of one dtype.
    """
    rows, points = shared.shape[0], shared.shape[1]
    kind = out.dtype.type
    zero, one, least = kind(0), kind(1), kind(TINY)
    for chunk in prange(CHUNKS):
        for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            # Ambient alone is what most points around a flame have.
            for c in range(FIELDS):
                line = out[c, row]
                for k in range(points):
                    line[k] = rest[k] if c == 0 else (warm[k] if c == 2 else zero)
            for k in range(points):
                filled, mass, heat = shared[row, k, 0], shared[row, k, 1], shared[row, k, 3]
                if filled == zero and mass == zero:
                    continue
                if held:
                    filled, mass, heat = max(filled, zero), max(mass, zero), max(heat, zero)
                air = max(one - filled, zero) * rest[k]
                total = mass + air
                inverse = one / max(total, least)
                rho = total / max(filled, one)
                T = min(max((heat + air * warm[k]) * inverse, low), high)
                flame = min(max(shared[row, k, 5] * inverse, zero), one)
                smoke = min(max(shared[row, k, 6] * inverse, zero), one)
                hot, cold = T * T, warm[k] * warm[k]
                out[0, row, k] = rho
                out[1, row, k] = shared[row, k, 2]
                out[2, row, k] = T
                out[3, row, k] = min(max(shared[row, k, 4] * inverse, zero), one)
                out[4, row, k] = flame
                out[5, row, k] = smoke
                out[6, row, k] = light * flame * max(hot * hot - cold * cold, zero)
                out[7, row, k] = dark * rho * smoke
