"""Formulas: right values, and nothing but arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ecs_fluid.errors import RecipeError
from ecs_fluid.worlds.formula import checked, evaluate

POINT = np.array([[0.3, -0.7, 1.1]])
X, Y, Z = POINT[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("-x + 2*y - z/4", -X + 2 * Y - Z / 4),
        ("r", np.sqrt(X**2 + Y**2 + Z**2)),
        ("2**3**2", 512.0),
        ("7 % 4", 3.0),
        ("sin(pi*x)*exp(-r**2)", np.sin(np.pi * X) * np.exp(-(X**2 + Y**2 + Z**2))),
        ("where(x < 0.5, 1, 2) + where(y >= 0, 10, 20)", 21.0),
        ("min(x, y) + max(x, y)", X + Y),
        ("arctan2(y, x) + hypot(x, y)", np.arctan2(Y, X) + np.hypot(X, Y)),
        ("abs(y)*sign(y) + floor(z) + log(e)", Y + 2.0),
        ("x +\n y", X + Y),
        ("10**400", None),
    ],
)
def test_values(text: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(RecipeError, match="finite"):
            evaluate(text, POINT, "ux")
    else:
        assert evaluate(text, POINT, "ux")[0] == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('true')", "not allowed"),
        ("x.__class__", "not allowed"),
        ("().__class__.__bases__", "not allowed"),
        ("[x for x in (1,2)]", "not allowed"),
        ("lambda: 1", "not allowed"),
        ("x if y else z", "not allowed"),
        ("x and y", "not allowed"),
        ("'text'", "not allowed"),
        ("1j", "not allowed"),
        ("True", "not allowed"),
        ("x[0]", "not allowed"),
        ("sin(x=1)", "not allowed"),
        ("0 < x < 1", "not allowed"),
        ("(y := 3)", "not allowed"),
        ("x^2", r"write \*\* for powers"),
        ("open(x)", "unknown function 'open'"),
        ("sine(x)", "did you mean 'sin'"),
        ("sin", r"write sin\(...\)"),
        ("sin(x, y)", "takes 1 argument"),
        ("w + 1", "unknown name 'w'"),
        ("x +", "is not a formula"),
        ("", "is not a formula"),
        ("x) + (y", "is not a formula|not allowed"),
        ("1" + "0" * 400, "too large"),
        ("(" * 300 + "x" + ")" * 300, "not a formula|nested"),
        ("-" * 500 + "x", "nested"),
        ("x" + "+x" * 1200, "characters"),
    ],
)
def test_everything_else_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        checked(text)
    assert "\n" not in str(caught.value)


def test_singular_formula_names_the_place() -> None:
    points = np.array([[1.0, 0, 0], [0.0, 0, 0]])
    with pytest.raises(RecipeError, match=r"'1/x' is inf at \(0, 0, 0\) m"):
        evaluate("1/x", points, "ux")


@given(st.text(alphabet="xyzr0123456789+-*/%().,<> sincopexw^[]_'\"", max_size=40))
def test_any_text_gives_numbers_or_a_sentence(text: str) -> None:
    try:
        value = evaluate(text, POINT, "ux")
    except RecipeError as error:
        assert str(error).startswith("ux: ") and "\n" not in str(error)
    else:
        assert value.shape == (1,) and np.isfinite(value).all()
