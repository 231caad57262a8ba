"""The constants of the fluid, which all systems share, in one component of the world's `fluid` entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypedDict, get_args

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from ecs_fluid.component import Array, Component, column
from ecs_fluid.errors import FluidError
from ecs_fluid.keyframes import Between, Keyed, KeyedVector
from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import shown, validated

EARTH = 9.81
"""Gravity of the earth, m/s^2."""

Law = Literal["none", "ideal_gas", "liquid"]
LAWS = {"none": 0, "ideal_gas": 1, "liquid": 2}
"""Codes of the equations of state."""


class Fluid(Component, per_row=False):
    """The fluid of a world, gravity, and how the fluid at rest is layered; `World.set_fluid` fills it.

    ``law`` is the code of the equation of state in `LAWS`. Gravity has one row for each of the increasing
    ``gravity_times``; ``gravity_between`` is the number, in `keyframes.Between`, of the law between them.
    Profiles have rows [height z, value], or none if one value holds at all heights. All columns are in double
    precision, whatever the precision of the world.
    """

    density: Array = column("kg/m^3", kind="double", above=0, maximum=1e6)
    viscosity: Array = column("m^2/s", kind="double", minimum=0, maximum=1e6)
    temperature: Array = column("K", kind="double", above=0, maximum=1e6)
    heat_capacity: Array = column("J/(kg K)", kind="double", above=0, maximum=1e9)
    conductivity: Array = column("W/(m K)", kind="double", minimum=0, maximum=1e9)
    law: Array = column("1", kind="int", minimum=0, maximum=len(LAWS) - 1)
    expansion: Array = column("1/K", kind="double", minimum=0, maximum=1)
    gravity: Array = column("m/s^2", shape=(None, 3), kind="double")
    gravity_times: Array = column("s", shape=(None,), kind="double")
    gravity_between: Array = column("1", kind="int", minimum=0, maximum=len(get_args(Between)) - 1)
    density_profile: Array = column("m, kg/m^3", shape=(None, 2), kind="double")
    temperature_profile: Array = column("m, K", shape=(None, 2), kind="double")


SCALARS = ("density", "viscosity", "temperature", "heat_capacity", "conductivity", "expansion")
"""Constants that are one number each."""


def _rising(keys: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if any(b <= a for (a, _), (b, _) in pairwise(keys)):
        raise ValueError("the heights must increase")
    for height, value in keys:
        if value <= 0:
            raise ValueError(f"{value:g} at the height {height:g} m; values above 0 are needed")
    return keys


Profile = Annotated[list[tuple[float, float]], Field(min_length=1), AfterValidator(_rising)]


class FluidOptions(Settings):
    """The fluid, gravity, and how the fluid at rest is layered; by default, air at rest.

    Equation of state (`law`), at constant pressure: ideal_gas: rho T = `density` `temperature`, so that the
    expansion coefficient -(1/rho) d(rho)/dT is +1/T; liquid: rho = `density` (1 - `expansion`
    (T - `temperature`)); none: temperature does not change the density.

    A profile is a list of [height m, value], linear between the heights and constant beyond them.
    density_profile gives the stratification directly, temperature_profile by the equation of state. Fluid at
    rest at its own height generates no vorticity, whatever the profile. Source: Fluid Simulation for Video
    Games, parts 8 and 10 (which prints the expansion coefficient without its sign).
    """

    density: Annotated[float, Field(**Fluid.columns["density"].limits)] = 1.2
    """density at rest, kg/m^3"""
    viscosity: Annotated[float, Field(**Fluid.columns["viscosity"].limits)] = 0.0
    """kinematic viscosity, m^2/s"""
    temperature: Annotated[float, Field(**Fluid.columns["temperature"].limits)] = 300.0
    """temperature at rest, K"""
    heat_capacity: Annotated[float, Field(**Fluid.columns["heat_capacity"].limits)] = 1005.0
    """heat capacity c_p, J/(kg K)"""
    conductivity: Annotated[float, Field(**Fluid.columns["conductivity"].limits)] = 0.0
    """thermal conductivity, W/(m K); 0.026 for air, 0.6 for water"""
    gravity: KeyedVector = (0.0, 0.0, -EARTH)
    """gravity, m/s^2; may be keyed in time"""
    law: Law = "none"
    """equation of state: density by temperature"""
    expansion: Annotated[float, Field(**Fluid.columns["expansion"].limits)] = 2.1e-4
    """law liquid: thermal expansion coefficient, 1/K"""
    density_profile: Profile | None = None
    """density at rest by height, [[m, kg/m^3], ...]"""
    temperature_profile: Profile | None = None
    """temperature at rest by height, [[m, K], ...]"""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.density_profile is not None and self.temperature_profile is not None:
            raise ValueError(
                "density_profile and temperature_profile are both given; only one of them is allowed"
            )
        if self.temperature_profile is not None and self.law == "none":
            raise ValueError(
                "temperature_profile needs an equation of state; law = 'ideal_gas' or 'liquid' is needed"
            )
        profile = self.density_profile is not None or self.temperature_profile is not None
        if profile and any(pull[0] or pull[1] for pull in key_values(self.gravity)):
            raise ValueError(
                f"gravity = {shown(self.gravity)} is not along z, but a profile over the height z is given; "
                "gravity along z is needed"
            )
        for name in ("density", "temperature"):
            layers = getattr(self, f"{name}_profile")
            values = [value for _, value in layers] if layers else [getattr(self, name)]
            if not min(values) <= getattr(self, name) <= max(values):
                raise ValueError(
                    f"{name} {getattr(self, name):g} lies outside {name}_profile; a reference value from "
                    f"{min(values):g} to {max(values):g} is needed"
                )
        return self


class FluidKeywords(TypedDict, total=False):
    """The fields of FluidOptions as keywords of World.set_fluid, for editors and type checkers."""

    density: float
    viscosity: float
    temperature: float
    heat_capacity: float
    conductivity: float
    gravity: Sequence[float] | Keyed
    law: Law
    expansion: float
    density_profile: Sequence[Sequence[float]] | None
    temperature_profile: Sequence[Sequence[float]] | None


def changed_fluid(table: Fluid | None, given: Mapping[str, Any], place: str) -> Fluid:
    """The fluid of `table` (air if that is None), changed by the `given` fields of FluidOptions.

    Raises RecipeError for a value that is not allowed, or that contradicts another one.
    """
    before = {} if table is None else dict(options_of(table))
    options: FluidOptions = validated(FluidOptions, {**before, **given}, place)
    gravity = options.gravity
    keys = gravity.keys if isinstance(gravity, Keyed) else [(0.0, list(gravity))]
    return Fluid(
        **{name: getattr(options, name) for name in SCALARS},
        law=LAWS[options.law],
        gravity=np.array([value for _, value in keys], np.float64),
        gravity_times=np.array([time for time, _ in keys], np.float64),
        gravity_between=get_args(Between).index(gravity.between) if isinstance(gravity, Keyed) else 0,
        density_profile=np.array(options.density_profile or np.zeros((0, 2))),
        temperature_profile=np.array(options.temperature_profile or np.zeros((0, 2))),
    )


def check_fluid(table: Fluid, place: str) -> None:
    """Raise FluidError for a table that `World.set_fluid` could not have made."""
    for field, array in table.items():
        field.check_values(array, place)
    validated(FluidOptions, options_of(table).model_dump(warnings=False), place)


def options_of(table: Fluid) -> FluidOptions:
    """The options that make this table."""
    numbers: dict[str, Any] = {name: float(getattr(table, name)) for name in SCALARS}
    law: Any = next(name for name, code in LAWS.items() if code == table.law)
    return FluidOptions.model_construct(
        **numbers,
        gravity=gravity_of(table),
        law=law,
        density_profile=[tuple(row) for row in table.density_profile.tolist()] or None,
        temperature_profile=[tuple(row) for row in table.temperature_profile.tolist()] or None,
    )


def gravity_of(table: Fluid) -> Any:
    """Gravity as in FluidOptions: a vector (3,) m/s^2, or Keyed."""
    rows, times = len(table.gravity), len(table.gravity_times)
    if rows != times or not rows:
        raise FluidError(
            f"Fluid has {rows} rows of gravity for {times} gravity_times; one row for each time is needed"
        )
    if len(table.gravity) == 1:
        return tuple(table.gravity[0].tolist())
    keys = list(zip(table.gravity_times.tolist(), table.gravity.tolist(), strict=True))
    return Keyed.model_construct(keys=keys, between=get_args(Between)[int(table.gravity_between)])


def key_values(parameter: Any) -> list[Any]:
    """All values that a constant or keyed parameter takes at its keys; none for None."""
    if isinstance(parameter, Keyed):
        return [value for _, value in parameter.keys]
    return [] if parameter is None else [parameter]
