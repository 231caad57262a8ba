"""A sample of the targets of a sum, on which the error of the whole is measured.

A few targets may have most of the velocity, and a sample at even distances may miss them all. So the
probability of a target is the mean of equal parts: uniform, its share of sum |u|^2, its share of sum |du|^2
and, where it is known, its share of the predicted squared error. Each target in the sample counts with the
inverse of its probability (Horvitz and Thompson 1952). No random numbers are drawn: the targets lie at even
distances on the cumulative sum of the probabilities (Madow 1949).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ecs_fluid.component import Array


class DrawnSample(NamedTuple):
    """The k of all targets that are compared with exact sums."""

    rows: Array
    """(k,) their row numbers, ascending"""
    weight: Array
    """(k,) number of targets that each represents, at least 1"""
    totals: tuple[float, ...]
    """sum of squares over all targets, of each result"""

    @classmethod
    def of(cls, results: Sequence[Array], count: int, predicted: Array | None = None) -> Self | None:
        """A sample of about `count` rows of results (m, d), such as u and du; None if one is not finite.

        ``predicted`` (m,) is proportional to the square of the expected error.
        """
        from ecs_fluid.kernels.fmm.error_estimate import squares

        m = len(results[0])
        sizes = [squares(values) for values in results]
        totals = tuple(float(size.sum()) for size in sizes)
        shares = np.full(m, 1.0 / m)
        for size in sizes if predicted is None else [*sizes, predicted]:
            shares += size / max(float(size.sum()), np.finfo(np.float64).tiny)
        rungs = np.cumsum(shares)
        step = float(rungs[-1]) / count
        if not np.isfinite(step):
            return None
        rows = np.unique(np.searchsorted(rungs, step * (np.arange(count) + 0.5)))
        return cls(rows, np.maximum(1.0, step / shares[rows]), totals)

    def error(self, results: Sequence[Array], exact: Sequence[Array], reserve: float = 0.0) -> float:
        """RMS error over RMS, the largest among the `results` (m, d); `exact` (k, d) are values at the rows.

        `reserve` standard errors of the mean square are added.
        """
        return float(np.max(self.errors(results, exact, reserve)))

    def errors(self, results: Sequence[Array], exact: Sequence[Array], reserve: float = 0.0) -> list[float]:
        """The same for each result."""
        from ecs_fluid.kernels.fmm.error_estimate import summed_square

        return [
            _ratio(summed_square(values[self.rows] - sums, self.weight, reserve), total)
            for values, sums, total in zip(results, exact, self.totals, strict=True)
        ]


class Reference(NamedTuple):
    """Results at all targets of a sum that is much more accurate than those that are compared with it.

    A few targets may have most of the error, and only an error estimate at every target shows which.
    """

    results: Sequence[Array]
    """(m, d) for each kind, such as u and du"""
    own: Sequence[float]
    """relative RMS errors of the reference itself: of each kind, or the largest for all"""
    sample: DrawnSample | None = None
    """targets at which exact sums are known"""
    exact: Sequence[Array] = ()
    """(k, d) for each kind, the exact sums at the sample"""

    def error(self, results: Sequence[Array]) -> float:
        """RMS error over RMS, the largest among the `results` (m, d).

        The error is e = d + r, with d the difference from the reference and r the reference's own error, so
        |e|^2 = |d|^2 + 2 d . r + |r|^2. Where vorticity is smooth both sums err the same way, and d . r is up
        to |d| |r|. It is measured on the sample, and counts as 0 without one.
        """
        from ecs_fluid.kernels.fmm.error_estimate import squares

        found = []
        for kind, (values, better, own) in enumerate(zip(results, self.results, self.own, strict=True)):
            wrong, total = float(squares(values - better).sum()), float(squares(better).sum())
            apart, both = _ratio(wrong, total), 0.0
            if self.sample is not None and total > 0.0:
                rows, weight = self.sample.rows, self.sample.weight
                near, far = (values - better)[rows], better[rows] - self.exact[kind]
                both = float(np.einsum("i,ij,ij->", weight, near, far, dtype=np.float64)) / total
            found.append(math.sqrt(apart**2 + 2.0 * min(max(both, 0.0), apart * own) + own**2))
        return float(np.max(found))


def at_even_distances(every: int, count: int) -> Array:
    """Numbers, ascending, of up to `count` of `every` rows, at even distances: a sample of equal weights."""
    return np.unique(np.linspace(0, every - 1, count).astype(np.int64))


def _ratio(wrong: float, total: float) -> float:
    """Square root of the ratio of two sums of squares; of `wrong` alone where `total` is 0."""
    return math.sqrt(wrong / total if total > 0.0 else wrong)
