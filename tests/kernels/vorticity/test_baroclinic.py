"""The neighbours' gradient: exact moments for any arrangement, second order on a lattice, safe if sparse."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.vorticity.baroclinic import weighted_gradient


def block(n: int, spacing: float) -> np.ndarray:
    ticks = spacing * (np.arange(n) - (n - 1) / 2)
    return np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)


def moments(x: np.ndarray, m: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sum G, and sum x G^T over sum m, in float64."""
    wide = g.astype(np.float64)
    return wide.sum(axis=0), x.T.astype(np.float64) @ wide / m.sum(dtype=np.float64)


@pytest.mark.parametrize(("jitter", "filled"), [(0.0, 1.0), (0.5, 1.0), (0.5, 1e-3)])
def test_both_moments_are_exact_with_free_edges_and_disorder(jitter: float, filled: float) -> None:
    """sum G = 0 and sum x G^T = -I sum m, for particles that fill a cube, its faces and corners included, or
    a thousandth of it, as vortons do whose cores have spread."""
    draw = np.random.default_rng(3)
    x = block(9, 0.1) + 0.1 * jitter * (draw.random((729, 3)) - 0.5)
    volume = np.full(729, 1e-3 * filled)
    m = 1e-3 * draw.random(729)
    g = weighted_gradient(x, m, draw.uniform(0.22, 0.26, 729), volume)
    total, first = moments(x, m, g)
    # Sums of 729 terms of size 1e-2: rounding 1e-16 sqrt(729) 1e-2.
    np.testing.assert_allclose(total, 0.0, atol=1e-14)
    np.testing.assert_allclose(first, -np.eye(3), atol=1e-12)


def test_single_precision_keeps_the_moments_to_its_digits() -> None:
    draw = np.random.default_rng(4)
    x = block(9, 0.1).astype(np.float32)
    volume = np.full(729, 1e-3, np.float32)
    m = volume * draw.random(729).astype(np.float32)
    g = weighted_gradient(x, m, np.full(729, 0.24, np.float32), volume)
    assert g.dtype == np.float32
    total, first = moments(x, m, g)
    scale = np.abs(g).sum()
    assert np.abs(total).max() < 1e-6 * scale
    np.testing.assert_allclose(first, -np.eye(3), atol=1e-5)


def test_second_order_on_a_lattice() -> None:
    """Gradient of exp(-r^2 / (2 s^2)): halving spacing and reach quarters the error, within 15 %."""
    errors = []
    for n in (17, 33):
        spacing = 1.6 / (n - 1)
        x = block(n, spacing)
        f = np.exp(-(x**2).sum(axis=1) / (2 * 0.25**2))
        volume = np.full(len(x), spacing**3)
        g = weighted_gradient(x, f * volume, np.full(len(x), 2.25 * spacing), volume) / spacing**3
        inside = np.abs(x).max(axis=1) < 0.5
        errors.append(np.abs(g + x / 0.25**2 * f[:, None])[inside].max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)


def test_flat_population_has_no_part_across() -> None:
    """In a plane sum x G^T is -1 along the two axes of the plane and 0 across."""
    x = block(9, 0.1)
    x = x[x[:, 1] == 0.0]
    draw = np.random.default_rng(5)
    volume = np.full(81, 1e-2)
    m = volume * draw.random(81)
    g = weighted_gradient(x, m, np.full(81, 0.23), volume, flat=1)
    total, first = moments(x, m, g)
    np.testing.assert_allclose(total, 0.0, atol=1e-14)
    np.testing.assert_allclose(first, -np.diag([1.0, 0.0, 1.0]), atol=1e-12)
    assert (g[:, 1] == 0.0).all()


def test_uneven_sizes_keep_the_moments() -> None:
    """Particles of two sizes side by side: each gives to and takes from the other by the mean reach."""
    fine, coarse = block(6, 0.05), block(4, 0.1) + np.array([0.35, 0.0, 0.0])
    x = np.concatenate([fine, coarse])
    volume = np.concatenate([np.full(216, 0.05**3), np.full(64, 0.1**3)])
    reach = np.concatenate([np.full(216, 0.12), np.full(64, 0.24)])
    m = volume * np.random.default_rng(6).random(280)
    total, first = moments(x, m, weighted_gradient(x, m, reach, volume))
    np.testing.assert_allclose(total, 0.0, atol=1e-14)
    np.testing.assert_allclose(first, -np.eye(3), atol=1e-11)


def test_sparse_particles_give_less_instead_of_exploding() -> None:
    """Two particles at any distance: a pair alone could carry the weight only by strengths like 1 / distance.

    With the weight w of the other, each has its middle w r / (1 + w) off, a mean square extent of
    w r^2 / (1 + w)^2 about it, lifted to F = 0.02 h^2 / 9, and the sum of weights V (1 + w). So each gives
    |G| <= m w r / (1 + w)^2 / max(w r^2 / (1 + w)^2, F) <= m sqrt(w / F) / (1 + w) <= m / (2 sqrt(F)), as the
    larger of two numbers is at least the root of their product; here m sums to 1.2e-3 kg, h = 0.225 m.
    """
    floor = 0.02 * 0.225**2 / 9
    volume = np.full(2, 1e-3)
    for distance in (1e-6, 1e-3, 0.05, 0.1, 0.22):
        x = np.array([[0.0, 0.0, 0.0], [distance, 0.0, 0.0]])
        g = weighted_gradient(x, np.array([1e-3, 2e-4]), np.full(2, 0.225), volume)
        assert np.abs(g).max() <= 1.2e-3 / (2 * np.sqrt(floor))
        np.testing.assert_allclose(g.sum(axis=0), 0.0, atol=1e-17)
    alone = weighted_gradient(np.zeros((1, 3)), np.array([1.0]), np.array([0.2]), np.array([1e-3]))
    assert (alone == 0.0).all()
    assert weighted_gradient(np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0, 3)


def test_nothing_carried_gives_exactly_nothing() -> None:
    x = block(5, 0.1)
    g = weighted_gradient(x, np.zeros(125), np.full(125, 0.23), np.full(125, 1e-3))
    assert (g == 0.0).all()


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_images_change_bits_of_the_particles_only_as_neighbours(number: type) -> None:
    """They get no gradient, and moments far from all that is asked for count for nothing: the bits of a sum
    that leaves out neither, with images up to two and a half reaches from the particles."""
    draw = np.random.default_rng(6)
    x = block(13, 0.1).astype(number) + number(0.03) * draw.standard_normal((13**3, 3)).astype(number)
    x = x[np.argsort(np.abs(x).max(axis=1) > 0.25, kind="stable")]  # those in the middle come first
    count = int((np.abs(x).max(axis=1) <= 0.25).sum())
    reach = draw.uniform(0.1, 0.16, len(x)).astype(number)
    volume, values = np.full(len(x), 1e-3, number), draw.random(len(x)).astype(number)
    every = weighted_gradient(x, values, reach, volume)
    some = weighted_gradient(x, values, reach, volume, count=count)
    assert some.shape == (count, 3)
    np.testing.assert_array_equal(some, every[:count])
