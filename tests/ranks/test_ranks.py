"""One world on many processes: the bits of one process, whatever the number of ranks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ranks import worker

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec; pip install 'ecs-fluid[mpi]'")

ROOT = Path(__file__).parents[2]


def mpi(
    ranks: int, *command: str, cwd: Path = ROOT, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run Python on so many ranks."""
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, *command],
        cwd=cwd, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def outcomes(ranks: int, **ticks: int) -> dict[str, Any]:
    """Outcome of each world after so many ticks on so many ranks."""
    done = mpi(ranks, "-m", "tests.ranks.worker", *(f"{name}={count}" for name, count in ticks.items()))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


QUICK = {"vortex_ring": 3, "fire_and_balloon": 4, "cloud": 12, "few": 6}


@pytest.mark.parametrize("ranks", [2, 3])
def test_any_number_of_ranks_gives_the_bits_of_one_process(ranks: int) -> None:
    """Spawning and killing (cloud), fewer rows than ranks (few), bodies, fire and emission."""
    for name, found in outcomes(ranks, **QUICK).items():
        alone = worker.outcome(worker.made(name), QUICK[name])
        assert alone["error"] == ""
        assert {key: found[key] for key in alone} == alone, name
        held = [rank["rows"] for rank in found["ranks"]]
        assert len(held) == ranks
        for population in held[0]:
            counts = [rows[population] for rows in held]
            assert sum(counts) == alone["rows"][population]
            assert max(counts) <= 1.2 * sum(counts) / ranks + 2


def test_what_one_rank_runs_into_all_say() -> None:
    """Row 0 alone is broken; the message names system, entity and row as that of one process does."""
    found = outcomes(3, nan=6, error=6)
    for name in ("nan", "error"):
        alone = worker.outcome(worker.made(name), 6)
        assert {key: found[name][key] for key in alone} == alone
        assert found[name]["tick"] == 3
    assert "Breaks" in found["nan"]["error"]
    assert "this rank does not like what it sees" in found["error"]["error"]
