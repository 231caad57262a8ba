"""Command lines of the benchmarks, none of which is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks"

ASK = """
import runpy, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
for file in sorted(folder.glob("*.py")):
    if file.name == "asked.py":
        continue
    sys.argv = [str(file), "--help"]
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        print(f"{file.name} ended with {end.code}")
    else:
        print(f"{file.name} ran")
"""


def test_help_of_every_benchmark_runs_nothing() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ASK, str(FOLDER)], check=True, capture_output=True, text=True, timeout=300
    ).stdout
    names = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "asked.py")
    assert len(names) > 15
    assert [line.split()[0] for line in said.splitlines() if line.endswith(" ended with 0")] == names
    assert said.count("usage: python benchmarks/") == len(names)


def test_wrong_numbers_are_refused() -> None:
    command = [sys.executable, str(FOLDER / "poisson.py"), "64", "12.5"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert "12.5 is not a whole number above 0" in ended.stderr
