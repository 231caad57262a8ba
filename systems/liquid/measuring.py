"""Integrals of a liquid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.components.liquid import LiquidBudget
from ecs_fluid.systems.liquid.all_liquid import AllLiquid


def measured(liquid: AllLiquid) -> dict[str, Any]:
    """What `SphSystem.measure` returns."""
    from ecs_fluid.kernels.sph.forces import compression_energy

    x, v, mass, size, _ = liquid.particles
    law, budget = liquid.law(), liquid.sph.field(LiquidBudget)
    nu, surface = liquid.compression_and_surface()
    place, speed, m = x.astype(np.float64), v.astype(np.float64), mass.astype(np.float64)
    weight = liquid.sph.weight_left(m / (size * law.volume))
    record: dict[str, Any] = {
        "mass": float(m.sum()),
        "momentum": (m[:, None] * speed).sum(axis=0),
        "angular_momentum": (m[:, None] * np.cross(place, speed)).sum(axis=0),
        "center": (m[:, None] * place).sum(axis=0) / m.sum(),
        "kinetic": 0.5 * float((m * (speed**2).sum(axis=1)).sum()),
        "potential": -float((m * weight * (place @ liquid.world.gravity)).sum()),
        "compression": compression_energy(nu, size, law.stiffness, law.volume),
        "dissipated": float(budget.dissipated[0]),
        "work": float(budget.work[0]),
        "least": float(nu.min()),
        "largest": float(nu.max()),
        "speed": float(np.sqrt((speed**2).sum(axis=1).max())),
    }
    record["surface"] = surface
    record["energy"] = record["kinetic"] + record["potential"] + record["compression"] + surface
    return record
