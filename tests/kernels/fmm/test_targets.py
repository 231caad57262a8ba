"""Fast multipole method at other targets, in special places, its symmetries and its cost (case 57)."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES
from ecs_fluid.kernels.fmm import fast_multipole, upward_downward
from ecs_fluid.kernels.fmm.accuracy import settings
from tests.kernels.fmm.fmm_flows import (
    WINCKELMANS,
    Array,
    arrays,
    assert_tolerance_is_kept,
    clusters,
    cube,
    exact_gradient,
    gradient,
    line,
    plane,
    rms,
    thick_ring,
)
from tests.kernels.regularisations_by_day import pairs, some
from tests.threads import check_threads

# Other targets, other results


@pytest.mark.parametrize("name", some(NAMES, 1))
def test_other_targets(name: str) -> None:
    """Velocity and potential at points around and inside the ring, some of them far away."""
    _, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    rng = np.random.default_rng(8)
    targets = np.concatenate([3.0 * rng.random((2000, 3)) - 1.5, 50.0 * rng.standard_normal((50, 3))])
    u, exact, zeta = (np.empty_like(targets) for _ in range(3))
    for tolerance in (1e-3, 1e-6):
        work = fast_multipole.velocity(fast_multipole.plan(CODES[name], sx, sa, sigma, tolerance), targets, u)
        direct.velocity(CODES[name], targets, sx, sa, sigma, exact)
        assert work.expansions > 0
        assert rms(u - exact) < tolerance * rms(exact)
        fast_multipole.potential(fast_multipole.plan(CODES[name], sx, sa, sigma, tolerance), targets, u)
        direct.potential_vorticity(CODES[name], targets, sx, sa, sigma, exact, zeta)
        assert rms(u - exact) < tolerance * rms(exact)


def test_one_target_far_away_leaves_the_work_for_the_others_as_it_was() -> None:
    """It was six times the meetings of nodes: all leaves became as small as a few points far away need."""
    _, sx, sa, sigma = arrays(thick_ring(3000), np.float32)
    prepared = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3)
    targets = np.random.default_rng(5).uniform(-1.5, 1.5, (40_000, 3)).astype(np.float32)
    u, exact = np.empty_like(targets), np.empty_like(targets)
    near = fast_multipole.velocity(prepared, targets, u)
    targets[7] = 1e4
    work = fast_multipole.velocity(prepared, targets, u)
    assert work.expansions < 1.2 * near.expansions
    assert work.pairs < 1.2 * near.pairs
    direct.velocity(WINCKELMANS, targets, sx, sa, sigma, exact)
    assert rms(u - exact) < 1e-3 * rms(exact)


def far_away(x: Array) -> Array:
    y = np.random.default_rng(14).standard_normal((1500, 3))
    distance = np.random.default_rng(15).uniform(1e3, 2e3, (1500, 1))
    return np.asarray(distance * y / np.linalg.norm(y, axis=1)[:, None])


def grid_points(x: Array) -> Array:
    axes = np.meshgrid(*(np.linspace(-1.5, 1.5, 12) for _ in range(3)), indexing="ij")
    return np.stack([a.ravel() for a in axes], axis=1)


def one_point(x: Array) -> Array:
    return np.array([[0.3, 0.2, 0.1]])


def some_vortons(x: Array) -> Array:
    return np.ascontiguousarray(x[::7])


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("targets", [far_away, grid_points, one_point, some_vortons])
def test_velocity_and_gradient_anywhere(targets: Any, real: Any) -> None:
    """1000 radii away the field is a millionth of that inside; its error is relative to itself."""
    x, sx, sa, sigma = arrays(thick_ring(4000), real)
    points = np.ascontiguousarray(targets(x).astype(real))
    u, du = np.full_like(points, np.nan), np.full((len(points), 3, 3), np.nan, real)
    work = fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-4), points, u, du)
    doubles = [a.astype(float) for a in (points, sx, sa, sigma)]
    exact_u, exact_du = np.empty((len(points), 3)), np.empty((len(points), 3, 3))
    direct.velocity_gradient(WINCKELMANS, *doubles, exact_u, exact_du)
    assert work.expansions > 0
    assert_tolerance_is_kept((u, du), (exact_u, exact_du), 1e-4)


def circle(n: int, height: float = 0.0, strength: float = 1.0) -> tuple[Array, Array, Array]:
    """A closed ring: no strength in total, so that far away its first terms vanish."""
    t = 2.0 * np.pi * np.arange(n) / n
    x = np.stack([np.cos(t), np.sin(t), np.full(n, height)], axis=1)
    return x, strength / n * np.stack([-np.sin(t), np.cos(t), 0.0 * t], axis=1), np.full(n, 0.05)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("opposite", [False, True])
def test_far_from_strengths_that_cancel(opposite: bool, tolerance: float) -> None:
    """One point 10 to 2000 radii from a ring, or from two opposite ones, 0.5 radii apart.

    The series of nodes so far away was cut before its first term that does not vanish: 3e-2 at 50, and all of
    the velocity of the two rings at 1000. They are 1e-15 (1000/0.5)^2 exact, rounding.
    """
    rings = [circle(2000), circle(2000, 0.5, -1.0)][: 1 + opposite]
    cloud = tuple(np.concatenate(a) for a in zip(*rings, strict=True))
    _, sx, sa, sigma = arrays(cloud, np.float64)
    for distance in (10.0, 50.0, 100.0, 500.0, 2000.0):
        x, u, exact = distance * np.array([[0.9, 0.3, 0.2]]), np.empty((1, 3)), np.empty((1, 3))
        work = fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, tolerance), x, u)
        direct.velocity(WINCKELMANS, x, sx, sa, sigma, exact)
        assert rms(u - exact) < tolerance * rms(exact)
        assert not work.error > tolerance


def test_one_plan_serves_many_sums() -> None:
    x, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    plan = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-4)
    u, v, du = np.empty_like(x), np.empty_like(x), np.empty((len(x), 3, 3))
    fast_multipole.velocity(plan, x, u)
    fast_multipole.velocity(plan, x, v, du)
    # Two loops, one expansion: they differ by the round-off of the pairs, unless the order was raised.
    assert rms(u - v) < 1e-12 * rms(u)


def test_gradient_is_the_derivative_of_velocity() -> None:
    """Central differences of step h: the truncation h^2/6 u''' and the tolerance over h stay below 1e-3."""
    _, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    targets = thick_ring(200)[0] * np.array([1.1, 0.9, 1.0])
    u, du, low, high = np.empty((200, 3)), np.empty((200, 3, 3)), np.empty((200, 3)), np.empty((200, 3))
    fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-8), targets, u, du)
    h = 1e-3
    for j in range(3):
        step = h * np.eye(3)[j]
        fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-8), targets - step, low)
        fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-8), targets + step, high)
        assert rms((high - low) / (2.0 * h) - du[:, :, j]) < 1e-3 * rms(du)


# Small numbers and special places


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_few_vortons_are_the_direct_sum(n: int, real: Any) -> None:
    cloud = cube(n)
    exact_u, exact_du = exact_gradient(WINCKELMANS, cloud)
    u, du, work = gradient(WINCKELMANS, cloud, 1e-3, real)
    eps = float(np.finfo(real).eps)
    assert work.expansions == 0 and work.pairs == n * n
    # A sum of n terms, each good to some 8 eps (direct sum: V2), relative to the largest ones.
    assert np.abs(u - exact_u).max() <= 50.0 * eps * np.abs(exact_u).max() + 1e-300
    assert np.abs(du - exact_du).max() <= 50.0 * eps * np.abs(exact_du).max()


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_no_vortons_no_velocity(real: Any) -> None:
    sx, sigma, points = np.empty((3, 0), real), np.empty(0, real), np.ones((5, 3), real)
    u, du = np.full((5, 3), np.nan, real), np.full((5, 3, 3), np.nan, real)
    fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sx, sigma, 1e-3), points, u, du)
    assert np.all(u == 0.0) and np.all(du == 0.0)


def test_a_lone_vorton_does_not_move() -> None:
    u, du, _ = gradient(WINCKELMANS, cube(1), 1e-3)
    assert np.all(u == 0.0)
    assert np.all(np.trace(du, axis1=1, axis2=2) == 0.0)


@pytest.mark.parametrize("core", [1.0, 1e-6])
@pytest.mark.parametrize(("name", "real"), pairs(NAMES))
def test_vortons_in_one_point_do_not_move(name: str, core: float, real: Any) -> None:
    """n blobs in one point turn it like one blob of their total strength: u = 0, du = n times that of one.

    Their nodes have no size; 1000 eps is the round-off of 600 terms, and of what core^-3 makes of core.
    """
    one = tuple(a.astype(real).astype(float) for a in (*cube(1)[:2], core * cube(1)[2]))
    u, du, _ = gradient(CODES[name], tuple(np.repeat(a, 600, axis=0) for a in one), 1e-6, real)
    exact = 600.0 * exact_gradient(CODES[name], one)[1]
    assert np.all(u == 0.0)
    assert np.abs(du - exact).max() < 1000.0 * np.finfo(real).eps * np.abs(exact).max()


def test_no_targets_and_no_strength() -> None:
    x, sx, sa, sigma = arrays(cube(1000), np.float64)
    assert (
        fast_multipole.velocity(
            fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3), np.empty((0, 3)), np.empty((0, 3))
        ).pairs
        == 0
    )
    u = np.full_like(x, np.nan)
    fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, 0.0 * sa, sigma, 1e-3), x, u)
    assert np.all(u == 0.0)


def test_not_a_number_stays_visible() -> None:
    x, alpha, sigma = cube(1000)
    alpha[17, 1] = np.nan
    u, _, _ = gradient(WINCKELMANS, (x, alpha, sigma), 1e-3)
    assert np.isnan(u).any()


# Symmetries


def test_the_sum_is_linear_in_the_strengths() -> None:
    """With fixed settings and one core radius; 1e-13 is the round-off of sums of 3000 terms."""
    x, alpha, sigma = cube(3000)
    other = thick_ring(3000)[1]
    how = settings(WINCKELMANS, 1e-3)
    parts = [gradient(WINCKELMANS, (x, a, sigma), 1e-3, how=how)[:2] for a in (alpha, other)]
    together = gradient(WINCKELMANS, (x, 2.0 * alpha - 3.0 * other, sigma), 1e-3, how=how)[:2]
    for i in range(2):
        assert rms(2.0 * parts[0][i] - 3.0 * parts[1][i] - together[i]) < 1e-13 * rms(together[i])


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_a_shift_changes_no_bit(real: Any) -> None:
    """Positions in steps of 2^-12 and a shift by 2^10 are exact in float32: every difference is the same."""
    x, alpha, sigma = cube(3000)
    x = np.round(x * 2.0**12) / 2.0**12
    near = gradient(WINCKELMANS, (x, alpha, sigma), 1e-3, real)
    far = gradient(WINCKELMANS, (x + np.array([1024.0, -1024.0, 512.0]), alpha, sigma), 1e-3, real)
    assert near[2].expansions > 0
    assert np.array_equal(near[0], far[0]) and np.array_equal(near[1], far[1])


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_threads_change_no_bit(real: Any) -> None:
    """12,000 vortons, so that the tree is built by several, too."""
    cloud = clusters(12_000)
    check_threads(lambda: gradient(WINCKELMANS, cloud, 1e-4, real))


def test_more_near_leaves_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    u, du, work = gradient(WINCKELMANS, clusters(3000), 1e-3, np.float32)
    monkeypatch.setattr(upward_downward, "_NEAR", 1)
    again = gradient(WINCKELMANS, clusters(3000), 1e-3, np.float32)
    assert np.array_equal(u, again[0]) and np.array_equal(du, again[1]) and work == again[2]


# Case 57: cost


@pytest.mark.parametrize(
    ("flow", "least"),
    [pytest.param(cube, 96_000, marks=pytest.mark.nightly), (plane, 24_000), (line, 24_000)],
    ids=["cube", "plane", "line"],
)
def test_work_grows_linearly(flow: Any, least: int) -> None:
    """Case 57: counted work of eight times as many vortons (leaves of equal size), exponent at most 1.1.

    An expansion of order 7 costs about as much as 400 pairs. What is above 1 is the surface: fewer nodes lie
    at the edge of a larger cloud (of a thin ring of 10,000 all do, and its exponent is larger there).
    """
    how = settings(WINCKELMANS, 1e-3)
    cost = []
    for n in (least, 8 * least):
        _, sx, sa, sigma = arrays(flow(n), np.float32)
        x, u = np.ascontiguousarray(sx.T), np.empty((n, 3), np.float32)
        plan = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3, how)
        work = fast_multipole.velocity(plan, x, u)
        cost.append(work.pairs + 400 * work.expansions)
    assert np.log(cost[1] / cost[0]) / np.log(8.0) < 1.1


@pytest.mark.nightly
def test_two_million() -> None:
    """Tolerance at 300 of them, and memory: 165 moments of 12 bytes in each of 2^17 nodes are 260 MB.

    Sources, targets, sorted copies and results take 200 bytes a vorton, 0.4 GB; 1.5 GB are allowed in all.
    """
    n = 2_000_000
    x, sx, sa, sigma = arrays(thick_ring(n), np.float32)
    u, du = np.empty_like(x), np.empty((n, 3, 3), np.float32)
    fast_multipole.velocity(
        fast_multipole.plan(WINCKELMANS, sx[:, :1000], sa[:, :1000], sigma[:1000], 1e-3),
        x[:1000],
        u[:1000],
        du[:1000],
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fast_multipole.velocity(fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3), x, u, du)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert used < 1.5e9
    rows = np.random.default_rng(1).integers(0, n, 300)
    exact_u, exact_du = np.empty((300, 3)), np.empty((300, 3, 3))
    doubles = [a.astype(float) for a in (x[rows], sx, sa, sigma)]
    direct.velocity_gradient(WINCKELMANS, *doubles, exact_u, exact_du)
    assert_tolerance_is_kept((u[rows], du[rows]), (exact_u, exact_du), 1e-3)
