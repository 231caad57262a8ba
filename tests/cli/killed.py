"""Kills processes at a chosen change of the files below a folder, by code that they load as they start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docs.generator import programs

SITE = '''
import os, signal, sys

FOLDER, AT, VICTIMS = os.environ["KILL_BELOW"], int(os.environ["KILL_AT"]), os.environ["KILL_VICTIMS"]
NOTES = os.environ["KILL_NOTES"]
changes, write, busy = 0, os.write, False

def note(name, text):
    handle = os.open(os.path.join(NOTES, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write(handle, text.encode())
    os.close(handle)

def mpiexec():
    """The process that started the ranks, above them and their proxy."""
    pid = os.getpid()
    while pid > 1:
        name, _, told = open(f"/proc/{pid}/stat").read().partition("(")[2].rpartition(")")
        if name.startswith("mpiexec"):
            return pid
        pid = int(told.split()[1])
    raise SystemExit("there is no mpiexec")

def victims():
    if VICTIMS == "self":
        return [os.getpid()]
    if VICTIMS == "mpiexec":
        return [mpiexec()]
    return [int(open(os.path.join(NOTES, "rank" + rank)).read()) for rank in VICTIMS.split(",")]

def changed(what, path, torn=None):
    """Before each change; `torn` does half of it."""
    global changes, busy
    if busy:
        return
    busy = True
    try:
        path = os.path.abspath(os.fsdecode(path))
        if path.startswith(FOLDER + os.sep):
            note("changes", f"{os.getpid()} {what} {path[len(FOLDER) + 1:]}\\n")
            changes += 1
            if changes == AT:
                try:
                    os.close(os.open(os.path.join(NOTES, "killed"), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    return  # once
                if torn and AT % 2:
                    torn()
                for pid in victims():
                    os.kill(pid, signal.SIGKILL)
    finally:
        busy = False

def hook(event, arguments):
    if event == "open":
        path, _, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR) and isinstance(path, (str, bytes)):
            changed("open", path)
    elif event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        changed(event, arguments[0])

def writing(handle, data):
    try:
        path = os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        path = ""
    changed("write", path, lambda: write(handle, bytes(data)[: len(data) // 2]))
    return write(handle, data)

def syncing(handle, sync=os.fsync):
    changed("sync", os.readlink(f"/proc/self/fd/{handle}"))
    return sync(handle)

def truncating(handle, size, truncate=os.ftruncate):
    changed("truncate", os.readlink(f"/proc/self/fd/{handle}"))
    return truncate(handle, size)

if os.environ.get("KILL_IN", "") in " ".join(sys.orig_argv):
    if "PMI_RANK" in os.environ:
        note("rank" + os.environ["PMI_RANK"], str(os.getpid()))
    os.write, os.fsync, os.ftruncate = writing, syncing, truncating
    sys.addaudithook(hook)
'''


class Deaths:
    """Environments for processes that die, with the notes that they leave.

    Args:
        notes: a folder for them, which is made.
    """

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        notes.mkdir(parents=True)
        (notes / "sitecustomize.py").write_text(SITE)
        # A fork of a running Python loads no such file as it starts.
        text = f"{SITE}\nfrom ecs_fluid.cli import main\n\nraise SystemExit(main())\n"
        self.command = programs.written(notes, text)

    def at(self, change: int, below: Path, victims: str = "self", where: str = "") -> dict[str, Any]:
        """Environment of a process that kills `victims` before its n-th change of files below a folder.

        Args:
            change: which one, from 1; 0 for none.
            below: the folder.
            victims: itself, "mpiexec", or numbers of ranks: "0,1".
            where: only processes whose command holds this count their changes.
        """
        for former in (*self.notes.glob("rank*"), self.notes / "changes", self.notes / "killed"):
            former.unlink(missing_ok=True)
        told = {"BELOW": below.absolute(), "AT": change, "VICTIMS": victims, "NOTES": self.notes, "IN": where}
        path = os.pathsep.join(filter(None, [str(self.notes), os.environ.get("PYTHONPATH")]))
        return {
            **os.environ,
            "PYTHONPATH": path,
            **{f"KILL_{key}": str(value) for key, value in told.items()},
        }

    @property
    def changes(self) -> list[str]:
        """What was changed, of each process in its order: process, change and file."""
        file = self.notes / "changes"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def happened(self) -> bool:
        """Whether somebody was killed."""
        return (self.notes / "killed").exists()
