"""A world or a stored frame as PyVista objects: particles, fields, signed distances and bodies.

Columns have the plain names of exports ("velocity", "temperature", `exports.names`), lengths are in m.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyvista as pv

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    DensityField,
    FireField,
    Grid,
    SpeciesField,
    TemperatureField,
    TransferGrid,
    VelocityField,
)
from ecs_fluid.exports.bodies import Polytopes
from ecs_fluid.exports.vti import image
from ecs_fluid.exports.vtk_files import add_array
from ecs_fluid.exports.vtp import points, surface_mesh
from ecs_fluid.io.fields import FieldFrame
from ecs_fluid.runs.runner import stored_columns
from ecs_fluid.runs.surface_frames import level_of
from ecs_fluid.viz.bodies import bodies_in, hulls_in
from ecs_fluid.viz.columns import POSITION, Columns
from ecs_fluid.world import World

FIELDS: tuple[tuple[str, type[Component], tuple[type[Component], ...]], ...] = (
    ("flow", Grid, (VelocityField,)),
    ("mixture", TransferGrid, (DensityField, TemperatureField, SpeciesField, FireField)),
)
"""Blocks of fields: their name, their grid, and the components with arrays at its points."""

NAMES = {"u": "velocity", "rho": "density", "T": "temperature"}


@dataclass(frozen=True)
class GridFields:
    """Arrays (px, py, pz, ...) by name at the points origin + index * spacing, m."""

    origin: Array
    spacing: Array
    arrays: Mapping[str, Array]

    def image(self) -> pv.ImageData:
        """As ImageData with point arrays."""
        return image(self.origin, self.spacing.tolist(), self.arrays)


def blocks(
    populations: Mapping[str, Columns], grids: Mapping[str, GridFields], hulls: Polytopes, time: float
) -> pv.MultiBlock:
    """Blocks "particles" and "bodies" by population, "fields" by grid, and "signed_distance", where known."""
    whole = pv.MultiBlock()
    particles, bodies, fields = pv.MultiBlock(), pv.MultiBlock(), pv.MultiBlock()
    for name, columns in populations.items():
        if POSITION in columns and "Pose.q" not in columns:
            particles[name] = points(dict(columns))
    for name, placed in bodies_in(populations, hulls):
        bodies[name] = surface_mesh(placed)
    for name, grid in grids.items():
        if name != "signed_distance":
            fields[name] = grid.image()
    for name, part in (("particles", particles), ("fields", fields), ("bodies", bodies)):
        if len(part):
            whole[name] = part
    if "signed_distance" in grids:
        whole["signed_distance"] = grids["signed_distance"].image()
    add_array(whole.GetFieldData(), "TimeValue", np.array([time]))
    return whole


def world_blocks(world: World) -> pv.MultiBlock:
    """The present state of a world, evaluated."""
    world.evaluate()
    grids, tables = {}, world.fluid.tables
    for name, grid, kinds in FIELDS:
        arrays = {
            NAMES.get(column.name, column.name): array
            for kind in kinds
            if kind in tables
            for column, array in tables[kind].items()
            if array.size
        }
        if grid is Grid and VelocityField in tables:
            arrays["velocity"] = _velocity_on_grid(world, arrays.get("velocity"))
        if grid in tables and arrays:
            mesh = vars(tables[grid])
            grids[name] = GridFields(mesh["origin"], mesh["spacing"], arrays)
    if (level := level_of(world)) is not None:
        phi, origin, spacing = level
        grids["signed_distance"] = GridFields(origin, spacing, {"phi": phi})
    return blocks(stored_columns(world), grids, hulls_in(world), world.time)


def _velocity_on_grid(world: World, induced: Array | None) -> Array:
    """Velocity at the points of the field grid; `induced` by vortons, None if no particle reads it there."""
    from ecs_fluid.kernels.grids.grid import grid_points

    grid = world.fluid[Grid]
    points = grid_points((grid.origin, grid.spacing, grid.cells), world.dtype)
    places = points.reshape(-1, 3)
    u = world._induced_velocity(places) if induced is None else induced.reshape(-1, 3).copy()
    world._add_winds(places, u)
    return u.reshape(points.shape)


def grid_of_distances(field: FieldFrame) -> GridFields:
    """Stored signed distances phi, m, and temperatures, K, where they are known."""
    arrays = {NAMES.get(name, name): array for name, array in field.arrays.items()}
    return GridFields(np.asarray(field.origin), np.asarray(field.spacing), arrays)
