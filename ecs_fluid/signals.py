"""Signals that ask a process to end: Ctrl-C, SIGTERM, and SIGHUP, which comes when its terminal is closed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType

HANGUP = getattr(signal, "SIGHUP", None)
"""None on Windows."""


def stop_signals() -> list[int]:
    """Numbers of these signals; without SIGHUP if it is ignored, as under ``nohup``."""
    numbers = [signal.SIGINT, signal.SIGTERM, HANGUP]
    return [n for n in numbers if n is not None and (n != HANGUP or signal.getsignal(n) != signal.SIG_IGN)]


def leave_closed_terminal() -> None:
    """Send output to nowhere if the terminal was closed; printing to it would be an error."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream)
                os.close(nowhere)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Signal handler that does what Ctrl-C does."""
    leave_closed_terminal()
    raise KeyboardInterrupt
