"""The files of docs/recipes.md, run from an empty directory by the command line as a user would."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.worlds.schema import schema
from ecs_fluid.worlds.world_recipe import WorldRecipe
from tests.resuming import resumed

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
CODE, WORLD = (re.search(rf"```{kind}\n(.*?)```", PAGE, flags=re.S) for kind in ("python", "toml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert CODE is not None and WORLD is not None
    (tmp_path / "charged.py").write_text(CODE[1])
    (tmp_path / "charged.toml").write_text(WORLD[1])
    return tmp_path


def fluid(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run(programs.command(folder), *arguments, folder=folder)


def columns(folder: Path, frame: int) -> dict[str, dict[str, np.ndarray]]:
    from ecs_fluid.io.trajectory import Trajectory

    stored = Trajectory(folder / "run" / "trajectory")
    return stored.frame(range(len(stored))[frame])


def test_the_file_is_as_short_as_the_manual_says() -> None:
    assert CODE is not None
    assert sum(bool(line.strip()) for line in CODE[1].splitlines()) < 40


def test_droplets_fall_as_their_charge_says_also_after_a_resume(folder: Path) -> None:
    """Constant acceleration a = q E: v = v_0 + a t and x = x_0 + v_0 t + a t^2/2, which rk2 meets exactly."""
    whole = fluid(folder, "run", "charged.toml", "--allow-code", "--out", "run", "--ticks", "30")
    assert whole.returncode == 0, whole.stderr
    done = fluid(folder, "resume", "run", "--allow-code", "--ticks", "50")
    assert done.returncode == 0, done.stderr
    first, last = columns(folder, 0), columns(folder, -1)
    for name, charge, v in (("cloud", 2e-3, 0.0), ("dust", np.array([1e-3, -1e-3]), 1.0)):
        a, t = charge * 500.0, 0.5
        moved = last[name]["Position.x"] - first[name]["Position.x"]
        np.testing.assert_allclose(moved[:, 2], 0.5 * a * t**2, atol=1e-12)
        np.testing.assert_allclose(moved[:, 1], v * t, atol=1e-12)
        np.testing.assert_allclose(last[name]["InertialVelocity.v"][:, 2], a * t, atol=1e-12)


def test_an_own_velocity_moves_whoever_asked_for_it() -> None:
    """x = v t of tracers with the component by name: nobody has to know of the system that moves them."""
    tracers = {"kind": "tracers", "name": "dust", "points": [[0.1 * i, 0.0, 0.0] for i in range(8)]}
    tracers["component"] = [{"kind": "InertialVelocity", "v": [1.0, 2.0, 3.0]}]
    world = WorldRecipe.from_tables(
        {"world": {"dt": 0.1, "precision": "double"}, "entity": [tracers]}
    ).build()
    start = world["dust"][ef.Position].x.copy()
    world.step(2)
    np.testing.assert_allclose(world["dust"][ef.Position].x - start, [[0.2, 0.4, 0.6]] * 8, rtol=1e-12)


def test_the_schedule_shows_one_field_with_its_equation(folder: Path) -> None:
    done = fluid(folder, "worlds", "charged.toml", "--schedule", "--allow-code")
    assert done.returncode == 0, done.stderr
    lines = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()]
    assert [line for line in lines if "ElectricField" in line] == [
        ["rates", "ElectricField", "Electric force on droplets: dv/dt = (q/m) E"]
    ]
    assert done.stdout.startswith("a tick of charged.toml, 0.01 s, prepare and rates 2 times:")


MISTAKES = [
    ("charge = 2e-3", "chrge = 2e-3", "[[entity]] 1 'cloud': unknown key 'chrge'; did you mean 'charge'?"),
    ("count = 50", "count = 0", "[[entity]] 1 'cloud': count = 0; a number at least 1 is needed"),
    ("charged:Cloud", "charged:Clod", "[[entity]] 1: module 'charged' has no 'Clod'"),
    (
        "charged:Cloud",
        "charged:ElectricField",
        "'charged:ElectricField' is not a subclass of ecs_fluid.Recipe",
    ),
    ("charged:Cloud", "chraged:Cloud", "module 'chraged' cannot be imported: No module named 'chraged'"),
    (
        "q = [1e-3, -1e-3]",
        "Q = 1e-3",
        "[[entity]] 2 'dust': [[entity.component]] 2 'charged:SpecificCharge': unknown column 'Q'; known: q",
    ),
    (
        "q = [1e-3, -1e-3]",
        "",
        "[[entity.component]] 2 'charged:SpecificCharge': the column 'q' is missing (unit C/kg)",
    ),
    (
        "q = [1e-3, -1e-3]",
        "q = [1e-3, -1e-3, 0.0]",
        "[[entity]] 'dust': [[entity.component]] 2 'charged:SpecificCharge': q has length 3, "
        "but 'dust' has 2 rows; one value for all rows or 2 are needed",
    ),
    (
        "v = [0.0, 1.0, 0.0]",
        "v = [0.0, 1.0]",
        "'dust': [[entity.component]] 1: InertialVelocity.v has shape (2,); shape (n, 3) is needed",
    ),
    ('"InertialVelocity"', '"HullShape"', "kind = 'HullShape' is not known; known: Age, CoreRadius, Density"),
]
"""What stands in the world file, what is written in its place, and what `validate` says."""

ALL = """
import contextlib, io, json, pathlib, sys
from ecs_fluid.cli import err, main
text, said = pathlib.Path("charged.toml").read_text(), []
for old, new, _ in json.loads(sys.argv[1]):
    pathlib.Path("wrong.toml").write_text(text.replace(old, new))
    with err.capture() as captured:
        code = main(["validate", "wrong.toml", "--allow-code"])
    said.append([old in text, code, captured.get()])
print(json.dumps(said))
"""


def test_a_mistake_is_one_sentence(folder: Path) -> None:
    """All in one process, since starting it takes longer than they do."""
    done = programs.run(programs.written(folder, ALL), json.dumps(MISTAKES), folder=folder)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for (_, _, sentence), (there, code, text) in zip(MISTAKES, said, strict=True):
        assert there and code == 2
        assert sentence in text and len(text.splitlines()) == 1, text


@pytest.mark.parametrize("place", ["entity", "component"])
def test_without_leave_nothing_is_imported(folder: Path, place: str) -> None:
    text = (folder / "charged.toml").read_text()
    if place == "component":
        text = re.sub(r'\[\[entity\]\]\nkind = "charged:Cloud".*?\n\n', "", text, flags=re.S)
    (folder / "charged.toml").write_text(text)
    (folder / "charged.py").write_text("open('ran', 'w')\n" + (folder / "charged.py").read_text())
    done = fluid(folder, "validate", "charged.toml")
    assert done.returncode == 2
    assert "would run your own code; allow it with --allow-code" in done.stderr
    assert not (folder / "ran").exists()


def test_offered_by_an_installed_package_they_need_no_leave(folder: Path) -> None:
    info = folder / "charged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: charged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ecs_fluid.recipes]\ncharged_cloud = charged:Cloud\n"
        "[ecs_fluid.components]\nspecific_charge = charged:SpecificCharge\n"
        "[ecs_fluid.systems]\nelectric_field = charged:ElectricField\n"
    )
    names = {"Cloud": "charged_cloud", "SpecificCharge": "specific_charge", "ElectricField": "electric_field"}
    text = (folder / "charged.toml").read_text()
    for name, short in names.items():
        text = text.replace(f"charged:{name}", short)
    (folder / "charged.toml").write_text(text)
    code = (
        "import sys, json, ecs_fluid as ef\nsys.path.insert(0, '.')\n"
        "world = ef.load('charged.toml')\nworld.step(10)\n"
        "again = ef.WorldRecipe.from_tables(json.loads(json.dumps(world.recipe))).build()\nagain.step(10)\n"
        "print(world.state_hash() == again.state_hash(), world.recipe['entity'][0]['kind'])"
    )
    done = programs.run(programs.written(folder, code), folder=folder)
    assert done.stdout.split() == ["True", "charged_cloud"], done.stderr


def test_the_schema_takes_import_paths_and_still_refuses_misspellings(folder: Path) -> None:
    import tomllib

    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(json.dumps(schema())))
    assert WORLD is not None
    tables = tomllib.loads(WORLD[1])
    validator.validate(tables)
    for kind in ("tracer", "charged"):
        tables["entity"][1]["kind"] = kind
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(tables)


def built(**entity: object) -> ef.World:
    ring = {"kind": "vortex_ring", "name": "ring", "spacing": 0.5, "core": 0.75, **entity}
    return ef.WorldRecipe(entity=(ring,)).build()


def test_what_particles_carry_goes_by_its_name() -> None:
    """A hot ring; 13 = ceil(2 pi 1 m / 0.5 m) blobs."""
    world = built(component=[{"kind": "Temperature", "T": 350.0}, {"kind": "Age"}])
    np.testing.assert_array_equal(world["ring"][ef.Temperature].T, np.full(13, 350.0))
    np.testing.assert_array_equal(world["ring"][ef.Age].t, np.zeros(13))
    assert world.recipe is not None
    assert world.recipe["entity"][0]["component"] == [{"kind": "Temperature", "T": 350.0}, {"kind": "Age"}]
    assert ef.WorldRecipe.from_tables(world.recipe).build().state_hash() == world.state_hash()


def test_an_entity_without_further_components_stores_none() -> None:
    world = built()
    assert world.recipe is not None and "component" not in world.recipe["entity"][0]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"kind": "Temperature", "T": -5.0}, "Temperature.T row 0 is -5.0; values"),
        ({"kind": "Temperature", "T": "hot"}, "Temperature.T holds ['hot'] of dtype <U3; float32, "),
        ({"kind": "Temperature", "T": [[1.0], [2.0, 3.0]]}, "Temperature.T needs an array of numbers"),
        ({"kind": "Strength", "alpha": [0.0, 0.0, 1.0]}, "entity 'ring' already has a Strength"),
        ({"kind": "Velocity", "u": [0.0, 0.0, 1.0]}, "kind = 'Velocity' is not known"),
        ({"kind": "InertialVelocity", "v": 3.0}, "InertialVelocity.v has shape (); shape (n, 3) is needed"),
        (
            {"kind": "ecs_fluid.components:HullShape", "hull": 3, "container": 0},
            "kind = 'ecs_fluid.components:HullShape' can be made by recipes and systems only; known: Age, ",
        ),
        ({"T": 1.0}, "[[entity.component]] 1: 'kind' is missing; known: Age, CoreRadius"),
    ],
)
def test_values_that_a_component_refuses(table: dict[str, object], sentence: str) -> None:
    with pytest.raises(ef.FluidError) as error:
        built(component=[table])
    assert sentence in str(error.value)


def test_an_emitter_gives_them_to_its_population() -> None:
    """20 particles a second for 0.15 s are 3; rows emitted later get the column's default."""
    world = ef.WorldRecipe(
        world={"dt": 0.05},
        entity=(
            {"kind": "emitter", "name": "tap", "into": "smoke", "rate": 20.0, "component": [{"kind": "Age"}]},
        ),
    ).build()
    world.step(3)
    assert len(world["smoke"]) == 3
    assert ef.Age in world["smoke"] and ef.Age not in world["tap"]


def jet(*components: dict[str, object], name: str = "jet") -> dict[str, object]:
    return {"kind": "emitter", "name": name, "into": "dye", "rate": 60.0, "component": list(components)}


def test_what_an_emitter_gives_its_particles(tmp_path: Path) -> None:
    """One particle a tick of 1/60 s, each of the age that the table says, also after a resume."""
    tables = {"world": {"dt": "1/60"}, "entity": [jet({"kind": "Age", "t": 2.5})]}
    world = ef.WorldRecipe.from_tables(tables).build()
    world.step(3)
    resumed(world, tmp_path, 3)
    np.testing.assert_array_equal(world["dye"][ef.Age].t, np.full(6, 2.5))
    plain = ef.WorldRecipe.from_tables({**tables, "entity": [jet({"kind": "Age"})]}).build()
    plain.step(2)
    np.testing.assert_array_equal(plain["dye"][ef.Age].t, np.zeros(2))


def test_two_emitters_into_one_entity() -> None:
    """Each particle has what its own emitter gives; one that gives nothing leaves the default, 0.

    Each gives off one in each half of a tick.
    """
    jets = [jet({"kind": "Age", "t": 1.0}), jet({"kind": "Age", "t": 2.0}, name="other"), jet(name="plain")]
    world = ef.WorldRecipe(entity=jets).build()
    world.step()
    np.testing.assert_array_equal(world["dye"][ef.Age].t, np.tile([1.0, 2.0, 0.0], 2))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"kind": "Age", "t": [1.0, 2.0]}, "t has length 2, but 'dye' begins with 0 rows; one value for all"),
        ({"kind": "Temperature", "T": 400.0}, "sets Temperature by its own parameters; use those"),
    ],
)
def test_what_an_emitter_cannot_give(table: dict[str, object], sentence: str) -> None:
    with pytest.raises(ef.RecipeError, match=r"^\[\[entity\]\] 'jet': ") as error:
        ef.WorldRecipe(entity=[jet(table)]).build()
    assert sentence in str(error.value)
