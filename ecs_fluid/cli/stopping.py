"""Ctrl-C and SIGTERM while a run or a sweep is under way: asked once, it ends in good order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ecs_fluid.cli import err


@contextmanager
def stopping(say: str, then: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """A list that gets the number of the first SIGINT or SIGTERM; a second one ends the process.

    ``say`` is printed at the first, and ``then`` called.
    """
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        err.print(say, style="yellow")
        if then is not None:
            then()

    former = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
