"""Quantities that particles carry, and their rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.component import Array, Component, Tables, column
from ecs_fluid.errors import ComponentError

ROUNDING = 1e-5
"""Largest relative error by rounding that is allowed in sums of numbers in single precision."""


class Position(Component):
    """Where a particle is."""

    x: Array = column("m", shape=(3,), plane="in")


class Velocity(Component, rate_of=Position):
    """Rate of change of the position: fluid velocity plus wind and the like, in the integrator's last stage.

    So in a frame it differs from the velocity at the frame's places by terms of the order of dt;
    ``frame.flow.velocity(x)`` is that of the fluid there.
    """

    u: Array = column("m/s", shape=(3,), in_frames=True)


class Strength(Component):
    """Vortex strength: vorticity times volume, so that its sum over a tube's slice is its circulation."""

    alpha: Array = column("m^3/s", shape=(3,), plane="across")


class StrengthRate(Component, rate_of=Strength):
    """Rate of change of the strength, summed over stretching, diffusion and generation."""

    dalpha: Array = column("m^3/s^2", shape=(3,))


class CoreRadius(Component):
    """Radius of the blob over which a vorton's strength is spread."""

    sigma: Array = column("m", above=0.0)


class CoreRadiusRate(Component, rate_of=CoreRadius, squared=True):
    """Rate of change of the squared core radius, so that viscous spreading is exact in time."""

    dsigma2: Array = column("m^2/s")


class VelocityGradient(Component, derived=True, given=(Position, Strength, CoreRadius)):
    """Velocity gradient at a vorton: du[p, i, j] is the derivative of u_i along x_j."""

    du: Array = column("1/s", shape=(3, 3))


class Volume(Component):
    """Fluid volume that a particle stands for (an area in flat, two-dimensional populations)."""

    volume: Array = column("m^3", above=0.0)


class Density(Component):
    """Mass density of the fluid that a particle carries."""

    rho: Array = column("kg/m^3", above=0.0)


class Temperature(Component):
    """Absolute temperature of the fluid that a particle carries."""

    T: Array = column("K", above=0.0)


class TemperatureRate(Component, rate_of=Temperature, given=(Temperature, Volume)):
    """Rate of change of the temperature by conduction; only of particles with a volume, not of tracers."""

    dT: Array = column("K/s")


class Dilatation(Component, given=(Strength, CoreRadius, Volume, Temperature)):
    """How a vorton's volume follows its temperature, if warming gas pushes away the gas around it.

    ``temperature`` is the temperature at which it has its volume; 0 means its present one. ``divergence`` is
    the divergence of the flow that it makes in the next tick.
    """

    temperature: Array = column("K", default=0.0, minimum=0.0)
    divergence: Array = column("1/s", default=0.0)

    @classmethod
    def blank_beside(cls, tables: Tables, rows: int, dtype: np.dtype[Any] | type) -> Component:
        """A table for new vortons, which have their volume at the temperature that they come with."""
        table = cls.blank(rows, dtype)
        table.__dict__["temperature"][...] = tables[Temperature].__dict__["T"]
        return table


class Species(Component):
    """Mass fractions of fuel, flame and smoke; the rest, 1 less their sum, is air.

    A further species is a column here and in SpeciesRate, SpeciesField, Emitter and FluidBlock.
    """

    fuel: Array = column("1", default=0.0, minimum=0.0, maximum=1.0)
    flame: Array = column("1", default=0.0, minimum=0.0, maximum=1.0)
    smoke: Array = column("1", default=0.0, minimum=0.0, maximum=1.0)

    def agree(self, beside: Tables) -> None:
        """Refuse fractions of a row that sum to more than 1 by more than rounding in single precision."""
        total = np.sum([array for _, array in self.items()], axis=0)
        if len(total) and float(total.max()) > 1 + ROUNDING:
            row = int(total.argmax())
            raise ComponentError(
                f"{' + '.join(Species.columns)} of row {row} is {total[row]:g}; at most 1 is allowed"
            )


class SpeciesRate(Component, rate_of=Species, given=(Species, Volume)):
    """Rate of change of the mass fractions by mixing; only of particles with a volume, not of tracers."""

    dfuel: Array = column("1/s")
    dflame: Array = column("1/s")
    dsmoke: Array = column("1/s")


class Age(Component):
    """Time since a particle's birth; below 0 if it is born later in the tick that has begun."""

    t: Array = column("s", default=0.0, least_given=0.0)


class InertialVelocity(Component):
    """Velocity that a particle keeps by itself (a droplet, a spark), added to what the fluid gives it."""

    v: Array = column("m/s", shape=(3,), default=0.0, plane="in")


class Acceleration(Component, rate_of=InertialVelocity):
    """Rate of change of the inertial velocity."""

    a: Array = column("m/s^2", shape=(3,))


class VelocityMemory(Component):
    """Velocity at the start of the last tick and the acceleration smoothed over ticks, of a vorton.

    ``tick`` is the tick in which they were taken, -1 before the first.
    """

    u: Array = column("m/s", shape=(3,), default=0.0)
    a: Array = column("m/s^2", shape=(3,), default=0.0)
    tick: Array = column("1", kind="int", default=-1.0)
