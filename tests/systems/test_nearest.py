"""Distances to the nearest other particle, by all pairs and by a tree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from ecs_fluid.systems.shared import nearest
from ecs_fluid.systems.shared.overlap import overlap


@pytest.mark.parametrize("count", [2, 65, nearest.FEW, nearest.FEW + 1])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_distances_are_those_of_the_tree_bit_for_bit(count: int, precision: str) -> None:
    x = np.random.default_rng(count).normal(size=(count, 3)).astype(precision)
    np.testing.assert_array_equal(nearest.nearest_distances(x), cKDTree(x).query(x, k=2)[0][:, 1])


def test_distances_on_a_lattice_and_in_one_place() -> None:
    """Points 0.25 m apart along a line, two of them in one place."""
    x = np.zeros((5, 3))
    x[:, 1] = [0.0, 0.25, 0.5, 0.75, 0.75]
    assert nearest.nearest_distances(x).tolist() == [0.25, 0.25, 0.25, 0.0, 0.0]


def test_overlap_counts_vortons_in_one_place_as_one() -> None:
    """Two populations on one lattice, one to rounding: core radius over spacing, as for one of them."""
    x = np.stack(np.meshgrid(*3 * [0.1 * np.arange(5.0)], indexing="ij"), axis=-1).reshape(-1, 3)
    sigma = np.full(len(x), 0.15)
    again = np.concatenate([x, x[::2] * (1 + 1e-15), x[1::2]])
    assert overlap(x, sigma) == pytest.approx(1.5)
    assert overlap(again, np.full(len(again), 0.15)) == pytest.approx(1.5)
    assert overlap(np.zeros((3, 3)), np.ones(3)) is None
