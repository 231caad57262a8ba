"""Files are input from strangers: whatever is in them, one sentence or an answer, never anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generator import programs

JUDGE = Path(__file__).with_name("judge.py")


@pytest.mark.parametrize(
    ("first", "last"), [(20_000, 20_025), pytest.param(0, 2000, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("kind", ["world_mutations", "file_mutations", "run_mutations"])
def test_mutations(kind: str, first: int, last: int, tmp_path: Path) -> None:
    """No traceback, no exit code but 0 and 2, one sentence each, in 60 s and 4 GB, 200 in one process.

    Some commands go well and some do not, or nothing would be tried.
    """
    # A hundred pictures by software take addresses that are not given back, so a process has 200 numbers.
    for start in range(first, last, 200):
        end = min(start + 200, last)
        (folder := tmp_path / str(start)).mkdir()
        process = programs.run(JUDGE, kind, str(start), str(end), str(folder), folder=tmp_path)
        assert process.returncode == 0, process.stderr[-2000:]
        found = json.loads(process.stdout)
        assert not found["wrong"], found["wrong"]
        assert 0.05 * found["tried"] < found["well"] < 0.95 * found["tried"]
        print(f"{kind} from {start}: {found['MiB']:.0f} MiB; the slowest: {found['slowest']}")
