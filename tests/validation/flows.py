"""Flows that several validation tests march: rings of blobs, lattices, and the worlds around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecs_fluid as ef

Array = NDArray[Any]
Blobs = tuple[Array, Array, Array]
"""Positions (n, 3) m, strengths (n, 3) m^3/s and core radii (n,) m."""


def ring(
    count: int,
    sigma: float,
    radius: float = 1.0,
    circulation: float = 1.0,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0),
) -> Blobs:
    """A circle of blobs alpha = circulation dx; positive circulation travels along `axis`."""
    e3 = np.asarray(axis) / np.linalg.norm(axis)
    e1 = np.cross(e3, (1.0, 0.0, 0.0) if abs(e3[0]) < 0.9 else (0.0, 1.0, 0.0))
    e1 /= np.linalg.norm(e1)
    if np.allclose(e3, (0.0, 0.0, 1.0)):
        e1 = np.array((1.0, 0.0, 0.0))
    e2 = np.cross(e3, e1)
    phi = 2 * np.pi * np.arange(count) / count
    cos, sin = np.cos(phi)[:, None], np.sin(phi)[:, None]
    x = np.asarray(center) + radius * (cos * e1 + sin * e2)
    alpha = circulation * 2 * np.pi * radius / count * (cos * e2 - sin * e1)
    return x, alpha, np.full(count, sigma)


def skew_rings(count: int = 100, sigma: float = 0.25, circulation: float = 1.0) -> list[Blobs]:
    """Two unit rings that lean towards each other, 1.4 apart: nothing of the flow is symmetric."""
    return [
        ring(count, sigma, 1.0, circulation, (0.0, 0.0, 0.0), (0.2, 0.1, 1.0)),
        ring(count, sigma, 0.8, circulation, (0.5, 0.3, -1.4), (-0.3, 0.4, 1.0)),
    ]


def lattice(low: Any, high: Any, spacing: float) -> Array:
    """Points of a cubic lattice about the origin's multiples of `spacing`, inside the box; (n, 3) m."""
    axes = [
        spacing * np.arange(np.ceil(a / spacing - 1e-9), np.floor(b / spacing + 1e-9) + 1)
        for a, b in zip(low, high, strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def swirl_blob(spacing: float, reach: float, core: float = 1.0) -> tuple[Array, Array, Array]:
    """Lattice that carries omega = curl(exp(-r^2 / (2 core^2)) e_z) = exp(...) (-y, x, 0) / core^2.

    Returns positions, strengths and volumes. Its impulse 1/2 int x cross omega is int exp(...) e_z.
    """
    x = lattice((-reach,) * 3, (reach,) * 3, spacing)
    shape = np.exp(-(x**2).sum(axis=1) / (2 * core**2)) / core**2
    omega = shape[:, None] * np.stack([-x[:, 1], x[:, 0], np.zeros(len(x))], axis=1)
    return x, omega * spacing**3, np.full(len(x), spacing**3)


def world_of(
    blobs: list[Blobs] | Blobs,
    *systems: ef.System,
    stretch: str = "transposed",
    velocity: dict[str, Any] | None = None,
    **options: Any,
) -> ef.World:
    """A double-precision world of populations `vortex0`, `vortex1`, ... with velocity, stretch and motion."""
    world = ef.World(**{"precision": "double", **options})
    for number, (x, alpha, sigma) in enumerate(blobs if isinstance(blobs, list) else [blobs]):
        world.spawn(f"vortex{number}", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    chosen: dict[str, Any] = {"solver": "direct", **(velocity or {})}
    world.add_systems([*systems, ef.VelocitySystem(**chosen), ef.StretchSystem(scheme=stretch)])
    world.add_system(ef.AdvectionSystem())
    return world


def vortons(world: ef.World) -> tuple[Array, Array]:
    """Positions and strengths of all vortons of the world, float64 copies."""
    pairs = list(world.query(ef.Position, ef.Strength))
    x = np.concatenate([position.x for position, _ in pairs]).astype(np.float64)
    return x, np.concatenate([strength.alpha for _, strength in pairs]).astype(np.float64)


def invariants(world: ef.World) -> dict[str, Array]:
    """Total strength, impulse and angular impulse, summed here with numpy and not by the package."""
    x, alpha = vortons(world)
    swirl = np.cross(x, alpha)
    return {
        "strength": alpha.sum(axis=0),
        "impulse": 0.5 * swirl.sum(axis=0),
        "angular_impulse": np.cross(x, swirl).sum(axis=0) / 3,
    }


def axial_center(world: ef.World) -> float:
    """Height of a ring or Hill vortex: z weighted by the share of a vorton in the axial impulse, m."""
    x, alpha = vortons(world)
    share = np.cross(x, alpha)[:, 2]
    return float((x[:, 2] * share).sum() / share.sum())
