"""Recipe of a region of fluid at rest that carries density, temperature or species."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array, Component
from ecs_fluid.components import CoreRadius, Density, Position, Species, Strength, Temperature, Volume
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON
from ecs_fluid.recipe import Name, Recipe
from ecs_fluid.systems.shared.fluid_at_rest import refuse_both
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.systems.shared.ranges import Fraction, Length
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import lattice_of_at_most
from ecs_fluid.worlds.containers import inside
from ecs_fluid.worlds.formula import Formula, evaluate
from ecs_fluid.worlds.parameters import Overlap, one_of, overlap_lint
from ecs_fluid.worlds.regions import Box, Solid, Sphere, Torus
from ecs_fluid.worlds.space import Space

Positive = Annotated[float, Field(gt=0, le=1e9)]


class FluidBlock(Recipe):
    """Vortons at rest on a lattice that fills a region, with what they carry as numbers or formulas.

    The region is a `box`, a `sphere`, a `torus`, a `solid`, or the inside of the container named in `fills`
    (which must stand before it in the file; its volume is that of all vortons). Each vorton stands for a cell
    of edge about `spacing` and has no strength to begin with: BaroclinicSystem gives it one where its density
    differs from its neighbours' or from the ambient. `density`, `temperature` and mass fractions are numbers
    or formulas over x, y, z, r in m ("300 + 200*exp(-(r/0.3)**2)"): the place in the world, and its distance
    from the world's origin, wherever the block is; about (0, 0, 1) write x**2 + y**2 + (z - 1)**2 for r**2.

    In a world of two dimensions the block is what its plane cuts out of the region, a metre deep.

    A symmetric cloud stays symmetric: `agitation` gives vortons a random vorticity, uniform in
    [-agitation/2, agitation/2] per component, and `jitter` moves them off their lattice, both from a stream
    keyed by the world's seed and the entity's name. The articles' density balls: sphere, agitation 1e-3.
    """

    kind: ClassVar[str] = "fluid_block"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    box: Box | None = None
    """box along the axes, m"""
    sphere: Sphere | None = None
    """ball, m"""
    torus: Torus | None = None
    """body of a ring, m"""
    solid: Solid | None = None
    """inside of a body's shape or of a mesh file, m"""
    fills: Name | None = None
    """container that it fills"""
    spacing: Length = 0.1
    """distance between neighbouring vortons, m"""
    overlap: Overlap = LEAST_OVERLAP
    """core radius over the cell's edge, 1"""
    density: Positive | Formula | None = None
    """density, kg/m^3; a number or a formula; default the fluid's, or by the temperature"""
    temperature: Positive | Formula | None = None
    """temperature, K; a number or a formula; default the fluid's, or by the density"""
    fuel: Fraction | Formula = 0.0
    """mass fraction of fuel, 1; a number or a formula"""
    flame: Fraction | Formula = 0.0
    """mass fraction of flame, 1; a number or a formula"""
    smoke: Fraction | Formula = 0.0
    """mass fraction of smoke, 1; a number or a formula"""
    agitation: float = Field(default=0.0, ge=0, le=1e9)
    """full width of the random vorticity of each component, 1/s"""
    jitter: float = Field(default=0.0, ge=0, le=1)
    """full width of a random shift along each axis, over the cell's edge, 1"""

    @model_validator(mode="after")
    def _one_region(self) -> FluidBlock:
        one_of(self, ("box", "sphere", "torus", "solid", "fills"))
        if self.box is not None and sum(a == b for a, b in zip(self.box.low, self.box.high, strict=True)) > 1:
            raise ValueError("box has no area; at most one of its sizes may be 0")
        return self

    def _space(self, world: World) -> Space:
        if self.fills is not None:
            return inside(world, self.fills).space()
        region = self.box or self.sphere or self.torus or self.solid
        assert region is not None
        return region.space()

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        refuse_both(world, "the block has", self.density, self.temperature)
        x, edge = self._places(world)
        volume = float(np.prod(edge[edge > 0]))
        if (
            self.fills is not None
            and abs(missing := inside(world, self.fills).volume / (len(x) * volume) - 1) > 1e-6
        ):
            volume *= 1 + missing  # cells at walls that lean, cut by these
        tables: list[Component] = [
            Position(x),
            Strength(self._strength(world, x, volume)),
            CoreRadius(np.full(len(x), self.overlap * float(edge.max()))),
            Volume(np.full(len(x), volume)),
        ]
        if self.density is not None:
            tables.append(Density(self._value("density", x)))
        if self.temperature is not None:
            tables.append(Temperature(self._value("temperature", x)))
        if any(getattr(self, name) != 0.0 for name in Species.columns):
            fractions = [self._value(name, x) for name in Species.columns]
            total = np.sum(fractions, axis=0)
            if float(total.max()) > 1 + 1e-9:
                row = int(total.argmax())
                place = ", ".join(f"{part:g}" for part in x[row])
                raise RecipeError(
                    f"{' + '.join(Species.columns)} is {total[row]:g} at ({place}) m; at most 1 is allowed"
                )
            tables.append(Species(*fractions))
        world.spawn(self.name, *tables)

    def _places(self, world: World) -> tuple[Array, Array]:
        """Positions (n, 3), and the edges (3,) of a cell, 0 across a flat box."""
        space = self._space(world)
        most = VORTON, "vortons", "use a larger spacing"
        x, edge = lattice_of_at_most(*most, *space.cut(world.across), self.spacing)
        if self.jitter:
            x = x + self.jitter * edge * (stream(world.seed, f"{self.name} jitter").random(x.shape) - 0.5)
        return space.filled(x, "vorton"), edge

    def _strength(self, world: World, x: Array, volume: float) -> Array:
        if not self.agitation:
            return np.zeros_like(x)
        omega = self.agitation * (stream(world.seed, self.name).random(x.shape) - 0.5)
        flat = np.ptp(x, axis=0) == 0
        if flat.any():
            omega[:, ~flat] = 0.0
        # Without a mean the cloud as a whole neither turns nor moves by it.
        return np.asarray((omega - omega.mean(axis=0)) * volume)

    def _value(self, name: str, x: Array) -> Array:
        given = getattr(self, name)
        if isinstance(given, str):
            return evaluate(given, x, name)
        return np.full(len(x), float(given))

    def lint(self) -> list[str]:
        """Sentences on cores that do not overlap."""
        return overlap_lint(self.overlap, "flow")
