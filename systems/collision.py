"""Collisions of particles with bodies and containers."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Acceleration, InertialVelocity, Position
from ecs_fluid.components.bodies import (
    Body,
    BoundaryLayer,
    BoundVorticity,
    CollisionCount,
    Contact,
    FormerPose,
    FormerPosition,
    Pose,
    RigidMotion,
)
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    are_misplaced,
    as_obstacles,
    body_entities,
    column_of,
    depths,
    gathered,
)
from ecs_fluid.systems.shared.populations import of_bodies
from ecs_fluid.systems.shared.walls import containers, outside_all
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.collision.swept_bodies import Obstacles
    from ecs_fluid.row_changes import NewRows


IN_A_ROW = 8
"""An emitter counts as misplaced if this many new particles in a row are: one or two may be by chance."""

MOST_TURN = 0.5
"""Of a body that turns by more than this in a tick, rad, a warning tells: paths that are followed as straight
in its axes are bent there, and pass walls unseen."""

HALVINGS = 2
"""How often a box that a surface may cut is halved to measure its part outside."""


class DepartureSystem(System):
    """Stores all positions as the tick begins: the starts of the paths that the CollisionSystem follows."""

    reads = (Position,)
    writes = (FormerPosition,)
    phase = "spawn"
    dimensions = (2, 3)
    periodic = False
    distribution = "rows"

    def process(self, dt: float) -> None:
        """Copy all positions."""
        for position, former in self.query(Position, FormerPosition):
            former.x[...] = position.x


class CollisionSystem(System):
    """Collisions of particles with bodies: they stay out of solids and inside containers.

    The path of each particle during the tick is followed from surface to surface, in axes that move with the
    bodies, so that no particle passes through a body at any speed, unless that turns by more than half a
    radian in the tick, which is told. Where it meets a surface it slides on
    without friction: it loses the part of its motion that points into the surface. An InertialVelocity v
    becomes v - (1 + e) ((v - v_b) . n) n, with v_b the velocity of the surface and e the `restitution`. With
    a restitution v is that at the moment of the impact, and the Acceleration goes on from there. After a tick
    no particle is inside a solid, or outside a container that it was in when the tick began.

    When the system joins a world, particles inside bodies are removed, and if there are containers, those
    outside all of them; so are particles that emitters release there. The table CollisionCount of the fluid
    entity holds their number.
    Source: Fluid Simulation for Video Games, parts 4, 13 and 14.
    """

    reads = (FormerPosition, FormerPose, Pose, RigidMotion, Body)
    may_read = (*SHAPES, BoundVorticity, BoundaryLayer, Acceleration)
    writes = (Position, InertialVelocity, CollisionCount, Contact)
    phase = "constrain"
    dimensions = (2, 3)
    periodic = False
    distribution = "ranks"

    clearance: float = Field(default=0.0, ge=0, le=1e3)
    """distance that particles keep from surfaces, m"""
    restitution: float = Field(default=0.0, ge=0, le=1)
    """part of the normal velocity that inertial particles keep, reversed, 1"""
    on: tuple[Name, ...] = ()
    """entities it works on; default all particles"""

    def __post_init__(self) -> None:
        self._lost = dict[str, int]()
        self._gone = dict[str, int]()
        self._spilled = dict[str, tuple[int, int]]()

    def added(self, world: World) -> None:
        """Add the systems that it needs, and remove particles that are misplaced at the start."""
        for name in self.on:
            world[name][Position]  # an error without one
        world.require(BodySystem)
        world.require(DepartureSystem)
        if CollisionCount not in world.fluid:
            world.attach("fluid", CollisionCount)
            world.fluid[CollisionCount].cleared[0] = self._remove_misplaced(world)

    def process(self, dt: float) -> None:
        """Follow all paths of the tick."""
        from ecs_fluid.kernels.collision.collide import collide
        from ecs_fluid.kernels.compiled import CHUNKS

        entities = body_entities(self.world)
        if not entities:
            return
        obstacles, hulls = self._obstacles(entities, moving=True)
        counts = np.zeros((CHUNKS, 3), np.int64)
        rounding = float(np.finfo(self.world.dtype).eps)
        followed = [found for found in self.chosen(Position, FormerPosition) if not of_bodies(found[0])]
        if followed:
            self._warn_of_turns(obstacles, dt)
        for entity, (position, former) in followed:
            own = pull = np.zeros((0, 3), self.world.dtype)
            bounce = 0.0
            if InertialVelocity in entity:
                own, bounce = entity[InertialVelocity].v, self.restitution
                if bounce:
                    pull = entity[Acceleration].a
            touched = np.empty(len(entity), np.int64)
            if Contact in entity:
                touch = entity[Contact]
                touched, touch.before[...] = touch.body, touch.body
            collide(
                obstacles,
                hulls,
                former.x,
                position.x,
                own,
                pull,
                dt,
                self.clearance,
                bounce,
                rounding,
                counts,
                touched,
            )
        total, found = self.field(CollisionCount), self.world.processes.summed(counts.sum(axis=0))
        for name, count in zip(("met", "squeezed", "trapped"), found.tolist(), strict=True):
            if count:
                getattr(total, name)[0] += count
        total.cleared[0] += self._keep_back_new(obstacles, hulls)

    def _warn_of_turns(self, obstacles: Obstacles, dt: float) -> None:
        """Warn of bodies that turn too far in a tick; balls may."""
        from ecs_fluid.kernels.bodies.table import BALL

        speeds = np.linalg.norm(obstacles.angular_velocity[obstacles.shape != BALL], axis=1)
        turn = dt * float(speeds.max(initial=0.0))
        if turn > MOST_TURN:
            self.warn(
                f"a body turns by {turn:.2g} rad in a tick, and from {MOST_TURN} on particles may pass "
                f"through its walls; use dt <= {MOST_TURN / turn * dt:.2g} s",
                "turns",
            )

    def lint(self, world: World) -> list[str]:
        """Warn of populations that were removed entirely at the start, and of liquid that was in part."""
        gone = [
            f"all {count} particles of {name!r} lie inside a body or outside all containers, and were "
            "removed at the start; move them, or the bodies"
            for name, count in self._gone.items()
        ]
        return gone + [
            f"{lost} of {count} particles of liquid {name!r} lie outside all containers, and were removed at "
            "the start; move the liquid, or the container"
            for name, (lost, count) in self._spilled.items()
        ]

    def keep_back(self) -> None:
        """Keep back and count new particles inside bodies, as these stand now."""
        entities = body_entities(self.world)
        if entities:
            bodies = self._obstacles(entities, moving=False)
            self.field(CollisionCount).cleared[0] += self._keep_back_new(*bodies)

    def overlap(self, points: Array, reach: float = 0.0) -> Array:
        """Depth (n,) m of points (n, 3) m inside a body or outside all containers; elsewhere <= 0.

        It is minus the distance at points up to `reach` m beside a body, and farther away less than that.
        """
        bodies, hulls = gathered(body_entities(self.world))
        return depths(as_obstacles(bodies, hulls, max(reach, self.clearance)), hulls, points)

    def open_part(self, points: Array, sides: Array, halvings: int = HALVINGS) -> Array:
        """Part (n,), 0 to 1, that is outside bodies and in a container, of boxes around points (n, 3) m.

        The boxes have `sides` (3,) m, at least one above 0. What a surface may cut is halved along each of
        these, `halvings` times; a part is then cut across at its middle's distance from the surface, which is
        exact for planes across an axis, and else what one box loses others gain.
        """
        reach = 0.5 * float(np.sqrt((sides**2).sum()))
        depth = self.overlap(points, reach)
        part: Array = np.clip(0.5 - depth / sides.max(), 0.0, 1.0)
        cut = np.flatnonzero(np.abs(depth) < reach)
        if len(cut) and halvings:
            halves = [(-0.25, 0.25) if side > 0 else (0.0,) for side in sides]
            offsets = np.array(list(product(*halves))) * sides
            inner = (points[cut, None] + offsets).reshape(-1, 3)
            part[cut] = self.open_part(inner, sides / 2, halvings - 1).reshape(len(cut), -1).mean(axis=1)
        return part

    def keeps(self, entity: Entity) -> bool:
        """Whether there are bodies, and this system keeps the entity's particles out of them."""
        ours = not self.on or entity.name in self.on
        return ours and not of_bodies(entity) and bool(body_entities(self.world))

    def followed(self, start: Array, end: Array) -> Array:
        """Ends (n, 3) m of paths from `start`, outside bodies, towards `end`, with bodies as they stand
        now."""
        from ecs_fluid.kernels.collision.collide import collide
        from ecs_fluid.kernels.compiled import CHUNKS

        x, none = np.array(end, np.float64), np.zeros((0, 3))
        counts, touched = np.zeros((CHUNKS, 3), np.int64), np.empty(len(x), np.int64)
        rounding = float(np.finfo(self.world.dtype).eps)
        bodies = self._obstacles(body_entities(self.world), moving=False)
        collide(*bodies, start, x, none, none, 0.0, self.clearance, 0.0, rounding, counts, touched)
        return x

    def _obstacles(self, entities: list[Entity], moving: bool) -> tuple[Obstacles, Hulls]:
        """Bodies moving through this tick, or at rest as they stand now."""
        (bodies, hulls), former = gathered(entities), None
        if moving:
            former = column_of(entities, FormerPose, "x"), column_of(entities, FormerPose, "q")
        return as_obstacles(bodies, hulls, self.clearance, former), hulls

    def _keep_back_new(self, obstacles: Obstacles, hulls: Hulls) -> int:
        """Keep back misplaced new particles of emitters; returns their number."""

        def misplaced(batch: NewRows) -> Array:
            position: Any = batch.tables.get(Position)
            if position is None or (self.on and batch.name not in self.on):
                return np.zeros(batch.rows, dtype=bool)
            return are_misplaced(obstacles, hulls, position.x)

        cleared = 0
        for name, (lost, of) in self.world._drop_new_rows(misplaced).items():
            cleared += lost
            self._lost[name] = row = self._lost.get(name, 0) + lost if lost == of else 0
            if row >= IN_A_ROW:
                self.warn(
                    f"all of the last {row} particles that emitters added to {name!r} are inside a body or "
                    "outside all containers, and were removed; move the emitter",
                    name,
                )
        return cleared

    def _remove_misplaced(self, world: World) -> int:
        """Remove misplaced particles; returns their number."""
        cleared = 0
        if not (entities := body_entities(world)):
            return cleared
        walls, bodies = containers(world), self._obstacles(entities, moving=False)
        for entity, (position,) in self.chosen(Position):
            lost = are_misplaced(*bodies, position.x)
            if lost.any():
                if lost.all():
                    self._gone[entity.name] = len(lost)
                elif Liquid in entity and (outside := outside_all(walls, position.x)):
                    self._spilled[entity.name] = outside, len(lost)
                entity.kill(lost)
                cleared += int(lost.sum())
        return cleared
