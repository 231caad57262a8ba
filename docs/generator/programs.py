"""Python programs in processes of their own, forked from one that has imported what takes long.

numba, SciPy, matplotlib and pyvista take two seconds to be imported, by each of a hundred programs that
draw, and what checks tables and commands takes a tenth, by each that runs a world. Here one process
imports them, and nothing of ours; asked for a program it forks, and the fork runs it as Python would:
with a folder, words and variables of its own, and what it prints and returns. Of variables that those
libraries read when they are imported, numba's alone have an effect. Where there is no Linux, Python
itself is started.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SECONDS = 1800
"""A program that runs longer is ended."""

FORKS = '''\
import atexit, gc, importlib, json, os, runpy, signal, sys
from contextlib import suppress

import numba
from numba.np.ufunc import parallel

well = False

@atexit.register
def end():
    """What was imported is not taken apart object by object, a tenth of a second, where all went well."""
    if well:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

del sys.path[0]  # the folder in which this was started
for name in sys.argv[1:]:
    with suppress(ImportError):
        importlib.import_module(name)
numba.njit(lambda: None)()  # which loads what numba needs to compile
gc.collect()
gc.freeze()  # or the fork would copy all that a search for garbage marks
gc.set_threshold(10_000)  # as while a function is compiled
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
signal.alarm(asked["seconds"])
for number, name in enumerate((os.devnull, asked["out"], asked["error"])):
    os.dup2(os.open(name, os.O_RDWR), number)
os.environ.clear()
os.environ.update(asked["environment"])
numba.config.reload_config()
if numba.config.NUMBA_NUM_THREADS != parallel.NUM_THREADS:
    importlib.reload(parallel)
os.chdir(asked["folder"])
sys.argv = asked["words"]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
well = True
'''

LIBRARIES = ("cyclopts", "esper", "filelock", "h5py", "matplotlib.pyplot", "pydantic.main", "pydantic.types")
LIBRARIES += ("pyvista.plotting", "rich.progress", "scipy.interpolate", "scipy.ndimage")
LIBRARIES += ("scipy.spatial.transform", "scipy.stats", "tomli_w")


def run(program: Path, *words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program that has come to its end, in this folder, with these words and variables besides ours."""
    environment = (
        os.environ | {"PWD": str(folder.resolve())} | variables
    )  # as a shell has it; Blender reads it
    if sys.platform != "linux":
        return subprocess.run(
            [sys.executable, program, *words], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    asked = {"words": [str(program), *words], "folder": str(folder), "environment": environment}
    with (
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as out,
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as error,
    ):
        asked |= {"out": out.name, "error": error.name, "seconds": SECONDS}
        process = _forks()
        print(json.dumps(asked), file=process.stdin, flush=True)
        code = int(process.stdout.readline())
        return subprocess.CompletedProcess(asked["words"], code, out.read(), error.read())


def written(folder: Path, text: str) -> Path:
    """Program in this folder with this text."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    return program


def command(folder: Path) -> Path:
    """Program in this folder that does what the command ecs-fluid does."""
    return written(folder, "from ecs_fluid.cli import main\n\nraise SystemExit(main())\n")


@cache
def _forks() -> subprocess.Popen[str]:
    """The process that has imported them; it ends when nobody can ask it any more."""
    started = [sys.executable, "-c", FORKS, *LIBRARIES]
    process = subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)  # which closes its input, and waits until it has ended upon that
    return process
