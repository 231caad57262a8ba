"""Ctrl-C, SIGTERM and SIGHUP during a run or a sweep: the first one ends it in good order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ecs_fluid.signals import HANGUP, handled, leave_closed_terminal


@contextmanager
def stopping(say: Callable[[], object]) -> Iterator[list[int]]:
    """A list that gets the number of the first SIGINT, SIGTERM or SIGHUP; a second one raises
    KeyboardInterrupt, except SIGHUP, which may come twice: from the terminal and from the shell.

    ``say`` is called at the first. Outside of the main thread, which alone gets signals, nothing is caught.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        leave_closed_terminal()
        if not received:
            received.append(number)
            say()
        elif number != HANGUP:
            raise KeyboardInterrupt

    with handled(handle):
        yield received
