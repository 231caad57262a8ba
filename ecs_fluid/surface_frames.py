"""Signed distances of a run on disk: one grid field per stored frame, beside the particles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.io.fields import FieldFrame, append_field, field_ticks, read_field

if TYPE_CHECKING:
    from ecs_fluid.world import World

NAME = "sdf"
"""Of the field; its arrays are phi [m] and, where the world has a temperature field, T [K]."""


def store_surface(world: World, folder: Path) -> None:
    """Store the world's SignedDistance, if it has one that is not empty, as a field of the present tick."""
    from ecs_fluid.components import SignedDistance, TemperatureField, TransferGrid

    tables = world.fluid.tables
    table = tables.get(SignedDistance)
    if not isinstance(table, SignedDistance) or table.phi.size == 0:
        return
    arrays = {"phi": table.phi}
    grid, heat = tables.get(TransferGrid), tables.get(TemperatureField)
    if isinstance(grid, TransferGrid) and isinstance(heat, TemperatureField) and heat.T.size:
        from ecs_fluid.kernels.interpolation import interpolate
        from ecs_fluid.kernels.level_set import grid_rows

        everywhere = np.ones(table.phi.shape, bool)
        x = grid_rows(table.phi, table.origin, table.spacing, everywhere)
        read = interpolate(x, grid.origin, grid.spacing, np.ascontiguousarray(heat.T))
        arrays["T"] = read.reshape(table.phi.shape)
    append_field(folder, NAME, world.tick, world.time, table.origin, table.spacing, arrays)


def stored_surface(folder: Path, tick: int) -> FieldFrame:
    """The distances of the newest frame up to `tick`. Raises StorageError where the run has none."""
    ticks = [stored for stored in field_ticks(folder, NAME) if stored <= tick]
    if not ticks:
        raise StorageError(
            f"{folder.parent.parent} holds no signed distance at tick {tick}; a run stores it with every "
            "frame when its world has a SurfaceSystem"
        )
    field = read_field(folder, NAME, ticks[-1])
    phi = field.arrays.get("phi")
    if phi is None or phi.ndim != 3 or min(phi.shape) < 2 or not np.isfinite(phi).all():
        raise StorageError(
            f"the signed distance of tick {ticks[-1]} in {folder} is damaged: no grid of numbers."
        )
    return field
