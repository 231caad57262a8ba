"""Processes that hang, and how long others wait for them."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ecs_fluid.errors import FluidError

TIMEOUT = "ECS_FLUID_TIMEOUT"
"""Environment variable: seconds for which a process may do nothing before the others give it up; 0: ever"""

EVER = 1e9
"""s; thirty years"""


def timeout() -> float:
    """What `TIMEOUT` says, s."""
    text = os.environ.get(TIMEOUT, "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= EVER:
        raise FluidError(f"{TIMEOUT} = {text!r}: 0 to {EVER:g} s are needed; 0 waits for ever")
    return seconds or EVER


class Idle:
    """Which processes of this machine have used no processor for the time-out.

    So those that compute, compile or poll for messages never count, however long they take; those that are
    stopped, hang or died do. Nor do those that wait for a disk. Where there is no /proc, nothing is known.
    """

    def __init__(self) -> None:
        self._limit = timeout()
        self._used: dict[int, tuple[list[str], float]] = {}

    def for_long(self, process: int, passed: float, sleeps: bool = False) -> bool:
        """Whether it is so for a process, once; `passed` s after the last call, if it may not have slept."""
        try:
            told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            state, used = told[0], told[11:13]
        except OSError:
            state, used = "gone", []
        former, waited = self._used.get(process, (None, 0.0))
        if former is None and state == "gone":
            return False
        works = used != former or state == "D" or (sleeps and state == "S")
        waited = 0.0 if works else waited + passed
        self._used[process] = (used, waited) if waited < self._limit else (used, 0.0)
        return waited >= self._limit
