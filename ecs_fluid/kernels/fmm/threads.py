"""Threads for kernels that do not start any: pieces of one piece of work, shared out by Python.

A parallel loop of numba costs three further compilations of all that it calls (body, wrapper, caller), which
for the fast multipole method were 10 of 30 seconds at first use. Its kernels are compiled without parallel
loops, give up the interpreter lock, and are called from as many Python threads as numba would use.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba

from ecs_fluid.kernels.compiled import FAST

Result = TypeVar("Result")

_EVERY: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy", "no_cfunc_wrapper": True}
KERNEL: dict[str, Any] = {**_EVERY, "cache": True, "nogil": True}
"""Options of kernels to be called from Python threads."""

PART: dict[str, Any] = {**_EVERY, "no_cpython_wrapper": True}
"""Options of functions that only kernels call: what would serve callers in Python is left out, which for
arguments of many arrays is more code than the function itself."""

_LEAST = 32
"""No batch but the last is smaller than this part of what a thread has to do."""


def threads() -> int:
    """How many threads a parallel kernel would use now."""
    return int(numba.get_num_threads())


def share(run: Callable[[int, int], Result], pieces: int) -> list[Result]:
    """Results of ``run(first, last)`` over batches of 0 ... pieces, in their sequence.

    What a piece does must not depend on the batch it is in; then results do not depend on the threads. The
    calling thread is one of them.
    """
    workers = min(threads(), pieces)
    if workers <= 1:
        return [run(0, pieces)]
    ends = batch_ends(pieces, workers)
    results: list[Any] = [None] * (len(ends) - 1)
    waiting = iter(range(len(results)))

    def work() -> None:
        try:
            for i in waiting:
                results[i] = run(ends[i], ends[i + 1])
        except BaseException:
            results.extend(waiting)  # the other threads begin none of them
            raise

    with ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(work) for _ in range(workers - 1)]
        work()
        for other in others:
            other.result()
    return results


def batch_ends(pieces: int, workers: int) -> list[int]:
    """0 and the ends of batches: large ones first and small ones last, so that all threads end together."""
    ends, least = [0], max(1, pieces // (_LEAST * workers))
    while ends[-1] < pieces:
        left = pieces - ends[-1]
        ends.append(ends[-1] + min(left, max(least, left // (2 * workers))))
    return ends
