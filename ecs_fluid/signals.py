"""Signals that ask a process to end: Ctrl-C, SIGTERM, and SIGHUP, which comes when its terminal is closed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType

HANGUP = getattr(signal, "SIGHUP", None)
"""None on Windows."""


def asking() -> list[int]:
    """Their numbers, without a SIGHUP that is ignored, as ``nohup`` has it."""
    numbers = [signal.SIGINT, signal.SIGTERM, HANGUP]
    return [n for n in numbers if n is not None and (n != HANGUP or signal.getsignal(n) != signal.SIG_IGN)]


def leave_closed_terminal() -> None:
    """What is still printed to a terminal that was closed goes nowhere, where it would be an error."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream)
                os.close(nowhere)


def interrupt(number: int, frame: FrameType | None) -> None:
    """A handler by which all of them do what Ctrl-C does."""
    leave_closed_terminal()
    raise KeyboardInterrupt
