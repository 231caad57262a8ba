"""Counter-based random numbers: one stream for each (seed of the world, name, tick)."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def stream(seed: int, name: str, tick: int = 0) -> np.random.Generator:
    """Philox generator keyed by the world's seed and a name, and counted by ticks.

    The numbers do not depend on the other entities of the world, on their order, or on threads.
    """
    key = np.array([seed, crc32(name.encode())], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, tick, 0, 0], np.uint64)))
