"""World files: overrides, presets, round trips and hints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import RecipeError
from ecs_fluid.recipe import entity_recipe
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world_files import read_tables
from ecs_fluid.worlds.overrides import override
from ecs_fluid.worlds.schema import schema
from ecs_fluid.worlds.world_recipe import SHIPPED, WorldRecipe, read
from ecs_fluid.worlds.world_tables import PRESETS

RING = {"kind": "vortex_ring", "name": "ring", "spacing": 0.5, "core": 0.75}


def tables() -> dict[str, Any]:
    return {
        "world": {"dt": 0.1},
        "fluid": {"velocity": {"solver": "direct"}},
        "entity": [dict(RING), {"kind": "vortex_ring", "name": "other"}],
        "system": [{"kind": "remesh"}, {"kind": "wind", "velocity": [0.0, 0.0, 1.0]}],
    }


# ------------------------------------------------------------------ --set


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("world.dt=0.01", ("world", "dt"), 0.01),
        ("world.dt = 1e-3 ", ("world", "dt"), 1e-3),
        ("world.integrator=rk3", ("world", "integrator"), "rk3"),
        ('world.integrator="rk3"', ("world", "integrator"), "rk3"),
        ("world.debug=true", ("world", "debug"), True),
        ("fluid.velocity.solver=tree", ("fluid", "velocity", "solver"), "tree"),
        ("fluid.stretch.rate=0.5", ("fluid", "stretch", "rate"), 0.5),
        (
            "fluid.velocity={solver='tree', angle=0.3}",
            ("fluid", "velocity"),
            {"solver": "tree", "angle": 0.3},
        ),
        ("ring.radius=2", ("entity", 0, "radius"), 2),
        ("other.axis=[0, 1, 0]", ("entity", 1, "axis"), [0, 1, 0]),
        ("entity.1.core=0.1", ("entity", 1, "core"), 0.1),
        ("system.wind.velocity.z=2", ("system", 1, "velocity", 2), 2),
        ("system.sph.stride=0.25", ("system", 2), {"kind": "sph", "stride": 0.25}),
        ("output.every=5", ("output", "every"), 5),
        ("preset=article", ("preset",), "article"),
        ("ring.name=a=b", ("entity", 0, "name"), "a=b"),
        ("other.axis=[0, 1", ("entity", 1, "axis"), "[0, 1"),
    ],
)
def test_override(assignment: str, path: tuple[Any, ...], value: Any) -> None:
    changed = tables()
    override(changed, assignment)
    found: Any = changed
    for part in path:
        found = found[part]
    assert found == value
    assert type(found) is type(value)


def test_override_changes_nothing_else() -> None:
    changed = tables()
    override(changed, "ring.radius=2")
    del changed["entity"][0]["radius"]
    assert changed == tables()


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("world.dt", "path=value is needed, one string per value, for example"),
        ("=3", "path=value is needed"),
        ("world..dt=3", "path=value is needed"),
        ("rnig.radius=3", "'rnig' is neither a table nor an entity; did you mean 'ring'?"),
        ("core=3", "'core' belongs to is missing; write ring.core="),
        ("viscosity=3", r"'viscosity' belongs to is missing; write fluid.viscosity="),
        ("glow=3", r"'glow' belongs to is missing; write NAME.glow="),
        ("entity.2.core=1", "'2' is none of the items there; known: 0 "),
        ("entity.x.core=1", "'x' is none of the items there; known: 0 "),
        ("entity.-1.core=1", "'-1' is none of the items there"),
        ("entity.2=1", "'2' is none of the items there; known: 0 "),
        ("world.dt.more=1", "world.dt is a value, not a table"),
        ("system.2.rate=1", r"'2' is none of the items there; known: 0 \(remesh\), 1 \(wind\)"),
        ("ring.axis.z=1", r"'axis' is not written in the file.*set all of it, ring.axis=\[\.\.\.\]"),
        ("system.drag.flow.x=1", "'flow' is not written in the file"),
        ("system.wind.velocity.w=1", r"'w' is none of the items there; known: 0 \(x\), 1 \(y\), 2 \(z\)"),
    ],
)
def test_override_refuses(assignment: str, words: str) -> None:
    with pytest.raises(RecipeError, match=rf"setting '{assignment}'.*{words}"):
        override(tables(), assignment)


def test_a_setting_of_a_system_of_fluid_is_told_its_path() -> None:
    """`--set system.velocity...`, as for other systems, is the first that one tries."""
    with pytest.raises(
        RecipeError, match=r"belongs in the \[fluid\] table; .*, or set fluid.velocity.NAME=VALUE"
    ):
        read("vortex_ring", ("system.velocity.solver=tree",))
    assert read("vortex_ring", ("fluid.velocity.solver=tree",)).fluid.velocity["solver"] == "tree"


@pytest.mark.parametrize("first", ["entity=5", "entity=[1, 2]", "entity=[{name=3}]"])
def test_override_after_an_override_that_broke_the_entities(first: str) -> None:
    broken = tables()
    override(broken, first)
    with pytest.raises(RecipeError, match="'ring' is neither a table nor an entity"):
        override(broken, "ring.radius=2")


def test_a_system_that_comes_by_itself_is_set_as_if_it_were_listed() -> None:
    """Where it stands among the others, and what entities ask of it, stay."""
    own, world = ef.load("falling_drop"), ef.load("falling_drop", "system.sph.stride=0.25")
    assert [type(system) for system in world.systems] == [type(system) for system in own.systems]
    changed = own.require(ef.SphSystem).parameters.model_dump() | {"stride": 0.25}
    assert world.require(ef.SphSystem).parameters.model_dump() == changed
    with pytest.raises(RecipeError, match=r"'sphx'.*did you mean 'sph'"):
        ef.load("falling_drop", "system.sphx.stride=0.25")


def test_a_system_listed_by_its_import_path_goes_by_its_kind_too() -> None:
    """So that it is not listed a second time, as one that comes by itself."""
    listed = {"system": [{"kind": "remesh"}, {"kind": "my.module:TwoFansSystem", "spin": 1}]}
    override(listed, "system.two_fans.spin=3")
    override(listed, "system.remesh.every=4")
    assert listed["system"] == [
        {"kind": "remesh", "every": 4},
        {"kind": "my.module:TwoFansSystem", "spin": 3},
    ]


def test_overrides_reach_the_world() -> None:
    world = ef.load("vortex_ring", "world.dt=0.125", "ring.circulation=-2", "world.precision=double")
    assert (world.dt, world.dtype) == (0.125, np.float64)
    assert world.recipe is not None
    assert world.recipe["entity"][0]["circulation"] == -2.0
    with pytest.raises(RecipeError, match=r"'ring': unknown key 'radus'; did you mean 'radius'?"):
        ef.load("vortex_ring", "ring.radus=1")


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[world\n", "not valid TOML"),
        ("a.toml", "a = " + "1" * 5000, "not valid TOML"),
        ("a.toml", "a = " + "[" * 100_000, "nested too deeply"),
        ("a.json", "{", "not valid JSON"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"a": ' + "1" * 5000 + "}", "not valid JSON"),
        ("a.json", '{"world": {"dt": 0.1, "dt": 0.2}}', "the key 'dt' appears twice in a table"),
        (
            "a.toml",
            "[world]\ndt = 0.1\ndt = 0.2\n",
            "a key appears twice (at line 3",
        ),
        (
            "a.toml",
            "[world]\n[world]\n",
            "the table [world] appears twice (at",
        ),
        ("a.toml", "[a.b]\n[a.b]\n", "the table [a.b] appears twice (at"),
        ("a.json", "[]", "a table of tables is needed, not list"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RecipeError, match=re.escape(words)):
        read_tables(tmp_path / name)


def test_not_text_missing_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match="it is not UTF-8 text"):
        ef.load(tmp_path / "a.toml")
    with pytest.raises(
        RecipeError, match="there is no world 'vortex_rin', and no such file; did you mean 'vor"
    ):
        ef.load("vortex_rin")
    with pytest.raises(RecipeError, match="is a folder; a world file"):
        ef.load(tmp_path)
    # Any name of a file, however unlike the names of other worlds.
    (tmp_path / "s08.toml").write_text("[world]")
    with pytest.raises(RecipeError, match=r"no such file; did you mean '.*s08\.toml'\?$"):
        ef.load(tmp_path / "s08")


def test_toml_json_and_python_give_the_same_world(tmp_path: Path) -> None:
    toml = (
        '[world]\ndt = 0.1\n\n[[entity]]\nkind = "vortex_ring"\nname = "ring"\nspacing = 0.5\ncore = 0.75\n'
    )
    (tmp_path / "a.toml").write_text(toml)
    (tmp_path / "a.json").write_text(json.dumps({"world": {"dt": 0.1}, "entity": [RING]}))
    from ecs_fluid.worlds import VortexRing

    ring = VortexRing(name="ring", spacing=0.5, core=0.75)
    worlds = [
        ef.load(tmp_path / "a.toml"),
        ef.load(str(tmp_path / "a.json")),
        ef.load(ef.WorldRecipe(world={"dt": 0.1}, entity=[ring])),
        ef.load(ef.WorldRecipe(world={"dt": 0.1}, entity=[RING])),
    ]
    assert len({world.state_hash() for world in worlds}) == 1
    assert len({json.dumps(world.recipe, sort_keys=True) for world in worlds}) == 1
    assert len(worlds[0]["ring"]) == 13  # ceil(2 pi 1 m / 0.5 m)


# ------------------------------------------------------------------ the whole recipe

FULL = {
    "preset": "article",
    "world": {"dt": 0.05, "duration": 2.0, "seed": 7},
    "fluid": {
        "viscosity": 0.01,
        "diffusion": {"rate": 0.02},
        "velocity": {"mollify": 1.0},
        "diagnostics": {"every": 5},
    },
    "entity": [
        RING,
        {"kind": "tracers", "name": "smoke", "fills": "ring", "per_cell": 8},
        {
            "kind": "emitter",
            "name": "torch",
            "into": "sparks",
            "population": "inertial",
            "rate": {"keys": [[0.0, 0.0], [1.0, 50.0]]},
        },
    ],
    "system": [
        {"kind": "wind", "velocity": [1.0, 0.0, 0.0], "on": ["smoke"]},
        {"kind": "age_limit", "seconds": 0.5, "on": ["sparks"]},
    ],
    "output": {"every": 2},
}


@pytest.mark.parametrize("source", [{}, tables(), FULL], ids=["empty", "small", "full"])
def test_tables_and_back(source: dict[str, Any]) -> None:
    first = WorldRecipe.from_tables(source)
    second = WorldRecipe.from_tables(first.tables())
    assert second == first
    assert second.tables() == first.tables()
    assert json.loads(json.dumps(first.tables())) == first.tables()
    assert second.build().state_hash() == first.build().state_hash()


def test_reading_does_not_change_the_tables() -> None:
    source = json.loads(json.dumps(FULL))
    WorldRecipe.from_tables(source).build()
    assert source == FULL


def test_a_world_from_its_own_record_is_the_same_world() -> None:
    world = WorldRecipe.from_tables(FULL).build()
    assert world.recipe is not None
    again = WorldRecipe.from_tables(world.recipe).build()
    assert again.state_hash() == world.state_hash()
    assert [repr(system) for system in again.systems] == [repr(system) for system in world.systems]


def test_shipped_recipes_survive_the_round_trip() -> None:
    for name in ("vortex_ring", "wind_fountain", "leapfrog"):
        recipe = read(name)
        assert WorldRecipe.from_tables(recipe.tables(), folder=SHIPPED.resolve()) == recipe


def parameters(world: ef.World, kind: type[ef.System]) -> dict[str, Any]:
    system = world.system(kind)
    assert system is not None
    return dict(system.parameters)


def test_preset_article() -> None:
    """Half-rate stretching, grid velocity by the nested-grid tree, Euler; the file has the last word."""
    world = WorldRecipe.from_tables(FULL).build()
    velocity = parameters(world, ef.VelocitySystem)
    assert (velocity["solver"], velocity["at"], velocity["opening"]) == ("tree", "grid", "box")
    assert (velocity["kernel"], velocity["leaf"]) == ("rankine", "supervortons")
    assert velocity["mollify"] == 1.0  # the file's own, over the preset's 2
    assert parameters(world, ef.StretchSystem)["rate"] == 0.5
    assert parameters(world, ef.DiffusionSystem)["method"] == "index_space"
    assert parameters(world, ef.DiffusionSystem)["rate"] == 0.02
    assert world.fluid[ef.Fluid].viscosity == 0.01
    assert world.options.integrator == "euler"
    physical = WorldRecipe.from_tables({**FULL, "preset": "physical", "fluid": {"viscosity": 0.01}}).build()
    assert parameters(physical, ef.StretchSystem)["rate"] == 1.0
    assert physical.options.integrator == "rk2"
    over = WorldRecipe.from_tables({"preset": "article", "world": {"integrator": "rk4"}, "entity": [RING]})
    assert over.build().options.integrator == "rk4"
    assert PRESETS["article"]["world"] == {"integrator": "euler"}  # merging left the preset alone


def test_no_viscosity_no_diffusion() -> None:
    world = WorldRecipe.from_tables({"entity": [RING]}).build()
    assert world.system(ef.DiffusionSystem) is None


@pytest.mark.parametrize(
    ("duration", "dt", "ticks"), [(1.0, 0.1, 10), (1.05, 0.1, 11), (0.01, 0.1, 1), (8.0, 1 / 30, 240)]
)
def test_ticks(duration: float, dt: float, ticks: int) -> None:
    assert WorldRecipe.from_tables({"world": {"duration": duration, "dt": dt}}).ticks == ticks


@pytest.mark.parametrize(
    ("world", "settings", "dt", "every"),
    [
        ({"dt": "1/60"}, (), 1 / 60, 1),
        ({"dt": "0.5/ 3e1"}, (), 1 / 60, 1),
        ({"fps": 25}, (), 1 / 25, 1),
        ({"fps": 25, "steps_per_frame": 2}, (), 1 / 50, 2),
        ({"fps": 25, "dt": "1/25"}, (), 1 / 25, 1),
        ({"fps": 25, "steps_per_frame": 2}, ("world.dt=1/60",), 1 / 60, 2),
        ({"fps": 25, "steps_per_frame": 2}, ("world.steps_per_frame=3",), 1 / 75, 3),
        ({"fps": 25, "steps_per_frame": 2}, ("output.every=5",), 1 / 50, 5),
        ({"dt": 0.01}, ("world.fps=30",), 1 / 30, 1),
    ],
)
def test_clock(world: dict[str, Any], settings: tuple[str, ...], dt: float, every: int) -> None:
    """dt as a quotient or from frames per second; what is set later takes the place of the file's."""
    source = {**tables(), "world": dict(world)}
    for setting in settings:
        override(source, setting)
    recipe = WorldRecipe.from_tables(source)
    made = recipe.build()
    assert (made.dt, recipe.every) == (dt, every)
    assert WorldRecipe.from_tables(made.recipe or {}) == recipe
    assert json.loads(json.dumps(recipe.tables())) == recipe.tables()
    if not settings:
        assert WorldRecipe(world=world, entity=[RING]).build().dt == dt


def test_a_stored_world_takes_other_steps_per_frame_like_its_file() -> None:
    stored = WorldRecipe.from_tables({**tables(), "world": {"fps": 30, "steps_per_frame": 2}}).tables()
    override(stored, "world.steps_per_frame=4")
    assert WorldRecipe.from_tables(stored).build().dt == 1 / 120


def test_schema_takes_both_forms_of_dt() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    for dt, allowed in ((0.01, True), ("1/60", True), (-1, False), ("sixty", False)):
        errors = list(validator.iter_errors({**tables(), "world": {"dt": dt}}))
        assert (not errors) == allowed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"world": {"dt": 0.02, "fps": 25}},
            r"world: \[world\]: dt = 0.02 s, but fps = 25 and steps_per_frame = 1 make it 0.04 s; "
            "give dt or fps, not both",
        ),
        ({"world": {"fps": 0}}, r"\[world\]: fps = 0; a number at least 1e-09 is needed"),
        ({"world": {"fps": "film"}}, r"\[world\]: fps = 'film': a number is needed"),
        ({"world": {"fps": 25, "steps_per_frame": 0}}, "steps_per_frame = 0; a number at least 1 is needed"),
        ({"world": {"dt": "1/-60"}}, r"\[world\]: dt = '1/-60': a number, or a quotient of two positive"),
        ({"wrold": {}}, "unknown table 'wrold'; did you mean 'world'?"),
        ({"preset": "articl"}, "preset = 'articl'; allowed: 'physical', 'article'"),
        ({"preset": ["article"]}, "preset = "),
        ({"world": {"dtt": 1}}, r"\[world\]: unknown key 'dtt'; did you mean 'dt'?"),
        ({"fluid": {"velocty": {}}}, r"\[fluid\]: unknown key 'velocty'; did you mean 'velocity'?"),
        (
            {"fluid": {"velocity": {"slover": "tree"}}},
            r"\[fluid\] velocity: unknown key 'slover'; did you mean",
        ),
        ({"fluid": {"diffusion": {"viscosity": 1.0}}}, r"viscosity belongs in \[fluid\] itself"),
        ({"entity": {"kind": "vortex_ring"}}, r"\[entity\] is one table; write \[\[entity\]\]"),
        (
            {"entity": [{"kind": "vortex_rng"}]},
            r"\[\[entity\]\] 1: kind = 'vortex_rng' is not known; did you mean",
        ),
        *(
            (
                {"entity": [{"kind": "body", "name": "a", "shape": {"shape": word}}]},
                f"'{word}' is not known; did you mean '{own}'",
            )
            for word, own in (("polytope", "points"), ("cuboid", "box"), ("disk", "ball"))
        ),
        (
            {"entity": [{"kind": "body", "name": "a", "shape": {"shape": "ball", "size": 1}}]},
            "unknown key 'shape.size'; did you mean 'radius'?",
        ),
        ({"entity": [{"name": "a"}]}, r"\[\[entity\]\] 1: 'kind' is missing; known: "),
        ({"entity": [{"kind": ["tracers"]}]}, r"kind = \['tracers'\] is not known"),
        ({"entity": ["ring"]}, r"\[\[entity\]\] 1: 'ring'; a table with a 'kind' is needed"),
        ({"entity": [RING, RING]}, "name = 'ring' is taken"),
        ({"entity": [{**RING, "name": "fluid"}]}, "name = 'fluid' is taken"),
        ({"entity": [RING, {**RING, "name": "Ring"}]}, "name = 'Ring' differs from 'ring' in small"),
        ({"entity": [{**RING, "name": "aux"}]}, "name = 'aux' is a device on Windows"),
        ({"entity": [{**RING, "name": "a b"}]}, "name = 'a b'"),
        ({"system": [{"kind": "wnd"}]}, r"\[\[system\]\] 1: kind = 'wnd' is not known; did you mean 'wind'?"),
        ({"system": [{"kind": "my.magnet.Magnet"}]}, "a class of yours is written 'my.magnet:Magnet'"),
        ({"system": [{"kind": "wind"}]}, r"\[\[system\]\] 1 'wind': 'velocity' is missing"),
        ({"system": [{"kind": "wind", "velocity": [1, 2, 3], "n": 1}]}, "unknown key 'n'"),
        ({"system": [{"kind": "velocity"}]}, r"belongs in the \[fluid\] table; write velocity = "),
        ({"system": [{"kind": "gravity"}]}, "kind = 'gravity' is no system, but a number of the fluid; give"),
        ({"system": [{"kind": "surface", "level": 310}]}, "unknown key 'level'; did you mean 'inside'?"),
        ({"system": [{"kind": "turbulence", "rms": 1}]}, "unknown key 'rms'; did you mean 'speed'?"),
        ({"system": [{"velocity": [1, 2, 3]}]}, r"\[\[system\]\] 1: 'kind' is missing; known: "),
        ({"world": {"duration": 1e9}}, "at most 10 million are allowed"),
        ({"fluid": {"velocity": {"kernel": b"x"}}}, r"velocity: kernel = b'x': text is needed, not bytes"),
        ({"entity": [{**RING, "color": b"red"}]}, r"color = b'red': text is needed, not bytes"),
        ({"entity": [{**RING, 1: "red"}]}, r"\[\[entity\]\] 1 'ring': 1 is not a key; text is needed"),
    ],
)
def test_mistakes(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        WorldRecipe.from_tables({**tables(), **changes})


def test_a_class_derived_from_a_shipped_recipe_takes_no_kind_away() -> None:
    """Its own kind is its import path, and a shipped recipe still goes by its own."""
    from ecs_fluid.worlds import VortexRing

    class Wider(VortexRing):
        """A ring whose core is wider."""

    assert Wider.kind.endswith(
        "test_recipe:test_a_class_derived_from_a_shipped_recipe_takes_no_kind_away.<locals>.Wider"
    )
    assert type(entity_recipe(RING, "here")) is VortexRing
    assert Wider(name="a").table()["kind"] == Wider.kind


@pytest.mark.parametrize(
    ("name", "hint"),
    [("rign", "did you mean 'ring'?"), ("zzz", "known: ring, smoke"), ("smok", "did you mean 'smoke'?")],
)
def test_nearest(name: str, hint: str) -> None:
    assert nearest(name, ["smoke", "ring"]) == hint
    assert nearest(name, []) == "there are none"
