"""Command lines of the benchmarks, none of which is run."""

from __future__ import annotations

from pathlib import Path

from docs.generator import programs

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


def test_help_of_every_benchmark_runs_nothing(tmp_path: Path) -> None:
    said = programs.run(programs.written(tmp_path, ASK), str(FOLDER), folder=tmp_path).stdout
    names = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "asked.py")
    assert len(names) > 15
    assert [line.split()[0] for line in said.splitlines() if line.endswith(" ended with 0")] == names
    assert said.count("usage: python benchmarks/") == len(names)


def test_wrong_numbers_are_refused(tmp_path: Path) -> None:
    ended = programs.run(FOLDER / "poisson.py", "64", "12.5", folder=tmp_path)
    assert ended.returncode == 2
    assert "12.5 is not a whole number above 0" in ended.stderr
