"""The number of threads of each system: chosen by its own times, and the caller's afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.threads import FORGOTTEN, LONG, SWITCH, TRIALS, Threads


@pytest.fixture
def two() -> Iterator[None]:
    """Two kernel threads while a test runs."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("needs NUMBA_NUM_THREADS of at least 2")
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    yield
    numba.set_num_threads(before)


def counts(seconds: Callable[[int], float], runs: int) -> list[int]:
    """Threads that each of so many runs of a system is given, when it takes `seconds` of that many."""
    threads, system, given = Threads(), ef.AdvectionSystem(), []
    for _ in range(runs):
        with threads.chosen():
            threads.before(system)
            given.append(numba.get_num_threads())
            threads.after(system, seconds(given[-1]))
        assert numba.get_num_threads() == 2
    return given


def test_the_faster_number_stays(two: None) -> None:
    trial = [2] * (TRIALS + 1) + [1] * TRIALS
    assert counts(lambda n: {1: 1e-3, 2: 2e-3}[n], 40) == trial + [1] * (40 - len(trial))
    assert counts(lambda n: {1: 2e-3, 2: 1e-3}[n], 40) == trial + [2] * (40 - len(trial))


def test_what_saves_less_than_the_change_of_the_number_stays_alone(two: None) -> None:
    end = slice(2 * TRIALS + 1, None)
    assert set(counts(lambda n: {1: 1e-4, 2: 1e-4 - 0.9 * SWITCH}[n], 40)[end]) == {1}
    assert set(counts(lambda n: {1: 1e-4, 2: 1e-4 - 1.1 * SWITCH}[n], 40)[end]) == {2}


def test_long_runs_are_not_tried_alone(two: None) -> None:
    assert set(counts(lambda n: 2 * LONG, 40)) == {2}


def test_the_choice_is_made_anew(two: None) -> None:
    later = counts(lambda n: {1: 1e-3, 2: 2e-3}[n], FORGOTTEN + 20)[FORGOTTEN + 1 :]
    assert later[:TRIALS] == [2] * TRIALS and later[TRIALS] == 1


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
