"""Names and units of the glossary are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ecs_fluid as ef
from ecs_fluid.component import Component
from ecs_fluid.system import System

TEXT = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in TEXT.splitlines() if line[:2] == "| "
]
NAMED = [
    (unit, kind, name)
    for *_, unit, where in (row for row in ROWS if len(row) == 4)
    for kind, name in re.findall(r"`([A-Z]\w+)(?:\.(\w+))?`", where)
]


@pytest.mark.parametrize(("unit", "kind", "name"), NAMED, ids=lambda value: str(value))
def test_what_the_glossary_names_is_there(unit: str, kind: str, name: str) -> None:
    found = getattr(ef, kind)
    if not name:
        assert issubclass(found, Component | System)
    elif issubclass(found, Component):
        assert found.columns[name].unit in (unit, "1") and (unit or name == "law")
    else:
        described = found.Parameters.descriptions()[name]
        assert described and (not unit or f", {unit}" in described or unit == "1")


def test_diagnostics_of_the_glossary_are_measured() -> None:
    measured = ef.load("vortex_ring", "smoke.per_cell=1").diagnostics()
    names = re.findall(r"diagnostic `(\w+)`", TEXT)
    assert len(names) == 4 and set(names) <= set(measured)
