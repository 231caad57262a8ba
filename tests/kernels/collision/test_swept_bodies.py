"""The grid of bodies: whoever may touch a particle is listed in its cell, and few others are."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.polytope import Hulls, joined_hulls
from ecs_fluid.kernels.bodies.rotation import matrices_after, quaternion_of
from ecs_fluid.kernels.collision.collide import collide
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, obstacles
from ecs_fluid.kernels.compiled import CHUNKS
from ecs_fluid.kernels.sph.wall_pressure import distance_to
from ecs_fluid.worlds.hulls import about, hull_of_vertices

Array = np.ndarray
SLABS = 40


def ring() -> Hulls:
    """Slabs of 0.05 m around a circle of 1 m, with the origin of all in its middle: parts of one body."""
    parts = []
    for k in range(SLABS):
        a, b = 2 * np.pi * np.array([k, k + 1]) / SLABS
        corners = [(r * np.cos(s), r * np.sin(s), z) for r in (1.0, 1.05) for s in (a, b) for z in (0, 0.8)]
        parts.append(about(hull_of_vertices(np.array(corners)), np.zeros(3)))
    return joined_hulls(parts)


def swept(hulls: Hulls, shift: Array, turn: Array, clearance: float, stray: Array | None) -> Obstacles:
    """The ring as it moves by `shift` m and turns by `turn` rad in a tick."""
    x, q = np.zeros((SLABS, 3)), [np.tile(quaternion_of(way), (SLABS, 1)) for way in (0 * turn, turn)]
    motion, number = (np.tile(shift, (SLABS, 1)), np.tile(turn, (SLABS, 1))), np.arange(SLABS)
    shapes = np.ones(SLABS, np.int64), hulls.radius, number, hulls, clearance
    return obstacles((x, q[0]), (x + shift, q[1]), motion, *shapes, np.zeros(SLABS, np.int64), stray)


@pytest.mark.parametrize(("turn", "most"), [(0.0, 5), (0.05, 10), (0.4, 40), (0.8, 41)])
def test_boxes_change_nothing_but_what_is_listed(turn: float, most: float) -> None:
    """Paths end at the same bits as where balls around all slabs are listed: nearly all 40 in each cell."""
    hulls, draw = ring(), np.random.default_rng(5)
    former = draw.uniform(-1.3, 1.3, (20_000, 3)) * [1, 1, 0.6]
    ends = former + 0.1 * draw.standard_normal(former.shape)
    shift, way = np.array([0.03, -0.02, 0.05]), turn * np.array([0.2, 0.1, 0.97])
    found = []
    for stray in (None, np.full(SLABS, np.inf)):
        bodies = swept(hulls, shift, way, 0.0, stray)
        x, touched = ends.copy(), np.empty(len(ends), np.int64)
        none, counts = np.zeros((0, 3)), np.zeros((CHUNKS, 3), int)
        collide(bodies, hulls, former, x, none, none, 0.0, 0.0, 0.0, 2e-16, counts, touched)
        found.append((x, touched, len(bodies.near) / (len(bodies.start) - 1)))
    assert np.array_equal(found[0][0], found[1][0]) and np.array_equal(found[0][1] < 0, found[1][1] < 0)
    assert (found[0][1] >= 0).sum() > 500
    assert found[1][2] > 30, found
    assert found[0][2] < most


def test_what_turns_is_listed_wherever_it_comes_by() -> None:
    """Slabs that turn by up to 0.5 rad: a point of a circle moves by 2 r sin(angle / 2), and no farther."""
    hulls, draw, angle, reach = ring(), np.random.default_rng(6), 0.5, 0.07
    way = angle * np.array([0.6, 0.0, 0.8])
    bodies = swept(hulls, np.zeros(3), 0 * way, reach, 2 * hulls.radius * np.sin(angle / 2))
    assert len(bodies.near) / (len(bodies.start) - 1) < 25
    near = 0
    for part in (0.0, 0.3, 1.0):
        turned = bodies._replace(turn1=matrices_after(np.tile(part * way, (SLABS, 1)), bodies.q0))
        for p in draw.uniform(-1.2, 1.2, (300, 3)):
            i, j, k = np.floor((p - bodies.origin) / bodies.edge).astype(int)
            listed: set[int] = set()
            if min(i, j, k) >= 0 and ([i, j, k] < bodies.cells).all():
                cell = (i * bodies.cells[1] + j) * bodies.cells[2] + k
                listed = set(bodies.near[bodies.start[cell] : bodies.start[cell + 1]].tolist())
            close = {i for i in range(SLABS) if distance_to(turned, hulls, i, tuple(p), reach) < reach}
            assert close <= listed
            near += len(close)
    assert near > 100
