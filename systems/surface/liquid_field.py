"""The fraction of space that particles of liquid fill, on a grid."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import FluidError
from ecs_fluid.input_limits import GRID_POINT, check_memory
from ecs_fluid.systems.shared.populations import joined
from ecs_fluid.systems.shared.walls import containers, mirrored, mirrors
from ecs_fluid.world import World


def has_liquid(world: World) -> bool:
    """Whether there are particles with a Liquid."""
    return any(len(position.x) for position, _ in world.query(Position, Liquid))


def filled_part(world: World) -> tuple[Array, Array, Array]:
    """Origin (3,) m, spacing (3,) m and the filled fraction (px, py, pz): 1 in the liquid, 0 outside.

    Every particle shares its volume at rest among the points of a lattice with the particles' spacing, by
    linear weights and a slight blur: a mean over some ten particles, so that their disorder hardly shows. The
    liquid's surface is where the fraction is one half. Behind walls of containers it goes on by mirror
    images, or edges and corners would be round. Without particles nothing is filled.

    Raises:
        FluidError: no entity is a liquid, or its particles are too far apart.
    """
    from ecs_fluid.kernels.grids.lattice import lattice_box, to_lattice

    tables = list(world.query(Position, Liquid))
    if not tables:
        raise FluidError(
            "SurfaceSystem: of = 'liquid' is the surface of a liquid, but the world has none; add an entity "
            "of kind = 'liquid', or use another field"
        )
    if not has_liquid(world):
        return np.zeros(3), np.ones(3), np.zeros((5, 5, 5), world.dtype)
    x = joined([position.x for position, _ in tables], (3,), world.dtype).astype(np.float64)
    volume = joined([liquid.volume for _, liquid in tables], (), world.dtype).astype(np.float64)
    spacing = float(volume.mean()) ** (1 / 3)
    if walls := mirrors(containers(world)):
        rows, images, _ = mirrored(walls, x, 2.0 * spacing, turned=False)
        x, volume = np.concatenate([x, images]), np.concatenate([volume, volume[rows]])
    flat = np.zeros(3, dtype=bool)
    _, cells = lattice_box(x, spacing, flat)
    what = f"grid points of {spacing:g} m for SurfaceSystem around the liquid"
    remedy = "remove the particles that have flown off"
    check_memory(GRID_POINT, float(np.prod(cells + 5.0)), what, remedy)
    low, field = to_lattice("positive", x, volume[:, None], spacing, flat)
    part = np.pad(field[..., 0] / spacing**3, 2)
    return spacing * (low - 2.0), np.full(3, spacing), np.ascontiguousarray(part.astype(world.dtype))
