"""Alignment of strengths with the vorticity (Pedrizzetti's relaxation)."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Strength, VelocityGradient
from ecs_fluid.integrator import METHODS
from ecs_fluid.system import System
from ecs_fluid.systems.diagnostics import INVARIANTS
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.world import World


class AlignmentSystem(System):
    """Pedrizzetti's relaxation: strengths turn towards the vorticity at their place.

    Every `every` ticks alpha <- (1 - f) alpha + f |alpha| omega/|omega| with omega = curl u from the velocity
    gradient and f = 1 - exp(-rate every dt). It reduces the divergence of the vortons' vorticity, which grows
    as they are carried apart. The plain form also shortens a strength at the angle t to the vorticity by the
    factor sqrt(1 - 2 f (1 - f) (1 - cos t)); `corrected` restores its length, so that sum |alpha| stays to
    rounding. Neither form keeps total strength and impulses exactly: `changes` holds their changes in the
    last application, and DiagnosticsSystem(budget=True) the sums over a run.

    The gradient is that of the integrator's last stage; the vorticity equation advances its curl to the end
    of the tick. Remeshing makes vortons at the rims that point against the vorticity, which this system would
    turn around: together they raise the energy, so use one or the other. Source: Pedrizzetti, Fluid Dyn. Res.
    10 (1992).
    """

    reads = (Position, VelocityGradient)
    writes = (Strength,)
    phase = "move"
    several = False

    rate: float = Field(ge=0, le=1e9)
    """rate of turning, 1/s; about a tenth of the largest |grad u|"""
    corrected: bool = True
    """keep the length of every strength"""
    every: int = Field(default=1, ge=1)
    """ticks from one application to the next"""

    def __post_init__(self) -> None:
        self.changes: dict[str, Array] = {}

    def process(self, dt: float) -> None:
        """Turn the strengths, when due."""
        if (self.world.tick + 1) % self.every or self.rate == 0.0:
            return
        from ecs_fluid.kernels.vorticity.pedrizzetti import align

        number = self.world.dtype
        fraction = -math.expm1(-self.rate * self.every * dt)
        lag = (1.0 - METHODS[self.world.options.integrator][-1].c) * dt
        before = self._totals()
        for strength, gradient in self.query(Strength, VelocityGradient):
            align(strength.alpha, gradient.du, number(fraction), number(lag), self.corrected)
        after = self._totals()
        self.changes = {name: after[name] - before[name] for name in after}

    def lint(self, world: World) -> list[str]:
        """Warn of a RemeshSystem: alignment turns around the vortons that it makes at the rims."""
        if world.system(RemeshSystem) is None:
            return []
        return [
            "AlignmentSystem reverses the vortons that RemeshSystem makes with strengths against the "
            "vorticity, which raises the energy; use only one of the two systems"
        ]

    def _totals(self) -> dict[str, Array]:
        """Total strength (3,), impulse (3,), angular impulse (3,) and sum of |alpha| (1,)."""
        from ecs_fluid.kernels.compiled.columns import vortex_invariants

        totals = {name: np.zeros(3) for name in INVARIANTS} | {"magnitude": np.zeros(1)}
        for position, strength, _ in self.query(Position, Strength, VelocityGradient):
            for name, part in zip(INVARIANTS, vortex_invariants(position.x, strength.alpha), strict=True):
                totals[name] += part
            lengths = np.sqrt((strength.alpha.astype(np.float64) ** 2).sum(axis=1))
            totals["magnitude"] += math.fsum(lengths)
        return totals
