"""Judges what a command of ours did with input from strangers, in a process with limits."""

from __future__ import annotations

import contextlib
import io
import resource
import signal
import time
import traceback
from collections.abc import Sequence
from typing import Any

from ecs_fluid.cli import main

CPU_SECONDS = 60.0
"""Processor time that a command may take; on good input the slowest takes some seconds."""
WALL_SECONDS = 900.0
"""Time until a command that waits for something that never comes is noticed. Long, because machines that
have other work to do, or that stop a process for a while, are no fault of the command."""


class Hangs(BaseException):
    """Raised by the alarms; no handler of exceptions in the package swallows it."""


class Verdicts:
    """Runs commands one after another; keeps the slowest, in seconds of the processor.

    Args:
        bytes_: address space of the process; numerical libraries reserve some of it without using it.
        only_the_error: whether standard error may hold nothing but the error; warnings may precede it else.
    """

    def __init__(self, bytes_: int, only_the_error: bool) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))
        signal.signal(signal.SIGALRM, _alarm)
        signal.signal(signal.SIGPROF, _alarm)
        self._strict = only_the_error
        self.slowest: tuple[float, Any] = (0.0, None)

    def of(self, command: Sequence[str], name: Any) -> tuple[int | None, str]:
        """(exit code, complaint) of one command; the complaint is "" when all is as it should be.

        Exit code 0 without an error, or exit code 2 with one sentence as the last line; no traceback.
        """
        errors, started = io.StringIO(), time.process_time()
        signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                code = main(list(command))
        except Hangs:
            return None, f"{command[0]} took longer than {CPU_SECONDS:g} s of the processor, or hangs"
        except BaseException:
            return None, f"{command[0]}: {traceback.format_exc(limit=-4)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.slowest = max(self.slowest, (time.process_time() - started, name), key=lambda each: each[0])
        said = errors.getvalue()
        lines = said.strip().splitlines()
        sentences = [line for line in lines if line.startswith("error: ")]
        sound = code == 0 and not sentences
        if code == 2:
            sound = len(sentences) == 1 and lines[-1:] == sentences and "Traceback" not in said
            sound &= not self._strict or len(lines) == 1
        return code, "" if sound else f"{command[0]}: exit code {code}, standard error {said[:600]!r}"

    def memory(self) -> float:
        """Largest resident memory of the process so far, MiB."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _alarm(*_: Any) -> None:
    raise Hangs
