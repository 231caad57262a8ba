"""Writes the parts of the documentation that are read from the code; `hook.py` builds them into the site.

`python -m docs.generator FOLDER` writes the pages of the reference into a folder, to be read as Markdown.
"""

from __future__ import annotations

from collections.abc import Callable

from docs.generator.cases import cases_table
from docs.generator.code_pages import commands_page, components_page, diagnostics_page, errors_page
from docs.generator.models_pages import entities_page, systems_page, world_page

PAGES: dict[str, Callable[[], str]] = {
    "entities": entities_page,
    "world": world_page,
    "systems": systems_page,
    "components": components_page,
    "commands": commands_page,
    "diagnostics": diagnostics_page,
    "errors": errors_page,
}
"""Pages of the reference by name."""

TABLES: dict[str, Callable[[], str]] = {"<!-- cases -->": cases_table}
"""Tables by the comment that stands for them in a page."""


def fill(markdown: str) -> str:
    """A page with its tables."""
    for mark, write in TABLES.items():
        if mark in markdown:
            markdown = markdown.replace(mark, write())
    return markdown
