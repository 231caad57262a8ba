"""The pages on the articles: one for each part; each world, system, case and test that they name exists."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

import ecs_fluid as ef
from ecs_fluid.shipped_worlds import promises, shipped
from ecs_fluid.worlds.schema import schema
from ecs_fluid.worlds.world_tables import PRESETS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "articles"
PAGES = sorted(FOLDER.glob("*.md"))


def test_every_part_has_a_page_in_the_list_and_the_site() -> None:
    pages = [f"part_{number:02d}.md" for number in range(1, 22)]
    assert [page.name for page in PAGES] == ["index.md", *pages]
    assert re.findall(r"\((part_\d\d\.md)\)", (FOLDER / "index.md").read_text(encoding="utf-8")) == pages
    site = (ROOT / "properdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"articles/(\w+\.md)", site) == ["index.md", *pages]


@cache
def parameters() -> dict[str, set[Any]]:
    """Every key that a world file may have, with the words that its schema allows there."""
    found: dict[str, set[Any]] = {"preset": set(PRESETS)}

    def look(node: Any) -> None:
        if isinstance(node, dict):
            for key, value in node.get("properties", {}).items():
                found.setdefault(key, set()).update(words(value))
            for value in node.values():
                look(value)
        elif isinstance(node, list):
            for value in node:
                look(value)

    def words(node: Any) -> set[Any]:
        if isinstance(node, dict):
            named = {node["const"]} if "const" in node else set()
            return named.union(node.get("enum", ()), *map(words, node.values()))
        return set().union(*map(words, node)) if isinstance(node, list) else set()

    look(schema())
    return found


@cache
def names() -> set[str]:
    """Worlds, kinds, parameters, their words, diagnostics, and the public classes."""
    from ecs_fluid.systems.velocity.solver import SolverName

    keys = parameters()
    return {*shipped(), *keys, *set().union(*keys.values()), *dir(ef), *get_args(SolverName), "[fluid]"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_it_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for code in re.findall(r"`([^`]+)`", text):
        key, is_set, value = code.partition(" = ")
        if is_set:
            assert key in parameters(), code
            if value.startswith('"'):
                assert value.strip('"') in parameters()[key], code
            else:
                tomllib.loads(code)
        elif not code.startswith(("ecs-fluid ", "tests/")):
            assert code in names(), code
    for test in re.findall(r"tests/[\w/]+\.py", text):
        assert (ROOT / test).is_file(), test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_table_is_one(page: Path) -> None:
    """As many cells in each row as in its head: a bar in a formula would make one more."""
    rows = [row.count("|") for row in page.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
    assert len(rows) > 2 and len(set(rows)) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_cases_are_those_of_the_validation(page: Path) -> None:
    cases = tomllib.loads((ROOT / "docs" / "validation.toml").read_text(encoding="utf-8"))["case"]
    for numbers in re.findall(r"\bcases? ([\d, ]+(?:and \d+)?)", page.read_text(encoding="utf-8")):
        for number in re.findall(r"\d+", numbers):
            assert number in cases, number


def test_promises_that_are_quoted_are_those_of_the_worlds() -> None:
    """`world` ...: VALUE UNIT within ...: the same number and bound as in promises.toml."""
    kept, quoted = promises(), 0
    for page in PAGES:
        for row in page.read_text(encoding="utf-8").splitlines():
            for world, said in re.findall(r"`(\w+)`([^`|;]*?within [^`|;]*)", row):
                if world not in kept:
                    continue
                value, bound = float(kept[world]["value"]), float(kept[world]["within"])
                number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
                before, after = said.split("within ")
                assert value in map(float, re.findall(number, before)), (page.name, said)
                assert float(re.findall(number, after)[0]) in (bound, 1000 * bound), (page.name, said)
                quoted += 1
    assert quoted >= 10
