"""Ctrl-C, SIGTERM and SIGHUP during a run or a sweep: the first one ends it in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ecs_fluid.signals import HANGUP, leave_closed_terminal, stop_signals


@contextmanager
def stopping(say: Callable[[], object]) -> Iterator[list[int]]:
    """A list that gets the number of the first SIGINT, SIGTERM or SIGHUP; a second one raises
    KeyboardInterrupt, except SIGHUP, which may come twice: from the terminal and from the shell.

    ``say`` is called at the first. Outside of the main thread, which alone gets signals, nothing is caught.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(number: int, frame: FrameType | None) -> None:
        leave_closed_terminal()
        if not received:
            received.append(number)
            say()
        elif number != HANGUP:
            raise KeyboardInterrupt

    former = {number: signal.signal(number, handle) for number in stop_signals()}
    try:
        yield received
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
