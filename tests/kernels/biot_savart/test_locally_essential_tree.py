"""Locally essential trees: a walk reads nothing but what was found for its targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart import locally_essential_tree as essential, tree, tree_build
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.biot_savart.target_blocks import point_blocks
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import gather_sorted, partition


def grown(n: int) -> tree_build.Tree:
    draw = np.random.default_rng(n)
    x = draw.random((n, 3)) ** 2
    grid = uniform_grid(x.min(axis=0), x.max(axis=0), n)
    start, order = partition(x, *grid)
    alpha = draw.standard_normal((3, n))
    return tree_build.build(*grid, start, gather_sorted(x, order), alpha, np.full(n, 0.01))


def essential_part(
    whole: tree_build.Tree, low: np.ndarray, high: np.ndarray, **how: Any
) -> tuple[tree_build.Tree, int]:
    """The tree with NaN where targets in the boxes need nothing; how many nodes and vortons they need."""
    everything = np.stack([np.zeros(len(whole.cells), np.int64), np.diff(whole.first)], axis=1)
    opened = essential.opened_nodes(whole, everything, low, high, **how)
    kept = [np.array([whole.first[-1] - 1])]
    for layer in range(len(opened) - 1, 0, -1):
        kept.append(whole.first[layer - 1] + essential.children_of(whole.cells, layer, opened[layer]))
    nodes = np.concatenate(kept)
    rows = essential.concatenated_ranges(whole.start[opened[0]], whole.vortons[opened[0]])
    part = {}
    for name in ("x", "alpha", "sigma", "radius"):
        part[name] = np.full_like(getattr(whole, name), np.nan)
        part[name][..., nodes] = getattr(whole, name)[..., nodes]
    for name in ("sx", "sa", "ssigma"):
        part[name] = np.full_like(getattr(whole, name), np.nan)
        part[name][..., rows] = getattr(whole, name)[..., rows]
    count = np.full_like(whole.vortons, 2)
    count[nodes] = whole.vortons[nodes]
    return whole._replace(vortons=count, **part), len(nodes) + len(rows)


@pytest.mark.parametrize(
    "how",
    [
        {"criterion": tree.ANGLE, "opening": 0.5, "originals": True},
        {"criterion": tree.ANGLE, "opening": 1.0, "originals": True},
        {"criterion": tree.BOX, "opening": 1e-4, "originals": False},
        {"criterion": tree.BOX, "opening": 1.5, "originals": True},
    ],
)
@pytest.mark.parametrize("merged", [1, 7])
def test_walks_read_only_what_was_found(how: dict[str, Any], merged: int) -> None:
    """All else is NaN here, and the sums have the same bits; for the boxes of blocks and for larger ones."""
    whole = grown(4000)
    targets = np.random.default_rng(3).random((500, 3)) * [0.3, 1.2, 0.4]
    order, starts = point_blocks(targets)
    edges = starts[:-1:merged]
    low = np.minimum.reduceat(targets[order], edges, axis=0)
    high = np.maximum.reduceat(targets[order], edges, axis=0)
    part, count = essential_part(whole, low, high, **how)
    found, expected = np.empty_like(targets), np.empty_like(targets)
    for some, u in ((part, found), (whole, expected)):
        tree.velocity(CODES["winckelmans"], targets, some, u, blocks=(order, starts), **how)
    np.testing.assert_array_equal(found, expected)
    assert count < 0.75 * (len(whole.sigma) + len(whole.ssigma))


def test_far_targets_need_little() -> None:
    """From ten boxes away the root is enough, or a few nodes below it."""
    whole = grown(4000)
    how: dict[str, Any] = {"criterion": tree.ANGLE, "opening": 0.5, "originals": True}
    far = np.full((1, 3), 10.0)
    assert essential_part(whole, far, far + 1.0, **how)[1] == 1
    near = np.full((1, 3), 1.3)
    assert 1 < essential_part(whole, near, near + 0.1, **how)[1] < 200


def test_no_targets_need_nothing() -> None:
    nothing = np.empty((0, 3))
    opened = essential.opened_nodes(
        grown(50), np.array([[0, 10]] * 3), nothing, nothing, criterion=0, opening=1.0, originals=True
    )
    assert sum(map(len, opened)) == 0


@pytest.mark.parametrize("cells", [(5, 4, 7), (1, 9, 2), (8, 8, 8), (3, 1, 1), (6, 5, 5)])
def test_runs_of_nodes_and_their_children(cells: tuple[int, int, int]) -> None:
    """A cut between two nodes, looked up one layer up, puts every parent where its first child is."""
    layers, _ = tree_build.layers_of(np.array(cells))
    for layer in range(1, len(layers)):
        parents = np.arange(layers[layer].prod())
        children = [essential.children_of(layers, layer, parents[p : p + 1]) for p in parents]
        assert sorted(np.concatenate(children)) == list(range(layers[layer - 1].prod()))
        first = np.array([some.min() for some in children])
        for node in range(int(layers[layer - 1].prod()) + 1):
            assert essential.first_parent(layers, layer, node) == np.sum(first < node)
        for end in range(len(parents) + 1):
            last = max((int(some.max()) for some in children[:end]), default=-1)
            behind = essential.end_of_children(layers, layer, end)
            assert last < behind <= layers[layer - 1].prod() or behind == last + 1


def test_runs() -> None:
    np.testing.assert_array_equal(
        essential.concatenated_ranges(np.array([3, 9, 4]), np.array([2, 0, 3])), [3, 4, 4, 5, 6]
    )
