"""Axes of a sweep: values from text such as ``1e-5,1e-4`` or ``0.1:0.3:5``, and names of members."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, DecimalException
from typing import Any

import numpy as np

from ecs_fluid.errors import RecipeError
from ecs_fluid.worlds.overrides import value_of

Point = dict[str, Any]
"""What a member sets: values by path, for example ``{"ring.core": 0.2, "world.seed": 1}``."""

MOST_MEMBERS = 100_000
LONGEST_NAME = 120
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER}):({_NUMBER}):(\d+)(:log)?\s*")
_LIKE_A_RANGE = re.compile(rf"\s*{_NUMBER}(?::[^:]*)+\s*")
_PLAIN = re.compile(r"[A-Za-z0-9.+-]+")
_LABEL = re.compile(r"[A-Za-z0-9._-]+")


def axis(path: str, given: Any) -> tuple[Any, ...]:
    """The values of one axis.

    Args:
        path: what is varied, for messages.
        given: text, or values (a sequence or an array; anything else is one value). Text is a list
            ``a,b,c`` of TOML values (what is no TOML is text), or a range ``first:last:count`` with both
            ends included, evenly spaced, with ``:log`` at its end by equal factors.

    Raises:
        RecipeError: no value, an empty one, a bad range, or one value twice.
    """
    if isinstance(given, str):
        values = _range(path, given) or tuple(_value(path, text) for text in _split(given))
    elif isinstance(given, np.ndarray | np.generic):
        values = tuple(np.atleast_1d(given).tolist())
    elif isinstance(given, Mapping) or not isinstance(given, Iterable):
        values = (given,)
    else:
        values = tuple(item.item() if isinstance(item, np.generic) else item for item in given)
    if not values:
        raise RecipeError(f"vary {path}: at least one value is needed")
    written = set[str]()
    for value in values:
        text = _toml(path, 0.0 if isinstance(value, float) and value == 0 else value)  # -0.0 is 0.0
        if text in written:
            raise RecipeError(f"vary {path}: {value!r} appears twice; give each value once")
        written.add(text)
    return values


def axis_of_text(text: str) -> tuple[str, tuple[Any, ...]]:
    """Path and values of ``path=values``, as the command line takes it."""
    path, sign, values = text.partition("=")
    if not sign or not path.strip() or not values.strip():
        raise RecipeError(
            f"vary {text!r}: path=values is needed, for example fluid.viscosity=1e-5,1e-4 or "
            "ring.core=0.1:0.3:5"
        )
    return path.strip(), axis(path.strip(), values)


def product(axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every combination of the values, the last axis fastest."""
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_MEMBERS:
        raise RecipeError(f"the sweep would have {count:,} members; at most {MOST_MEMBERS:,} are allowed")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def setting(path: str, value: Any) -> str:
    """The override ``path=value`` that sets exactly this value in a world file and after ``--set``."""
    return f"{path}={_toml(path, value)}"


def labels(paths: Iterable[str]) -> dict[str, str]:
    """The shortest end of every path that no other path ends with: ``core`` for ``ring.core``."""
    paths = list(paths)
    found = {}
    for path in paths:
        words = path.split(".")
        for count in range(1, len(words) + 1):
            end = ".".join(words[-count:])
            if sum(other == end or other.endswith("." + end) for other in paths) == 1:
                break
        found[path] = end
    return found


def name_of(point: Point, short: Mapping[str, str]) -> str:
    """Name of the member at `point`, a folder name: ``viscosity=1e-05_core=0.15_seed=2``.

    It depends on the values alone, so it stays when members are added or removed. Where values are not plain
    words, or texts that look like numbers, and in long names, a hash of all settings tells members apart.
    """
    exact = True
    parts = []
    for path, value in point.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        label, plain = short.get(path, path), "-".join(_PLAIN.findall(text))
        word = "-".join(_LABEL.findall(label))
        exact &= plain == text and word == label and not (isinstance(value, str) and _reads_as_other(value))
        parts.append(f"{word}={plain}")
    name = "_".join(parts) or "base"
    if exact and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.blake2b(digest_size=4)
    for path, value in point.items():
        digest.update(setting(path, value).encode() + b"\n")
    return f"{name[: LONGEST_NAME - 9]}_{digest.hexdigest()}"


def _reads_as_other(text: str) -> bool:
    """Whether a text looks like a number, true, false or null, whose member needs a different name."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _range(path: str, text: str) -> tuple[float, ...] | tuple[int, ...]:
    """Values of a range, in decimal arithmetic so that 0.1:0.3:5 holds 0.15 itself; empty for other text."""
    match = _RANGE.fullmatch(text)
    if match is None and not _LIKE_A_RANGE.fullmatch(text):
        return ()
    wrong = RecipeError(
        f"vary {path}={text.strip()[:80]}: a range is first:last:count or first:last:count:log, with two "
        f"ends that differ and a count from 2 to {MOST_MEMBERS:,}; ends of a range are 0 or from 1e-323 "
        "to 1e308, and :log needs ends above 0"
    )
    if match is None:
        raise wrong
    try:
        first, last, count = Decimal(match[1]), Decimal(match[2]), int(match[3])
    except (DecimalException, ValueError):  # more digits than any number has
        raise wrong from None
    held = all(math.isfinite(float(end)) and bool(float(end)) == bool(end) for end in (first, last))
    positive = not match[4] or min(first, last) > 0
    if not held or not positive or not 2 <= count <= MOST_MEMBERS or first == last:
        raise wrong
    if match[4]:
        logs = np.linspace(math.log10(first), math.log10(last), count)[1:-1]
        between = [float(f"{10.0**value:.12g}") for value in logs]
        return (float(first), *between, float(last))
    values = [first + (last - first) * i / (count - 1) for i in range(count)]
    whole = all(value == value.to_integral_value() for value in values)
    if whole and not any(sign in match[1] + match[2] for sign in ".eE"):
        return tuple(int(value) for value in values)
    return tuple(float(value) for value in values)


def _split(text: str) -> Iterator[str]:
    """Parts between commas that stand outside of brackets and quotes."""
    pieces: list[str] = []
    for piece in text.split(","):
        pieces.append(piece)
        part = ",".join(pieces)
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", part)
        closed = len(re.findall(r"[\[{]", bare)) <= len(re.findall(r"[\]}]", bare))
        if closed and not re.search("[\"']", bare):
            yield part
            pieces = []
    if pieces:
        yield ",".join(pieces)


def _value(path: str, text: str) -> Any:
    """A TOML value, or the text itself."""
    if not text.strip():
        raise RecipeError(f"vary {path}: a value is empty; write a,b,c or a range first:last:count")
    return value_of(text)


def _toml(path: str, value: Any) -> str:
    """The TOML text of a value on one line."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(path, item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)} = {_toml(path, item)}" for key, item in value.items()) + "}"
    raise RecipeError(f"{path} = {value!r}; only numbers, text, lists and tables can be varied")


def _quoted(text: str) -> str:
    """A basic string of TOML: as in JSON, but letters beyond 16 bits must not be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
