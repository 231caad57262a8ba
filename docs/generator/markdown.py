"""Small pieces of Markdown that the generated pages are made of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

WRITTEN = "<!-- Written by docs/generator when the site is built; do not edit. -->\n"
"""First line of every generated page."""


def cell(text: str) -> str:
    """`text` as one cell of a table: no bars that would end it, no line breaks, no HTML."""
    one = " ".join(text.split())
    parts = re.split(r"(`[^`]*`)", one)
    return "".join(
        part
        if part.startswith("`") and "|" not in part
        else re.sub(r"^`(.*)`$", r"<code>\1</code>", part.replace("<", "&lt;").replace("|", "&#124;"))
        for part in parts
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where there are no rows."""
    lines = ["| " + " | ".join(cell(item) for item in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *lines]) + "\n"


def code(text: str) -> str:
    """`text` as code within a sentence."""
    return f"`{text}`"


def anchor(title: str) -> str:
    """Fragment by which a heading is linked to, as Python-Markdown makes it."""
    kept = re.sub(r"[^\w\s-]", "", title).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def docstring(text: str) -> str:
    """A docstring as Markdown: paragraphs, lists and formulas (which are indented) stay what they are."""
    lines = inspect.cleandoc(text).splitlines()
    out: list[str] = []
    for line in lines:
        starts = line.startswith(("* ", "- "))
        # A list or formula that follows a line of text directly would be read as part of the paragraph.
        indented = line.startswith("    ")
        opens = (starts and not _in_list(out)) or (indented and not _indented(out[-1] if out else ""))
        if out and out[-1].strip() and opens:
            out.append("")
        out.append(line if indented else _escaped(line.replace("``", "`")))
    return "\n".join(out) + "\n"


def _escaped(line: str) -> str:
    """A line without HTML and emphasis, but for what stands in backticks and the star of a list."""
    parts = re.split(r"(`[^`]*`|^\* )", line)
    return "".join(
        part if re.match(r"`|\* $", part) else part.replace("<", "&lt;").replace("*", "\\*") for part in parts
    )


def _in_list(lines: Sequence[str]) -> bool:
    """Whether the last paragraph is a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if line.startswith(("* ", "- ")):
            return True
    return False


def _indented(line: str) -> bool:
    return line.startswith("  ")
