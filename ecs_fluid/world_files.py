"""World files as tables of plain data, TOML or JSON, that a stranger may have written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from ecs_fluid.errors import LimitError, RecipeError, StorageError
from ecs_fluid.input_limits import check_limit
from ecs_fluid.io.untrusted import read_bytes
from ecs_fluid.validation_errors import COLOR, shown

LookName = Literal["smoke", "paper", "dye", "temperature", "fire", "vorticity", "liquid"]
"""Looks of pictures, by the names that a world file uses."""

_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART})++")
"""A key of several parts, anywhere in a TOML file; no quantifier backtracks, so any text is read once."""


def read_tables(path: Path) -> dict[str, Any]:
    """Tables of a world file, TOML or (by its ending) JSON, within the `limits`."""
    try:
        text = read_bytes(path, "read world file").decode().removeprefix("\ufeff")
    except StorageError as error:
        raise RecipeError(str(error)) from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path}: cannot be read: it is not UTF-8 text") from None
    return tables_in(text, str(path), "JSON" if path.suffix == ".json" else "TOML")


def tables_in(text: str, place: str, language: Literal["TOML", "JSON"] = "TOML") -> dict[str, Any]:
    """Tables of a text that a stranger may have written, within the `limits`."""
    if language == "TOML":
        # The decoder takes memory and time that grow with the square of the parts.
        parts = max((found[0].count(".") + 1 for found in _DOTTED.finditer(text)), default=1)
        check_limit("nesting", parts, f"{place}: a key has {parts:,} dotted parts")
    try:
        tables = tomllib.loads(text) if language == "TOML" else json.loads(text, object_pairs_hook=_table)
    except RecursionError:
        raise LimitError(f"{place}: its tables or lists are nested too deeply") from None
    except ValueError as error:
        # Whole numbers of thousands of digits raise it too.
        raise RecipeError(f"{place}: not valid {language}: {_plain_message(str(error))}") from None
    if not isinstance(tables, dict):
        raise RecipeError(f"{place}: a table of tables is needed, not {type(tables).__name__}")
    _check_tables(tables, place)
    return tables


def _plain_message(message: str) -> str:
    """The message of Python's TOML decoder, with plain words where it says that something stands twice."""
    message = message.replace("Cannot overwrite a value", "a key appears twice")
    match = re.search(r"Cannot declare \((.*?),?\) twice", message)
    if match is None:
        return message
    table = match[1].replace("'", "").replace(", ", ".")
    return message.replace(match[0], f"the table [{table}] appears twice")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON, each key once: of two equal keys the json module would silently keep the last."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key {shown(key)} appears twice in a table")
        table[key] = value
    return table


def _check_tables(tables: dict[str, Any], place: str) -> None:
    """Raise LimitError where tables of strangers are nested too deeply, or have too long keys."""
    level: list[Iterable[Any]] = [tables.values()]
    depth = 0
    while level:
        depth += 1
        check_limit("nesting", depth, f"{place}: {depth} levels of tables or lists are nested")
        inner = [part for values in level for part in values if isinstance(part, dict | list)]
        for key in (key for part in (tables, *inner) if isinstance(part, dict) for key in part):
            check_limit("key", len(key), f"{place}: the key {shown(key)} has {len(key):,} characters")
        level = [part.values() if isinstance(part, dict) else part for part in inner]


def colors_in(tables: dict[str, Any]) -> dict[str, str]:
    """Colours that a world file gives to its entities, by the name of the entity that holds their rows.

    What flows into an entity gives it a colour only where it has none itself.
    """
    entities = tables.get("entity")
    listed = [item for item in entities if isinstance(item, dict)] if isinstance(entities, list) else []
    found: dict[str, str] = {}
    for item in sorted(listed, key=lambda item: not item.get("into")):
        name, color = item.get("into") or item.get("name"), item.get("color")
        if isinstance(name, str) and isinstance(color, str) and re.fullmatch(COLOR, color):
            found[name] = color
    return found
