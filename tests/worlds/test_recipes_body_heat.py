"""Recipes of bodies that exchange heat and take fluid along."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import RecipeError
from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe, Spheres


def test_heat_of_a_body() -> None:
    """Heat capacity is mass times the specific one; the reference is the first temperature by default."""
    world = ef.World(precision="double")
    BodyRecipe(
        name="ball", shape={"shape": "ball", "radius": 1.0}, mass=2.0,
        heat={"temperature": 350.0, "heat_capacity": 500.0, "expansion": 1e-3},
    ).build(world)  # fmt: skip
    heat = world["ball"][ef.BodyHeat]
    assert (heat.T[0], heat.capacity[0], heat.reference[0], heat.expansion[0]) == (350, 1000, 350, 1e-3)


def test_heat_of_many_balls() -> None:
    """Each of its own mass 4/3 pi r^3 rho."""
    world = ef.World(precision="double")
    Spheres(
        name="balls", centers=[(0, 0, 0), (3, 0, 0)], radius=[0.5, 1.0], density=10.0,
        heat={"heat_capacity": 3.0, "reference": 280.0},
    ).build(world)  # fmt: skip
    heat = world["balls"][ef.BodyHeat]
    assert np.allclose(heat.capacity, 40 * np.pi * np.array([0.125, 1.0]), rtol=1e-14)
    assert heat.reference.tolist() == [280, 280]


def test_a_body_starts_as_warm_as_the_fluid() -> None:
    """At the fluid's temperature of its height, 280 + 10 z, unless it has one of its own."""
    world = ef.World(precision="double")
    world.set_fluid(law="ideal_gas", temperature=285.0, temperature_profile=[(0.0, 280.0), (1.0, 290.0)])
    Spheres(name="balls", centers=[(0, 0, 0.2), (3, 0, 0.7)], radius=0.1, heat={}).build(world)
    BodyRecipe(name="ball", shape={"shape": "ball", "radius": 0.1}, center=(9, 0, 1.0), heat={}).build(world)
    assert world["balls"][ef.BodyHeat].T.tolist() == pytest.approx([282.0, 287.0], rel=1e-15)
    assert world["balls"][ef.BodyHeat].reference.tolist() == pytest.approx([282.0, 287.0], rel=1e-15)
    assert world["ball"][ef.BodyHeat].T.tolist() == [290.0]


def test_heat_of_a_container() -> None:
    """Walls of 20 kg with 500 J/(kg K) hold 10 kJ/K whatever the size of the room."""
    for size in (0.1, 10.0):
        world = ef.World(precision="double")
        ContainerRecipe(
            name="room", shape={"shape": "box", "size": [size] * 3}, mass=20.0,
            heat={"temperature": 350.0, "heat_capacity": 500.0},
        ).build(world)  # fmt: skip
        assert (world["room"][ef.BodyHeat].capacity[0], world["room"][ef.Body].mass[0]) == (1e4, 20.0)


def test_a_container_needs_mass_with_heat_only() -> None:
    """It was 1 kg, silently: boxes of 0.1 m and 10 m got the same capacity."""
    shape = {"shape": "box", "size": [1, 1, 1]}
    with pytest.raises(RecipeError, match="a container with heat needs the mass of its walls, kg"):
        ContainerRecipe(name="room", shape=shape, heat={"heat_capacity": 500.0})
    with pytest.raises(RecipeError, match="mass counts for its heat only"):
        ContainerRecipe(name="room", shape=shape, mass=20.0)


def test_added_mass_of_a_plate() -> None:
    """Three numbers along the body's axes make the tensor."""
    world = ef.World(precision="double")
    BodyRecipe(name="plate", shape={"shape": "plate"}, added_mass=(0.0, 0.1, 8.0)).build(world)
    assert world["plate"][ef.AddedMass].coefficient[0].tolist() == np.diag([0.0, 0.1, 8.0]).tolist()


def test_mistakes_are_told() -> None:
    """A temperature below zero and an added mass below 0 name the key."""
    with pytest.raises(RecipeError, match="temperature"):
        BodyRecipe(name="b", shape={"shape": "ball", "radius": 1.0}, heat={"temperature": -1.0})
    with pytest.raises(RecipeError, match="added_mass"):
        BodyRecipe(name="b", shape={"shape": "ball", "radius": 1.0}, added_mass=(-1.0, 0.0, 0.0))


def test_balls_fill_a_box() -> None:
    """0.5 m of box in cells of 0.05 m: 10^3 balls; fully shifted they keep to their cells."""
    world = ef.World(precision="double")
    Spheres(
        name="balls", box={"low": (0, 0, 0), "high": (0.5, 0.5, 0.5)}, spacing=0.05, jitter=1.0, radius=0.02
    ).build(world)
    x = world["balls"][ef.Pose].x
    assert len(x) == 1000
    cell = np.floor(x / 0.05)
    assert len(np.unique(cell, axis=0)) == 1000
    assert np.abs(x - (cell + 0.5) * 0.05).max() <= 0.005 + 1e-12
    assert np.ptp(x[:, 0] - cell[:, 0] * 0.05) > 0.009
    with pytest.raises(RecipeError, match="either centers, or box and spacing"):
        Spheres(name="balls", radius=0.02)
