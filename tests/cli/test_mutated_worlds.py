"""World files are input from strangers: whatever is in them, one sentence or a world, never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("mutations_worker.py")


def judged(first: int, last: int, folder: Path) -> dict[str, Any]:
    """What a process of its own says of the mutations of those numbers."""
    command = [sys.executable, str(WORKER), str(first), str(last), str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "last"), [(20_000, 20_080), pytest.param(0, 10_000, marks=pytest.mark.nightly)]
)
def test_mutated_worlds(first: int, last: int, tmp_path: Path) -> None:
    """No traceback, no exit code but 0 and 2, one sentence each; no hang, bounded memory.

    What asks for more than 50 million particles is refused before anything is allocated, and making one
    takes up to 170 bytes; so a process that met all of them stays below 9 GiB. Some worlds stay valid, or
    nothing would be tried.
    """
    found = judged(first, last, tmp_path)
    assert not found["wrong"], found["wrong"]
    assert 0.02 * (last - first) < found["valid"] < 0.9 * (last - first)
    assert found["MiB"] < 9 * 1024
