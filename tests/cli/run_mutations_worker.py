"""Judge mutated run folders number FIRST to LAST - 1: ``python run_mutations_worker.py FIRST LAST FOLDER``.

In a process of its own with a limit on its memory. Prints what went wrong as JSON: numbers with the cause,
how many commands went well, the slowest, and the largest resident memory.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import run_mutations
from judge import Verdicts

BYTES = 16 * 2**30


def commands(number: int, run: Path, pictures: bool) -> list[list[str]]:
    """What is tried on a run: info, and one of the others, which change the folder or write beside it."""
    others = [
        ["export", str(run), "--to", "npz", "--out", str(run) + "-npz"],
        ["page", str(run), "--out", str(run) + "-page"],
        ["resume", str(run), "--frames", "6"],
        ["resume", str(run), "--frames", "5"],
    ]
    if pictures:
        others.append(["show", str(run), "--save", str(run) + ".png", "--size", "64", "64"])
    return [["info", str(run)], others[number % len(others)]]


def _tidy(folder: Path) -> None:
    for path in folder.glob("mutant*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def run(first: int, last: int, folder: Path, pictures: bool) -> dict[str, Any]:
    """Go through the numbers."""
    faulthandler.enable()
    verdicts = Verdicts(BYTES, only_the_error=False)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        good = run_mutations.good_run(folder / "good")
    wrong, well, tried = {}, 0, 0
    for number in range(first, last):
        _tidy(folder)
        done = run_mutations.mutate(number, good, folder / "mutant")
        print(number, done, file=sys.stderr, flush=True)  # the last line names the one that ended the process
        for command in commands(number, folder / "mutant", pictures):
            code, complaint = verdicts.of(command, number)
            well, tried = well + (code == 0), tried + 1
            if complaint:
                wrong[f"{number} ({done})"] = complaint
    found = {"wrong": wrong, "well": well, "tried": tried}
    return {**found, "slowest": verdicts.slowest, "MiB": verdicts.memory()}


if __name__ == "__main__":
    numbers = (int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(run(*numbers, Path(sys.argv[3]), pictures="pictures" in sys.argv[4:])))
