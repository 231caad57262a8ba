"""What an emitter releases, where and when."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ecs_fluid import further_components
from ecs_fluid.component import Component
from ecs_fluid.components import (
    CoreRadius,
    Density,
    InertialVelocity,
    Position,
    Species,
    Strength,
    Temperature,
    Volume,
)
from ecs_fluid.components.bodies import Pose
from ecs_fluid.fluid import key_values
from ecs_fluid.keyframes import KeyedNumber, KeyedVector
from ecs_fluid.recipe import Name
from ecs_fluid.settings import Settings
from ecs_fluid.systems.shared.births import refuse_early_stop
from ecs_fluid.systems.shared.ranges import Fraction

Place = Annotated[float, Field(ge=-1e9, le=1e9)]
Width = Annotated[float, Field(ge=0, le=1e9)]
Point = tuple[Place, Place, Place]
Widths = tuple[Width, Width, Width]


OWN = (Position, Pose, Strength, CoreRadius, Volume, InertialVelocity, Density, Temperature, Species)
"""Components whose values an emitter's parameters set, or that can carry an emitter."""


OF_ONE = ("strength", "strength_spread", "core", "volume", "velocity", "velocity_spread")
"""Parameters of single particles that a puff's recipe replaces."""


class Emitter(Settings):
    """An emitter: what it releases, where and when."""

    name: Name
    into: Name
    """entity that gets the particles"""
    rate: KeyedNumber = 60.0
    """particles (or puffs) per second, 1/s, 0 to 1e9; may be keyed in time"""
    center: KeyedVector = (0.0, 0.0, 0.0)
    """middle of the emitter, m; may be keyed in time"""
    shape: Literal["box", "sphere", "disc"] = "box"
    """region of birth: box or ellipsoid of the size `spread`, disc across z"""
    spread: Widths = (0.0, 0.0, 0.0)
    """full widths of the region along x, y, z, m"""
    velocity: Point = (0.0, 0.0, 0.0)
    """own velocity of inertial particles, m/s, as seen from the emitter"""
    velocity_spread: Widths = (0.0, 0.0, 0.0)
    """full widths of its random part, m/s"""
    strength: Point = (0.0, 0.0, 0.0)
    """strength of a vorton, m^3/s"""
    strength_spread: Widths = (0.0, 0.0, 0.0)
    """full widths of its random part, m^3/s"""
    core: float = Field(default=0.1, ge=1e-6, le=1e6)
    """core radius of a vorton, m"""
    volume: float | None = Field(default=None, gt=0, le=1e18)
    """volume of a vorton, m^3; default that of a cube of edge core/1.5, in a plane a square times a
    metre"""
    density: KeyedNumber | None = None
    """density, kg/m^3, may be keyed in time; default ambient, or by the temperature"""
    temperature: KeyedNumber | None = None
    """temperature, K; may be keyed in time; default ambient"""
    fuel: Fraction = 0.0
    """mass fraction of fuel, 1"""
    flame: Fraction = 0.0
    """mass fraction of flame, 1"""
    smoke: Fraction = 0.0
    """mass fraction of smoke, 1"""
    puff: dict[str, Any] | None = None
    """what is given off in place of one particle, all at once: the rows of an entity about `center`, such as
    { kind = "vortex_ring", radius = 0.1, core = 0.03, circulation = 0.05 }"""
    attached: Name | None = None
    """entity that carries the emitter along: center, region, velocities, strengths and puffs are in the axes
    of a body, as it stands at the moment of each birth; relative to a particle they are along the world's
    axes"""
    attached_by: Literal["each", "mean"] = "each"
    """each: its bodies or particles carry the emitter in turn; mean: it is at their mean place, along the
    world's axes"""
    inherit: float = Field(default=1.0, ge=0, le=100)
    """part of the emitter's velocity, by keys of `center` and by what carries it, that inertial particles
    have beside their own, 1"""
    start: float = Field(default=0.0, ge=0, le=1e9)
    """time at which it begins, s; the first particle, or puff, comes 1/rate later"""
    stop: float | None = Field(default=None, gt=0, le=1e9)
    """time of the last particle, s; default never"""
    limit: int | None = Field(default=None, ge=0, le=50_000_000)
    """most particles (or puffs) given off in all; default no limit"""
    component: tuple[dict[str, Any], ...] = ()
    """further components of the particles, such as { kind = "Age", t = 0.0 }, or your own"""

    @property
    def fractions(self) -> dict[str, float]:
        """Mass fractions of the species, 1."""
        return {name: getattr(self, name) for name in Species.columns}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for rate in key_values(self.rate):
            if not 0 <= rate <= 1e9:
                raise ValueError(f"rate = {rate}; a number from 0 to 1e9 per second is needed")
        for key in ("density", "temperature"):
            for value in key_values(getattr(self, key)):
                if not 0 < value <= 1e9:
                    raise ValueError(f"{key} = {value}; a number above 0 and at most 1e9 is needed")
        if self.shape == "disc" and self.spread[2]:
            raise ValueError(
                f"spread = {list(self.spread)}, but a disc lies across z: give 0 along z, or for a disc that "
                "lies otherwise a solid, such as a flat cylinder that is turned"
            )
        total = sum(self.fractions.values())
        if total > 1 + 1e-12:
            raise ValueError(f"{' + '.join(Species.columns)} is {total:g}; at most 1 is allowed")
        refuse_early_stop(self.start, self.stop)
        if self.attached is None and self.attached_by != "each":
            raise ValueError(
                f"attached_by = {self.attached_by!r} needs attached, the name of what carries the emitter"
            )
        # Compared with the defaults, not with the fields that were set: a stored recipe sets all of them.
        of_one = [key for key in OF_ONE if getattr(self, key) != Emitter.model_fields[key].default]
        if self.puff is not None and of_one:
            raise ValueError(f"{of_one[0]} is for single particles, but a puff has its own; leave it out")
        return self


def further(emitter: Emitter) -> list[tuple[type[Component], dict[str, Any]]]:
    """Classes of the further components of an emitter's particles, and their tables."""
    return further_components.classes_of(emitter.component, f"emitter {emitter.name!r}", OWN)
