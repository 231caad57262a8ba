"""Means of what fills a cell, against the formulas written out in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.grids.interpolation import scatter
from ecs_fluid.kernels.grids.mixture import mix, share
from ecs_fluid.kernels.grids.partition import gather_sorted, partition

AMOUNTS = 8
"""Volume, mass, excess mass, m T, volume that is alone, and those of fuel, flame and smoke."""


def looks(kind: type) -> tuple[tuple, tuple]:
    """Coefficients of light and of darkness: the second species is bright and the third dark."""
    return (kind(0), kind(2e-7), kind(0)), (kind(0), kind(0), kind(10))


def fields(
    shared: np.ndarray, rest: np.ndarray, warm: np.ndarray, held: bool = False, alone: float = 0.0
) -> np.ndarray:
    """Fields (8, rows, points), held to 250 and 900 K, and to 0.3 and 9 kg/m^3 if `held`."""
    kind = shared.dtype.type
    shared[..., 4] = kind(alone) * shared[..., 0]
    out = np.full((8, *shared.shape[:2]), np.nan, shared.dtype)
    mix(shared, rest, warm, kind(250), kind(900), kind(0.3), kind(9), *looks(kind), held, out)
    return out


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_means_of_partly_filled_cells(kind: type) -> None:
    """Cells filled by 0 to 150 % with gas of 0.4 kg/m^3 at 800 K: 1/2 fuel, 1/4 flame, 1/8 smoke."""
    filled = np.linspace(0.0, 1.5, 7).astype(kind)[None, :] * np.ones((5, 1), kind)
    rest, warm = np.linspace(1.2, 1.0, 7).astype(kind), np.linspace(300, 310, 7).astype(kind)
    shared = np.zeros((5, 7, AMOUNTS), kind)
    mass = kind(0.4) * filled
    for c, part in enumerate(
        (filled, mass, mass - rest * filled, 800 * mass, mass, mass / 2, mass / 4, mass / 8)
    ):
        shared[..., c] = part
    air = np.maximum(1 - filled, 0) * rest
    total = mass + air
    T = (800 * mass + air * warm) / total
    flame, smoke, rho = mass / 4 / total, mass / 8 / total, total / np.maximum(filled, 1)
    expected = (
        rho, mass - rest * filled, T, mass / 2 / total, flame, smoke,
        2e-7 * flame * np.maximum(T**4 - warm**4, 0), 10 * rho * smoke,
    )  # fmt: skip
    # Some ten roundings; the light of a mixture barely warmer than the ambient cancels up to 4 digits.
    for found, wanted in zip(fields(shared, rest, warm), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e4 * np.finfo(kind).eps, atol=1e-30)


def test_particles_that_stand_alone() -> None:
    """Gas of 0.4 kg/m^3 at 800 K, half of it fuel, is that wherever there is some, but for the edge."""
    filled = np.array([0.0, 0.05, 0.11, 0.5, 1.0, 1.5])[None]
    rest, warm = np.full(6, 1.2), np.full(6, 300.0)
    shared = np.zeros((1, 6, AMOUNTS))
    mass = 0.4 * filled
    for c, part in enumerate((filled, mass, mass - rest * filled, 800 * mass, mass, mass / 2)):
        shared[..., c] = part
    found = fields(shared, rest, warm, alone=1.0)
    np.testing.assert_allclose(found[0, 0, 2:], 0.4, rtol=1e-15)
    np.testing.assert_allclose(found[2, 0, 2:], 800.0, rtol=1e-15)
    np.testing.assert_allclose(found[3, 0, 2:], 0.5, rtol=1e-15)
    np.testing.assert_array_equal(found[:, 0, :2], fields(shared, rest, warm)[:, 0, :2])
    # Of which a quarter is, so that a quarter of what is left is more of the same.
    found, room = fields(shared, rest, warm, alone=0.25)[0, 0, 2:], 0.75 * np.maximum(1 - filled[0, 2:], 0)
    np.testing.assert_allclose(found, (mass[0, 2:] + 1.2 * room) / (filled[0, 2:] + room), rtol=1e-15)


def test_limits() -> None:
    """Temperature and fractions stay within theirs; negative amounts count as zero where asked.

    And densities within theirs: 3 of particles that fill a fifth of a cell alone, of which 0 or 12 is left.
    """
    rest, warm = np.ones(4), np.full(4, 300.0)
    shared = np.zeros((1, 4, AMOUNTS))
    shared[0, 2:, 0], shared[0, 3, 1] = 0.2, 2.4
    shared[0, 0] = 1.0, 1.0, 0.0, 2000.0, 0.0, 1.5, -0.5, 0.1
    shared[0, 1] = -0.01, -0.01, 0.01, -3.0, 0.0, 0.0, 0.0, 0.0
    found = fields(shared, rest, warm, held=True)
    assert found[2:6, 0, 0].tolist() == [900.0, 1.0, 0.0, pytest.approx(0.1)]
    assert found[:3, 0, 1].tolist() == [1.0, 0.01, 300.0]
    assert fields(shared, rest, warm, held=True, alone=1.0)[0, 0].tolist() == [1.0, 1.0, 0.3, 9.0]


@pytest.mark.parametrize("cells", [(1, 1, 1), (3, 4, 5), (6, 1, 2)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sharing_and_mixing_at_once_is_sharing_then_mixing(kind: type, cells: tuple) -> None:
    """The sums are those of ``interpolation.scatter`` in another sequence, so equal but for rounding."""
    count = np.array(cells)
    draw = np.random.default_rng(3)
    x = (draw.random((200, 3)) * [0.9, 0.8, 0.5] * count + 0.1).astype(kind)
    mesh = np.zeros(3), np.ones(3), count
    start, order = partition(x, *mesh)
    amounts = draw.random((200, AMOUNTS)).astype(kind) * np.array(
        [0.02, 0.02, 0.02, 8, 0.02, 0.01, 0.005, 0.005], kind
    )
    points = count + 1
    rest, warm = np.linspace(1.2, 1.0, points[2]).astype(kind), np.linspace(300, 310, points[2]).astype(kind)
    inverse = 1.5
    amounts[:, 4] = 0.4 * amounts[:, 0]
    sums = scatter(gather_sorted(x, order), gather_sorted(amounts * kind(inverse), order), start, *mesh)
    expected = fields(sums.reshape(-1, points[2], AMOUNTS), rest, warm, alone=0.4)
    out = np.full_like(expected, np.nan)
    columns = np.ascontiguousarray(amounts.T)
    fluid = rest, warm, kind(250), kind(900), *looks(kind)
    share(x, columns, start, order, *mesh, inverse, *fluid, out)
    # Sums of at most 200 terms, all positive; the light of the mixtures cancels up to 4 digits.
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e4 * np.finfo(kind).eps, atol=1e-30)
