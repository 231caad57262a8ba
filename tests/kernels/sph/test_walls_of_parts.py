"""The part of a cut body in the compression of liquid is that of the uncut body."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.polytope import joined_hulls
from ecs_fluid.kernels.collision.swept_bodies import obstacles
from ecs_fluid.kernels.sph.wall_pressure import MOST_BODIES, joints_of, wall_law, walls
from ecs_fluid.worlds.hulls import about, hull_of_vertices

Array = np.ndarray
SPACING, WIDE, THICK = 0.05, 0.4, 0.06


def part_and_slope(parts: list[Array], x: Array) -> tuple[Array, Array]:
    """G and its gradient at x of one body of these parts, given by their corners."""
    hulls, n = joined_hulls([about(hull_of_vertices(part), np.zeros(3)) for part in parts]), len(parts)
    place, turn, still = np.zeros((n, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), np.zeros((n, 3))
    shapes = np.ones(n, np.int64), hulls.radius, np.arange(n), hulls, 6 * SPACING
    found = obstacles((place, turn), (place, turn), (still, still), *shapes, np.zeros(n, np.int64))
    part, body = np.empty(len(x)), np.empty((len(x), MOST_BODIES), np.int64)
    slope = np.zeros((len(x), MOST_BODIES, 3))
    walls(found, hulls, joints_of(found, hulls, []), x, SPACING, wall_law(2.98), part, body, slope)
    return part, slope[:, 0]


def on_floor(outline: Array) -> Array:
    """Corners of a slab below z = 0 with this outline (n, 2)."""
    return np.concatenate([np.column_stack([outline, np.full(len(outline), z)]) for z in (-THICK, 0.0)])


def around(k: Array) -> Array:
    """Points of a circle at the parts k of a turn."""
    return WIDE * np.column_stack([np.cos(2 * np.pi * k), np.sin(2 * np.pi * k)])


@pytest.mark.parametrize("cut", ["wedges", "tiles"])
def test_a_floor_of_parts_is_one_floor(cut: str) -> None:
    """40 wedges that meet in the middle, and tiles of half a spacing: as one slab, to rounding.

    What several parts within reach add up to is up to twice as much, and no potential: water in a bowl of 12
    wedges moved ever faster (0.27 m/s after 1 s, 0.64 after 10).
    """
    if cut == "wedges":
        ends = np.arange(41) / 40
        parts = [on_floor(np.vstack([[0.0, 0.0], around(ends[k : k + 2])])) for k in range(40)]
        whole = on_floor(around(ends[:-1]))
    else:
        square, wide = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), SPACING / 2
        parts = [on_floor(wide * (square + np.array([i, j]))) for i in range(-6, 6) for j in range(-6, 6)]
        whole = on_floor(6 * wide * (2 * square - 1))
    x = np.random.default_rng(2).uniform([-0.1, -0.1, 0.005], [0.1, 0.1, 0.1], (400, 3))
    (one, one_slope), (other, slope) = part_and_slope([whole], x), part_and_slope(parts, x)
    assert np.allclose(one, other, atol=1e-12) and np.allclose(one_slope, slope, atol=1e-9)
    assert one.max() > 0.5
