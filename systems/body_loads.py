"""The loads on bodies, set to zero once a tick before systems add to them."""

from __future__ import annotations

from ecs_fluid.components.bodies import FREE, Body, BodyLoad
from ecs_fluid.system import System
from ecs_fluid.systems.shared.body_tables import body_entities
from ecs_fluid.world import World


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


def idle_lint(system: System, world: World, other: str) -> list[str]:
    """A sentence on a law for free bodies, where none is free; `other` is the kind of that for particles."""
    bodies = body_entities(world)
    if not bodies or any((entity[Body].motion == FREE).any() for entity in bodies):
        return []
    return [
        f"{type(system).__name__} does nothing: it is for free bodies, and there are none; for particles use "
        f"kind = {other!r}"
    ]
