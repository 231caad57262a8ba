"""How good is a sum by expansions? Some of its targets are summed without expansions, too.

Two samples serve two ends. Before the sum, a few leaves spread over the tree tell which order it will need;
they cost some percent of it, but a small place with strong vortons may lie between them. After the sum, a
weighted sample measures the error, and every error found counts by the inverse of its probability. This is
the mean of four shares: an even one; of sum |u|^2; of sum |du|^2, so that no place that matters to the RMS is
passed over; and of (distance to the centre of the leaf / its radius)^order, where expansions are worst: of
high orders, one point in a thousand may have most of the error. What is reported is the mean and twice its
standard error. No random numbers are drawn: the targets stand at even distances on the sum of the
probabilities along the tree.

Source: Horvitz and Thompson 1952 for the weights; Madow 1949 for even distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels import fmm_tree
from ecs_fluid.kernels.fmm_accuracy import GOAL, gaussian_clearance, highest_order, terms_for
from ecs_fluid.kernels.fmm_passes import Pieces, add_up, some, whole, with_order
from ecs_fluid.kernels.fmm_threads import KERNEL, share
from ecs_fluid.kernels.fmm_tree import PointTree
from ecs_fluid.kernels.fmm_walk import Sources
from ecs_fluid.kernels.regularisation import GAUSSIAN

Results = list[NDArray[Any]]
"""``u (m, 3)``, and ``du (m, 9)`` where gradients are asked for."""

_MANY_LEAVES = 512
"""With fewer leaves the sum itself is not much dearer than a look at some of them."""
_LEAVES, _EACH = 64, 3
"""Leaves looked at before the sum, and targets compared in each."""
_TARGETS = 192
"""Targets compared after the sum: they average errors to some 6 % at 1e-3, 10 to 30 % at 1e-6."""
_PROGRESS = 0.85
"""A step that leaves more than this part of the error shows that terms are not what is missing."""
_LEAST_OPENING = 0.25
"""Narrower ones leave little to expansions."""
_GOLDEN = 0.6180339887498949


class Search:
    """Better settings, step by step: a higher order, a narrower opening, a stricter bound on mixed cores."""

    def __init__(self, s: Sources, tolerance: float) -> None:
        self.tolerance = tolerance
        self.before = s
        self.error = float("inf")

    def better(self, s: Sources, error: float) -> Sources | None:
        """The next to try, given the error of ``s``; None where the precision is exhausted."""
        if error < _PROGRESS * self.error:
            self.error, self.before = error, s
            how, highest = s.settings, highest_order(s.ssigma.dtype)
            if how.order < highest:
                order, opening = terms_for(how, error, self.tolerance, highest)
                how = how._replace(opening=opening)
                if s.code == GAUSSIAN:
                    how = how._replace(clearance=gaussian_clearance(order))
                s = s._replace(settings=how)
                return s if order == how.order else with_order(s, order)
            if how.opening > _LEAST_OPENING:
                return s._replace(settings=how._replace(opening=0.8 * how.opening))
        how = self.before.settings
        if how.spread > 0.1 * self.tolerance:
            # Order and opening are not to blame; nodes of mixed core radii may be.
            self.error = float("inf")
            return self.before._replace(settings=how._replace(spread=0.3 * how.spread))
        return None


def add_up_results(mode: int, s: Sources, target: PointTree, pieces: Pieces, results: Results) -> Any:
    """``add_up`` for a list of results."""
    u = results[0]
    return add_up(mode, s, target, pieces, u, results[1] if len(results) > 1 else u[:0, :0])


def squares(a: NDArray[Any]) -> NDArray[np.float64]:
    """|a|^2 of every row, in float64: squares of float32 numbers may overflow."""
    return np.asarray(np.einsum("ij,ij->i", a, a, dtype=np.float64))


def _exact(mode: int, s: Sources, target: PointTree, rows: NDArray[np.int64], results: Results) -> Results:
    """Sums without expansions at some rows of the target tree."""
    exact = [np.empty((rows.size, result.shape[1]), result.dtype) for result in results]
    sample = fmm_tree.build(np.ascontiguousarray(target.x[:, rows]), 32)
    direct = s._replace(settings=s.settings._replace(opening=0.0))
    add_up_results(mode, direct, sample, whole(sample), exact)
    return exact


def look_ahead(mode: int, s: Sources, target: PointTree, tolerance: float, results: Results) -> Sources:
    """The sources with an order that suits some leaves spread over the tree; ``results`` are scratch."""
    m, leaves = target.order.size, 1 << target.depth
    if leaves < _MANY_LEAVES:
        return s
    picked = (np.arange(_LEAVES) * leaves + leaves // 2) // _LEAVES
    # Anywhere in the leaf: its first and last rows lie at its faces, where errors are largest.
    within = (np.arange(1, _LEAVES * _EACH + 1) * _GOLDEN % 1.0).reshape(_LEAVES, _EACH)
    first, end = (picked * m) >> target.depth, ((picked + 1) * m) >> target.depth
    rows = (first[:, None] + within * (end - first)[:, None]).astype(np.int64).ravel()
    exact, given, pieces = _exact(mode, s, target, rows, results), target.order[rows], some(target, picked)
    search = Search(s, tolerance)
    while True:
        add_up_results(mode, s, target, pieces, results)
        error = 0.0
        for result, reference in zip(results, exact, strict=True):
            error = max(error, _ratio(squares(result[given] - reference).sum(), squares(reference).sum()))
        following = search.better(s, error) if error > GOAL * tolerance else None
        if following is None:
            return s
        s = following


def measured_error(mode: int, s: Sources, target: PointTree, results: Results) -> float:
    """Relative RMS error of the results, the larger one of u and du, by a weighted sample of the targets."""
    m, (far, *sizes) = target.order.size, _sizes(s.settings.order, target, results)
    totals = [float(size.sum()) for size in sizes]
    if not all(np.isfinite(totals)):
        return float("nan")
    probability = np.full(m, 1.0 / m)
    for share_of, total in zip((far, *sizes), (float(far.sum()), *totals), strict=True):
        if total > 0.0:
            share_of *= 1.0 / total
            probability += share_of
    rungs = np.cumsum(probability)
    probability *= _TARGETS / rungs[-1]
    places = (np.arange(_TARGETS) + 0.5) * (rungs[-1] / _TARGETS)
    rows = np.unique(np.minimum(np.searchsorted(rungs, places), m - 1))
    given = target.order[rows]
    # A target that is worth several steps is in the sample for sure.
    weight = 1.0 / np.minimum(1.0, probability[rows])
    exact, error = _exact(mode, s, target, rows, results), 0.0
    for result, reference, total in zip(results, exact, totals, strict=True):
        parts = weight * squares(result[given] - reference)
        # Targets that are in for sure do not scatter, and a sample of all is exact.
        scatter = np.sqrt(np.sum((1.0 - 1.0 / weight) * (parts - parts.mean()) ** 2))
        error = max(error, _ratio(float(parts.sum() + 2.0 * scatter), total))
    return error


@njit(**KERNEL)
def _fill_sizes(order: int, target: Any, first: int, last: int, u: Any, du: Any, out: Any) -> None:
    """Of the targets in leaves first:last of the tree: (distance/radius)^order, |u|^2 and |du|^2."""
    m = target.order.size
    for k in range(first, last):
        node = (np.int64(1) << np.int64(target.depth)) - 1 + k
        inverse = 1.0 / target.radius[node] if target.radius[node] > 0.0 else 1.0
        for at in range((k * m) >> target.depth, ((k + 1) * m) >> target.depth):
            r2 = 0.0
            for a in range(3):
                r2 += (np.float64(target.x[a, at]) - target.centre[node, a]) ** 2
            ratio, far = np.sqrt(r2) * inverse, 1.0
            for _ in range(order):
                far *= ratio
            out[0, at] = far
            row, size = target.order[at], 0.0
            for a in range(3):
                size += np.float64(u[row, a]) ** 2
            out[1, at] = size
            if du.shape[1] > 0:
                size = 0.0
                for a in range(du.shape[1]):
                    size += np.float64(du[row, a]) ** 2
                out[2, at] = size


def _sizes(order: int, target: PointTree, results: Results) -> NDArray[np.float64]:
    """``_fill_sizes`` of all targets, one row each for distances and for every result."""
    u = results[0]
    du = results[1] if len(results) > 1 else u[:0, :0]
    out = np.empty((1 + len(results), target.order.size))
    share(lambda first, last: _fill_sizes(order, target, first, last, u, du, out), 1 << target.depth)
    return out


def _ratio(part: float, total: float) -> float:
    return float(np.sqrt(part / total)) if total > 0.0 else 0.0
