"""Recipe of an inflow: liquid that flows from an opening while the world runs."""

from __future__ import annotations

from typing import ClassVar

from ecs_fluid.errors import RecipeError
from ecs_fluid.plane import check_dimension
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.systems.inflow import Inflow, InflowSystem
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.world import World


class InflowRecipe(Recipe, Inflow):
    """A tap, a nozzle or a hose: liquid flows from an opening at a speed; the SphSystem comes with it.

    Layers of particles leave the opening at `speed` along `direction`, so that the volume that has flowed in
    is the area of the opening times the integral of the speed over time. The liquid `into` is made, empty, if
    the world has none of that name. This recipe holds parameters only: the InflowSystem does the work.
    """

    kind: ClassVar[str] = "inflow"

    @property
    def holder(self) -> str:
        """The liquid that receives the particles."""
        return self.into

    def build(self, world: World) -> None:
        """Check the world; components are given to each particle as it flows in."""
        check_dimension(type(self), world, RecipeError, f"kind = {self.kind!r}")

    def spawn(self, world: World) -> None:
        """Nothing stands at the start: the InflowSystem makes the liquid."""

    def systems(self) -> list[System]:
        """The systems that let the liquid in and move it."""
        inflow = Inflow(**{key: getattr(self, key) for key in Inflow.model_fields})
        return [InflowSystem(inflows=[inflow]), SphSystem()]
