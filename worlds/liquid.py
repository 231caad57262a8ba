"""Recipe of a liquid: particles on a lattice in a box, a ball, a shape, or a container."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array, Component
from ecs_fluid.components import CoreRadius, Density, InertialVelocity, Position, Strength, Volume
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import RecipeError, warn
from ecs_fluid.input_limits import VORTON
from ecs_fluid.recipe import Name, Recipe
from ecs_fluid.system import System
from ecs_fluid.systems.inflow import SPACING, WATER
from ecs_fluid.systems.liquid.places import LEAST_ACROSS, LEAST_GAP, ROUNDED
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.systems.shared.ranges import Length, LiquidDensity, LiquidViscosity
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import lattice_of_at_most
from ecs_fluid.worlds.containers import inside
from ecs_fluid.worlds.parameters import Coordinate, Overlap, Point, one_of
from ecs_fluid.worlds.regions import Box, Solid, Sphere
from ecs_fluid.worlds.space import Space

MOST = VORTON, "particles of liquid", "use a larger spacing"
"""Advice in messages of too many particles."""


class LiquidRecipe(Recipe):
    """Liquid at rest, or moving as a whole, on a cubic lattice; the SphSystem comes with it.

    It fills a `box`, a `sphere`, a `solid`, or the container named in `fills` (which must stand before it in
    the file) up to the height `level`. The first layer of particles lies half a spacing from the walls; the
    spacing is adjusted a little so that layers exactly fill a box, or the bounding box of a shape. With
    `hydrostatic` the liquid is compressed by its own weight before the first tick, like a column that rests
    on a floor (beside container walls that lean it keeps its places and has the pressure alone); leave it out
    for liquid that falls.

    `vortons` gives the particles a vortex strength too (0 at first), and the density from which
    BaroclinicSystem makes strength: the hybrid of vortices and liquid of the articles. Experimental, see
    docs/liquids.md.
    """

    kind: ClassVar[str] = "liquid"
    box: Box | None = None
    """box along the axes, m"""
    sphere: Sphere | None = None
    """ball, m"""
    solid: Solid | None = None
    """inside of a body's shape or of a mesh file, m"""
    fills: Name | None = None
    """container that it fills"""
    level: Coordinate | None = None
    """height of the surface in a container, m; default full"""
    spacing: Length = SPACING
    """distance between neighbouring particles, m"""
    density: LiquidDensity = WATER
    """density of the liquid, kg/m^3; the density of [fluid] is that of the fluid around it"""
    viscosity: LiquidViscosity = 0.0
    """kinematic viscosity of the liquid, m^2/s; one value for all liquids of a world"""
    velocity: Point = (0.0, 0.0, 0.0)
    """velocity, m/s"""
    jitter: float = Field(default=0.0, ge=0, le=0.5)
    """full width of a random shift along each axis, spacings"""
    hydrostatic: bool = False
    """whether it starts with the pressure of its own weight"""
    vortons: bool = False
    """whether particles are vortons too; experimental"""
    overlap: Overlap = LEAST_OVERLAP
    """core radius of the vortons over the spacing, 1"""

    @model_validator(mode="after")
    def _one_place(self) -> LiquidRecipe:
        one_of(self, ("box", "sphere", "solid", "fills"))
        if self.level is not None and self.fills is None:
            raise ValueError("level is the height of the surface in a container; it needs fills")
        if self.box is not None and any(a == b for a, b in zip(self.box.low, self.box.high, strict=True)):
            raise ValueError("box has no volume; every size must be above 0")
        return self

    def spawn(self, world: World) -> None:
        """Spawn the particles."""
        x, volume = self._places(world)
        if self.jitter:
            random = stream(world.seed, f"{self.name} jitter").random(x.shape) - 0.5
            x = x + self.jitter * self.spacing * random
        rows = len(x)
        tables: list[Component] = [
            Position(x),
            InertialVelocity(np.tile(np.array(self.velocity, dtype=np.float64), (rows, 1))),
            Liquid(*(np.full(rows, value) for value in (self.density * volume, volume, self.viscosity))),
        ]
        if self.vortons:
            tables += [
                Strength(np.zeros((rows, 3))),
                CoreRadius(np.full(rows, self.overlap * self.spacing)),
                Volume(np.full(rows, volume)),
                Density(np.full(rows, self.density)),
            ]
        world.spawn(self.name, *tables)

    def systems(self) -> list[System]:
        """The system that moves the liquid, and compresses it before the first tick if `hydrostatic` is
        set."""
        return [SphSystem(hydrostatic=(self.name,) if self.hydrostatic else ())]

    def _places(self, world: World) -> tuple[Array, float]:
        """Positions (n, 3), and the volume of a particle, m^3."""
        if self.fills is not None:
            return self._in_container(world, self.fills)
        region = self.box or self.sphere or self.solid
        assert region is not None
        space = region.space()
        self._warn_if_thin(space)
        x, edge = lattice_of_at_most(*MOST, space.low, space.high, self.spacing)
        return space.filled(x, "particle of liquid"), float(np.prod(edge))

    def _in_container(self, world: World, name: str) -> tuple[Array, float]:
        """Lattice in the container's own axes, half a spacing from its walls, up to the level."""
        container = inside(world, name)
        # Below half a spacing: rounding cannot remove a box's outer layers, and curved walls lose less.
        space = container.space(LEAST_GAP * self.spacing)
        low, high, middle = space.low, space.high, float(space.origin[2])
        upright = np.allclose(space.axes, np.eye(3), atol=1e-6)
        if self.level is not None:
            self._warn_if_level_is_no_height(world)
            top = middle + float((container.corners @ space.axes[:, 2]).max())
            if self.level > top + 1e-6 * (1 + abs(top)):
                raise RecipeError(
                    f"level = {self.level:g} m is above the top of {name!r}, {top:g} m; leave it out to "
                    "fill it"
                )
        if self.level is not None and upright:
            high[2] = min(high[2], self.level - middle)
            if high[2] <= low[2]:
                raise RecipeError(
                    f"level = {self.level:g} m is below the floor of {name!r}, {low[2] + middle:g} m"
                )
        r, edge = lattice_of_at_most(*MOST, low, high, self.spacing)
        x = r[space.holds(r)] @ space.axes + space.origin
        if self.level is not None and not upright:
            x = x[x[:, 2] < self.level]
        if not len(x):
            raise RecipeError(f"no particle of liquid fits into {name!r}; use a smaller spacing")
        return np.asarray(x), float(np.prod(edge))

    def _warn_if_level_is_no_height(self, world: World) -> None:
        """Warn of a level where gravity, at the start, does not point down along z."""
        down = world.gravity / (np.linalg.norm(world.gravity) or 1.0)
        if down.any() and down[2] > -0.5:
            warn(
                f"{self.name!r}: level = {self.level:g} m is a height along z, but gravity is "
                f"{world.gravity.tolist()} m/s^2; let gravity point along -z, or fill a box"
            )

    def _warn_if_thin(self, space: Space) -> None:
        """Warn of liquid too thin for its spacing."""
        least = float((space.high - space.low).min())
        if least < LEAST_ACROSS * self.spacing * (1 - ROUNDED):
            warn(
                f"{self.name!r}: the liquid is {least / self.spacing:.2g} particles thick, fewer than "
                f"{LEAST_ACROSS}, and will not keep its pressure; "
                f"use spacing <= {least / LEAST_ACROSS:.2g} m"
            )
