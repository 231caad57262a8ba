"""Friction of liquid at walls: its reaction, what it takes, and a shear flow that it holds."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.sph.step import evaluate
from ecs_fluid.kernels.sph.wall_friction import NEAREST_WALL, friction_table, wall_friction
from ecs_fluid.systems.liquid.steps import HELD
from tests.kernels.sph.liquid_clouds import EDGE, LAW, SUPPORT, bodies, box_table, cloud

NU = 0.7
STILL = np.array([1.0, 0.0, 0.0, 0.0])
ROOM = box_table((2.0, 2.0, 4 * EDGE))


NIGHT = pytest.mark.nightly
"""For double precision; single precision is what liquids between planes need as well."""


@pytest.mark.parametrize(
    ("dtype", "rounding", "felt", "taken"),
    [(np.float32, 1e-6, 1e-5, 1e-11), pytest.param(np.float64, 1e-14, 1e-12, 1e-20, marks=NIGHT)],
)
@pytest.mark.parametrize("kind", [BALL, CONTAINER])
def test_friction_has_its_reaction_and_takes_energy(
    kind: int, dtype: type, rounding: float, felt: float, taken: float
) -> None:
    """Force and moment of liquid and bodies together are 0 to rounding; what is taken is the power of the
    forces at the velocities relative to the body, as it turns and goes."""
    x, v, mass, _ = cloud(7, dtype)
    center, radius = np.array([0.05, 0.0, 0.02]), 0.15 if kind == BALL else ROOM.radius[0]
    wall = bodies(kind, ROOM, center, STILL, radius)
    velocity, spin = np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -3.0])
    wall = wall._replace(v=velocity[None], angular_velocity=spin[None])
    force, loads, lost = wall_friction(wall, ROOM, x, v, mass, LAW.reach, SUPPORT, NU)
    force = force.astype(np.float64)
    scale = np.abs(force).sum()
    assert scale > 0
    arm = x - wall.x1[0]
    np.testing.assert_allclose(force.sum(axis=0) + loads[0, :3], 0, atol=rounding * scale)
    np.testing.assert_allclose(np.cross(arm, force).sum(axis=0) + loads[0, 3:], 0, atol=rounding * scale)
    relative = v - velocity - np.cross(spin, arm)
    each = -(force * relative).sum(axis=1)
    assert each.min() >= -rounding * scale
    assert lost == pytest.approx(each.sum())
    # Liquid that turns and goes as the body does feels nothing.
    still = (v - relative).astype(dtype)
    together, _, lost = wall_friction(wall, ROOM, x, still, mass, LAW.reach, SUPPORT, NU)
    assert np.abs(together).max() < felt * scale
    assert lost < taken * scale


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=NIGHT)])
@pytest.mark.parametrize("mirrors", [True, False])
def test_shear_flow_goes_on_as_it_is(mirrors: bool, dtype: type) -> None:
    """In u = z above a wall at z = 0 friction of pairs, of images and of the wall add up to nothing.

    Exact for layers like those behind the wall, whose friction is the mean over places in them; here the
    lattice goes on, which differs from that: measured 4.8 % of the friction of the wall.
    """
    k = (np.arange(17) - 8) * EDGE
    z = (np.arange(12) + 0.5) * EDGE
    x = np.stack(np.meshgrid(k, k, z, indexing="ij"), axis=-1).reshape(-1, 3).astype(dtype)
    v, one, none = np.zeros_like(x), np.ones(len(x), dtype), np.zeros(len(x), dtype)
    v[:, 0] = x[:, 2]
    law = LAW._replace(stiffness=1e-9, viscosity=NU, no_slip=True)
    if mirrors:
        table = box_table((9.0, 9.0, 9.0))
        wall = bodies(CONTAINER, table, np.array([0.0, 0.0, 4.5]), STILL, table.radius[0])
    else:
        table = ROOM
        wall = bodies(BALL, ROOM, np.array([0.0, 0.0, -1e4]), STILL, 1e4)
    found = evaluate(law, x, v, one, one, none, wall, table)
    middle = (np.abs(x[:, :2]).max(axis=1) < 0.5 * EDGE) & (x[:, 2] < 5 * EDGE)
    alone, _, _ = wall_friction(wall, table, x, v, one, law.reach, SUPPORT, NU)
    assert np.abs(found.force[middle, 0]).max() < 0.06 * np.abs(alone[middle, 0]).max()


@pytest.mark.parametrize("support", [2.2, 2.98, 4.0])
def test_table_falls_to_zero_at_the_reach_and_is_bounded_at_the_wall(support: float) -> None:
    """In a corner of three walls a step of R^2 / (`HELD` n) takes up to 1.2 of the velocity; twice it would
    grow, and other particles take of it too."""
    table = friction_table(support)
    assert np.all(np.diff(table, axis=1) <= 0)
    assert np.all(table[:, -1] == 0)
    near = np.linspace(0, 1, table.shape[1]) < NEAREST_WALL
    assert np.all(table[0, near] == table[0, 0])
    assert 0.8 * HELD < 3 * table[0, 0] < 1.2 * HELD
