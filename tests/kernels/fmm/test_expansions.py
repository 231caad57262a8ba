"""Parts of the fast multipole method: tree, moments, tables, threads, the measured error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.fmm import error_estimate, fast_multipole, point_tree
from ecs_fluid.kernels.fmm.accuracy import GOAL, settings, terms_for
from ecs_fluid.kernels.fmm.multi_indices import orders
from ecs_fluid.kernels.fmm.traversal import GRADIENT, VELOCITY
from ecs_fluid.kernels.fmm.upward_downward import all_leaves, sum_at_leaves

Array = NDArray[Any]
WINCKELMANS = CODES["winckelmans"]


def clusters(n: int) -> Array:
    """Points (3, n) of two clouds 300 diameters apart, one of a third of them in a tenth of the size."""
    x = np.random.default_rng(6).random((3, n))
    x[:, : n // 3] *= 0.1
    x[0, n // 3 :] += 300.0
    return x


def cube(n: int) -> tuple[Array, Array, Array]:
    """Columns of n vortons of random strength in the unit cube."""
    rng = np.random.default_rng(6)
    return rng.random((3, n)), rng.standard_normal((3, n)), np.full(n, 1.5 * n ** (-1 / 3))


def test_terms_for_a_measured_error() -> None:
    """Error 8.01 times the goal, opening 1/2: three more terms and a bit of the opening; at the goal: half.

    The error goes like opening^(order + 1), so 6 times is log2 6 = 2.585 terms, two and 0.585 by opening.
    """
    how = settings(WINCKELMANS, 1e-3)._replace(order=5, opening=0.5)
    order, opening = terms_for(how, 8.01 * GOAL * 1e-3, 1e-3, 18)
    assert order == 8 and 0.4995 < opening < 0.5
    order, opening = terms_for(how, 6.0 * GOAL * 1e-3, 1e-3, 18)
    assert order == 7 and opening**8 == pytest.approx(0.5**8 / (6.0 / 4.0))
    order, opening = terms_for(how, GOAL * 1e-3, 1e-3, 18)
    assert order == 5 and opening**6 == pytest.approx(0.5**6.5)
    assert terms_for(how, 6.0 * GOAL * 1e-3, 1e-3, 7) == (7, 0.5)
    # High orders are rounded up.
    assert terms_for(how._replace(order=10), 6.0 * GOAL * 1e-3, 1e-3, 18) == (13, 0.5)


def test_tree_holds_every_point_once_and_inside() -> None:
    x = clusters(1000).T
    tree = point_tree.build(clusters(1000), 20)
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


def test_a_node_of_one_point_has_a_size_that_float32_can_bear() -> None:
    """1/scale^3 of some node of 1000 equal points beside another cloud must stay below 3e38."""
    x = clusters(3000)
    x[:, :1000] = 0.5
    tree = point_tree.build(x, 20)
    assert tree.scale.min() > 1e-12
    assert np.all(tree.radius >= 0.1 * tree.scale) and np.all(tree.radius <= tree.scale)


def test_moments_are_those_of_the_definition() -> None:
    """M_n = sum alpha (-d)^n/n! about the centre of the root, for n = 0, (1, 0, 0) and (0, 1, 1)."""
    sx, sa, sigma = cube(700)
    s = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-6).sources
    d = (sx.T - s.tree.centre[0]) / s.tree.scale[0]
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
    assert o.block[:, 1].max() == 3 and o.block[:, 1].sum() == 35
    for q in range(5):
        assert o.block[o.blocks[q], 0] == o.size[q]
    for m, width in o.block:
        for k in range(1, width):
            assert o.degree[m + k] == o.degree[m]
            assert all(
                o.sums[o.start[m + k] + n] == o.sums[o.start[m] + n] + k
                for n in range(o.start[m + 1] - o.start[m])
            )


# The measured error


def sums(n: int) -> tuple[Any, Any, Array, Array]:
    """Sources and target tree of n vortons of a cube, and their exact u (n, 3) and du (n, 9).

    Five of a thousand stand by themselves, with cores of a tenth and velocities a hundred times as large.
    """
    sx, sa, sigma = cube(n)
    k = n // 200
    sx[:, :k] = 3.0 + 0.02 * sx[:, :k]
    sa[:, :k] *= 3.0
    sigma[:k] = 0.01
    s = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3).sources
    x, u, du = np.ascontiguousarray(sx.T), np.empty((n, 3)), np.empty((n, 3, 3))
    direct.velocity_gradient(WINCKELMANS, x, sx, sa, sigma, u, du)
    return s, point_tree.build(sx, 64), u, du.reshape(n, 9)


@pytest.mark.parametrize("which", [0, 1], ids=["u", "du"])
def test_an_error_at_the_strong_place_is_found(which: int) -> None:
    """25 of 5000 targets carry the RMS: an even sample of 192 would hold one of them, or none.

    All of them are off by a per cent, so the error is a per cent of the share they have in the RMS.
    """
    s, target, *results = sums(5000)
    strong = results[which][:25].copy()
    share = np.sqrt(np.sum(strong**2) / np.sum(results[which] ** 2))
    assert share > 0.9
    assert error_estimate.measured_error(GRADIENT, s, target, results) < 1e-12
    results[which][:25] = 1.01 * strong
    error = error_estimate.measured_error(GRADIENT, s, target, results)
    assert 0.009 * share < error < 0.02


def test_velocity_that_was_lost_close_by_is_missed() -> None:
    """One target of 3000 is near and has all of the velocity, but the sum has found none there.

    It is in no share of the velocity then, and an even sample holds it in one case of 16.
    """
    s, _, *_ = sums(5000)
    x = 1e4 * np.random.default_rng(2).standard_normal((3000, 3))
    x[1234] = (3.0, 1.0, 2.0)
    u = np.empty_like(x)
    direct.velocity(WINCKELMANS, x, s.tree.x, s.sa, s.ssigma, u)
    target = point_tree.build(np.ascontiguousarray(x.T), 2)
    assert error_estimate.measured_error(VELOCITY, s, target, [u]) < 1e-12
    u[1234] = 0.0
    assert error_estimate.measured_error(VELOCITY, s, target, [u]) > 1.0


def test_an_even_error_is_measured() -> None:
    """Normal errors everywhere, of 1e-2 of the RMS: 192 samples know it within 2/sqrt(2 192) = 10 %.

    Their weights differ, and twice the standard error is added: 0.8 to 1.7 times the truth.
    """
    s, target, *results = sums(5000)
    noise = np.random.default_rng(3).standard_normal(results[0].shape)
    results[0] += 1e-2 * noise * np.sqrt(np.mean(results[0] ** 2))
    error = error_estimate.measured_error(GRADIENT, s, target, results)
    assert 0.8e-2 < error < 1.7e-2


def test_not_a_number_is_no_error_that_could_be_mended() -> None:
    s, target, *results = sums(2000)
    results[0][3, 1] = np.nan
    assert np.isnan(error_estimate.measured_error(GRADIENT, s, target, results))


def test_squares_of_large_numbers_do_not_overflow() -> None:
    """(1e25)^2 is beyond float32."""
    a = np.full((4, 3), 1e25, np.float32)
    assert error_estimate.squares(a) == pytest.approx(3e50, rel=1e-6)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_targets_that_are_the_sources_share_their_tree(real: Any) -> None:
    """Bit for bit what a tree of their own gives; one coordinate changed, and they are other targets."""
    sx, sa, sigma = (np.ascontiguousarray(a, real) for a in cube(3000))
    x = np.ascontiguousarray(sx.T)
    sources = fast_multipole.plan(WINCKELMANS, sx, sa, sigma, 1e-3).sources
    assert fast_multipole._tree_over(x, sources) is sources.tree
    results = []
    for target in (sources.tree, point_tree.build(sx, sources.settings.leaf)):
        results.append([np.empty((3000, 3), real), np.empty((3000, 9), real)])
        sum_at_leaves(GRADIENT, sources, target, all_leaves(target), results[-1])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    x[7, 1] += 0.01
    assert fast_multipole._tree_over(x, sources) is not sources.tree
