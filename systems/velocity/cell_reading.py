"""Velocities of particles from sums at only those points of the field grid that they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.components import Grid
from ecs_fluid.systems.velocity.grid_reading import GridReading, sum_at_strays
from ecs_fluid.systems.velocity.sampled_error import reads_well
from ecs_fluid.systems.velocity.vorton_flow import VortonFlow
from ecs_fluid.targets import Population, Targets

if TYPE_CHECKING:
    from ecs_fluid.kernels.grids.read_points import PointsRead
    from ecs_fluid.systems.velocity.system import VelocitySystem

WELL_READ = 0.02
"""Largest RMS error of interpolation between the points, relative to the RMS velocity."""

READING = 100
"""The direct sum over this many vortons takes as long as reading the grid at one particle."""


class CellReading:
    """Sums at those points of the grid that particles read, and interpolation between these points.

    It is meant for many particles per point. It refuses where sums at the particles themselves are faster, or
    where a sample shows that cubic interpolation is off by more than `WELL_READ`. It never refuses linear
    interpolation, as in the articles, or sums of widened cores, since the user asked for that velocity.
    """

    def __init__(self, system: VelocitySystem) -> None:
        self._system = system
        self._reads_well = True

    def fill(self, flow: VortonFlow, vortons: int, others: Sequence[Population]) -> bool:
        """Fill the velocities of ``others``, given the number of ``vortons``; returns False if it refuses.

        Whether interpolation is accurate is measured in the first stage of a tick, for all its stages.
        """
        system, world, grid = self._system, self._system.world, flow.grid
        first, cubic = world.stage.c == 0.0, system.interpolation != "linear"
        may_refuse = cubic and not system.mollify
        if first:
            self._reads_well = not may_refuse
        if may_refuse and (vortons <= READING or not (first or self._reads_well)):
            return False
        points = self._points_around(others, grid, cubic)
        x = points.places(grid.origin, grid.spacing, world.dtype)
        rows = sum(world.processes.total([other.entity], len(other.x)) for other in others)
        if may_refuse and vortons * (rows - len(x)) <= READING * rows:
            return False
        targets = Targets(x, np.empty_like(x), place="others", read=points.read)
        flow.fill_mollified(targets)
        reading = GridReading(grid, points.spread(targets.u), system.read_by, points.read)
        for other in others:
            reading.velocity(other.x, other.u)
        sum_at_strays(flow, others)
        if first and may_refuse:
            self._reads_well = reads_well(flow, others, targets, WELL_READ)
        return self._reads_well

    def _points_around(self, others: Sequence[Population], grid: Grid, cubic: bool) -> PointsRead:
        """The points of the grid that ``others`` read, on all processes."""
        from ecs_fluid.kernels.grids.read_points import PointsRead, mark_cells

        marked, processes = np.zeros(tuple(grid.cells), np.uint8), self._system.world.processes
        for other in others:
            mark_cells(other.x, grid.origin, grid.spacing, marked)
        if processes.bounds:
            marked[...] = np.reshape(np.array(processes.largest(marked.ravel().tolist())), marked.shape)
        return PointsRead(marked, cubic)
