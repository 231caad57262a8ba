"""Copies of large arrays, by all threads: each has the part in its cache that it worked on last."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.compiled import CHUNKS


@njit(parallel=True, cache=True)
def _copy(source: np.ndarray, target: np.ndarray) -> None:
    n = source.size
    for c in prange(CHUNKS):
        first, last = c * n // CHUNKS, (c + 1) * n // CHUNKS
        given, taken = source[first:last], target[first:last]
        for i in range(given.size):
            taken[i] = given[i]


def copy(source: np.ndarray, target: np.ndarray) -> None:
    """Copy an array onto another of the same shape and dtype; both C-contiguous."""
    # As bytes, so that one kernel is compiled for all dtypes.
    _copy(source.reshape(-1).view(np.uint8), target.reshape(-1).view(np.uint8))
