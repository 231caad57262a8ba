"""Run folders are input from strangers: whatever is in them, one sentence or an answer, nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("run_mutations_worker.py")


def judged(first: int, last: int, folder: Path, *options: str) -> dict[str, Any]:
    """What a process of its own says of the mutations of those numbers."""
    command = [sys.executable, str(WORKER), str(first), str(last), str(folder), *options]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "last", "options"),
    [
        (20_000, 20_030, ()),
        pytest.param(0, 3000, (), marks=pytest.mark.nightly),
        pytest.param(10_000, 10_300, ("pictures",), marks=pytest.mark.nightly),
    ],
)
def test_mutated_runs(first: int, last: int, options: tuple[str, ...], tmp_path: Path) -> None:
    """info, resume, export, page and show: exit code 0 or 2, one sentence; no hang, bounded memory.

    The good run has 2,000 rows, less than 1 MB of data; a process with all kernels and VTK loaded takes about
    0.5 GiB, and 2.1 GiB where it had to compile them. What claims more than its file holds is refused before
    anything is allocated, so 4 GiB are never reached.
    Some commands go well and some do not, or nothing would be tried.
    """
    found = judged(first, last, tmp_path, *options)
    assert not found["wrong"], found["wrong"]
    assert 0.1 * found["tried"] < found["well"] < 0.95 * found["tried"]
    assert found["MiB"] < 4096
