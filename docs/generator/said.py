"""What the code can warn of: the sentences of every lint, advice and warning, with ... for their values.

Read from the source: strings in functions called lint, advice or something_lint, strings given to
warnings.warn and to the warn of the command line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("ecs_fluid", "systems", "worlds", "components", "viz")
LEAST = 25
"""Letters of fixed text that make a sentence; shorter strings are names and glue."""

VALUE = "..."


@cache
def warnings() -> dict[str, str]:
    """Sentence: file that says it."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            # ecs_fluid/systems and the like are links to the folders at the root.
            if any(part.is_symlink() for part in path.parents):
                continue
            source = path.read_text(encoding="utf-8")
            if not any(word in source for word in ("warn", "lint", "advice")):
                continue
            for node in ast.walk(ast.parse(source)):
                for text in _said(node):
                    found[text] = path.relative_to(ROOT).as_posix()
    return found


def _said(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef) and (node.name in ("lint", "advice") or node.name.endswith("_lint")):
        for statement in node.body[1:] if ast.get_docstring(node) else node.body:
            yield from _sentences(statement)
    elif isinstance(node, ast.Call) and "warn" in (
        getattr(node.func, "attr", ""),
        getattr(node.func, "id", ""),
    ):
        for argument in node.args[:1]:
            yield from _sentences(argument)


def _sentences(node: ast.AST) -> Iterator[str]:
    """Strings in an expression; of f-strings the whole, with VALUE for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values]
        if sum(len(part) for part in parts if part != VALUE) >= LEAST:
            yield " ".join("".join(parts).split())
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and len(node.value) >= LEAST:
            yield node.value
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _sentences(inner)


def explained(page: str) -> list[str]:
    """Sentences, or their beginnings, that the stability guide explains: its headings in quotes."""
    return [line[5:].strip().strip('"') for line in page.splitlines() if line.startswith('### "')]


def fits(entry: str, sentence: str) -> bool:
    """Whether an entry quotes a part of a sentence."""
    return entry in sentence
