"""The articles' diffusion in index space: full stencil, conservation, dissipation, falloff."""

import math

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids import grid, partition
from ecs_fluid.kernels.vorticity import strength_exchange


def cloud(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random particles of different sizes with three values each."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)) * (1.0, 0.7, 0.5), rng.normal(size=(n, 3)), rng.uniform(0.05, 0.1, n)


def plane(h: float) -> tuple[np.ndarray, np.ndarray]:
    """Square lattice of 96 x 96 particles at spacing h in [-48 h, 48 h], and r^2."""
    axis = h * np.arange(-47.5, 48.0)
    x = np.stack(np.meshgrid(axis, axis, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    return x, (x * x).sum(axis=1)


def index_rate(x, values, size, box, nu, **options) -> np.ndarray:
    """Rates by ``index_exchange`` for rows in table order."""
    return rate_and_loss(x, values, size, box, nu, **options)[0]


def rate_and_loss(x, values, size, box, nu, **options) -> tuple[np.ndarray, np.ndarray]:
    """The same, with the losses."""
    start, rows = partition.partition(x, *box)
    columns = partition.gather_sorted(values.reshape(len(x), -1), rows)
    rate, loss, lost = np.empty_like(columns), np.empty_like(size), np.empty_like(size)
    sx, sizes = partition.gather_sorted(x, rows), partition.gather_sorted(size, rows)
    strength_exchange.index_exchange(sx, columns, sizes, start, box[2], nu, rate, loss, **options)
    lost[rows] = loss
    return partition.scatter_sorted(rate, rows, np.empty_like(values)), lost


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("reach", [2.0, 4.0, 1e9])
def test_index_exchange_is_the_sum_over_the_27_cells(reach: float, dtype: type) -> None:
    """Articles 1.6, all 13 neighbour pairs: 2 nu f (alpha_q - alpha_p) over cells at most 1 apart."""
    x, values, size = cloud(300, seed=5)
    count = np.array([4, 3, 5])
    spacing = np.array([1.0, 0.7, 0.5]) / count
    cell = np.minimum((x / spacing).astype(int), count - 1)
    w = (np.abs(cell[:, None] - cell).max(axis=-1) <= 1).astype(float)
    s2 = (size[:, None] ** 2 + size**2) / 2
    w *= np.exp(-((x[:, None] - x) ** 2).sum(axis=-1) / (reach**2 * s2))
    known = 2 * 0.3 * (w @ values - w.sum(axis=1)[:, None] * values)
    given = (part.astype(dtype) for part in (x, values, size))
    rate, loss = rate_and_loss(*given, (np.zeros(3), spacing, count), 0.3, reach=reach)
    assert rate.dtype == dtype
    # 1e-8: polynomial exponential (3e-9) and the falloff below 1.6e-9 that is dropped.
    tolerance = 1e-8 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(rate, known, atol=tolerance * np.abs(known).max())
    np.testing.assert_allclose(loss, 2 * 0.3 * w.sum(axis=1), rtol=tolerance)


def test_total_decays_only_with_dissipation_and_then_at_the_rate_nu() -> None:
    """D7: pairs are antisymmetric; with dissipation n Euler steps leave (1 - nu dt)^n of the total."""
    x, values, size = cloud(200, seed=6)
    box = grid.uniform_grid(*bounds(x), 200)
    total, scale = values.sum(axis=0), np.abs(values).sum()
    kept, lost = values.copy(), values.copy()
    for _ in range(10):
        kept = kept + 0.02 * index_rate(x, kept, size, box, 0.5)
        lost = lost + 0.02 * index_rate(x, lost, size, box, 0.5, dissipation=True)
    np.testing.assert_allclose(kept.sum(axis=0), total, atol=1e-13 * scale)
    np.testing.assert_allclose(lost.sum(axis=0), total * (1 - 0.5 * 0.02) ** 10, atol=1e-13 * scale)


def test_two_particles_exchange_equal_and_opposite_amounts() -> None:
    """f = exp(-d^2 / 4 size^2) with d = size = 0.1 m: 2 nu exp(-1/4) times the difference of 3."""
    x, size = np.array([[0.0, 0, 0], [0.1, 0, 0]]), np.full(2, 0.1)
    rate = index_rate(x, np.array([1.0, 4.0]), size, (np.zeros(3), np.ones(3), np.ones(3, int)), 0.7)
    given = 2 * 0.7 * math.exp(-0.25) * 3
    np.testing.assert_allclose(rate, [given, -given], rtol=1e-8)
    assert rate.sum() == 0


def test_falloff_makes_diffusivity_independent_of_the_box() -> None:
    """D8: cells of 6 and 12 particle sizes. Without falloff the growth goes with (cell size)^4 in a plane.

    With falloff exp(-r^2 / 4 size^2) what lies beyond 6 sizes is 10 exp(-9) = 0.12 % of the second moment;
    less than half of that is cut off, since a particle sees between 6 and 12 sizes on each side.
    """
    x, r2 = plane(1.0)
    blob = np.exp(-r2 / 50)
    growth = {}
    for edge in (6, 12):
        count = np.array([96 // edge, 96 // edge, 1])
        box = (np.array([-48.0, -48.0, 0.0]), np.array([edge, edge, 1.0]), count)
        for reach in (2.0, 1e9):
            rate = index_rate(x, blob, np.ones(len(x)), box, 1.0, reach=reach)
            growth[edge, reach] = (rate * r2).sum() / blob.sum()
    assert growth[12, 2.0] == pytest.approx(growth[6, 2.0], rel=2e-3)
    # 2 nu times the lattice sum of r^2 exp(-r^2/4), which is pi 4^2 by the integral (to exp(-4 pi^2)).
    assert growth[12, 2.0] == pytest.approx(2 * math.pi * 16, rel=1e-5)
    assert growth[12, 1e9] / growth[6, 1e9] > 12


def test_legacy_viscosity_depends_on_the_resolution() -> None:
    """Trap 7: half the size and spacing with the same nu [1/s] diffuses a quarter as fast.

    The diffusivity is nu times size^2 times a number of the stencil, so it is no viscosity in m^2/s.
    """
    growth = []
    for h in (0.5, 0.25):
        x, r2 = plane(h)
        blob = np.exp(-r2 / 4)
        box = (np.array([-48 * h, -48 * h, 0.0]), np.array([6 * h, 6 * h, 1.0]), np.array([16, 16, 1]))
        rate = index_rate(x, blob, np.full(len(x), h), box, 1.0)
        growth.append((rate * r2).sum() / blob.sum())
    assert growth[0] / growth[1] == pytest.approx(4.0, rel=1e-2)


def test_the_longest_stable_step_is_that_of_the_fastest_wave() -> None:
    """Rates of unit values are the columns of a matrix, whose largest eigenvalue times the step must be at
    most 2: a line of 40 cells, three vortons in each that all exchange alike, comes to 2 but for its ends (
    4/3 of the loss times 1.5), a cloud with a falloff to less."""
    line = np.repeat(np.arange(40) + 0.5, 3)[:, None] * [1.0, 0.0, 0.0] + [0.0, 0.5, 0.5]
    cells = (np.zeros(3), np.ones(3), np.array([40, 1, 1]))
    x, _, size = cloud(300, seed=5)
    count = np.array([4, 3, 5])
    for box, places, sizes, reach, least in (
        (cells, line, np.full(120, 0.1), 1e9, 1.99),
        ((np.zeros(3), np.array([1.0, 0.7, 0.5]) / count, count), x, size, 2.0, 0.8),
        ((np.zeros(3), np.array([1.0, 0.7, 0.5]) / count, count), x, 5 * size, 2.0, 0.8),
    ):
        matrix, loss = rate_and_loss(places, np.eye(len(places)), sizes, box, 0.3, reach=reach)
        fastest = -np.linalg.eigvalsh((matrix + matrix.T) / 2).min()
        longest = strength_exchange.stable_step(loss, strength_exchange.SHORT_WAVES_OF_CELLS)
        assert least < longest * fastest <= 2.0 + 1e-9


def test_a_step_that_would_swell_strengths_is_refused() -> None:
    """300 vortons at one place exchange with 300 each: at 1 1/s a step of 1/60 s multiplies what differs from
    their mean by 1 - 2 300/60 = -9. With 1.5/600 1/s times 60, what is allowed, it is 1 - 1.5."""
    world = ef.World(dt=1 / 60, precision="double", integrator="euler")
    alpha = 1e-3 * np.random.default_rng(2).standard_normal((300, 3))
    world.spawn(
        "vortons", ef.Position(np.zeros((300, 3))), ef.Strength(alpha), ef.CoreRadius(np.full(300, 0.2))
    )
    diffusion = ef.DiffusionSystem(method="index_space", rate=1.0)
    world.add_systems([ef.VelocitySystem(gradient=False), ef.AdvectionSystem(), diffusion])
    with pytest.raises(
        ef.FluidError, match=r"unstable with method = 'index_space' .* at most 0\.15 1/s is allowed"
    ):
        world.step()
    diffusion.rate = 0.149999
    world.step()
    about = alpha.mean(axis=0)
    np.testing.assert_allclose(world["vortons"][ef.Strength].alpha - about, -0.5 * (alpha - about), atol=1e-7)
