"""State hashes by number of threads: what a worker prints, in a process of its own, and the test reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def print_hashes(threads: str, hashes: Callable[[], Any]) -> None:
    """Print {number of threads: what `hashes` gives with so many}, for numbers such as "1,2,4"."""
    result = {}
    for number in threads.split(","):
        numba.set_num_threads(int(number))
        result[number] = hashes()
    print(json.dumps(result))


def printed_hashes(worker: str, threads: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """What a worker of this folder prints, called with further `arguments` before the numbers of threads."""
    from docs.generator import programs

    file, most = Path(__file__).with_name(worker), max(map(int, threads.split(",")))
    done = programs.run(
        file, *arguments, threads, folder=file.parent, NUMBA_NUM_THREADS=str(most), **variables
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
