"""When particles of emitters are born, and layers of inflows."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.keyframes import Keyed, integral


def births(
    rate: float | Keyed, start: float, stop: float | None, begin: float, end: float,
    each: float = 1.0, ahead: float = 0.0,
) -> tuple[int, Array]:  # fmt: skip
    """How many were born before `begin` s, and the moments (n,) s of those born from there to `end` s.

    One is born whenever the integral of the rate from `start` on, over `each`, plus `ahead`, reaches a whole
    number; none after `stop` s.
    """
    begin, end = (max(time, start) if stop is None else min(max(time, start), stop) for time in (begin, end))
    before, after = (_given(rate, start, time) / each + ahead for time in (begin, end))
    first = _whole(before)
    count = _whole(after) - first
    if not count:
        return first, np.empty(0)
    share = (np.arange(first + 1, first + 1 + count) - before) / (after - before)
    return first, np.asarray(np.minimum(begin + share * (end - begin), end))  # no later, by rounding


def refuse_early_stop(start: float, stop: float | None) -> None:
    """Raise ValueError where nothing is born between both times."""
    if stop is not None and stop <= start:
        raise ValueError(f"stop {stop:g} s is not after start {start:g} s")


def _given(rate: float | Keyed, start: float, time: float) -> float:
    """What the integral of a rate has come to by a time."""
    return integral(rate, start, time) if time > start else 0.0


def _whole(total: float) -> int:
    """Whole particles; round-off must not hold back one that is due exactly at the end of a tick."""
    return math.floor(total * (1 + 1e-12) + 1e-9)
