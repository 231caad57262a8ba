"""Recipe of Hill's spherical vortex."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import model_validator

from ecs_fluid.component import Array
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.world import World
from ecs_fluid.worlds.parameters import Amount, Direction, Length, Overlap, Point, overlap_lint
from ecs_fluid.worlds.vortons import placed, spawn_vortons

SUBCELLS = 8
SLIVER = 0.05
"""Cells with less than this fraction inside the sphere get no vorton of their own."""


class HillVortex(Recipe):
    """Hill's spherical vortex: a ball of fluid that travels along its axis without changing shape.

    omega_phi = 15 U s/(2 a^2) at distance s from the axis, inside the sphere of radius a (Hill 1894). Vortons
    stand on a cubic lattice; a cell cut by the sphere is sampled on 8^3 points, and its vorton stands at
    the centroid of the part inside with the volume of that part. The volumes are scaled to sum to
    4 pi a^3/3, which makes the circulation sum(alpha_phi/(2 pi s)) = 5 U a exact; the impulse
    2 pi a^3 U along the axis is reached to second order in the spacing.
    """

    kind: ClassVar[str] = "hill_vortex"
    radius: Length = 1.0
    """radius a of the sphere, m"""
    speed: Amount = 1.0
    """speed U along the axis, m/s; circulation = 5 U a"""
    spacing: Length = 0.125
    """edge of the lattice cells, m; at most the radius"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over spacing, 1"""
    center: Point = (0.0, 0.0, 0.0)
    """centre of the sphere, m"""
    axis: Direction = (0.0, 0.0, 1.0)
    """direction of travel, 1; of any length"""

    @model_validator(mode="after")
    def _resolved(self) -> HillVortex:
        if self.spacing > self.radius:
            raise ValueError(
                f"spacing {self.spacing:g} m is larger than the radius; at most {self.radius:g} m is allowed"
            )
        return self

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        ball = 4 / 3 * np.pi * (self.radius / self.spacing) ** 3
        check_memory(VORTON, ball, "vortons", "use a larger spacing")
        x, volume = ball_cells(self.radius, self.spacing)
        volume *= 4 / 3 * np.pi * self.radius**3 / volume.sum()
        rate = 7.5 * self.speed / self.radius**2
        alpha = (rate * volume)[:, None] * np.stack([-x[:, 1], x[:, 0], np.zeros(len(x))], axis=1)
        sigma = self.overlap * self.spacing
        spawn_vortons(world, self.name, *placed(x, alpha, self.axis, self.center), sigma, volume)

    def lint(self) -> list[str]:
        """Sentences on overlap and resolution."""
        texts = overlap_lint(self.overlap, "vortex")
        if self.spacing > 0.2 * self.radius * (1 + 1e-6):
            texts.append(
                f"{self.radius / self.spacing:.1f} cells per radius < 5, the vortex will "
                f"travel some 10 % too slowly; use spacing <= {0.2 * self.radius:.3g} m"
            )
        return texts


def ball_cells(radius: float, spacing: float) -> tuple[Array, Array]:
    """Centroids (n, 3) and volumes (n,) of the parts of lattice cells inside a sphere about the origin.

    Cell centres are odd multiples of spacing/2, so that the set has the cube's symmetry.
    """
    half = int(np.ceil(radius / spacing))
    ticks = (np.arange(-half, half) + 0.5) * spacing
    grid = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    corner = np.abs(grid) + spacing / 2
    nearest = np.maximum(np.abs(grid) - spacing / 2, 0.0)
    whole = (corner**2).sum(axis=1) <= radius**2
    cut = ~whole & ((nearest**2).sum(axis=1) < radius**2)
    fine = ((np.arange(SUBCELLS) + 0.5) / SUBCELLS - 0.5) * spacing
    offsets = np.stack(np.meshgrid(fine, fine, fine, indexing="ij"), axis=-1).reshape(-1, 3)
    centroids, fractions = [grid[whole]], [np.ones(int(whole.sum()))]
    edge = grid[cut]
    for start in range(0, len(edge), 4096):
        points = edge[start : start + 4096, None, :] + offsets
        inside = (points**2).sum(axis=2) <= radius**2
        count = inside.sum(axis=1)
        kept = count > SLIVER * len(offsets)
        total = np.where(inside[..., None], points, 0.0).sum(axis=1)
        centroids.append(total[kept] / count[kept, None])
        fractions.append(count[kept] / len(offsets))
    return np.concatenate(centroids), np.concatenate(fractions) * spacing**3
