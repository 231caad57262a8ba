"""Processes that hang, and how long others wait for them."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ecs_fluid.errors import FluidError

TIMEOUT = "ECS_FLUID_TIMEOUT"
"""Environment variable: seconds after which others give up a process that does nothing; 0: never"""

EVER = 1e9
"""Time, s, that stands for ever: thirty years"""


def timeout() -> float:
    """The time-out, s, of the environment variable `TIMEOUT`."""
    text = os.environ.get(TIMEOUT, "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= EVER:
        raise FluidError(
            f"{TIMEOUT} = {text!r}; a time from 0 to {EVER:g} s is needed, where 0 waits for ever"
        )
    return seconds or EVER


class Idle:
    """Finds processes of this machine that have used no processor time for as long as the time-out.

    Processes that compute, compile, poll for messages or wait for a disk are never idle, however long they
    take; those that are stopped, hang or have died are. Without /proc none is.
    """

    def __init__(self) -> None:
        self._limit = timeout()
        self._used: dict[int, tuple[list[str], float]] = {}

    def for_long(self, process: int, passed: float, sleeps: bool = False) -> bool:
        """Whether this process has become idle; True once, then it counts anew.

        Call it every `passed` s. `sleeps`: the process may sleep without counting as idle.
        """
        try:
            fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].decode().split()
            state, used = fields[0], fields[11:13]
        except OSError:
            state, used = "gone", []
        former, waited = self._used.get(process, (None, 0.0))
        if former is None and state == "gone":
            return False
        works = used != former or state == "D" or (sleeps and state == "S")
        waited = 0.0 if works else waited + passed
        self._used[process] = (used, waited) if waited < self._limit else (used, 0.0)
        return waited >= self._limit
