"""Lanes that are picked out by a limit, against numpy, as compiled for this processor and for a plain one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from ecs_fluid.kernels.compiled.lanes import (
    BYTES,
    append_below,
    append_numbers_below,
    count_below,
    gather_fours,
    lanes_of,
    load,
    load_as,
    load_four,
    repeat_four,
    spread,
    store_columns,
    store_four,
    sum_fours,
    where_fourth_positive,
)
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors


@njit
def below(
    a: np.ndarray, limit: float, value: np.ndarray, out: np.ndarray, rows: np.ndarray, places: np.ndarray
) -> int:
    """Those of ``value`` where a < limit, and as whole numbers, and their places from 10 on; how many."""
    wide_vectors()
    found = 0
    for at in range(0, len(a), lanes_of(a)):
        here, most = load(a, at), spread(limit)
        append_below(here, most, load(value, at), out, found)
        append_below(here, most, load(value, at), rows, found)
        append_numbers_below(here, most, 10 + at, places, found)
        found += count_below(here, most, lanes_of(a))
    return found


@njit
def below_in(a: np.ndarray, limit: float, lanes: int) -> int:
    """How many of the first ``lanes`` of a vector are below the limit."""
    return count_below(load(a, 0), spread(limit), lanes)


def compare(dtype: type, number: int) -> None:
    """Vectors of none, some and all below the limit, in an order drawn for ``number``, to the bit.

    What lies on the limit and NaN are left out. Zeros fill the vector of the last; behind it nothing changes.
    """
    draw = np.random.default_rng(number)
    count = BYTES // np.dtype(dtype).itemsize
    a = draw.standard_normal((7, count)).astype(dtype)
    a[0], a[1] = -1.0, 1.0
    a[2, ::2], a[2, 1::2] = 0.5, np.nextafter(dtype(0.5), dtype(0))
    a[3, :3] = np.nan, -np.inf, np.inf
    a = a[draw.permutation(7)].ravel()
    value = np.arange(len(a)).astype(dtype) * 1001 - 20_000
    out, rows = np.full(2 * len(a), -7.5, dtype), np.full(2 * len(a), -7, np.int32)
    places, chosen = np.full(2 * len(a), 7, np.uint32), a < dtype(0.5)
    found = below(a, dtype(0.5), value, out, rows, places)
    assert count < found == chosen.sum() < len(a) - count
    np.testing.assert_array_equal(out[:found], value[chosen])
    np.testing.assert_array_equal(rows[:found], value[chosen])
    np.testing.assert_array_equal(places[:found], 10 + np.flatnonzero(chosen))
    for lanes in range(1, 2 * count):
        assert below_in(a, dtype(0.5), lanes) == chosen[: min(lanes, count)].sum()
    assert (out[found + count :] == -7.5).all() and (rows[found + count :] == -7).all()
    assert (places[found + count :] == 7).all()


@njit
def summed(fours: np.ndarray, rows: np.ndarray, times: np.ndarray, own: np.ndarray, out: np.ndarray) -> None:
    """Sum of (own + the fours of ``rows``) times ``times`` where the last of a four is above zero."""
    wide_vectors()
    zero = own[0] - own[0]
    total, mine = spread(zero), repeat_four(load_four(own, 0))
    for k in range(0, 4 * len(rows), lanes_of(fours)):
        theirs = gather_fours(fours, rows, k // 4)
        total += where_fourth_positive(theirs, mine + theirs) * load_as(times, k, zero)
    store_four(out, 0, sum_fours(total))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("whole", [np.int16, None])
@pytest.mark.parametrize("number", [np.uint16, np.uint32])
def test_fours_are_gathered_and_summed(dtype: type, whole: type | None, number: type) -> None:
    """Against numpy, exactly: all numbers are whole, and sums below 2^24. Rows above 2^15 are no negative
    ones."""
    draw = np.random.default_rng(5)
    fours = draw.integers(-9, 10, (2**16, 4)).astype(dtype)
    rows = draw.integers(0, 2**16, 48).astype(number)
    times = draw.integers(-99, 100, (48, 4)).astype(whole or dtype)
    own, out = np.array([1, -2, 3, 4], dtype), np.empty(4, dtype)
    summed(fours, rows, times.ravel(), own, out)
    theirs = fours[rows]
    expected = np.where(theirs[:, 3:] > 0, theirs + own, 0) * times
    assert (theirs[:, 3] > 0).any() and rows.max() >= 2**15
    np.testing.assert_array_equal(out, expected.sum(axis=0))


@njit
def turned(eights: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Columns of the ``rows``, into ``out`` (8, m) from its third number on."""
    wide_vectors()
    for at in range(0, len(rows), lanes_of(eights)):
        store_columns(eights, rows, at, out, 3 + at, out.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_turned_to_columns(dtype: type) -> None:
    draw = np.random.default_rng(6)
    eights, rows = draw.random((100, 8)).astype(dtype), draw.integers(0, 100, 32).astype(np.int32)
    out = np.full((8, 40), -1, dtype)
    turned(eights, rows, out)
    np.testing.assert_array_equal(out[:, 3:35], eights[rows].T)
    assert (out[:, :3] == -1).all() and (out[:, 35:] == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_below_the_limit_is_appended_and_counted(dtype: type) -> None:
    for number in range(20):
        compare(dtype, number)


def test_processors_without_such_an_instruction_do_the_same() -> None:
    """Compiled for one that has the least of its kind; the comparison is with numpy there too."""
    code = (
        "import numpy as np\nfrom tests.kernels.compiled.test_lanes import compare\n"
        "for dtype in (np.float32, np.float64):\n    compare(dtype, 1)"
    )
    plain = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
