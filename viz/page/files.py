"""The files of a page. All names are escaped: nothing of a run can become a tag or a statement."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from ecs_fluid.viz.page.codec import Description, encoded

FIXED = ("page.css", "viewer.js", "three-LICENSE.txt")


def literal(value: Any) -> str:
    """A value as a JavaScript literal, without any character that could end a script or a line of it."""
    written = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write_static_files(folder: Path, title: str) -> None:
    """Write what is the same in every page, and ``index.html`` with its title."""
    static = files("ecs_fluid.viz.page") / "static"
    for name in FIXED:
        (folder / name).write_bytes((static / name).read_bytes())
    text_of_page = (static / "index.html").read_text(encoding="utf-8")
    (folder / "index.html").write_text(text_of_page.replace("@TITLE@", html.escape(title)), encoding="utf-8")
    (folder / "data").mkdir()


class Stream:
    """One kind of data of successive frames, collected until `flush` writes them as a group into one file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._descriptions: list[tuple[Description | dict[str, Any] | None, int]] = []
        self._blobs: list[bytes] = []
        self.size = 0

    def add(self, description: Description | dict[str, Any] | None, blob: bytes) -> None:
        """Append a frame: what describes it, and its bytes."""
        self._descriptions.append((description, len(blob)))
        self._blobs.append(blob)
        self.size += len(blob)

    def flush(self, group: int) -> None:
        """Write the group and forget it."""
        # The base64 text has no character that means anything in a string.
        call = f"ecsFluidPage.put({literal(self._name)},{group},{literal(self._descriptions)},"
        packed = encoded(b"".join(self._blobs))
        path = self._folder / "data" / f"{self._name}_{group:05d}.js"
        path.write_text(f'{call}"{packed}");\n', encoding="ascii")
        self._descriptions, self._blobs, self.size = [], [], 0
