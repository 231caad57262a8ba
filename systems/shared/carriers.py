"""What carries emitters and openings along: bodies, in their own axes, or particles."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CarrierMotion, Position
from ecs_fluid.components.bodies import FIXED, Body, Pose, RigidMotion
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.world import World


class Frames(NamedTuple):
    """Axes of carriers at n moments: origins (n, 3) m and rotation matrices (n, 3, 3), and their velocities
    v (n, 3) m/s and spins (n, 3) rad/s."""

    origin: Array
    turn: Array
    v: Array
    spin: Array

    def turned(self, vectors: Array) -> Array:
        """Vectors (n, 3) in the carriers' axes, turned to the world's axes."""
        return np.asarray((self.turn * vectors[:, None, :]).sum(axis=2))

    def placed(self, x: Array) -> Array:
        """Places (n, 3) m in the carriers' axes, as places in the world."""
        return np.asarray(self.origin + self.turned(x))

    def velocity(self, x: Array) -> Array:
        """Velocity (n, 3) m/s of points fixed to the carriers at places x (n, 3) m in their axes."""
        return np.asarray(self.v + np.cross(self.spin, self.turned(x)))


class Carriers(NamedTuple):
    """Bodies or particles that carry something, as they are at the time `now`, s: places x (n, 3) m, unit
    quaternions q (n, 4), velocities v (n, 3) m/s and spins (n, 3) rad/s."""

    x: Array
    q: Array
    v: Array
    spin: Array
    now: float

    def frames(self, moments: Array, numbers: Array) -> Frames:
        """Axes of carriers at moments (m,) s, extrapolated from their present motion.

        `numbers` (m,) choose the carriers: all n take turns, and successive numbers are spread over all rows,
        since neighbouring rows are often of the same age.
        """
        from ecs_fluid.kernels.bodies.rotation import matrices_after

        rows = numbers * _stride(len(self.x)) % len(self.x)
        since = (moments - self.now)[:, None]
        origin = self.x[rows] + since * self.v[rows]
        turn = matrices_after(since * self.spin[rows], self.q[rows])
        return Frames(origin, turn, self.v[rows], self.spin[rows])


def bodies(world: World, name: str, ended: bool) -> Carriers:
    """The bodies of an entity as they are when a tick begins, or when it has `ended`.

    When it begins, scripted bodies have the velocities that they will have in the tick.
    """
    entity = world[name]
    pose, motion = entity[Pose], entity[RigidMotion]
    moves = (entity[Body].motion != FIXED)[:, None]
    v, spin = (moves * rate.astype(np.float64) for rate in (motion.v, motion.angular_velocity))
    mover = world.system(BodySystem)
    if mover is not None and not ended:
        for other, _, _, *rates in mover.scripted(world.dt):
            if other.name == name:
                v[:], spin[:] = rates  # of all rows: those of one body's parts carry in turn
    now = (world.tick + ended) * world.dt
    return Carriers(pose.x.astype(np.float64), pose.q.astype(np.float64), v, spin, now)


def carriers(world: World, name: str, ended: bool, together: bool = False) -> Carriers:
    """The bodies or particles of an entity as carriers; or, with `together`, one at their mean place.

    That one does not turn. When a tick begins, particles have the velocities of the tick before.
    """
    entity = world[name]
    if Pose in entity:
        single, known = bodies(world, name, ended), np.ones(len(entity), bool)
    else:
        x = entity[Position].x.astype(np.float64)
        v, known = np.zeros_like(x), np.zeros(len(x), bool)
        if CarrierMotion in entity:
            motion = entity[CarrierMotion]
            v, known = motion.v.astype(np.float64), motion.known == 1
        now = (world.tick + ended) * world.dt
        single = Carriers(x, _upright(len(x)), v, np.zeros_like(x), now)
    if not (together and len(single.x)):
        return single
    middle = single.x[:1] + _nearest(world, single.x - single.x[0]).mean(axis=0)
    # Particles that come or go shift the mean place, but do not count as its velocity.
    mean = single.v[known].mean(axis=0) if known.any() else np.zeros(3)
    return Carriers(middle, _upright(1), mean[None], np.zeros((1, 3)), single.now)


def follow(world: World, name: str, begins: bool) -> None:
    """Record where the particles of a carrying entity are when a tick begins, and their motion when it ends.

    Bodies need no such record: they have velocities of their own.
    """
    entity = world[name]
    if CarrierMotion not in entity:
        return
    x, motion = entity[Position].x, entity[CarrierMotion]
    if begins:
        motion.x[...], motion.known[...] = x, 1
        return
    displacement = _nearest(world, x.astype(np.float64) - motion.x)
    motion.v[...] = np.where(motion.known[:, None] == 1, displacement / world.dt, 0.0)


def own_velocity(center: Any, world: World) -> Array:
    """Mean velocity (3,) m/s over the tick of a `center` keyed in time; 0 where it jumps."""
    if not isinstance(center, Keyed) or center.between == "step":
        return np.zeros(3)
    ends = (value_at(center, (world.tick + k) * world.dt) for k in (1, 0))
    return np.asarray(np.subtract(*ends) / world.dt)


def _stride(count: int) -> int:
    """The whole number nearest to the golden section of `count` that has no common divisor with it."""
    golden = round(count * (math.sqrt(5.0) - 1) / 2)
    near = (golden + sign * step for step in range(count + 1) for sign in (1, -1))
    return next(number for number in near if math.gcd(number, count) == 1)


def _upright(rows: int) -> Array:
    return np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1))


def _nearest(world: World, vectors: Array) -> Array:
    """Displacements (n, 3) m, shortened to those to the nearest image in a periodic world."""
    for axis in np.flatnonzero(world.periods):
        vectors[:, axis] -= world.periods[axis] * np.rint(vectors[:, axis] / world.periods[axis])
    return vectors
