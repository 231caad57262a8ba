"""Vortons whose core radii differ, as blobs of a few radii: each is shared among the levels next to its own.

A blob leaves z(k sigma) of a wave k. As a function of t = ln sigma that is one curve, the same for every k
but for where it lies, so polynomials in t between radii of even steps are as exact for all waves. With
Lagrange's weights w_j, sum_j w_j = 1, the blobs of radii sigma_j stand for that of sigma up to

    e(k) = z(k sigma) - sum_j w_j z(k sigma_j),    at most  c_n step^n max |d^n z/dt^n|

for n radii: c_2 = 1/8, c_3 = 1/sqrt(243), c_4 = 1/24 in the first and last interval and 3/128 in others. The
energy of a blob's velocity is proportional to int z^2 dk, so (int e^2 dk / int z^2 dk)^(1/2) is the relative
error of its velocity, and the step follows from the error that is allowed (`steps`). For a gaussian and n = 2
it is (33/1024)^(1/2) step^2. Polynomials in sigma or sigma^2 are less exact, and weights fitted by least
squares hardly more: docs/notes/velocity.md.
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
"""Relative RMS error of the velocity of one blob by levels, the largest of all radii."""

DEGREE = 3
"""Of the polynomials, where there are radii enough."""

COARSEST, FINEST = 2.0, 1.1
"""Ratio of radii next to each other, largest and least: blobs with an edge (rankine) gain little by more."""


class Level(NamedTuple):
    """Blobs of one radius, m: which vortons have a part in it, and the parts, 1."""

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
    few = _few(radii, count + 1)
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
    """Weights (degree + 1, n) of the whole numbers 0, 1, ... of polynomials through them at places (n,)."""
    weights = np.ones((degree + 1, len(place)))
    for i in range(degree + 1):
        for j in range(degree + 1):
            if i != j:
                weights[i] *= (place - j) / (i - j)
    return weights


def _few(radii: Array, most: int) -> list[float] | None:
    """All the radii that there are, in order, if they are `most` or less."""
    found: list[float] = []
    while len(radii):
        if len(found) == most:
            return None
        found.append(float(radii[0]))
        radii = radii[radii != radii[0]]
    return sorted(found)


@lru_cache
def steps(code: Code) -> tuple[float, ...]:
    """Largest ratio of radii next to each other, by degree; of degree 0 that of all to the thinnest."""
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
    """(int e^2 dk / int z^2 dk)^(1/2) of a blob in the middle of the last interval, where it is largest.

    Of degree 0 that of the thinnest of vortons that are one level.
    """
    k, place, nodes = np.geomspace(1e-3, 1e3, 1500), max(degree, 1) - 0.5, np.arange(degree + 1.0)
    weights = lagrange(np.array([place]), degree)[:, 0]
    z = transform(k * ratio**place)
    e = z - weights @ np.array([transform(k * ratio**node) for node in nodes])
    return float(np.sqrt((e**2 @ k) / (z**2 @ k)))
