"""How many threads each system's kernels run on: one or all, whichever took less time.

Waking threads takes some 50 us whenever they have fallen asleep, and a tick of a small world has some forty
parallel loops that take less than that. Results have the same bits either way; so only time decides.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ecs_fluid.system import System

TRIALS = 4
"""Runs on each number of threads before one is chosen."""
FORGOTTEN = 512
"""Runs after which the choice is made anew: worlds grow."""
LONG = 5e-3
"""s; what takes longer on all threads is not tried on one."""
SWITCH = 1e-5
"""s; time that all threads have to save. Changing their number, and back, takes about that."""


class _Choice:
    """Times of one system on all threads and on one, and which of both comes next."""

    def __init__(self) -> None:
        self.alone = False
        self._runs = -1  # the first one may compile
        self._best = {False: math.inf, True: math.inf}

    def add(self, seconds: float) -> None:
        """Take the time of a run that was made as `alone` says."""
        self._runs += 1
        if 0 < self._runs <= 2 * TRIALS:
            self._best[self.alone] = min(self._best[self.alone], seconds)
        if self._runs == TRIALS:
            self.alone = self._best[False] < LONG
        elif self._runs == 2 * TRIALS:
            self.alone = self._best[True] < self._best[False] + SWITCH
        elif self._runs == FORGOTTEN:
            self.alone, self._runs = False, 0
            self._best = {False: math.inf, True: math.inf}


class Threads:
    """Number of kernel threads of every system of a world, by its own times."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._most = self._now = 1

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """While active, `before` may lower the number of threads; the caller's comes back after."""
        numba = sys.modules.get("numba")
        self._most = self._now = numba.get_num_threads() if numba else 1
        try:
            yield
        finally:
            if numba and self._most > 1:
                numba.set_num_threads(self._most)

    def before(self, system: System) -> None:
        """Set the number of threads for the run that comes."""
        if self._most > 1:
            choice = self._choices.get(id(system))
            if choice is None:
                choice = self._choices[id(system)] = _Choice()
            count = 1 if choice.alone else self._most
            if count != self._now:
                _set(count)
                self._now = count

    def after(self, system: System, seconds: float) -> None:
        """Take the time of that run."""
        if self._most > 1:
            self._choices[id(system)].add(seconds)


def _set(count: int) -> None:
    """Set the number of threads, of which `chosen` has seen to it that they run.

    numba's own function takes a lock of the process each time, some 10 us; what it calls then takes none.
    """
    parallel = sys.modules["numba.np.ufunc.parallel"]
    getattr(parallel, "_set_num_threads", sys.modules["numba"].set_num_threads)(count)
