"""How many threads each system's kernels run on: one or all, whichever made ticks shorter.

A tick of a small world has some hundred parallel loops that take less time than waking a thread, and threads
that one system has woken are still awake for the next. So whole plans are tried: all systems on all threads,
all on one thread, and each system on whichever was faster for it. Results have the same bits in all plans, so
time alone decides.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ecs_fluid.errors import FluidError

if TYPE_CHECKING:
    from ecs_fluid.system import System

TRIALS = 5
"""Ticks tried with each plan before one is chosen; the longest of them is ignored. A plan gets fewer if they
take longer than TRIALS ticks of a plan that was tried before."""
RETRY_AFTER, LONG = 128, 5e-3
"""Ticks after which plans are tried anew, since worlds grow; four times as many if a tick takes LONG s or
more, or if all threads were much worse (WORSE) than the plan that was chosen."""
WORSE = 1.5
"""Plans are tried anew when recent ticks take this many times as long as they did. One thread is tried first:
another process may want the cores, and threads then wait for one another longer than they work."""
RECENT = 1 / 16
"""Weight of the newest tick in the mean of recent ones."""
CLEAR = 1.1
"""All threads are used unless another plan is faster by this factor: trials are short and start with threads
asleep."""
SWITCH_COST = 1e-5
"""Time, s, that all threads must save a system in a mixed plan: a few times what it takes to change the
number of threads twice."""

ALL, ONE, MIXED = "all", "one", "mixed"

_forked_after_kernels = False
"""Whether this process was forked after its parent had run kernels, whose threads it lacks"""


def _forked() -> None:
    global _forked_after_kernels
    numba = sys.modules.get("numba")
    try:
        _forked_after_kernels |= numba is not None and numba.threading_layer() == "omp"
    except ValueError:  # no kernel has run in the parent
        return


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


def check_not_forked() -> None:
    """Raise FluidError in a forked process that the first parallel kernel would end."""
    if _forked_after_kernels:
        raise FluidError(
            "this process was forked from one that had already run kernels, whose threads (GNU OpenMP) do "
            "not survive a fork; start it by multiprocessing.get_context('spawn')"
        )


def use_threads(count: int | None) -> None:
    """Set the number of kernel threads; where numba is loaded already, at most as many as it has."""
    if count is None:
        return
    numba = sys.modules.get("numba")
    if numba is None:
        os.environ["NUMBA_NUM_THREADS"] = str(count)  # it starts no more than these
    else:
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


class Threads:
    """Chooses the number of kernel threads of every system of a world by the times that its ticks take."""

    def __init__(self) -> None:
        self._available = self._current = 1
        self.mixed = False
        """Whether systems differ in their number of threads, so that `set_for` must be called for each"""
        self._compiled = False
        self._start_trials()

    def _start_trials(self, first: str = ALL, slow: dict[int, float] | None = None) -> None:
        """Start new trials with the plan `first`; times of a `slow` tick count as one on all threads."""
        self._plan, self._on_trial, self._age, self._recent, self._expected = first, True, 0, 0.0, 0.0
        self._ticks: dict[str, list[dict[int, float]]] = {ALL: [slow] if slow else [], ONE: [], MIXED: []}
        self._single_threaded: set[int] = set()  # ids of systems that the mixed plan runs on one thread

    @contextmanager
    def planned(self) -> Iterator[None]:
        """While active, systems run on the threads of the plan; then the caller's number is set again."""
        numba = sys.modules.get("numba")
        if numba:
            import ecs_fluid.kernels  # noqa: F401  (it chooses the threading library, before threads start)
        self._available = self._current = numba.get_num_threads() if numba else 1
        self.mixed = self._available > 1 and self._plan == MIXED
        try:
            if self._plan == ONE:
                self._set(1)
            yield
        finally:
            if numba and self._available > 1:
                numba.set_num_threads(self._available)

    def set_for(self, system: System) -> None:
        """Set the number of threads for a run of this system, where the plan is `mixed`."""
        self._set(1 if id(system) in self._single_threaded else self._available)

    def _set(self, count: int) -> None:
        if count != self._current:
            sys.modules["numba"].set_num_threads(count)
            self._current = count

    # ------------------------------------------------------------------ learning from times

    def learn(self, seconds: dict[int, float]) -> None:
        """Take the times of a whole tick, s by id(system), and choose the plan of the next tick."""
        if self._available == 1:
            return
        if not self._compiled:  # the first tick may compile
            self._compiled = True
        elif self._on_trial:
            self._try(seconds)
        else:
            self._watch(seconds)

    def _try(self, seconds: dict[int, float]) -> None:
        """Count a tick of the plan on trial; go on to the next plan, or choose one."""
        self._ticks[self._plan].append(seconds)
        for plan in (self._plan, ALL, ONE):
            if not self._has_enough_trials(plan):
                self._plan = plan
                return
        on_all, on_one = self._mean_tick_time(ALL), self._mean_tick_time(ONE)
        if not self._ticks[MIXED] and on_all < WORSE * on_one:
            both, one = self._mean_times(ALL), self._mean_times(ONE)
            self._single_threaded = {key for key in one if one[key] < both.get(key, 0.0) + SWITCH_COST}
            if 0 < len(self._single_threaded) < len(one):
                self._plan = MIXED
                return
        best = min((plan for plan, ticks in self._ticks.items() if ticks), key=self._mean_tick_time)
        self._plan = ALL if on_all < CLEAR * self._mean_tick_time(best) else best
        self._on_trial, self._expected = False, self._mean_tick_time(self._plan)
        self._recent = self._expected

    def _has_enough_trials(self, plan: str) -> bool:
        """Whether a plan has had enough ticks."""
        ticks = self._ticks[plan]
        if not ticks or len(ticks) >= TRIALS:
            return bool(ticks)
        others = [
            self._mean_tick_time(other)
            for other, others_ticks in self._ticks.items()
            if len(others_ticks) >= TRIALS
        ]
        return bool(others) and sum(sum(tick.values()) for tick in ticks) > TRIALS * min(others)

    def _watch(self, seconds: dict[int, float]) -> None:
        """Start new trials when ticks have become slow, or after a while."""
        self._age += 1
        self._recent += RECENT * (sum(seconds.values()) - self._recent)
        seldom = self._expected >= LONG or self._mean_tick_time(ALL) > WORSE * self._expected
        if self._recent > WORSE * self._expected:
            self._start_trials(ONE, None if self._plan == ONE else seconds)
        elif self._age >= (4 * RETRY_AFTER if seldom else RETRY_AFTER):
            self._start_trials(ONE if self._plan == ONE else ALL)

    def _mean_times(self, plan: str) -> dict[int, float]:
        """Mean time, s, of each system with this plan, by id(system)."""
        ticks = self._ticks[plan]
        if len(ticks) > 2:
            ticks = sorted(ticks, key=lambda tick: sum(tick.values()))[:-1]
        return {key: sum(tick.get(key, 0.0) for tick in ticks) / len(ticks) for key in ticks[0]}

    def _mean_tick_time(self, plan: str) -> float:
        """Mean time, s, of all systems together in a tick with this plan.

        Means decide, not the shortest: threads are slow because in some ticks one of them has no core.
        """
        return sum(self._mean_times(plan).values())
