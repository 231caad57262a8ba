"""Formulas in world files: arithmetic over x, y, z and r, and nothing else.

A formula is parsed, never executed: only numbers, the four names of coordinates, a few constants, the
operators + - * / ** %, comparisons and the functions listed in FUNCTIONS are understood.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.validation_errors import nearest, shortened

LONGEST = 2000
DEEPEST = 60

CONSTANTS: dict[str, float] = {"pi": float(np.pi), "e": float(np.e)}

FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tan": (1, np.tan),
    "arcsin": (1, np.arcsin),
    "arccos": (1, np.arccos),
    "arctan": (1, np.arctan),
    "arctan2": (2, np.arctan2),
    "sinh": (1, np.sinh),
    "cosh": (1, np.cosh),
    "tanh": (1, np.tanh),
    "exp": (1, np.exp),
    "log": (1, np.log),
    "sqrt": (1, np.sqrt),
    "abs": (1, np.abs),
    "sign": (1, np.sign),
    "floor": (1, np.floor),
    "hypot": (2, np.hypot),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "where": (3, np.where),
}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.Mod: np.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: np.positive, ast.USub: np.negative}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


COORDINATES = ("x", "y", "z", "r")


def checked(text: str, names: Sequence[str] = COORDINATES) -> str:
    """Return `text` if it is a formula of `names`, else raise ValueError with one sentence."""
    if len(text) > LONGEST:
        raise ValueError(f"a formula of {len(text)} characters; at most {LONGEST} are allowed")
    try:
        with np.errstate(all="ignore"):
            _value(_parsed(text), dict.fromkeys(names, 0.0))
    except SyntaxError:
        raise ValueError(
            f"{shortened(text)!r} is not a formula; write for example '-0.5*y*exp(-r**2)'"
        ) from None
    except (RecursionError, MemoryError):
        raise ValueError(
            f"{shortened(text)!r} is nested too deeply; at most {DEEPEST} levels are allowed"
        ) from None
    return text


Formula = Annotated[str, Field(max_length=LONGEST), AfterValidator(checked)]
CurveFormula = Annotated[str, Field(max_length=LONGEST), AfterValidator(lambda text: checked(text, ("t",)))]


def _parsed(text: str) -> ast.expr:
    # Line breaks are spaces here, so that TOML's long strings can hold a formula.
    return ast.parse(" ".join(text.split()), mode="eval").body


def evaluate(text: str, points: Array, place: str) -> Array:
    """Value of a formula at `points` (..., 3) in m; shape (...). r is the distance from the origin.

    Raises:
        RecipeError: the formula is not allowed, or has no finite value at one of the points.
    """
    x, y, z = (points[..., axis] for axis in range(3))
    names = {"x": x, "y": y, "z": z, "r": np.sqrt(x**2 + y**2 + z**2)}
    return _finite(text, names, place, lambda at: f"({', '.join(f'{part:g}' for part in points[at])}) m")


def evaluate_along(text: str, t: Array, place: str) -> Array:
    """Value of a formula of `t` (n,); shape (n,). Errors as in `evaluate`."""
    return _finite(text, {"t": t}, place, lambda at: f"t = {t[at]:g}")


def _finite(text: str, names: dict[str, Array], place: str, spot: Callable[[tuple[int, ...]], str]) -> Array:
    try:
        checked(text, tuple(names))
    except ValueError as error:
        raise RecipeError(f"{place}: {error}") from None
    with np.errstate(all="ignore"):
        value = _value(_parsed(text), names)
    shape = next(iter(names.values())).shape
    out = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
    bad = ~np.isfinite(out)
    if bad.any():
        where = tuple(int(part) for part in np.argwhere(bad)[0])
        raise RecipeError(
            f"{place}: {shortened(text)!r} is {out[where]} at {spot(where)}; "
            "a finite number is needed everywhere"
        )
    return out


def _value(node: ast.expr, names: Mapping[str, Any], depth: int = DEEPEST) -> Any:
    """Value of a part of a formula of `names`; ValueError, in one sentence, for what is not allowed in it."""
    if depth == 0:
        raise RecursionError

    def value(part: ast.expr) -> Any:
        return _value(part, names, depth - 1)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if not abs(number) <= sys.float_info.max:
                raise ValueError(f"the number {shortened(str(number))} is too large")
            return np.float64(number)
        case ast.Name(id=name):
            if name in (known := {**CONSTANTS, **names}):
                return known[name]
            if name in FUNCTIONS:
                raise ValueError(f"{name!r} is a function; write {name}(...)")
            raise ValueError(f"unknown name {name!r}; {nearest(name, known)}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](value(left), value(right))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](value(operand))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARE:
            return np.where(_COMPARE[type(comparison)](value(left), value(right)), 1.0, 0.0)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise ValueError(f"unknown function {name!r}; {nearest(name, FUNCTIONS)}")
            count, function = FUNCTIONS[name]
            if len(arguments) != count:
                raise ValueError(f"{name} takes {count} arguments, but {len(arguments)} are given")
            values = [value(argument) for argument in arguments]
            if name == "where":
                values[0] = values[0] != 0
            return function(*values)
        case ast.BinOp(op=ast.BitXor()):
            raise ValueError("'^' is not allowed in a formula; write ** for powers")
    raise ValueError(
        f"{shortened(ast.unparse(node))!r} is not allowed in a formula; numbers, {', '.join(names)}, pi, e, "
        "+ - * / ** % < > and functions are"
    )
