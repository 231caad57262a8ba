"""The number of threads of each system: chosen by the times of whole ticks, and the caller's afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.threads import LONG, RETRY_AFTER, SWITCH_COST, TRIALS, Threads


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
    """Threads that the one system of each tick is given, when tick k takes `seconds(k, n)` of n threads."""
    return [given for (given,) in plans(lambda tick, given: [seconds(tick, given[0])], runs, 1)]


def plans(
    seconds: Callable[[int, list[int]], list[float]], ticks: int, systems: int
) -> list[tuple[int, ...]]:
    """Threads of every system in each tick, when those of tick k take `seconds(k, threads)`."""
    threads, all_of_them, found = Threads(), [ef.AdvectionSystem() for _ in range(systems)], []
    for tick in range(ticks):
        given = []
        with threads.planned():
            for system in all_of_them:
                if threads.mixed:
                    threads.set_for(system)
                given.append(numba.get_num_threads())
        assert numba.get_num_threads() == 2
        threads.learn(dict(zip(map(id, all_of_them), seconds(tick, given), strict=True)))
        found.append(tuple(given))
    return found


def test_the_faster_number_stays(two: None) -> None:
    trial = [2] * (TRIALS + 1) + [1] * TRIALS
    assert counts(lambda _, n: {1: 1.0e-3, 2: 1.2e-3}[n], 40) == trial + [1] * (40 - len(trial))
    assert counts(lambda _, n: {1: 1.2e-3, 2: 1.0e-3}[n], 40) == trial + [2] * (40 - len(trial))


def test_systems_differ(two: None) -> None:
    """One is better off alone, one with all threads, and one saves less than the change of the number."""

    def seconds(_: int, given: list[int]) -> list[float]:
        first, second, third = given
        return [
            {1: 1e-3, 2: 2e-3}[first], {1: 2e-3, 2: 1.5e-3}[second],
            {1: 1e-3 + 0.9 * SWITCH_COST, 2: 1e-3}[third],
        ]  # fmt: skip

    found = plans(seconds, 60, 3)
    assert found[: TRIALS + 1] == [(2, 2, 2)] * (TRIALS + 1)
    assert found[TRIALS + 1 : 2 * TRIALS + 1] == [(1, 1, 1)] * TRIALS
    assert found[2 * TRIALS + 1 :] == [(1, 2, 1)] * (60 - 2 * TRIALS - 1)


def test_what_is_best_for_each_may_not_be_best_for_the_tick(two: None) -> None:
    """The first is a little faster alone, but then the second has to wake the threads."""

    def seconds(_: int, given: list[int]) -> list[float]:
        first, second = given
        return [{1: 0.9e-3, 2: 1e-3}[first], {1: 1.2e-3, 2: 1e-3 if first == 2 else 1.3e-3}[second]]

    found = plans(seconds, 60, 2)
    assert found[2 * TRIALS + 1 : 3 * TRIALS + 1] == [(1, 2)] * TRIALS
    assert found[3 * TRIALS + 1 :] == [(2, 2)] * (60 - 3 * TRIALS - 1)


def test_a_plan_is_tried_no_longer_than_all_trials_of_a_better_one_take(two: None) -> None:
    for slower, ticks in ((6.0, 1), (1.6, 4)):
        trial = [2] * (TRIALS + 1) + [1] * ticks
        given = counts(lambda _, n, slower=slower: {1: 1e-2 * slower, 2: 1e-2}[n], 40)
        assert given == trial + [2] * (40 - len(trial))


def test_threads_that_another_process_holds_up_for_long_are_left(two: None) -> None:
    """Ticks of 0.2 s are tried on one thread too: it may be one that would take 0.04 s."""
    trial = [2] * (TRIALS + 1) + [1] * TRIALS
    assert counts(lambda _, n: {1: 0.04, 2: 0.2}[n], 40) == trial + [1] * (40 - len(trial))


def test_the_choice_is_made_anew(two: None) -> None:
    first = 2 * TRIALS + RETRY_AFTER
    for one, two_, again in ((1.0e-3, 1.2e-3, 1), (1.2e-3, 1.0e-3, 2)):
        later = counts(lambda _, n, t={1: one, 2: two_}: t[n], first + 20)[first + 1 :]
        assert later[: 2 * TRIALS] == [again] * TRIALS + [3 - again] * TRIALS
    seldom = counts(lambda _, n: {1: 2 * LONG, 2: 2.5 * LONG}[n], 4 * RETRY_AFTER)
    assert set(seldom[2 * TRIALS + 1 :]) == {1}


def test_threads_that_have_become_slow_are_given_up(two: None) -> None:
    """Two threads take 10 in place of 1 ms from run 50 on, as when another process has one of the cores."""
    given = counts(lambda run, n: {1: 2e-3, 2: 1e-3 if run < 50 else 1e-2}[n], 100)
    assert set(given[2 * TRIALS + 1 : 50]) == {2}
    assert set(given[70:]) == {1}


def test_threads_that_have_become_much_slower_cost_one_tick(two: None) -> None:
    """As beside a busy process: each of a hundred loops in a tick may wait for the scheduler."""
    given = counts(lambda run, n: {1: 2e-3, 2: 1e-3 if run < 50 else 3e-2}[n], 50 + 4 * RETRY_AFTER)
    assert given[50] == 2 and given[51:].count(2) == 0
    again = counts(lambda run, n: {1: 2e-3, 2: 1e-3 if run < 50 else 3e-2}[n], 50 + 8 * RETRY_AFTER)
    assert again[51:].count(2) == 1


def test_one_slow_tick_of_a_run_does_not_count(two: None) -> None:
    given = counts(lambda run, n: {1: 2e-3, 2: 1e-3 if run != 50 else 9e-3}[n], 100)
    assert set(given[70:]) == {2}


def test_one_slow_tick_does_not_count_but_two_do(two: None) -> None:
    """In which a thread waits for a core: of the trial on all threads, ticks 1 to 5."""
    for slow, chosen in ((3,), 2), ((2, 4), 1):
        given = counts(lambda tick, n, slow=slow: {1: 1e-3, 2: 8e-3 if tick in slow else 9e-4}[n], 40)
        assert set(given[2 * TRIALS + 1 :]) == {chosen}


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


FORK = """
import multiprocessing as mp
import ecs_fluid as ef

def child(after: bool) -> str:
    try:
        world = ef.load("vortex_ring")
        world.step()
    except ef.FluidError as error:
        return str(error)
    return world.state_hash()

before = mp.get_context("fork").Pool(1).map_async(child, [False]).get(300)[0]
here = child(False)
after = mp.get_context("fork").Pool(1).map_async(child, [True]).get(60)[0]
print(before == here, after)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork, and OpenMP's threads, which it loses")
def test_a_fork_after_a_step_is_one_sentence_and_before_it_all_is_well(tmp_path: Path) -> None:
    done = programs.run(programs.written(tmp_path, FORK), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True this process was forked") and "get_context('spawn')" in done.stdout


LAYER = """
import numba
import ecs_fluid as ef
world = ef.load("vortex_ring", "smoke.per_cell=1")
world.step(3)
print(numba.threading_layer(), world.state_hash())
"""


def test_numbas_own_threads_give_the_same_bits(tmp_path: Path) -> None:
    """Where there is no OpenMP, as on most Macs, numba takes its own layer."""
    told = {}
    for layer in ("omp", "workqueue"):
        variables = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
        done = programs.run(programs.written(tmp_path, LAYER), folder=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        name, told[layer] = done.stdout.split()
        assert name == layer
    assert told["omp"] == told["workqueue"]
