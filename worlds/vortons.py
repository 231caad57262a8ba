"""Common parts of all recipes of vortons: closed loops of blobs, turning to world axes, and spawning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.errors import RecipeError
from ecs_fluid.strays import GOLDEN
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.frame import frame


def spawn_vortons(
    world: World, name: str, x: Array, alpha: Array, sigma: Array | float, volume: Array
) -> None:
    """Make a population of vortons.

    Args:
        world: world that gets the entity.
        name: name of the entity.
        x: positions (n, 3), m.
        alpha: strengths (n, 3), m^3/s.
        sigma: core radii (n,) or one for all, m.
        volume: fluid volumes (n,), m^3.

    Raises:
        RecipeError: there is no vorton at all.
    """
    if len(x) == 0:
        raise RecipeError("there would be no vortons; make the region larger or the spacing finer")
    cores = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (len(x),))
    world.spawn(name, Position(x), Strength(alpha), CoreRadius(cores), Volume(volume))


def loop_counts(radius: Array, spacing: float, least: int) -> Array:
    """Blobs on closed loops of `radius` (m,), spaced by at most `spacing`; at least `least` each."""
    return np.asarray(piece_counts(2 * np.pi * radius, spacing, least).astype(np.int64))


def loops(
    radius: Array,
    height: Array,
    circulation: Array,
    area: Array,
    counts: Array,
    amplitude: float = 0.0,
    wavenumber: int = 0,
) -> tuple[Array, Array, Array]:
    """Blobs on coaxial closed vortex loops about the local z axis.

    A loop is rho(phi) = radius + amplitude cos(wavenumber phi) at a height; a blob at angle phi carries
    alpha = circulation dx/dphi dphi, so that each loop has its circulation exactly and sums to zero.

    Args:
        radius, height: of the loops (m,), m.
        circulation: of the loops (m,), m^2/s.
        area: section of fluid that a loop stands for (m,), m^2.
        counts: blobs per loop (m,).
        amplitude: of the waviness, m.
        wavenumber: waves around the loop.

    Returns:
        local positions (n, 3), strengths (n, 3) and volumes (n,).
    """
    loop = np.repeat(np.arange(len(radius)), counts)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    # Each loop starts a golden section further on, so that the loops' first blobs do not line up.
    along = np.arange(len(loop)) - first[loop] + (loop * GOLDEN) % 1.0
    step = 2 * np.pi / counts[loop]
    phi = along * step
    rho = radius[loop] + amplitude * np.cos(wavenumber * phi)
    slope = -amplitude * wavenumber * np.sin(wavenumber * phi)
    cos, sin = np.cos(phi), np.sin(phi)
    x = np.stack([rho * cos, rho * sin, height[loop]], axis=1)
    tangent = np.stack([slope * cos - rho * sin, slope * sin + rho * cos, np.zeros_like(rho)], axis=1)
    alpha = (circulation[loop] * step)[:, None] * tangent
    volume = area[loop] * step * np.linalg.norm(tangent, axis=1)
    return x, alpha, volume


def placed(x: Array, alpha: Array, axis: Sequence[float], center: Sequence[float]) -> tuple[Array, Array]:
    """World positions and strengths (n, 3), from local ones whose z axis points along `axis`."""
    axes = frame(axis)
    # The sum with 0 makes -0.0 a plain zero.
    return np.asarray(x @ axes + np.asarray(center, dtype=np.float64)), np.asarray(alpha @ axes + 0.0)
