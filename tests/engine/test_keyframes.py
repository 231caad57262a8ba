"""Parameters over time: values between keys, integrals, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ecs_fluid.errors import RecipeError
from ecs_fluid.keyframes import Between, Keyed, KeyedNumber, KeyedVector, integral, value_at
from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import validated


class Holder(Settings):
    """Both kinds of parameters."""

    number: KeyedNumber = 0.0
    vector: KeyedVector = (0.0, 0.0, 0.0)


LAWS: tuple[Between, ...] = get_args(Between)
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


def test_two_smooth_keys_start_and_stop_at_rest() -> None:
    """Hermite's cubic at rest at both ends is 3 s^2 - 2 s^3: 5/32 of the way at 1/4, half in the mean."""
    keyed = Keyed(keys=[(1.0, 2.0), (5.0, 34.0)], between="smooth")
    for time, value in (
        (0.0, 2.0),
        (1.0, 2.0),
        (2.0, 7.0),
        (3.0, 18.0),
        (4.0, 29.0),
        (5.0, 34.0),
        (9.0, 34.0),
    ):
        assert value_at(keyed, time) == pytest.approx(value, abs=1e-13)
    # int of 3 s^2 - 2 s^3 from 0 to 1/4 is 1/64 - 1/512 = 7/512.
    assert integral(keyed, 1.0, 2.0) == pytest.approx(2.0 + 4 * 32 * 7 / 512, rel=1e-14)
    assert integral(keyed, 0.0, 6.0) == pytest.approx(2.0 + 4 * 18.0 + 34.0, rel=1e-14)


def test_smooth_keys_follow_parabolas_at_uneven_times() -> None:
    """Between inner keys, slopes are those of the parabola, which is no steeper than thrice either chord."""
    keyed = Keyed(keys=[(t, t * t) for t in (0.0, 1.0, 1.5, 3.0, 4.0)], between="smooth")
    times = np.linspace(1.0, 3.0, 17)
    np.testing.assert_allclose(value_at(keyed, times), times**2, rtol=1e-14)
    assert integral(keyed, 1.0, 3.0) == pytest.approx(26 / 3, rel=1e-14)


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.floats(-1e6, 1e6)), min_size=1, max_size=8),
    st.floats(0, 1),
)
def test_smooth_values_stay_between_keys(steps: list[tuple[float, float]], share: float) -> None:
    """Each number rises or falls all the way from key to key, and its rate of change has no jump at one."""
    times = np.cumsum([step for step, _ in steps])
    values = np.array([value for _, value in steps])
    keyed = Keyed(keys=list(zip(times.tolist(), values.tolist(), strict=True)), between="smooth")
    np.testing.assert_array_equal(value_at(keyed, times), values)
    size = np.abs(values).max()
    for k, (begin, end) in enumerate(pairwise(times.tolist())):
        fine = value_at(keyed, begin + (end - begin) * np.sort(np.append(np.linspace(0, 1, 9), share)))
        way = np.diff(fine) * np.sign(values[k + 1] - values[k])
        assert (way >= -1e-15 * size).all() and values.min() <= fine.min() <= fine.max() <= values.max()


def test_smooth_vectors_hold_and_gust_along_a_line() -> None:
    """A wind that is the same at two keys stays, and one that gusts and drops stays between its keys: it blew
    backwards at 2.4 m/s before the gust, as a parabola through three keys does, and at 2.5 m/s after 1 s."""
    calm, gust, breeze = [0.0, 0.0, 0.1], [2.0, 0.0, 0.1], [0.2, 0.0, 0.1]
    wind = Keyed(keys=[(0.0, calm), (0.9, calm), (1.0, gust), (1.3, breeze)], between="smooth")
    held = value_at(wind, np.linspace(0.0, 0.9, 31))
    np.testing.assert_allclose(held, np.tile(calm, (31, 1)), rtol=1e-15)
    blown = value_at(wind, np.linspace(0.9, 1.3, 81))
    np.testing.assert_allclose(blown[:, 1:], np.tile(calm[1:], (81, 1)), rtol=1e-14)
    assert (np.diff(blown[:21, 0]) >= 0).all() and (np.diff(blown[20:, 0]) <= 0).all()
    assert blown[20, 0] == 2.0


@pytest.mark.parametrize("count", [4, 8, 9, 13])
def test_smooth_paths_bend_where_they_turn_round(count: int) -> None:
    """Hermite's cubic is off by h^4/384, slopes of parabolas by h^2/6, of which h/4 are felt: 1/24 h^3. They
    are not held, not even where they turn by right angles."""
    h = 2 * np.pi / count
    angle = h * np.arange(count + 3)
    keys = [(a, [math.cos(a), math.sin(a), 0.0]) for a in angle.tolist()]
    time = np.linspace(h, 2 * np.pi + h, 401)
    off = value_at(Keyed(keys=keys, between="smooth"), time) - np.stack(
        [np.cos(time), np.sin(time), 0 * time], axis=1
    )
    assert np.linalg.norm(off, axis=1).max() < h**3 / 24 + h**4 / 384


def test_smooth_rates_of_change_do_not_jump() -> None:
    """A second difference over a key goes with the step where slopes are smooth, and with 1 where linear."""
    keys = [
        (0.0, [0.0, 1.0, 0.0]),
        (1.0, [4.0, 1.0, -1.0]),
        (1.2, [4.5, 3.0, -4.0]),
        (3.0, [-1.0, 3.0, -4.5]),
    ]
    h = 1e-5
    for law, least, most in (("linear", 1.5, 20.0), ("smooth", 0.0, 5e-3)):
        keyed = Keyed(keys=keys, between=law)
        for key in (0.0, 1.0, 1.2, 3.0):
            before, here, after = value_at(keyed, key + h * np.arange(-1, 2))
            jump = np.abs(after - 2 * here + before).max() / h
            assert least <= jump <= most, (law, key)


def test_vectors_and_arrays_of_times() -> None:
    smooth = Keyed(keys=TURN.keys, between="smooth")
    np.testing.assert_array_equal(value_at(TURN, 0.5), [1.0, 1.0, 1.0])
    times = np.array([-1.0, 0.5, 1.0, 7.0])
    np.testing.assert_array_equal(value_at(TURN, times), [value_at(TURN, t) for t in times])
    np.testing.assert_array_equal(value_at(smooth, times), [value_at(smooth, t) for t in times])
    np.testing.assert_array_equal(value_at(STEPS, times), [value_at(STEPS, t) for t in times])
    np.testing.assert_array_equal(value_at(RAMP, times), [value_at(RAMP, t) for t in times])


def test_constants_and_single_keys() -> None:
    assert value_at(2.5, 7.0) == 2.5
    np.testing.assert_array_equal(value_at((1.0, 2.0, 3.0), 7.0), [1.0, 2.0, 3.0])
    for law in LAWS:
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


@pytest.mark.parametrize("law", LAWS)
def test_many_keys_are_gone_through_once(law: Between) -> None:
    """Once for their times and once for their values, whatever is asked; as exact as key by key."""
    draw = np.random.default_rng(3)
    keys = list(zip(np.cumsum(draw.uniform(0.1, 1, 500)), draw.normal(size=500), strict=True))
    many = validated(Keyed, {"keys": keys, "between": law}, "here")
    counted = vars(many)["keys"] = Counted(many.keys)
    for begin, end in ((-1.0, 900.0), (keys[7][0], keys[400][0]), (3.3, 3.4), (5.0, 5.0)):
        edges = [begin, *(time for time, _ in keys if begin < time < end), end]
        parts = [(b - a) * float(value_at(many, 0.5 * (a + b))) for a, b in pairwise(edges)]
        if law == "smooth":
            sides = [(b - a) * float(value_at(many, a) + value_at(many, b)) for a, b in pairwise(edges)]
            parts = [(4 * middle + side) / 6 for middle, side in zip(parts, sides, strict=True)]
            assert integral(many, begin, end) == pytest.approx(math.fsum(parts), rel=1e-13)
        else:
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
