"""Runs Python blocks of the documentation one after the other: `documents_worker.py BLOCKS.json FOLDER`.

One process for all, since importing and loading kernels takes longer than most blocks. Every block has a
folder and a module of its own; what went wrong is written to FOLDER/results.json, null for nothing.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType


def run(name: str, code: str, folder: Path) -> str | None:
    """The traceback of a block, None if it ran."""
    folder.mkdir()
    os.chdir(folder)
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(code, name, "exec"), vars(module))
    except BaseException:
        return traceback.format_exc()
    return None


def main(blocks: Path, folder: Path) -> None:
    """Run them all; results are kept after each, so that a crash shows where it was."""
    results = {}
    for number, (name, code) in enumerate(json.loads(blocks.read_text(encoding="utf-8"))):
        results[name] = run(f"document_{number}", code, folder / str(number))
        (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
