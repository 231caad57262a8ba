"""Bodies for the tests: spawned with exact mass properties from plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.components.bodies import KINDS_OF_MOTION
from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe

Array = np.ndarray


def body_world(
    dt: float = 1 / 60,
    precision: str = "double",
    gravity: Any = (0.0, 0.0, -9.81),
    **system: Any,
) -> ef.World:
    """A world with a BodySystem."""
    world = ef.World(dt=dt, precision=precision, integrator="euler")
    world.set_fluid(gravity=gravity)
    world.add_systems([ef.AdvectionSystem(), ef.BodySystem(**system)])
    return world


def balls(
    world: ef.World, name: str, x: Any, radius: float = 0.1, mass: float = 1.0, **given: Any
) -> ef.Entity:
    """Balls at x (n, 3); given: v, spin (n, 3), motion, restitution, friction."""
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    n = len(x)
    return world.spawn(
        name,
        ef.Pose(x, np.tile([1.0, 0, 0, 0], (n, 1))),
        ef.RigidMotion(np.atleast_2d(given.get("v", np.zeros((n, 3)))) * 1.0, np.zeros((n, 3))),
        ef.Body(
            np.full(n, mass),
            np.tile(0.4 * mass * radius**2 * np.eye(3), (n, 1, 1)),
            np.full(n, KINDS_OF_MOTION[given.get("motion", "free")]),
            np.full(n, given.get("restitution", 0.0)),
            np.full(n, given.get("friction", 0.0)),
        ),
        ef.BallShape(np.full(n, radius)),
    )


def solid(world: ef.World, name: str, shape: dict[str, Any], **given: Any) -> ef.Entity:
    """One body by its recipe."""
    BodyRecipe(name=name, shape=shape, **given).build(world)
    return world[name]


def room(world: ef.World, name: str, shape: dict[str, Any], **given: Any) -> ef.Entity:
    """One container by its recipe."""
    ContainerRecipe(name=name, shape=shape, **given).build(world)
    return world[name]


def box(x: float, y: float, z: float) -> dict[str, Any]:
    """Shape of a box of these edges."""
    return {"shape": "box", "size": [x, y, z]}


class Motor(ef.System):
    """A user's own system, which turns and kicks everything."""

    adds = (ef.BodyLoad,)
    phase = "move"
    before = ("BodySystem",)

    torque: tuple[float, float, float] = (0.0, 0.0, 0.0)
    kick: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def process(self, dt: float) -> None:
        for (load,) in self.query(ef.BodyLoad):
            load.torque += self.torque
            load.kick += self.kick


def floor(world: ef.World, **given: Any) -> ef.Entity:
    """A fixed block with its top at z = 0."""
    return solid(world, "floor", box(20, 20, 2), center=(0, 0, -1), motion="fixed", **given)


def momenta(world: ef.World) -> tuple[Array, Array, float]:
    """Linear and angular momentum about the origin, and kinetic energy, of the free bodies."""
    return momenta_of([entity for entity, _ in world.entities_with(ef.Body)])


def momenta_of(entities: list[ef.Entity]) -> tuple[Array, Array, float]:
    """The same of some entities."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    linear, angular, energy = np.zeros(3), np.zeros(3), 0.0
    for entity in entities:
        pose, motion, body = entity[ef.Pose], entity[ef.RigidMotion], entity[ef.Body]
        for k in np.flatnonzero(body.motion == KINDS_OF_MOTION["free"]):
            turn = matrix_of(pose.q[k])
            angular_velocity = turn @ body.inertia[k] @ turn.T @ motion.angular_velocity[k]
            linear += body.mass[k] * motion.v[k]
            angular += angular_velocity + np.cross(pose.x[k], body.mass[k] * motion.v[k])
            energy += 0.5 * (
                body.mass[k] * motion.v[k] @ motion.v[k] + angular_velocity @ motion.angular_velocity[k]
            )
    return linear, angular, energy
