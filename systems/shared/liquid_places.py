"""Bodies around a liquid, and where no liquid should be: in bodies, outside containers, twice in a place."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.shared.body_tables import body_entities, depths, gathered
from ecs_fluid.systems.shared.populations import joined, rows_of_each
from ecs_fluid.systems.shared.walls import Walls, containers, outside_all
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.collision.swept_bodies import Obstacles

LEAST_ACROSS = 4
"""Particles across the thinnest part of a liquid that is told to be coarse below it."""

NEAREST_PAIR = 0.4
"""Spacings between two particles at the start, at least; a lattice with the largest jitter has 0.5."""

ASKEW = 0.02
"""Cosine between planes of a container up to which they are meant to be at right angles."""

CLOSEST = 2.0
"""Reaches between two containers at least: each mirrors its liquid into one of them."""


def bodies_at(world: World, dt: float, reach: float) -> tuple[Obstacles | None, Hulls | None]:
    """Bodies as they stand when a tick of `dt` s begins, and move in it, with the reach [m] of the liquid's
    kernel around them; None without bodies."""
    from ecs_fluid.kernels.bodies.rotation import product, quaternion_of
    from ecs_fluid.kernels.collision.swept_bodies import obstacles

    entities = body_entities(world)
    if not entities:
        return None, None
    bodies, hulls = gathered(entities)
    mover = world.system(BodySystem)
    moved = {entity.name: motion for entity, _, _, *motion in mover.scripted(dt)} if mover and dt else {}
    for entity, rows in rows_of_each(entities):
        if entity.name in moved:
            bodies.v[rows], bodies.angular_velocity[rows] = moved[entity.name]
    ends = bodies.x + dt * bodies.v
    spinning = zip(bodies.angular_velocity, bodies.q, strict=True)
    turned = np.array([product(quaternion_of(dt * spin), q) for spin, q in spinning]).reshape(-1, 4)
    shapes = (bodies.shape, bodies.radius, bodies.hull)
    swept = obstacles(
        (bodies.x, bodies.q), (ends, turned), (bodies.v, bodies.angular_velocity), *shapes, reach
    )
    return swept._replace(x1=swept.x0, turn1=swept.turn0), hulls


def near_solids(world: World, x: Array, distance: float) -> Array:
    """Which points (n, 3) lie in solid bodies or nearer to them than `distance`, m."""
    obstacles, hulls = bodies_at(world, 0.0, distance)
    if obstacles is None or hulls is None:
        return np.zeros(len(x), bool)
    return depths(obstacles._replace(containers=obstacles.containers[:0]), hulls, x) > -distance


def misplaced_liquid(world: World, support: float) -> list[str]:
    """Sentences on liquid outside containers, in two that are too close or in one that is all but a box, and
    on particles that lie on one another; `support` is the reach of the kernel over the spacing."""
    from scipy.spatial import cKDTree

    entities = [entity for entity, _ in world.entities_with(Position, Liquid) if len(entity)]
    if not entities:
        return []
    x = joined([entity[Position].x for entity in entities], (3,), np.float64)
    volume = np.concatenate([entity[Liquid].volume for entity in entities])
    walls, said = containers(world), list[str]()
    near, nearest = (np.asarray(a)[:, -1] for a in cKDTree(x).query(x, 2))
    # Later drops and spray may come as close.
    crowded = (near < NEAREST_PAIR * np.cbrt(volume)) & (world.tick == 0)
    for entity, rows in rows_of_each(entities):
        outside = outside_all(walls, x[rows])
        if outside:
            said.append(
                f"{outside} of {len(entity)} particles of {entity.name!r} lie outside every container, "
                "and walls hold only what is inside; move the liquid, or the container"
            )
        close = np.flatnonzero(crowded[rows])
        if len(close):
            partner = nearest[rows][close[0]]
            other = next(a.name for a, there in rows_of_each(entities) if partner < there.stop)
            said.append(
                f"{len(close)} particles of {entity.name!r} lie nearer than {NEAREST_PAIR} spacings to "
                f"others, the first to one of {other!r}, and will burst apart; fill each place once"
            )
    reach = support * float(np.cbrt(volume.mean()))
    filled = [wall for wall in walls if wall.inside(x).any()]
    for wall in filled:
        said += _not_quite_square(wall)
    gap = min((one.gap(other) for one, other in combinations(filled, 2)), default=math.inf)
    if 0.0 <= gap < CLOSEST * reach:
        said.append(
            f"two containers with liquid are {gap:.3g} m apart, and the liquid of one feels the other's "
            f"through the walls; put them at least {CLOSEST * reach:.2g} m apart, or use smaller spacings"
        )
    return said


def _not_quite_square(wall: Walls) -> list[str]:
    """A sentence on planes that do not mirror liquid, though they all but do."""
    from ecs_fluid.kernels.sph.images import SQUARE

    cosine = np.abs(wall.normals @ wall.normals.T)
    off = np.minimum(cosine, np.abs(1 - cosine)).max(axis=1)
    askew = off[(off >= SQUARE) & (off < ASKEW)]
    if not len(askew):
        return []
    return [
        f"{len(askew)} planes of a container with liquid are up to {askew.max():.2g} off right angles to "
        f"others, and mirror the liquid below {SQUARE:g} only, as a box does; give it exact corners, or the "
        "pressure at its walls is less even"
    ]
