"""The flow of all vortons at any points: a solver's sum, and the potential flow of vortons that swell."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from ecs_fluid.components import Grid, Sources
from ecs_fluid.systems.velocity.potential_flow import PotentialFlow
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.targets import Targets


@dataclass
class VortonFlow:
    """The flow of vortons sorted in `sources`, for which the `solver` is prepared."""

    solver: Solver
    sources: Sources
    grid: Grid
    potential: PotentialFlow | None
    """potential flow; None where no vorton swells"""

    @classmethod
    def by(cls, solver: Solver, sources: Sources, grid: Grid) -> Self:
        """The flow of these vortons; prepares the solver for them."""
        solver.prepare(sources, grid)
        return cls(solver, sources, grid, PotentialFlow.by(solver, sources, grid))

    def fill(self, targets: Targets) -> None:
        """Fill the velocity, and its gradient if it is wanted, at the targets."""
        self.solver.fill(targets)
        self.add_potential(targets)

    def add_potential(self, targets: Targets) -> None:
        """Add the potential flow of vortons that swell to the solver's result at the targets."""
        if self.potential:
            self.potential.add(targets)

    def fill_mollified(self, targets: Targets) -> None:
        """Like `fill`, with cores widened as `mollify` says: for grid points, and points summed instead."""
        mollify = self.solver.system.mollify
        if not mollify:
            self.fill(targets)
            return
        floor = self.sources.sigma.dtype.type(mollify * float(np.prod(self.grid.spacing) ** (1 / 3)))
        widened = copy(self.sources)
        widened.sigma = np.maximum(self.sources.sigma, floor)
        type(self).by(self.solver, widened, self.grid).fill(targets)
        self.solver.prepare(self.sources, self.grid)
