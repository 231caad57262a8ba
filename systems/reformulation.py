"""The reformulated vortex particle method: stretching that also thins the cores."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ecs_fluid.components import (
    CoreRadius,
    CoreRadiusRate,
    Dilatation,
    Strength,
    StrengthRate,
    VelocityGradient,
)
from ecs_fluid.system import System
from ecs_fluid.systems.stretch import StretchSystem, own_curl
from ecs_fluid.world import World


class ReformulationSystem(System):
    """Reformulated stretching (rVPM): d(alpha)/dt -= 3 g s alpha, d(sigma)/dt = -g s sigma.

    With s = alpha . J alpha / |alpha|^2, the rate at which the flow stretches a vorton along its strength, it
    adds to the rates of StretchSystem, for any form of these (`limited` reduces this s too),

        d(alpha)/dt: -3 g s alpha,        dsigma/dt = -g s sigma.

    The first line keeps the vorticity equation at the vorton's centre, where omega ~ alpha/sigma^3; the
    second, with g = 1/5, keeps the angular momentum ~ sigma^5 |omega| of the sphere of fluid that a vorton
    is. So |alpha| sigma^2 is constant along every path, and |alpha| grows with 2/5 of the stretching, which
    is why runs last longer. g = 0 is the classic method. In gas that swells (ExpansionSystem), s is reduced
    by a third of the vorton's divergence: growth alike in all directions, as of its core, is no stretching.

    The circulation of a stretched tube, |alpha| over length, is not kept: it falls as its length to the power
    -3/5, and returns when the tube shortens. So rings that stay whole are better described by the classic
    method; this one is for flows that break down to scales below the cores. Derivation:
    docs/notes/vorticity.md. Source: Alvarez and Ning, Phys. Fluids 35 (2023), arXiv 2206.03658, with their
    f = 0.
    """

    reads = (VelocityGradient, Strength, CoreRadius)
    may_read = (Dilatation,)
    adds = (StrengthRate, CoreRadiusRate)
    phase = "rates"
    several = False

    g: float = Field(default=0.2, ge=0.0, le=1 / 3)
    """part of the stretching that goes into the core radius, 1"""

    def process(self, dt: float) -> None:
        """Add the changes of the reformulation to the rates, scaled like the stretching itself."""
        world = self.world
        stretch = _active_stretching(world)
        if stretch is None or self.g == 0.0:
            return
        from ecs_fluid.kernels.vorticity.reformulation import reshape_cores

        g, own = world.dtype(stretch.rate * self.g), own_curl(world, stretch.form)
        wanted = VelocityGradient, Strength, CoreRadius, StrengthRate, CoreRadiusRate
        for entity, (gradient, strength, core, dalpha, dsigma2) in self.entities(*wanted):
            du = gradient.du
            if Dilatation in entity:
                third = entity[Dilatation].divergence / world.dtype(3)
                du = du - third[:, None, None] * np.eye(3, dtype=du.dtype)
            reshape_cores(du, strength.alpha, core.sigma, g, own, dalpha.dalpha, dsigma2.dsigma2)

    def lint(self, world: World) -> list[str]:
        """Warn of a world without stretching: there is nothing to reformulate."""
        if _active_stretching(world) is not None:
            return []
        return [
            "ReformulationSystem does nothing without stretching; leave it out, or let vortons stretch "
            "(scheme and rate of stretch)"
        ]


def _active_stretching(world: World) -> StretchSystem | None:
    """The StretchSystem; None if there is none, or if it changes nothing."""
    stretch = world.system(StretchSystem)
    return stretch if stretch is not None and stretch.scheme != "none" and stretch.rate > 0.0 else None
