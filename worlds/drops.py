"""Recipe of drops: the signed distance of their common surface, for a surface that the flow carries."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.polynomial import Legendre
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, SignedDistance, Strength, Volume
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.systems.surface.system import SurfaceSystem
from ecs_fluid.systems.surface_tension import SurfaceTensionSystem
from ecs_fluid.world import World
from ecs_fluid.worlds.parameters import Direction, Length, Point

ROOM = 6
"""Layers of grid points around the drops."""
WAVY_POINT, DROP_POINT = 500, 20
"""Memory, bytes, of a grid point while wavy drops are made, and the addition for each drop."""
OVERLAP: float = SurfaceTensionSystem.Parameters.model_fields["overlap"].default
"""Core radius of the vortons of moving drops, in spacings, as SurfaceTensionSystem makes them."""
COARSE = 6.0
"""Cells per radius below which surface tension is noisy."""
TURNS = 40
"""Most Newton steps to the nearest point of a wavy drop; far fewer are needed."""


class Drop(Settings):
    """One drop: the ball r = R (1 + amplitude P_n(cos theta)), theta counted from the axis.

    P_n is Legendre's polynomial of the degree `mode`, the shape in which a drop oscillates: 2 makes it long
    (amplitude above 0) or flat. The volume is that of the ball with the radius R.
    """

    center: Point = (0.0, 0.0, 0.0)
    """centre, m"""
    radius: Length = 1.0
    """radius of the ball of the same volume, m"""
    amplitude: float = Field(default=0.0, ge=-0.4, le=0.4)
    """height of the wave over the radius, 1"""
    mode: Annotated[int, Field(ge=2, le=8)] = 2
    """degree n of the wave"""
    axis: Direction = (0.0, 0.0, 1.0)
    """axis of the wave, 1; of any length"""
    velocity: Point = (0.0, 0.0, 0.0)
    """velocity of the liquid inside at the start, m/s"""

    def profile(self, cosine: Array) -> Array:
        """Radius over R at cos theta, before the volume is corrected."""
        return np.asarray(1.0 + self._wave(cosine))

    @property
    def _wave(self) -> Legendre:
        """Relative change of the radius, a polynomial in cos theta."""
        return self.amplitude * Legendre.basis(self.mode)

    def scale(self) -> float:
        """Factor that gives the drop the ball's volume: 1/2 int profile^3 d(cos theta) by Gauss' rule."""
        nodes, weights = np.polynomial.legendre.leggauss(2 * self.mode + 1)
        return float((0.5 * (weights * self.profile(nodes) ** 3).sum()) ** (-1 / 3))

    def reach(self) -> float:
        """Largest distance of its surface from the centre, m."""
        return self.radius * self.scale() * (1.0 + abs(self.amplitude))

    def distance(self, x: Array) -> Array:
        """Signed distance (...) m at points (..., 3) m, to rounding except at the drop's centre and axis."""
        r = x - np.array(self.center)
        size = np.linalg.norm(r, axis=-1)
        if self.amplitude == 0.0:
            return np.asarray(size - self.radius)
        axis = np.array(self.axis) / np.linalg.norm(self.axis)
        z = np.asarray(r @ axis)
        s = np.asarray(np.sqrt(np.maximum(size**2 - z**2, 0.0)))
        far, least = np.arctan2(s, z), self.radius * self.scale()
        angle, moving = np.array(far), np.full(far.shape, True)
        for _ in range(TURNS):
            before = angle[moving]
            p, first, second = self._curve(before, least)
            # Half the derivative of the squared distance by the angle, and a bound of its own derivative.
            a, b = s[moving] - p[0], z[moving] - p[1]
            slope = -(a * first[0] + b * first[1])
            bend = first[0] ** 2 + first[1] ** 2 - (a * second[0] + b * second[1])
            turn = slope / np.maximum(bend, 0.3 * (first[0] ** 2 + first[1] ** 2))
            angle[moving] = np.clip(before - np.clip(turn, -0.2, 0.2), 0.0, np.pi)
            moving[moving] = angle[moving] != before
            if not moving.any():
                break
        p, _, _ = self._curve(angle, least)
        inside = size < least * self.profile(np.cos(far))
        away = np.hypot(s - p[0], z - p[1])
        return np.asarray(np.where(inside, -away, away))

    def _curve(self, angle: Array, least: float) -> tuple[tuple[Array, Array], ...]:
        """Points (s, z) of the outline at angles from the axis, and their first and second derivatives."""
        c, d = np.cos(angle), np.sin(angle)
        one, two = (self._wave.deriv(k)(c) for k in (1, 2))
        rho = least * self.profile(c)
        rise, bend = -least * d * one, least * (d * d * two - c * one)
        return (
            (rho * d, rho * c),
            (rise * d + rho * c, rise * c - rho * d),
            (bend * d + 2 * rise * c - rho * d, bend * c - 2 * rise * d - rho * c),
        )


class Drops(Recipe):
    """Drops: attaches their SignedDistance to the fluid, on a cubic grid with room around.

    The recipe adds a SurfaceSystem, with which the flow carries the surface. Give the world the system
    `surface_tension`, with `on` the name of this entity, which holds the vortons of the surface. A drop with
    a `velocity` V starts with a vortex sheet of strength 3/2 V cross n. For a ball this moves the liquid
    inside with V everywhere, and the fluid outside as if the ball were solid: the flow after a sudden push.
    Drops that touch or overlap are one drop from the start. A world may have one such entity.
    """

    kind: ClassVar[str] = "drops"
    drops: tuple[Drop, ...] = Field(default=(Drop(),), min_length=1)
    """the drops"""
    spacing: Length = 0.1
    """spacing of the grid, m"""

    @model_validator(mode="after")
    def _resolved(self) -> Drops:
        least = min(drop.radius for drop in self.drops)
        if self.spacing > 0.5 * least:
            raise ValueError(
                f"spacing {self.spacing:g} m is too large for a drop of radius {least:g} m; at most "
                f"{0.5 * least:g} m is allowed"
            )
        return self

    def spawn(self, world: World) -> None:
        """Attach the distance, and make the entity of the surface's vortons."""
        if SignedDistance in world.fluid:
            raise RecipeError("the world has a surface already; put all drops into one entity")
        low = np.min([np.array(drop.center) - drop.reach() for drop in self.drops], axis=0)
        high = np.max([np.array(drop.center) + drop.reach() for drop in self.drops], axis=0)
        first = np.floor(low / self.spacing) - ROOM
        counts = np.ceil(high / self.spacing) + ROOM + 1 - first
        each = WAVY_POINT + DROP_POINT * len(self.drops)
        check_memory(each, float(np.prod(counts)), "grid points", "use a larger spacing")
        axes = [self.spacing * (a + np.arange(int(n))) for a, n in zip(first, counts, strict=True)]
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        distances = [drop.distance(x) for drop in self.drops]
        phi = np.min(distances, axis=0)
        surface = np.array([(phi < 0).any()], np.int64)
        grid = SignedDistance(
            origin=self.spacing * first, spacing=np.full(3, self.spacing), phi=phi, surface=surface
        )
        world.attach("fluid", grid)
        alpha = self._sheet(distances)
        moving = alpha.any(axis=-1)
        count = int(moving.sum())
        world.spawn(
            self.name,
            Position(x[moving]),
            Strength(alpha[moving]),
            CoreRadius(np.full(count, OVERLAP * self.spacing)),
            Volume(np.full(count, self.spacing**3)),
        )

    def systems(self) -> list[System]:
        """The system by which the flow carries the surface."""
        return [SurfaceSystem(of="flow", carried=True)]

    def _sheet(self, distances: list[Array]) -> Array:
        """Strengths (px, py, pz, 3) m^3/s that move the drops: the curl of 3/2 V in each.

        The divergence-free part of a field that is uniform in a ball is 2/3 of it inside, hence the factor.
        """
        from ecs_fluid.kernels.surface.surface_tension import CELLS, rotation, step

        push = np.zeros((*distances[0].shape, 3))
        for drop, phi in zip(self.drops, distances, strict=True):
            push += 1.5 * step(phi, CELLS * self.spacing)[..., None] * np.array(drop.velocity)
        return rotation(push, np.full(3, self.spacing)) * self.spacing**3

    def lint(self) -> list[str]:
        """Warn of drops that the grid resolves too coarsely."""
        least = min(drop.radius for drop in self.drops) / self.spacing
        if least >= COARSE * (1 - 1e-6):
            return []
        return [
            f"{least:.2g} cells per radius < {COARSE:g}: surface tension will be noisy; use spacing <= "
            f"{least * self.spacing / COARSE:.3g} m"
        ]
