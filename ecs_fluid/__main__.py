"""`python -m ecs_fluid`, and what the command `ecs-fluid` starts with."""

import gc
import os
import signal
import sys
from types import FrameType

GARBAGE_THRESHOLD = 10_000
"""The command searches for garbage only after this many new objects: nearly all of the first hundred
thousand are modules and classes, which stay."""


def main() -> int:
    """Entry point of the ``ecs-fluid`` command; returns the exit code.

    While the package is imported, Ctrl-C ends the process at once: a KeyboardInterrupt would print a
    traceback, or be lost in code whose exceptions Python ignores. Garbage is searched for seldom, and no
    longer when all is done: a fifth of the time of a short command.
    """
    gc.set_threshold(GARBAGE_THRESHOLD)
    by_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if it is ignored
    if by_python:
        signal.signal(signal.SIGINT, _stop)
    from ecs_fluid.cli import main as command

    if by_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = command()
    gc.freeze()  # Python searches once more as it ends
    if by_python:  # during Python's own exit it would be a traceback, too, and all is done
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))
    return code


def _stop(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"stopped\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
