"""Validate mutated world files number FIRST to LAST - 1: ``python mutations_worker.py FIRST LAST FOLDER``.

In a process of its own with a limit on its memory. Prints what went wrong as JSON: numbers with the cause,
how many were valid, the slowest, and the largest resident memory.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import mutations

from ecs_fluid.cli import main

SECONDS = 60.0
"""Longest that a file may take; a world of some million vortons is made in a few seconds."""
BYTES = 12 * 2**30
"""Address space of the process; numerical libraries reserve some of it without using it."""


class Hangs(BaseException):
    """Raised by the alarm; no handler of exceptions in the package swallows it."""


def _alarm(*_: Any) -> None:
    raise Hangs


def judged(path: Path) -> tuple[int | None, str]:
    """(exit code, complaint) of one file; the complaint is "" when all is as it should be."""
    said, errors = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = main(["validate", str(path)])
    except Hangs:
        return None, f"took longer than {SECONDS:g} s"
    except BaseException:
        return None, traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    lines = errors.getvalue().strip().splitlines()
    if code == 0:
        return code, ""
    if code != 2 or len(lines) != 1 or not lines[0].startswith("error: "):
        return code, f"exit code {code}, standard error {errors.getvalue()[:600]!r}"
    return code, ""


def run(first: int, last: int, folder: Path) -> dict[str, Any]:
    """Go through the numbers."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _alarm)
    sources = mutations.texts()
    path, wrong, valid, slowest = folder / f"world{os.getpid()}.toml", {}, 0, (0.0, -1)
    for number in range(first, last):
        path.write_bytes(mutations.mutated(number, sources))
        started = time.monotonic()
        code, complaint = judged(path)
        slowest = max(slowest, (time.monotonic() - started, number))
        valid += code == 0
        if complaint:
            wrong[number] = complaint
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wrong": wrong, "valid": valid, "slowest": slowest, "MiB": memory}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
