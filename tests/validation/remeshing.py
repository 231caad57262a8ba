"""A filled ring, matter, and what remeshing keeps of them."""

from __future__ import annotations

import math

import numpy as np
from flows import Blobs, lattice, vortons

import ecs_fluid as ef

AXIS = np.array((0.3, 0.2, 1.0)) / math.sqrt(1.13)


def filled_ring(h: float = 0.2, core: float = 0.4) -> Blobs:
    """Lattice vortons of a ring of radius and circulation 1, core exp(-s^2/core^2), leaning to every axis."""
    reach = 1 + 3.1 * core
    x = lattice((-reach,) * 3, (reach,) * 3, h)
    z = x @ AXIS
    radial = x - z[:, None] * AXIS
    rho = np.linalg.norm(radial, axis=1)
    omega = np.exp(-((rho - 1) ** 2 + z**2) / core**2) / (math.pi * core**2)
    kept = (omega > 1e-4 * omega.max()) & (rho > 0)
    x, radial, rho, omega = x[kept], radial[kept], rho[kept], omega[kept]
    alpha = h**3 * (omega / rho)[:, None] * np.cross(AXIS, radial)
    return x, alpha, np.full(len(x), 1.5 * h)


def moments(world: ef.World) -> np.ndarray:
    """Moments 0, 1 and 2 of every strength component about the origin, (10, 3)."""
    x, alpha = vortons(world)
    pairs = [x[:, i] * x[:, j] for i in range(3) for j in range(i, 3)]
    return np.stack([np.ones(len(x)), *x.T, *pairs], axis=1).T @ alpha


def matter(count: int) -> list[ef.Component]:
    """Density, temperature and species of random fluid, at the ends of their ranges here and there."""
    draw = np.random.default_rng(5)
    smoke = draw.uniform(0, 1, count)
    smoke[:20], smoke[20:40] = 0.0, 1.0
    return [
        ef.Volume(draw.uniform(0.5, 1.5, count) * 1e-3),
        ef.Density(draw.uniform(0.2, 1.5, count)),
        ef.Temperature(draw.uniform(280, 1500, count)),
        ef.Species(np.zeros(count), 1 - smoke, smoke),
        ef.Age(draw.uniform(0, 2, count)),
    ]


def contents(world: ef.World) -> np.ndarray:
    """Volume, and per volume: mass, heat, flame and smoke as thermal and combustion count them, age."""
    one = world["vortex0"]
    volume, species = one[ef.Volume].volume, one[ef.Species]
    return np.array(
        [
            volume.sum(),
            (volume * one[ef.Density].rho).sum(),
            (volume * one[ef.Temperature].T).sum(),
            (volume * species.flame).sum(),
            (volume * species.smoke).sum(),
            (volume * one[ef.Age].t).sum(),
        ]
    )
