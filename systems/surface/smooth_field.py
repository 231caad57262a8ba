"""Fields of particles for a surface, smooth and finely sampled, so that they move with the particles.

A field that is read as coarsely as the particles lie changes as these move between its points: the volume
within its surface by up to 9 % for a ball of four cells. Here a particle is spread as the cubic B-spline that
is a cell wide, M4(x / h), and read at half cells. The points have fixed places in space, and every second one
is a point of the surface's grid.

The scatter is that of M4 on the finer lattice; the two-scale relation of B-splines,
M4(x / h) = sum_k binomial(4, k) M4(2 x / h - k + 2) / 8, then makes the wider one exactly. It is positive, of
the moments 0 and 1, and adds h^2 / 3 to the variance of an axis.
"""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Species
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import FluidError
from ecs_fluid.input_limits import GRID_POINT, check_memory
from ecs_fluid.systems.particle_mesh import MOST_CELLS, TransferSystem
from ecs_fluid.systems.shared.populations import joined
from ecs_fluid.systems.shared.walls import containers, mirrored, mirrors
from ecs_fluid.world import World

TWO_SCALE = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
"""Binomial(4, k) / 16: weights that make of M4 the one twice as wide, with the same sum."""
MARGIN = 3
"""Cells on each side of those with particles: two that a particle reaches, and a layer beyond."""
MOST_POINTS = 8 * MOST_CELLS
"""Cells grow beyond the particles' size where there would be more points: of whole cells as many as a
TransferSystem makes."""
REACH = 3.0
"""Distance from a wall, in cells, within which particles have images: those seen a cell behind it."""


def has_liquid(world: World) -> bool:
    """Whether there are particles with a Liquid."""
    return any(len(position.x) for position, _ in world.query(Position, Liquid))


def no_field(world: World, value: float) -> tuple[Array, Array, Array]:
    """Origin, spacing and values of a field without particles: the same everywhere."""
    shape = [1 if axis == world.across else 9 for axis in range(3)]
    return np.zeros(3), np.ones(3), np.full(shape, value, world.dtype)


def filled_part(world: World, smooth: bool) -> tuple[Array, Array, Array]:
    """Origin (3,) m, spacing (3,) m and the filled fraction (px, py, pz): 1 in the liquid, 0 outside.

    A liquid's cells are as large as its particles at rest. Behind walls of containers it goes on by mirror
    images, or edges and corners would be round.

    Raises:
        FluidError: no entity is a liquid, or its particles are too far apart.
    """
    tables = list(world.query(Position, Liquid))
    if not tables:
        raise FluidError(
            "SurfaceSystem: of = 'liquid' is the surface of a liquid, but the world has none; add an entity "
            "of kind = 'liquid', or use another field"
        )
    if not has_liquid(world):
        return no_field(world, 0.0)
    x = joined([position.x for position, _ in tables], (3,), world.dtype).astype(np.float64)
    volume = joined([liquid.volume for _, liquid in tables], (), world.dtype).astype(np.float64)
    spacing = float(volume.mean()) ** (1 / 3)
    what = f"grid points of {spacing:g} m for SurfaceSystem around the liquid"
    cells = float(np.prod(np.ptp(x, axis=0) / spacing + 2.0 * MARGIN))
    check_memory(GRID_POINT, cells, what, "remove the particles that have flown off")
    if walls := mirrors(containers(world)):
        images = mirrored(walls, x, REACH * spacing)
        x, volume = np.concatenate([x, images.places]), np.concatenate([volume, volume[images.shown]])
    origin, halves, field = spread(x, volume[None], spacing, np.zeros(3, dtype=bool), smooth)
    return origin, halves, np.ascontiguousarray(field[..., 0].astype(world.dtype))


def mixed_field(world: World, name: str, ambient: float, smooth: bool) -> tuple[Array, Array, Array]:
    """Origin (3,) m, spacing (3,) m and the values (px, py, pz) of a field: density, temperature, a species.

    They are the means that a TransferSystem has on its grid, of the particles where they are now: of all that
    is near a point, and of the ambient that fills the rest.
    """
    from ecs_fluid.kernels.grids.mixture import AMOUNTS, MEANS

    transfer = world.require(TransferSystem)
    load, cell, flat = transfer.present_amounts()
    if not len(load.x):
        return no_field(world, ambient)
    species = list(Species.columns)
    row, needs = {"density": (0, 0), "temperature": (2, 3)}.get(name, (0, 0))
    if name in species:
        row, needs = MEANS + species.index(name), AMOUNTS + species.index(name)
    used = sorted({0, 1, needs, 4})
    origin, spacing, shared = spread(load.x, load.amounts[used], cell, flat, smooth)
    values = np.empty(shared.shape[:3], world.dtype)
    z = origin[2] + spacing[2] * np.arange(shared.shape[2])
    plane = np.zeros((*shared.shape[1:3], load.amounts.shape[0]), world.dtype)
    for i, some in enumerate(shared):  # all amounts of all points at once would take much memory
        plane[..., used] = some
        values[i] = transfer.mixed(plane, z)[row]
    return origin, spacing, values


def spread(x: Array, amounts: Array, cell: float, flat: Array, smooth: bool) -> tuple[Array, Array, Array]:
    """Amounts (m, n) at positions x (n, 3) m per volume: origin (3,) m, spacing (3,) m, (px, py, pz, m).

    If `smooth`, by cubic B-splines on points half a cell apart. Their number is odd, so that every second
    one, from the first to the last, is a point of a lattice of whole cells. If not, by linear weights on
    such a lattice. Its points are halfway between the whole multiples of the cell, where walls are likely: of
    edges at a wall between points the least is cut off. Along axes that are `flat`, bool (3,), nothing is
    spread, and volumes are areas.
    """
    from scipy.ndimage import correlate1d

    from ecs_fluid.kernels.grids.interpolation import scatter
    from ecs_fluid.kernels.grids.partition import gather_sorted, partition
    from ecs_fluid.kernels.grids.scatter import spline

    exact, each = x.astype(np.float64), 2 if smooth else 1
    least, most = exact.min(axis=0), exact.max(axis=0)
    while True:
        low = np.where(flat, 0, each * (np.floor(least / cell) - MARGIN)).astype(np.int64)
        high = np.where(flat, 1, each * (np.ceil(most / cell) + MARGIN)).astype(np.int64)
        points = math.prod((high - low + 1).tolist())
        if points <= MOST_POINTS:
            break
        cell *= 1.05
    edge = cell / each
    check_memory(GRID_POINT, points, f"grid points of {edge:g} m for SurfaceSystem", "use larger cells")
    origin, spacing = np.where(flat, least, edge * low + 0.5 * cell), np.full(3, edge)
    start, order = partition(exact, origin, spacing, high - low)
    rows = amounts[:, order].astype(np.float64) / edge ** (3 - np.count_nonzero(flat))
    share = spline if smooth else scatter
    field = share(gather_sorted(exact, order), rows, start, origin, spacing, high - low)
    for axis in range(3):
        if flat[axis]:
            field = np.take(field, [0], axis=axis)
        elif smooth:
            field = correlate1d(field, TWO_SCALE, axis=axis, mode="constant")
    return origin, spacing, field
