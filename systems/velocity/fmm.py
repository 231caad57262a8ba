"""The fast multipole method, with a tolerance that is checked at every sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.components import Grid, Sources
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_work import fmm_work
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.kernels.fmm.fast_multipole import Plan

FEW_TARGETS = 1024
"""Up to this many targets, other than the vortons, the direct sum takes less time than ``fmm`` needs to sort
the vortons and find their moments, for any number of vortons."""

IN_PLACE_OF_FMM = 2**30
"""Up to this many pairs of target and vorton, the direct sum replaces an ``fmm`` sum that misses its
tolerance: it takes as long as a few of the sums that failed. Above, ``fmm`` warns."""


class FmmSolver(Solver):
    """Fast multipole method: moments of clusters act on clusters of targets, in O(n + m).

    The RMS error of velocity and gradient, each relative to its own RMS, stays below `tolerance`. The direct
    sum replaces it where that is cheaper, or where the tolerance is missed and the direct sum is affordable.
    """

    sums_pairs = True
    dimensions = (2, 3)
    tolerance: float

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons; they are sorted, and their moments found, when they are first needed."""
        self._vortons = sources.x, sources.alpha, sources.sigma
        self._plan: Plan | None = None
        self._direct = DirectSolver(self.system)
        self._direct.prepare(sources, grid)

    def fill(self, targets: Targets) -> None:
        """Fill by multipoles, or by the direct sum where that is cheaper or needed for the tolerance."""
        from ecs_fluid.kernels.fmm.error_estimate import COMPARED

        # The check would compare up to COMPARED vortons, so all of these few, with the direct sum anyway.
        if len(targets.x) <= (COMPARED if targets.place == "vortons" else FEW_TARGETS):
            self._direct.fill(targets)
            return
        error, _ = self.counted(targets)
        if error > self.tolerance and len(targets.x) * len(self._vortons[2]) <= IN_PLACE_OF_FMM:
            self._direct.fill(targets)
        elif error > self.tolerance:
            self.system.warn(
                f"VelocitySystem: solver = 'fmm' has an RMS error of {error:.1e} at {len(targets.x)} points, "
                f"tolerance = {self.tolerance:g}; use precision = 'double', a larger tolerance or "
                "solver = 'direct'",
                "fmm",
            )

    def counted(self, targets: Targets) -> tuple[float, float]:
        """Fill by multipoles alone; returns the relative RMS error on a sample, and all processes' work.

        The error may exceed the tolerance (float32 has its limits). Work is in pairs of the direct sum.
        """
        from ecs_fluid.kernels.fmm import fast_multipole

        if self._plan is None:
            self._plan = fast_multipole.plan(self.code, *self._vortons, self.tolerance)
        shared = self.world.processes.shared_leaves("fmm", targets, len(self._vortons[2]))
        report = fast_multipole.velocity(self._plan, targets.x, targets.u, targets.du, shared)
        done = np.array([report.pairs, report.expansions], np.float64)
        pairs, expansions = done if shared is None else self.world.processes.summed(done)
        points = len(targets.x) + len(self._vortons[2])
        return report.error, fmm_work(
            float(pairs), float(expansions), report.settings.order, points, targets.du is not None
        )

    def lint(self) -> list[str]:
        """Warn of a tolerance that the world's precision cannot reach."""
        least = 1e-9 if self.world.options.precision == "double" else 1e-5
        if self.tolerance >= least:
            return []
        return [
            f"VelocitySystem: tolerance = {self.tolerance:g} is below what single precision can keep; "
            f"use tolerance >= {least:g} or precision = 'double'"
        ]
