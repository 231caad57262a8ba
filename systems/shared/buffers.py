"""Room for numbers on their way from kernel to kernel."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array

SPARE = 4
"""Memory is made larger than asked by a quarter, and given up where this many times less is in use."""


class Memory:
    """Arrays that live for a tick, in memory that is kept: fresh memory takes time to come by.

    Shapes may differ from tick to tick, as those of grids around moving particles do.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type) -> Array:
        """An array with any numbers in it; the one of that name from before is no longer of use."""
        size, kept = math.prod(shape), self._kept.get(name)
        if kept is None or kept.dtype != dtype or not size <= len(kept) <= SPARE * max(size, 1):
            kept = self._kept[name] = np.empty(size + size // SPARE, dtype)
        return kept[:size].reshape(shape)
