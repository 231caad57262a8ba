"""The sum over all pairs of target and vorton, the reference of every other solver."""

from __future__ import annotations

from ecs_fluid.components import Grid, Sources
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.targets import Targets


class DirectSolver(Solver):
    """u(x) = sum_p q(|x - x_p| / sigma_p) alpha_p cross (x - x_p) / (4 pi |x - x_p|^3) over all vortons p."""

    sums_pairs = divides_targets = True
    dimensions = (2, 3)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons: positions, strengths and core radii."""
        self.vortons = sources.x, sources.alpha, sources.sigma

    def fill(self, targets: Targets, few: bool = False) -> None:
        """Sum over all vortons at every target.

        With ``few``, and up to BLOCK targets, threads divide the vortons; that rounds differently.
        """
        from ecs_fluid.kernels.biot_savart import direct, pairwise

        kernels = direct.velocity, direct.velocity_gradient
        if few and len(targets.x) <= pairwise.BLOCK:
            kernels = direct.few_velocities, direct.few_gradients
        processes, vortons = self._system.world.processes, len(self.vortons[2])
        part = processes.part("direct", targets, vortons)
        if part.du is None:
            kernels[0](self.code, part.x, *self.vortons, part.u)
        else:
            kernels[1](self.code, part.x, *self.vortons, part.u, part.du)
        processes.join(targets, part, len(part.x) * vortons)
