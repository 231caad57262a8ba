"""Recipe of an emitter: particles that appear while the world runs."""

from __future__ import annotations

from itertools import compress
from typing import ClassVar, Literal

from pydantic import model_validator

from ecs_fluid.component import Component
from ecs_fluid.components import (
    BirthCells,
    CoreRadius,
    Density,
    Emission,
    InertialVelocity,
    Position,
    Species,
    Strength,
    Temperature,
    Volume,
)
from ecs_fluid.errors import RecipeError
from ecs_fluid.further_components import component_from
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.systems.emission import EmissionSystem
from ecs_fluid.systems.shared.emitters import Emitter, further
from ecs_fluid.systems.shared.puffs import recipe_of_puff, rows_of_puff
from ecs_fluid.world import World
from ecs_fluid.worlds.containers import of_body
from ecs_fluid.worlds.parameters import Extent
from ecs_fluid.worlds.regions import Solid

POPULATIONS: dict[str, tuple[type[Component], ...]] = {
    "vortons": (Position, Strength, CoreRadius, Volume),
    "tracers": (Position,),
    "inertial": (Position, InertialVelocity),
}


class EmitterRecipe(Recipe, Emitter):
    """Emits particles into a population: vortons, tracers, or inertial particles such as droplets.

    Each tick of dt seconds adds rate x dt particles; the fraction is carried to the next tick (articles, part
    7). A particle is born at a random place in a region about `center` whose full widths along x, y, z are
    `spread`: a box, an ellipsoid ("sphere"), or a flat ellipse across z ("disc"). Or it is born in a `solid`,
    any shape of a body or a mesh, which is cut into cells; with a `skin`, in the cells around the solid, or
    around the body that carries the emitter. Each component of velocities and strengths gets a random part,
    uniform between minus and plus half of `velocity_spread` or `strength_spread`. `rate` and `center` may be
    keyframed.

    With a `puff` the rows of a whole entity are born at that place in place of each particle: with a
    ``vortex_ring`` the emitter is a synthetic jet, which gives the flow the impulse rate x pi Gamma R^2 per
    second along the ring's axis. The population then has the columns of those rows, and `population` must be
    left out.

    An emitter that is `attached` to a body moves and turns with it: all of this is in the axes of the body,
    and `center` is seen from its centre of mass. Several bodies, or particles, of an entity carry the emitter
    in turn; `rate` is then that of all of them together, and the emitter ends when they are gone. The
    velocity of the emitter is added to that of inertial particles, as when something is thrown from a car;
    `inherit` is the part of it that they get.

    A `density`, a `temperature` or a mass fraction of a species makes the population carry that quantity
    (BaroclinicSystem, ThermalSystem and CombustionSystem work on them).

    The population `into` is made, empty, if the world has none of that name. This recipe only holds
    parameters: the EmissionSystem does the work.
    """

    kind: ClassVar[str] = "emitter"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    population: Literal["vortons", "tracers", "inertial"] = "tracers"
    """what is emitted"""
    solid: Solid | None = None
    """shape or mesh in which particles are born, in place of `shape` and `spread`, m; its center is relative
    to that of the emitter"""
    skin: Extent = 0.0
    """particles are born around the solid, by default the body that carries the emitter, at most this far
    from it, to within a cell, m; 0: inside the solid"""

    @model_validator(mode="after")
    def _fits_the_population(self) -> EmitterRecipe:
        if self.puff is not None and self.population != type(self).model_fields["population"].default:
            raise ValueError("population follows from the puff; leave it out")
        special = {
            "inertial": ("velocity", "velocity_spread", "inherit"),
            "vortons": ("strength", "strength_spread", "core", "volume"),
        }
        for population, keys in special.items():
            for key in keys:
                # Compared with the defaults, not with the fields set: a stored recipe sets all of them.
                changed = getattr(self, key) != type(self).model_fields[key].default
                if changed and self.population != population and not (self.puff and key == "inherit"):
                    raise ValueError(
                        f"{key} is for population = {population!r}, but this is {self.population!r}"
                    )
        return self

    @model_validator(mode="after")
    def _one_region(self) -> EmitterRecipe:
        fields = Emitter.model_fields
        if self.solid is None and self.skin and (self.attached is None or self.attached_by != "each"):
            raise ValueError(
                "skin is given without solid; give the solid that it surrounds, or attach the emitter to the "
                "body that it surrounds"
            )
        if (self.solid is not None or self.skin) and (
            self.shape != fields["shape"].default or self.spread != fields["spread"].default
        ):
            raise ValueError(
                "shape or spread is given beside solid or skin; only one region of birth is allowed"
            )
        return self

    @property
    def holder(self) -> str:
        """The population that receives the particles."""
        return self.into

    def build(self, world: World) -> None:
        """Make the population, with the components of its future rows, and the cells of birth."""
        self.spawn(world)
        if self.solid is not None or self.skin:
            space = of_body(world, str(self.attached)) if self.solid is None else self.solid.space()
            cells = BirthCells(*space.cells(self.skin, world.across))
            world.spawn(self.name, Emission, cells)

    def spawn(self, world: World) -> None:
        """Make the population that receives the particles, unless it exists."""
        own = POPULATIONS[self.population] if self.puff is None else tuple(rows_of_puff(self, world)[0])
        kinds = tuple(dict.fromkeys(own + self._carried()))
        if self.into in world:
            if Strength in world[self.into] and Strength not in own:
                # Otherwise they would be vortons of the default core and volume.
                given = "its puffs hold no vortons" if self.puff else f"population is {self.population!r}"
                raise RecipeError(
                    f"entity {self.into!r} holds vortons, but {given}; emit vortons, or emit into another "
                    "entity"
                )
            missing = [kind.__name__ for kind in kinds if kind not in world[self.into]]
            if missing:
                inertial = "inertial particles" if self.population == "inertial" else self.population
                raise RecipeError(
                    f"entity {self.into!r} has no {missing[0]}, so it cannot receive "
                    f"{'puffs' if self.puff else inertial}; emit into another entity"
                )
            return
        world.spawn(self.into, *kinds)

    def _carried(self) -> tuple[type[Component], ...]:
        """Components that the emitter adds to its particles."""
        given = (self.density is not None, self.temperature is not None, any(self.fractions.values()))
        kinds = list[type[Component]](compress((Density, Temperature, Species), given))
        for number, (kind, table) in enumerate(further(self), start=1):
            place = f"[[entity.component]] {number}"
            # Made without rows: so a list, one value per row, is refused before the first birth.
            component_from(kind, table, 0, place, f"{self.into!r} begins with")
            kinds.append(kind)
        return tuple(kinds)

    def systems(self) -> list[System]:
        """The system that emits the particles."""
        emitter = Emitter(**{key: getattr(self, key) for key in Emitter.model_fields})
        of_puff = [] if self.puff is None else recipe_of_puff(self).systems()
        return [EmissionSystem(emitters=[emitter]), *of_puff]

    def lint(self) -> list[str]:
        """Warn of an emitter that fills the memory or has no effect on the flow."""
        texts = [] if self.puff is None else recipe_of_puff(self).lint()
        passive = not any((*self.strength, *self.strength_spread)) and not self._carried()
        if self.population == "vortons" and passive:
            texts.append(
                "the vortons have no strength, so they do not move the fluid; "
                "give strength or strength_spread"
            )
        return texts
