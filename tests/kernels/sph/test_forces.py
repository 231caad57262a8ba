"""Forces of the liquid: against a plain double loop, at rest on a lattice, as the slope of their energy."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, SOLID
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, obstacles
from ecs_fluid.kernels.sph.forces import compression_energy, lattice_weight
from ecs_fluid.kernels.sph.step import LiquidLaw, evaluate
from ecs_fluid.kernels.sph.walls import combined, wall_law, wall_part
from ecs_fluid.worlds.hulls import hull_of_vertices

SUPPORT, EDGE = 2.6, 0.1
LAW = LiquidLaw(SUPPORT * EDGE, SUPPORT, EDGE**3, 1.0e5, 0.02)


def cloud(count: int, dtype: type = np.float64) -> tuple[Array, Array, Array, Array]:
    """A compressed, disordered cloud: places, velocities, masses, V / V_0."""
    draw = np.random.default_rng(5)
    k = np.arange(count)
    x = 0.09 * np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3)
    x += draw.uniform(-0.03, 0.03, x.shape)
    n = len(x)
    mass, size = draw.uniform(0.5, 2.0, n), draw.uniform(0.9, 1.1, n)
    return x.astype(dtype), draw.standard_normal((n, 3)).astype(dtype), mass.astype(dtype), size.astype(dtype)


def by_double_loop(x: Array, v: Array, mass: Array, size: Array) -> tuple[Array, Array, float]:
    """nu, forces and loss by the equations of the module, all pairs written out."""
    weight, reach = lattice_weight(SUPPORT), LAW.reach
    r = x[:, None] - x
    q = np.linalg.norm(r, axis=2) / reach
    near = np.maximum(1 - q, 0)
    nu = size * weight * (near**4 * (4 * q + 1)).sum(axis=1)
    p = np.maximum(LAW.stiffness * (nu**7 - 1), 0)
    load = size**2 * LAW.volume * p / nu**2
    slope = weight * 20 * near**3 / reach**2
    meet = ((v[:, None] - v) * r).sum(axis=2) / np.maximum(q * reach, 1e-100) ** 2  # the particle itself: 0
    drag = 10 * LAW.viscosity * (mass[:, None] + mass) / 2 * meet * slope
    force = ((load[:, None] + load) * slope - drag)[..., None] * r
    loss = 0.5 * (drag * ((v[:, None] - v) * r).sum(axis=2)).sum()
    return nu, force.sum(axis=1), float(loss)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 2e-5)])
def test_forces_are_those_of_the_double_loop(dtype: type, tolerance: float) -> None:
    # Tolerances: rounding of some 80 terms, that of float32 amplified by the stiff pressure.
    x, v, mass, size = cloud(7, dtype)
    found = evaluate(LAW, x, v, mass, size, None, None)
    nu, force, loss = by_double_loop(*(part.astype(np.float64) for part in (x, v, mass, size)))
    np.testing.assert_allclose(found.nu, nu, rtol=tolerance)
    np.testing.assert_allclose(found.force, force, atol=tolerance * np.abs(force).max())
    assert found.loss == pytest.approx(loss, rel=10 * tolerance)
    assert loss > 0


def test_momentum_and_angular_momentum_are_kept() -> None:
    # Equal and opposite forces along the line of each pair: both totals vanish to rounding.
    x, v, mass, size = cloud(9)
    force = evaluate(LAW, x, v, mass, size, None, None).force
    scale = np.abs(force).sum()
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-14 * scale)
    np.testing.assert_allclose(np.cross(x, force).sum(axis=0), 0.0, atol=1e-14 * scale)


def box_table(size: tuple[float, float, float]) -> Hulls:
    corners = np.array([[a, b, c] for a in (-0.5, 0.5) for b in (-0.5, 0.5) for c in (-0.5, 0.5)])
    return hull_of_vertices(corners * np.array(size)).table


def bodies(shape: int, table: Hulls, center: Array, turn: Array, radius: float) -> Obstacles:
    """One body at rest."""
    pose, still = (center[None], turn[None]), (np.zeros((1, 3)), np.zeros((1, 3)))
    kind = np.array([shape])
    return obstacles(pose, pose, still, kind, np.array([radius]), np.zeros(1, np.int64), LAW.reach)


@pytest.mark.parametrize("support", [2.4, 2.6, 3.0])
def test_lattice_between_walls_is_at_rest(support: float) -> None:
    """A cubic lattice half a spacing from six walls has nu = 1, and under a uniform pressure no net force.

    By construction in the first layer of a face. The second layer no longer feels the wall and lacks, at 2.6
    spacings, 0.35 % for each of up to three walls (1.6 % at 3); edges and corners lack 0.3 %.
    """
    law = LAW._replace(support=support, reach=support * EDGE, viscosity=0.0)
    k = (np.arange(8) + 0.5 - 4) * EDGE
    x = np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3)
    table = box_table((0.8, 0.8, 0.8))
    room = bodies(CONTAINER, table, np.zeros(3), np.array([1.0, 0, 0, 0]), table.radius[0])
    one = np.ones(len(x))
    found = evaluate(law, x, np.zeros_like(x), one, one, room, table)
    middle = np.abs(x[:, :2]).max(axis=1) < 0.1
    face = middle & (np.abs(x[:, 2]) > 0.3)
    np.testing.assert_allclose(found.nu[face], 1.0, atol=1e-9)
    np.testing.assert_allclose(found.nu, 1.0, atol={2.4: 0.004, 2.6: 0.012, 3.0: 0.05}[support])
    squeezed = evaluate(law, 0.99 * x, np.zeros_like(x), one, one, room, box_table((0.792,) * 3))
    # Pressure on the face of a particle is what all forces are measured by.
    scale = law.stiffness * (0.99**-21 - 1) * EDGE**2
    assert np.abs(squeezed.force[face]).max() < 0.15 * scale
    # Three layers from the walls the missing part of the second layer is felt, at 3 spacings' reach most.
    assert np.abs(squeezed.force[np.abs(x).max(axis=1) < 0.1]).max() < 0.06 * scale


@pytest.mark.parametrize("shape", [CONTAINER, SOLID, BALL])
def test_forces_are_the_slope_of_the_energy(shape: int) -> None:
    """F = - dE/dx of the energy of compression, walls included; central differences are right to step^2."""
    draw = np.random.default_rng(2)
    turn = np.array([0.9, 0.1, -0.3, 0.2])
    turn /= np.linalg.norm(turn)
    table = box_table((0.62, 0.5, 0.56))
    radius = 0.2 if shape == BALL else table.radius[0]
    wall = bodies(shape, table, np.array([0.02, 0.01, -0.03]), turn, radius)
    law = LAW._replace(viscosity=0.0)
    reach = 0.25 if shape == CONTAINER else 0.4
    x = draw.uniform(-reach, reach, (200 if shape == CONTAINER else 600, 3))
    one, still = np.ones(len(x)), np.zeros_like(x)
    found = evaluate(law, x, still, one, one, wall, table)

    def energy(places: Array) -> float:
        nu = evaluate(law, places, still, one, one, wall, table).nu
        return compression_energy(nu, one, law.stiffness, law.volume)

    rows = np.argsort(-found.nu)[:4]
    step, scale = 1e-6, np.abs(found.force).max()
    for row in rows:
        for axis in range(3):
            there = [x.copy(), x.copy()]
            there[0][row, axis] += step
            there[1][row, axis] -= step
            slope = (energy(there[0]) - energy(there[1])) / (2 * step)
            assert found.force[row, axis] == pytest.approx(-slope, abs=2e-6 * scale)
    # What the wall gives the liquid, the liquid gives the wall; pairs cancel among themselves.
    np.testing.assert_allclose(found.loads[0, :3], -found.force.sum(axis=0), atol=1e-12 * scale * len(x))
    assert np.abs(found.loads[0, :3]).max() > 1e-4 * scale


def test_wall_law_is_a_smooth_barrier() -> None:
    law = wall_law(SUPPORT)
    for d in (-0.4, 0.1, 0.5, 0.9, 1.15):
        ahead, behind = wall_part(d + 1e-6, law)[0], wall_part(d - 1e-6, law)[0]
        assert wall_part(d, law)[1] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)
    # A particle alone, which adds w_0 itself, is held back before it touches the wall.
    assert wall_part(0.0, law)[0] + lattice_weight(SUPPORT) > 1.0
    assert wall_part(0.5 + law[1], law) == (0.0, 0.0)


def test_walls_combine() -> None:
    """At right angles 1 - prod (1 - G); walls that are one and the same count once."""
    rate = np.empty(3)
    part = np.array([0.5, 0.4, 0.3])
    assert combined(part, np.eye(3), 3, rate) == pytest.approx(1 - 0.5 * 0.6 * 0.7, abs=1e-15)
    np.testing.assert_allclose(rate, [0.6 * 0.7, 0.5 * 0.7, 0.5 * 0.6], atol=1e-15)
    assert combined(part, np.tile([0.0, 0.0, 1.0], (3, 1)), 3, rate) == pytest.approx(0.5, abs=1e-15)
