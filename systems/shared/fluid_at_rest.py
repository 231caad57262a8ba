"""The fluid at rest: density and temperature at each height, by the equation of state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import LAWS, Fluid, options_of
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.systems.reaction import ReactionSystem


class FluidAtRest(NamedTuple):
    """Constants of the fluid at the present time, in the precision of the world.

    gravity: (3,) m/s^2. law: code of the equation of state. density, temperature: of the fluid itself,
    kg/m^3 and K. expansion: 1/K. densities, temperatures: (values, heights m), each of at least one value.
    """

    gravity: Array
    law: int
    density: Any
    temperature: Any
    expansion: Any
    densities: tuple[Array, Array]
    temperatures: tuple[Array, Array]

    @property
    def layered(self) -> bool:
        """Whether density or temperature change with the height."""
        return len(self.densities[0]) + len(self.temperatures[0]) > 2


def fluid_at_rest(world: World) -> FluidAtRest:
    """The world's fluid at the present time."""
    table, number = world.fluid[Fluid], world.dtype
    density, temperature, expansion = (
        number(value) for value in (table.density, table.temperature, table.expansion)
    )

    def layers(profile: Array, constant: Any) -> tuple[Array, Array]:
        if not len(profile):
            return np.array([constant], number), np.zeros(1, number)
        return profile[:, 1].astype(number), profile[:, 0].astype(number)

    return FluidAtRest(
        world.gravity.astype(number), int(table.law), density, temperature, expansion,
        layers(table.density_profile, table.density),
        layers(table.temperature_profile, table.temperature),
    )  # fmt: skip


def refuse_both(world: World, place: str, density: Any, temperature: Any) -> None:
    """Raise RecipeError if both density and temperature are given, though one follows from the other.

    ``place`` begins the message: what has them.
    """
    law = options_of(world.fluid[Fluid]).law
    if law != "none" and density is not None and temperature is not None:
        raise RecipeError(
            f"{place} density = {density!r} kg/m^3 and temperature = {temperature!r} K, but with the fluid's "
            f"law = {law!r} one follows from the other; leave one of them out"
        )


def density_of(fluid: FluidAtRest, temperature: Array) -> Array:
    """Density (n,) kg/m^3 at a temperature (n,) K by the equation of state.

    Raises FluidError where a liquid would have no density left.
    """
    if fluid.law == LAWS["ideal_gas"]:
        return np.asarray(fluid.density * fluid.temperature / temperature)
    if fluid.law == LAWS["liquid"]:
        rho = fluid.density * (1 - fluid.expansion * (temperature - fluid.temperature))
        if len(rho) and not (rho > 0).all():
            hot = float(temperature.max())
            raise FluidError(
                f"with expansion = {fluid.expansion:g} 1/K a liquid at {hot:g} K has no density above 0; "
                "use a smaller expansion, or law = 'ideal_gas'"
            )
        return np.asarray(rho)
    return np.full_like(temperature, fluid.density)


def temperature_of(fluid: FluidAtRest, density: Array) -> Array:
    """Temperature (n,) K at a density (n,) kg/m^3: the inverse of `density_of`."""
    if fluid.law == LAWS["ideal_gas"]:
        return np.asarray(fluid.density * fluid.temperature / density)
    if fluid.law == LAWS["liquid"] and fluid.expansion > 0:
        return np.asarray(fluid.temperature + (1 - density / fluid.density) / fluid.expansion)
    return np.full_like(density, fluid.temperature)


def temperature_at(fluid: FluidAtRest, z: Array) -> Array:
    """Temperature (n,) K of the fluid at rest at heights z (n,) m."""
    if len(fluid.densities[0]) > 1 and fluid.law != LAWS["none"]:
        return temperature_of(fluid, density_at(fluid, z))
    return _interpolated(z, *fluid.temperatures)


def density_at(fluid: FluidAtRest, z: Array) -> Array:
    """Density (n,) kg/m^3 of the fluid at rest at heights z (n,) m."""
    if len(fluid.temperatures[0]) > 1:
        return density_of(fluid, _interpolated(z, *fluid.temperatures))
    return _interpolated(z, *fluid.densities)


def density_slope(fluid: FluidAtRest, z: Array) -> Array:
    """Derivative (n,) kg/m^4 of the density at rest along z; at corners of a profile the mean of both sides.

    It is not taken by differences between near heights: in single precision these would have few digits.
    """
    warm = len(fluid.temperatures[0]) > 1
    values, heights = fluid.temperatures if warm else fluid.densities
    rise, width = np.diff(values), np.diff(heights)
    # Heights may be the same in the world's precision.
    slopes = np.divide(rise, width, out=np.zeros_like(rise), where=width > 0)
    slopes = np.pad(slopes, 1)  # constant beyond
    below, above = (slopes[np.searchsorted(heights, z, side)] for side in ("left", "right"))
    slope = z.dtype.type(0.5) * (below + above)
    if not warm:
        return np.asarray(slope)
    if fluid.law == LAWS["ideal_gas"]:
        T = temperature_at(fluid, z)
        return np.asarray(-density_of(fluid, T) / T * slope)
    return np.asarray(-fluid.density * fluid.expansion * slope)


def _interpolated(z: Array, values: Array, heights: Array) -> Array:
    if len(values) == 1:
        return np.full_like(z, values[0])
    return np.interp(z, heights, values).astype(z.dtype)


def fluid_density(system: BoundarySystem | ReactionSystem) -> float:
    """Density of the fluid, kg/m^3, that a system uses: its own parameter, or the fluid's if that is None."""
    return float(system.field(Fluid).density) if system.density is None else system.density


def density_lint(system: BoundarySystem | ReactionSystem, world: World) -> list[str]:
    """Warn, in one sentence, if a system's own density differs from the fluid's."""
    own, fluids = system.density, float(world.fluid[Fluid].density)
    if own is None or own == fluids:
        return []
    return [
        f"{type(system).__name__} has density = {own:g} kg/m^3, but the fluid has {fluids:g} kg/m^3; leave "
        "density out of the system to use the fluid's"
    ]
