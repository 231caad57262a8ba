"""Memory that Python allocates while something is done."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_of(act: Callable[[int], object]) -> int:
    """Bytes at most while `act` runs, the less of two times, 0 and 1, since those of other threads count too.

    An earlier test may have left such threads in the process. What `act` itself needs, it needs both times.
    """
    return min(_peak(act, time) for time in range(2))


def _peak(act: Callable[[int], object], time: int) -> int:
    tracemalloc.start()
    try:
        act(time)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
