"""A system in a file of the user's own: in Python, in a world file, as an entry point."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.cli import main
from ecs_fluid.errors import RecipeError
from ecs_fluid.plugins import is_users
from ecs_fluid.system import System

SWIRL = '''
import ecs_fluid as ef


class Swirl(ef.System):
    """Everything turns about the z axis."""
    reads, adds = ef.Position, ef.Velocity
    phase = "rates"
    spin: float = 1.0  # rad/s

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u[:, 0] -= self.spin * position.x[:, 1]
            velocity.u[:, 1] += self.spin * position.x[:, 0]
'''

WORLD = """
[world]
dt = 0.01
integrator = "rk4"
precision = "double"
debug = true

[[entity]]
kind = "tracers"
name = "dust"
points = [[1.0, 0.0, 0.0], [0.0, -2.0, 5.0]]

[[system]]
kind = "swirl:Swirl"
spin = 2.0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "swirl.py").write_text(SWIRL)
    (tmp_path / "world.toml").write_text(WORLD)
    registry = dict(System.registry)
    yield tmp_path
    sys.modules.pop("swirl", None)
    System.registry.clear()
    System.registry.update(registry)


def turned(angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, sin, 0.0], [2 * sin, -2 * cos, 5.0]])


def test_the_file_is_short() -> None:
    assert len([line for line in SWIRL.splitlines() if line.strip()]) < 15


def test_a_world_file_names_it_by_its_import_path(folder: Path) -> None:
    """After 1 s at 2 rad/s everything has turned by 2 rad; rk4 leaves (2 dt)^4 2/100 < 4e-9."""
    world = ef.load(folder / "world.toml", allow_code=True)
    world.step(100)
    np.testing.assert_allclose(world["dust"][ef.Position].x, turned(2.0), atol=1e-8)
    assert "Swirl" in str(world.schedule)
    assert sys.path[-1] == str(folder)  # last, for what functions of the module import later on


def test_without_leave_no_code_runs(folder: Path) -> None:
    (folder / "swirl.py").write_text("open('ran', 'w')\n" + SWIRL)
    with pytest.raises(RecipeError, match="kind = 'swirl:Swirl' would run your own code; allow it with"):
        ef.load(folder / "world.toml")
    assert "swirl" not in sys.modules


def test_its_parameters_are_checked_in_the_file(folder: Path) -> None:
    path = folder / "world.toml"
    path.write_text(WORLD.replace("spin = 2.0", "spn = 2.0"))
    with pytest.raises(
        RecipeError, match=r"\[\[system\]\] 1 'swirl:Swirl': unknown key 'spn'; did you mean 'spin'?"
    ):
        ef.load(path, allow_code=True)
    path.write_text(WORLD.replace("spin = 2.0", "spin = 'fast'"))
    with pytest.raises(RecipeError, match="spin = 'fast': a number is needed"):
        ef.load(path, allow_code=True)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("swirl:Swril", "module 'swirl' has no 'Swril'"),
        ("swrl:Swirl", "module 'swrl' cannot be imported: No module named 'swrl'"),
        ("math:pi", "'math:pi' is not a subclass of ecs_fluid.System"),
        ("swirl:ef", "'swirl:ef' is not a subclass of ecs_fluid.System"),
        (":Swirl", "':Swirl' does not name a class; write swirl:Swirl"),
        ("swirl:", "'swirl:' does not name a class; write swirl:Swirl"),
    ],
)
def test_paths_that_lead_nowhere(folder: Path, kind: str, words: str) -> None:
    path = folder / "world.toml"
    path.write_text(WORLD.replace("swirl:Swirl", kind))
    with pytest.raises(RecipeError, match=words):
        ef.load(path, allow_code=True)


def test_warnings_of_its_own_are_shown_and_those_of_libraries_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A `warnings.warn` in somebody's system was lost at the command line, and so was a division by zero."""
    said = "        import warnings\n        warnings.warn('too fast')\n"
    (folder / "swirl.py").write_text(SWIRL.replace("float) -> None:\n", f"float) -> None:\n{said}"))
    monkeypatch.chdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        assert main(["run", "world.toml", "--allow-code", "--ticks", "2", "--out", "run"]) == 0
        warnings.warn_explicit("for programmers", UserWarning, np.__file__, 1)
    line = 1 + (folder / "swirl.py").read_text().splitlines().index("        warnings.warn('too fast')")
    err = " ".join(capsys.readouterr().err.split())
    assert f"warning: too fast (line {line} of {folder / 'swirl.py'})" in err and "programmers" not in err


def test_a_module_that_fails_says_how(folder: Path) -> None:
    (folder / "swirl.py").write_text("None.nothing\n")
    with pytest.raises(
        RecipeError, match="module 'swirl' fails: AttributeError: 'NoneType' object"
    ) as caught:
        ef.load(folder / "world.toml", allow_code=True)
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_second_folder_with_a_module_of_the_same_name(folder: Path, tmp_path: Path) -> None:
    """Python keeps one module per name; taking the first world's code for the second would go unnoticed."""
    ef.load(folder / "world.toml", allow_code=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "swirl.py").write_text(SWIRL.replace("-=", "+="))
    (other / "world.toml").write_text(WORLD)
    with pytest.raises(
        RecipeError, match=r"module 'swirl' .* is hidden by .*, which was loaded before; rename"
    ):
        ef.load(other / "world.toml", allow_code=True)
    # The same folder again is no problem.
    ef.load(folder / "world.toml", allow_code=True)


def test_in_python(folder: Path) -> None:
    code = (
        "import ecs_fluid as ef\nfrom swirl import Swirl\n"
        "w = ef.World(dt=0.01, integrator='rk4', precision='double', debug=True)\n"
        "w.spawn('dust', ef.Position([[1.0, 0.0, 0.0]]))\n"
        "w.add_system(Swirl(spin=0.5))\nw.add_system(ef.AdvectionSystem())\nw.step(100)\n"
        "print(*w['dust'][ef.Position].x[0])"
    )
    done = programs.run(programs.written(folder, code), folder=folder)
    assert done.returncode == 0, done.stderr
    found = [float(word) for word in done.stdout.split()]
    assert found == pytest.approx([math.cos(0.5), math.sin(0.5), 0.0], abs=1e-9)


def test_installed_as_an_entry_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installed distribution may offer systems by a plain name, without leave to run code of the file."""
    info = folder / "swirls-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: swirls\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ecs_fluid.systems]\nwhirl = swirl:Swirl\n")
    (folder / "world.toml").write_text(WORLD.replace("swirl:Swirl", "whirl"))
    with pytest.raises(RecipeError, match="kind = 'whirl' is not known"):
        ef.load(folder / "world.toml")
    monkeypatch.syspath_prepend(str(folder))
    world = ef.load(folder / "world.toml")
    world.step(100)
    np.testing.assert_allclose(world["dust"][ef.Position].x, turned(2.0), atol=1e-8)
    assert main(["help"]) == 0
    assert "systems that installed packages offer\n    whirl\n" in capsys.readouterr().out
    assert main(["help", "whril"]) == 2
    assert "did you mean 'whirl'?" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "file",
    [json.__file__, np.__file__, ef.__file__, ef.VelocitySystem.__init__.__code__.co_filename, "<string>"],
)
def test_files_of_others(file: str) -> None:
    assert not is_users(file)


def test_files_in_the_folder_of_an_environment_are_the_users() -> None:
    """``python -m venv .`` makes the folder of a project one: what its systems warned of was left out.

    So it was in a folder whose name begins with that of the environment.
    """
    for prefix in (sys.prefix, sys.base_prefix):
        assert is_users(str(Path(prefix, "swirl.py"))) and is_users(str(Path(f"{prefix}2", "swirl.py")))
