"""Few particles far from all others: the field grid leaves them out, and they get the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.systems.velocity.pppm import relative_error
from tests.systems.velocity.test_sampled_error import made

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

FAR = [[400.0, 0.0, 0.0], [0.0, -3e6, 20.0]]


def strayed(vortons: bool, **velocity: Any) -> ef.World:
    """The ring and its tracers, two of which, or two vortons, are far away."""
    world = made(every=1, **velocity)
    world["ring" if vortons else "tracers"][ef.Position].x[[7, 300]] = FAR
    return world


@pytest.mark.parametrize("tracers", ["grid", "cells"])
@pytest.mark.parametrize("at", ["vortons", "grid"])
@pytest.mark.parametrize("vortons", [True, False])
def test_strays_cost_the_others_no_digits(vortons: bool, at: str, tracers: str) -> None:
    """Against the sums at the particles: as near as without strays, at the strays themselves to rounding.

    On a grid around all of them nothing would be right.
    """
    world, exact = strayed(vortons, at=at, tracers=tracers), strayed(vortons, tracers="solver")
    world.evaluate()
    exact.evaluate()
    assert world.system(ef.PartitionSystem).leaves_out
    for name in ("ring", "tracers"):
        found, meant = world[name][ef.Velocity].u, exact[name][ef.Velocity].u
        assert relative_error(found, meant) < 0.02
        if vortons == (name == "ring"):
            np.testing.assert_allclose(found[[7, 300]], meant[[7, 300]], rtol=1e-9)
    found, meant = world["ring"][ef.VelocityGradient].du, exact["ring"][ef.VelocityGradient].du
    assert relative_error(found, meant) < 0.05
    world.step()
    assert world.history[-1]["velocity_error"] < 0.02


def test_the_grid_is_around_all_where_a_solver_needs_them_or_it_costs_little() -> None:
    """Poisson's equation takes vorticity from the grid; without strays all lie in it."""
    for world, out in ((strayed(False, solver="poisson"), False), (made(), False), (strayed(True), True)):
        world.evaluate()
        assert world.system(ef.PartitionSystem).leaves_out == out
        grid, x = world.fluid[ef.Grid], world["tracers"][ef.Position].x
        inside = (x >= grid.origin) & (x <= grid.origin + grid.spacing * grid.cells)
        assert inside.all() or out


def test_two_clouds_far_apart_are_no_strays() -> None:
    """As many particles in both: the grid is around both, however coarse that is."""
    world = made()
    x = world["tracers"][ef.Position].x
    x[::2] += (400.0, 0.0, 0.0)
    world.evaluate()
    grid = world.fluid[ef.Grid]
    assert (x[:, 0] <= grid.origin[0] + grid.spacing[0] * grid.cells[0]).all()


def test_of_a_few_particles_none_is_a_stray() -> None:
    """Three vortices of a plane 10 m apart, with cores of 1 cm: the field shows them all."""
    world = ef.World(dt=1e-3, precision="double", dimension=2, plane="xy")
    x = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0], [5.0, 9.0, 0.0]])
    world.spawn("vortices", ef.Position(x), ef.Strength([[0.0, 0.0, 1.0]] * 3), ef.CoreRadius([0.01] * 3))
    world.spawn("dust", ef.Position(x * 1.1))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    world.evaluate()
    grid = world.fluid[ef.Grid]
    assert not world.system(ef.PartitionSystem).leaves_out
    assert ((x >= grid.origin) & (x <= grid.origin + grid.spacing * grid.cells))[:, :2].all()
