"""Signals that ask a process to end: Ctrl-C, SIGTERM, and SIGHUP, which comes when its terminal is closed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

HANGUP = getattr(signal, "SIGHUP", None)
"""None on Windows."""


def stop_signals() -> list[int]:
    """Numbers of these signals; without SIGHUP if it is ignored, as under ``nohup``."""
    numbers = [signal.SIGINT, signal.SIGTERM, HANGUP]
    return [n for n in numbers if n is not None and (n != HANGUP or signal.getsignal(n) != signal.SIG_IGN)]


@contextmanager
def handled(handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """While active, these signals call `handle`; only in the main thread, which alone gets them."""
    numbers = stop_signals() if threading.current_thread() is threading.main_thread() else []
    # None: a handler that Python did not set, and could not set again.
    former = {n: signal.signal(n, handle) for n in numbers if signal.getsignal(n) is not None}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def send_nowhere(stream: int) -> None:
    """Discard what is written to a file descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def leave_closed_terminal() -> None:
    """Send output to nowhere if the terminal was closed; printing to it would be an error."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            with suppress(OSError):
                send_nowhere(stream)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Signal handler that does what Ctrl-C does."""
    leave_closed_terminal()
    raise KeyboardInterrupt
