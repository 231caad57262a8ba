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

from ecs_fluid.kernels import FAST

Result = TypeVar("Result")

KERNEL: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": FAST,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
"""Options of kernels to be called from Python threads."""

PART: dict[str, Any] = {
    "fastmath": FAST,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of functions that only kernels call: what would serve callers in Python is left out, which for
arguments of many arrays is more code than the function itself."""

_BATCHES = 4
"""Batches for each thread, so that one with slow pieces does not keep the others waiting."""


def threads() -> int:
    """How many threads a parallel kernel would use now."""
    return int(numba.get_num_threads())


def share(run: Callable[[int, int], Result], pieces: int) -> list[Result]:
    """Results of ``run(first, last)`` over batches of 0 ... pieces, in their sequence.

    What a piece does must not depend on the batch it is in; then results do not depend on the threads.
    """
    workers = min(threads(), pieces)
    if workers <= 1:
        return [run(0, pieces)]
    batches = min(pieces, _BATCHES * workers)
    ends = [pieces * i // batches for i in range(batches + 1)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, ends[:-1], ends[1:]))
