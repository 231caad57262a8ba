"""`python -m docs.generator FOLDER`: the pages of the reference as Markdown files."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.generator import PAGES


def main(arguments: list[str]) -> int:
    """Write the pages; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m docs.generator FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in PAGES.items():
        (folder / f"{name}.md").write_text(write(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
