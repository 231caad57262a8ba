"""Heat between bodies and the particles around them, exact in time and in energy.

A body at T_b with the heat capacity C exchanges the heat flux k per difference of temperature (k = transfer
coefficient times area) with the particles around it, each in proportion to its volume: with F = rho_0 c_p V
the capacity of a particle and V_all the volume it is shared among, dT/dt = (k/(rho_0 c_p V_all)) (T_b - T) is
the same law for all of them, so that their mean T_m and the body relax to each other,
d(T_b - T_m)/dt = -k s (1/C + 1/F_m) (T_b - T_m), with the part s of V_all that particles fill and their whole
capacity F_m, while deviations from the mean fall by exp(-k/(rho_0 c_p V_all) t). All of it is solved exactly.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array


@njit(cache=True, error_model="numpy")
def conduct(
    body: Array,
    T: Array,
    volume: Array,
    heat: float,
    body_T: Array,
    capacity: Array,
    flux: Array,
    shell: Array,
    ambient: Array,
    open_air: bool,
    dt: float,
    lost: Array,
) -> None:
    """Exchange heat for dt seconds, in place.

    Args:
        body: (n,) the body that each particle is near to, -1 for none.
        T, volume: of the particles, K and m^3; T is changed.
        heat: capacity of the fluid per volume, J/(m^3 K).
        body_T, capacity, flux, shell: of the bodies (b,): temperature K (changed), heat capacity J/K,
            transfer coefficient times area W/K, volume of the fluid within reach m^3.
        ambient: (b,) temperature of the fluid where no particles are, K.
        open_air: whether what particles leave free of the shell is such fluid; else it insulates.
        lost: (b,) gets the heat that went to the ambient fluid, J.
    """
    bodies = len(body_T)
    filled, mean = np.zeros(bodies), np.zeros(bodies)
    sum_before = np.zeros(bodies)
    for row in range(len(body)):
        if body[row] >= 0:
            filled[body[row]] += volume[row]
            sum_before[body[row]] += volume[row] * T[row]
    former = body_T.copy()
    after, final_mean, decay = body_T.copy(), np.zeros(bodies), np.ones(bodies)
    for b in range(bodies):
        if flux[b] <= 0.0:
            continue
        whole = max(filled[b], shell[b])
        decay[b] = math.exp(-dt * flux[b] / (heat * whole))
        if filled[b] > 0.0:
            part, store = filled[b] / whole, heat * filled[b]
            mean[b] = sum_before[b] / filled[b]
            joint = (capacity[b] * former[b] + store * mean[b]) / (capacity[b] + store)
            remaining = math.exp(-dt * flux[b] * part * (1.0 / capacity[b] + 1.0 / store))
            final_mean[b] = joint + (capacity[b] / (capacity[b] + store)) * (mean[b] - former[b]) * remaining
    sum_after = np.zeros(bodies)
    for row in range(len(body)):
        b = body[row]
        if b >= 0 and flux[b] > 0.0:
            T[row] = final_mean[b] + (T[row] - mean[b]) * decay[b]
            sum_after[b] += volume[row] * T[row]
    for b in range(bodies):
        if flux[b] <= 0.0:
            continue
        # From what the particles really hold, so that the sum is kept to the rounding of one number.
        if filled[b] > 0.0:
            after[b] = former[b] - heat * (sum_after[b] - sum_before[b]) / capacity[b]
        if open_air:
            free = 1.0 - min(filled[b] / max(filled[b], shell[b]), 1.0)
            cooled = ambient[b] + (after[b] - ambient[b]) * math.exp(-dt * flux[b] * free / capacity[b])
            lost[b] += capacity[b] * (after[b] - cooled)
            after[b] = cooled
        body_T[b] = after[b]
