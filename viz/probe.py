"""Test whether this machine can render, in a child process, which may crash.

Without a GL library VTK does not raise: it kills the process (SIGSEGV), which nothing can catch. So a spawned
child renders a window of a few pixels first; a success is remembered for this process, and on disk until
the machine restarts, or its libraries or VTK change.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ecs_fluid.errors import FluidError

PACKAGES = "libegl1 libgl1-mesa-dri"

# A white triangle on black, read back: some contexts draw nothing.
_CHILD = """
import sys
import vtkmodules.vtkRenderingOpenGL2
from vtkmodules.vtkCommonCore import vtkObject, vtkUnsignedCharArray
from vtkmodules.vtkFiltersSources import vtkRegularPolygonSource
from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper, vtkRenderer, vtkRenderWindow
vtkObject.GlobalWarningDisplayOff()
source, mapper, actor = vtkRegularPolygonSource(), vtkPolyDataMapper(), vtkActor()
mapper.SetInputConnection(source.GetOutputPort())
actor.SetMapper(mapper)
renderer, window, pixels = vtkRenderer(), vtkRenderWindow(), vtkUnsignedCharArray()
renderer.AddActor(actor)
window.OffScreenRenderingOn()
window.SetSize(16, 16)
window.AddRenderer(renderer)
window.Render()
window.GetRGBACharPixelData(0, 0, 15, 15, 1, pixels)
sys.exit(0 if pixels.GetNumberOfTuples() and pixels.GetRange(0)[1] > 128 else 3)
"""

_works = False


def require_gl() -> None:
    """Return if off-screen rendering works here; raise FluidError naming the missing packages if not."""
    global _works
    if os.environ.get("ECS_FLUID_GL") == "no":
        raise FluidError("nothing is rendered here, because the environment says ECS_FLUID_GL=no")
    if not _works:
        note = _note()
        if not note.is_file():
            _probe((sys.executable, "-P", "-c", _CHILD))
            if note.is_absolute():  # it is not where the user has no home, as in some containers
                with contextlib.suppress(OSError):
                    note.parent.mkdir(parents=True, exist_ok=True)
                    note.touch()
        _works = True
    quiet_vtk()


def quiet_vtk() -> None:
    """Keep VTK's warnings (no X server, and the like) off the terminal; its errors still show."""
    from vtkmodules.vtkCommonCore import vtkLogger, vtkObject

    vtkObject.GlobalWarningDisplayOff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)


def _probe(command: Sequence[str]) -> None:
    try:
        child = subprocess.run(command, capture_output=True, timeout=120.0, check=False)
    except subprocess.TimeoutExpired:
        reason = "did not answer within 120 s"
    except OSError as error:
        reason = f"could not be started: {error.strerror}"
    else:
        if child.returncode == 0:
            return
        reason = _reason(child.returncode)
    remedy = f"install the OpenGL libraries with `apt-get install {PACKAGES}`"
    if sys.platform in ("darwin", "win32"):
        remedy = "it needs a graphics driver with OpenGL 3.2, and a session that may use it"
    raise FluidError(
        f"this machine cannot render pictures (a trial rendering {reason}): {remedy}; simulating and storing "
        "runs work without them"
    )


def _reason(status: int) -> str:
    """What an exit status says, in words; negative ones are signals."""
    if status < 0:
        try:
            return f"died of {signal.Signals(-status).name}"
        except ValueError:
            return f"died of signal {-status}"
    return "came back black" if status == 3 else f"failed with exit status {status}"


def _note() -> Path:
    """File whose existence says that rendering worked with this VTK, boot, host and set of libraries."""

    def read(path: str) -> str:
        with contextlib.suppress(OSError):
            return Path(path).read_text(encoding="utf-8")
        return ""

    libraries = 0.0
    with contextlib.suppress(OSError):  # rewritten by ldconfig whenever a library comes or goes
        libraries = os.stat("/etc/ld.so.cache").st_mtime
    # Mesa's drivers are loaded by path, so ldconfig does not note them.
    folders = [*Path("/usr").glob("lib*/dri"), *Path("/usr").glob("lib*/*/dri")]
    drivers = sorted(f"{path} {path.stat().st_mtime}" for path in folders)
    facts = (
        importlib.metadata.version("vtk"),
        read("/proc/sys/kernel/random/boot_id"),
        platform.node(),
        str(libraries),
        *drivers,
        sys.prefix,
        os.environ.get("DISPLAY", ""),
        os.environ.get("LD_LIBRARY_PATH", ""),
        os.environ.get("VTK_DEFAULT_OPENGL_WINDOW", ""),
    )
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "ecs-fluid" / f"gl-works-{key}"
