"""Some of the targets of a sum, drawn by what was found there, by which the error of the whole is measured.

A few targets may have most of the velocity, and those at even distances then tell nothing of it. So the
sample has targets in equal parts at even distances, by their share of |u|^2, by that of |du|^2 and, where
it is known, by that of the squared error that is foretold, and what it finds counts by the inverse of the
probability (Horvitz and Thompson 1952). No random numbers are drawn: the targets stand at even distances on
the sum of the shares (Madow 1949).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ecs_fluid.component import Array


class DrawnSample(NamedTuple):
    """Targets that are compared with exact sums."""

    rows: Array
    """(k,) which they are, ascending"""
    weight: Array
    """(k,) by which each counts, at least 1"""
    totals: tuple[float, ...]
    """sum of the squares of each result over all targets"""

    @classmethod
    def of(cls, results: Sequence[Array], count: int, foretold: Array | None = None) -> Self | None:
        """About `count` rows of results (m, d), such as u and du; None where one is not finite.

        ``foretold`` (m,) goes like the square of the error that is to be expected.
        """
        from ecs_fluid.kernels.fmm.error_estimate import squares

        m = len(results[0])
        sizes = [squares(values) for values in results]
        totals = tuple(float(size.sum()) for size in sizes)
        shares = np.full(m, 1.0 / m)
        for size in sizes if foretold is None else [*sizes, foretold]:
            shares += size / max(float(size.sum()), np.finfo(np.float64).tiny)
        rungs = np.cumsum(shares)
        step = float(rungs[-1]) / count
        if not np.isfinite(step):
            return None
        rows = np.unique(np.searchsorted(rungs, step * (np.arange(count) + 0.5)))
        return cls(rows, np.maximum(1.0, step / shares[rows]), totals)

    def error(self, results: Sequence[Array], exact: Sequence[Array], reserve: float = 0.0) -> float:
        """RMS error of `results` (m, d) over their RMS, the largest; `exact` (k, d) are at the rows.

        With `reserve` standard errors of the mean square added.
        """
        return float(np.max(self.errors(results, exact, reserve)))

    def errors(self, results: Sequence[Array], exact: Sequence[Array], reserve: float = 0.0) -> list[float]:
        """The same of each result."""
        from ecs_fluid.kernels.fmm.error_estimate import summed_square

        return [
            _ratio(summed_square(values[self.rows] - sums, self.weight, reserve), total)
            for values, sums, total in zip(results, exact, self.totals, strict=True)
        ]


class Reference(NamedTuple):
    """Results of a sum that is much better than those that are compared with it, at all targets.

    A few targets may have most of the error, and which they are nothing tells but an error at each of them.
    """

    results: Sequence[Array]
    """(m, d) of each kind"""
    own: Sequence[float]
    """their relative RMS errors, of each kind or the largest"""
    sample: DrawnSample | None = None
    """some of the targets, where sums are known"""
    exact: Sequence[Array] = ()
    """(k, d) of each kind, what results should be there"""

    def error(self, results: Sequence[Array]) -> float:
        """RMS error of `results` (m, d) over their RMS, the largest.

        Of the error e = d + r, d from the reference and r its own, |e|^2 = |d|^2 + 2 d . r + |r|^2. Where
        vorticity is smooth both sums err the same way, and d . r is up to |d| |r|; it is taken from the
        sample, where there is one, else for 0.
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
    """Numbers, ascending, of up to `count` of so many rows, which tell of all where all weigh alike."""
    return np.unique(np.linspace(0, every - 1, count).astype(np.int64))


def _ratio(wrong: float, total: float) -> float:
    """Of two sums of squares, as lengths."""
    return math.sqrt(wrong / total if total > 0.0 else wrong)
