"""Components: what they take, what they refuse and in which words."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.errors import ComponentError


class Charge(Component):
    """A component with every kind of column."""

    q: Array = column("C", minimum=-1.0, maximum=2.0)
    spin: Array = column("1", shape=(2, 2), default=0.5)
    count: Array = column("1", kind="int", default=3)


class Clock(Component, per_row=False):
    """One number for the whole entity."""

    t: Array = column("s")


class Marked(Component):
    """A tag."""


def refused(pattern: str) -> pytest.RaisesExc:
    return pytest.raises(ComponentError, match=pattern)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_precision_and_whole_numbers_become_float64(dtype: type) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    assert ef.Position(x).x.dtype == dtype
    assert ef.Position([[1, 2, 3]]).x.dtype == np.float64


def test_columns_are_contiguous_whatever_they_were_made_from() -> None:
    x = np.arange(12.0).reshape(3, 4).T[:, :3]
    table = ef.Position(np.asfortranarray(x))
    assert table.x.flags.c_contiguous
    np.testing.assert_array_equal(table.x, x)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((3,), r"Position.x has shape \(3,\); shape \(n, 3\) is needed"),
        ((4, 2), r"Position.x has shape \(4, 2\); shape \(n, 3\) is needed"),
        ((2, 3, 3), r"shape \(2, 3, 3\)"),
        ((), r"shape \(\)"),
    ],
)
def test_wrong_shape(shape: tuple[int, ...], words: str) -> None:
    with refused(words):
        ef.Position(np.zeros(shape))


def test_scalar_columns_say_their_shape_as_python_does() -> None:
    with refused(r"CoreRadius.sigma has shape \(2, 1\); shape \(n,\) is needed"):
        ef.CoreRadius(np.ones((2, 1)))


@pytest.mark.parametrize(
    "value", [["a"], [True], [1j], [None], np.zeros(1, np.float16), [np.datetime64("now")]]
)
def test_wrong_dtype(value: object) -> None:
    with refused(r"CoreRadius.sigma holds .* of dtype .*; float32, float64 or whole numbers are allowed"):
        ef.CoreRadius(value)


def test_ragged_lists() -> None:
    with refused("Position.x needs an array of numbers whose rows all have the same length"):
        ef.Position([[1.0, 2.0, 3.0], [1.0]])


def test_masked_values_are_not_taken_for_numbers() -> None:
    """NumPy gives what lies below the mask, often nonsense, without a word."""
    x = np.ma.array(np.zeros((2, 3)), mask=[[False] * 3, [True] * 3])
    world = ef.World()
    world.spawn("a", ef.Position(np.zeros((2, 3))))
    with refused("Position.x has masked values; fill them, or leave out their rows"):
        ef.Position(x)
    with refused("Position.x has masked values"):
        world["a"][ef.Position].x = x
    with refused("points has masked values"):
        world.velocity(x)
    assert ef.Position(np.ma.array(np.ones((2, 3)))).x.sum() == 6


def test_whole_number_columns_refuse_fractions() -> None:
    with refused("Charge.count holds .* of dtype float64; whole numbers are allowed"):
        Charge([1.0], count=[1.5])
    assert Charge([1.0], count=np.array([7], np.uint8)).count.dtype == np.int64


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_names_the_first_bad_row(value: float) -> None:
    x = np.zeros((5, 3))
    x[3, 1] = value
    x[4, 0] = value
    with refused(r"Position.x row 3 is -?(nan|inf); finite numbers are allowed"):
        ef.Position(x)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.0, -1.5], "Charge.q row 1 is -1.5; values of at least -1 C are allowed"),
        ([2.0, 2.5], "Charge.q row 1 is 2.5; values of at most 2 C are allowed"),
    ],
)
def test_range(values: list[float], words: str) -> None:
    with refused(re.escape(words)):
        Charge(values)


def test_ends_of_the_range() -> None:
    assert Charge([-1.0, 2.0]).rows == 2
    with refused("CoreRadius.sigma row 0 is 0.0; values above 0 m are allowed"):
        ef.CoreRadius([0.0])
    assert ef.CoreRadius([5e-324]).rows == 1


def test_systems_may_put_less_than_may_be_given() -> None:
    """An age is below 0 from the start of a tick to the moment of birth; nobody can give one."""
    with refused("Age.t row 1 is -0.5; values of at least 0 s are allowed"):
        ef.Age([0.0, -0.5])
    world = ef.World()
    world.spawn("smoke", ef.Position(np.zeros((1, 3))), ef.Age)
    world["smoke"].spawn(ef.Position(np.zeros((1, 3))), ef.Age.unchecked(t=np.array([-0.5])))
    assert world["smoke"][ef.Age].t.tolist() == [0.0, -0.5]


def test_too_many_twice_missing_unknown() -> None:
    with refused("Position was given 2 arrays, but it has the columns x"):
        ef.Position(np.zeros((1, 3)), np.zeros((1, 3)))
    with refused("Position.x was given twice"):
        ef.Position(np.zeros((1, 3)), x=np.zeros((1, 3)))
    with refused("Position.x is missing; its unit is m"):
        ef.Position()
    with refused("Position has no column 'y'; it has x"):
        ef.Position(y=np.zeros((1, 3)))


def test_columns_of_different_length() -> None:
    with refused(r"Charge.count has 3 rows, but this Charge has 2"):
        Charge([0.0, 1.0], count=[1, 2, 3])


def test_defaults_fill_columns_before_and_after_the_given_one() -> None:
    smoke = np.array([0.25, 0.5], np.float32)
    species = ef.Species(smoke=smoke)
    np.testing.assert_array_equal(species.fuel, [0.0, 0.0])
    np.testing.assert_array_equal(species.flame, [0.0, 0.0])
    assert species.fuel.dtype == np.float32
    charge = Charge([0.0, 1.0])
    assert charge.spin.shape == (2, 2, 2)
    assert (charge.spin == 0.5).all()
    np.testing.assert_array_equal(charge.count, [3, 3])


def test_columns_without_rows_need_one_given_column() -> None:
    with refused("Age.t is missing"):
        ef.Age()


def test_blank_holds_defaults_or_zeros() -> None:
    table = Charge.blank(4, np.float32)
    assert (table.spin == 0.5).all()
    assert table.spin.dtype == np.float32
    np.testing.assert_array_equal(table.count, [3, 3, 3, 3])
    np.testing.assert_array_equal(table.q, np.zeros(4))


def test_assigning_keeps_length_precision_and_independence() -> None:
    a, b = ef.Position(np.zeros((2, 3), np.float32)), ef.Position(np.ones((2, 3)))
    a.x = b.x
    assert a.x.dtype == np.float32
    b.x[0] = 7.0
    np.testing.assert_array_equal(a.x, np.ones((2, 3)))
    with refused("Position.x has 3 rows, but this Position has 2; add rows by spawn"):
        a.x = np.zeros((3, 3))
    with refused(r"shape \(2, 2\)"):
        a.x = np.zeros((2, 2))


def test_one_number_for_an_entity_keeps_its_shape() -> None:
    clock = Clock(3.0)
    assert clock.t.shape == ()
    with refused(r"Clock.t has shape \(1,\); shape \(\) is needed"):
        Clock([3.0])
    with refused("Clock.t is nan"):
        Clock(np.nan)


def test_world_names_entity_component_and_row() -> None:
    world = ef.World()
    position = ef.Position(np.zeros((4, 3)))
    position.x[2, 0] = np.nan
    with refused("entity 'smoke': Position.x row 2 is nan; finite numbers are allowed"):
        world.spawn("smoke", position)
    with refused("entity 'smoke': CoreRadius has 3 rows, but Position has 4"):
        world.spawn("smoke", ef.Position(np.zeros((4, 3))), ef.CoreRadius(np.ones(3)))
    assert "smoke" not in world


def test_values_that_single_precision_cannot_hold() -> None:
    world = ef.World(precision="single")
    with refused(r"entity 'a': Position.x row 0 is inf.*precision = 'double'"):
        world.spawn("a", ef.Position([[1e39, 0.0, 0.0]]))
    with refused(r"entity 'a': CoreRadius.sigma row 1 is 0.0; values above 0 m .*precision = 'double'"):
        world.spawn("a", ef.CoreRadius([1.0, 1e-60]))
    double = ef.World(precision="double")
    entity = double.spawn("a", ef.Position([[1e39, 0.0, 0.0]]))
    assert entity[ef.Position].x[0, 0] == 1e39


def test_world_copies_and_casts_what_it_is_given() -> None:
    x = np.full((2, 3), 0.1)
    world = ef.World(precision="single")
    entity = world.spawn("a", ef.Position(x), ef.Age)
    x[:] = 5.0
    assert entity[ef.Position].x.dtype == np.float32
    assert (entity[ef.Position].x == np.float32(0.1)).all()
    assert entity[ef.Age].t.shape == (2,)


def test_two_components_of_one_name_in_two_modules() -> None:
    with refused(r"two components are called Position \(in ecs_fluid.components.particles and "):
        type("Position", (Component,), {"__module__": "elsewhere"}, per_row=False)
    # The refused class must not have changed the one there is.
    assert ef.Position(np.zeros((2, 3))).rows == 2
    assert Component.registry["Position"] is ef.Position


def test_components_with_columns_are_not_inherited_from() -> None:
    with refused("HotPosition derives from Position, which has columns"):
        type("HotPosition", (ef.Position,), {})


def test_rate_must_match_its_state() -> None:
    with refused(
        "WrongRate is the rate of Position, so it needs the same number of columns, of the same shapes"
    ):

        class WrongRate(Component, rate_of=ef.Position):
            u: Array = column("m/s")

    with refused("RateOfRate cannot be the rate of Velocity; only a state component"):

        class RateOfRate(Component, rate_of=ef.Velocity):
            a: Array = column("m/s^2", shape=(3,))

    with refused("CountRate cannot be the rate of Charge"):

        class CountRate(Component, rate_of=Charge):
            q: Array = column("C/s")
            spin: Array = column("1/s", shape=(2, 2))
            count: Array = column("1/s", kind="int")


def test_a_unit_of_one_is_left_out() -> None:
    with refused("Species.fuel row 0 is -1.0; values of at least 0 are allowed"):
        ef.Species(fuel=[-1.0])
    with refused("values above 0 K are allowed"):
        ef.Temperature([-3.0])
    with refused("of dtype float64; whole numbers are allowed"):
        Charge(q=[1.0], spin=np.zeros((1, 2, 2)), count=[0.5])


def test_a_tag_does_not_hide_the_rows_of_its_entity() -> None:
    world = ef.World()
    entity = world.spawn("a", Marked(), ef.Position(np.zeros((5, 3))))
    other = world.spawn("b", ef.Position(np.zeros((2, 3))), Marked)
    world.spawn("c", ef.Position(np.zeros((1, 3))))
    assert (len(entity), len(other)) == (5, 2)
    assert [len(table) for table, _ in ((p.x, m) for p, m in world.query(ef.Position, Marked))] == [5, 2]


def test_pickle_and_copy_keep_every_bit() -> None:
    table = Charge(np.array([0.1, 0.2]))
    for other in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table), table.copy()):
        for (field, ours), (_, theirs) in zip(table.items(), other.items(), strict=True):
            assert ours.tobytes() == theirs.tobytes(), field.label
        other.q[0] = 9.0
        assert table.q[0] == 0.1
