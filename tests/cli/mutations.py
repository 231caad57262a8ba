"""What goes wrong in files: changes of tables, text, arrays and archives, drawn at random."""

from __future__ import annotations

import codecs
import copy
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

HOSTILE: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 1e-320, 1e308, -1e308, float("nan"), float("inf"),
    float("-inf"), 0.1, -0.0, True, False, "", " ", "rong", "direct", "ring", "x" * 5000, "\u202e\u0000",
    "\U0001f300", "../../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "os:system",
    "builtins:exec", "__import__('os')", "${HOME}", "%s%n", [], [[]], [0], [0, 0, 0], [1e300] * 3,
    [float("nan")] * 3, ["a", "b", "c"], [[0, 1], [0, 2]], [0] * 10_000, {}, {"keys": []},
    {"keys": [[0, 1]]}, {"keys": [[1, [0, 0, 1]], [0, 0]]}, {"a": {"b": {"c": 1}}},
)  # fmt: skip
"""Values that people, broken programs and attackers put in the place of others."""


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


PIECES = (
    *b"[ ] \x00 \xff\xfe \" = # nan - , < </ [[entity]] \\".split(), b"\n",
    b"[" * 5000, b"<a>" * 5000, b"1" * 5000, b"x," * 5000, b"\n" * 5000,
)  # fmt: skip


def _insert(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(PIECES) + data[at:]


TEXTUAL: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _flip, _cut, _lines, _insert)


def number(draw: random.Random, data: bytes) -> bytes:
    """A number of a text replaced, one near the start as often as any other: headers say how many come."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", data))
    if not found:
        return data
    place = draw.choice(found[:20] if draw.random() < 0.5 else found)
    return data[: place.start()] + draw.choice(NUMBERS) + data[place.end() :]


NUMBERS = (
    *b"0 -1 1 3 7 1000 65536 2147483648 4294967295 99999999999 9223372036854775807 1e308".split(),
    *b"-1e308 1e-320 nan inf x 1,5".split(), b"", b"1" * 400,
)  # fmt: skip


def word(draw: random.Random, data: bytes) -> bytes:
    """A word replaced by another of the same file, or by one of `WORDS`."""
    found = list(re.finditer(rb"[A-Za-z_]\w+", data))
    if not found:
        return data
    place, other = draw.choice(found), draw.choice(found)[0]
    return data[: place.start()] + draw.choice((other, other, *WORDS)) + data[place.end() :]


WORDS = (
    *b"Float64 Int8 UInt64 UInt32 String ascii binary appended raw base64 BigEndian".split(),
    *b"vtkLZ4DataCompressor PolyData UnstructuredGrid ImageData STRUCTURED_POINTS".split(),
    *b"RECTILINEAR_GRID POLYDATA double v char binary_big_endian solid sigma alpha Position.x".split(),
    b"list uchar int", b"", b"x" * 5000,
)  # fmt: skip


def repeat(draw: random.Random, data: bytes) -> bytes:
    """Some lines, or all of them, a few or a thousand times."""
    lines = data.splitlines(keepends=True)
    first, last = sorted(draw.randrange(len(lines) + 1) for _ in range(2))
    block = b"".join(lines[first:last])
    times = min(draw.choice((2, 3, 1000)), 2**24 // max(len(block), 1))
    return b"".join([*lines[:first], block * times, *lines[last:]])


def field(draw: random.Random, data: bytes) -> bytes:
    """A whole number of a binary file, where headers, counts and offsets stand: at its start or its end."""
    size, near = draw.choice((1, 2, 4, 8)), draw.choice((32, 128, len(data)))
    at = draw.randrange(min(near, len(data)) + 1)
    at = max(len(data) - at, 0) if draw.random() < 0.4 else at
    value = draw.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**40, 2**62, 2**63, -1)) % 2 ** (8 * size)
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def encoding(draw: random.Random, data: bytes) -> bytes:
    """The same text in another encoding, or with other ends of lines."""
    text = data.decode("latin-1")
    match draw.randrange(5):
        case 0:
            return text.encode("utf-16")
        case 1:
            return text.encode("utf-32-be")
        case 2:
            return codecs.BOM_UTF8 + data
        case 3:
            return data.replace(b"\n", b"\r")
    return data.replace(b"\n", b"\r\n")


FORMATTED: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    number, number, number, word, word, repeat, field, field, encoding, *TEXTUAL,
)  # fmt: skip
"""Changes of data files of any format."""


def other(draw: random.Random, array: np.ndarray) -> np.ndarray:
    """An array with other numbers, shape or dtype."""
    if array.dtype.kind not in "biufc":
        return np.zeros(3)
    with np.errstate(all="ignore"):
        match draw.randrange(6):
            case 0:
                return array.astype(draw.choice(("f4", "f8", ">f8", "i8", "u1", "?", "c16", "S3", "f2")))
            case 1:
                return array[: draw.randrange(len(array) + 1)] if array.ndim else array
            case 2:
                return array.reshape(draw.choice(((-1,), (1, *array.shape), (*array.shape, 1))))
            case 3:
                made = array.copy()
                if made.size:
                    value = draw.choice((0, -1, 1e30, -1e30, 127) if made.dtype.kind == "f" else (0, -1, 127))
                    made.ravel()[draw.randrange(made.size)] = value
                return made
            case 4:
                made = array.copy()
                if made.size and made.dtype.kind == "f":
                    made.ravel()[draw.randrange(made.size)] = draw.choice((np.nan, np.inf, -np.inf))
                return made
        return (array * draw.choice((1e-6, -1, 100, 1e20))).astype(array.dtype)


def forged_array(draw: random.Random) -> bytes:
    """An .npy that claims what it does not hold, or 20 MB that pack well."""
    shape = draw.choice(((3,), (10**12,), (-1, -1), (2**62, 4), (True,), (0, 10**30)))
    descr = draw.choice(("'<f4'", "'|O'", "'|V0'", "'|S0'", "[('a', '<f4')]", "'<M8[s]'"))
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    payload = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 12
    return payload if draw.random() < 0.7 else b"\0" * 20_000_000
