"""Fields on the uniform grid; they live on the world's `fluid` entity."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column


class Grid(Component, derived=True, per_row=False):
    """Uniform grid that encloses all particles; points stand at origin + index * spacing.

    ``flat`` is 1 for an axis along which the particles have no extent (a two-dimensional world).
    """

    origin: Array = column("m", shape=(3,))
    spacing: Array = column("m", shape=(3,))
    cells: Array = column("1", shape=(3,), kind="int")
    flat: Array = column("1", shape=(3,), kind="int", default=0)


class VelocityField(Component, derived=True, per_row=False):
    """Velocity at the grid points."""

    u: Array = column("m/s", shape=(None, None, None, 3))
