"""Density, temperature and species of the fluid at any points, from the fields of a TransferSystem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import DensityField, SpeciesField, TemperatureField, TransferGrid
from ecs_fluid.systems.shared.fluid_at_rest import density_at, fluid_at_rest, temperature_at
from ecs_fluid.world import World

MIXTURE: tuple[tuple[type[Component], dict[str, str]], ...] = (
    (DensityField, {"rho": "density"}),
    (TemperatureField, {"T": "temperature"}),
    (SpeciesField, {name: name for name in SpeciesField.columns}),
)
"""Columns of the TransferGrid's fields, and the names under which `fields_at` yields them."""


def fields_at(world: World, x: Array) -> Iterator[tuple[str, Array]]:
    """Names and values (m,) of all fields of the evaluated world at points x (m, 3) m.

    Values are interpolated linearly on the grid; outside of it they are those of the fluid at rest.
    """
    tables, rest, z = world.fluid.tables, fluid_at_rest(world), x[:, 2].astype(world.dtype)
    at_rest = {"density": density_at(rest, z), "temperature": temperature_at(rest, z)}
    for kind, names in MIXTURE:
        for column, name in names.items() if kind in tables and TransferGrid in tables else ():
            field, grid = vars(tables[kind])[column], world.fluid[TransferGrid]
            if field.size:
                from ecs_fluid.kernels.surface.level_set import sample

                low, high = grid.origin, grid.origin + grid.spacing * grid.cells
                outside = (((x < low) | (x > high)) & (grid.flat == 0)).any(axis=1)
                inside = sample(x.astype(world.dtype), grid.origin, grid.spacing, field)
                yield name, np.where(outside, at_rest.get(name, np.zeros_like(z)), inside)
