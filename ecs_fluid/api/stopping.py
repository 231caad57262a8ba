"""Ctrl-C, SIGTERM and SIGHUP while a run or a sweep is under way: asked once, it ends in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ecs_fluid.signals import HANGUP, asking, leave_closed_terminal


@contextmanager
def stopping(say: Callable[[], object]) -> Iterator[list[int]]:
    """A list that gets the number of the first SIGINT, SIGTERM or SIGHUP; a second one raises
    KeyboardInterrupt, but for SIGHUP, which a shell sends on though it came from the terminal too.

    ``say`` is called at the first. Outside of the main thread, which alone gets signals, nothing is caught.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        leave_closed_terminal()
        if not asked:
            asked.append(number)
            say()
        elif number != HANGUP:
            raise KeyboardInterrupt

    former = {number: signal.signal(number, ask) for number in asking()}
    try:
        yield asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
