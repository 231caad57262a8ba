"""Early rejection: never of a path that meets a body, and of most of those that meet none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.polytope import Hulls, joined_hulls
from ecs_fluid.kernels.bodies.rotation import quaternion_of
from ecs_fluid.kernels.collision.collide import collide
from ecs_fluid.kernels.collision.early_rejection import (
    BLOCK,
    FEW_BODIES,
    REJECTED,
    ROWS,
    few_bodies,
    reject,
)
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, obstacles
from ecs_fluid.kernels.compiled import CHUNKS
from ecs_fluid.worlds.shapes import BoxShape

Array = np.ndarray


def bodies(shape: list[int], radius: list[float], x: Array, shift: Array, turn: float) -> tuple[Any, Hulls]:
    """Balls (0), boxes of edges 1, 2, 3 (1), containers of edges 8 (2), moving and turning in the tick."""
    hulls = joined_hulls(
        [BoxShape(size=(1.0, 2.0, 3.0)).hull().table, BoxShape(size=(8.0, 8, 8)).hull().table]
    )
    q = [np.array([quaternion_of(angle * np.array([0.3, -0.5, 0.9])) for _ in shape]) for angle in (0, turn)]
    number = np.array([1 if one == 2 else 0 for one in shape])
    poses = (x, q[0]), (x + shift, q[1])
    return obstacles(*poses, (shift, shift), np.array(shape), np.array(radius), number, hulls, 0.0), hulls


def rejected(found: tuple[Obstacles, Hulls], former: Array, x: Array, clearance: float = 0.0) -> Array:
    """Mask of the paths that are told to meet nothing."""
    few = few_bodies(*found)
    assert len(few[0])
    lanes, out = np.empty((ROWS, BLOCK), np.float32), np.empty(len(x), bool)
    for start in range(0, len(x), BLOCK):
        a, b = former[start : start + BLOCK], x[start : start + BLOCK]
        left = reject(found[0].shape, *few, clearance, float(np.finfo(x.dtype).eps), a, b, lanes)
        out[start : start + BLOCK] = lanes[REJECTED, : len(b)] > 0
        assert left == (~out[start : start + BLOCK]).sum()
    return out


def met(found: tuple[Obstacles, Hulls], former: Array, x: Array) -> tuple[Array, Array]:
    """(Ends of the paths, body met first) by the whole of `collide`."""
    ends, touched = x.copy(), np.full(len(x), 9)
    counts, own = np.zeros((CHUNKS, 3), np.int64), np.zeros((0, 3), x.dtype)
    collide(*found, former, ends, own, own, 0.0, 0.0, 0.0, float(np.finfo(x.dtype).eps), counts, touched)
    return ends, touched


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("container", [False, True])
@pytest.mark.parametrize("step", [0.3, 0.01])
def test_rejection_changes_nothing(precision: type, container: bool, step: float) -> None:
    """With bodies far away that make them too many for it, every path ends at the same bits."""
    draw = np.random.default_rng(7)
    shape, radius = [1, 0, 0] + [2] * container, [np.sqrt(14) / 2, 0.7, 0.2] + [np.sqrt(48)] * container
    x = np.array([[0.0, 0, 0], [2.0, 0, 0], [0, 3, 0], [0, 0, 0]])[: len(shape)]
    shift = 0.1 * draw.standard_normal((len(shape), 3))
    few = bodies(shape, radius, x, shift, 0.3)
    more = FEW_BODIES
    away = np.concatenate([x, [[100.0 + 9 * k, 0, 0] for k in range(more)]])
    many = bodies(
        shape + [0] * more, radius + [1.0] * more, away, np.concatenate([shift, np.zeros((more, 3))]), 0.3
    )
    assert len(few_bodies(*many)[0]) == 0
    former = draw.uniform(-4, 4, (40_000, 3)).astype(precision)
    ends = (former + step * draw.standard_normal(former.shape)).astype(precision)
    ends[::1000, 1] = np.nan
    (there, first), (wanted, who) = met(few, former, ends), met(many, former, ends)
    assert np.array_equal(there, wanted, equal_nan=True) and np.array_equal(first, who)
    assert (first >= 0).sum() > 500
    if step < 0.1:
        # Long paths leave little to be told from the ends; short ones most, but for blocks with a NaN.
        free = rejected(few, former, ends)
        assert free.mean() > 0.6 * (first < 0).mean() and not free[first >= 0].any()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_off_a_ball_and_a_box(precision: type) -> None:
    """Who ends off a ball, or beyond a face of a box, by sqrt(3) times the longest part of all paths.

    Both bodies stand. Of those that come nearer, none is rejected that meets the body, by the distance of
    segments and the inside of the box.
    """
    draw = np.random.default_rng(8)
    still = np.zeros((1, 3))
    former = draw.uniform(-3, 3, (20_000, 3)).astype(precision)
    ends = (former + draw.uniform(-0.3, 0.3, former.shape)).astype(precision)
    a, b = former.astype(np.float64), ends.astype(np.float64)
    # 2e-4 is for rounding to single precision: 8e-6 and 16 eps = 2e-6 of 7 m are 7e-5 m.
    room = np.sqrt(3) * 0.3 + 2e-4
    ball = rejected(bodies([0], [0.7], np.array([[0.5, 0, 0]]), still, 0.0), former, ends)
    d, w = a - [0.5, 0, 0], b - a
    s = np.clip(-(d * w).sum(axis=1) / (w * w).sum(axis=1), 0, 1)
    gap = np.linalg.norm(d + s[:, None] * w, axis=1) - 0.7
    off = np.linalg.norm(b - [0.5, 0, 0], axis=1) - 0.7
    assert ball[off > room].all() and not ball[gap < 0].any() and ball.sum() > 10_000
    box = rejected(bodies([1], [np.sqrt(14) / 2], np.zeros((1, 3)), still, 0.0), former, ends)
    half = np.array([0.5, 1.0, 1.5])
    beyond = (np.abs(b) > half + room).any(axis=1)
    inside = (np.abs(a) < half).all(axis=1) | (np.abs(b) < half).all(axis=1)
    assert box[beyond].all() and not box[inside].any() and beyond.sum() > 10_000


def test_clearance_and_numbers_that_are_not_finite() -> None:
    """What stands 0.1 m off a ball is clear of it by 0.09 m and not by 0.11 m; NaN and inf never are."""
    found = bodies([0], [0.7], np.zeros((1, 3)), np.zeros((1, 3)), 0.0)
    box = bodies([2], [np.sqrt(48)], np.zeros((1, 3)), np.zeros((1, 3)), 0.0)
    x = np.array([[0.8, 0, 0]])
    assert rejected(found, x, x, 0.09).all() and not rejected(found, x, x, 0.11).any()
    assert rejected(box, x, x).all()
    for number in (np.nan, np.inf, -np.inf):
        x = np.array([[5.0, 0, 0], [5.0, number, 0]])
        assert not rejected(found, x, x).any() and not rejected(box, x, x).any()


def test_ends_just_far_enough() -> None:
    """Beyond a face of a box by more than the longest path and the change of its plane, or off a ball by it.

    All paths but one are of length 0; the longest, 0.1 m along x, counts as sqrt(3) 0.1 = 0.1732 m for all.
    The box, of edges 1, 2, 3, moves by 0.05 m along x without turning, so its planes change by 0.05 m there.
    """
    x = np.array([[5.0, 0, 0], [0.5, 0, 0], [0.5, 0, 0], [0.0, 1.0, 0], [0.0, 1.0, 0]])
    x[1:, :] += np.array([[0.222, 0, 0], [0.225, 0, 0], [0.05, 0.172, 0], [0.05, 0.175, 0]])
    x[1:3, 0] += 0.05
    former = x.copy()
    former[0, 0] -= 0.1
    shift = np.array([[0.05, 0, 0]])
    box = bodies([1], [np.sqrt(14) / 2], np.zeros((1, 3)), shift, 0.0)
    box = (box[0]._replace(q0=box[0].q1, turn0=np.eye(3)[None], turn1=np.eye(3)[None]), box[1])
    assert rejected(box, former, x).tolist() == [True, False, True, False, True]
    ball = bodies([0], [0.5], np.zeros((1, 3)), np.zeros((1, 3)), 0.0)
    x = np.array([[5.0, 0, 0], [0.672, 0, 0], [0.675, 0, 0]])
    former = x - np.array([[0.1, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert rejected(ball, former, x).tolist() == [True, False, True]
