"""What ProperDocs calls while it builds the site: pages and tables that are read from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# ProperDocs loads this file by its path, so that the folder above `docs` has to be named.
sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.generator import PAGES, fill


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The pages of the reference in place of those in the tree, and tables that other pages ask for."""
    folder, _, name = page.file.src_uri.rpartition("/")
    return PAGES[name.removesuffix(".md")]() if folder == "reference" else fill(markdown)
