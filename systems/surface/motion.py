"""What moves a carried surface: flow and winds; and the bodies that are in its way."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.operations import gusts, wind_at
from ecs_fluid.systems.shared.body_tables import body_entities
from ecs_fluid.world import World


class Motion:
    """Velocities of a surface in the tick that ends, and the space that bodies occupy.

    The velocity is that of the flow, plus every wind that blows on all particles. Bodies and containers
    count if a CollisionSystem keeps all particles out of them.
    """

    def __init__(self, world: World, dt: float) -> None:
        self.world = world
        self.flows = any(hasattr(system, "velocity_at") for system in world.systems)
        # The wind in the middle of the tick, which is exact for a wind that changes linearly.
        self.wind = wind_at(world, world.time - 0.5 * dt)
        collisions = [s for s in world.systems if isinstance(s, CollisionSystem) and not s.on]
        self.collision = collisions[0] if collisions and body_entities(world) else None

    def velocity(self, x: Array) -> Array:
        """Velocity (n, 3) m/s at points (n, 3) m at the end of the tick."""
        u = np.zeros((len(x), 3))
        if self.flows and len(x):
            u += self.world._induced_velocity(x)
        for gust in gusts(self.world):
            gust.add_wind(x, u, None)
        return np.asarray(u + self.wind)

    def depth(self, x: Array, reach: float = 0.0) -> Array | None:
        """Depth (n,) m of points (n, 3) m in solid bodies or outside all containers, and beside them, up to
        `reach` m, minus the distance; None without bodies."""
        return None if self.collision is None else self.collision.overlap(np.asarray(x, np.float64), reach)
