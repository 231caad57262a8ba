"""Clouds of liquid particles and what holds them, for tests of the liquid's kernels."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, obstacles
from ecs_fluid.kernels.sph.forces import DIFFUSION, lattice_weight
from ecs_fluid.kernels.sph.step import LiquidLaw
from ecs_fluid.worlds.hulls import hull_of_vertices

SUPPORT, EDGE = 2.6, 0.1
LAW = LiquidLaw(SUPPORT * EDGE, SUPPORT, EDGE**3, 1.0e5, 0.02, (1.0, 2.0, -9.0))


def cloud(count: int, dtype: type = np.float64) -> tuple[Array, Array, Array, Array]:
    """A compressed, disordered cloud: places, velocities, masses, V / V_0."""
    draw = np.random.default_rng(5)
    k = np.arange(count)
    x = 0.09 * np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3)
    x += draw.uniform(-0.03, 0.03, x.shape)
    n = len(x)
    mass, size = draw.uniform(0.5, 2.0, n), draw.uniform(0.9, 1.1, n)
    return x.astype(dtype), draw.standard_normal((n, 3)).astype(dtype), mass.astype(dtype), size.astype(dtype)


def by_double_loop(x: Array, v: Array, mass: Array, size: Array) -> tuple[Array, Array, float, Array]:
    """nu, forces, loss and rate of the excess by the equations of the module, all pairs written out."""
    weight, reach = lattice_weight(SUPPORT), LAW.reach
    r = x[:, None] - x
    q = np.linalg.norm(r, axis=2) / reach
    near = np.maximum(1 - q, 0)
    nu = size * weight * (near**4 * (4 * q + 1)).sum(axis=1)
    p = np.maximum(LAW.stiffness * (nu**7 - 1), 0)
    load = size**2 * LAW.volume * p / nu**2
    slope = weight * 20 * near**3 / reach**2
    meet = ((v[:, None] - v) * r).sum(axis=2) / np.maximum(q * reach, 1e-100) ** 2  # the particle itself: 0
    drag = 10 * LAW.viscosity * (mass[:, None] + mass) / 2 * meet * slope
    force = ((load[:, None] + load) * slope - drag)[..., None] * r
    loss = 0.5 * (drag * ((v[:, None] - v) * r).sum(axis=2)).sum()
    wet = (p[:, None] > 0) & (p > 0)
    uneven = p - p[:, None] - (mass[:, None] + mass) / (2 * LAW.volume) * (-r @ np.array(LAW.gravity))
    c = np.sqrt(7 * LAW.stiffness / (mass / (size * LAW.volume)).max())
    rate = DIFFUSION * c * reach * (wet * uneven * slope).sum(axis=1) / (7 * LAW.stiffness)
    return nu, force.sum(axis=1), float(loss - (load / size * rate).sum()), rate


def box_table(size: tuple[float, float, float], slant: float = 0.0) -> Hulls:
    """A box, one side of which leans outward by `slant` m from bottom to top."""
    corners = np.array([[a, b, c] for a in (-0.5, 0.5) for b in (-0.5, 0.5) for c in (-0.5, 0.5)])
    lean = np.where((corners[:, 0] > 0) & (corners[:, 2] > 0), slant, 0.0)[:, None] * np.array([1.0, 0, 0])
    return hull_of_vertices(corners * np.array(size) + lean).table


def bodies(shape: int, table: Hulls, center: Array, turn: Array, radius: float) -> Obstacles:
    """One body at rest."""
    pose, still = (center[None], turn[None]), (np.zeros((1, 3)), np.zeros((1, 3)))
    kind = np.array([shape])
    return obstacles(pose, pose, still, kind, np.array([radius]), np.zeros(1, np.int64), table, LAW.reach)
