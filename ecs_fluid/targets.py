"""Where velocities are wanted: the targets of a sum over all vortons, and the populations to fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.biot_savart.target_blocks import Blocks
    from ecs_fluid.world import World

RANGE = 1 / 32
"""Largest coordinate of a point, in m and in the smallest core radius, as a fraction of the square root of
the largest number that the precision holds."""


class Population(NamedTuple):
    """The rows of an entity that this process holds, and their velocities, to be filled."""

    entity: Entity
    x: Array
    """(m, 3) m"""
    u: Array
    """(m, 3) m/s"""
    du: Array | None = None
    """(m, 3, 3) 1/s, velocity gradient, of vortons whose gradient is wanted"""


Place = Literal["vortons", "grid", "others", "points"]


@dataclass(slots=True)
class Targets:
    """Points at which velocities are wanted, and the arrays to fill."""

    x: Array
    """(m, 3) m"""
    u: Array
    """(m, 3) m/s, velocity"""
    du: Array | None = None
    """(m, 3, 3) 1/s, velocity gradient du_i/dx_j, or None"""
    place: Place = "points"
    """which points these are; "vortons": all vortons, sorted by cells; "grid": all points of the field grid;
    "others": all rows of another population, or the points of the grid that they read; "points": any"""
    number: int = 0
    """with "others": number of that population among those that have rows"""
    points: tuple[int, ...] | None = None
    """(px, py, pz), if the targets are all points of the field grid, in C order"""
    read: Array | None = None
    """if the targets are some points of the field grid, in C order: (px, py, pz), not 0 at these points"""
    blocks: Blocks | None = None
    """groups of neighbouring targets that a solver treats together; None until they are made"""

    @property
    def results(self) -> list[Array]:
        """u (m, 3), and du (m, 9) if gradients are wanted"""
        return [self.u] if self.du is None else [self.u, self.du.reshape(-1, 9)]

    @property
    def vorticity(self) -> Array:
        """(m, 3) 1/s, curl of the velocity; for targets with gradients"""
        assert self.du is not None
        return np.stack([self.du[:, k, j] - self.du[:, j, k] for j, k in ((1, 2), (2, 0), (0, 1))], axis=1)

    @classmethod
    def at(cls, x: Array, gradient: bool, place: Place = "points", number: int = 0) -> Targets:
        """Targets at x with new arrays to fill, with gradients or without."""
        du = np.empty((len(x), 3, 3), x.dtype) if gradient else None
        return cls(x, np.empty_like(x), du, place, number)

    def fill_rows(self, rows: Array, fill: Callable[[Targets], None]) -> None:
        """Fill only the rows of a mask (m,), if it has any; `fill` is called with targets of these rows."""
        if not rows.any():
            return
        some = Targets.at(self.x[rows], self.du is not None, self.place, self.number)
        fill(some)
        self.u[rows] = some.u
        if self.du is not None:
            self.du[rows] = some.du


def in_range(points: Array, world: World, sigma: Array) -> Array:
    """Points (m, 3) m in the world's precision; refused where a squared distance overflows.

    ``sigma`` (n,) m are the core radii of the vortons; distances are measured in the smallest of them.
    """
    most = float(RANGE * np.sqrt(np.finfo(world.dtype).max) * min(1.0, sigma.min(initial=1.0)))
    beyond = np.argwhere(np.abs(points) > most)
    if len(beyond):
        row, axis = beyond[0]
        raise FluidError(
            f"points row {row} has a coordinate of {points[row, axis]:g} m; in "
            f"{world.options.precision} precision up to {most:.2g} m are allowed"
        )
    return points.astype(world.dtype)
