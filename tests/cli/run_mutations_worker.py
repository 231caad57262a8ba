"""Judge mutated run folders number FIRST to LAST - 1: ``python run_mutations_worker.py FIRST LAST FOLDER``.

In a process of its own with a limit on its memory. Prints what went wrong as JSON: numbers with the cause,
how many commands went well, the slowest, and the largest resident memory.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import resource
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import run_mutations

from ecs_fluid.cli import main

SECONDS = 60.0
"""Longest that a command may take; on the good run the slowest takes about one second."""
BYTES = 16 * 2**30
"""Address space of the process; numerical libraries reserve some of it without using it."""


class Hangs(BaseException):
    """Raised by the alarm; no handler of exceptions in the package swallows it."""


def _alarm(*_: Any) -> None:
    raise Hangs


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


def judged(command: list[str]) -> tuple[int | None, str]:
    """(exit code, complaint) of one command; the complaint is "" when all is as it should be."""
    said, errors = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = main(command)
    except Hangs:
        return None, f"{command[0]} took longer than {SECONDS:g} s"
    except BaseException:
        return None, f"{command[0]}: {traceback.format_exc(limit=-4)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    lines = [line for line in errors.getvalue().splitlines() if line.startswith("error: ")]
    if code == 0 and not lines:
        return code, ""
    rest = errors.getvalue().strip().splitlines()[-1:]
    if code != 2 or len(lines) != 1 or rest != lines or "Traceback" in errors.getvalue():
        return code, f"{command[0]}: exit code {code}, standard error {errors.getvalue()[:600]!r}"
    return code, ""


def _tidy(folder: Path) -> None:
    for path in folder.glob("mutant*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def run(first: int, last: int, folder: Path, pictures: bool) -> dict[str, Any]:
    """Go through the numbers."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _alarm)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        good = run_mutations.good_run(folder / "good")
    wrong, well, tried, slowest = {}, 0, 0, (0.0, -1)
    for number in range(first, last):
        _tidy(folder)
        done = run_mutations.mutate(number, good, folder / "mutant")
        print(number, done, file=sys.stderr, flush=True)  # the last line names the one that ended the process
        for command in commands(number, folder / "mutant", pictures):
            started = time.monotonic()
            code, complaint = judged(command)
            slowest = max(slowest, (time.monotonic() - started, number))
            well, tried = well + (code == 0), tried + 1
            if complaint:
                wrong[f"{number} ({done})"] = complaint
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wrong": wrong, "well": well, "tried": tried, "slowest": slowest, "MiB": memory}


if __name__ == "__main__":
    numbers = (int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(run(*numbers, Path(sys.argv[3]), pictures="pictures" in sys.argv[4:])))
