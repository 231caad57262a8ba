"""The number of threads of each system: chosen by its own times, and the caller's afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.threads import FORGOTTEN, LONG, LONGEST, SWITCH, TRIALS, Threads


@pytest.fixture
def two() -> Iterator[None]:
    """Two kernel threads while a test runs."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("needs NUMBA_NUM_THREADS of at least 2")
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    yield
    numba.set_num_threads(before)


def counts(seconds: Callable[[int, int], float], runs: int) -> list[int]:
    """Threads that each run of a system is given, when run k takes `seconds(k, n)` of n threads."""
    threads, system, given = Threads(), ef.AdvectionSystem(), []
    for run in range(runs):
        with threads.chosen():
            threads.before(system)
            given.append(numba.get_num_threads())
            threads.after(system, seconds(run, given[-1]))
        assert numba.get_num_threads() == 2
    return given


def test_the_faster_number_stays(two: None) -> None:
    trial = [2] * (TRIALS + 1) + [1] * TRIALS
    assert counts(lambda _, n: {1: 1.0e-3, 2: 1.2e-3}[n], 40) == trial + [1] * (40 - len(trial))
    assert counts(lambda _, n: {1: 1.2e-3, 2: 1.0e-3}[n], 40) == trial + [2] * (40 - len(trial))


def test_one_thread_that_is_much_slower_is_tried_once(two: None) -> None:
    trial = [2] * (TRIALS + 1) + [1]
    assert counts(lambda _, n: {1: 1.6e-2, 2: 1e-2}[n], 40) == trial + [2] * (40 - len(trial))


def test_what_saves_less_than_the_change_of_the_number_stays_alone(two: None) -> None:
    end = slice(2 * TRIALS + 1, None)
    assert set(counts(lambda _, n: {1: 1e-4, 2: 1e-4 - 0.9 * SWITCH}[n], 40)[end]) == {1}
    assert set(counts(lambda _, n: {1: 1e-4, 2: 1e-4 - 1.1 * SWITCH}[n], 40)[end]) == {2}


def test_the_longest_runs_are_not_tried_alone(two: None) -> None:
    assert set(counts(lambda *_: 2 * LONGEST, 40)) == {2}


def test_the_choice_is_made_anew(two: None) -> None:
    first = 2 * TRIALS + FORGOTTEN
    later = counts(lambda _, n: {1: 1.0e-3, 2: 1.2e-3}[n], first + 20)[first + 1 :]
    assert later[:TRIALS] == [2] * TRIALS and later[TRIALS] == 1
    seldom = counts(lambda _, n: {1: 2 * LONG, 2: 2.5 * LONG}[n], 4 * FORGOTTEN)
    assert set(seldom[2 * TRIALS + 1 :]) == {1}


def test_threads_that_have_become_slow_are_given_up(two: None) -> None:
    """Two threads take 10 in place of 1 ms from run 50 on, as when another process has one of the cores."""
    given = counts(lambda run, n: {1: 2e-3, 2: 1e-3 if run < 50 else 1e-2}[n], 100)
    assert set(given[2 * TRIALS + 1 : 50]) == {2}
    assert set(given[70:]) == {1}


def test_a_single_slow_run_among_many_counts(two: None) -> None:
    """One run of four on two threads waits for a core: 1 ms on one thread is less in the mean."""
    given = counts(lambda run, n: {1: 1e-3, 2: 8e-4 if run % 4 else 8e-3}[n], 40)
    assert set(given[2 * TRIALS + 1 :]) == {1}


def test_a_failing_system_leaves_the_number_as_it_was(two: None) -> None:
    class Fails(ef.System):
        phase = "move"

        def process(self, dt: float) -> None:
            if self.world.tick == 12:
                assert numba.get_num_threads() in (1, 2)
                raise ef.FluidError("on purpose")

    world = ef.World()
    world.spawn("v", ef.Position(np.zeros((1, 3))))
    world.add_systems([Fails(), ef.AdvectionSystem()])
    with pytest.raises(ef.FluidError, match="on purpose"):
        world.step(20)
    assert numba.get_num_threads() == 2
