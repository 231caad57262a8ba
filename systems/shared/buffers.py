"""Reused memory for arrays that one kernel fills and another reads."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.component import Array

SPARE = 4
"""Memory is 1/4 larger than asked for, and freed when less than 1/4 of it is in use."""


class Memory:
    """Arrays that live for a tick, in memory that is kept, since allocating it takes time.

    Shapes may differ from tick to tick, as those of grids around moving particles do.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type) -> Array:
        """An array of that shape, not initialised; it overwrites the earlier one of that name."""
        size, kept = math.prod(shape), self._kept.get(name)
        if kept is None or kept.dtype != dtype or not size <= len(kept) <= SPARE * max(size, 1):
            kept = self._kept[name] = np.empty(size + size // SPARE, dtype)
        return kept[:size].reshape(shape)
