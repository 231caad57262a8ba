"""The sum over all pairs of target and vorton, the reference of every other solver."""

from __future__ import annotations

from typing import Any

from ecs_fluid.components import Grid, Sources
from ecs_fluid.one_process import Targets
from ecs_fluid.systems.velocity.solver import Solver


class DirectSolver(Solver):
    """u(x) = sum_p q(|x - x_p| / sigma_p) alpha_p cross (x - x_p) / (4 pi |x - x_p|^3) over all vortons p."""

    sums_pairs = divides_targets = True
    dimensions = (2, 3)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Nothing but to keep the vortons."""
        self._vortons = sources.x, sources.alpha, sources.sigma

    def fill(self, targets: Targets) -> None:
        """Sum over all vortons at every target."""
        from ecs_fluid.kernels.biot_savart.direct import velocity, velocity_gradient

        self._sum(targets, velocity, velocity_gradient)

    def fill_few(self, targets: Targets) -> None:
        """The same at up to 128 targets and many vortons, which threads share; it rounds differently."""
        from ecs_fluid.kernels.biot_savart.direct import few_gradients, few_velocities

        self._sum(targets, few_velocities, few_gradients)

    def _sum(self, targets: Targets, velocity: Any, velocity_gradient: Any) -> None:
        processes, vortons = self._system.world.processes, len(self._vortons[2])
        part = processes.part("direct", targets, vortons)
        if part.du is None:
            velocity(self.code, part.x, *self._vortons, part.u)
        else:
            velocity_gradient(self.code, part.x, *self._vortons, part.u, part.du)
        processes.join(targets, part, len(part.x) * vortons)
