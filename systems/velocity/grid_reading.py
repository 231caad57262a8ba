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
    """Interpolation of the velocity field (px, py, pz, 3) m/s, in one of four ways.

    These are trilinear, cubic convolution, a cubic spline, and "refined": trilinear on a grid twice as fine
    that a spline filled. With the last two, gradients are the derivative of the spline. With the first two
    they are differences at the points (of second order with trilinear reading, of fourth with convolution),
    interpolated like the velocity.
    """

    def __init__(self, grid: Grid, u: Array, how: Reading, read: Array | None = None) -> None:
        """``read`` (px, py, pz) marks the points at which the velocity is known; None: all of them."""
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

        ``rows`` (n,) is the order in which the rows are read: fastest in the order of the grid's cells.
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
    def _values(self) -> Array:
        """The values to interpolate: velocities at the points, or the coefficients of their spline."""
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
        """Velocities on a grid twice as fine, and its spacing (3,) m."""
        from ecs_fluid.kernels.grids.finer_grid import refined

        return refined(self._values, self._grid.spacing, self._read_points)

    @cached_property
    def _slopes(self) -> Array:
        """Gradient (px, py, pz, 3, 3) 1/s; for convolution, gradient and velocity (px, py, pz, 3, 4)."""
        from ecs_fluid.kernels.grids.differences import jacobian

        # Across a flat population the grid has one layer of cells, so a difference there means nothing.
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
            weights = cubic.SPLINE if self._how == "spline" else cubic.CONVOLUTION
            cubic.interpolate(x, *mesh, values, out, weights)


def readings(flow: VortonFlow, u: Array, how: Reading) -> tuple[GridReading, GridReading]:
    """How vortons read the velocity field u (px, py, pz, 3) m/s, and how other particles read it.

    With a solver on the grid, vortons read with the weights by which it shared out their strengths: that
    keeps the total strength.
    """
    solver, grid = flow.solver, flow.grid
    if not solver.on_grid:
        return 2 * (GridReading(grid, u, how),)
    shared: Reading = "spline" if solver.by_spline else "convolution"
    others = GridReading(grid, u, "convolution" if how == "spline" else how)
    return GridReading(grid, u, shared), others


def read_at_vortons(reading: GridReading, flow: VortonFlow, vortons: Sequence[Population]) -> None:
    """Read velocity and gradient at the vortons, in the order of their cells where one process runs."""
    first, shared = 0, bool(flow.solver.world.processes.bounds)
    for _, x, u, du in vortons:
        if du is None:
            reading.velocity(x, u)
            continue
        rows = flow.sources.order
        if shared:  # another machine may have sorted these rows
            rows = np.arange(len(x))
        elif len(x) < len(rows):
            rows = rows[(rows >= first) & (rows < first + len(x))] - first
        reading.velocity_gradient(x, rows, u, du)
        first += len(x)


def sum_at_strays(flow: VortonFlow, populations: Sequence[Population]) -> None:
    """Evaluate the sums of the flow at those particles of the populations that lie outside of its grid."""
    from ecs_fluid.kernels.compiled.columns import inside

    world, grid = flow.solver.world, flow.grid
    if not world.require(PartitionSystem).leaves_out:
        return
    box = grid.origin, grid.origin + grid.spacing * grid.cells

    for entity, x, u, du in populations:
        world.processes.at_rows(entity, Targets(x, u, du), flow.fill_mollified, ~inside(x, *box))
