"""Vortex stretching and tilting."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ecs_fluid.components import Strength, StrengthRate, VelocityGradient
from ecs_fluid.system import System
from ecs_fluid.world import World

WEIGHTS = {"classical": (1.0, 0.0), "transposed": (0.0, 1.0), "mixed": (0.5, 0.5), "none": (0.0, 0.0)}


class StretchSystem(System):
    """Vortex stretching: d(alpha)/dt = (alpha . grad) u.

    Forms, with J_ij = du_i/dx_j: classical J alpha; transposed J^T alpha, which conserves the total strength
    of any particle set exactly; mixed, their mean. They agree where the particles' vorticity is the curl of
    u. Source: Winckelmans and Leonard, J. Comput. Phys. 109 (1993); Fluid Simulation for Video Games,
    part 3 (whose code uses the transposed form at half the rate).
    """

    reads = (VelocityGradient, Strength)
    adds = (StrengthRate,)
    phase = "rates"
    distribution = "rows"
    dimensions = (2, 3)

    scheme: Literal["transposed", "classical", "mixed", "none"] = "transposed"
    """form of the stretching term"""
    rate: float = Field(default=1.0, ge=0.0, le=1.0)
    """factor on the physical rate, 1; articles 0.5"""

    def lint(self, world: World) -> list[str]:
        """A plane, in which no vorticity is along a gradient of the velocity."""
        if world.dimension == 3:
            return []
        return [
            "StretchSystem has no effect in a world of dimension = 2, where vorticity is across the flow; "
            "leave it out"
        ]

    def process(self, dt: float) -> None:
        """Add the stretching rate of every vorton."""
        classical, transposed = (self.rate * weight for weight in WEIGHTS[self.scheme])
        if self.world.dimension == 2 or (classical == 0.0 and transposed == 0.0):
            return
        from ecs_fluid.kernels.vorticity.stretch import stretch

        number = self.world.dtype
        for gradient, strength, rate in self.query(VelocityGradient, Strength, StrengthRate):
            stretch(gradient.du, strength.alpha, rate.dalpha, number(classical), number(transposed))
