"""Prints the state hash of a world of bodies and particles by thread count, as JSON; run by test_collisions.

Usage: python bodies_worker.py 1,2,4
"""

from __future__ import annotations

import sys

import numpy as np
from solids import balls, box, room, solid
from thread_hashes import print_hashes

import ecs_fluid as ef


def crowded_world(precision: str = "single") -> ef.World:
    """Tracers, inertial particles and vortons among balls and a box in a rolling, moving container."""
    draw = np.random.default_rng(3)
    world = ef.World(dt=0.02, precision=precision, integrator="rk2", seed=1)
    world.spawn("smoke", ef.Position(draw.uniform(-1, 1, (3000, 3))))
    sparks = (
        ef.Position(draw.uniform(-1, 1, (2000, 3))),
        ef.InertialVelocity(draw.standard_normal((2000, 3))),
    )
    world.spawn("sparks", *sparks)
    world.spawn(
        "vortons",
        ef.Position(draw.uniform(-1, 1, (200, 3))),
        ef.Strength(0.05 * draw.standard_normal((200, 3))),
        ef.CoreRadius(np.full(200, 0.2)),
    )
    x = np.array([[0.3 * i, 0.3 * j, 0.5] for i in (-1, 0, 1) for j in (-1, 0, 1)])
    balls(world, "balls", x, radius=0.12, restitution=0.5, friction=0.3, v=draw.standard_normal((9, 3)))
    solid(
        world,
        "block",
        box(0.4, 0.3, 0.2),
        center=(0.1, 0, -0.3),
        velocity=(1, 0, 2),
        angular_velocity=(3, 4, 5),
    )
    room(world, "room", box(2.0, 2.2, 2.4), velocity=(0.5, 0, 0), angular_velocity=(0, 0.7, 0.2))
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons", tracers="solver"),
            ef.StretchSystem(),
            ef.AdvectionSystem(),
            ef.InertiaSystem(),
            ef.BodySystem(),
            ef.CollisionSystem(restitution=0.8),
        ]
    )
    return world


def hashed() -> str:
    world = crowded_world()
    world.step(10)
    return world.state_hash()


if __name__ == "__main__":
    print_hashes(sys.argv[1], hashed)
