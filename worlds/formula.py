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
from ecs_fluid.validation_errors import nearest

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
        _check(_parsed(text), DEEPEST, names)
    except SyntaxError:
        raise ValueError(
            f"{_short(text)!r} is not a formula; write for example '-0.5*y*exp(-r**2)'"
        ) from None
    except (RecursionError, MemoryError):
        raise ValueError(
            f"{_short(text)!r} is nested too deeply; at most {DEEPEST} levels are allowed"
        ) from None
    return text


Formula = Annotated[str, Field(max_length=LONGEST), AfterValidator(checked)]
CurveFormula = Annotated[str, Field(max_length=LONGEST), AfterValidator(lambda text: checked(text, ("t",)))]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _parsed(text: str) -> ast.expr:
    # Line breaks are spaces here, so that TOML's long strings can hold a formula.
    return ast.parse(" ".join(text.split()), mode="eval").body


def _check(node: ast.expr, depth: int, names: Sequence[str]) -> None:
    if depth == 0:
        raise RecursionError
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if not abs(value) <= sys.float_info.max:
                raise ValueError(f"the number {_short(str(value))} is too large")
        case ast.Name(id=name):
            if name not in (known := [*names, *CONSTANTS]):
                if name in FUNCTIONS:
                    raise ValueError(f"{name!r} is a function; write {name}(...)")
                raise ValueError(f"unknown name {name!r}; {nearest(name, known)}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left, depth - 1, names)
            _check(right, depth - 1, names)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            _check(operand, depth - 1, names)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARE:
            _check(left, depth - 1, names)
            _check(right, depth - 1, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise ValueError(f"unknown function {name!r}; {nearest(name, FUNCTIONS)}")
            if len(arguments) != FUNCTIONS[name][0]:
                raise ValueError(
                    f"{name} takes {FUNCTIONS[name][0]} arguments, but {len(arguments)} are given"
                )
            for argument in arguments:
                _check(argument, depth - 1, names)
        case ast.BinOp(op=ast.BitXor()):
            raise ValueError("'^' is not allowed in a formula; write ** for powers")
        case _:
            raise ValueError(
                f"{_short(ast.unparse(node))!r} is not allowed in a formula; numbers, "
                f"{', '.join(names)}, pi, e, + - * / ** % < > and functions are"
            )


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
        value = _value(_parsed(text), CONSTANTS | names)
    shape = next(iter(names.values())).shape
    out = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
    bad = ~np.isfinite(out)
    if bad.any():
        where = tuple(int(part) for part in np.argwhere(bad)[0])
        raise RecipeError(
            f"{place}: {_short(text)!r} is {out[where]} at {spot(where)}; "
            "a finite number is needed everywhere"
        )
    return out


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float):
            return np.float64(value)
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=sign, operand=operand):
            return _UNARY[type(sign)](_value(operand, names))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            smaller = _COMPARE[type(comparison)](_value(left, names), _value(right, names))
            return np.where(smaller, 1.0, 0.0)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_value(argument, names) for argument in arguments]
            if name == "where":
                values[0] = values[0] != 0
            return FUNCTIONS[name][1](*values)
    raise RecipeError(f"{ast.unparse(node)!r} is not allowed in a formula")
