"""The fields of a world at the points of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Strength
from ecs_fluid.errors import FluidError
from ecs_fluid.runs.surface_frames import level_of
from ecs_fluid.systems.shared.fields_at import fields_at
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    import pyvista as pv


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
    fields = dict((*fields_at(world, x), *_distance(world, x)))
    velocity = world.system(VelocitySystem)
    vortons = any(Strength in entity and Position in entity for entity in world.entities)
    if vortons or (velocity is not None and (velocity.own_field or world._winds())):
        flow = world._flow(x, None)
        fields = {"velocity": flow.u, "vorticity": flow.vorticity} | fields
    if not fields:
        raise FluidError("sample: the world has no vortons and no fields, so there is nothing to sample")
    for name, values in fields.items():
        made.point_data[name] = values
    return made


def _distance(world: World, x: Array) -> Iterator[tuple[str, Array]]:
    """Signed distance at points, where the world has one."""
    if (level := level_of(world)) is not None:
        from ecs_fluid.kernels.surface.level_set import distance_at

        phi, origin, spacing = level
        yield "signed_distance", distance_at(x.astype(world.dtype), origin, spacing, phi)
