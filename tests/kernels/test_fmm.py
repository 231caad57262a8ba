"""Fast multipole method against the direct sum: cases 54 to 57 and trap 1."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.kernels import direct, fmm, fmm_tree
from ecs_fluid.kernels.fmm_accuracy import MARGIN, order_for, settings
from ecs_fluid.kernels.fmm_orders import orders
from ecs_fluid.kernels.regularisation import CODES, NAMES

Array = NDArray[Any]
Cloud = tuple[Array, Array, Array]
WINCKELMANS = CODES["winckelmans"]


# Flows: position (n, 3), strength (n, 3), core radius (n,)


def thick_ring(n: int) -> Cloud:
    """Vortons uniform over the section (radius 0.2) of a ring of radius 1; overlap sigma/spacing 1.5."""
    rng = np.random.default_rng(5)
    angle, section = 2.0 * np.pi * rng.random((2, n))
    r = 0.2 * np.sqrt(rng.random(n))
    rho = 1.0 + r * np.cos(section)
    x = np.stack([rho * np.cos(angle), rho * np.sin(angle), r * np.sin(section)], axis=1)
    alpha = np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1) / n
    return x, alpha, np.full(n, 1.5 * (2.0 * np.pi**2 * 0.04 / n) ** (1 / 3))


def cube(n: int) -> Cloud:
    """Random strengths of both signs: far fields cancel, the hardest case for a relative error."""
    rng = np.random.default_rng(6)
    return rng.random((n, 3)), rng.standard_normal((n, 3)), np.full(n, 1.5 * n ** (-1 / 3))


def smooth_cube(n: int) -> Cloud:
    """Cores of 4.5 spacings: leaves are smaller than a core (case 55)."""
    x, alpha, sigma = cube(n)
    return x, alpha, 3.0 * sigma


def sharp_cube(n: int) -> Cloud:
    """Cores of a tenth of the spacing."""
    x, alpha, sigma = cube(n)
    return x, alpha, sigma / 15.0


def mixed_cores(n: int) -> Cloud:
    """Neighbours whose core radii differ by up to a factor of two."""
    x, alpha, sigma = cube(n)
    return x, alpha, sigma * (0.5 + 0.5 * np.random.default_rng(7).random(n))


def clusters(n: int) -> Cloud:
    """Two clouds 300 diameters apart, one of a third of the vortons in a tenth of the size."""
    x, alpha, sigma = cube(n)
    x[: n // 3] *= 0.1
    sigma[: n // 3] *= 0.1
    x[n // 3 :, 0] += 300.0
    return x, alpha, sigma


def plane(n: int) -> Cloud:
    x, alpha, sigma = cube(n)
    x[:, 2] = 0.3
    return x, alpha, 0.0 * sigma + 1.5 * n**-0.5


def line(n: int) -> Cloud:
    x, alpha, sigma = cube(n)
    x[:, 1:] = 0.3
    return x, alpha, 0.0 * sigma + 1.5 / n


def spaced(n: int) -> Cloud:
    """Distances from the origin spread over four decades, core radii a tenth of them."""
    x, direction, _ = cube(n)
    r = 10.0 ** (-4.0 * x[:, :1])
    return r * direction / np.linalg.norm(direction, axis=1)[:, None], direction * r**2, 0.1 * r[:, 0]


def pairs_of_twins(n: int) -> Cloud:
    """Every position twice, with different strengths."""
    x, alpha, sigma = cube(n)
    x[n // 2 :] = x[: n - n // 2]
    return x, alpha, sigma


FLOWS = [
    thick_ring,
    cube,
    smooth_cube,
    sharp_cube,
    mixed_cores,
    clusters,
    plane,
    line,
    spaced,
    pairs_of_twins,
]


def arrays(cloud: Cloud, real: Any) -> tuple[Array, Array, Array, Array]:
    x, alpha, sigma = (np.ascontiguousarray(a.astype(real)) for a in cloud)
    return x, np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma


def rms(a: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(a.reshape(len(a), -1).astype(float) ** 2, axis=1))))


def gradient(code: int, cloud: Cloud, tolerance: float, real: Any = np.float64, **how: Any) -> Any:
    """u, du and the work of the method at the vortons themselves."""
    x, sx, sa, sigma = arrays(cloud, real)
    u, du = np.full_like(x, np.nan), np.full((len(x), 3, 3), np.nan, real)
    if how:
        how = {"prepared": fmm.plan(code, sx, sa, sigma, tolerance, **how)}
    work = fmm.velocity_gradient(code, x, sx, sa, sigma, tolerance, u, du, **how)
    return u, du, work


def exact_gradient(code: int, cloud: Cloud) -> tuple[Array, Array]:
    x, sx, sa, sigma = arrays(cloud, np.float64)
    u, du = np.empty_like(x), np.empty((len(x), 3, 3))
    direct.velocity_gradient(code, x, sx, sa, sigma, u, du)
    return u, du


# Case 56: the tolerance is kept


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
def test_tolerance_is_kept(flow: Any, name: str) -> None:
    """RMS errors below the tolerance, no point off by more than 15 times that (case 55: up to 14).

    With so few vortons some sums may be direct: logarithmic spacing, and mixed or wide cores at 1e-6.
    """
    cloud, code = flow(4000), CODES[name]
    exact_u, exact_du = exact_gradient(code, cloud)
    for tolerance in (1e-2, 1e-3, 1e-6):
        u, du, work = gradient(code, cloud, tolerance)
        may_be_direct = flow is spaced or (flow in (smooth_cube, mixed_cores) and tolerance == 1e-6)
        assert work.expansions > 0 or may_be_direct
        for result, exact in ((u, exact_u), (du, exact_du)):
            assert rms(result - exact) < tolerance * rms(exact)
            assert np.abs(result - exact).max() < 15.0 * tolerance * rms(exact)


@pytest.mark.parametrize("name", NAMES)
def test_nine_digits(name: str) -> None:
    cloud, code = thick_ring(6000), CODES[name]
    u, du, work = gradient(code, cloud, 1e-9)
    exact_u, exact_du = exact_gradient(code, cloud)
    assert work.expansions > 0
    assert rms(u - exact_u) < 1e-9 * rms(exact_u)
    assert rms(du - exact_du) < 1e-9 * rms(exact_du)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("flow", [thick_ring, cube, plane], ids=lambda flow: flow.__name__)
def test_tolerance_is_kept_in_single_precision(flow: Any, name: str) -> None:
    """Down to 1e-5; float32 itself ends at some 1e-6 (24 bits, sums of thousands)."""
    cloud, code = flow(4000), CODES[name]
    exact_u, exact_du = exact_gradient(code, cloud)
    for tolerance in (1e-3, 1e-4, 1e-5):
        u, du, work = gradient(code, cloud, tolerance, np.float32)
        assert u.dtype == du.dtype == np.float32
        assert work.expansions > 0
        assert rms(u - exact_u) < tolerance * rms(exact_u)
        assert rms(du - exact_du) < tolerance * rms(exact_du)


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_size_and_strength_do_not_matter_in_single_precision(scale: float) -> None:
    """Expansions are scaled by their nodes, so powers of lengths neither vanish nor overflow."""
    x, alpha, sigma = thick_ring(3000)
    cloud = (scale * x, scale**2 * alpha, scale * sigma)
    exact_u, exact_du = exact_gradient(WINCKELMANS, cloud)
    u, du, work = gradient(WINCKELMANS, cloud, 1e-4, np.float32)
    assert work.expansions > 0
    assert rms(u - exact_u) < 1e-4 * rms(exact_u)
    assert rms(du - exact_du) < 1e-4 * rms(exact_du)


def test_error_falls_by_the_opening_per_order() -> None:
    """Case 54: a series in (a + b)/distance <= opening. A factor of 3/4 per order is asked."""
    cloud = cube(4000)
    exact_u, exact_du = exact_gradient(WINCKELMANS, cloud)
    how = settings(WINCKELMANS, 1e-3)._replace(opening=0.5)
    former = np.inf
    for order in (4, 10, 16):
        u, du, _ = gradient(WINCKELMANS, cloud, 1e-3, how=how._replace(order=order))
        error = max(rms(u - exact_u) / rms(exact_u), rms(du - exact_du) / rms(exact_du))
        assert error < former * 0.75**6
        former = error


def test_the_order_follows_the_flow() -> None:
    """Random strengths need more terms than a ring; a sample finds that out and is right about the error."""
    orders_used = []
    for flow in (thick_ring, smooth_cube):
        cloud = flow(4000)
        exact_u, exact_du = exact_gradient(WINCKELMANS, cloud)
        u, du, work = gradient(WINCKELMANS, cloud, 1e-3)
        error = max(rms(u - exact_u) / rms(exact_u), rms(du - exact_du) / rms(exact_du))
        assert 0.4 < work.error / error < 2.5  # 100 samples of an error that varies from leaf to leaf
        orders_used.append(work.settings.order)
    assert orders_used[0] == settings(WINCKELMANS, 1e-3).order < orders_used[1]


def test_order_for_a_measured_error() -> None:
    """Error 8 times the goal, opening 1/2: three more terms."""
    how = settings(WINCKELMANS, 1e-3)._replace(order=5, opening=0.5)
    assert order_for(how, 7.99 * MARGIN * 1e-3, 1e-3) == 8


def test_settings_of_an_earlier_sum_give_the_same_result() -> None:
    cloud = smooth_cube(3000)
    u, du, work = gradient(WINCKELMANS, cloud, 1e-3)
    v, dv, again = gradient(WINCKELMANS, cloud, 1e-3, how=work.settings)
    assert np.array_equal(u, v) and np.array_equal(du, dv)
    assert np.isnan(again.error) and again.settings == work.settings


# Other targets, other results


@pytest.mark.parametrize("name", NAMES)
def test_other_targets(name: str) -> None:
    """Velocity and potential at points around and inside the ring, some of them far away."""
    _, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    rng = np.random.default_rng(8)
    targets = np.concatenate([3.0 * rng.random((2000, 3)) - 1.5, 50.0 * rng.standard_normal((50, 3))])
    u, exact, zeta = (np.empty_like(targets) for _ in range(3))
    for tolerance in (1e-3, 1e-6):
        work = fmm.velocity(CODES[name], targets, sx, sa, sigma, tolerance, u)
        direct.velocity(CODES[name], targets, sx, sa, sigma, exact)
        assert work.expansions > 0
        assert rms(u - exact) < tolerance * rms(exact)
        fmm.potential(CODES[name], targets, sx, sa, sigma, tolerance, u)
        direct.potential_vorticity(CODES[name], targets, sx, sa, sigma, exact, zeta)
        assert rms(u - exact) < tolerance * rms(exact)


def test_one_plan_serves_many_sums() -> None:
    x, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    plan = fmm.plan(WINCKELMANS, sx, sa, sigma, 1e-4)
    u, v, du = np.empty_like(x), np.empty_like(x), np.empty((len(x), 3, 3))
    fmm.velocity(WINCKELMANS, x, sx, sa, sigma, 1e-4, u, prepared=plan)
    fmm.velocity_gradient(WINCKELMANS, x, sx, sa, sigma, 1e-4, v, du, prepared=plan)
    # Two loops, one expansion: they differ by the round-off of the pairs, unless the order was raised.
    assert rms(u - v) < 1e-12 * rms(u)


def test_gradient_is_the_derivative_of_velocity() -> None:
    """Central differences of step h: the truncation h^2/6 u''' and the tolerance over h stay below 1e-3."""
    _, sx, sa, sigma = arrays(thick_ring(3000), np.float64)
    targets = thick_ring(200)[0] * np.array([1.1, 0.9, 1.0])
    u, du, low, high = np.empty((200, 3)), np.empty((200, 3, 3)), np.empty((200, 3)), np.empty((200, 3))
    fmm.velocity_gradient(WINCKELMANS, targets, sx, sa, sigma, 1e-8, u, du)
    h = 1e-3
    for j in range(3):
        step = h * np.eye(3)[j]
        fmm.velocity(WINCKELMANS, targets - step, sx, sa, sigma, 1e-8, low)
        fmm.velocity(WINCKELMANS, targets + step, sx, sa, sigma, 1e-8, high)
        assert rms((high - low) / (2.0 * h) - du[:, :, j]) < 1e-3 * rms(du)


# Small numbers and special places


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_few_vortons_are_the_direct_sum(n: int, real: Any) -> None:
    cloud = cube(n)
    exact_u, exact_du = exact_gradient(WINCKELMANS, cloud)
    u, du, work = gradient(WINCKELMANS, cloud, 1e-3, real)
    eps = float(np.finfo(real).eps)
    assert work.expansions == 0 and work.pairs == n * n
    # A sum of n terms, each good to some 8 eps (direct sum: V2), relative to the largest ones.
    assert np.abs(u - exact_u).max() <= 50.0 * eps * np.abs(exact_u).max() + 1e-300
    assert np.abs(du - exact_du).max() <= 50.0 * eps * np.abs(exact_du).max()


def test_a_lone_vorton_does_not_move() -> None:
    u, du, _ = gradient(WINCKELMANS, cube(1), 1e-3)
    assert np.all(u == 0.0)
    assert np.all(np.trace(du, axis1=1, axis2=2) == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_vortons_in_one_point_do_not_move(name: str) -> None:
    """n blobs in one point turn it like one blob of their total strength: u = 0, du = n times that of one."""
    x, alpha, sigma = (np.repeat(a, 600, axis=0) for a in cube(1))
    u, du, _ = gradient(CODES[name], (x, alpha, sigma), 1e-6)
    _, one = exact_gradient(CODES[name], cube(1))
    assert np.all(u == 0.0)
    assert np.abs(du - 600.0 * one).max() < 1e-10 * np.abs(600.0 * one).max()


def test_no_targets_and_no_strength() -> None:
    x, sx, sa, sigma = arrays(cube(1000), np.float64)
    assert fmm.velocity(WINCKELMANS, np.empty((0, 3)), sx, sa, sigma, 1e-3, np.empty((0, 3))).pairs == 0
    u = np.full_like(x, np.nan)
    fmm.velocity(WINCKELMANS, x, sx, 0.0 * sa, sigma, 1e-3, u)
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
    cloud = clusters(5000)
    most = numba.config.NUMBA_NUM_THREADS
    results = []
    try:
        for threads in sorted({1, min(2, most), min(4, most), min(8, most)}):
            numba.set_num_threads(threads)
            results.append(gradient(WINCKELMANS, cloud, 1e-4, real))
    finally:
        numba.set_num_threads(most)
    for u, du, _ in results[1:]:
        assert np.array_equal(u, results[0][0]) and np.array_equal(du, results[0][1])


# Case 57: cost


@pytest.mark.parametrize("flow", [cube, plane, line], ids=lambda flow: flow.__name__)
def test_work_grows_linearly(flow: Any) -> None:
    """Counted work from 96,000 to 768,000 vortons (leaves of equal size), exponent at most 1.1.

    An expansion of order 7 costs about as much as 400 pairs. What is above 1 is the surface: fewer nodes lie
    at the edge of a larger cloud (of a thin ring of 10,000 all do, and its exponent is larger there).
    """
    how = settings(WINCKELMANS, 1e-3)
    cost = []
    for n in (96_000, 768_000):
        _, sx, sa, sigma = arrays(flow(n), np.float32)
        x, u = np.ascontiguousarray(sx.T), np.empty((n, 3), np.float32)
        plan = fmm.plan(WINCKELMANS, sx, sa, sigma, 1e-3, how)
        work = fmm.velocity(WINCKELMANS, x, sx, sa, sigma, 1e-3, u, prepared=plan)
        cost.append(work.pairs + 400 * work.expansions)
    assert np.log(cost[1] / cost[0]) / np.log(8.0) < 1.1


# Pieces


def test_tree_holds_every_point_once_and_inside() -> None:
    x = clusters(1000)[0]
    tree = fmm_tree.build(np.ascontiguousarray(x.T), 20)
    assert np.array_equal(np.sort(tree.order), np.arange(1000))
    assert np.array_equal(tree.x.T, x[tree.order])
    for level in range(tree.depth + 1):
        for k in range(1 << level):
            first, last, node = (k * 1000) >> level, ((k + 1) * 1000) >> level, (1 << level) - 1 + k
            points = tree.x[:, first:last].T
            assert level < tree.depth or 10 <= last - first <= 20
            assert np.allclose(tree.centre[node], (points.min(axis=0) + points.max(axis=0)) / 2.0, atol=1e-13)
            distance = np.linalg.norm(points - tree.centre[node], axis=1).max()
            assert tree.radius[node] == pytest.approx(distance, rel=1e-12, abs=1e-13)
            assert tree.scale[node] >= tree.radius[node] and tree.scale[node] > 0.0


def test_moments_are_those_of_the_definition() -> None:
    """M_n = sum alpha (-d)^n/n! about the centre of the root, for n = 0, (1, 0, 0) and (0, 1, 1)."""
    x, sx, sa, sigma = arrays(cube(700), np.float64)
    s = fmm.plan(WINCKELMANS, sx, sa, sigma, 1e-6).sources
    d = (x - s.tree.centre[0]) / s.tree.scale[0]
    assert s.moments[0, 0] == pytest.approx(sa.sum(axis=1), rel=1e-12)
    assert s.moments[0, 1] == pytest.approx(-(sa * d[:, 0]).sum(axis=1), rel=1e-11)
    # Order two starts at 4: xx, xy, xz, yy, yz, zz.
    assert s.moments[0, 8] == pytest.approx((sa * d[:, 1] * d[:, 2]).sum(axis=1), rel=1e-11)


def test_tables_of_multi_indices() -> None:
    """35 indices up to order 4; the sums of places are the places of sums; C(4 + 6, 6) = 210 pairs."""
    o = orders(4)
    index = np.array(
        [(i, j, q - i - j) for q in range(5) for i in range(q, -1, -1) for j in range(q - i, -1, -1)]
    )
    assert len(index) == 35 and o.sums.size == 210
    assert np.array_equal(o.degree, index.sum(axis=1))
    for m in range(35):
        for n in range(o.start[m + 1] - o.start[m]):
            assert np.array_equal(index[o.sums[o.start[m] + n]], index[m] + index[n])
    for m in range(1, 35):
        assert o.entry[m] == index[m, o.axis[m]] > 0
        assert np.array_equal(index[m] - index[o.first[m]], np.eye(3, dtype=int)[o.axis[m]])
