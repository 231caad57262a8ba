"""A signed distance as a solid shape for particles."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position, SignedDistance
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.world import World

STEPS = 4
"""Most steps along the normal to bring a particle to the surface; one suffices where distances are exact."""


class SurfaceBarrierSystem(System):
    """Barrier at the SignedDistance of the fluid: particles stay on one side, whatever its shape.

    A particle closer than c = `clearance` to the surface, or beyond it, is moved back along the normal,
    x += (c - phi) grad phi (with `side` = "inside" phi and its gradient change sign), in one to four steps,
    until phi = c to rounding or to the resolution of the grid. An InertialVelocity loses its component into
    the surface, v -= (1 + e) min(v . n, 0) n, with e the `restitution`; the surface counts as at rest. Paths
    are not followed, so a particle must not cross a thin part in one tick. The distance is that of the last
    observation, or one attached to world.fluid: a landscape or a sculpture, say.
    """

    reads = (SignedDistance,)
    writes = (Position, InertialVelocity)
    phase = "constrain"
    periodic = False
    # Last, so that particles which other systems move or shed end on the right side too.
    after = (CollisionSystem, "BoundarySystem", "ReactionSystem")

    side: Literal["outside", "inside"] = "outside"
    """side on which particles stay"""
    clearance: float = Field(default=0.0, ge=0, le=1e3)
    """distance that particles keep, m"""
    restitution: float = Field(default=0.0, ge=0, le=1)
    """part of the normal velocity that inertial particles keep, reversed, 1"""
    on: tuple[Name, ...] = ()
    """entities it works on; default all particles"""

    def added(self, world: World) -> None:
        """Attach a SignedDistance for others to fill."""
        world._attach_missing("fluid", SignedDistance)

    def lint(self, world: World) -> list[str]:
        """Warn of a surface that nothing makes."""
        if self.field(SignedDistance).phi.size or any(SignedDistance in one.writes for one in world.systems):
            return []
        return [
            "SurfaceBarrierSystem does nothing: no system makes the surface; add one of kind = 'surface', or "
            "leave it out"
        ]

    def process(self, dt: float) -> None:
        """Move back the particles that have crossed."""
        table = self.field(SignedDistance)
        if not table.phi.size or not ((table.phi < 0).any() and (table.phi >= 0).any()):
            return
        for entity, (position,) in self.chosen(Position):
            if len(entity):
                self._put_back(
                    position.x, entity[InertialVelocity].v if InertialVelocity in entity else None, table
                )

    def _put_back(self, x: Array, v: Array | None, table: SignedDistance) -> None:
        from ecs_fluid.kernels.surface.level_set import distance_at, normal_at

        grid = (table.origin, table.spacing, table.phi)
        sign = 1.0 if self.side == "outside" else -1.0
        for _ in range(STEPS):
            missing = self.clearance - sign * distance_at(x, *grid)
            rows = np.flatnonzero(missing > 0)
            if not len(rows):
                return
            normal = (sign * normal_at(x[rows], *grid)).astype(x.dtype)
            x[rows] += missing[rows, None].astype(x.dtype) * normal
            if v is not None:
                into = np.minimum((v[rows] * normal).sum(axis=1, keepdims=True), 0)
                v[rows] -= x.dtype.type(1.0 + self.restitution) * into * normal
