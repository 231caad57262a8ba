"""Bodies in a plane for the tests of their boundary layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.worlds.bodies import BodyRecipe

Array = np.ndarray
R = 0.5
AREA = np.pi * R**2


def plane_world(
    lattice: float,
    viscosity: float,
    dt: float,
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
    plane: str = "xy",
    precision: str = "double",
    solver: str = "auto",
    **boundary: Any,
) -> ef.World:
    """A world in a plane that waits for bodies."""
    world = ef.World(dimension=2, plane=plane, dt=dt, precision=precision)
    world.set_fluid(viscosity=viscosity, gravity=(0.0, 0.0, 0.0))
    world.add_systems(
        [
            ef.VelocitySystem(solver=solver),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.DiffusionSystem(),
            ef.WindSystem(velocity=wind),
            ef.BoundarySystem(boundary="layer", lattice=lattice, **boundary),
        ]
    )
    return world


def body(world: ef.World, shape: dict[str, Any] | None = None, **given: Any) -> ef.Entity:
    """A body by its recipe, a disk of the radius R by default."""
    shape = shape or {"shape": "ball", "radius": R}
    BodyRecipe(name="body", shape=shape, **{"motion": "scripted", **given}).build(world)
    return world["body"]


def vorticity(world: ef.World) -> tuple[Array, Array]:
    """Places (n, 3) and circulations (n,) times a metre of all vortons of the wake."""
    wake = world["wake"]
    return wake[ef.Position].x.astype(float), wake[ef.Strength].alpha.astype(float)[:, world.across]


def inverse_laplace(transform: Callable[[Array], Array], t: float, terms: int = 24) -> float:
    """f(t) from its transform by Talbot's contour (Abate and Valko 2004), to some 12 digits."""
    turn = np.arange(1, terms) * np.pi / terms
    cot = 1 / np.tan(turn)
    s = np.concatenate([[2 * terms / 5 + 0j], 2 * np.arange(1, terms) * np.pi / 5 * (cot + 1j)])
    weight = np.concatenate([[0.5 + 0j], 1 + 1j * turn * (1 + cot**2) - 1j * cot])
    return float(2 / (5 * t) * (weight * np.exp(s) * transform(s / t)).sum().real)


def shedding(plane: str = "xy", precision: str = "single") -> ef.World:
    """A box that moves and turns beside a fixed disk, with smoke."""
    world = plane_world(0.05, 0.01, 0.04, plane=plane, precision=precision)
    first, second = ("xyz".index(axis) for axis in plane)
    place, turn, speed, size = np.zeros(3), np.zeros(3), np.zeros(3), np.ones(3)
    # In x-z the axis across is y, about which x turns to -z.
    place[second], turn[world.across], speed[first] = 1.1, 2.0 if plane == "xy" else -2.0, 1.0
    size[first], size[second] = 0.6, 0.3
    body(world, {"shape": "box", "size": size.tolist()}, velocity=speed, angular_velocity=turn)
    BodyRecipe(name="disk", shape={"shape": "ball", "radius": 0.3}, motion="fixed", center=place).build(world)
    smoke = np.zeros((300, 3))
    smoke[:, [first, second]] = np.random.default_rng(2).uniform(-1.0, 1.5, (300, 2))
    world.spawn("smoke", ef.Position(smoke))
    world.add_system(ef.CollisionSystem())
    return world
