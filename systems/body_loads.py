"""The loads on bodies, set to zero once a tick before systems add to them."""

from __future__ import annotations

from ecs_fluid.components.bodies import BodyLoad
from ecs_fluid.system import System


class LoadSystem(System):
    """Zeroes the forces and torques on bodies; brought along by systems that add to them."""

    writes = (BodyLoad,)
    phase = "spawn"
    dimensions = (2, 3)
    periodic = False

    def process(self, dt: float) -> None:
        """Set all loads to zero."""
        for (load,) in self.query(BodyLoad):
            for _, column in load.items():
                column[...] = 0.0
