"""The fluid at rest: gravity, density, temperature, and the equation of state that ties the two."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field

from ecs_fluid.component import Array
from ecs_fluid.components import Ambient
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.keyframes import Keyed, KeyedVector, value_at
from ecs_fluid.system import System
from ecs_fluid.world import World

LAWS = {"none": 0, "ideal_gas": 1, "liquid": 2}


def _rising(keys: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if any(b <= a for (a, _), (b, _) in pairwise(keys)):
        raise ValueError("the heights must increase")
    for height, value in keys:
        if value <= 0:
            raise ValueError(f"{value:g} at the height {height:g} m; values above 0 are needed")
    return keys


Profile = Annotated[list[tuple[float, float]], Field(min_length=1), AfterValidator(_rising)]


class AmbientSystem(System):
    """Fluid at rest around everything: gravity, and density and temperature as functions of the height z.

    Equation of state (`law`), at constant pressure: ideal_gas: rho T = `density` `temperature`, so that the
    expansion coefficient -(1/rho) d(rho)/dT is +1/T; liquid: rho = `density` (1 - `expansion`
    (T - `temperature`)); none: temperature leaves the density as it is.

    A profile is a list of [height m, value], linear between and constant beyond; density_profile gives the
    stratification directly, temperature_profile by the equation of state. Fluid at rest at its own height
    generates no vorticity, whatever the profile. Source: Fluid Simulation for Video Games, parts 8 and 10
    (which prints the expansion coefficient without its sign).
    """

    writes = (Ambient,)
    phase = "prepare"
    distribution = "rows"

    gravity: KeyedVector = (0.0, 0.0, -9.81)
    """gravity, m/s^2; may be keyed in time"""
    density: float = Field(default=1.2, gt=0, le=1e6)
    """reference density, kg/m^3"""
    temperature: float = Field(default=300.0, gt=0, le=1e6)
    """reference temperature, K"""
    law: Literal["none", "ideal_gas", "liquid"] = "none"
    """equation of state"""
    expansion: float = Field(default=2.1e-4, ge=0, le=1)
    """expansion coefficient of a liquid, 1/K"""
    density_profile: Profile | None = None
    """density over height, [[m, kg/m^3], ...]"""
    temperature_profile: Profile | None = None
    """temperature over height, [[m, K], ...]"""

    def __post_init__(self) -> None:
        self._made: tuple[Any, float, Ambient] | None = None

    def added(self, world: World) -> None:
        """Refuse parameters that contradict each other."""
        if self.density_profile is not None and self.temperature_profile is not None:
            raise RecipeError(
                "AmbientSystem: density_profile and temperature_profile are both given; one is allowed"
            )
        if self.temperature_profile is not None and self.law == "none":
            raise RecipeError(
                "AmbientSystem: temperature_profile needs an equation of state; law = 'ideal_gas' or "
                "'liquid' is needed"
            )
        pulls = key_values(self.gravity)
        profile = self.density_profile is not None or self.temperature_profile is not None
        if profile and any(pull[0] or pull[1] for pull in pulls):
            raise RecipeError(
                f"AmbientSystem: gravity {self.gravity} with a profile over the height z; gravity along z is "
                "needed"
            )

    def process(self, dt: float) -> None:
        """Refill the ambient table; gravity may change in time."""
        table, now = self.field(Ambient), self.present()
        for field, array in now.items():
            table.__dict__[field.name] = array.copy()

    def present(self) -> Ambient:
        """The ambient now, also between two ticks: a table to read only."""
        time = self.world.time if isinstance(self.gravity, Keyed) else 0.0
        if self._made is None or self._made[0] is not self.parameters or self._made[1] != time:
            self._made = (self.parameters, time, self._table())
        return self._made[2]

    def _table(self) -> Ambient:
        number = self.world.dtype
        table = Ambient.blank(0, number)
        assert isinstance(table, Ambient)
        table.gravity = value_at(self.gravity, self.world.time).astype(number)
        for name, keys, constant in (
            ("density", self.density_profile, self.density),
            ("temperature", self.temperature_profile, self.temperature),
        ):
            heights, values = zip(*(keys or [(0.0, constant)]), strict=True)
            setattr(table, f"{name}_heights", np.array(heights, number))
            setattr(table, name, np.array(values, number))
        table.reference_density = np.array([self.density], number)
        table.reference_temperature = np.array([self.temperature], number)
        table.expansion = np.array([self.expansion], number)
        table.law = np.array([LAWS[self.law]])
        return table


def gravity_of(world: World, given: Any) -> Array:
    """Gravity (3,) m/s^2 now: a system's own if it has one, else the AmbientSystem's, else (0, 0, -9.81)."""
    if given is None:
        ambient = world.system(AmbientSystem)
        given = (0.0, 0.0, -9.81) if ambient is None else ambient.gravity
    return np.asarray(value_at(given, world.time), dtype=np.float64)


def key_values(parameter: Any) -> list[Any]:
    """All values that a constant or keyed parameter takes at its keys; none for None."""
    if isinstance(parameter, Keyed):
        return [value for _, value in parameter.keys]
    return [] if parameter is None else [parameter]


def density_of(ambient: Ambient, temperature: Array) -> Array:
    """Density (n,) kg/m^3 at a temperature (n,) K by the equation of state.

    Raises FluidError where a liquid would have no density left.
    """
    reference, warm = ambient.reference_density[0], ambient.reference_temperature[0]
    if ambient.law[0] == LAWS["ideal_gas"]:
        return np.asarray(reference * warm / temperature)
    if ambient.law[0] == LAWS["liquid"]:
        rho = reference * (1 - ambient.expansion[0] * (temperature - warm))
        if len(rho) and not (rho > 0).all():
            hot = float(temperature.max())
            raise FluidError(
                f"a liquid at {hot:g} K has no density left with expansion = {ambient.expansion[0]:g} 1/K; "
                "use a smaller expansion, or law = 'ideal_gas'"
            )
        return np.asarray(rho)
    return np.full_like(temperature, reference)


def temperature_of(ambient: Ambient, density: Array) -> Array:
    """Temperature (n,) K at a density (n,) kg/m^3: the inverse of `density_of`."""
    reference, warm = ambient.reference_density[0], ambient.reference_temperature[0]
    if ambient.law[0] == LAWS["ideal_gas"]:
        return np.asarray(reference * warm / density)
    if ambient.law[0] == LAWS["liquid"] and ambient.expansion[0] > 0:
        return np.asarray(warm + (1 - density / reference) / ambient.expansion[0])
    return np.full_like(density, warm)


def ambient_temperature(ambient: Ambient, z: Array) -> Array:
    """Temperature (n,) K of the fluid at rest at heights z (n,) m."""
    if len(ambient.temperature) == 1 and len(ambient.density) > 1 and ambient.law[0] != LAWS["none"]:
        return temperature_of(ambient, ambient_density(ambient, z))
    return _profile(z, ambient.temperature_heights, ambient.temperature)


def ambient_density(ambient: Ambient, z: Array) -> Array:
    """Density (n,) kg/m^3 of the fluid at rest at heights z (n,) m."""
    if len(ambient.temperature) > 1:
        return density_of(ambient, _profile(z, ambient.temperature_heights, ambient.temperature))
    return _profile(z, ambient.density_heights, ambient.density)


def density_slope(ambient: Ambient, z: Array) -> Array:
    """Derivative (n,) kg/m^4 of the ambient density along z, by a centred difference over 1e-3 m."""
    step = z.dtype.type(1e-3)
    return np.asarray((ambient_density(ambient, z + step) - ambient_density(ambient, z - step)) / (2 * step))


def _profile(z: Array, heights: Array, values: Array) -> Array:
    if len(values) == 1:
        return np.full_like(z, values[0])
    return np.interp(z, heights, values).astype(z.dtype)
