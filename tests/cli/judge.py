"""Judges what commands of ours do with input from strangers: ``python judge.py KIND FIRST LAST FOLDER``.

KIND is a module beside this one: its ``prepare(folder)`` makes what is good, its ``trial(number, folder)``
puts mutation number so and so of that into a folder, and gives what was done and the commands to try. Goes
through the numbers FIRST to LAST - 1, all in this process, under a limit on its memory, and prints as JSON
what went wrong by number, how many commands went well, the slowest, and the largest resident memory.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import io
import json
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numba.core import event

import ecs_fluid.worlds  # noqa: F401
from ecs_fluid.cli import main

BYTES = 4 * 10**9
"""Address space of the process; numerical libraries reserve some of it without using it."""
CPU_SECONDS = 60.0
"""Processor time that a command may take, kernels compiled; on good input the slowest takes some seconds."""
WALL_SECONDS = 900.0
"""Time until a command that waits for something that never comes is noticed. Long, because machines that
have other work to do, or that stop a process for a while, are no fault of the command."""


class Hangs(BaseException):
    """Raised by the alarms; no handler of exceptions in the package swallows it."""


class Verdicts(event.Listener):  # type: ignore[misc]
    """Runs commands one after another; keeps the slowest, in seconds of the processor."""

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.signal(signal.SIGALRM, _alarm)
        signal.signal(signal.SIGPROF, _alarm)
        event.register("numba:compile", self)
        self.slowest: tuple[float, Any] = (0.0, None)
        self._compiling, self._left = 0, 0.0

    def on_start(self, happened: Any) -> None:
        """Kernels are compiled once per machine: the time it takes is not the command's."""
        self._compiling += 1
        if self._compiling == 1:
            self._left = signal.setitimer(signal.ITIMER_PROF, 0.0)[0]

    def on_end(self, happened: Any) -> None:
        """See `on_start`."""
        self._compiling -= 1
        if self._compiling == 0:
            signal.setitimer(signal.ITIMER_PROF, self._left)

    def of(self, command: Sequence[str], name: Any) -> tuple[int | None, str]:
        """(exit code, complaint) of one command; the complaint is "" when all is as it should be.

        Exit code 0 without an error, or exit code 2 with one sentence as the last line; no traceback.
        Warnings may precede the error, but not that of a file that is not valid.
        """
        errors, started = io.StringIO(), time.process_time()
        # What hangs in a library never comes back to Python: the process ends then, and says where it was.
        faulthandler.dump_traceback_later(WALL_SECONDS + 60.0, exit=True)
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
            faulthandler.cancel_dump_traceback_later()
            self.slowest = max(self.slowest, (time.process_time() - started, name), key=lambda each: each[0])
        said = errors.getvalue()
        lines = said.strip().splitlines()
        sentences = [line for line in lines if line.startswith("error: ")]
        sound = code == 0 and not sentences
        if code == 2:
            sound = len(sentences) == 1 and lines[-1:] == sentences and "Traceback" not in said
            sound &= command[0] != "validate" or len(lines) == 1
        elif code == 1 and command[0] == "sweep":  # members that went wrong, of which each says why
            sound = any(line.startswith("failed: ") for line in lines) and "Traceback" not in said
        return code, "" if sound else f"{command[0]}: exit code {code}, standard error {said[:600]!r}"

    def memory(self) -> float:
        """Largest resident memory of the process or one of its children so far, MiB."""
        who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return max(resource.getrusage(each).ru_maxrss for each in who) / 1024


def _alarm(*_: Any) -> None:
    raise Hangs


def go_through(kind: Any, first: int, last: int, folder: Path) -> dict[str, Any]:
    """See the head of this file."""
    faulthandler.enable()
    verdicts, wrong, well, tried = Verdicts(), {}, 0, 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        kind.prepare(folder)
    for number in range(first, last):
        mutant = folder / "mutant"
        shutil.rmtree(mutant, ignore_errors=True)
        mutant.mkdir()
        done, commands = kind.trial(number, mutant)
        print(number, done, file=sys.stderr, flush=True)  # the last line names the one that ended the process
        codes = {}
        for command in commands:
            codes[command[0]], complaint = verdicts.of(command, f"{command[0]} of {number}")
            well, tried = well + (codes[command[0]] == 0), tried + 1
            if not complaint and codes.get("run") == 0 != codes.get("validate", 0):
                complaint = "run does what validate refuses"
            if complaint:
                wrong[f"{number} ({done})"] = complaint
                print(complaint, file=sys.stderr, flush=True)
    found = {"wrong": wrong, "well": well, "tried": tried}
    return {**found, "slowest": verdicts.slowest, "MiB": verdicts.memory()}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    module = importlib.import_module(sys.argv[1])
    print(json.dumps(go_through(module, int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
