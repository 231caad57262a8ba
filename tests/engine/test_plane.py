"""Worlds of two dimensions: what is refused, with which sentence, and what stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, RecipeError, ScheduleError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.worlds.world_recipe import WorldRecipe
from tests.resuming import resumed


def vortices(**options: Any) -> ef.World:
    """Sixty vortices in a plane, which move themselves."""
    plane = options.get("plane", "xy")
    world = ef.World(**{"dimension": 2, "dt": 0.05, **options})
    draw, n = np.random.default_rng(4), 60
    x, alpha = np.zeros((n, 3)), np.zeros((n, 3))
    x[:, ["xyz".index(axis) for axis in plane]] = draw.standard_normal((n, 2))
    alpha[:, 3 - "xyz".index(plane[1])] = draw.standard_normal(n)
    world.spawn("v", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(n, 0.4)))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    return world


def test_a_plane_is_for_two_dimensions() -> None:
    with pytest.raises(RecipeError, match="plane = 'xz' is for worlds of dimension = 2; set dimension = 2"):
        ef.World(plane="xz")
    for plane in ("xy", "xz"):
        with pytest.raises(
            RecipeError, match=f"plane = '{plane}' is for worlds of dimension = 2; set dimension = 2"
        ):
            ef.load({"world": {"plane": plane}})


def test_systems_and_recipes_that_are_for_space_are_refused() -> None:
    world = vortices()
    with pytest.raises(ScheduleError) as error:
        world.add_system(ef.SphSystem())
    assert str(error.value) == (
        "SphSystem works only in a world of dimension = 3, but this one has dimension = 2; leave it out, "
        "or change "
        "the dimension"
    )
    tables = {
        "world": {"dimension": 2},
        "entity": [{"kind": "vortex_ring", "name": "ring"}],
    }
    with pytest.raises(RecipeError) as refused:
        WorldRecipe.from_tables(tables).build()
    assert str(refused.value) == (
        "[[entity]] 'ring': kind = 'vortex_ring' works only in a world of dimension = 3, but this one has "
        "dimension = 2; leave it out, or change the dimension"
    )


def test_systems_and_solvers_of_a_users_own_have_to_say_so() -> None:
    class Spin(ef.System):
        """Turn everything."""

        def process(self, dt: float) -> None:
            pass

    with pytest.raises(ScheduleError, match=r"set Spin.dimensions = \(2, 3\) if it is right in a plane"):
        vortices().add_system(Spin())
    Spin.dimensions = (2, 3)
    vortices().add_system(Spin())

    class NearestSolver(ef.Solver):
        """One that knows nothing of planes."""

    with pytest.raises(RecipeError, match="solver = 'nearest' works only in a world of dimension = 3"):
        ef.World(dimension=2).add_system(ef.VelocitySystem(solver="nearest"))


def test_dimensions_are_two_or_three() -> None:
    with pytest.raises(ScheduleError, match=r"Flat\.dimensions is 2; \(2,\), \(3,\) or \(2, 3\) is needed"):

        class Flat(ef.System):
            dimensions = 2  # type: ignore[assignment]

    with pytest.raises(RecipeError, match="dimension"):
        ef.World(dimension=4)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("plane", ["xy", "xz"])
@pytest.mark.parametrize(
    ("table", "column", "across", "rule"),
    [("Position", "x", True, "only 0 along"), ("Strength", "alpha", False, "only the part along")],
)
def test_what_leaves_the_plane_is_refused(
    plane: str, table: str, column: str, across: bool, rule: str
) -> None:
    world = vortices(plane=plane)
    axis = "xyz".index(plane[1]) if not across else 3 - "xyz".index(plane[1])
    getattr(world["v"][getattr(ef, table)], column)[7, axis] = 0.25
    with pytest.raises(ComponentError) as error:
        world.step()
    assert str(error.value) == (
        f"entity 'v': {table}.{column} row 7 along {'xyz'[axis]} is 0.25; in a world of dimension = 2 in the "
        f"plane {plane} {rule} {'xyz'[3 - 'xyz'.index(plane[1])]} is allowed"
    )


class Pull(ef.Component):
    """A force in the plane, and a torque."""

    f: ef.Array = ef.column("N", shape=(3,), plane="in")
    t: ef.Array = ef.column("N m", shape=(3,), plane="across")


def test_vectors_of_a_users_own_may_say_what_the_plane_allows() -> None:
    world = ef.World(dimension=2)
    world.spawn("a", Pull([[1.0, 2.0, 0.0]], [[0.0, 0.0, 3.0]]))
    world.step()
    world["a"][Pull].t[0, 1] = 0.5
    with pytest.raises(ef.ComponentError, match=r"Pull\.t row 0 along y is 0.5; .* only the part along z"):
        world.step()
    with pytest.raises(ef.ComponentError, match=r"plane = 'along' with shape = .3,.; 'in' or 'across'"):
        ef.column("N", shape=(3,), plane="along")  # type: ignore[arg-type]


def test_wind_across_the_plane_is_found_when_it_has_blown() -> None:
    world = vortices()
    world.add_system(ef.WindSystem(velocity=(0.0, 0.0, 1.0)))
    world.step()
    with pytest.raises(ComponentError, match=r"Position\.x row 0 along z is 0\.05; in a world"):
        world.step()


def test_both_planes_have_the_same_bits() -> None:
    """x-z is x-y turned about x: z in the place of y, and strengths along -y in that of z."""
    flat, upright = (vortices(plane=plane, precision="double") for plane in ("xy", "xz"))
    flat["v"][ef.Strength].alpha[...] = -upright["v"][ef.Strength].alpha[:, [0, 2, 1]]
    for world in (flat, upright):
        world.step(5)
    assert (flat["v"][ef.Position].x == upright["v"][ef.Position].x[:, [0, 2, 1]]).all()
    assert (flat["v"][ef.Position].x[:, 2] == 0.0).all()


@pytest.mark.parametrize(("plane", "across"), [("xy", 2), ("xz", 1)])
def test_a_tube_is_across_its_plane_by_default(plane: Any, across: int) -> None:
    tube = {"kind": "vortex_tube", "name": "vortex", "circulation": 2.0}
    world = ef.load({"world": {"dimension": 2, "plane": plane}, "entity": [tube]})
    world.step()
    total = world["vortex"][ef.Strength].alpha.sum(axis=0)
    np.testing.assert_allclose(total, 2.0 * np.eye(3)[across], rtol=1e-6)


def test_a_thin_tube_across_a_plane_is_one_blob_which_no_spacing_makes_smoother() -> None:
    tube = {"kind": "vortex_tube", "name": "vortex", "profile": "thin", "core": 0.02}
    flat = ef.WorldRecipe.from_tables({"world": {"dimension": 2}, "entity": [tube]})
    upright = ef.WorldRecipe.from_tables({"entity": [tube]})
    assert len(flat.build()["vortex"]) == 1 and flat.lint() == []
    assert any("overlap 0.25 < 1.5, the tube will be noisy" in text for text in upright.lint())


def test_a_plane_in_space_and_stretching_in_a_plane_are_told() -> None:
    x, alpha = np.zeros((9, 3)), np.zeros((9, 3))
    x[:, 0], x[:, 2], alpha[:, 1] = np.arange(9), np.arange(9) % 3, 1.0
    world = ef.World()
    world.spawn("row", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(9, 2.0)))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    assert [text for text in world.lint() if "plane" in text] == [
        "all vortons lie in the plane y = 0 m with their vorticity perpendicular to it, and each acts as a "
        "short piece of a vortex line; for flow in a plane give the world dimension = 2, where each stands "
        "for a whole line"
    ]
    alpha[3, 0] = 0.1
    world["row"][ef.Strength].alpha[...] = alpha
    assert not [text for text in world.lint() if "plane" in text]
    world = vortices()
    world.add_system(ef.StretchSystem())
    told = "StretchSystem has no effect in a world of dimension = 2, where vorticity is perpendicular to "
    assert f"{told}the flow; leave it out" in world.lint()


def test_gravity_across_the_plane_is_told() -> None:
    world = vortices()
    world.attach("v", ef.Volume(np.full(60, 0.01)))
    world.add_system(ef.BaroclinicSystem())
    assert (
        "gravity [0.0, 0.0, -9.81] m/s^2 is perpendicular to the plane xy, so BaroclinicSystem generates no "
        "vorticity; give the fluid a gravity in the plane"
    ) in world.lint()
    world.set_fluid(gravity=(0.0, -9.81, 0.0))
    assert not [text for text in world.lint() if "perpendicular to the plane" in text]


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path: Path) -> None:
    world = vortices(plane="xz", integrator="rk3")
    world.step(3)
    again = resumed(world, tmp_path, 3)
    assert (again.dimension, again.across) == (2, 1)


def test_every_class_says_what_it_is_for() -> None:
    for base in (System, Recipe):
        for kind in base.registry.values():
            if is_shipped(kind):
                assert set(kind.dimensions) <= {2, 3} and 3 in kind.dimensions, kind
