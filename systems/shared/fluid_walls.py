"""Walls behind which the fluid goes on as its own mirror image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecs_fluid.systems.shared.walls import Walls, containers
from ecs_fluid.systems.velocity.mirrors import is_container, mirrors_of
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.world import World


def fluid_walls(world: World) -> list[Walls]:
    """Walls of every container, and those planes of the VelocitySystem's `mirrors` that are no walls of one.

    These planes have no end: together they bound a half space, the space before an edge, or a corner.
    """
    velocity, found = world.system(VelocitySystem), containers(world)
    faces = [] if velocity is None else [f for f in velocity.mirrors if not is_container(world, f)]
    if faces:
        found.append(mirrors_of(world, faces)[-1].walls)
    return found
