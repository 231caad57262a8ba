"""Numbers of kernel threads, on which no bit may depend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest


def bits(found: Any) -> bytes:
    """All bits of arrays, numbers, hashes, and tuples or lists of these."""
    if isinstance(found, tuple | list):
        return b"".join(map(bits, found))
    return np.asarray(found).tobytes()


def check_threads(compute: Callable[[], Any]) -> None:
    """What `compute` returns has the same bits on 1, 2, 4 and 8 threads, as far as this process has so many.

    The next test has its own number of threads again (`pytest_runtest_setup`).
    """
    most = numba.config.NUMBA_NUM_THREADS
    if most < 2:
        pytest.skip("NUMBA_NUM_THREADS leaves one thread")
    results = []
    for threads in (1, 2, 4, 8):
        if threads <= most:
            numba.set_num_threads(threads)
            results.append(bits(compute()))
    assert all(result == results[0] for result in results)
