"""Which test shows which validation case: read from the docstrings of the tests.

A test says what it shows in the first words of its docstring: "Case 89: ...", "Cases 3 and 4: ...", "V3 and
case 54 ...". Cases that no function names, but the docstring of a file does, belong to the whole file. What
was asked and what was found stands in docs/validation.toml.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

from docs.generator.markdown import table

ROOT = Path(__file__).parents[2]
FIRST = 40
"""Letters of a docstring within which "case 12" names the case shown; later ones are mere references."""

LIST = re.compile(r"\b([Cc])ases? (\d+(?:(?:, | and | to )\d+(?!\d|e-|\.\d))*)")


def numbers(text: str) -> list[int]:
    """Numbers of a list in words: "10, 11 and 13" or "1 to 6"."""
    found: list[int] = []
    for item in re.split(r", | and ", text):
        first, _, last = item.partition(" to ")
        found += range(int(first), int(last or first) + 1)
    return found


def named(docstring: str, whole_file: bool) -> list[int]:
    """Cases that a docstring says are shown."""
    found = []
    for match in LIST.finditer(docstring):
        if whole_file or match.start() < FIRST or match[1] == "C":
            found += numbers(match[2])
    return found


@cache
def tests() -> dict[int, list[str]]:
    """Tests of every case: "validation/test_ring.py::test_thin_ring_law", or a file alone."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(ROOT / "tests").as_posix()
        functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
        in_functions = set()
        for function in functions:
            for case in named(ast.get_docstring(function) or "", whole_file=False):
                in_functions.add(case)
                found[case].append(f"{name}::{function.name}")
        for case in named(ast.get_docstring(tree) or "", whole_file=True):
            if case not in in_functions:
                found[case].append(name)
    return found


def entries() -> dict[int, dict[str, str]]:
    """What validation.toml says of every case: `what`, `how`, `gate` and `found`."""
    tables = tomllib.loads((ROOT / "docs" / "validation.toml").read_text(encoding="utf-8"))
    return {int(number): entry for number, entry in tables["case"].items()}


def sections() -> list[tuple[str, list[int]]]:
    """Title and cases of every section."""
    tables = tomllib.loads((ROOT / "docs" / "validation.toml").read_text(encoding="utf-8"))
    return [(entry["title"], entry["cases"]) for entry in tables["section"]]


def cases_table() -> str:
    """All sections as tables in Markdown."""
    shown, said = tests(), entries()
    out = []
    for title, cases in sections():
        out.append(f"### {title}\n")
        rows = (
            (str(c), *(said[c][head] for head in ("what", "how", "gate", "found")), _files(shown[c]))
            for c in cases
        )
        out.append(table(("case", "what", "how", "gate", "found", "test"), rows))
    return "\n".join(out)


def _files(names: list[str]) -> str:
    """Files of these tests, each once, with the number of tests in it."""
    files: dict[str, int] = defaultdict(int)
    for name in names:
        files[name.partition("::")[0]] += "::" in name
    return ", ".join(f"`{file}`" + (f" ({count})" if count > 1 else "") for file, count in files.items())
