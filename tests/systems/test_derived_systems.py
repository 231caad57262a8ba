"""A system of a class derived from one that ships counts as that one for all other systems."""

from __future__ import annotations

import numpy as np

import ecs_fluid as ef
from ecs_fluid.systems.boundary.coupling import coupling_of
from ecs_fluid.systems.shared.body_tables import gathered
from ecs_fluid.worlds import BodyRecipe, ContainerRecipe


class _Fire(ef.CombustionSystem):
    """Fire of a user's own."""


class _Spreading(ef.DiffusionSystem):
    """Diffusion of a user's own."""


class _Walls(ef.BoundarySystem):
    """A boundary of a user's own."""


class _Reaction(ef.ReactionSystem):
    """A reaction of a user's own."""


def test_what_a_derived_system_does_is_not_told_as_missing() -> None:
    world = ef.World()
    world.set_fluid(viscosity=1e-3)
    x = np.random.default_rng(1).random((8, 3))
    vortons = ef.Strength(np.ones((8, 3))), ef.CoreRadius(np.ones(8)), ef.Volume(np.ones(8))
    world.spawn("gas", ef.Position(x), *vortons, ef.Species(fuel=np.full(8, 0.1)))
    world.add_system(ef.VelocitySystem())
    sentences = ("but nothing burns it", "no DiffusionSystem spreads")
    assert all(any(words in text for text in world.lint()) for words in sentences)
    world.add_systems([_Fire(), _Spreading()])
    assert not any(words in text for text in world.lint() for words in sentences)


def test_walls_of_a_derived_boundary_are_felt() -> None:
    """Vortons in a container are told to pass its walls, unless a boundary enforces them."""
    world = ef.World()
    room = {"shape": "box", "size": [4.0, 4.0, 4.0]}
    ContainerRecipe(name="room", shape=room).build(world)
    world.spawn("gas", ef.Position(np.zeros((1, 3))), ef.Strength(np.ones((1, 3))), ef.CoreRadius(np.ones(1)))
    world.add_system(ef.VelocitySystem())
    assert any("flow passes through its walls" in text for text in world.lint())
    world.add_system(_Walls())
    assert not any("flow passes through its walls" in text for text in world.lint())


def test_bodies_take_the_reaction_of_derived_systems() -> None:
    """Boundary and reaction find each other, so that the fluid moves the ball along the axes of the plane."""
    world = ef.World(dimension=2, plane="xz", precision="double")
    world.set_fluid(density=1.0, viscosity=0.05)
    ball = {"shape": "ball", "radius": 0.5}
    BodyRecipe(name="ball", shape=ball, density=3.0).build(world)
    boundary = _Walls(boundary="layer", lattice=0.25)
    world.add_systems([boundary, _Reaction(linear="vortons")])
    bodies, _ = gathered([world["ball"]])
    assert coupling_of(boundary, bodies).axes.tolist() == [0, 2]
