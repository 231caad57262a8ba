"""Recipe of tracers: points that follow the flow and show it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import TRACER, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import (
    candidates,
    lattice_of_at_most,
    occupied_cells,
    points_in_cells,
    typical_distance,
)
from ecs_fluid.worlds.containers import inside, is_container
from ecs_fluid.worlds.parameters import Length, Point, one_of
from ecs_fluid.worlds.regions import Box, Line, Plane, Region, Slab, Solid, Sphere, Torus
from ecs_fluid.worlds.space import Space

PLACES = ("fills", "box", "slab", "sphere", "torus", "solid", "line", "plane", "points")
FEWER = "use a smaller per_cell, a larger cell or a smaller region"
MOST_AROUND, MOST_LOOKED_AT = 1e6, 1e9
"""Most cells examined around one particle, and around all particles of an entity (about a minute)."""


class Tracers(Recipe):
    """Tracers that fill an entity or a region, or stand on a rake of points.

    Exactly one place is given:

    * ``fills = "name"``: the cells occupied by the particles of that entity (which stands above this one in
      the file): cells that hold a particle, or whose centre lies within `reach` core radii of a vorton.
      The edge of the cells is `cell`, or the typical distance between the particles. Or cells of edge `cell`
      fill the container of that name;
    * box, slab, sphere, torus, solid: cells of edge `cell` fill the region; tracers outside are left out;
    * line, plane, points: a rake, one tracer at each point.

    A cell gets `per_cell` tracers on a jittered sub-lattice (the articles use 5^3 = 125, part 7), drawn from
    a counter-based stream keyed by the world's seed and the entity's name.
    """

    kind: ClassVar[str] = "tracers"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    fills: str | None = Field(default=None, max_length=64)
    """name of the entity whose cells are filled, or of the container"""
    box: Box | None = None
    """box along the axes, m"""
    slab: Slab | None = None
    """square plate across a direction, m"""
    sphere: Sphere | None = None
    """ball, m"""
    torus: Torus | None = None
    """body of a ring, m"""
    solid: Solid | None = None
    """inside of a body's shape or of a mesh file, m"""
    line: Line | None = None
    """rake along a line, m"""
    plane: Plane | None = None
    """rake over a parallelogram, m"""
    points: Annotated[list[Point], Field(min_length=1, max_length=1_000_000)] | None = None
    """rake of given points, m"""
    cell: Length | None = None
    """edge of the cells, m; with `fills` the spacing of its particles if left out"""
    per_cell: int = Field(default=27, ge=1, le=1000)
    """tracers in a cell, 1"""
    jitter: float = Field(default=1.0, ge=0, le=1)
    """full width of a random shift along each axis, over the edge of a sub-cell, 1"""
    reach: float = Field(default=1.0, ge=0, le=10)
    """with `fills`: how far around its vortons tracers are placed, core radii"""

    @model_validator(mode="after")
    def _one_place(self) -> Tracers:
        try:
            place = one_of(self, PLACES)
        except ValueError as error:
            raise ValueError(f"{error}; an emitter makes its own tracers, without such a table") from None
        if self._region is not None and self.cell is None:
            raise ValueError(f"{place} needs 'cell', the edge of the cells in m")
        return self

    @property
    def _region(self) -> Region | None:
        return self.box or self.slab or self.sphere or self.torus or self.solid

    def spawn(self, world: World) -> None:
        """Spawn the tracers."""
        if self.fills is not None and is_container(world, self.fills):
            x = self._within(world, inside(world, self.fills).space())
        elif self.fills is not None:
            x = self._filling(world, self.fills)
        elif self._region is not None:
            x = self._within(world, self._region.space())
        else:
            rake = self.line or self.plane
            x = rake.points() if rake is not None else np.array(self.points, dtype=np.float64)
        world.spawn(self.name, Position(x))

    def _filling(self, world: World, name: str) -> Array:
        if name not in world or Position not in world[name]:
            names = [entity.name for entity in world.entities]
            known = [each for each in names if Position in world[each] or is_container(world, each)]
            raise RecipeError(
                f"fills = {name!r}: no entity of that name with particles and no container stands before "
                f"this one; {nearest(name, known)}"
            )
        entity = world[name]
        x = entity[Position].x.astype(np.float64)
        if len(x) == 0:
            raise RecipeError(f"fills = {name!r} has no particles to fill around")
        core = float(np.median(entity[CoreRadius].sigma)) if CoreRadius in entity else 0.0
        cell = self.cell or typical_distance(x) or core
        if cell <= 0:
            raise RecipeError(f"the size of cells does not follow from fills = {name!r}; give 'cell' in m")
        reach = self.reach * core
        around, whole = candidates(x, reach, cell, world.across)
        if around > MOST_AROUND or around * len(x) > MOST_LOOKED_AT or whole > 2**62:
            raise RecipeError(
                f"cells of {cell:.3g} m are too small for cores of {core:.3g} m in "
                f"{name!r}; give a larger 'cell'"
            )
        centers, size = occupied_cells(x, reach, cell, world.across)
        check_memory(TRACER, len(centers) * self.per_cell, "tracers", FEWER)
        return points_in_cells(centers, size, self.per_cell, self.jitter, stream(world.seed, self.name))

    def _within(self, world: World, space: Space) -> Array:
        if self.cell is None:
            raise RecipeError(
                f"fills = {self.fills!r} names a container, so it needs 'cell', the edge of cells in m"
            )
        most, cell = (TRACER, "tracers", FEWER), self.cell
        centers, size = lattice_of_at_most(*most, *space.cut(world.across), cell, self.per_cell)
        local = points_in_cells(centers, size, self.per_cell, self.jitter, stream(world.seed, self.name))
        return space.filled(local, "tracer", "use a smaller cell")
