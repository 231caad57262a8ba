"""Shipped worlds read like scenes: units behind all numbers, no defaults, a short header."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ecs_fluid.api.parameters import split_unit
from ecs_fluid.recipe import Recipe
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.validation_errors import models_in
from ecs_fluid.worlds.world_recipe import shipped
from ecs_fluid.worlds.world_tables import FLUID, FluidTable, OutputTable, WorldTable

WORLDS = sorted(shipped().values())
KINDS = {system.kind: system for system in System.registry.values()}


def assignments(path: Path) -> Iterator[tuple[type[BaseModel], str, Any, str]]:
    """Model, key, value and comment of every `key = value` of a world file, in its order."""
    tables: dict[str, type[BaseModel]] = {"world": WorldTable, "fluid": FluidTable, "output": OutputTable}
    model, table, lines = WorldTable, "", path.read_text(encoding="utf-8").splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith("["):
            table = line.strip("[]")
            model = tables.get(table, WorldTable)
        elif re.match(r"\w+ = ", line):
            while True:
                try:
                    ((key, value),) = tomllib.loads(line).items()
                    break
                except tomllib.TOMLDecodeError:
                    line += "\n" + lines.pop(0)
            if key == "kind":
                model = Recipe.registry[value] if table == "entity" else KINDS[value].Parameters
            comment = re.search(r"#\s*(.*)", re.sub(r'"[^"\n]*"', "", line))
            yield model, key, value, comment[1] if comment else ""


def units(model: type[BaseModel], key: str, value: Any) -> list[str]:
    """Units of the numbers of a value, those of a table in their order, each once in a row."""
    if key in FLUID and model is FluidTable:
        found = [unit for name, part in value.items() for unit in units(FLUID[key].Parameters, name, part)]
    elif not re.search(r"\d", str(value)) or (isinstance(value, str) and not re.search(r"[*/+(]", value)):
        found = []  # a word, true or false; texts with signs of arithmetic are formulas
    else:
        field = model.model_fields[key]
        parts = value if isinstance(value, list) and value and isinstance(value[0], dict) else [value]
        told = model.descriptions() if issubclass(model, Settings) else {}
        own = [split_unit(told.get(key, ""))[0] or "1"]
        if isinstance(parts[0], dict) and "keys" in parts[0]:
            found = ["s", *own]
        elif isinstance(parts[0], dict):
            inner = next(m for m in models_in(field.annotation) if parts[0].keys() <= set(m.model_fields))
            found = [
                unit for part in parts for name, item in part.items() for unit in units(inner, name, item)
            ]
        else:
            found = own
    return [unit for number, unit in enumerate(found) if unit not in found[:number]]


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_every_number_has_its_unit_behind_it(path: Path) -> None:
    """The units that the reference gives; 1 for pure numbers and counts."""
    for model, key, value, comment in assignments(path):
        wanted = ", ".join(units(model, key, value))
        assert not wanted or re.match(re.escape(wanted) + r"($|[,;: ])", comment), f"{key}: # {wanted}"


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_what_is_the_default_is_left_out(path: Path) -> None:
    """Methods and their numbers, and choices of systems; amounts of physics may be spelled out."""
    for model, key, value, comment in assignments(path):
        if model is FluidTable and key in FLUID:
            for name, part in value.items():
                assert FLUID[key].Parameters.model_fields[name].default != part, f"{key}.{name} = {part!r}"
            assert len(comment.split()) > 2, f"{key}: a reason is needed behind it"
        elif isinstance(value, str | bool) and key != "kind":
            assert model.model_fields[key].default != value, f"{key} = {value!r}"


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_header_is_short(path: Path) -> None:
    """What it shows, the physics, and the promise, in two to six lines."""
    header = path.read_text(encoding="utf-8").partition("\n[")[0].strip().splitlines()
    assert all(line.startswith("# ") and len(line) <= 120 for line in header)
    assert 2 <= len(header) <= 6 and "Physics:" in "\n".join(header)
