"""Validate mutated world files number FIRST to LAST - 1: ``python mutations_worker.py FIRST LAST FOLDER``.

In a process of its own with a limit on its memory. Prints what went wrong as JSON: numbers with the cause,
how many were valid, the slowest, and the largest resident memory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import mutations
from judge import Verdicts

BYTES = 12 * 2**30


def run(first: int, last: int, folder: Path) -> dict[str, Any]:
    """Go through the numbers."""
    verdicts, sources = Verdicts(BYTES, only_the_error=True), mutations.texts()
    path, wrong, valid = folder / f"world{os.getpid()}.toml", {}, 0
    for number in range(first, last):
        path.write_bytes(mutations.mutated(number, sources))
        code, complaint = verdicts.of(["validate", str(path)], number)
        valid += code == 0
        if complaint:
            wrong[number] = complaint
    return {"wrong": wrong, "valid": valid, "slowest": verdicts.slowest, "MiB": verdicts.memory()}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
