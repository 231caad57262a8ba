"""The irrotational flow of vortons that swell or shrink, which adds to the flow of their strengths."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Dilatation, Grid, Position, Sources, Volume
from ecs_fluid.entity import Entity
from ecs_fluid.systems.partition import VORTONS
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.system import VelocitySystem

FEW = 1000
"""Up to this many vortons all pairs are summed."""


class PotentialFlow:
    """u(x) = sum_p q(|x - x_p| / sigma_p) Q_p (x - x_p) / (4 pi |x - x_p|^3), Q = div u V in m^3/s.

    In a plane each term is q Q_p (x - x_p) / (2 pi r^2). A Biot-Savart sum with strengths Q along an axis
    gives these terms with (x - x_p) turned by a right angle about the axis, so any solver that sums pairs
    can evaluate it.
    """

    def __init__(
        self, kind: type[Solver], system: VelocitySystem, sources: Sources, grid: Grid, rates: Array
    ) -> None:
        """Prepare solvers of that kind; `rates` (n,) m^3/s are the Q of the sorted vortons."""
        axes = (2, 0) if system.world.across is None else (system.world.across,)
        self._sums = [(axis, kind(system)) for axis in axes]
        for axis, solver in self._sums:
            turned = copy(sources)
            turned.alpha = np.zeros_like(sources.alpha)
            turned.alpha[axis] = rates
            solver.prepare(turned, grid)

    @classmethod
    def by(cls, solver: Solver, sources: Sources, grid: Grid) -> PotentialFlow | None:
        """The potential flow of the vortons sorted in `sources`; None if none of them swells.

        `direct` and `tree` sum it themselves; for other solvers `fmm` does, with the same tolerance. Few
        vortons are summed directly.
        """
        system = solver.system
        if not (vortons := cls.vortons(system)):
            return None
        rates = [
            entity[Dilatation].divergence * entity[Volume].volume
            if Dilatation in entity
            else np.zeros(len(entity[Position].x), system.world.dtype)
            for entity in vortons
        ]
        every = np.concatenate(rates)
        if not every.any():
            return None
        kind = type(solver) if type(solver) in (DirectSolver, TreeSolver) else FmmSolver
        if len(every) <= FEW:
            kind = DirectSolver
        return cls(kind, system, sources, grid, every[sources.order])

    @staticmethod
    def vortons(system: VelocitySystem) -> list[Entity]:
        """Populations of vortons, in the order of the Sources; an empty list if none of them can swell."""
        found = [entity for entity, _ in system.entities(*VORTONS)]
        return found if any(Dilatation in entity for entity in found) else []

    def add(self, targets: Targets) -> None:
        """Add the velocity, and its gradient if it is wanted, at the targets."""
        for axis, solver in self._sums:
            found = copy(targets)
            found.u = np.empty_like(targets.u)
            found.du = None if targets.du is None else np.empty_like(targets.du)
            solver.fill(found)
            targets.blocks = found.blocks
            one, two = (axis + 1) % 3, (axis + 2) % 3
            # In space, strengths along x are needed only for the velocity along z.
            ways = [(two, one, -1)] if axis == 0 and len(self._sums) == 2 else [(one, two, 1), (two, one, -1)]
            for out, of, sign in ways:
                targets.u[:, out] += sign * found.u[:, of]
                if targets.du is not None and found.du is not None:
                    targets.du[:, out] += sign * found.du[:, of]
