"""Commands of small sweeps, and reading what they made."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]
ENERGY = ("--diagnostics", "energy")  # one panel: drawing six takes most of the time of so short runs
CORES = ("--vary", "ring.core=0.25,0.35", *ENERGY)
ALONE: dict[str, Any] = {"workers": 0, "diagnostics": ["energy"]}
EACH_TICK = ("--set", "output.checkpoint_seconds=0")


def rows(path: Path | str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def hashes(folder: Path | str) -> dict[str, str]:
    return {row["member"]: row["state_hash"] for row in rows(Path(folder) / "members.csv")}


def stamps(folder: Path | str) -> dict[str, tuple[int, int]]:
    """Inode and time of last change of every file of the members."""
    found = sorted(Path(folder).glob("members/**/*"))
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found if path.is_file()}
