"""Tables as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 12
"""Rows of a long table that are shown: half of them from its beginning, half from its end."""


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table with a caption; texts are escaped, since they may come out of a stranger's file."""
    shown = list(rows)
    if len(shown) > MOST_ROWS:
        half = MOST_ROWS // 2
        shown = [*shown[:half], ["..."] * len(head), *shown[-half:]]
    lines = [f"<table><caption>{escape(caption)}</caption>", _row("th", head)]
    return "\n".join([*lines, *(_row("td", row) for row in shown), "</table>"])


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
