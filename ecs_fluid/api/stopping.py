"""Ctrl-C and SIGTERM while a run or a sweep is under way: asked once, it ends in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping(say: Callable[[], object]) -> Iterator[list[int]]:
    """A list that gets the number of the first SIGINT or SIGTERM; a second one raises KeyboardInterrupt.

    ``say`` is called at the first. Outside of the main thread, which alone gets signals, nothing is caught.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        say()

    former = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
