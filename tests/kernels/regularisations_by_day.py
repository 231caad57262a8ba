"""Which regularisations stand for all by day: each compiles its own loops in every kernel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest


def some(names: Iterable[str], by_day: int = 2) -> list[Any]:
    """Parameters of a test: the first ones by day, the others in the nightly set."""
    nightly = pytest.mark.nightly
    return [name if row < by_day else pytest.param(name, marks=nightly) for row, name in enumerate(names)]


def pairs(names: Iterable[str], by_day: int = 1) -> list[Any]:
    """(name, precision): by day the first ones in double precision and the first in single."""
    return [
        pytest.param(name, real, marks=pytest.mark.nightly if row >= number else ())
        for real, number in ((np.float64, by_day), (np.float32, 1))
        for row, name in enumerate(names)
    ]
