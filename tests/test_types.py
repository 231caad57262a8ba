"""Type checkers read an installed ecs_fluid as users do: right programs pass, and wrong names do not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from docs.generator import tutorials
from ecs_fluid.fluid import FluidKeywords, FluidOptions
from ecs_fluid.world_options import WorldKeywords, WorldOptions
from tests.test_documents import blocks
from tests.test_wheel import copied_tree

ROOT = Path(__file__).parents[1]

WRONG = """
import ecs_fluid as ef
from ecs_fluid.worlds import VortexRing

VortexRing(name="a", radius=1.0)
VortexRing(name="a", radios=1.0)  # line 6
ef.World(dt=0.1, integrator="rk3")
ef.World(dd=0.1)  # line 8
ef.World(integrator="rk5")  # line 9
ef.WindSystem(velocity=(1.0, 0.0, 0.0))
ef.WindSystem(velocity=(1.0, 0.0, 0.0), uniform=True)  # line 11
ef.DiffusionSystem(method="psee")  # line 12
for position, velocity in ef.World().query(ef.Position, ef.Velocity):
    position.x += velocity.u
    position.u += velocity.u  # line 15


class FloorSolver(ef.Solver):
    height: float = 0.0

    def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None: ...

    def fill(self, targets: ef.Targets) -> None: ...


ef.VelocitySystem(solver="tree", angle=0.3)
ef.VelocitySystem(solver="tree", angel=0.3)  # line 27
ef.VelocitySystem.with_solver(FloorSolver, height=0.3, at="grid")
ef.World(dt="1/60")
ef.World(dt=None)  # line 30
run = ef.run("vortex_ring", ticks=3)
run.show(0, what="slice", size=(100, 100))
run.show(colour="speed")  # line 33
ef.run("vortex_ring", frame=3)  # line 34
ef.World().show(what="slices")  # line 35
ef.World().gravty = 3.0  # line 36
position.y = position.x  # line 37
"""
FOR_OTHERS = ("bpy", "paraview/__init__", "paraview/simple", "vtk")
"""Modules of which all names are Any to the checkers: those that only the Python of Blender and of ParaView
has, and vtk, which pyvista imports and no program does. Pyright reads all of VTK for it."""

PYVISTA_TOO = "pyright with pyvista"
"""Pyright reads the types of pyvista too, which take 9 of its 21 s."""

NODE = shutil.which("node")

UNUSED = ("scipy", "optype", "matplotlib", "pyparsing", "PIL", "rich", "markdown_it", "mdurl", "filelock")
"""Typed packages that ecs_fluid imports and no line of wrong.py is about: 700 of 1,400 modules."""

MISTAKES = {6, 8, 9, 11, 12, 15, 27, 30, 33, 34, 35, 36, 37}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of README and docs, lessons too, one with mistakes, and an environment.

    The environment has ecs_fluid installed as README says, and what it needs from the one that runs tests.
    """
    folder = tmp_path_factory.mktemp("types")
    copied_tree(folder / "tree")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env/bin/python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, capture_output=True, check=True, text=True).stdout.strip())
    how = ["-q", "--no-deps", "--no-compile", "--target", site, folder / "tree"]
    subprocess.run([sys.executable, "-m", "pip", "install", *how], check=True)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    (folder / "programs").mkdir()
    for name, text in blocks("python"):
        file = folder / "programs" / f"{name.replace('.md-', '_')}.py"
        file.write_text(text, encoding="utf-8")
    for name in tutorials.NAMES:
        lesson = folder / "programs" / name
        lesson.mkdir()
        told = tutorials.read(name)
        cells = "\n".join(part.text for part in told if part.kind == "python")
        (lesson / f"{name}_cells.py").write_text(cells, encoding="utf-8")
        for part in told:
            if part.name.endswith(".py"):
                (lesson / part.name).write_text(part.text, encoding="utf-8")
    (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
    return folder


def checked(folder: Path, checker: str, what: str) -> list[str]:
    """Lines with errors that a type checker prints of the programs, or of wrong.py.

    Pyright reads both at once. mypy reads for wrong.py no package that it does not use: which those are says
    the project's own setting, and `UNUSED`; they take most of the time.
    """
    together = (what,) if checker == "mypy" else ("programs", "wrong.py")
    return [
        line for line in printed(folder, checker, *together) if ("wrong.py" in line) == (what == "wrong.py")
    ]


@cache
def printed(folder: Path, checker: str, *what: str) -> list[str]:
    """Lines with errors that a type checker prints of files and folders."""
    python, settings = folder / "env/bin/python", folder / "mypy.ini"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (left_out,) = (part["module"] for part in project["tool"]["mypy"]["overrides"])
    left_out = [*left_out, *(f"{package}.*" for package in UNUSED)]
    skip = f"[mypy-{','.join(left_out)}]\nfollow_imports = skip\n" if what == ("wrong.py",) else ""
    settings.write_text(f"[mypy]\n{skip}", encoding="utf-8")
    anything(folder / "typings", (*FOR_OTHERS, "pyvista/__init__") if checker == "pyright" else FOR_OTHERS)
    how = {
        "mypy": [
            *("--strict", "--config-file", settings),
            *("--python-executable", python, "--cache-dir", folder / checker),
        ],
        "pyright": ["--pythonpath", python],
    }
    program = checker.split()[0]
    done = subprocess.run(
        [sys.executable, "-m", program, *how[program], *what],
        cwd=folder,
        env=os.environ | {"MYPYPATH": "typings"},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "error:" in line or "- error" in line]


def anything(typings: Path, modules: Sequence[str]) -> None:
    """Make all names of these modules Any to the checkers, and of no others."""
    shutil.rmtree(typings, ignore_errors=True)
    for name in modules:
        stub = typings / f"{name}.pyi"  # the folder where pyright looks
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(
            "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n", encoding="utf-8"
        )


@pytest.mark.nightly
@pytest.mark.parametrize("checker", ["pyright", "mypy", PYVISTA_TOO])
def test_programs_of_the_manual_are_typed(programs: Path, checker: str) -> None:
    if checker != "mypy" and not NODE:
        pytest.skip("pyright needs node")
    assert checked(programs, checker, "programs") == []


@pytest.mark.nightly
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_names_are_errors(programs: Path, checker: str) -> None:
    if checker != "mypy" and not NODE:
        pytest.skip("pyright needs node")
    found = checked(programs, checker, "wrong.py")
    assert {int(line.split("wrong.py:")[1].split(":")[0]) for line in found} == MISTAKES, found


def test_keywords_of_a_world_are_its_options() -> None:
    """One is for type checkers, the other is checked at run time."""
    options = {name: field.annotation for name, field in WorldOptions.model_fields.items()}
    assert get_type_hints(WorldKeywords) == {**options, "dt": float | str}
    assert set(get_type_hints(FluidKeywords)) == set(FluidOptions.model_fields)
