"""Vortex stretching and tilting."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.components import CoreRadius, Strength, StrengthRate, VelocityGradient
from ecs_fluid.system import System
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.shared.populations import total_strength
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

WEIGHTS = {
    "limited": (1.0, 0.0),
    "classical": (1.0, 0.0),
    "transposed": (0.0, 1.0),
    "mixed": (0.5, 0.5),
    "none": (0.0, 0.0),
}

OPEN = 0.1
"""Ratio of |sum alpha| to sum |alpha| above which lint warns of open ends of vortex lines."""

ALIKE = 1 + 1e-6
"""Core radii whose ratio is up to this differ only by rounding."""


class StretchSystem(System):
    """Vortex stretching: d(alpha)/dt = (alpha . grad) u.

    Forms, with J_ij = du_i/dx_j:

    * auto: limited, with three exceptions. Transposed beside a BoundarySystem, as lines that walls shed end
      at the walls, and beside a SurfaceTensionSystem, whose strengths keep their sum of 0. Where the velocity
      comes from a grid, whose error varies from cell to cell and so along a line: classical if a RemeshSystem
      fills cores with vortons; transposed in open space, unless a system makes vorticity (`makes_vorticity`:
      buoyancy) in clouds of vortons.
    * limited: J alpha, the stretching of a material line, as long as blobs overlap. Where a vorton's own blob
      makes more than half of the vorticity at its place, its growth is reduced, and from 0.8 on it turns
      without growing. So a line that is stretched until its blobs no longer touch loses circulation, where
      the other forms diverge. A lone blob makes all of the vorticity there, 2/3 zeta(0) alpha/sigma^3.
    * classical: J alpha.
    * transposed: J^T alpha, which conserves exactly the total strength of any vortons with one core radius,
      even with open ends (two vortons of different radii do not change each other by equal and opposite
      amounts). It turns the strengths of a bent line out of the line, as the blobs smooth the vorticity that
      it follows.
    * mixed: the mean of the last two.

    The forms agree where the vortons' vorticity is the curl of u and the blobs are narrow; measurements are
    in docs/notes/vorticity.md. Source: Winckelmans and Leonard, J. Comput. Phys. 109 (1993); Fluid Simulation
    for Video Games, part 3 (whose code uses the transposed form at half the rate).
    """

    reads = (VelocityGradient, Strength, CoreRadius)
    adds = (StrengthRate,)
    phase = "rates"
    several = False
    distribution = "rows"
    dimensions = (2, 3)

    scheme: Literal["auto", "limited", "classical", "transposed", "mixed", "none"] = "auto"
    """form of the stretching term"""
    rate: float = Field(default=1.0, ge=0.0, le=1.0)
    """factor on the physical rate, 1; articles 0.5"""

    @property
    def form(self) -> str:
        """The form of the stretching term; for `auto`, the one chosen for this world."""
        if self.scheme != "auto":
            return self.scheme
        from ecs_fluid.systems.boundary.system import BoundarySystem
        from ecs_fluid.systems.surface_tension import SurfaceTensionSystem

        world = self.world
        if any(world.system(kind) is not None for kind in (BoundarySystem, SurfaceTensionSystem)):
            return "transposed"
        velocity = world.system(VelocitySystem)
        if velocity is None or not velocity.from_grid:
            return "limited"
        if world.system(RemeshSystem) is not None:
            return "classical"
        clouds = any(system.makes_vorticity for system in world.systems)
        return "limited" if clouds or world.periods.any() else "transposed"

    @property
    def follows_lines(self) -> bool:
        """Whether strengths change like a piece of their vortex line that moves with the velocity."""
        return self.form in ("limited", "classical")

    def process(self, dt: float) -> None:
        """Add the stretching rate of every vorton."""
        world, form = self.world, self.form
        classical, transposed = (self.rate * weight for weight in WEIGHTS[form])
        if world.dimension == 2 or (classical == 0.0 and transposed == 0.0):
            return
        from ecs_fluid.kernels.vorticity.stretch import stretch

        number, own = world.dtype, own_curl(world, form)
        for gradient, strength, core, rate in self.query(
            VelocityGradient, Strength, CoreRadius, StrengthRate
        ):
            stretch(
                gradient.du,
                strength.alpha,
                core.sigma,
                rate.dalpha,
                number(classical),
                number(transposed),
                own,
            )

    def lint(self, world: World) -> list[str]:
        """Warn of a plane, where nothing is stretched, and of open lines whose total strength is not kept."""
        if world.dimension == 2:
            return [
                "StretchSystem has no effect in a world of dimension = 2, where vorticity is perpendicular "
                "to the flow; leave it out"
            ]
        strength, size = total_strength(world)
        total = np.linalg.norm(np.where(world.periods > 0, 0.0, strength))  # lines may close across periods
        if not self.follows_lines or self.rate == 0.0 or total <= OPEN * size:
            return []
        return [
            f"StretchSystem: strengths add up to {total / size:.0%} of the sum of their sizes, so vortex "
            f"lines end in the fluid; as their ends move, scheme = {self.form!r} does not conserve that "
            f"total, but scheme = 'transposed' does{_kept_so_far(world)}"
        ]


def _kept_so_far(world: World) -> str:
    """End of a sentence: why the transposed form does not conserve the total strength exactly."""
    radii = np.concatenate([core.sigma for core, _ in world.query(CoreRadius, Strength)])
    least, most, velocity = radii.min(), radii.max(), world.system(VelocitySystem)
    said = ""
    if most > ALIKE * least:
        said += f", as far as core radii are alike ({least:.3g} to {most:.3g} m here)"
    if velocity is not None and (velocity.from_grid or velocity.solver != "direct"):
        said += ", up to the error of the velocity"
    return said


def own_curl(world: World, form: str) -> np.floating[Any]:
    """Vorticity of a vorton's own blob at its centre, over alpha/sigma^3; 0 unless the form is "limited"."""
    velocity = world.system(VelocitySystem)
    if velocity is None or form != "limited":
        return world.dtype(0.0)
    return world.dtype(2 / 3 * velocity.regularisation.centre)
