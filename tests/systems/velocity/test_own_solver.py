"""The solvers of docs/solvers_of_your_own.md, in an empty folder: no line of the package knows of them."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, ClassVar, get_args

import numpy as np
import pytest
import pyvista as pv

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.cli import main
from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.systems.velocity.solver import SHIPPED
from ecs_fluid.worlds.schema import schema

PAGE = (Path(__file__).parents[3] / "docs" / "solvers_of_your_own.md").read_text(encoding="utf-8")
FLOOR = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)[0]
WORLD = dedent(re.findall(r"\n((?:    .*\n|\n)*    \[world\]\n(?:    .*\n|\n)*)", PAGE)[0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "floor.py").write_text(FLOOR)
    (tmp_path / "ring.toml").write_text(WORLD)
    monkeypatch.chdir(tmp_path)
    registry = dict(ef.Solver.registry)
    yield tmp_path
    sys.modules.pop("floor", None)
    ef.Solver.registry.clear()
    ef.Solver.registry.update(registry)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The page's file, imported once, so that its loop is compiled once for all tests that ask for it."""
    path = tmp_path_factory.mktemp("page") / "floor.py"
    path.write_text(FLOOR)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path.parent))
        patch.setattr(ef.Solver, "registry", dict(ef.Solver.registry))
        importlib.import_module("floor")
    return sys.modules.pop("floor")


@pytest.fixture
def defined(folder: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `import floor` does in a program of the user's."""
    monkeypatch.setitem(sys.modules, "floor", module)
    ef.Solver.registry["floor"] = ef.Solver.registry["floor:FloorSolver"] = module.FloorSolver


def rings(heights: tuple[float, ...] = (0.2,), precision: Any = "double", **velocity: Any) -> ef.World:
    """Rings of random blobs above z = -0.4, and where asked for below it as mirror images, and tracers."""
    draw = np.random.default_rng(4)
    x, alpha, sigma = draw.normal(size=(60, 3)), draw.normal(size=(60, 3)), draw.uniform(0.2, 0.4, 60)
    x[:, 2] = np.abs(x[:, 2]) - 0.4
    world = ef.World(dt=0.01, precision=precision, integrator="rk4")
    world.spawn("above", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    if len(heights) > 1:
        mirror = np.array([1.0, 1.0, -1.0])
        below = x * mirror + [0.0, 0.0, -0.8]
        world.spawn("below", ef.Position(below), ef.Strength(-mirror * alpha), ef.CoreRadius(sigma))
    world.spawn("tracers", ef.Position(draw.normal(size=(20, 3))))
    world.add_systems([ef.VelocitySystem(**velocity), ef.StretchSystem(), ef.AdvectionSystem()])
    return world


def test_it_is_short() -> None:
    assert len(FLOOR.splitlines()) < 60


def off(found: Array, exact: Array) -> float:
    """Largest difference over the largest value."""
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize(
    ("precision", "rounding"), [("double", 1e-12), pytest.param("single", 1e-4, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("asked", [{}, {"tracers": "solver"}, {"at": "grid"}])
def test_it_is_the_direct_sum_over_vortons_and_images(
    precision: str, rounding: float, asked: dict[str, Any]
) -> None:
    """Velocities and gradients, after a tick of four stages too: those of a world that holds the images."""
    world = rings(precision=precision, solver="floor", height=-0.4, **asked)
    both = rings((0.2, -1.0), precision, **asked)
    if asked.get("at") != "grid":  # the images make the grid of `both` another one
        for one in (world, both):
            one.step()
        for kind, column in ((ef.Position, "x"), (ef.Velocity, "u"), (ef.VelocityGradient, "du")):
            found, exact = (getattr(one["above"][kind], column) for one in (world, both))
            assert off(found, exact) < rounding
        if asked:
            assert off(world["tracers"][ef.Velocity].u, both["tracers"][ef.Velocity].u) < rounding
    else:
        world.evaluate()
        field, grid = world.fluid[ef.VelocityField].u, world.fluid[ef.Grid]
        corner = grid.origin[None, :]
        assert off(field[0, 0, 0], both.velocity(corner)[0]) < rounding
    points = np.random.default_rng(1).normal(size=(9, 3))
    assert off(world.velocity(points), both.velocity(points)) < rounding


@pytest.mark.usefixtures("defined")
def test_nothing_flows_through_the_floor() -> None:
    """Also where another world asks it, with its own parameters left as they are: 100 m below is no floor."""
    points = np.random.default_rng(2).normal(size=(50, 3)) * [1.0, 1.0, 0.0] - [0.0, 0.0, 0.4]
    u = rings(solver="floor", height=-0.4).velocity(points)
    assert np.abs(u[:, 2]).max() < 1e-14 * 60
    assert np.abs(u).max() > 0.1
    plain = rings()
    # 60 images at 200 m, each of at most |alpha| / (4 pi r^2) = 7e-6 m/s.
    assert np.abs(plain.velocity(points, "floor") - plain.velocity(points)).max() < 60 * 7e-6


def final(folder: Path) -> tuple[str, Array]:
    """State hash, and heights of the ring's vortons, at the end of a run."""
    world = ef.resume(RunFolder.open(folder).newest_checkpoint().path, allow_code=True)
    return world.state_hash(), world["ring"][ef.Position].x[:, 2]


def test_by_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ring goes down at 0.4 m/s: 1.2 m in 90 frames, but not through a floor at -0.6 m. And resumed."""
    assert main(["run", "ring.toml"]) == 2
    assert "solver = 'floor:FloorSolver' would run your own code; allow it with" in capsys.readouterr().err
    run = ["run", "ring.toml", "--allow-code", "--ticks", "90", "--out", "whole"]
    done = programs.run(programs.command(folder), *run, folder=folder)
    assert done.returncode == 0, done.stderr
    picture = ["show", "whole", "--what", "slice", "--size", "64", "36", "--save", "slice.png"]
    assert main(picture) == 2
    assert main([*picture, "--allow-code"]) == 0
    assert main(["run", "ring.toml", "--allow-code", "--ticks", "9", "--out", "part"]) == 0
    assert main(["resume", "part", "--allow-code", "--ticks", "90"]) == 0
    assert final(folder / "part")[0] == final(folder / "whole")[0]
    assert final(folder / "whole")[1].min() > -0.6
    far = ["--set", "fluid.velocity.height=-100", "--ticks", "90", "--out", "far"]
    assert main(["run", "ring.toml", "--allow-code", *far]) == 0
    assert final(folder / "far")[1].max() < -0.6


def test_in_the_table_of_solvers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Images of the thick ring 200 m away; what is left is float32, added up one by one: measured 2e-6."""
    words = ["--sizes", "300", "--no-calibrate", "--solver", "floor:FloorSolver"]
    assert main(["bench", "velocity", *words]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    errors = {line[1]: float(line[-3]) for line in lines if line[0] == "300"}
    assert list(errors) == ["direct", "tree", "fmm", "pppm", "poisson", "hybrid", "auto", "floor"]
    assert 0.0 < errors["floor"] < 1e-5


def test_offered_by_an_installed_package(
    folder: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "floor", module)  # whose loop is compiled
    info = folder / "floors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: floors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ecs_fluid.solvers]\nground = floor:FloorSolver\n")
    (folder / "ring.toml").write_text(WORLD.replace("floor:FloorSolver", "ground"))
    with pytest.raises(FluidError, match="solver = 'ground' is not known"):
        ef.load("ring.toml")
    monkeypatch.syspath_prepend(str(folder))
    world = ef.load("ring.toml")
    u = world.velocity([[0.5, 0.1, -0.6], [0.2, 0.3, -0.6]])
    assert np.abs(u[:, 2]).max() < 1e-6 < 0.01 < np.abs(u[:, 0]).min()


def test_what_a_class_lacks_is_said(folder: Path) -> None:
    class EmptySolver(ef.Solver):
        """Of a test."""

    class NeedySolver(ef.Solver):
        """Of a test."""

        period: float

    with pytest.raises(FluidError, match=r"EmptySolver has no prepare\(self, sources, grid\) method"):
        rings().velocity(np.zeros((1, 3)), "empty")
    with pytest.raises(FluidError, match="VelocitySystem: 'period' is missing"):
        ef.VelocitySystem(solver="needy")
    with pytest.raises(FluidError, match="solver = 'needy' needs its parameter 'period'; give both to"):
        rings().velocity(np.zeros((1, 3)), "needy")


def test_what_shipped_solvers_add_is_told() -> None:
    """Editors (help and reference by the same model) know it, described."""
    told = schema()["properties"]["fluid"]["properties"]["velocity"]["properties"]
    for name in get_args(SHIPPED):
        for key in ef.Solver.registry[name].Parameters.model_fields:
            assert told[key]["description"], key
    assert told["resolution"]["description"] == "container: cells of the grid per mean core radius, 1"


def test_editors_accept_the_parameters_of_a_solver() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema_of_files = jsonschema.Draft202012Validator(schema())
    assert schema_of_files.is_valid(tomllib.loads(WORLD))
    for wrong in ({"height": -0.6}, {"solver": "fmm", "height": -0.6}, {"tolerence": 1e-3}):
        assert not schema_of_files.is_valid({"fluid": {"velocity": wrong}}), wrong
    assert schema_of_files.is_valid({"fluid": {"velocity": {"solver": "fmm", "resolution": 2.0}}})


@pytest.mark.usefixtures("defined")
def test_parameters_go_with_their_solver() -> None:
    """Checked when they are set; gone with the solver that has them."""
    system = ef.VelocitySystem(solver="floor", height=-0.4)
    with pytest.raises(FluidError, match="height = 'low'"):
        system.height = "low"
    system.height = -0.5
    assert system.parameters.model_dump()["height"] == -0.5
    system.solver = "direct"
    assert "height" not in system.parameters.model_dump()
    with pytest.raises(FluidError, match="unknown key 'height'"):
        ef.VelocitySystem(solver="tree", height=-0.4)


def test_wrong_names_and_parameters_are_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, said in (
        ("heigth=1", "unknown key 'heigth'; did you mean 'height'?"),
        ("height=low", "height = 'low': a number is needed"),
        ("solver=floor:Floor", "module 'floor' has no 'Floor'"),
        ("solver=flor:FloorSolver", "module 'flor' cannot be imported: No module named 'flor'"),
        ("solver=math:pi", "'math:pi' is not a subclass of ecs_fluid.Solver"),
        ("solver=tre", "solver = 'tre' is not known; did you mean 'tree'?"),
    ):
        assert main(["validate", "ring.toml", "--allow-code", "--set", f"fluid.velocity.{wrong}"]) == 2
        error = capsys.readouterr().err
        assert said in error and "[fluid] velocity" in error
        assert len(error.strip().splitlines()) == 1
    sentence = "VelocitySystem: solver = 'hybird' is not known; did you mean 'hybrid'?"
    with pytest.raises(FluidError, match=re.escape(sentence)):
        ef.VelocitySystem(solver="hybird")
    with pytest.raises(FluidError, match=r"solver = 'tee' is not known; did you mean 'tree'"):
        rings().velocity(np.zeros((1, 3)), "tee")


def test_a_field_of_its_own_needs_no_vortons(folder: Path) -> None:
    class ShearSolver(ef.Solver):
        own_field = True

        def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None:
            pass

        def fill(self, targets: ef.Targets) -> None:
            targets.u[:] = targets.x[:, [2]] * [1.0, 0.0, 0.0]
            if targets.du is not None:
                targets.du[:] = np.outer([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])

    world = ef.World(dt=0.5, debug=True)
    world.spawn("dust", ef.Position([[0.0, 0.0, 2.0]]))
    world.add_systems([ef.VelocitySystem.with_solver(ShearSolver), ef.AdvectionSystem()])
    assert world.lint() == []
    world.step()
    assert world["dust"][ef.Position].x[0].tolist() == [1.0, 0.0, 2.0]
    sampled = world.sample(pv.PolyData([[0.0, 0.0, 3.0]]))
    assert sampled["velocity"].tolist() == [[3.0, 0.0, 0.0]]
    assert sampled["vorticity"].tolist() == [[0.0, 1.0, 0.0]]


class Stirrer(ef.Component):
    """How fast the fluid turns about a particle."""

    rate: ef.Array = ef.column("1/s", default=0.0)


class StirringSolver(ef.Solver):
    """Solid rotation about particles: it needs no vortons, but what particles carry."""

    own_field = True
    reads = (ef.Position, Stirrer)
    moments: ClassVar[set[float]] = set()

    def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None:
        self.moments.add(self.system.world.time)
        tables = list(self.system.query(ef.Position, Stirrer))
        self.places = [(position.x.copy(), stirrer.rate.copy()) for position, stirrer in tables]

    def fill(self, targets: ef.Targets) -> None:
        targets.u[:] = 0.0
        for x, rate in self.places:
            arm = targets.x[:, None] - x
            targets.u[:, 0] -= (rate * arm[:, :, 1]).sum(axis=1)
            targets.u[:, 1] += (rate * arm[:, :, 0]).sum(axis=1)


def test_flow_of_a_stored_frame_has_what_the_solver_reads(folder: Path) -> None:
    here = StirringSolver.__module__
    spoon = {"kind": "tracers", "name": "spoon", "points": [[0.0, 0.0, 0.0]]}
    spoon["component"] = [{"kind": f"{here}:Stirrer", "rate": 2.0}]
    table = {
        "world": {"dt": 0.1, "duration": 0.1},
        "fluid": {"velocity": {"solver": f"{here}:StirringSolver"}},
        "entity": [spoon, {"kind": "tracers", "name": "dust", "points": [[1.0, 0.0, 0.0]]}],
    }
    ef.Solver.registry[f"{here}:StirringSolver"] = StirringSolver
    run = ef.run(table, out=folder / "stirred", progress=False)
    assert run[0].flow.velocity([[1.0, 0.0, 0.0]]).tolist() == [[0.0, 2.0, 0.0]]
    StirringSolver.moments.clear()
    with warnings.catch_warnings(record=True) as said:
        run.show(what="slice", normal="z", save=folder / "a.png", size=(80, 60))
        assert StirringSolver.moments == {0.1}  # it may depend on the time, so pictures ask at the frame's
        run.movie(folder / "b%d.png", what="slice", normal="z", size=(80, 60))
        assert StirringSolver.moments == {0.0, 0.1}
        world = ef.load(table)
        world.show(what="streamlines", save=folder / "c.png", size=(80, 60))
    assert [str(one.message) for one in said if "flow of vortons" in str(one.message)] == []


def test_flow_of_a_stored_frame_is_that_in_the_container(folder: Path) -> None:
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.0, 1.0, 1.0]}}
    tank["center"] = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [0.5, 0.0, 0.0]]]}
    ring = {"kind": "vortex_ring", "name": "ring", "radius": 0.2, "core": 0.1, "spacing": 0.06}
    table = {
        "world": {"dt": 0.01, "duration": 0.02},
        "fluid": {"velocity": {"solver": "container"}},
        "entity": [tank, ring],
    }
    world, places = ef.load(table), [[0.1, 0.0, 0.0], [0.0, 0.2, 0.1]]
    run = ef.run(world, out=folder / "tank", progress=False)
    np.testing.assert_allclose(run[-1].flow.velocity(places), world.velocity(places), atol=1e-6)


@pytest.mark.usefixtures("folder")
def test_a_solver_with_images_gives_the_sums_of_pairs() -> None:
    """E = 1/2 sum alpha . psi, with psi = (1, 2, 3) everywhere; and the gradient that it tells."""

    class Imaged(ef.Solver):
        has_images = True

        def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None:
            """Nothing to keep."""

        def fill(self, targets: ef.Targets) -> None:
            targets.u[...] = 0.0
            if targets.du is not None:
                targets.du[...] = 0.0

        def pair_fields(self, x: Array) -> Any:
            return np.tile([1.0, 2.0, 3.0], (len(x), 1)), 0 * x, 0 * x, np.full((len(x), 3, 3), 4.0)

    world = rings(solver="imaged")
    found, alpha = world.diagnostics(), world["above"][ef.Strength].alpha
    assert found["energy"] == pytest.approx(0.5 * (alpha @ [1.0, 2.0, 3.0]).sum(), rel=1e-12)
    assert found["dt_grad_u"] == pytest.approx(0.01 * 12.0)  # the Frobenius norm of nine fours
