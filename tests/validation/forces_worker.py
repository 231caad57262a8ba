"""Prints the state hash of a world with all that acts between bodies and fluid, by thread count, as JSON.

Usage: python forces_worker.py 1,2,4; run by test_body_books.
"""

from __future__ import annotations

import sys

import numpy as np
from solids import balls, box, room, solid
from thread_hashes import print_hashes

import ecs_fluid as ef


def busy_world(precision: str = "single") -> ef.World:
    """Warm particles and tracers in a room with balls and a box that float, are slowed, heated and hit."""
    draw = np.random.default_rng(3)
    world = ef.World(dt=0.02, precision=precision, integrator="rk2", seed=1)
    world.spawn("smoke", ef.Position(draw.uniform(-1, 1, (3000, 3))))
    n = 600
    world.spawn(
        "gas",
        ef.Position(draw.uniform(-1, 1, (n, 3))), ef.Strength(0.02 * draw.standard_normal((n, 3))),
        ef.CoreRadius(np.full(n, 0.2)), ef.Volume(np.full(n, 8.0 / n)),
        ef.Temperature(draw.uniform(280, 400, n)),
    )  # fmt: skip
    x = np.array([[0.4 * i, 0.4 * j, 0.5] for i in (-1, 0, 1) for j in (-1, 0, 1)])
    balls(world, "balls", x, radius=0.12, mass=0.01, v=draw.standard_normal((9, 3)))
    one = np.ones(9)
    world.attach("balls", ef.BodyHeat(500 * one, 5 * one, 20 * one, one / 300, 300 * one))
    solid(world, "block", box(0.4, 0.3, 0.2), center=(0.1, 0, -0.3), density=1.3, angular_velocity=(3, 4, 5))
    room(world, "room", box(2.0, 2.2, 2.4), angular_velocity=(0, 0.2, 0.1))
    world.set_fluid(density=1.2, law="ideal_gas", temperature=300.0, viscosity=1e-3)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons", tracers="solver"),
            ef.StretchSystem(),
            ef.AdvectionSystem(),
            ef.BaroclinicSystem(),
            ef.BodySystem(),
            ef.CollisionSystem(),
            ef.BuoyancySystem(),
            ef.DragSystem(lift=0.3),
            ef.ConductionSystem(reach=0.1),
            ef.ReactionSystem(tracer_volume=1e-4 / 1.2, angular="tracers"),
        ]
    )
    return world


def hashed() -> str:
    world = busy_world()
    world.step(5)
    return world.state_hash()


if __name__ == "__main__":
    print_hashes(sys.argv[1], hashed)
