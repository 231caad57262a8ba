"""When particles of emitters, and layers of inflows, are born."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.keyframes import Keyed, integral


def births(
    rate: float | Keyed, start: float, stop: float | None, begin: float, end: float,
    each: float = 1.0, ahead: float = 0.0,
) -> tuple[int, Array]:  # fmt: skip
    """The number born before `begin`, s, and the moments (n,) s of those born between `begin` and `end`.

    One is born whenever (integral of the rate from `start` on) / `each` + `ahead` reaches a whole number, but
    none after `stop`, s.
    """
    begin, end = (max(time, start) if stop is None else min(max(time, start), stop) for time in (begin, end))
    before, after = (_integral(rate, start, time) / each + ahead for time in (begin, end))
    first = _whole(before)
    count = _whole(after) - first
    if not count:
        return first, np.empty(0)
    share = (np.arange(first + 1, first + 1 + count) - before) / (after - before)
    return first, np.asarray(np.minimum(begin + share * (end - begin), end))  # rounding must not pass the end


def refuse_early_stop(start: float, stop: float | None) -> None:
    """Raise ValueError if `stop` is not after `start`, so that nothing would be born."""
    if stop is not None and stop <= start:
        raise ValueError(f"stop = {stop:g} s must be after start = {start:g} s")


def _integral(rate: float | Keyed, start: float, time: float) -> float:
    """Integral of a rate from `start` to `time`."""
    return integral(rate, start, time) if time > start else 0.0


def _whole(total: float) -> int:
    """Whole part of a count; round-off must not hold back a particle that is due exactly as a tick ends."""
    return math.floor(total * (1 + 1e-12) + 1e-9)
