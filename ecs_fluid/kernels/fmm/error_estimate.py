"""Error of a sum by expansions, from a sample of its targets that are also summed without expansions.

Before the sum, the order that it will need is estimated on a few leaves spread over the tree. After the sum,
its error is measured on a sample of targets: the mean over the sample plus twice its standard error. A target
is the more likely to be in the sample the closer it is to the sources and the larger |u|^2, |du|^2 and
(distance to the leaf's centre / its radius)^order are; its error counts by the inverse of that probability.
No random numbers are drawn: the probabilities are added up along the tree, and targets are taken at even
distances of that sum.
Why these shares: docs/notes/fmm.md.

Source: Horvitz and Thompson 1952 for the weights; Madow 1949 for even distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.regularisation import record
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.fmm import point_tree
from ecs_fluid.kernels.fmm.accuracy import GOAL, highest_order, terms_for
from ecs_fluid.kernels.fmm.lane_rows import PART
from ecs_fluid.kernels.fmm.point_tree import PointTree
from ecs_fluid.kernels.fmm.traversal import Sources
from ecs_fluid.kernels.fmm.upward_downward import (
    Results,
    all_leaves,
    single_leaves,
    sum_at_leaves,
    velocity_and_gradient,
    with_order,
)

_MANY_LEAVES = 512
"""With fewer leaves than this, the sum costs little more than examining some of them."""
_LEAVES, _EACH = 64, 3
"""Leaves examined before the sum, and targets compared in each."""
COMPARED = 192
"""Targets compared after the sum: this estimates errors to about 6 % at 1e-3, and 10 to 30 % at 1e-6."""
_LEAF = 64
"""Most targets in a leaf of a tree over targets that were not summed by expansions."""
_CLOSE_SHARE = 0.5
"""Fraction of the uniform share that goes to targets close to the sources."""
_PROGRESS = 0.85
"""If a step leaves more than this fraction of the error, more terms are not the remedy."""
_LEAST_OPENING = 0.25
"""Narrowest opening: narrower ones leave little to expansions."""
_GOLDEN = 0.6180339887498949


class SettingsSearch:
    """Better settings, step by step: a higher order, a narrower opening, all terms of far nodes, a stricter
    bound on mixed cores."""

    def __init__(self, s: Sources, tolerance: float) -> None:
        self.tolerance = tolerance
        self.before = s
        self.error = float("inf")
        self.full = s.settings.full
        """whether all terms of far nodes were tried, with the present bound on mixed cores"""
        self.mixed = bool((s.ssigma != s.ssigma[0]).any())

    def better(self, s: Sources, error: float) -> Sources | None:
        """The next settings to try, given the error of ``s``; None if the precision is exhausted."""
        if error < _PROGRESS * self.error:
            self.error, self.before = error, s
            how, highest = s.settings, highest_order(s.ssigma.dtype)
            if how.order < highest:
                order, opening = terms_for(how, error, self.tolerance, highest)
                how = how._replace(opening=opening, clearance=record(s.code).clearance(order))
                s = s._replace(settings=how)
                return s if order == how.order else with_order(s, order)
            if how.opening > _LEAST_OPENING:
                return s._replace(settings=how._replace(opening=0.8 * how.opening))
        how = self.before.settings
        if not self.full:
            # A higher order has no effect on nodes so far away that their series ends before it.
            self.full = True
            return self.before._replace(settings=how._replace(full=True))
        if self.mixed and how.spread > 0.1 * self.tolerance:
            # Order and opening are not the cause; nodes of mixed core radii may be.
            self.error, self.full = float("inf"), how.full
            return self.before._replace(settings=how._replace(spread=0.3 * how.spread))
        return None


def squares(a: NDArray[Any]) -> NDArray[np.float64]:
    """|a|^2 of every row, in float64: squares of float32 numbers may overflow."""
    return np.asarray(np.einsum("ij,ij->i", a, a, dtype=np.float64))


def summed_square(wrong: NDArray[Any], weight: NDArray[np.float64], reserve: float) -> float:
    """Sum of the squares of the errors of all targets, by those ``wrong`` (k, d) of a sample.

    Each counts by its ``weight``, the inverse of its probability; ``reserve`` standard errors are added.
    """
    parts = weight * squares(wrong)
    # Targets that are surely in the sample add no variance, and a sample of all targets is exact.
    scatter = np.sqrt(np.sum((1.0 - 1.0 / weight) * (parts - parts.mean()) ** 2))
    return float(parts.sum() + reserve * scatter)


def _sums_without_expansions(
    mode: int, s: Sources, target: PointTree, rows: NDArray[np.int64], results: Results
) -> Results:
    """Sums without expansions at some rows of the target tree."""
    exact = [np.empty((rows.size, result.shape[1]), result.dtype) for result in results]
    sample = point_tree.build(np.ascontiguousarray(target.x[:, rows]), 32)
    direct = s._replace(settings=s.settings._replace(opening=0.0))
    sum_at_leaves(mode, direct, sample, all_leaves(sample), exact)
    return exact


def choose_order(mode: int, s: Sources, target: PointTree, tolerance: float, results: Results) -> Sources:
    """The sources with an order that suits some leaves across the tree; ``results`` are scratch."""
    m, leaves = target.order.size, 1 << target.depth
    if leaves < _MANY_LEAVES:
        return s
    picked = (np.arange(_LEAVES) * leaves + leaves // 2) // _LEAVES
    # Anywhere in the leaf: its first and last rows lie at its faces, where errors are largest.
    within = (np.arange(1, _LEAVES * _EACH + 1) * _GOLDEN % 1.0).reshape(_LEAVES, _EACH)
    first, end = (picked * m) >> target.depth, ((picked + 1) * m) >> target.depth
    rows = (first[:, None] + within * (end - first)[:, None]).astype(np.int64).ravel()
    exact = _sums_without_expansions(mode, s, target, rows, results)
    given = target.order[rows]
    runs = single_leaves(target, picked)
    search = SettingsSearch(s, tolerance)
    while True:
        sum_at_leaves(mode, s, target, runs, results)
        error = 0.0
        for result, reference in zip(results, exact, strict=True):
            error = max(error, _ratio(squares(result[given] - reference).sum(), squares(reference).sum()))
        following = search.better(s, error) if error > GOAL * tolerance else None
        if following is None:
            return s
        s = following


def measured_error(mode: int, s: Sources, target: PointTree, results: Results) -> float:
    """Relative RMS error of the results, the larger one of u and du, by a weighted sample of the targets."""
    about = np.array([*s.tree.centre[0], s.tree.radius[0]])
    return _sampled_error(
        s.settings.order,
        target,
        about,
        results,
        lambda rows: _sums_without_expansions(mode, s, target, rows, results),
    )


def drawn_error(
    targets: NDArray[Any], x: NDArray[Any], results: Results, exact: Callable[[NDArray[Any]], Results]
) -> float:
    """The same for results of any method at ``targets (m, 3)``, made by sources at ``x (3, n)``.

    ``exact`` returns what they should be at some points (k, 3).
    """
    low, high = x.min(axis=1).astype(np.float64), x.max(axis=1).astype(np.float64)
    about = np.array([*(0.5 * (low + high)), 0.5 * np.linalg.norm(high - low)])
    target = point_tree.build(np.ascontiguousarray(targets.T), _LEAF)
    return _sampled_error(
        0, target, about, results, lambda rows: exact(np.ascontiguousarray(targets[target.order[rows]]))
    )


def _sampled_error(
    order: int, target: PointTree, about: NDArray[np.float64], results: Results,
    exact: Callable[[NDArray[np.int64]], Results],
) -> float:  # fmt: skip
    """The same, where ``exact`` gives what the results should be at some rows of the target tree."""
    sums, both = np.empty((2 + len(results), 1 << target.depth)), velocity_and_gradient(results)
    _fill_sums(order, target, about, *both, sums)
    totals = sums.sum(axis=1)
    if not np.isfinite(totals[2:]).all():
        return float("nan")
    rows, probability = _draw_sample(order, target, about, results, sums, totals)
    given = target.order[rows]
    # A target whose share is several steps is surely in the sample.
    weight, error = 1.0 / np.minimum(1.0, probability), 0.0
    for result, reference, total in zip(results, exact(rows), totals[2:], strict=True):
        error = max(error, _ratio(summed_square(result[given] - reference, weight, 2.0), float(total)))
    return error


def _draw_sample(
    order: int, target: PointTree, about: NDArray[np.float64], results: Results,
    sums: NDArray[np.float64], totals: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Rows of the target tree that are in the sample, and their probabilities."""
    m, leaves = target.order.size, 1 << target.depth
    factors = np.where(totals > 0.0, 1.0 / np.where(totals > 0.0, totals, 1.0), 0.0)
    factors[0] *= _CLOSE_SHARE
    counts = (1.0 - _CLOSE_SHARE) * np.diff((np.arange(leaves + 1) * m) >> target.depth)
    rungs = np.cumsum(counts / m + (factors[:, None] * sums).sum(axis=0))
    step = rungs[-1] / COMPARED
    places = (np.arange(COMPARED) + 0.5) * step
    picked = np.minimum(np.searchsorted(rungs, places), leaves - 1)
    rest = places - np.where(picked > 0, rungs[picked - 1], 0.0)
    rows, probability = np.empty(COMPARED, np.int64), np.empty(COMPARED)
    _locate_sample(
        order, target, about, *velocity_and_gradient(results), factors, picked, rest, rows, probability
    )
    rows, first = np.unique(rows, return_index=True)
    return rows, probability[first] / step


@njit(**PART)
def _fill_sizes(order: int, target: Any, about: Any, k: Any, u: Any, du: Any, sizes: Any) -> int:
    """Of the targets in leaf k: closeness to the sources, (distance/radius)^order, |u|^2 and |du|^2.

    ``about`` is the ball around the sources, inside which closeness is 1; outside it falls with the sixth
    power of the distance, like the square of the velocity of sources whose strengths cancel. Returns how many
    targets they are.
    """
    m = target.order.size
    node = (np.int64(1) << np.int64(target.depth)) - 1 + k
    inverse = 1.0 / target.radius[node] if target.radius[node] > 0.0 else 1.0
    start, end = (k * m) >> target.depth, ((k + 1) * m) >> target.depth
    for at in range(start, end):
        r2 = d2 = 0.0
        for a in range(3):
            r2 += (np.float64(target.x[a, at]) - target.centre[node, a]) ** 2
            d2 += (np.float64(target.x[a, at]) - about[a]) ** 2
        close = about[3] ** 2 / d2 if d2 > about[3] ** 2 else 1.0
        sizes[0, at - start] = close * close * close
        ratio, far = np.sqrt(r2) * inverse, 1.0
        for _ in range(order):
            far *= ratio
        sizes[1, at - start] = far
        row, size = target.order[at], 0.0
        for a in range(3):
            size += np.float64(u[row, a]) ** 2
        sizes[2, at - start] = size
        if du.shape[1] > 0:
            size = 0.0
            for a in range(du.shape[1]):
                size += np.float64(du[row, a]) ** 2
            sizes[3, at - start] = size
    return int(end - start)


@parallel(**FAST_LOOP)
def _fill_sums(chunk: int, order: int, target: Any, about: Any, u: Any, du: Any, sums: Any) -> None:
    """``sums (k, leaves)``: those of ``_fill_sizes`` over each leaf."""
    sizes, leaves = np.empty((sums.shape[0], (target.order.size >> target.depth) + 1)), sums.shape[1]
    for k in range(chunk * leaves // CHUNKS, (chunk + 1) * leaves // CHUNKS):
        count = _fill_sizes(order, target, about, k, u, du, sizes)
        for a in range(sums.shape[0]):
            total = 0.0
            for i in range(count):
                total += sizes[a, i]
            sums[a, k] = total


@njit(cache=True, **FAST_LOOP)
def _locate_sample(
    order: int, target: Any, about: Any, u: Any, du: Any, factors: Any, picked: Any, rest: Any, rows: Any,
    probability: Any,
) -> None:  # fmt: skip
    """In leaf picked[i], the row up to which the shares add up to rest[i], and the share of that row."""
    m = target.order.size
    sizes = np.empty((factors.size, (m >> target.depth) + 1))
    for i in range(picked.size):
        count = _fill_sizes(order, target, about, picked[i], u, du, sizes)
        at, total, own = 0, 0.0, 0.0
        while at < count:
            own = (1.0 - _CLOSE_SHARE) / m
            for a in range(factors.size):
                own += factors[a] * sizes[a, at]
            total += own
            if total >= rest[i] or at == count - 1:
                break
            at += 1
        rows[i] = ((picked[i] * m) >> target.depth) + at
        probability[i] = own


def _ratio(part: float, total: float) -> float:
    return float(np.sqrt(part / total)) if total > 0.0 else 0.0
