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
FORGOTTEN = 128
"""Runs after which a choice is made anew, since worlds grow; four times as many where they take LONG."""
LONG, LONGEST = 5e-3, 0.1
"""s; what takes the longest on all threads is not tried on one."""
WORSE = 1.5
"""One thread that takes this many times as long as all is not tried further; and a choice is made anew when
recent runs take as much longer than what it was made by: another process may want the cores, and threads
then wait for one another longer than they work."""
RECENT = 1 / 16
"""Weight of the newest run in the mean of recent runs."""
SWITCH = 1e-5
"""s; time that all threads have to save. Changing their number, and back, takes about that."""


class _Choice:
    """Times of one system on all threads and on one, and which of both comes next.

    Means decide, not the least: what makes threads slow are single runs in which one of them has no core.
    """

    def __init__(self) -> None:
        self._begin()
        self._compiled = False

    def _begin(self) -> None:
        self.alone, self._runs, self._recent = False, 0, 0.0
        self._times: dict[bool, list[float]] = {False: [], True: []}

    def _mean(self, alone: bool) -> float:
        times = self._times[alone]
        return sum(times) / len(times) if times else math.inf

    def add(self, seconds: float) -> None:
        """Take the time of a run that was made as `alone` says."""
        if not self._compiled:  # the first one may compile
            self._compiled = True
        elif self._runs:
            self._watch(seconds)
        else:
            self._try(seconds)

    def _try(self, seconds: float) -> None:
        self._times[self.alone].append(seconds)
        count, both, one = len(self._times[self.alone]), self._mean(False), self._mean(True)
        if self.alone and (count == TRIALS or one > WORSE * both):
            self.alone = one < both + SWITCH
        elif count == TRIALS and both < LONGEST:
            self.alone = True
            return
        elif count < TRIALS:
            return
        self._runs, self._recent = 1, self._mean(self.alone)

    def _watch(self, seconds: float) -> None:
        self._runs += 1
        self._recent += RECENT * (seconds - self._recent)
        chosen = self._mean(self.alone)
        due = self._runs > (FORGOTTEN if chosen < LONG else 4 * FORGOTTEN)
        if self._recent > WORSE * chosen + SWITCH or due:
            self._begin()


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
