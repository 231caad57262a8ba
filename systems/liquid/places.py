"""Bodies around a liquid, and points too near to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.shared.body_tables import as_obstacles, body_entities, depths, gathered
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.collision.swept_bodies import Obstacles

    Bodies = tuple[Obstacles | None, Hulls | None]

LEAST_GAP = 0.4
"""Least distance, in spacings, of new liquid from solids and walls: nearer, pressure or the image in the wall
would throw it away. A lattice between flat walls has half a spacing."""

LEAST_ACROSS = 4
"""A liquid counts as too coarse with fewer particles than this across its thinnest part."""

ROUNDED = 0.01
"""Fraction by which they may be fewer: spacings that follow from volumes in single precision, and what a
sentence with two digits does not show."""


def bodies_at(world: World, dt: float, reach: float) -> Bodies:
    """Bodies as a tick of `dt` s begins, and as they move in it, with the liquid's `reach`, m, around them;
    None without bodies."""
    entities = body_entities(world)
    if not entities:
        return None, None
    bodies, hulls = gathered(entities)
    mover = world.system(BodySystem)
    if mover is not None and dt:
        mover.set_scripted_motion(entities, bodies, dt)
    # Poses at the end of the tick are needed only by the grid, which lists bodies by where they may come.
    ended = bodies._replace(x=bodies.x + dt * bodies.v)
    turn = np.minimum(dt * np.linalg.norm(bodies.angular_velocity, axis=1), np.pi)
    stray = 2 * bodies.radius * np.sin(turn / 2)
    swept = as_obstacles(ended, hulls, reach, (bodies.x, bodies.q), stray)
    return swept._replace(x1=swept.x0), hulls


def near_solids(world: World, x: Array, distance: float) -> Array:
    """Mask (n,) of the points (n, 3) m in solid bodies or nearer to them than `distance`, m."""
    obstacles, hulls = bodies_at(world, 0.0, distance)
    if obstacles is None or hulls is None:
        return np.zeros(len(x), bool)
    return depths(obstacles._replace(containers=obstacles.containers[:0]), hulls, x) > -distance
