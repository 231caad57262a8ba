"""Loops on threads: every piece once, in its own place, whatever the number of threads; failures are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS
from ecs_fluid.kernels.compiled.parallel import atomic_add, for_each, parallel
from tests.kernels.compiled.cached_program import program
from tests.threads import check_threads


@parallel("len(out)")
def mark(i: int, out: np.ndarray, by: float) -> None:
    """Adds to one number."""
    out[i] += by * i


@parallel()
def halves(chunk: int, x: np.ndarray, sums: np.ndarray) -> None:
    for k in range(chunk * len(x) // CHUNKS, (chunk + 1) * len(x) // CHUNKS):
        sums[chunk] += 0.5 * x[k]


@njit
def _fails_at_three(i: int, out: np.ndarray) -> None:
    if i == 3:
        raise ValueError("three")
    out[i] = 1.0


@njit
def fail(count: int, out: np.ndarray) -> int:
    for_each(_fails_at_three, count, (out,))
    return 7


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> int:
    """As many threads as the machine has, at most so many."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(request.param, numba.config.NUMBA_NUM_THREADS))
    yield request.param
    numba.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 1001])
def test_every_piece_is_done_once(count: int, threads: int) -> None:
    out = np.ones(count)
    mark(out, 2.0)
    assert out.tolist() == (1.0 + 2.0 * np.arange(count)).tolist()


@parallel("len(places)")
def reserve(i: int, places: np.ndarray, used: np.ndarray) -> None:
    """Room for i numbers, wherever there is some."""
    places[i] = atomic_add(used, 0, i)


def test_rooms_that_threads_take_do_not_overlap(threads: int) -> None:
    places, used = np.empty(500, np.int64), np.zeros(1, np.int64)
    reserve(places, used)
    order = np.argsort(places, kind="stable")
    sizes = np.arange(500)[order]
    assert used[0] == 500 * 499 // 2
    assert (places[order][1:] - places[order][:-1] == sizes[:-1])[sizes[:-1] > 0].all()


def test_sums_of_pieces_have_the_same_bits_on_any_threads() -> None:
    x, sums = np.random.default_rng(1).standard_normal(10_007), np.zeros(CHUNKS)

    def again() -> np.ndarray:
        sums[:] = 0.0
        halves(x, sums)
        return sums

    check_threads(again)
    assert np.sum(sums) == pytest.approx(0.5 * x.sum(), rel=1e-12)


def test_a_failure_is_told_after_the_other_pieces(threads: int) -> None:
    out = np.zeros(8)
    assert fail(3, out) == 7 and out.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="a loop on several threads failed"):
        fail(8, out)
    assert out.tolist() == [1, 1, 1, 0, 1, 1, 1, 1]


def test_a_kernel_has_the_name_and_the_words_of_its_body() -> None:
    assert mark.py_func.__name__ == "mark" and mark.__doc__ == "Adds to one number."


def test_compiled_code_serves_the_next_process(tmp_path: Path) -> None:
    """Loaded, it needs the pool of threads as much as when it was compiled."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, program(tmp_path)], capture_output=True, text=True, check=True, env=environment
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["10.0", "0"], ["10.0", "1"]]
