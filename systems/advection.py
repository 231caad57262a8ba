"""Motion: the one system that changes what has a rate."""

from __future__ import annotations

from ecs_fluid.system import System


class AdvectionSystem(System):
    """Runge-Kutta step of every rate: dx/dt = u, d(alpha)/dt, d(sigma^2)/dt, dT/dt and so on.

    It runs once per stage of the world's integrator (``World(integrator=...)``), after the phases prepare
    and rates have been repeated for that stage, and before every other system of the phase move.
    """

    phase = "move"
    distribution = "rows"
    before = ("*",)
    integrates = True

    def process(self, dt: float) -> None:
        """Advance all rated states by the present stage of the integrator."""
        self.world.integrate_stage()
