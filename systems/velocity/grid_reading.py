"""How particles read the velocity field between the points of its grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.velocity.vorton_flow import VortonFlow
from ecs_fluid.targets import Population, Targets

Reading = Literal["linear", "convolution", "spline", "refined"]


class GridReading:
    """The velocity field (px, py, pz, 3) m/s, read trilinearly, by cubic convolution, by a cubic spline, or
    trilinearly between points twice as fine that a spline gave.

    With both of the latter the gradient is the derivative of the spline. Elsewhere gradients come from
    differences at the points, of second order where the reading is linear and of fourth by convolution, which
    are read like the velocity.
    """

    def __init__(self, grid: Grid, u: Array, how: Reading, read: Array | None = None) -> None:
        """``read`` (px, py, pz) tells at which points the velocity is known, which those there read."""
        self._grid, self._u, self._how, self._read_points = grid, u, how, read

    def velocity(self, x: Array, u: Array) -> None:
        """Fill u (n, 3) m/s at x (n, 3) m."""
        from ecs_fluid.kernels.grids import interpolation

        if self._how == "refined":
            field, spacing = self._refined
            interpolation.interpolate(x, self._grid.origin, spacing, field, u)
        else:
            self._read(x, self._values, u)

    def velocity_gradient(self, x: Array, rows: Array, u: Array, du: Array) -> None:
        """Fill u (n, 3) m/s and du (n, 3, 3) 1/s at x (n, 3) m.

        ``rows`` (n,) are the numbers of all of them, best in the order of the grid's cells.
        """
        from ecs_fluid.kernels.grids import cubic_gradient, spline_gradient

        mesh = self._grid.origin, self._grid.spacing
        if self._how == "linear":
            self._read(x, self._values, u)
            self._read(x, self._slopes, du)
        elif self._has_spline:
            spline_gradient.interpolate(x, rows, *mesh, self._grid.flat, self._values, u, du)
        else:
            cubic_gradient.interpolate(x, rows, *mesh, self._slopes, u, du)

    @property
    def _has_spline(self) -> bool:
        return self._how in ("spline", "refined")

    @cached_property
    def _cubics(self) -> Array:
        from ecs_fluid.kernels.grids.cubic import CONVOLUTION, SPLINE

        return SPLINE if self._how == "spline" else CONVOLUTION

    @cached_property
    def _values(self) -> Array:
        """What is read at the points: velocities, or the coefficients of their spline."""
        from ecs_fluid.kernels.grids.cubic import coefficients
        from ecs_fluid.kernels.grids.read_points import to_coefficients

        if not self._has_spline:
            return self._u
        if self._read_points is None:
            return coefficients(self._u)
        to_coefficients(self._u, self._read_points)
        return self._u

    @cached_property
    def _refined(self) -> tuple[Array, Array]:
        """Velocities at points twice as fine, and their spacing (3,) m."""
        from ecs_fluid.kernels.grids.refined import refined

        return refined(self._values, self._grid.spacing, self._read_points)

    @cached_property
    def _slopes(self) -> Array:
        """Gradient (px, py, pz, 3, 3) 1/s, or by convolution with the velocity, (px, py, pz, 3, 4)."""
        from ecs_fluid.kernels.grids.differences import jacobian

        # A derivative across a flat world would only see the far side of its one layer of cells.
        steps = np.where(self._grid.flat == 1, 0.0, self._grid.spacing)
        if self._how == "linear":
            return jacobian(self._values, steps)
        return jacobian(self._values, steps, order=4, with_field=True)

    def _read(self, x: Array, values: Array, out: Array) -> None:
        from ecs_fluid.kernels.grids import cubic, interpolation

        mesh = self._grid.origin, self._grid.spacing
        if self._how == "linear":
            interpolation.interpolate(x, *mesh, values, out)
        else:
            cubic.interpolate(x, *mesh, values, out, self._cubics)


def sum_at_strays(flow: VortonFlow, populations: Sequence[Population]) -> None:
    """Fill, by the sums of the flow, what populations could not read as they lie outside of its grid."""
    from ecs_fluid.kernels.compiled.columns import inside

    world, grid = flow.solver.world, flow.grid
    if not world.require(PartitionSystem).leaves_out:
        return
    box = grid.origin, grid.origin + grid.spacing * grid.cells

    for entity, x, u, du in populations:
        world.processes.at_rows(entity, Targets(x, u, du), flow.fill_mollified, ~inside(x, *box))
