"""Pressure that is solved for: against dense matrices, its momentum, walls and bodies, and lists of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.grids.neighbours import LIST_LENGTH
from ecs_fluid.kernels.sph.forces import lattice_weight
from ecs_fluid.kernels.sph.implicit_pressure import (
    EIGENVALUE_MARGIN,
    MOST_ROUNDS,
    Solved,
    largest_eigenvalue,
    solve,
)
from ecs_fluid.kernels.sph.pair_lists import PairLists
from ecs_fluid.kernels.sph.step import LiquidLaw, evaluate, surroundings_of
from tests.kernels.sph.liquid_clouds import LAW, SUPPORT, bodies, box_table, by_double_loop, cloud

PULL = np.array([0.3, -0.2, -9.8])


def reals(single: float, double: float) -> pytest.MarkDecorator:
    """By day single precision, whose kernels other tests compile, too; by night double precision."""
    night = pytest.param(np.float64, double, marks=pytest.mark.nightly)
    return pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, single), night])


def solved(
    x: Array, v: Array, mass: Array, size: Array, step: float, tolerance: float = 1e-5, law: LiquidLaw = LAW,
    obstacles: object = None, hulls: object = None,
) -> Solved:  # fmt: skip
    """A step from no pressure."""
    none, lists = np.zeros_like(mass), PairLists()
    pull = np.tile(PULL, (len(x), 1)).astype(x.dtype)
    return solve(law, x, v, mass, size, none, obstacles, hulls, pull, none, step, tolerance, lists)  # type: ignore[arg-type]


@reals(3e-5, 1e-11)
def test_sums_over_lists_are_those_of_the_double_loop(dtype: type, tolerance: float) -> None:
    """Where the pressure of the step before is 0 and no round changes it (a step of no length, and no
    compression), the force is the friction of all pairs; nu is that of the double loop in any case."""
    x, v, mass, size = cloud(7, dtype)
    far = 1.3 * x
    nu, force, loss, _ = by_double_loop(*(part.astype(np.float64) for part in (far, v, mass, size)))
    assert nu.max() < 1
    found = solved(far, v, mass, size, 1e-9).forces
    np.testing.assert_allclose(found.nu, nu, rtol=tolerance)
    np.testing.assert_allclose(found.force, force, atol=tolerance * np.abs(force).max())
    assert found.loss == pytest.approx(loss, rel=10 * tolerance)


@reals(1e-6, 1e-9)
def test_a_step_of_no_length_has_the_pressure_of_the_compression(dtype: type, tolerance: float) -> None:
    # P = 7 B V (nu - 1) where nu > 1, and the forces of pairs which `evaluate` makes of such a load.
    x, v, mass, size = cloud(6, dtype)
    found = solved(x, v, mass, size, 1e-12, 1e-12)
    law = 7 * LAW.stiffness * np.maximum(found.forces.nu - 1, 0)
    np.testing.assert_allclose(found.pressure, law, atol=tolerance * law.max())


def slopes(x: Array, size: Array) -> Array:
    """J (n, 3 n): derivatives of all nu by all places."""
    n, weight, reach = len(x), lattice_weight(SUPPORT), LAW.reach
    r = x[:, None] - x
    near = np.maximum(1 - np.linalg.norm(r, axis=2) / reach, 0)
    g = -(size[:, None] * weight * 20 * near**3 / reach**2)[..., None] * r
    jacobian = -g
    jacobian[np.arange(n), np.arange(n)] = g.sum(axis=1)
    return np.asarray(jacobian.reshape(n, 3 * n))


@reals(5e-4, 1e-9)
def test_pressure_is_that_of_the_compression_at_the_end_of_the_step(dtype: type, tolerance: float) -> None:
    """P = max(0, 7 B V (nu + t J u' - 1)), u' = u + t (pull + (friction - J^T P) / m), with J written out.

    In single precision each slope is cut to 16 bits, by up to 1.5e-5 of the largest, and a particle has some
    hundred: together ten times that, measured 1.8e-4 of the largest force.
    """
    x, v, mass, size = cloud(6, dtype)
    step = LAW.reach / np.sqrt(7 * LAW.stiffness * LAW.volume / mass.min())
    found = solved(x, v, mass, size, step, 1e-4)
    assert 5 < found.rounds < MOST_ROUNDS
    jacobian, volume = slopes(x, size), size * LAW.volume
    p = found.pressure * volume
    # What of the force is not of pressure is friction, which a step without pressure has alone.
    calm = LAW._replace(stiffness=1e-9)
    rubbed = solved(x, v, mass, size, 1e-9, law=calm).forces.force
    pushed = -(jacobian.T @ p).reshape(-1, 3)
    np.testing.assert_allclose(found.forces.force, rubbed + pushed, atol=tolerance * np.abs(pushed).max())
    after = v + step * (PULL + found.forces.force / mass[:, None])
    ahead = found.forces.nu + step * (jacobian @ after.ravel())
    wet = (p > 0) | (ahead > 1)
    error = ahead - 1 - p / (7 * LAW.stiffness * volume)
    # The tolerance is that of the pressure before the last round, which need not make each error less.
    assert np.abs(error[wet]).mean() < 1.2e-4
    assert 0.2 < wet.mean() < 1


@pytest.mark.nightly
def test_momentum_and_angular_momentum_are_kept_however_few_the_rounds() -> None:
    """By day in single precision, below."""
    x, v, mass, size = cloud(9)
    found = solved(x, v, mass, size, 0.01, 1e-2)
    force, scale = found.forces.force, np.abs(found.forces.force).sum()
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-14 * scale)
    np.testing.assert_allclose(np.cross(x, force).sum(axis=0), 0.0, atol=1e-14 * scale)


@reals(1e-6, 1e-12)
@pytest.mark.parametrize("slant", [0.0, 0.1])
def test_what_liquid_gets_walls_and_bodies_lose(slant: float, dtype: type, tolerance: float) -> None:
    """Force on the liquid and loads on a container, whose one side leans or not, and on a ball in it: sum 0,
    and of moments about the origin."""
    x, v, mass, size = cloud(8, dtype)
    table = box_table((0.75, 0.75, 0.75), slant)
    x = x - x.mean(axis=0)
    x = x[np.linalg.norm(x, axis=1) > 0.2]
    v, mass, size = v[: len(x)], mass[: len(x)], size[: len(x)]
    upright = np.array([1.0, 0, 0, 0])
    room = bodies(CONTAINER, table, np.zeros(3), upright, table.radius[0])
    ball = bodies(BALL, table, np.zeros(3), upright, 0.15)
    for obstacles in (room, ball):
        found = solved(x, v, mass, size, 0.004, 1e-3, obstacles=obstacles, hulls=table).forces
        force = found.force.astype(np.float64)
        scale = np.abs(force).sum()
        assert np.abs(found.loads).max() > 1e-5 * scale
        total = force.sum(axis=0) + found.loads[:, :3].sum(axis=0)
        turn = np.cross(x.astype(np.float64), force).sum(axis=0) + found.loads[:, 3:].sum(axis=0)
        np.testing.assert_allclose(total, 0.0, atol=tolerance * scale)
        np.testing.assert_allclose(turn, 0.0, atol=tolerance * scale)


@reals(1e-5, 1e-12)
def test_crowds_longer_than_a_list_are_met_in_full(dtype: type, tolerance: float) -> None:
    # 1,728 particles within a reach: more than a list of candidates holds, or a chunk has room for.
    draw = np.random.default_rng(3)
    x = draw.uniform(0, 0.4 * LAW.reach, (1728, 3)).astype(dtype)
    assert len(x) > LIST_LENGTH
    mass = np.ones(len(x), dtype)
    lists, near = PairLists(), surroundings_of(LAW, x, np.zeros_like(x), mass, None, None)
    lists.room = 100
    numbers, still = np.arange(len(x)), np.zeros_like(x)
    sums = lists.fill(SUPPORT, near.place, still, mass, numbers, near.start, near.grid, near.order, len(x))
    expected = evaluate(LAW, x, np.zeros_like(x), mass, mass, 0 * mass, None, None).nu
    np.testing.assert_allclose(lattice_weight(SUPPORT) * sums[0], expected[near.order], rtol=tolerance)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_more_than_16_bits_are_the_same(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    x, v, mass, size = cloud(6, dtype)
    few = solved(x, v, mass, size, 0.01)
    monkeypatch.setattr("ecs_fluid.kernels.sph.pair_lists.ROWS_IN_16_BITS", 0)
    many = solved(x, v, mass, size, 0.01)
    assert few.rounds > 2
    np.testing.assert_array_equal(many.forces.force, few.forces.force)
    np.testing.assert_array_equal(many.pressure, few.pressure)


def test_momentum_is_kept_where_slopes_have_16_bits() -> None:
    """Single precision: forces are opposite to the last bit, and sums over 729 particles are wrong by some
    roundings of 6e-8 each; of moments, since slopes are cut to 3e-5 of the largest, by less than 1e-6."""
    x, v, mass, size = cloud(9, np.float32)
    found = solved(x, v, mass, size, 0.01, 1e-2)
    force = found.forces.force.astype(np.float64)
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-7 * np.abs(force).sum())
    turn = np.cross(x.astype(np.float64), force).sum(axis=0)
    np.testing.assert_allclose(turn, 0.0, atol=1e-6 * np.abs(force).sum())


def test_steepest_wave_of_a_lattice() -> None:
    """Largest eigenvalue of J J^T over its diagonal, by the power method on a lattice that repeats."""
    cells, k = 12, np.arange(12)
    r = np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).astype(float)
    r = np.where(r > cells / 2, r - cells, r)
    g = np.maximum(1 - np.linalg.norm(r, axis=-1) / 2.98, 0)[..., None] ** 3 * r
    waves = np.fft.fftn(g, axes=(0, 1, 2))
    spectrum = (np.abs(waves) ** 2).sum(axis=-1)
    assert largest_eigenvalue(2.98) == pytest.approx(spectrum.max() / (g**2).sum(), rel=0.05)


@pytest.mark.parametrize("crowd", [1, 2, 4])
def test_no_wave_is_steeper_than_the_iteration_takes_it_for(crowd: int) -> None:
    """Largest eigenvalue of J M^-1 J^T over its diagonal, of random places as dense as the lattice, two and
    four times as dense, and of a lattice that is shaken a little: Chebyshev's iteration diverges beyond the
    limit it is told, which is that of the lattice times the largest compression, and 1.1."""
    draw = np.random.default_rng(crowd)
    side = 8 * LAW.volume ** (1 / 3)
    shaken, _, mass, size = cloud(8)
    for x in (draw.uniform(0, side / crowd ** (1 / 3), shaken.shape), shaken):
        jacobian = slopes(x, size) / np.repeat(np.sqrt(mass), 3)
        coupled = jacobian @ jacobian.T
        root = np.sqrt(coupled.diagonal())
        largest = np.linalg.eigvalsh(coupled / root / root[:, None])[-1]
        nu = evaluate(LAW, x, np.zeros_like(x), mass, size, 0 * mass, None, None).nu
        assert largest < EIGENVALUE_MARGIN * largest_eigenvalue(SUPPORT) * nu.max()
