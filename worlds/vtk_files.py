"""Mesh files of worlds, read by VTK in a process of its own, since a malicious file may crash it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError, raise_sentence
from ecs_fluid.input_limits import limits
from ecs_fluid.worlds.files import read_npz

CHILD = Path(__file__).with_name("vtk_child.py")
MESHES = (".stl", ".obj", ".ply", ".vtk", ".vtp", ".vtu")
"""Formats that are read: each file is self-contained. Others (.vtm, .pvd, .gltf, .xdmf, ...) refer to further
files, which may lie anywhere."""

MOST_POINTS = 10_000_000
"""Most points of a mesh file."""

MEMORY = 2 * 2**30
"""Memory limit of reading, bytes, beside `MEMORY_PER_BYTE`; the libraries alone reserve 1 GiB of
addresses."""

MEMORY_PER_BYTE = 40
"""Additional memory limit, bytes per byte of the file: numbers that compress well become a few times larger,
and VTK holds them more than once."""

SECONDS, SECONDS_PER_BYTE = 60.0, 1e-7


def read_vtk(path: Path, most: int, wanted: Collection[str] = ()) -> dict[str, Array]:
    """Points as ``x`` (n, 3) m, and point data by their names, of one of the formats `MESHES`.

    Point data that is not `wanted` is `UNREAD`. ``triangles`` (m, 3, 3) m are the corners of its faces, cut
    into triangles.

    Raises:
        RecipeError: it is damaged, holds no points or more than `most`, or reading it takes more memory or
            time than a file of its size may take.
    """
    if find_spec("vtkmodules") is None:
        raise_sentence(ModuleNotFoundError(name="vtkmodules"))
    size = path.stat().st_size
    memory = int(MEMORY + min(MEMORY_PER_BYTE * size, limits().memory))
    seconds = SECONDS + SECONDS_PER_BYTE * size
    with tempfile.TemporaryDirectory(prefix="ecs_fluid-") as folder:
        out = Path(folder) / "arrays.npz"
        # -P: files beside the child's script must not shadow Python's modules.
        numbers = [str(memory), str(int(seconds)), str(most)]
        command = [sys.executable, "-P", str(CHILD), str(path.resolve()), str(out), *numbers, *wanted]
        try:
            child = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise RecipeError(f"{path} took longer to read than the {seconds:.0f} s it may take") from None
        except OSError as error:
            raise RecipeError(f"{path} needs a process to be read in, and none starts: {error}") from None
        if child.returncode:
            raise RecipeError(f"{path} is not a readable {path.suffix} file: {_reason(child, memory)}")
        arrays = read_npz(out, {"points", "triangles", *(f"data {name}" for name in wanted)}, 0.0)
    data = {key.removeprefix("data "): array for key, array in arrays.items() if key.startswith("data ")}
    return {**data, "x": arrays["points"], "triangles": arrays["triangles"]}


def _reason(child: subprocess.CompletedProcess[bytes], memory: int) -> str:
    """Why the child failed, in words: its last line, or that VTK crashed it."""
    said = child.stderr.decode(errors="replace").strip().splitlines()
    if child.returncode == 1 and said and (said[-1].startswith("it ")):
        return said[-1]
    return f"VTK cannot make sense of it in {memory / 2**30:.1f} GiB of memory"
