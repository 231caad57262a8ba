"""Slip at bodies, how far vortons may go, and what that gives them: against NumPy's plain formulas."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.table import Bodies
from ecs_fluid.kernels.collision.surface_slip import (
    NearVortons,
    Sums,
    balance,
    correction_fractions,
    exchanged,
    least_squares,
    slip_at,
    strength_changes,
)

Array = np.ndarray
C = 200


def rows(seed: int) -> tuple[np.random.Generator, Array]:
    """A source of numbers, and which of three bodies each row belongs to."""
    draw = np.random.default_rng(seed)
    return draw, draw.integers(0, 3, C)


def test_least_squares_is_the_pseudo_inverse() -> None:
    """Regular, of rank one, of rank one in the first way alone, and zero: p = M+ r as NumPy finds it.

    Of rank one up to rounding: the smaller eigenvalue of products of 3 digits is exactly zero.
    """
    draw = np.random.default_rng(1)
    for ways in (draw.standard_normal((9, 2)), np.array([[3.0, 6.0], [1.0, 2.0]]), np.array([[2.0, 0.0]])):
        matrix, right = ways.T @ ways, ways.T @ draw.standard_normal(len(ways))
        sums = np.array([matrix[0, 0], matrix[0, 1], matrix[1, 1], *right])
        assert np.allclose(least_squares(sums), np.linalg.pinv(matrix) @ right, rtol=1e-12)
    assert least_squares(np.zeros(5)) == (0.0, 0.0)


def test_parts_leave_the_least_slip() -> None:
    """No other parts leave less of the squared slip; they are cut at zero, and the first way at the gain."""
    draw, who = rows(2)
    one, two = draw.standard_normal((2, C, 3))
    aim = np.array([[0.5, 0.3], [0.03, 0.7], [-0.4, -0.2]])
    slip = -(aim[who, 0, None] * one + aim[who, 1, None] * two) + 1e-3 * draw.standard_normal((C, 3))
    parts = correction_fractions(who, slip, one, two, 0.1, np.full(4, np.inf))
    for i in range(3):
        ways = np.stack([one[who == i].ravel(), two[who == i].ravel()], axis=1)
        best = np.linalg.lstsq(ways, -slip[who == i].ravel())[0]
        expected = [min(max(best[0], 0), 0.1), 0.1 * max(best[1], 0)]
        assert np.allclose(parts[i], expected, rtol=1e-10, atol=1e-15)
    assert np.array_equal(parts[3], [0.0, 0.0])  # a body without vortons


@pytest.mark.parametrize("share", [-0.5, 0.25, 3.0])
def test_slip_of_a_fluid_that_half_turns_with_its_body(share: float) -> None:
    """A flow v + share spin x r takes part in the rotation with min(max(share, 0), 1).

    Its slip is (share - 1) spin x r; what is left without the missing part f - 1 is (share - f) spin x r; and
    the strength grows by 2 (1 - f) (spin . n) n volume.
    """
    draw, who = rows(3)
    x, v, angular_velocity = draw.standard_normal((3, 3, 3))
    one, tensor, number = np.ones(3), np.ones((3, 3, 3)), np.zeros(3, np.int64)
    bodies = Bodies(
        x,
        np.ones((3, 4)),
        v,
        angular_velocity,
        one,
        tensor,
        number,
        one,
        one,
        number,
        one,
        number,
        np.arange(3),
        np.zeros((3, 3)),
    )
    point, normal, alpha = draw.standard_normal((3, C, 3))
    volume = draw.uniform(1, 2, C)
    turning = np.cross(bodies.angular_velocity[who], point - bodies.x[who])
    flow = bodies.v[who] + share * turning
    slip, rest, spun = slip_at(bodies, who, point, normal, flow, alpha, volume)
    followed = min(max(share, 0.0), 1.0)
    assert np.allclose(slip, (share - 1) * turning, atol=1e-13)
    assert np.allclose(rest, (share - followed) * turning, atol=1e-13)
    along = (bodies.angular_velocity[who] * normal).sum(axis=1)
    assert np.allclose(spun - alpha, 2 * (1 - followed) * (along * volume)[:, None] * normal, atol=1e-12)


def test_exchange_and_changes() -> None:
    """Sums of 1/2 r cross alpha and 1/3 r cross (r cross alpha), and the ways by their parts."""
    draw, who = rows(4)
    centers = draw.standard_normal((4, 3))
    x0, a0, x1, a1, slip = draw.standard_normal((5, C, 3))
    impulse, moment, rms = exchanged(centers, who, x0, a0, x1, a1, slip)
    for i in range(3):
        own = who == i
        arms = [(x[own] - centers[i], a[own]) for x, a in ((x0, a0), (x1, a1))]
        gain = [0.5 * np.cross(r, a).sum(axis=0) for r, a in arms]
        assert np.allclose(impulse[i], gain[1] - gain[0], rtol=1e-12)
        gain = [np.cross(r, np.cross(r, a)).sum(axis=0) / 3 for r, a in arms]
        assert np.allclose(moment[i], gain[1] - gain[0], rtol=1e-12)
        assert np.isclose(rms[i], np.sqrt((slip[own] ** 2).sum(axis=1).mean()))
    assert not impulse[3].any() and not moment[3].any() and rms[3] == 0.0
    parts = draw.uniform(0, 1, (4, 2))
    expected = parts[who, :1] * (a1 - a0) + parts[who, 1:] * (slip - a0)
    assert np.allclose(strength_changes(who, parts, a0, a1, slip), expected, atol=1e-14)


def test_a_faint_second_way_is_gone_no_further_than_a_body_may_turn() -> None:
    """A way that changes the slip by -1e-9 of it would be gone 1e9 times; a body stops at its `most`."""
    draw, who = rows(7)
    slip = draw.standard_normal((C, 3))
    most = np.array([1.0, 3.0, np.inf, 1.0])
    parts = correction_fractions(who, slip, np.zeros((C, 3)), -1e-9 * slip, 0.1, most)
    assert np.allclose(parts[:3, 1], [0.1, 0.3, 1e8]) and not parts[:, 0].any()


def near_bodies(draw: np.random.Generator, who: Array) -> tuple[Bodies, NearVortons]:
    """Four bodies, and vortons of random strengths near three of them."""
    one, none, number = np.ones(4), np.zeros((4, 3)), np.zeros(4, np.int64)
    bodies = Bodies(
        draw.standard_normal((4, 3)), np.ones((4, 4)), none, none, one, np.ones((4, 3, 3)), number, one, one,
        number, one, number, np.arange(4), none,
    )  # fmt: skip
    normal, point, x, alpha = draw.standard_normal((4, C, 3))
    return bodies, NearVortons(np.arange(C), who, normal, point, x, alpha, np.ones(C), np.ones(C))


def test_balanced_changes_are_the_nearest_that_sum_to_zero() -> None:
    """Of changes with the sum zero none is nearer to those wanted; bodies whose sum is free keep theirs."""
    draw, who = rows(5)
    who[who == 2] = 0
    who[7] = 2
    bodies, near = near_bodies(draw, who)
    wanted, slip = draw.standard_normal((2, C, 3))
    after = wanted.copy()
    sums = Sums(np.array([False, True, False, False]), np.zeros((4, 3, 3)))
    moved, most = balance(bodies, near, sums, slip, after)
    assert not moved.any() and np.isinf(most).all()
    assert np.allclose(after[who == 1], wanted[who == 1], atol=1e-14)
    assert np.array_equal(after[7], near.alpha[7])  # alone, and so nothing that a way could be made of
    own = who == 0
    # The nearest point of the plane sum = 0 lies along its normal, (1, ..., 1): the same for all rows.
    assert np.abs((after - near.alpha)[own].sum(axis=0)).max() < 1e-13 * C
    assert np.allclose(np.ptp((after - wanted)[own], axis=0), 0.0, atol=1e-14)


def test_bodies_that_react_follow_the_slip_and_no_more() -> None:
    """Changes keep the part p = sum slip . (d x r)/sum |d|^2 |r|^2 of their sum, d = -turn sum, in 0 to 1."""
    draw, who = rows(6)
    bodies, near = near_bodies(draw, who)
    wanted = draw.standard_normal((C, 3))
    turn = 1e-2 * draw.standard_normal((4, 3, 3))
    parts = []
    for size in (1e-4, 1.0, -1.0, 1e4):
        slip, expected, wholes = np.empty((C, 3)), np.empty(3), np.empty(3)
        for i in range(3):
            own = who == i
            total = (wanted - near.alpha)[own].sum(axis=0)
            d, r = -turn[i] @ total, near.point[own] - bodies.x[i]
            slip[own] = size * np.cross(d, r) + 1e-3 * draw.standard_normal((own.sum(), 3))
            part = (slip[own] * np.cross(d, r)).sum() / ((d**2).sum() * (r**2).sum())
            expected[i], wholes[i] = min(max(part, 0.0), 1.0), part
        after = wanted.copy()
        moved, most = balance(bodies, near, Sums(np.zeros(4, bool), turn), slip, after)
        assert np.allclose(most[:3], np.where(wholes > 0.0, np.maximum(wholes, 1.0), np.inf))
        for i in range(3):
            own = who == i
            total = (wanted - near.alpha)[own].sum(axis=0)
            assert np.allclose((after - near.alpha)[own].sum(axis=0), expected[i] * total, atol=1e-11)
            spin = np.cross(expected[i] * (turn[i] @ total), near.point[own] - bodies.x[i])
            assert np.allclose(moved[own], spin, atol=1e-11)
            # What it turns by leaves no more slip than there was.
            assert ((slip + moved)[own] ** 2).sum() <= (slip[own] ** 2).sum() * (1 + 1e-12)
        parts.append(expected)
    assert (np.array(parts[2]) == 0.0).all() and (np.array(parts[3]) == 1.0).all() and (parts[1] > 0.1).all()
