"""Accelerations of liquid other than gravity."""

from __future__ import annotations

from ecs_fluid.components import Acceleration
from ecs_fluid.components.liquid import Liquid, LiquidPush
from ecs_fluid.system import System


class LiquidPushSystem(System):
    """Mean acceleration of liquid over a tick, by the weights of the integrator's stages.

    The SphSystem, which moves the liquid in steps of its own, applies it in each step, as it does gravity.
    """

    reads = (Liquid,)
    may_read = (Acceleration,)
    writes = (LiquidPush,)
    phase = "rates"
    distribution = "rows"

    @property
    def pushed(self) -> bool:
        """Whether there is a system that may accelerate liquid."""
        return any(Acceleration in system.adds for system in self.world.systems)

    def process(self, dt: float) -> None:
        """Add this stage's accelerations; without a system that integrates them they have no effect."""
        stage, integrated = self.world.stage, any(system.integrates for system in self.world.systems)
        for entity, (push,) in self.entities(LiquidPush):
            if stage.c == 0.0:
                push.a[...] = 0.0
            if Acceleration in entity and integrated:
                push.a += self.world.dtype(stage.weight) * entity[Acceleration].a
