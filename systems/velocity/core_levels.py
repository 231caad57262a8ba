"""Vortons of different core radii as sums of blobs of a few radii, the levels.

Each vorton is shared among the levels next to its own radius.

A blob multiplies the amplitude of a wave of wave number k by z(k sigma). As a function of t = ln sigma, z is
the same curve for every k but for a shift, so interpolation by polynomials in t between radii of equal ratio
is equally exact for all waves. With Lagrange's weights w_j, sum_j w_j = 1, blobs of the radii sigma_j
represent the blob of radius sigma up to

    e(k) = z(k sigma) - sum_j w_j z(k sigma_j),    at most  c_n step^n max |d^n z/dt^n|

for n radii: c_2 = 1/8, c_3 = 1/sqrt(243), c_4 = 1/24 in the first and last interval and 3/128 in others. The
energy of a blob's velocity is proportional to int z^2 dk, so (int e^2 dk / int z^2 dk)^(1/2) is the relative
error of its velocity, and the step follows from the error that is allowed (`steps`). For a gaussian and n = 2
the error is (33/1024)^(1/2) step^2. Polynomials in sigma or sigma^2 are less exact, and weights fitted by
least squares hardly more so: docs/notes/velocity.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.regularisation import Code

ALLOWED = 1e-3
"""Allowed relative RMS error of the velocity of one blob that levels represent, for the worst radius."""

DEGREE = 3
"""Degree of the polynomials, where there are enough levels."""

COARSEST, FINEST = 2.0, 1.1
"""Largest and least ratio of neighbouring radii: blobs with an edge (rankine) gain little by more levels."""


class Level(NamedTuple):
    """Blobs of one radius (m): the rows of the vortons with a share in it, and their shares, 1."""

    radius: float
    rows: Array | slice
    parts: Array | float


def levels(sigma: Array, code: Code) -> list[Level]:
    """Levels for vortons of core radii sigma (n,) m, from the thinnest to the widest."""
    radii = sigma.astype(np.float64)
    lowest, highest = float(radii.min()), float(radii.max())
    ratio, allowed = highest / lowest, steps(code)
    if ratio <= allowed[0]:
        return [Level(float(np.sqrt(np.mean(radii**2))), slice(None), 1.0)]
    count = next(n for n in range(1, DEGREE + 1) if n == DEGREE or ratio <= allowed[n] ** n)
    if count == DEGREE:
        count = max(DEGREE, int(np.ceil(np.log(ratio) / np.log(allowed[DEGREE]))))
    few = _distinct_radii(radii, count + 1)
    if few is not None:
        return [Level(float(value), np.flatnonzero(radii == value), 1.0) for value in few]
    degree = min(count, DEGREE)
    place = count * (np.log(radii / lowest) / np.log(ratio))
    first = np.clip(np.floor(place) - (degree - 1) // 2, 0, count - degree).astype(np.int64)
    weights = lagrange(place - first, degree)
    found = []
    for number in range(count + 1):
        rows = np.flatnonzero((first <= number) & (number <= first + degree))
        parts = weights[number - first[rows], rows]
        rows, parts = rows[parts != 0], parts[parts != 0]
        if len(rows):
            found.append(Level(lowest * ratio ** (number / count), rows, parts))
    return found


def lagrange(place: Array, degree: int) -> Array:
    """Lagrange weights (degree + 1, n) of values at 0, 1, ..., degree for interpolation at `place` (n,)."""
    weights = np.ones((degree + 1, len(place)))
    for i in range(degree + 1):
        for j in range(degree + 1):
            if i != j:
                weights[i] *= (place - j) / (i - j)
    return weights


def _distinct_radii(radii: Array, most: int) -> list[float] | None:
    """All distinct radii in ascending order, or None if there are more than `most`."""
    found: list[float] = []
    while len(radii):
        if len(found) == most:
            return None
        found.append(float(radii[0]))
        radii = radii[radii != radii[0]]
    return sorted(found)


@lru_cache
def steps(code: Code) -> tuple[float, ...]:
    """Largest allowed ratio of neighbouring radii, by degree; for degree 0, of the widest to the thinnest."""
    from ecs_fluid.kernels.biot_savart.regularisation import record

    transform, allowed = record(code).transform, []
    if transform is None:
        return (FINEST,) * (DEGREE + 1)
    for degree in range(DEGREE + 1):
        low, high = (1.0, COARSEST) if degree == 0 else (FINEST, COARSEST)
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if step_error(transform, middle, degree) <= ALLOWED else (low, middle)
        allowed.append(low)
    return tuple(allowed)


def step_error(transform: Callable[[Any], Array], ratio: float, degree: int) -> float:
    """Relative error (int e^2 dk / int z^2 dk)^(1/2) of the worst blob, in the middle of the last interval.

    For degree 0, where one level represents all vortons, that of the thinnest.
    """
    k, place, nodes = np.geomspace(1e-3, 1e3, 1500), max(degree, 1) - 0.5, np.arange(degree + 1.0)
    weights = lagrange(np.array([place]), degree)[:, 0]
    z = transform(k * ratio**place)
    e = z - weights @ np.array([transform(k * ratio**node) for node in nodes])
    return float(np.sqrt((e**2 @ k) / (z**2 @ k)))
