"""Parameters over time: values between keys, integrals, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ecs_fluid.errors import RecipeError
from ecs_fluid.keyframes import Keyed, KeyedNumber, KeyedVector, integral, value_at
from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import validated


class Holder(Settings):
    """Both kinds of parameters."""

    number: KeyedNumber = 0.0
    vector: KeyedVector = (0.0, 0.0, 0.0)


RAMP = Keyed(keys=[(1.0, 2.0), (3.0, 6.0), (4.0, 0.0)])
STEPS = Keyed(keys=[(1.0, 2.0), (3.0, 6.0)], between="step")
TURN = Keyed(keys=[(0.0, [0.0, 1.0, 2.0]), (2.0, [4.0, 1.0, -2.0])])


@pytest.mark.parametrize(
    ("time", "value"), [(-5.0, 2.0), (1.0, 2.0), (1.5, 3.0), (3.0, 6.0), (3.75, 1.5), (4.0, 0.0), (9.0, 0.0)]
)
def test_linear(time: float, value: float) -> None:
    assert value_at(RAMP, time) == value


@pytest.mark.parametrize(("time", "value"), [(0.0, 2.0), (2.999, 2.0), (3.0, 6.0), (9.0, 6.0)])
def test_step_takes_the_new_value_at_its_key(time: float, value: float) -> None:
    assert value_at(STEPS, time) == value


def test_vectors_and_arrays_of_times() -> None:
    np.testing.assert_array_equal(value_at(TURN, 0.5), [1.0, 1.0, 1.0])
    times = np.array([-1.0, 0.5, 1.0, 7.0])
    np.testing.assert_array_equal(value_at(TURN, times), [value_at(TURN, t) for t in times])
    np.testing.assert_array_equal(value_at(STEPS, times), [value_at(STEPS, t) for t in times])
    np.testing.assert_array_equal(value_at(RAMP, times), [value_at(RAMP, t) for t in times])


def test_constants_and_single_keys() -> None:
    assert value_at(2.5, 7.0) == 2.5
    np.testing.assert_array_equal(value_at((1.0, 2.0, 3.0), 7.0), [1.0, 2.0, 3.0])
    for law in ("linear", "step"):
        once = Keyed(keys=[(1.0, 4.0)], between=law)
        assert [float(value_at(once, time)) for time in (0.0, 1.0, 2.0)] == [4.0, 4.0, 4.0]


def test_integrals_by_hand() -> None:
    """Trapezia of RAMP: before the first key 2 per second, then (2 + 6)/2 * 2, then (6 + 0)/2 * 1."""
    assert integral(RAMP, 0.0, 1.0) == 2.0
    assert integral(RAMP, 0.0, 10.0) == 2.0 + 8.0 + 3.0
    assert integral(RAMP, 2.0, 3.5) == 5.0 + 2.25
    assert integral(STEPS, 0.0, 4.0) == 3 * 2.0 + 6.0
    assert integral(3.0, 1.0, 3.5) == 7.5
    assert integral(RAMP, 2.0, 2.0) == 0.0


class Counted(list[tuple[float, float]]):
    """Keys that count how often somebody goes through them."""

    reads = 0

    def __iter__(self) -> Iterator[tuple[float, float]]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("law", ["linear", "step"])
def test_many_keys_are_gone_through_once(law: str) -> None:
    """Once for their times and once for their values, whatever is asked; as exact as key by key."""
    draw = np.random.default_rng(3)
    keys = list(zip(np.cumsum(draw.uniform(0.1, 1, 500)), draw.normal(size=500), strict=True))
    many = validated(Keyed, {"keys": keys, "between": law}, "here")
    counted = vars(many)["keys"] = Counted(many.keys)
    for begin, end in ((-1.0, 900.0), (keys[7][0], keys[400][0]), (3.3, 3.4), (5.0, 5.0)):
        edges = [begin, *(time for time, _ in keys if begin < time < end), end]
        parts = [(b - a) * float(value_at(many, 0.5 * (a + b))) for a, b in pairwise(edges)]
        assert integral(many, begin, end) == math.fsum(parts)
    assert counted.reads == 2


def test_values_of_keys_are_not_those_that_are_kept() -> None:
    held = Keyed(keys=TURN.keys, between="step")
    value_at(held, 0.5)[:] = 9.0
    np.testing.assert_array_equal(value_at(held, 0.5), [0.0, 1.0, 2.0])


@given(st.lists(st.floats(0, 5, allow_subnormal=False), min_size=3, max_size=3))
def test_integrals_add_up(times: list[float]) -> None:
    a, b, c = sorted(times)
    whole = integral(RAMP, a, c)
    # Values are at most 6 over 5 s: parts of 30 with a few roundings each.
    assert integral(RAMP, a, b) + integral(RAMP, b, c) == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([], r"here: number.keys = \[\]; a value of length at least 1 is needed"),
        ([[1.0, 1.0], [1.0, 2.0]], "the times of keys must increase"),
        ([[2.0, 1.0], [1.0, 2.0]], "the times of keys must increase"),
        ([[0.0, [1.0, 2.0, 3.0]], [1.0, 2.0]], "all keys need values of the same length"),
        ([[0.0, float("nan")]], "here: number.keys.0.1 = nan; a finite number is needed"),
        ([[0.0, [1.0, 2.0, 3.0]]], "keys of a number need one number each"),
    ],
)
def test_bad_keys_of_a_number(keys: list[object], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        validated(Holder, {"number": {"keys": keys}}, "here")


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_keys_of_a_vector_need_three_numbers(value: object) -> None:
    with pytest.raises(RecipeError, match="keys of a vector need 3 numbers each"):
        validated(Holder, {"vector": {"keys": [[0.0, value]]}}, "here")
    assert isinstance(validated(Holder, {"vector": {"keys": [[0.0, [1.0, 2.0, 3.0]]]}}, "here").vector, Keyed)
