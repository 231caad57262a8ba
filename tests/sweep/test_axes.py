"""What is varied: values from text, and names of members."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ecs_fluid.errors import RecipeError
from ecs_fluid.sweeps.axes import axis, axis_of_text, labels, name_of, product, setting
from ecs_fluid.worlds.overrides import override


def test_ranges_hold_the_numbers_one_would_type() -> None:
    """0.1 + 0.2 / 4 is 0.15000000000000002 in binary arithmetic; members are named after 0.15."""
    assert axis("ring.core", "0.1:0.3:5") == (0.1, 0.15, 0.2, 0.25, 0.3)
    assert axis("fluid.viscosity", "1e-5:1e-3:5:log") == (
        1e-5,
        3.16227766017e-05,
        1e-4,
        3.16227766017e-04,
        1e-3,
    )
    assert axis("smoke.per_cell", "1:27:3") == (1, 14, 27)
    assert all(isinstance(value, int) for value in axis("smoke.per_cell", "1:27:3"))
    assert axis("x", "1:2:3") == (1.0, 1.5, 2.0)


def test_lists_are_toml_values_or_text() -> None:
    path, values = axis_of_text("fluid.velocity.solver=direct,tree")
    assert (path, values) == ("fluid.velocity.solver", ("direct", "tree"))
    assert axis("ring.center", "[0,0,1],[0,0,2]") == ([0, 0, 1], [0, 0, 2])
    assert axis("a", "true, 1, 1.0, 'x,y'") == (True, 1, 1.0, "x,y")
    assert axis("a", '"a],b",c') == ("a],b", "c")
    assert axis("system.0.kind", "swirl:Swirl") == ("swirl:Swirl",)
    assert axis("a", np.linspace(0.0, 1.0, 3)) == (0.0, 0.5, 1.0)
    assert axis("a", 3) == (3,)


def test_values_are_not_compared_with_one_another() -> None:
    """As many comparisons as the square of 100,000 values took minutes; equal ones are found all the same."""

    class Counted(float):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return float(self) == other

        __hash__ = float.__hash__

    given = [Counted(value) for value in range(1000)]
    assert len(axis("a", given)) == 1000 and Counted.compared <= 1000
    assert axis("a", [1, 1.0, True, "1", [1], {"b": 1}]) == (1, 1.0, True, "1", [1], {"b": 1})
    for same in ([0.0, -0.0], [[1, 2], (1, 2)], [np.arange(2), np.arange(2)], [np.nan, -np.nan], ["x", "x"]):
        with pytest.raises(RecipeError, match="appears twice"):
            axis("a", same)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ring.core", "path=values is needed"),
        ("ring.core=", "path=values is needed"),
        ("ring.core=1,,2", "a value is empty"),
        ("ring.core=0.1,0.2,0.1", "0.1 appears twice"),
        ("ring.core=0.1:0.3", "first:last:count"),
        ("ring.core=0.1:0.3:1", "a count from 2"),
        ("ring.core=0.1:0.1:3", "two ends that differ"),
        ("ring.core=0:1:3:log", "ends above 0"),
        ("ring.core=1e-400:1:3:log", "ends of a range are 0 or from"),
        ("ring.core=1e400:2e400:3", "ends of a range are 0 or from"),
        ("ring.core=1e999999999999999999999:2:3", "ends of a range are 0 or from"),
        ("ring.core=0:1:" + "9" * 5000, "a count from 2 to"),
    ],
)
def test_mistakes_are_sentences(text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        axis_of_text(text)


def test_too_many_members_are_refused_before_they_are_made() -> None:
    with pytest.raises(RecipeError, match="1,000,000 members"):
        product({name: range(100) for name in "abc"})


def test_product_runs_through_the_last_axis_first() -> None:
    points = product({"a": (1, 2), "b": ("x", "y")})
    assert points == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]


def test_names_are_short_readable_and_depend_on_the_values_alone() -> None:
    short = labels(["fluid.viscosity", "ring.core", "ball.core"])
    assert short == {"fluid.viscosity": "viscosity", "ring.core": "ring.core", "ball.core": "ball.core"}
    assert labels(["ring.core", "core"])["ring.core"] == "ring.core"
    point = {"fluid.viscosity": 1e-5, "ring.core": 0.15}
    assert name_of(point, short) == "viscosity=1e-05_ring.core=0.15"
    assert name_of({"solver": "direct"}, {}) == "solver=direct"


def test_names_of_what_is_no_plain_word_stay_apart() -> None:
    """Both are written 0-0-1, so a hash of the settings tells them apart, and no name leaves its folder."""
    first, second = (name_of({"a": value}, {}) for value in ([0, 0, 1], "0/0/1"))
    assert first.startswith("a=0-0-1_") and second.startswith("a=0-0-1_") and first != second
    long = [name_of({"a": "x" * 300 + end}, {}) for end in "ab"]
    assert long[0] != long[1] and all(len(name) <= 120 for name in long)
    assert "/" not in name_of({"a": "../../etc"}, {})
    assert "/" not in name_of({"a/../b": 1}, {}) and name_of({"a/b": 1}, {}) != name_of({"a-b": 1}, {})
    for text, value in (("1", 1), ("true", True), ("null", None)):
        point = {"a": text}
        assert value is None or name_of(point, {}) != name_of({"a": value}, {})
        assert name_of(point, {}) != f"a={text}"


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    )
)
def test_a_setting_sets_exactly_its_value(value: object) -> None:
    """The text that sets a value, for `--set` too, is read back as the same value of the same type."""
    tables: dict[str, object] = {"a": {}}
    override(tables, setting("world.a", value))
    found = tables["world"]["a"]  # type: ignore[index]
    assert found == value and repr(found) == repr(value)
    assert tomllib.loads(setting("a", value)) == {"a": value}
