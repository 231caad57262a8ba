"""Flows that several validation tests march: rings of blobs, lattices, and the worlds around them."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecs_fluid as ef
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.worlds.world_recipe import WorldRecipe, read

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


def wavy_ring(height: float, circulation: float, amplitude: float) -> Blobs:
    """Seven lines (one in the middle, six 0.1 around) of 63 blobs, radius 1, with five helical waves."""
    phi = 2 * np.pi * np.arange(63) / 63
    around = np.pi / 3 * np.arange(6)
    section = np.concatenate([[(0.0, 0.0)], 0.1 * np.stack([np.cos(around), np.sin(around)], axis=1)])
    weight = np.exp(-(section**2).sum(axis=1) / 0.09**2)
    parts = []
    for (s, z), share in zip(section, weight / weight.sum(), strict=True):
        radius, slope = 1 + s + amplitude * np.cos(5 * phi), -5 * amplitude * np.sin(5 * phi)
        x = np.stack(
            [radius * np.cos(phi), radius * np.sin(phi), height + z + amplitude * np.sin(5 * phi)], axis=1
        )
        tangent = np.stack(
            [
                slope * np.cos(phi) - radius * np.sin(phi),
                slope * np.sin(phi) + radius * np.cos(phi),
                5 * amplitude * np.cos(5 * phi),
            ],
            axis=1,
        )
        parts.append((x, circulation * share * 2 * np.pi / 63 * tangent))
    x, alpha = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return x, alpha, np.full(len(x), 0.15)


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


class RowSolver(DirectSolver):
    """The direct sum over the vortons and their copies along x: `images` on either side, `length` apart."""

    length: float = 1.0
    images: int = 8

    def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None:
        """Repeat the vortons."""
        numbers = np.arange(-self.images, self.images + 1)
        row = copy(sources)
        row.x = np.tile(sources.x, (1, len(numbers)))
        row.x[0] += np.repeat(self.length * numbers, sources.x.shape[1])
        row.alpha = np.tile(sources.alpha, (1, len(numbers)))
        row.sigma = np.tile(sources.sigma, len(numbers))
        super().prepare(row, grid)


def bent_line(count: int, sigma: float, amplitude: float) -> Blobs:
    """One wave y = amplitude cos x of a line along x of circulation 1, blobs 2 pi/count apart."""
    s = 2 * np.pi * np.arange(count) / count
    x = np.stack([s, amplitude * np.cos(s), np.zeros(count)], axis=1)
    along = np.stack([np.ones(count), -amplitude * np.sin(s), np.zeros(count)], axis=1)
    return x, 2 * np.pi / count * along, np.full(count, sigma)


def helical_field(spacing: float, seed: int = 1, modes: int = 24) -> Blobs:
    """Lattice in a ball of 2.4 m of omega = curl(exp(-r^2/2) sum of random Beltrami waves); overlap 1.5.

    A wave cos(k . x + phase) e1 - sin(k . x + phase) e2, with e1, e2 and k at right angles, has the curl k
    times itself; k is 1.5 to 3 /m. The mean square of omega over the bell's pi^(3/2) m^3 is 1/s^2.
    """
    draw = np.random.default_rng(seed)
    x = lattice((-2.4,) * 3, (2.4,) * 3, spacing)
    x = x[(x**2).sum(axis=1) < 2.4**2]
    omega, bell = np.zeros_like(x), np.exp(-(x**2).sum(axis=1) / 2)[:, None]
    for _ in range(modes):
        k = draw.standard_normal(3)
        k *= draw.uniform(1.5, 3.0) / np.linalg.norm(k)
        e1 = np.cross(k, draw.standard_normal(3))
        e1 /= np.linalg.norm(e1)
        e2 = np.cross(k, e1) / np.linalg.norm(k)
        phase = (x @ k + draw.uniform(0, 2 * np.pi))[:, None]
        wave = np.cos(phase) * e1 - np.sin(phase) * e2
        omega += draw.standard_normal() * bell * (np.linalg.norm(k) * wave - np.cross(x, wave))
    omega *= np.sqrt(np.pi**1.5 / ((omega**2).sum() * spacing**3))
    return x, omega * spacing**3, np.full(len(x), 1.5 * spacing)


def bare(name: str, *settings: str) -> ef.World:
    """The shipped world with these settings, in double precision and without its tracers."""
    tables = read(name, settings).tables()
    tables["entity"] = [item for item in tables["entity"] if item["kind"] != "tracers"]
    tables["world"]["precision"] = "double"
    return WorldRecipe.from_tables(tables).build()


def world_of(
    blobs: list[Blobs] | Blobs,
    *systems: ef.System,
    stretch: str = "auto",
    velocity: dict[str, Any] | None = None,
    **options: Any,
) -> ef.World:
    """A double-precision world of populations `vortex0`, `vortex1`, ... with velocity, stretch and motion."""
    world = ef.World(**{"precision": "double", **options})
    for number, (x, alpha, sigma) in enumerate(blobs if isinstance(blobs, list) else [blobs]):
        world.spawn(f"vortex{number}", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    chosen: dict[str, Any] = {"solver": "direct", **(velocity or {})}
    own = any(isinstance(system, ef.VelocitySystem) for system in systems)
    world.add_systems([*systems, *([] if own else [ef.VelocitySystem(**chosen)])])
    world.add_system(ef.StretchSystem(scheme=stretch))
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
