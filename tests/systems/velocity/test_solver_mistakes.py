"""Mistakes in a solver of the user's own get a sentence, and move nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.components import Grid, Sources
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.targets import Targets


@pytest.fixture(autouse=True)
def registry_as_found() -> Iterator[None]:
    former = dict(Solver.registry)
    yield
    Solver.registry.clear()
    Solver.registry.update(former)


def world_with(solver: str) -> ef.World:
    world = ef.World(precision="double")
    x = np.random.default_rng(1).random((5, 3))
    world.spawn("vortons", ef.Position(x), ef.Strength(x), ef.CoreRadius(np.full(5, 0.2)))
    world.spawn("smoke", ef.Position(x + 0.1))
    world.add_systems([ef.VelocitySystem(solver=solver), ef.StretchSystem(), ef.AdvectionSystem()])
    return world


class Prepared(Solver):
    def prepare(self, sources: Sources, grid: Grid) -> None:
        pass


def rebinds(solver: Any, targets: Targets) -> None:
    targets.u = np.ones_like(targets.x)


def forgets_gradient(solver: Any, targets: Targets) -> None:
    targets.u[...] = 0.0


def does_nothing(solver: Any, targets: Targets) -> None:
    pass


@pytest.mark.parametrize(("fill", "name"), [(rebinds, "u"), (forgets_gradient, "du"), (does_nothing, "u")])
def test_what_is_not_filled_is_refused(fill: Any, name: str) -> None:
    """Before, particles moved by whatever the memory held."""
    type("FaultySolver", (Prepared,), {"fill": fill})
    world = world_with("faulty")
    former = world["smoke"][ef.Position].x.copy()
    with pytest.raises(FluidError, match=rf"FaultySolver.fill must set all of targets.{name} to numbers"):
        world.step()
    np.testing.assert_array_equal(world["smoke"][ef.Position].x, former)


def test_a_name_that_ships_is_not_taken() -> None:
    with pytest.raises(
        RecipeError, match="would take the name 'direct', which belongs to DirectSolver of ecs_fluid"
    ):
        type("DirectSolver", (Prepared,), {"fill": does_nothing})
    import ecs_fluid.worlds  # noqa: F401  (names of recipes are known from then on)

    with pytest.raises(
        RecipeError, match="would take the name 'vortex_ring', which belongs to VortexRing of ecs_fluid"
    ):
        type("Mine", (ef.Recipe,), {"kind": "vortex_ring", "__module__": __name__})


def test_a_default_that_would_not_count_is_refused() -> None:
    body = {"fill": does_nothing, "__annotations__": {"tolerance": float}, "tolerance": 1e-6}
    type("ExactSolver", (Prepared,), body)
    with pytest.raises(RecipeError, match=r"ExactSolver.tolerance has the name of a parameter"):
        ef.VelocitySystem(solver="exact")
