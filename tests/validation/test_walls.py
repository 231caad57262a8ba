"""Buoyancy at the walls of containers. Articles K2 and K3."""

from __future__ import annotations

import numpy as np
import pytest
from solids import box, room

import ecs_fluid as ef

Array = np.ndarray


def filled(walls: str, gradient: str = "neighbours", tilt: float = 0.0) -> tuple[ef.World, Array]:
    """A box of 1 m, filled with particles of horizontally even density; (world, d alpha/dt of them).

    Density 1100 - 200 z: a real gradient, so that at rest only walls can make vorticity.
    """
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    room(world, "room", box(1, 1, 1), rotation=(0.0, 0.0, tilt))
    line = np.arange(-0.45, 0.5, 0.1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    c, s = np.cos(tilt), np.sin(tilt)
    x = x @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])
    n = len(x)
    world.spawn(
        "water",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.15)),
        ef.Volume(np.full(n, 1e-3)), ef.Density(1100 - 200 * x[:, 2]),
    )  # fmt: skip
    world.set_fluid(density=1000.0)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.BaroclinicSystem(walls=walls, gradient=gradient),
        ]
    )
    world.evaluate()
    return world, world["water"][ef.StrengthRate].dalpha


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_fluid_at_rest_generates_nothing_at_walls(tilt: float) -> None:
    """K2: 0 to rounding with mirrors (g V d(rho)/rho_0 / reach is 1e-3 of what a free edge makes: 1e-12)."""
    _, rate = filled("mirror", tilt=tilt)
    assert np.abs(rate).max() < 1e-12


def test_without_them_walls_stir() -> None:
    """The article's point: at a free edge the excess of 100 kg/m^3 falls to 0 over some 0.2 m.

    The rate is of the order g V 100/(1000 x 0.2) = 5e-3 m^3/s^2; a tenth of it is asked for.
    """
    _, rate = filled("none")
    assert np.abs(rate).max() > 5e-4


@pytest.mark.parametrize("gradient", ["neighbours", "grid"])
def test_poisoned_gradients(gradient: str) -> None:
    """The article's way: what is along a wall's normal near it is dropped, so that vertical walls are still.

    1e-12; further in nothing feels a wall, and the edges at top and bottom lie across gravity.
    """
    _, rate = filled("poison", gradient)
    assert np.abs(rate).max() < 1e-12


def test_mirrors_leave_real_gradients_alone() -> None:
    """Two fluids side by side: the torque of the interface is what it is in the middle of the box.

    d(alpha)/dt = V grad(rho) cross g/rho_0; summed over a column of 1 m^2 x the jump of 200 kg/m^3 it is
    9.81 x 0.2 = 1.96 m^3/s^2 in y per m^2 of interface, here 1 m^2; the mirrors at its rim change nothing.
    """
    world, _ = filled("mirror")
    x = world["water"][ef.Position].x
    world["water"][ef.Density].rho[...] = np.where(x[:, 0] < 0, 1100.0, 900.0)
    world.evaluate()
    rate = world["water"][ef.StrengthRate].dalpha
    # grad(rho) = -x, g = -z: -x cross -z = x cross z = -y.
    assert np.allclose(rate.sum(axis=0), [0, -1.962, 0], atol=1e-3)
    outer = np.abs(x[:, 1]) > 0.4
    inner = np.abs(x[:, 1]) < 0.1
    assert np.allclose(rate[outer].sum(axis=0), rate[inner].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("along", [(0.0, 0.0, -9.81), (-9.81, 0.0, 0.0)])
def test_gradient_of_neighbours_at_walls_and_free_edges(along: tuple[float, float, float]) -> None:
    """K3, first half: an even excess has no gradient at walls, in any direction (two gravities see three).

    At a free edge it has one: there the excess of 100 kg/m^3 ends within the reach, some 0.2 m.
    """
    for walls in ("mirror", "none"):
        world, _ = filled(walls)
        world["water"][ef.Density].rho[...] = 1100.0
        world.set_fluid(gravity=along)
        world.evaluate()
        # V grad(rho) cross g / rho_0, in kg/m^4.
        found = np.linalg.norm(world["water"][ef.StrengthRate].dalpha, axis=1) * 1000 / (1e-3 * 9.81)
        if walls == "mirror":
            assert found.max() < 1e-9
        else:
            assert found.max() > 0.5 * 100 / 0.2
            x = world["water"][ef.Position].x
            # Two reaches from the edge, whose lack of neighbours changes the weights of those within one.
            assert found[np.abs(x).max(axis=1) < 0.1].max() < 1e-9


def test_gradient_of_a_linear_ball() -> None:
    """K3, second half (scene 21): rho = 1000 + x in a ball of 1 m has |grad rho| = 1 kg/m^4 wherever all
    neighbours are in the ball, to rounding, for the gradient is exact for linear fields on a lattice."""
    line = np.arange(-0.95, 1.0, 0.1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.linalg.norm(x, axis=1) < 1.0]
    n = len(x)
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    world.spawn(
        "ball",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.15)),
        ef.Volume(np.full(n, 1e-3)), ef.Density(1000 + x[:, 0]),
    )  # fmt: skip
    world.set_fluid(density=1000.0)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.AdvectionSystem(),
            ef.BaroclinicSystem(gradient="neighbours"),
        ]
    )
    world.evaluate()
    rate = world["ball"][ef.StrengthRate].dalpha * 1000 / (1e-3 * 9.81)
    inner = np.linalg.norm(x, axis=1) < 0.5
    assert inner.sum() > 500
    # x cross -z = y.
    np.testing.assert_allclose(rate[inner], np.tile([0.0, 1.0, 0.0], (inner.sum(), 1)), atol=1e-9)
    assert np.linalg.norm(rate[np.linalg.norm(x, axis=1) > 0.9], axis=1).max() > 2.0


def test_images_of_a_corner() -> None:
    """A particle near three walls has 7 images; one in the middle none."""
    from ecs_fluid.systems.shared.walls import containers, mirrored

    world = ef.World(precision="double")
    room(world, "room", box(1, 1, 1), center=(2.0, 0, 0))
    x = np.array([[2.4, 0.45, -0.42], [2.0, 0.0, 0.0], [5.0, 0, 0]])
    rows, places = mirrored(containers(world), x, 0.2)
    assert rows.tolist() == [0] * 7
    wanted = {(a, b, c) for a in (2.4, 2.6) for b in (0.45, 0.55) for c in (-0.42, -0.58)}
    assert {tuple(place.round(12)) for place in places} == wanted - {(2.4, 0.45, -0.42)}
