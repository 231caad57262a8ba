"""Imports point one way, and `import ecs_fluid` is light."""

from __future__ import annotations

import ast
import os
import pydoc
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import ecs_fluid
from docs.generator import packages
from docs.generator.packages import FOLDERS, imports, part_of, parts

ROOT = Path(__file__).parents[1]
FILES = parts()


def foreign(module: str) -> str | None:
    top = module.split(".")[0]
    return None if top in sys.stdlib_module_names or top in ("ecs_fluid", "__future__") else top


ALLOWED = {
    "foundation": {"foundation"},
    "kernels": {"kernels"},
    # A stored state names the kernels that computed it.
    "io": {"foundation", "kernels", "io"},
    "components": {"foundation", "components"},
    # The engine reaches kernels (copies, sums, the integrator) and files lazily.
    "engine": {"foundation", "engine", "kernels", "io"},
    "systems": {"foundation", "engine", "components", "systems", "kernels"},
    "worlds": {"foundation", "engine", "components", "systems", "kernels", "worlds"},
    "runs": {"foundation", "engine", "components", "systems", "kernels", "io", "worlds", "runs"},
    "ranks": {"foundation", "engine", "components", "kernels", "io", "runs", "ranks"},
    "exports": {"foundation", "engine", "components", "systems", "io", "runs", "exports"},
    "viz": {"foundation", "engine", "components", "systems", "kernels", "io", "runs", "exports", "viz"},
    "sweeps": {"foundation", "engine", "io", "runs", "worlds", "sweeps"},
    "api": {
        *("foundation", "engine", "components", "systems", "kernels", "io"),
        *("worlds", "runs", "exports", "viz", "api"),
    },
    "cli": {*FOLDERS, "foundation", "engine"},
}


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    checked = 0
    for path in FILES[part]:
        for module, name in imports(path):
            reached = part_of(module, name)
            assert reached is None or reached in ALLOWED[part], f"{path}: {part} imports {module} {name}"
            checked += reached is not None
    assert checked > 0


@pytest.mark.parametrize("name", packages.DRAWINGS)
def test_drawings_of_the_packages_are_those_of_the_imports(name: str) -> None:
    """Also that no imports run in a circle, without which there are no floors to draw."""
    drawn = packages.drawing(packages.DRAWINGS[name]())
    assert (packages.IMAGES / name).read_text(encoding="utf-8") == drawn, "python -m docs.generator.packages"


def test_circles_are_found() -> None:
    with pytest.raises(ValueError, match="in a circle among a, b"):
        packages.floors({"a": {"b"}, "b": {"a"}, "c": set()})


def test_processes_import_nothing_from_where_they_are_started() -> None:
    """There may lie what a stranger sent, modules that are called numpy among it."""
    found = 0
    for path in (path for paths in FILES.values() for path in paths):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "sys.executable" in text else ():
            if isinstance(node, ast.List | ast.Tuple) and node.elts:
                words = [ast.unparse(word) for word in node.elts[:2]]
                if words[0] == "sys.executable":
                    found += 1
                    assert words[1] == "'-P'", path
    assert found == 4


KERNELS_MAY_ALSO = {
    "between_walls.py": {"scipy"},
    "shared_machine_code.py": {"llvmlite"},
    "parallel.py": {"llvmlite"},
    "numba_shortcuts.py": {"llvmlite"},
    "lane_rows.py": {"llvmlite"},
    "lanes.py": {"llvmlite"},
    "wide_vectors.py": {"llvmlite"},
    "convolution.py": {"scipy"},
    "freespace.py": {"scipy"},
    "periodic.py": {"scipy"},
    "regularisation.py": {"scipy"},
}
"""numba's own code generator, for vectors in registers; scipy's Fourier transform and Bessel functions."""


def test_text_files_name_their_encoding() -> None:
    """By default it differs between systems. Ruff finds calls without one, but only as a rule in preview."""
    rule = ("--preview", "--select", "PLW1514", "--output-format", "concise", "--no-cache")
    command = [sys.executable, "-m", "ruff", "check", *rule]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kernels_need_numpy_and_numba_only() -> None:
    for path in FILES["kernels"]:
        found = {foreign(module) for module, _ in imports(path, running_only=False)} - {None}
        assert found <= {"numpy", "numba"} | KERNELS_MAY_ALSO.get(path.name, set()), f"{path}: {found}"


def test_components_hold_no_numerics() -> None:
    for path in FILES["components"]:
        found = {foreign(module) for module, _ in imports(path)} - {None}
        assert found <= {"numpy"}, f"{path}: {found}"


def test_no_module_uses_private_names_of_another() -> None:
    """Across parts of the package; inside kernels and io, files of one part may share helpers."""
    for part in ("systems", "worlds", "viz", "components", "ranks", "sweeps", "cli"):
        for path in FILES[part]:
            for module, name in imports(path, running_only=False):
                private = [word for word in (*module.split("."), name) if word.startswith("_")]
                private = [word for word in private if not word.startswith("__")]
                assert not (part_of(module, name) and private), f"{path} imports {module}.{name}"


def test_only_world_and_system_import_esper() -> None:
    users = {
        path.name
        for paths in FILES.values()
        for path in paths
        if any(foreign(module) == "esper" for module, _ in imports(path, running_only=False))
    }
    assert users == {"contexts.py", "entities.py", "system.py"}


def test_pictures_and_shipped_worlds_are_imported_by_the_command_line_only() -> None:
    for part in ("kernels", "components", "systems", "io", "engine"):
        for path in FILES[part]:
            reached = {part_of(module, name) for module, name in imports(path)}
            assert not reached & {"worlds", "viz", "sweeps", "cli"}, path


PROCESSES = ("processes", "ranks", "OneProcess", "Ranks")


def asks_about_processes(tree: ast.AST) -> Iterator[ast.expr]:
    """Places that ask which processes there are: comparisons, conditions and isinstance."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = [getattr(node, "test", None) or ast.Pass()]
        if isinstance(node, ast.Compare | ast.BoolOp | ast.match_case):
            asked.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked += node.args if node.func.id in ("isinstance", "type", "hasattr", "getattr", "bool") else []
        inner = [one for some in asked for one in ast.walk(some)]
        # What a method of theirs answers may be asked: `processes.appends_new_rows(name)`.
        called = {id(one.value) for one in inner if isinstance(one, ast.Attribute)}
        for one in inner:
            name = getattr(one, "attr", getattr(one, "id", ""))
            if name in PROCESSES and id(one) not in called:
                assert isinstance(one, ast.expr)
                yield one


def test_nobody_asks_whether_there_are_other_processes() -> None:
    """One process is the plain case: the difference is in methods, see `ecs_fluid.one_process`."""
    for text in ("x.ranks is None", "a if processes else b", "if not w.processes: pass", "type(w.processes)"):
        assert len(set(asks_about_processes(ast.parse(text)))) == 1, text
    assert not list(asks_about_processes(ast.parse("if w.processes.appends_new_rows('a'): pass")))
    for part, paths in FILES.items():
        for path in paths if part != "ranks" else ():
            text = path.read_text(encoding="utf-8")
            if any(name in text for name in PROCESSES):
                asked = asks_about_processes(ast.parse(text))
                found = [f"{path}:{node.lineno}: {ast.unparse(node)}" for node in asked]
                assert not found, found
            reached = {part_of(*names) for names in imports(path, running_only=False)}
            assert "ranks" not in reached or part == "cli", f"{path}: the command line starts processes"


def loaded_by(code: str) -> set[str]:
    return set(run_in_python(f"import sys\n{code}\n{LOADED}").split())


def run_in_python(code: str) -> str:
    """What a program prints, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = "print(*sorted({name.split('.')[0] for name in sys.modules}))"

STAGES = f"""
import sys
import ecs_fluid as ef
{LOADED}
w = ef.World(dt=0.1)
w.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
w.add_system(ef.VelocitySystem())
{LOADED}
w = ef.World(dt=0.1)
w.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
w.add_systems([ef.WindSystem(velocity=(1, 0, 0)), ef.AdvectionSystem()])
w.step()
{LOADED}
w = ef.load("vortex_ring")
w.step()
w.diagnostics()
print(*(name for name in ("numba", "scipy", "scipy.spatial", "scipy.linalg", "scipy.fft", "scipy.special")
        if name in sys.modules))
import numba, numpy as np
assert (numba.njit(lambda a: a @ a)(2 * np.eye(2)) == 4 * np.eye(2)).all()
print(numba.threading_layer(), "scipy.linalg" in sys.modules)
"""


@pytest.fixture(scope="module")
def stages() -> list[set[str]]:
    """What one process has loaded after the import, a world, its tick, a first ring; how numba goes on."""
    return [set(line.split()) for line in run_in_python(STAGES).splitlines()]


HEAVY = {
    "numba",
    "llvmlite",
    "pyvista",
    "vtk",
    "vtkmodules",
    "scipy",
    "h5py",
    "matplotlib",
    "rich",
    "cyclopts",
}


def test_import_is_light(stages: list[set[str]]) -> None:
    assert not stages[0] & (HEAVY | {"numpy", "pydantic", "esper"})


def test_without_pyvista_a_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(bytes(84))
    (tmp_path / "mesh.toml").write_text(
        '[[entity]]\nkind = "body"\nname = "rock"\nshape = { shape = "mesh", file = "a.stl" }\n'
    )
    commands = [["show", "vortex_ring", "--save", "a.png"], ["run", "mesh.toml", "--out", "r"]]
    script = f"""
import importlib.util, sys
for name in ("pyvista", "vtkmodules", "matplotlib"):
    sys.modules[name] = None
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "vtkmodules" else find(name, *rest)
from ecs_fluid.cli import main
print([main(command) for command in {commands!r}])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[2, 2]" and not (tmp_path / "r").exists(), done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == 2
    for line in said:
        assert line.endswith(
            "pictures, surfaces and mesh files need PyVista and VTK, which are not installed; install them "
            "with: pip install 'ecs-fluid[view]'"
        )


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ecs_fluid", "show", "nope"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2 and "nope" in done.stderr


def test_an_archive_and_a_clone_without_links_are_told(tmp_path: Path) -> None:
    """Compiled kernels and worlds belong to files; git on Windows makes a text file of a link by default."""
    head = ROOT / "ecs_fluid" / "__init__.py"
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(head, "ecs_fluid/__init__.py")
    (tmp_path / "clone" / "ecs_fluid").mkdir(parents=True)
    shutil.copy(head, tmp_path / "clone" / "ecs_fluid")
    (tmp_path / "clone" / "ecs_fluid" / "worlds").write_text("../worlds", encoding="utf-8")
    for place, sentence in (
        ("all.zip", "does not run from an archive; install it with pip"),
        ("clone", "or install with pip install . without -e"),
    ):
        code = f"import sys; sys.path.insert(0, {str(tmp_path / place)!r}); import ecs_fluid"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith(sentence), done.stderr


def test_making_a_world_is_light_too(stages: list[set[str]]) -> None:
    """Numba comes with the first tick, PyVista with the first picture."""
    assert "numpy" in stages[1] and not stages[1] & HEAVY


def test_numba_waits_for_the_number_of_threads() -> None:
    """What commands import before they set it: numba takes the number when it is loaded."""
    code = (
        "import ecs_fluid.cli.run, ecs_fluid.worlds, ecs_fluid.runs.runner, ecs_fluid.runs.resume, tomli_w\n"
        "from ecs_fluid.worlds.world_recipe import read\nread('candle')"
    )
    assert not loaded_by(code) & {"numba", "llvmlite"}


def test_a_tick_loads_no_pictures(stages: list[set[str]]) -> None:
    assert "numba" in stages[2]
    assert not stages[2] & (HEAVY - {"numba", "llvmlite", "scipy"})


def test_the_first_world_needs_nothing_of_scipy(stages: list[set[str]]) -> None:
    """Its spatial and linear algebra take longer to load than the world's ticks; numba asks its version."""
    assert stages[3] == {"numba", "scipy"}


def test_kernels_that_need_linear_algebra_have_it(stages: list[set[str]]) -> None:
    """Scipy is asked for by numba where it compiles a product of matrices."""
    assert "True" in stages[4]


# ------------------------------------------------------------------ public names


def test_every_name_of_the_stub_is_public_and_there_once() -> None:
    """The module reads its names in the stub, where `X as X` is what makes a name public to type checkers."""
    tree = ast.parse((ROOT / "ecs_fluid" / "__init__.pyi").read_text(encoding="utf-8"))
    names = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name
                names.append(alias.name)
    assert len(set(names)) == len(names) > 100
    assert names == list(ecs_fluid._HOME)
    for name in names:
        assert getattr(ecs_fluid, name) is not None
    assert set(names) <= set(dir(ecs_fluid))


def test_help_of_the_package_is_a_map() -> None:
    """`help(ecs_fluid)` fits on two screens; with all classes in it, it would have 19,000 lines."""
    lines = pydoc.plain(pydoc.render_doc(ecs_fluid)).splitlines()
    assert len(lines) < 120 and any("make a world: `load`" in line for line in lines)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'ecs_fluid' has no attribute 'Vorton'"):
        ecs_fluid.Vorton  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.skipif(
    any(name.startswith("NUMBA_THREADING_LAYER") for name in os.environ), reason="chosen outside"
)
def test_threads_are_those_of_openmp(stages: list[set[str]]) -> None:
    """Also where a libtbb lies on the machine: with it, numba's processes hang when they end."""
    assert "omp" in stages[4]
