"""Bodies in fluid for the tests of the boundary condition."""

from __future__ import annotations

from typing import Any

import numpy as np
from solids import balls, box, room, solid

import ecs_fluid as ef

Array = np.ndarray


def directions(number: int = 300, seed: int = 0) -> Array:
    """Unit vectors, uniform over the sphere."""
    draw = np.random.default_rng(seed).standard_normal((number, 3))
    return draw / np.linalg.norm(draw, axis=1, keepdims=True)


def rms(vectors: Array) -> float:
    """Root of the mean square length of vectors (n, 3), or of numbers (n,)."""
    return float(np.sqrt((vectors**2).sum() / len(vectors)))


def shell(
    world: ef.World, radius: float, thickness: float, spacing: float, name: str = "vortons"
) -> ef.Entity:
    """Vortons of no strength on a lattice round a ball at the origin, with cores of 1.5 spacings."""
    count = int(np.ceil((radius + thickness) / spacing))
    line = spacing * np.arange(-count, count + 1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = np.linalg.norm(x, axis=1)
    x = x[(distance > radius) & (distance < radius + thickness)]
    n = len(x)
    return world.spawn(
        name,
        ef.Position(x),
        ef.Strength(np.zeros((n, 3))),
        ef.CoreRadius(np.full(n, 1.5 * spacing)),
        ef.Volume(np.full(n, spacing**3)),
    )


def run_systems(
    world: ef.World, *more: ef.System, solver: str = "direct", **boundary: Any
) -> ef.BoundarySystem:
    """Velocity, motion and bodies without gravity, and the boundary condition."""
    system = ef.BoundarySystem(**boundary)
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    world.add_systems(
        [
            ef.VelocitySystem(solver=solver),
            ef.StretchSystem(rate=0.5),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.CollisionSystem(),
            *more,
            system,
        ]
    )
    return system


def empty_world(dt: float = 1 / 60, precision: str = "double", integrator: str = "euler") -> ef.World:
    """A world without entities."""
    return ef.World(dt=dt, precision=precision, integrator=integrator)


def ring(world: ef.World, height: float, radius: float = 0.5, count: int = 60) -> ef.Entity:
    """A vortex ring of circulation 1 m^2/s about the z axis, which goes up."""
    turn = 2 * np.pi / count * np.arange(count)
    x = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(count, height)], axis=1)
    way = np.stack([-np.sin(turn), np.cos(turn), 0 * turn], axis=1)
    return world.spawn(
        "ring",
        ef.Position(x),
        ef.Strength(way * 2 * np.pi * radius / count),
        ef.CoreRadius(np.full(count, 0.15)),
        ef.Volume(np.full(count, 1e-3)),
    )


def busy_world(boundary: str, precision: str = "single") -> ef.World:
    """A spinning free ball, a plate that swings and a ring in a box, with wind and tracers.

    By `panels` they are close enough for their sheets to be solved for together in each tick.
    """
    world = ef.World(dt=0.02, precision=precision, integrator="rk2", seed=3)
    shell(world, 0.25, 0.2, 0.1)
    ring(world, -0.6)
    draw = np.random.default_rng(5)
    world.spawn("smoke", ef.Position(draw.uniform(-0.9, 0.9, (500, 3))))
    ball = balls(world, "ball", [0.0, 0, 0], radius=0.25, v=[0.3, 0.1, 0.0])
    ball[ef.RigidMotion].angular_velocity[0] = [0.0, 3.0, 4.0]
    solid(
        world,
        "plate",
        box(0.6, 0.4, 0.1),
        center=(0.0, 0.0, 0.7),
        motion="scripted",
        angular_velocity=(0.0, 1.0, 0.5),
    )
    room(world, "room", box(2.4, 2.4, 2.4))
    world.set_fluid(viscosity=1e-3)
    run_systems(
        world, ef.WindSystem(velocity=(0.2, 0.0, 0.1)), ef.DiffusionSystem(),
        boundary=boundary, panels_across=4, most=1000,
    )  # fmt: skip
    return world
