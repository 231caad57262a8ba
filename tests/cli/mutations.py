"""World files that went wrong: random mutations of the shipped ones, reproducible by a number."""

from __future__ import annotations

import copy
import random
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import tomli_w

from ecs_fluid.worlds.world_recipe import shipped

HOSTILE: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 1e-320, 1e308, -1e308, float("nan"), float("inf"),
    float("-inf"), 0.1, -0.0, True, False, "", " ", "rong", "direct", "ring", "x" * 5000, "\u202e\u0000",
    "\U0001f300", "../../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "os:system",
    "builtins:exec", "__import__('os')", "${HOME}", "%s%n", [], [[]], [0], [0, 0, 0], [1e300] * 3,
    [float("nan")] * 3, ["a", "b", "c"], [[0, 1], [0, 2]], [0] * 10_000, {}, {"keys": []},
    {"keys": [[0, 1]]}, {"keys": [[1, [0, 0, 1]], [0, 0]]}, {"a": {"b": {"c": 1}}},
)  # fmt: skip
"""Values that people, broken programs and attackers put in the place of others."""


def texts() -> list[str]:
    """The shipped world files."""
    return [path.read_text(encoding="utf-8") for path in shipped().values()]


def mutated(number: int, sources: list[str]) -> bytes:
    """World file number so and so: one to four changes to one of the `sources`."""
    draw = random.Random(number)
    text = draw.choice(sources)
    if draw.random() < 0.65:
        tables = tomllib.loads(text)
        for _ in range(draw.choice((1, 1, 2, 4))):
            draw.choice(STRUCTURAL)(draw, tables, sources)
        return tomli_w.dumps(tables).encode()
    data = text.encode()
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = draw.choice(TEXTUAL)(draw, data)
    return data


def _places(table: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything in a tree of tables and lists."""
    keys = list(table) if isinstance(table, dict) else range(len(table)) if isinstance(table, list) else ()
    for key in keys:
        yield table, key
        yield from _places(table[key])


def _replace(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    places = list(_places(tables))
    if places:
        container, key = draw.choice(places)
        container[key] = copy.deepcopy(draw.choice(HOSTILE))


def _scale(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    numbers = [(c, k) for c, k in _places(tables) if type(c[k]) in (int, float)]
    if numbers:
        container, key = draw.choice(numbers)
        container[key] = container[key] * draw.choice((-1, 1e-6, 0.1, 3, 100, 1e6, 1e12, 1e40))


def _drop(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    places = list(_places(tables))
    if places:
        container, key = draw.choice(places)
        del container[key]


def _rename(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    places = [(c, k) for c, k in _places(tables) if isinstance(c, dict)]
    if places:
        container, key = draw.choice(places)
        at = draw.randrange(len(key) + 1)
        container[key[:at] + draw.choice("aeiou_-. \u00e9") + key[at + 1 :]] = container.pop(key)


def _graft(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    """Something of another world in a place of this one."""
    other, here = tomllib.loads(draw.choice(sources)), list(_places(tables))
    there = list(_places(other))
    if here and there:
        (container, key), (donor, name) = draw.choice(here), draw.choice(there)
        container[key] = donor[name]


def _twice(draw: random.Random, tables: dict[str, Any], sources: list[str]) -> None:
    lists = [c[k] for c, k in _places(tables) if isinstance(c[k], list) and c[k]]
    if lists:
        chosen = draw.choice(lists)
        chosen.extend(copy.deepcopy([draw.choice(chosen)] * draw.choice((1, 1, 50))))


STRUCTURAL: tuple[Callable[[random.Random, dict[str, Any], list[str]], None], ...] = (
    _replace, _replace, _replace, _scale, _scale, _drop, _rename, _graft, _twice,
)  # fmt: skip


def _flip(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _cut(draw: random.Random, data: bytes) -> bytes:
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:] if draw.random() < 0.5 else data[:first]


def _lines(draw: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a] if draw.random() < 0.5 else lines[b]
    return b"".join(lines)


def _insert(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    piece = draw.choice(
        (
            b"[",
            b"]",
            b'"',
            b"\n",
            b"=",
            b"#",
            b"\x00",
            b"\xff\xfe",
            b"[[entity]]\n",
            b"nan",
            b"-",
            b"[" * 5000,
        )
    )
    return data[:at] + piece + data[at:]


TEXTUAL: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _flip, _cut, _lines, _insert)
