"""The fields of a world at the points of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    DensityField,
    Position,
    SpeciesField,
    Strength,
    TemperatureField,
    TransferGrid,
)
from ecs_fluid.errors import FluidError
from ecs_fluid.runs.surface_frames import level_of
from ecs_fluid.systems.shared.fluid_at_rest import density_at, fluid_at_rest, temperature_at
from ecs_fluid.world import World

if TYPE_CHECKING:
    import pyvista as pv

MIXTURE: tuple[tuple[type[Component], dict[str, str]], ...] = (
    (DensityField, {"rho": "density"}),
    (TemperatureField, {"T": "temperature"}),
    (SpeciesField, {name: name for name in SpeciesField.columns}),
)
"""Fields at the points of the TransferGrid: their columns, and what they are called on a mesh."""


def sample(world: World, grid: pv.DataSet) -> pv.DataSet:
    """A copy of the mesh with the world's fields at its points; see `World.sample`."""
    if not (hasattr(grid, "points") and hasattr(grid, "point_data")):
        raise FluidError(
            "sample: a PyVista mesh is needed, for example pyvista.ImageData; for points alone ask "
            "world.velocity(points)"
        )
    made, x = grid.copy(), np.asarray(grid.points, np.float64).reshape(-1, 3)
    if not len(x):
        raise FluidError("sample: the mesh has no points, so there is nothing to sample")
    world.evaluate()
    if any(Strength in entity and Position in entity for entity in world.entities):
        flow = world._flow(x, None)
        made.point_data["velocity"], made.point_data["vorticity"] = flow.u, flow.vorticity
    for name, values in (*_mixture(world, x), *_distance(world, x)):
        made.point_data[name] = values
    if not len(made.point_data):
        raise FluidError("sample: the world has no vortons and no fields, so there is nothing to sample")
    return made


def _mixture(world: World, x: Array) -> Iterator[tuple[str, Array]]:
    """Density, temperature and species at points, linear between those of their grid; outside of it the
    fluid at rest."""
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


def _distance(world: World, x: Array) -> Iterator[tuple[str, Array]]:
    """Signed distance at points, where the world has one."""
    if (level := level_of(world)) is not None:
        from ecs_fluid.kernels.surface.level_set import distance_at

        phi, origin, spacing = level
        yield "signed_distance", distance_at(x.astype(world.dtype), origin, spacing, phi)
