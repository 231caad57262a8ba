"""The package as users get it: wheel and sdist, in an empty environment of every supported Python."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROBE = """
import sys
import ecs_fluid as ef
ef.World, ef.load, ef.VelocitySystem
assert not [name for name in sys.modules if name.startswith(("vtk", "pyvista", "matplotlib"))]
"""


def interpreter(version: str) -> str:
    """Path of that Python; pyenv's shims stand for versions that may not be chosen, so they are asked."""
    homes = [Path.home() / ".pyenv/versions", Path("/root/.pyenv/versions")]
    found = [str(path) for home in homes for path in sorted(home.glob(f"{version}.*/bin/python3"))]
    for candidate in (*found, shutil.which(f"python{version}")):
        if (
            candidate
            and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return candidate
    pytest.skip(f"there is no python{version} on this machine")


def copied_tree(folder: Path) -> None:
    """Copy what the package is built from, whether or not the tree is one of git's."""
    folder.mkdir()
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("ecs_fluid", "systems", "components", "worlds", "viz"):
        unwanted = shutil.ignore_patterns("__pycache__")  # links stay links: setuptools follows them
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=unwanted)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by `python -m build`, the wheel from the sdist, from what the package is built from."""
    folder = tmp_path_factory.mktemp("build")
    copied_tree(folder / "tree")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env/bin/python"
    subprocess.run([python, "-m", "pip", "-q", "install", "build"], check=True)
    subprocess.run(
        [python, "-m", "build", "-o", folder / "dist", folder / "tree"], check=True, capture_output=True
    )
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        packed = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 2}
    assert packed == {"ecs_fluid", "systems", "components", "worlds", "viz", "ecs_fluid.egg-info"}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    distribution = wheel.name.removesuffix("-py3-none-any.whl")
    assert {name.partition("/")[0] for name in names} == {"ecs_fluid", f"{distribution}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]
    return wheel


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_wheel_runs_the_main_job(wheel: Path, version: str, tmp_path: Path) -> None:
    """From wheels alone, without a compiler: the ring runs without VTK on the disk, and is drawn with it."""
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "env"], check=True)
    tools = tmp_path / "env/bin"
    empty = {"HOME": str(tmp_path), "CC": "/bin/false", "CXX": "/bin/false", "PATH": f"{tools}:/usr/bin:/bin"}
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "PYTHON", "ECS"))
    } | empty
    how = {"env": environment, "cwd": tmp_path, "check": True, "capture_output": True, "text": True}
    subprocess.run([tools / "pip", "-q", "install", "--only-binary", ":all:", wheel], **how)
    subprocess.run([tools / "ecs-fluid", "run", "vortex_ring", "--ticks", "20", "--out", "ring"], **how)
    assert not list((tmp_path / "env").glob("lib/python*/site-packages/vtk*"))
    subprocess.run([tools / "pip", "-q", "install", "--only-binary", ":all:", f"{wheel}[view]"], **how)
    subprocess.run([tools / "ecs-fluid", "show", "ring", "--save", "ring.png"], **how)
    assert (tmp_path / "ring.png").stat().st_size > 20_000
    subprocess.run([tools / "python", "-c", PROBE], **how)


@pytest.mark.nightly
def test_the_oldest_libraries_that_are_allowed(tmp_path: Path) -> None:
    """Commands, files and pictures do as tested with the lower bound of each library that is asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = itertools.chain(project["dependencies"], *project["optional-dependencies"].values())
    oldest = [name.replace(">=", "==").replace(";", ".*;") for name in named if ">=" in name]
    oldest = [name if ";" in name else f"{name}.*" for name in oldest]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    tools = tmp_path / "env/bin"
    subprocess.run([tools / "pip", "-q", "install", *oldest, "-e", ROOT], check=True)
    tests = ["tests/api", "tests/cli", "tests/exports", "tests/io", "tests/viz", "tests/kernels/compiled"]
    command = [tools / "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"HOME": str(tmp_path)}, check=False)
    assert done.returncode == 0
