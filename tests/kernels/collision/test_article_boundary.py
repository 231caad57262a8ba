"""Vortons near surfaces: which ones, and what part 4 of the articles makes of one. Articles F9 in part."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, Code
from ecs_fluid.kernels.bodies.polytope import Hulls, joined_hulls
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of
from ecs_fluid.kernels.collision.article_boundary import reassign
from ecs_fluid.kernels.collision.closest_surface import near_surfaces
from ecs_fluid.kernels.collision.swept_bodies import obstacles
from ecs_fluid.worlds.shapes import BoxShape

Array = np.ndarray
CODE = CODES["winckelmans"]


def standing(x: Array, q: Array, shape: list[int], radius: Array, clearance: float) -> tuple[object, Hulls]:
    """Bodies at rest, and a table with the box of edges 1, 2, 3."""
    hulls = joined_hulls([BoxShape(size=(1.0, 2.0, 3.0)).hull().table])
    still = (np.zeros_like(x), np.zeros_like(x))
    numbers = np.array(shape), radius, np.zeros(len(x), np.int64)
    return obstacles((x, q), (x, q), still, *numbers, hulls, clearance), hulls


def look(found: tuple[object, Hulls], points: Array, reach: float) -> tuple[Array, Array, Array]:
    body, gap = np.empty(len(points), np.int64), np.full(len(points), np.nan)
    normal = np.full((len(points), 3), np.nan)
    near_surfaces(*found, points, np.full(len(points), reach), body, gap, normal)
    return body, gap, normal


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_near_surfaces_of_a_ball_and_a_box(precision: type) -> None:
    """Distances by their formulas: |x - c| - R, and the length of the part of |x| beyond the half edges.

    The nearer of the two counts; nobody beyond the reach is told of, and nobody within it is left out.
    """
    draw = np.random.default_rng(4)
    points = draw.uniform(-3, 4, (20_000, 3)).astype(precision)
    x = np.array([[0.0, 0, 0], [2.0, 0, 0]])
    q = np.stack([quaternion_of(np.array([0.3, -0.5, 0.9])), quaternion_of(np.zeros(3))])
    table = standing(x, q, [1, 0], np.array([np.sqrt(14) / 2, 0.7]), 0.4)
    body, gap, normal = look(table, points, 0.4)
    exact = points.astype(np.float64)
    local = exact @ matrix_of(q[0])
    over = np.abs(local) - np.array([0.5, 1.0, 1.5])
    box = np.linalg.norm(np.maximum(over, 0), axis=1) + np.minimum(over.max(axis=1), 0)
    ball = np.linalg.norm(exact - x[1], axis=1) - 0.7
    least = np.minimum(box, ball)
    assert np.array_equal(body >= 0, least < 0.4)
    near = body >= 0
    assert np.array_equal(body[near], np.where(ball < box, 1, 0)[near])
    assert np.abs(gap[near] - least[near]).max() < 1e-12
    # One step back along the normal is the surface: at distance 0 of the body that was told.
    ends = exact[near] - gap[near, None] * normal[near]
    back, _, _ = look(table, ends + 1e-9 * normal[near], 1e-6)
    assert (back >= 0).all() and np.abs(np.linalg.norm(normal[near], axis=1) - 1).max() < 1e-12


def test_near_walls_of_a_container() -> None:
    """Inside the box of 1 x 2 x 3 the nearest wall, with its normal inwards; outside it is not felt."""
    table = standing(np.zeros((1, 3)), quaternion_of(np.zeros(3))[None], [2], np.array([2.0]), 1.0)
    points = np.array([[0.4, 0.0, 0.0], [0.0, -0.95, 0.0], [0.6, 0.0, 0.0], [0.0, 0.0, 0.0]])
    body, gap, normal = look(table, points, 0.3)
    assert list(body) == [0, 0, -1, -1]
    assert np.allclose(gap[:2], [0.1, 0.05]) and np.allclose(normal[:2], [[-1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("bent", [0, 1])
def test_one_vorton_stops_the_slip(code: Code, bent: int) -> None:
    """Part 4: at its new place and strength a vorton cancels w at the surface point; on the normal only the
    part of w along the surface. 1e-12: a closed form.
    """
    draw = np.random.default_rng(len(code))
    n = 200
    normal = draw.standard_normal((n, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    point, alpha = draw.standard_normal((n, 3)), 0.1 * draw.standard_normal((n, 3))
    sigma = draw.uniform(0.05, 0.2, n)
    x = point + (draw.uniform(0, 1.2, n) * sigma)[:, None] * normal
    slip = draw.standard_normal((n, 3))

    def own(place: Array, strength: Array) -> Array:
        out = np.empty((n, 3))
        for i in range(n):
            direct.velocity(
                code, point[i : i + 1], np.ascontiguousarray(place[i : i + 1].T),
                np.ascontiguousarray(strength[i : i + 1].T), sigma[i : i + 1], out[i : i + 1],
            )  # fmt: skip
        return out

    w = slip - own(x, alpha)
    new_x, new = x.copy(), alpha.copy()
    reassign(code, new_x, new, sigma, point, normal, slip, np.full(n, bent), np.zeros(n))
    left = w + own(new_x, new)
    if not bent:
        left -= (w * normal).sum(axis=1, keepdims=True) * normal
    assert np.abs(left).max() < 1e-12 * 10
    # They stand in the fluid, at least a core radius from the point.
    away = new_x - point
    assert ((away * normal).sum(axis=1) > 0).all()
    assert (np.linalg.norm(away, axis=1) >= sigma * (1 - 1e-12)).all()


def test_flow_straight_at_the_wall_changes_nothing() -> None:
    """There is no direction along the surface in which a vorton could turn it."""
    x, alpha = np.array([[0.0, 0, 0.1]]), np.zeros((1, 3))
    slip, up = np.array([[0.0, 0, -2.0]]), np.array([[0.0, 0, 1.0]])
    one = np.ones(1, np.int64)
    reassign(CODE, x, alpha, np.array([0.1]), np.zeros((1, 3)), up, slip, one, np.zeros(1))
    assert np.array_equal(x, [[0, 0, 0.1]]) and not alpha.any()


def test_next_to_no_flow_moves_nothing_far() -> None:
    """By w^2 / (w^2 + floor^2) of the way: half of it at the floor, 1e-6 at a thousandth of it."""
    places = []
    for floor in (0.0, 1e-3, 1.0):
        x, alpha = np.array([[0.0, 0, 0.02]]), np.zeros((1, 3))
        slip, up = np.array([[1e-3, 0, 0]]), np.array([[0.0, 0, 1.0]])
        one = np.ones(1, np.int64)
        reassign(CODE, x, alpha, np.array([0.1]), np.zeros((1, 3)), up, slip, one, np.array([floor]))
        places.append(x[0, 2] - 0.02)
    assert np.allclose(places, [0.08, 0.04, 0.08 / (1 + 1e6)], rtol=1e-12)
