"""Pairs of bodies that may meet, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.close_bodies import close_pairs

BALL, CONTAINER, FIXED, FREE = 0, 2, 0, 2


@pytest.mark.parametrize("count", [0, 1, 2, 40, 300])
def test_pairs_are_those_of_all_pairs(count: int) -> None:
    """Balls of radius `reach` that meet, one of them free, and containers with all free; by rising rows.

    Every pair is looked at in the reference; 300 crowded bodies make the list grow beyond its first size.
    """
    draw = np.random.default_rng(count)
    x, reach = draw.random((count, 3)), 0.25 * draw.random(count)
    leader = np.arange(count) - np.arange(count) % 2  # pairs of rows are parts of one body
    shape = np.where(draw.random(count) < 0.03, CONTAINER, BALL)
    motion = np.where(draw.random(count) < 0.3, FIXED, FREE)
    wanted = []
    for a in range(count):
        for b in range(count):
            one_free = FREE in (motion[a], motion[b])
            meet = np.linalg.norm(x[a] - x[b]) <= reach[a] + reach[b]
            balls = a < b and shape[a] == shape[b] == BALL and meet and leader[a] != leader[b]
            inside = a != b and shape[a] == CONTAINER and shape[b] == BALL
            if one_free and (balls or inside):
                wanted.append((a, b))
    found = close_pairs(x, reach, shape, motion, leader)
    assert np.array_equal(found, np.array(wanted, np.int64).reshape(-1, 2))
    if count == 300:
        assert len(wanted) > 4 * count
