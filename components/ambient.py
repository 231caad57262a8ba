"""The fluid at rest around everything."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column


class Ambient(Component, derived=True, per_row=False):
    """Gravity, and density and temperature of the fluid at rest as functions of height.

    The tables hold values at increasing heights z, linear between them and constant beyond both ends; one
    height means the same everywhere. ``law`` is the equation of state (0 none, 1 ideal gas, 2 liquid), which
    turns a temperature into a density: rho_ref T_ref / T or rho_ref (1 - expansion (T - T_ref)).
    """

    gravity: Array = column("m/s^2", shape=(3,))
    density_heights: Array = column("m", shape=(None,))
    density: Array = column("kg/m^3", shape=(None,))
    temperature_heights: Array = column("m", shape=(None,))
    temperature: Array = column("K", shape=(None,))
    reference_density: Array = column("kg/m^3", shape=(1,))
    reference_temperature: Array = column("K", shape=(1,))
    expansion: Array = column("1/K", shape=(1,))
    law: Array = column("1", shape=(1,), kind="int", default=0)
