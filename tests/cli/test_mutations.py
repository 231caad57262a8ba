"""Files are input from strangers: whatever is in them, one sentence or an answer, never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

JUDGE = Path(__file__).with_name("judge.py")


@pytest.mark.parametrize(
    ("first", "last"), [(20_000, 20_200), pytest.param(0, 2000, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("kind", ["world_mutations", "file_mutations", "run_mutations"])
def test_mutations(kind: str, first: int, last: int, tmp_path: Path) -> None:
    """No traceback, no exit code but 0 and 2, one sentence each, in 60 s and 4 GB, all in one process.

    Some commands go well and some do not, or nothing would be tried.
    """
    command = [sys.executable, str(JUDGE), kind, str(first), str(last), str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
    found = json.loads(process.stdout)
    assert not found["wrong"], found["wrong"]
    assert 0.05 * found["tried"] < found["well"] < 0.95 * found["tried"]
    print(f"{kind}: at most {found['MiB']:.0f} MiB; the slowest: {found['slowest']}")
