"""Openings of inflows in a world: the layers of liquid from them, and whether new particles have room."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.keyframes import integral, value_at
from ecs_fluid.systems.liquid.places import LEAST_GAP, near_solids
from ecs_fluid.systems.shared.births import births
from ecs_fluid.systems.shared.carriers import bodies, own_velocity
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.inflow import Inflow

REACH = 3.0
"""Reach within which other liquid counts, and length of the pipe behind an opening, in spacings."""

FULL, AROUND = 0.9, 0.25
"""Density of the liquid at a place over its density at rest from which a new particle has no room there, and
from which, in the rear half of a pipe, the pipe is under liquid."""

CLEAR = 0.8
"""Least distance, in spacings, of new particles from present liquid, for an opening that jumps. Layers of
other openings are kept apart by the way that they move."""


class Opening:
    """The opening of an inflow, with its carrier as it is when a tick begins, or when it has `ended`."""

    def __init__(self, inflow: Inflow, world: World, ended: bool = False) -> None:
        self._inflow, self._world = inflow, world
        self._carrier = None if inflow.attached is None else bodies(world, inflow.attached, ended)

    @property
    def carrier_gone(self) -> bool:
        """Whether its carrier is gone; then nothing flows from it."""
        return self._carrier is not None and not len(self._carrier.x)

    def layers(self, moments: Array, ahead: Array, flows: bool = True) -> tuple[Array, Array]:
        """Places (n, 3) m and velocities (n, 3) m/s of layers `ahead` (m,) m of the opening at moments (m,)
        s.

        Their velocity is the opening's own, plus the speed of the inflow where it `flows`.
        """
        if self.carrier_gone:
            return np.empty((0, 3)), np.empty((0, 3))
        inflow, n = self._inflow, len(moments)
        layer = inflow.layer()
        way = np.broadcast_to(value_at(inflow.direction, moments), (n, 3))
        way = way / np.linalg.norm(way, axis=1, keepdims=True)
        first = np.cross((0.0, 0.0, 1.0), way)
        first[np.linalg.norm(first, axis=1) < 1e-6] = (1.0, 0.0, 0.0)
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        second = np.cross(way, first)
        middle = value_at(inflow.center, moments) + ahead[:, None] * way
        across = layer[None, :, :1] * first[:, None] + layer[None, :, 1:] * second[:, None]
        v = float(flows) * np.broadcast_to(value_at(inflow.speed, moments), n)[:, None] * way
        v = v + own_velocity(inflow.center, self._world)
        x, v = (middle[:, None] + across).reshape(-1, 3), np.repeat(v, len(layer), axis=0)
        if self._carrier is None:
            return x, v
        frames = self._carrier.frames(np.repeat(moments, len(layer)), np.zeros(len(x), np.int64))
        return frames.placed(x), frames.turned(v) + frames.velocity(x)

    def pipe(self, time: float) -> tuple[Array, Array]:
        """Places and velocities (n, 3) of the layers in the pipe, which leave next."""
        each, start, stop = self._inflow.thickness, self._inflow.start, self._inflow.stop
        now = max(time, start) if stop is None else min(max(time, start), stop)
        number, _ = births(self._inflow.speed, start, stop, now, now, each, ahead=0.5)
        far = (number + 0.5) * each - integral(self._inflow.speed, start, now)
        ahead = -np.arange(far, REACH * self._inflow.edge, each)
        flows = start <= time < (math.inf if stop is None else stop)
        return self.layers(np.full(len(ahead), time), ahead, flows)

    def room(self, x: Array) -> Array:
        """Mask (n,) of new places (n, 3) m with room: away from solids and walls, contained, not in liquid.

        No place has room as long as liquid stands around the pipe, behind its opening.
        """
        behind, _ = self.pipe(self._world.tick * self._world.dt)
        if not len(x) or self._density_and_distance(behind[len(behind) // 2 :])[0].max(initial=0.0) > AROUND:
            return np.zeros(len(x), bool)
        margin = LEAST_GAP * self._inflow.edge
        walls, free = containers(self._world), ~near_solids(self._world, x, margin)
        if walls:
            free &= np.any([wall.inside(x, margin) for wall in walls], axis=0)
        crowd, nearest = self._density_and_distance(x)
        if self._inflow.jumps:
            free &= nearest >= CLEAR * self._inflow.edge
        return np.asarray(free & (crowd < FULL))

    def _density_and_distance(self, x: Array) -> tuple[Array, Array]:
        """Density (n,) of the present liquid at places (n, 3) m, over that at rest, w_0 sum phi; and the
        distance (n,) m of its nearest particle, inf where none is within reach."""
        from scipy.spatial import cKDTree

        from ecs_fluid.kernels.sph.forces import lattice_weight, phi

        reach, crowd, nearest = REACH * self._inflow.edge, np.zeros(len(x)), np.full(len(x), np.inf)
        if not len(x):
            return crowd, nearest
        low, high = x.min(axis=0) - reach, x.max(axis=0) + reach
        for _, (position, _) in self._world.entities_with(Position, Liquid):
            near = position.x[((position.x > low) & (position.x < high)).all(axis=1)]
            if len(near):
                pairs = cKDTree(x).sparse_distance_matrix(cKDTree(near), reach, output_type="ndarray")
                crowd += np.bincount(pairs["i"], phi(pairs["v"] / reach), len(x))
                np.minimum.at(nearest, pairs["i"], pairs["v"])
        return lattice_weight(REACH) * crowd, nearest
