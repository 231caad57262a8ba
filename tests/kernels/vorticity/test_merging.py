"""Vortons that lie close together become one."""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.vorticity.merging import cell_levels, merge

Array = np.ndarray


def cloud(n: int = 2000, seed: int = 1) -> tuple[Array, Array, Array, Array]:
    draw = np.random.default_rng(seed)
    alpha = np.array([0.0, 0.0, 1.0]) + 0.5 * draw.standard_normal((n, 3))
    return draw.uniform(-1, 1, (n, 3)), alpha, draw.uniform(0.1, 0.2, n), draw.uniform(0.5, 1, n)


def test_levels_are_the_nearest_powers_of_two() -> None:
    assert list(cell_levels(np.array([1.0, 0.25, 0.3, 1.5, 1.4]))) == [0, -2, -2, 1, 0]


def test_total_strength_stays_and_impulse_across_the_strength() -> None:
    """The sum is exact to rounding; of each group's impulse only the part along its strength changes.

    No place x makes x cross a have a part along a. Groups whose place would move by half a cell or more are
    held back; with strengths within some 30 degrees of one direction these are less than a fifth.
    """
    x, alpha, sigma, volume = cloud()
    found = merge(x, alpha, sigma, volume, np.full(len(x), -2), np.zeros(len(x), int))
    assert len(found.first) < 0.3 * len(x)
    assert np.abs(found.alpha.sum(axis=0) - alpha.sum(axis=0)).max() < 1e-12 * np.abs(alpha).sum()
    cells = [tuple(row) for row in np.floor(x / 0.25).astype(int)]
    kept = 0
    for first, place, strength in zip(found.first, found.x, found.alpha, strict=True):
        rows = [i for i, cell in enumerate(cells) if cell == cells[first]]
        assert np.allclose(strength, alpha[rows].sum(axis=0), atol=1e-13)
        change = np.cross(place, strength) - np.cross(x[rows], alpha[rows]).sum(axis=0)
        kept += np.linalg.norm(np.cross(change, strength)) < 1e-12 * np.linalg.norm(strength)
        assert (np.abs(place - x[rows].mean(axis=0)) < 0.375).all()
    assert kept > 0.8 * len(found.first)


def test_what_is_alone_stays_bit_for_bit() -> None:
    """Vortons with a cell of their own are returned as they were, in their order."""
    x, alpha, sigma, volume = cloud(500)
    found = merge(x, alpha, sigma, volume, np.full(len(x), -20), np.zeros(len(x), int))
    assert np.array_equal(found.first, np.arange(500))
    for after, before in zip(found[1:], (x, alpha, sigma, volume), strict=True):
        assert np.array_equal(after, before)


def test_two_parallel_vortons() -> None:
    """Two of strengths 1 and 3 along z at x = 0.1 and 0.2: strength 4, at the centroid x = 0.175."""
    x = np.array([[0.1, 0.1, 0.1], [0.2, 0.1, 0.1]])
    alpha = np.array([[0, 0, 1.0], [0, 0, 3.0]])
    found = merge(x, alpha, np.array([0.3, 0.5]), np.array([1.0, 2.0]), np.zeros(2, int), np.zeros(2, int))
    assert np.allclose(found.alpha, [[0, 0, 4]]) and np.allclose(found.x, [[0.175, 0.1, 0.1]])
    # The core: sqrt((0.09 + 3 0.25)/4) = 0.458, less than the cell of 1 m, so 1. The volume: the larger.
    assert found.sigma[0] == 1.0 and found.volume[0] == 2.0


def test_cells_of_different_size_do_not_mix_and_far_vortons_stay_alone() -> None:
    x = np.array([[0.1, 0.1, 0.1], [0.15, 0.1, 0.1], [1e9, 0, 0], [1e9 + 0.1, 0, 0]])
    found = merge(x, np.ones((4, 3)), np.ones(4), np.ones(4), np.array([-3, -1, -3, -3]), np.zeros(4, int))
    assert list(found.first) == [0, 1, 2, 3]


def test_two_sides_stay_apart() -> None:
    """Three vortons of one cell, two of them on one side of a plate."""
    x = 0.1 + 0.01 * np.arange(9.0).reshape(3, 3)
    found = merge(x, np.ones((3, 3)), np.ones(3), np.ones(3), np.zeros(3, int), np.array([1, 8, 1]))
    assert list(found.first) == [0, 1] and found.alpha[:, 0].tolist() == [2.0, 1.0]


def test_no_vortons() -> None:
    nothing = np.zeros((0, 3))
    found = merge(nothing, nothing, *np.zeros((2, 0)), *np.zeros((2, 0), int))
    assert found.x.shape == (0, 3) and found.sigma.shape == (0,)
