"""Values handed over to neighbours: sums and first moments stay, where neighbours tell all directions."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.vorticity.share_with_neighbours import shared_with_neighbours


def cloud(n: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Particles at random in a ball, values, and reaches that differ by a factor of 2."""
    random = np.random.default_rng(5)
    x = random.standard_normal((3 * n, 3))
    x = x[np.linalg.norm(x, axis=1) < 1.5][:n]
    reach = 2.25 * 2.4 / n ** (1 / 3) * (1 + random.random(n))
    return x.astype(dtype), random.standard_normal((n, 3)).astype(dtype), reach.astype(dtype)


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_sum_and_moment_stay(dtype: type, within: float) -> None:
    """Also at the edge; and values are spread, so that their squares fall."""
    x, values, reach = cloud(1500, dtype)
    given = shared_with_neighbours(x, values, reach).astype(np.float64)
    values, x = values.astype(np.float64), x.astype(np.float64)
    size = np.abs(values).sum()
    assert np.abs((given - values).sum(axis=0)).max() < within * size
    assert np.abs(x.T @ (given - values)).max() < within * size
    assert (given**2).sum() < 0.3 * (values**2).sum()


def test_weights_are_those_of_the_equations() -> None:
    """Against sums over all pairs in numpy."""
    x, values, reach = cloud(200, np.float64)
    d = x[None] - x[:, None]
    h2 = 0.5 * (reach[:, None] ** 2 + reach[None] ** 2)
    w = np.maximum(1 - (d**2).sum(axis=2) / h2, 0) ** 2 * reach[None] ** 3
    s = w.sum(axis=1)
    c = np.einsum("pq,pqk->pk", w, d) / s[:, None]
    second = np.einsum("pq,pqk,pql->pkl", w, d, d) - s[:, None, None] * c[:, :, None] * c[:, None, :]
    k = np.linalg.solve(second, c[:, :, None])[:, :, 0]
    weights = w * (1 / s[:, None] - np.einsum("pqk,pk->pq", d - c[:, None], k))
    np.testing.assert_allclose(
        shared_with_neighbours(x, values, reach), weights.T @ values, rtol=1e-9, atol=1e-12
    )


def test_few_particles_keep_the_sum() -> None:
    """A lone one gives itself all; on a line moments along it stay, and across it there is none."""
    one = np.ones((1, 3))
    np.testing.assert_allclose(shared_with_neighbours(one, 2 * one, np.ones(1)), 2 * one, rtol=1e-15)
    x = np.linspace(0, 1, 20)[:, None] * np.array([1.0, 2.0, 0.0])
    values = np.random.default_rng(1).standard_normal((20, 3))
    given = shared_with_neighbours(x, values, np.full(20, 0.4))
    np.testing.assert_allclose(given.sum(axis=0), values.sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(x[:, 0] @ given, x[:, 0] @ values, atol=0.05 * np.abs(values).sum())
    assert shared_with_neighbours(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0)).shape == (0, 3)
