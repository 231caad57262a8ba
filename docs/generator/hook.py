"""What ProperDocs calls while it builds the site: pages and tables that are read from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from properdocs.structure.files import File, Files

# ProperDocs loads this file by its path, so that the folder above `docs` has to be named.
sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.generator import PAGES, fill


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference."""
    for name, write in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=write()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put tables into pages that ask for them."""
    return fill(markdown)
