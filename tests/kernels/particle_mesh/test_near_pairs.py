"""Lists of sources near to a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.particle_mesh import near_pairs
from tests.kernels.from_python import from_python

cull, near_pack = from_python(near_pairs.cull), from_python(near_pairs.near_pack)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("reach", [1e-3, 0.2, 2.0])
def test_lists_what_lies_within_the_reach(real: Any, reach: float) -> None:
    """All of it in order, run by run, in as many lists as that takes: none of what lies between the runs."""
    draw, runs = np.random.default_rng(1), np.array([[3, 20], [20, 21], [100, 133], [900, 4000]])
    rows = draw.random((8, 4100)).astype(real)
    box = np.array([[0.4, 0.5, 0.1], [0.6, 0.5, 0.3]], real)
    square = real(reach**2)
    pack, found, run = near_pack(rows), [], 0
    wanted = np.concatenate([np.arange(*one) for one in runs])
    while run < len(runs):
        held, run = cull(rows.ravel(), runs, len(runs), run, box, square, pack.reshape(-1))
        found.append(pack[:, :held].copy())
    apart = np.maximum(np.maximum(box[0] - rows[:3].T, rows[:3].T - box[1]), 0.0)
    kept = wanted[(apart**2).sum(axis=1)[wanted] < square]
    assert np.array_equal(np.concatenate(found, axis=1), rows[:, kept])
