"""How the work of the velocity sums grows with the vortons, counted: validation case 57, article V9.

The multipole method is counted in tests/kernels/fmm/test_targets.py, multigrid and over-relaxation in
tests/kernels/poisson/test_multigrid.py; times are the benchmarks' (docs/notes/fmm.md, docs/velocity.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart import tree
from ecs_fluid.kernels.biot_savart.pairwise import VELOCITY_SUMS, block_arrays
from ecs_fluid.kernels.biot_savart.target_blocks import point_blocks
from ecs_fluid.kernels.biot_savart.tree_build import build
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import partition
from tests.kernels.from_python import from_python

arrays, begin, walk = from_python(block_arrays), from_python(tree._start_walk), from_python(tree._walk)

SIZES = (1000, 10_000, 100_000)


def thick_ring(n: int) -> np.ndarray:
    """n points at random over the section (radius 0.2 m) of a ring of 1 m, (n, 3) m."""
    draw = np.random.default_rng(5)
    turn, section = 2 * math.pi * draw.random((2, n))
    r = 0.2 * np.sqrt(draw.random(n))
    rho = 1 + r * np.cos(section)
    return np.stack([rho * np.cos(turn), rho * np.sin(turn), r * np.sin(section)], axis=1)


def cube(n: int) -> np.ndarray:
    return np.random.default_rng(6).random((n, 3))


def pairs(x: np.ndarray, criterion: int, opening: float, blocks: int = 150) -> float:
    """Pairs that the tree sums for all of the vortons at x, from the lists of that many blocks of targets."""
    n = len(x)
    grid = uniform_grid(x.min(axis=0), x.max(axis=0), n)
    start, order = partition(x, *grid)
    sx, sa = np.ascontiguousarray(x[order].T), np.full((3, n), 1.0 / n)
    nodes = build(*grid, start, sx, sa, np.full(n, 0.02))
    rows, starts = point_blocks(sx.T.copy())
    pack, _, _ = arrays(nodes.ssigma, VELOCITY_SUMS)
    found, targets = 0, 0
    for block in np.unique(np.linspace(0, len(starts) - 2, blocks).astype(int)):
        points = sx[:, rows[starts[block] : starts[block + 1]]]
        stack = np.zeros((512, 4), np.int64)
        how = 0, nodes, criterion, opening, True, False, points.min(axis=1), points.max(axis=1), stack
        depth, length = begin(*how, pack)
        resume = 0
        while depth + length:
            length, depth, resume = walk(*how, depth, resume, pack, length)
            found += length * points.shape[1]
            length = 0
        targets += points.shape[1]
    return n * found / targets


def exponents(values: list[float]) -> np.ndarray:
    return np.diff(np.log10(values)) / np.diff(np.log10(SIZES))


@pytest.mark.parametrize(
    ("flow", "overall", "last"), [(thick_ring, 1.234, 1.277), (cube, 1.121, 1.127)], ids=("ring", "cube")
)
def test_pairs_of_the_tree(flow: Callable[[int], np.ndarray], overall: float, last: float) -> None:
    """Case 57, pairs: exponent at most 1.25 over 10^3 to 10^5 by the articles' box; N log N by the angle.

    The case asks it of the time, which grows less: 1.19 and 1.14 by the angle (benchmarks/tree_growth.py).

    Measured 1.23 (ring) and 1.12 (cube). By an angle of 0.5 a list holds up to (4 pi/3)/0.5^3 nodes of each
    layer, so 1000 vortons are still one neighbourhood: 1.52 and 1.36 for the first decade, 1.28 and 1.13
    for the second, on the way to 1. An open box is the direct sum: exactly N^2 pairs.
    """
    clouds = [flow(n) for n in SIZES]
    box = [pairs(x, tree.BOX, 1e-4) for x in clouds]
    mean = math.log10(box[2] / box[0]) / 2
    assert mean == pytest.approx(overall, abs=0.03) and mean <= 1.25
    angle = exponents([pairs(x, tree.ANGLE, 0.5) for x in clouds])
    assert angle[1] == pytest.approx(last, abs=0.03)
    assert 1 < angle[1] < angle[0] - 0.2
    assert pairs(clouds[1], tree.BOX, math.inf, 20) == 1e8
