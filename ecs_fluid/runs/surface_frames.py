"""Surfaces of a run on disk: one grid of signed distances per stored frame, and its mesh."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import SignedDistance, TemperatureField, TransferGrid
from ecs_fluid.errors import StorageError
from ecs_fluid.io.fields import FieldFrame, append_field, field_ticks, newest_tick, read_field
from ecs_fluid.world import World

NAME = "sdf"
"""Name of the field; its arrays are phi [m] and, where the world has a temperature field, T [K]."""


def store_surface(world: World, folder: Path) -> None:
    """Store the world's signed distances, if it has any, as a field of the present tick.

    Before the first tick they are computed from the evaluated fields, and the world's own table stays empty.
    """
    level = level_of(world)
    if level is None:
        return
    phi, origin, spacing = level
    arrays, tables = {"phi": phi}, world.fluid.tables
    grid, heat = tables.get(TransferGrid), tables.get(TemperatureField)
    if isinstance(grid, TransferGrid) and isinstance(heat, TemperatureField) and heat.T.size:
        from ecs_fluid.kernels.grids.interpolation import interpolate
        from ecs_fluid.kernels.surface.level_set import grid_rows

        x = grid_rows(phi, origin, spacing, np.ones(phi.shape, bool))
        read = interpolate(x, grid.origin, grid.spacing, np.ascontiguousarray(heat.T))
        arrays["T"] = read.reshape(phi.shape)
    append_field(folder, NAME, world.tick, world.time, origin, spacing, arrays)


def level_of(world: World) -> tuple[Array, Array, Array] | None:
    """phi [m], origin [m] and spacing [m] of the world's surface, or None."""
    table = world.fluid.tables.get(SignedDistance)
    if not isinstance(table, SignedDistance):
        return None
    if table.phi.size:
        return table.phi, table.origin, table.spacing
    if world.tick > 0 or not any(hasattr(system, "found_surface") for system in world.systems):
        return None
    level, _ = world._first_surface()
    return level.phi, level.origin, level.spacing


def stored_surface(folder: Path, tick: int) -> FieldFrame:
    """The distances of the newest frame up to `tick`. Raises StorageError where the run has none."""
    newest = newest_tick(folder, NAME, tick)
    if newest is None:
        raise StorageError(
            f"{folder.parent.parent} holds no signed distance at tick {tick}; a run stores it with every "
            "frame when its world has a [[system]] of kind = 'surface'"
        )
    field = read_field(folder, NAME, newest)
    phi = field.arrays.get("phi")
    if (
        phi is None or phi.ndim != 3 or sorted(phi.shape)[1] < 2 or not np.isfinite(phi).all()
        or max(np.abs(field.origin)) + max(field.spacing) * max(phi.shape) > np.finfo(np.float32).max
    ):  # fmt: skip
        raise StorageError(
            f"the signed distance of tick {newest} in {folder} is damaged: it is not a grid of finite "
            "numbers of single precision"
        )
    return field


def surface_ticks(folder: Path) -> set[int]:
    """Ticks at which the run with the fields in ``folder`` stored a surface."""
    return set(field_ticks(folder, NAME))


def stored_mesh(folder: Path, tick: int) -> tuple[Array, Array]:
    """Vertices (n, 3) m and triangles (m, 3), outward, of the surface stored at ``tick``.

    Both are empty where there is no surface, and in a world that is a plane, whose surfaces are lines.
    """
    from ecs_fluid.systems.surface.contour import contour

    field = stored_surface(folder, tick)
    x, faces = contour(field.arrays["phi"], field.origin, field.spacing)
    return (x, faces) if faces.shape[1] == 3 else (x[:0], faces[:0].repeat(2, axis=1)[:, :3])
