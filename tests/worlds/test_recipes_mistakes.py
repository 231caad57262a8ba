"""Every bad parameter gives one sentence that names the entity, the key, the value and what is allowed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

import ecs_fluid as ef
import ecs_fluid.worlds
from ecs_fluid.errors import RecipeError
from ecs_fluid.recipe import Recipe, entity_recipe
from ecs_fluid.worlds.world_recipe import WorldRecipe

SHIPPED = sorted(kind for kind, model in Recipe.registry.items() if "ecs_fluid.worlds" in model.__module__)

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "vortex_ring", "radius": -1.0}, "radius = -1.0"),
    ({"kind": "vortex_ring", "radius": 0.0}, "radius = 0.0"),
    ({"kind": "vortex_ring", "radius": float("nan")}, "radius = nan"),
    ({"kind": "vortex_ring", "radius": "big"}, "radius = 'big'"),
    ({"kind": "vortex_ring", "radius": 0.1}, "core 0.2 m is larger than radius 0.1 m"),
    ({"kind": "vortex_ring", "raduis": 1.0}, "did you mean 'radius'"),
    ({"kind": "vortex_ring", "profile": "fat"}, "profile = 'fat'; allowed: 'thin', 'gaussian'"),
    ({"kind": "vortex_ring", "profile": "gaussian", "core": 0.6}, "a core of at most"),
    ({"kind": "vortex_ring", "profile": "gaussian", "spacing": 0.2}, "use a finer spacing"),
    ({"kind": "vortex_ring", "axis": [0, 0, 0]}, "not zero"),
    ({"kind": "vortex_ring", "axis": [0, 1]}, "axis = [0, 1]; a list of 3 numbers is needed"),
    ({"kind": "vortex_ring", "axis": []}, "axis = []; a list of 3 numbers is needed"),
    ({"kind": "vortex_ring", "axis": [0, 1, 2, 3]}, "axis = [0, 1, 2, 3]; a list of 3 numbers is needed"),
    ({"kind": "vortex_ring", "axis": "z"}, "axis = 'z'; a list of 3 numbers is needed"),
    (
        {"kind": "inflow", "into": "a", "center": [0, 0, 0], "size": [0.2]},
        "size = [0.2]; a list of 2 numbers",
    ),
    (
        {"kind": "inflow", "into": "a", "center": [0, 0, 0], "speed": [[0.0, 1.0]]},
        "speed = [[0.0, 1.0]]; a number, or { keys = [[time, value], ...] }, is needed",
    ),
    (
        {"kind": "body", "shape": {"shape": "ball", "radius": 1}, "center": 3.0},
        "center = 3.0; a list of 3 numbers, or { keys = [[time, value], ...] }, is needed",
    ),
    ({"kind": "body", "shape": {"shape": "box", "size": [1, 2]}}, "shape.size = [1, 2]; a list of 3 numbers"),
    ({"kind": "vortex_ring", "center": [0, 0, 1e9]}, "center"),
    ({"kind": "vortex_ring", "amplitude": 0.1}, "both amplitude and wavenumber"),
    ({"kind": "vortex_ring", "wavenumber": 3}, "both amplitude and wavenumber"),
    ({"kind": "vortex_ring", "amplitude": 2.0, "wavenumber": 3}, "reaches the axis"),
    ({"kind": "vortex_ring", "wavenumber": 2.5}, "wavenumber = 2.5"),
    ({"kind": "vortex_ring", "overlap": 0.0}, "overlap = 0.0"),
    ({"kind": "jet_ring", "thickness": 0}, "thickness = 0"),
    ({"kind": "jet_ring", "half_length": -1}, "half_length = -1"),
    ({"kind": "vortex_tube", "length": 0}, "length = 0"),
    ({"kind": "vortex_tube", "variation": -0.1}, "variation = -0.1"),
    ({"kind": "vortex_tube", "wavelength": 100.0}, "far longer than the tube"),
    ({"kind": "vortex_curve", "x": "cos(s)"}, "unknown name 's'"),
    ({"kind": "vortex_sheet", "variation_wavelength": 1.0}, "variation is zero"),
    ({"kind": "vortex_sheet", "ripple_wavelength": 1.0}, "ripple is zero"),
    ({"kind": "noise_box", "size": [1, 0, 0]}, "at most one size may be 0"),
    ({"kind": "noise_box", "size": [1, -1, 1]}, "size.1 = -1"),
    ({"kind": "hill_vortex", "spacing": 2.0}, "larger than the radius"),
    ({"kind": "vortons_from_velocity"}, "a velocity is needed"),
    ({"kind": "vortons_from_velocity", "ux": "import os"}, "is not a formula"),
    ({"kind": "vortons_from_velocity", "ux": "q"}, "unknown name 'q'"),
    ({"kind": "vortons_from_velocity", "ux": "y", "high": [1, 1, -2]}, "must lie above low"),
    ({"kind": "vortons_from_velocity", "ux": "y", "file": "u.npz"}, "cannot be given together with file"),
    ({"kind": "vortons_from_velocity", "ux": "y", "threshold": 1.0}, "threshold = 1.0"),
    ({"kind": "vortons_from_arrays"}, "'file' is missing"),
    ({"kind": "vortons_from_arrays", "file": "a.csv", "core": 0}, "core = 0"),
    ({"kind": "tracers"}, "none given; exactly one of fills, box"),
    ({"kind": "tracers", "fills": "a", "points": [[0, 0, 0]]}, "fills and points given"),
    ({"kind": "tracers", "sphere": {"radius": 1.0}}, "sphere needs 'cell'"),
    ({"kind": "tracers", "sphere": {"radius": -1.0}, "cell": 1}, "sphere.radius = -1.0"),
    ({"kind": "tracers", "box": {"low": [0, 0, 0], "high": [1, 1, -1]}, "cell": 1}, "lies below low"),
    ({"kind": "tracers", "line": {"start": [0, 0, 0], "end": [0, 0, 0], "count": 3}}, "different points"),
    ({"kind": "tracers", "line": {"start": [0, 0, 0], "end": [0, 0, 1], "count": 1}}, "line.count = 1"),
    (
        {
            "kind": "tracers",
            "plane": {"corner": [0, 0, 0], "first": [1, 0, 0], "second": [2, 0, 0], "counts": [2, 2]},
        },
        "parallel",
    ),
    ({"kind": "tracers", "points": []}, "points"),
    ({"kind": "tracers", "fills": "a", "per_cell": 0}, "per_cell = 0"),
    ({"kind": "tracers", "fills": "a", "jitter": 1.5}, "jitter = 1.5"),
    ({"kind": "emitter"}, "'into' is missing"),
    ({"kind": "emitter", "into": "a", "rate": -1.0}, "rate = -1.0"),
    ({"kind": "emitter", "into": "a", "rate": {"keys": [[0, 1], [1, -2]]}}, "rate = -2.0"),
    ({"kind": "emitter", "into": "a", "start": 2.0, "stop": 1.0}, "must be after start"),
    ({"kind": "emitter", "into": "a", "velocity": [0, 0, 1]}, "velocity is for population = 'inertial'"),
    ({"kind": "emitter", "into": "a", "core": 0.2}, "core is for population = 'vortons'"),
    ({"kind": "emitter", "into": "a b"}, "into = 'a b'"),
    (
        {"kind": "emitter", "into": "a", "center": {"keys": [[0, 1, 0, 0]]}},
        "each key is a pair: [time, value]",
    ),
    ({"kind": "emitter", "into": "a", "center": "0, 0, 1"}, "a list is needed, written [0, 0, 1]"),
    ({"kind": "body", "shape": {"shape": "sphere", "radius": 0.1}}, "did you mean 'ball'?"),
    (
        {"kind": "body", "shape": {"shape": "platonic", "radius": 0.1}},
        "did you mean 'tetrahedron' or 'octahedron' or 'cube' or 'dodecahedron' or 'icosahedron'?",
    ),
    ({"kind": "body", "shape": {"shape": "PlateShape"}}, "did you mean 'plate'?"),
    ({"kind": "inflow", "radius": 0.1}, "unknown key 'radius'; did you mean 'size'?"),
    ({"kind": "body", "radius": 0.1}, "unknown key 'radius'; did you mean 'shape'?"),
    ({"kind": "container", "size": [1, 1, 1]}, "unknown key 'size'; did you mean 'shape'?"),
    (
        {"kind": "emitter", "into": "a", "position": [0, 0, 1]},
        "unknown key 'position'; did you mean 'center'?",
    ),
    ({"kind": "emitter", "into": "a", "shape": "cone"}, "shape = 'cone'"),
    ({"kind": "emitter", "into": "a", "shape": "disc", "spread": [0, 1, 1]}, "a disc lies across z: give 0"),
]


@pytest.mark.parametrize(("table", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistake_gives_one_sentence(table: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError) as caught:
        entity_recipe({"name": "thing", **table}, "[[entity]] 1")
    text = str(caught.value)
    assert words in text
    assert text.startswith("[[entity]] 1 'thing': ") and "\n" not in text and len(text) < 300


def test_a_system_of_the_fluid_is_sent_there() -> None:
    with pytest.raises(RecipeError, match=r"1: kind = 'partition' belongs in the \[fluid\] table; write"):
        WorldRecipe.from_tables({"system": [{"kind": "partition", "cells": 8}]})


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "vortex_ring", "spacing": 1e-6, "core": 0.2, "profile": "uniform"},
        {"kind": "vortex_ring", "radius": 1e6, "spacing": 1e-2},
        {"kind": "jet_ring", "spacing": 1e-5},
        {"kind": "vortex_tube", "spacing": 1e-5},
        {"kind": "vortex_curve", "spacing": 1e-5},
        {"kind": "vortex_sheet", "spacing": 1e-5},
        {"kind": "noise_box", "spacing": 1e-5},
        {"kind": "hill_vortex", "spacing": 1e-5},
        {"kind": "vortons_from_velocity", "ux": "y", "spacing": 1e-5},
        {"kind": "tracers", "sphere": {"radius": 1.0}, "cell": 1e-5},
        {"kind": "tracers", "slab": {"size": 1.0}, "cell": 1e-6},
    ],
    ids=lambda table: str(table["kind"]),
)
def test_too_many_particles_are_refused_before_memory_is_taken(table: dict[str, Any]) -> None:
    from ecs_fluid.world import World

    recipe = entity_recipe({"name": "thing", **table}, "[[entity]] 1")
    with pytest.raises(RecipeError, match=r"of about .* GB are allowed, use a") as caught:
        recipe.build(World())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        # The sentence of design.md section 4.
        (
            {"kind": "vortex_ring", "spacing": 0.3},
            "spacing 0.3 m with core 0.2 m: overlap 0.67 < 1.5, the ring will be noisy and its speed off; "
            "use spacing <= 0.133 m",
        ),
        ({"kind": "vortex_ring", "profile": "uniform", "overlap": 1.0}, "overlap 1.00 < 1.5"),
        ({"kind": "vortex_ring", "profile": "uniform", "spacing": 0.15}, "widen the core"),
        ({"kind": "vortex_ring", "amplitude": 0.1, "wavenumber": 20}, "blobs per wave < 8"),
        ({"kind": "jet_ring", "spacing": 0.5}, "blobs across the shear layer"),
        ({"kind": "vortex_tube", "amplitude": 0.1, "wavelength": 0.3}, "blobs per wave < 8"),
        ({"kind": "vortex_tube", "variation": 0.5}, "swells 2 times"),
        ({"kind": "vortex_sheet", "thickness": 0.05}, "coarser than the thickness"),
        ({"kind": "vortex_sheet", "ripple": 0.1, "ripple_wavelength": 0.5}, "blobs per wave < 8"),
        ({"kind": "noise_box", "overlap": 1.0}, "overlap 1.00 < 1.5"),
        ({"kind": "hill_vortex", "spacing": 0.4}, "cells per radius < 5"),
        ({"kind": "vortons_from_velocity", "ux": "y", "overlap": 1.2}, "overlap 1.20 < 1.5"),
        ({"kind": "emitter", "into": "a", "population": "vortons"}, "no strength"),
    ],
)
def test_coarse_recipe_is_told_what_to_change(table: dict[str, Any], words: str) -> None:
    sentences = entity_recipe({"name": "thing", **table}, "[[entity]] 1").lint()
    assert any(words in text for text in sentences)


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "drops", "drops": [{"radius": 0.3}], "spacing": 0.05},  # 0.3 / 0.05 < 6 in floats
        {"kind": "hill_vortex", "radius": 0.7, "spacing": 0.14},
        {"kind": "liquid", "box": {"low": [0, 0, 0.1], "high": [1, 1, 0.3]}, "spacing": 0.05},
        {"kind": "jet_ring", "thickness": 0.3 * 4 / 3, "half_length": 1, "spacing": 0.1},
    ],
    ids=lambda table: table["kind"],
)
def test_what_is_just_fine_enough_is_not_told(table: dict[str, Any]) -> None:
    assert entity_recipe({"name": "thing", **table}, "[[entity]] 1").lint() == []


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_parameter_is_described_with_its_unit_and_bounded(kind: str) -> None:
    model: type[BaseModel] = Recipe.registry[kind]
    assert model.__doc__ and len(model.__doc__) > 100
    schema = model.model_json_schema()
    for owner in (schema, *schema.get("$defs", {}).values()):
        for key, part in owner["properties"].items():
            if "const" not in part and key not in ("name", "keys", "between"):
                assert "description" in part, f"{kind}.{key} has no description"
            if part.get("type") in ("number", "integer"):
                low = {"minimum", "exclusiveMinimum"} & set(part)
                assert low, f"{kind}.{key} has no range"


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "vortex_ring", "profile": "gaussian", "spacing": 0.1},
        {"kind": "jet_ring"},
        {"kind": "vortex_tube", "variation": 0.2},
        {"kind": "vortex_curve", "z": "0.1*sin(2*t)"},
        {"kind": "vortex_sheet", "ripple": 0.1, "ripple_wavelength": 1.0},
        {"kind": "noise_box"},
        {"kind": "hill_vortex"},
        {"kind": "vortons_from_velocity", "uz": "x*y"},
        {"kind": "vortons_from_velocity", "file": "u.npz"},
        {"kind": "vortons_from_arrays", "file": "a.csv"},
        {"kind": "tracers", "torus": {"radius": 1.0, "core": 0.1}, "cell": 0.1},
        {"kind": "tracers", "points": [[0, 0, 1]]},
        {"kind": "emitter", "into": "a", "rate": {"keys": [[0.0, 1.0], [2.0, 5.0]]}},
    ],
    ids=lambda table: str(table["kind"]),
)
def test_recipe_reads_back_what_a_run_folder_stores(table: dict[str, Any]) -> None:
    recipe = entity_recipe({"name": "thing", **table}, "file")
    assert entity_recipe(json.loads(json.dumps(recipe.table())), "stored") == recipe


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            {"entity": [{"kind": "emitter", "name": "e", "into": "s", "rate": {"keys": [[0, 1], [0, 2]]}}]},
            "rate = { keys = [[0, 1], [0, 2]] }: the times of keys must increase",
        ),
        (
            {"fluid": {"gravity": {"keys": [[0.5, [1.0, 0.0, -9.8]]]}, "density_profile": [[0.0, 1.2]]}},
            "gravity = { keys = [[0.5, [1.0, 0.0, -9.8]]] } is not along z",
        ),
    ],
)
def test_keys_are_quoted_as_they_are_written(tables: dict[str, Any], words: str) -> None:
    """As inline tables of TOML, not as Python's dicts or models."""
    with pytest.raises(RecipeError, match=re.escape(words)):
        WorldRecipe.from_tables(tables)


WARM = {"law": "ideal_gas", "temperature": 300.0}
VENT = {"kind": "emitter", "name": "vent", "into": "gas", "population": "vortons", "temperature": 400.0}
POT = {"kind": "body", "name": "pot", "motion": "fixed", "shape": {"shape": "ball", "radius": 0.1}}
BLOCK = {"kind": "fluid_block", "name": "air", "spacing": 0.5, "box": {"low": [0, 0, 0], "high": [1, 1, 1]}}
RING = {"kind": "vortex_ring", "name": "ring", "radius": 0.5, "core": 0.2, "spacing": 0.2, "circulation": 1.0}
KEYS = {"keys": [[0.0, 300.0], [1.0, 60.0]]}


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        ({"fluid": {"temperature": 20}}, "Fluid.temperature = 20 K"),
        (
            {"fluid": WARM | {"temperature_profile": [[0.0, 300.0], [9.0, 20.0]]}},
            "Fluid.temperature_profile = 20 K",
        ),
        ({"entity": [VENT | {"temperature": 60}]}, "EmissionSystem.emitters['vent'].temperature = 60 K"),
        ({"entity": [VENT | {"temperature": KEYS}]}, "EmissionSystem.emitters['vent'].temperature = 60 K"),
        ({"entity": [POT | {"heat": {"temperature": 20}}]}, "BodyHeat.T of 'pot' = 20 K"),
        ({"entity": [BLOCK | {"temperature": "20 + x - 0.25"}]}, "Temperature.T of 'air' = 20 K"),
        (
            {"entity": [RING | {"component": [{"kind": "Temperature", "T": 20.0}]}]},
            "Temperature.T of 'ring' = 20 K",
        ),
        (
            {"entity": [{"kind": "emitter", "name": "e", "into": "s", "puff": BLOCK | {"temperature": 20}}]},
            "Temperature.T of a puff of emitter 'e' = 20 K",
        ),
        ({"system": [{"kind": "heater", "temperature": 20}]}, "HeaterSystem.temperature = 20 K"),
        ({"system": [{"kind": "heater", "temperature": KEYS}]}, "HeaterSystem.temperature = 60 K"),
        ({"entity": [VENT | {"temperature": 77}], "system": [{"kind": "heater", "temperature": 900}]}, ""),
        ({"system": [{"kind": "surface", "of": "temperature", "inside": 60}]}, "SurfaceSystem.inside = 60 K"),
        ({"system": [{"kind": "surface", "inside": 60}]}, ""),
    ],
)
def test_degrees_celsius_are_noticed(tables: dict[str, Any], place: str) -> None:
    """Whichever way they come: every column and parameter in kelvin is looked at."""
    found = [text for text in WorldRecipe.from_tables(tables).build().lint() if "liquid nitrogen" in text]
    assert len(found) == bool(place) and all(text.startswith(f"{place} is colder") for text in found), found
    degrees = {"20": "20 degrees Celsius are 293.15", "60": "60 degrees Celsius are 333.15"}
    assert not place or found[0].endswith(degrees[place.split()[-2]])


KEYED = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [0.0, -981.0, 0.0]]]}


@pytest.mark.parametrize(
    ("gravity", "told"),
    [
        ([0.0, 0.0, -981.0], "981 m/s^2 is that of the earth in centimetres"),
        ([0.0, -32.174, 0.0], "32.174 m/s^2 is that of the earth in feet"),  # 9.80665 m/s^2 over 0.3048 m
        (KEYED, "in centimetres"),
        ([0.0, 0.0, -9.81], ""),
        ([0.0, 0.0, -100.0], ""),  # a centrifuge
    ],
)
def test_gravity_in_centimetres_or_feet_is_noticed(gravity: Any, told: str) -> None:
    recipe = WorldRecipe.from_tables({"fluid": {"gravity": gravity}, "entity": [VENT]})
    found = [text for text in recipe.build().lint() if "lengths are in metres" in text]
    assert len(found) == bool(told) and all(told in text for text in found)


def test_what_looks_wrong_in_a_recipe_is_told_where_it_is_loaded() -> None:
    """As by `run` and `validate`, at the line of the caller."""
    with pytest.warns(ef.FluidWarning, match="'pot': rotation = .* turns by 90 rad") as said:
        ef.load({"entity": [POT | {"rotation": [0, 0, 90]}]})
    assert len(said) == 1 and said[0].filename == __file__


@pytest.mark.parametrize(
    ("fluid", "model", "told"),
    [
        ({}, "boussinesq", "'air', of 1010 kg/m^3, is pulled down by 840.7 times gravity"),  # 1010/1.2 - 1
        ({"density": 505.0}, "boussinesq", ""),  # by gravity itself
        ({"density": 1000.0}, "boussinesq", ""),
        ({}, "full", ""),
    ],
)
def test_fluid_that_falls_faster_than_a_stone_is_told(fluid: dict[str, Any], model: str, told: str) -> None:
    buoyancy = {"kind": "baroclinic", "model": model}
    tables = {"fluid": fluid, "entity": [BLOCK | {"density": 1010.0}], "system": [buoyancy]}
    said = [text for text in WorldRecipe.from_tables(tables).build().lint() if "pulled down" in text]
    assert len(said) == bool(told) and all(told in text for text in said)


def test_what_comes_after_the_run_is_noticed() -> None:
    """Of emitters, their keys, bodies and systems in a run that ends at 2 s; not what begins by then."""

    def told(entity: dict[str, Any], *system: dict[str, Any]) -> list[str]:
        tables = {"world": {"fps": 25, "duration": 2.0}, "entity": [entity], "system": system}
        return WorldRecipe.from_tables(tables).lint()

    def keyed(*times: float) -> dict[str, Any]:
        return {"keys": [[time, time] for time in times]}

    assert told(VENT | {"start": 24.0}) == [
        "'vent': start = 24 s, but the run ends at 2 s, before it begins; times are in seconds, not in frames"
    ]
    assert told(VENT | {"rate": keyed(0, 24, 48)}) == [
        "'vent': rate has its second key at 24 s, but the run ends at 2 s; "
        "times are in seconds, not in frames"
    ]
    ways = {"keys": [[0, [0, 0, 0]], [50, [1, 0, 0]]]}
    (body,) = told({**POT, "motion": "scripted", "center": ways})
    (wind,) = told(VENT, {"kind": "wind", "velocity": ways})
    assert "'pot': center has its second key at 50 s" in body
    assert "[[system]] 1 'wind': velocity has its second key at 50 s" in wind
    assert told(VENT | {"rate": 0.8, "start": 1.0}) == [
        "'vent': rate adds up to 0.8 by the end of the run at 2 s, so nothing is given off; "
        "the first comes at 1"
    ]
    assert not told(VENT | {"rate": 1.0, "start": 1.0})
    assert not told(VENT | {"start": 0.1, "rate": keyed(0, 1.9, 48)})
    assert not told(VENT | {"rate": keyed(0, 2)}) and not told(VENT | {"rate": keyed(30)})


def test_turns_in_degrees_are_noticed() -> None:
    def told(**table: Any) -> list[str]:
        return WorldRecipe.from_tables({"entity": [block | table]}).lint()

    block: dict[str, Any] = {"kind": "body", "name": "log", "shape": {"shape": "box", "size": [1, 1, 1]}}
    assert told(rotation=[90, 0, 0]) == [
        "'log': rotation = [90.0, 0.0, 0.0] turns by 90 rad; rotations are in radians, "
        "so 90 degrees are 1.571"
    ]
    parts = [{"shape": block["shape"]}, {"shape": block["shape"], "rotation": [0, 0, 45]}]
    assert told(shape={"shape": "compound", "parts": parts})[0].startswith(
        "'log': shape.parts[1].rotation = [0.0, 0.0, 45.0] turns by 45 rad"
    )
    solid = {"shape": block["shape"], "rotation": [0, 45, 0]}
    filled = {"kind": "tracers", "name": "dye", "cell": 0.1, "solid": solid}
    assert (
        "'dye': solid.rotation = [0.0, 45.0, 0.0]" in WorldRecipe.from_tables({"entity": [filled]}).lint()[0]
    )
    # Keys may turn as far as they like, unless all are on the scale of a protractor; also those of scripts.
    keyed = {"keys": [[0.0, [0, 0, 0]], [1.0, [0, 0, 30]]]}
    assert "'log': rotation = a key turns by 30 rad" in told(rotation=keyed, motion="scripted")[0]
    script = {"kind": "body", "scripts": [{"name": "log", "rotation": keyed}]}
    assert WorldRecipe.from_tables({"entity": [block], "system": [script]}).lint() == [
        "[[system]] 1 'body': scripts['log'].rotation = a key turns by 30 rad; rotations are in radians, "
        "so 30 degrees are 0.5236"
    ]
    for fine in ([0, 6.2, 0], {"keys": [[0.0, [0, 0, 0]], [1.0, [0, 0, 100]]]}):
        assert not told(rotation=fine, motion="scripted")


CUBE = {"shape": "box", "size": [1.0, 1.0, 1.0]}


def linted(*systems: dict[str, Any], entities: tuple[dict[str, Any], ...]) -> list[str]:
    return WorldRecipe.from_tables({"entity": entities, "system": systems}).build().lint()


def test_forces_on_bodies_without_free_ones_are_told() -> None:
    """`drag` on inertial particles beside a fixed body did nothing, in silence."""
    body = {"kind": "body", "name": "rock", "shape": CUBE}
    for kind, other in (("drag", "inertia"), ("buoyancy", "baroclinic")):
        for motion in ("fixed", "free"):
            said = linted({"kind": kind}, entities=(body | {"motion": motion},))
            told = [text for text in said if "it is for free bodies, and there are none" in text]
            assert len(told) == (motion == "fixed") and all(f"kind = '{other}'" in text for text in told)


@pytest.mark.parametrize(
    ("center", "told"), [([5.4, 0, 0], False), ([4.6, 0, 1.4], False), ([0, 0, 0], True), ([5, 0, 1.6], True)]
)
def test_a_heater_beside_all_containers_is_told(center: list[float], told: bool) -> None:
    """A room of 1 m around (5, 0, 0), and heaters of 2 m and 1 m: they reach into it, or do not."""
    room = {"kind": "container", "name": "room", "shape": CUBE, "center": [5.0, 0.0, 0.0]}
    air = {"kind": "fluid_block", "name": "air", "spacing": 0.5, "fills": "room", "temperature": 300}
    heater = {"kind": "heater", "temperature": 400, "center": center, "size": [1.0, 1.0, 2.0]}
    said = linted(heater, entities=(room, air))
    assert [f"around {[float(x) for x in center]}, is outside all containers" in text for text in said] == (
        [True] if told else []
    )


@pytest.mark.parametrize(
    ("emitter", "keep", "told"),
    [
        ({"center": [-2.0, 0, 0], "spread": [0.5, 9, 9]}, "inside", True),
        ({"center": [-1.2, 0, 0], "spread": [0.5, 9, 9]}, "inside", False),
        ({"center": [-2.0, 0, 0], "solid": {"shape": CUBE}}, "inside", True),
        ({"center": [-1.2, 0, 0], "solid": {"shape": CUBE}}, "inside", False),
        ({"spread": [0.5, 1, 1]}, "outside", True),
        ({"spread": [0.5, 9, 9]}, "outside", False),
    ],
)
def test_a_kill_box_that_takes_all_births_is_told(emitter: dict[str, Any], keep: str, told: bool) -> None:
    """A box from -1 to 1 m, and regions of birth that reach into it, or out of it, or do not."""
    box = {"kind": "kill_box", "low": [-1, -1, -1], "high": [1, 1, 1], "keep": keep}
    source = {"kind": "emitter", "name": "source", "into": "smoke", **emitter}
    said = "all particles of emitter 'source' are removed in the first tick"
    assert any(said in text for text in linted(box, entities=(source,))) == told


def test_densities_in_grams_are_noticed() -> None:
    """Of bodies, their parts and blocks in water, and of bodies beside liquid; not of bubbles, nor in air."""

    def told(*entities: dict[str, Any], fluid: float = 1.2) -> list[str]:
        return WorldRecipe.from_tables({"fluid": {"density": fluid}, "entity": entities}).lint()

    box = {"shape": "box", "size": [0.1, 0.1, 0.1]}
    stone, water = {"kind": "body", "name": "stone", "shape": box, "density": 2.7}, {"kind": "liquid"}
    water |= {"name": "water", "sphere": {"radius": 1.0}, "spacing": 0.5}
    sentence = (
        "'stone': density = 2.7 kg/m^3 is that of a gas, in a liquid of 1000 kg/m^3; densities are in "
        "kg/m^3, so 2.7 g/cm^3 are 2700"
    )
    assert told(stone, fluid=1000.0) == told(stone, water) == [sentence]
    parts = {"shape": "compound", "parts": [{"shape": box, "density": 7.8}]}
    assert (
        "shape.parts[0].density = 7.8 kg/m^3" in told({**stone, "density": 2700.0, "shape": parts}, water)[0]
    )
    assert "'air': density = 1.01 kg/m^3" in told(BLOCK | {"density": 1.01}, fluid=1000.0)[0]
    bubbles = {"kind": "spheres", "name": "bubbles", "centers": [[0, 0, 0]], "radius": 0.01, "density": 1.2}
    assert not told(stone) and not told(bubbles, water) and not told(stone | {"density": 30.0}, water)
    assert not told(BLOCK | {"density": 0.8}, water)  # hot gas above it


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "population is 'tracers'"),
        ({"population": "inertial"}, "population is 'inertial'"),
        ({"puff": {"kind": "tracers", "points": [[0, 0, 0]]}}, "its puffs hold no vortons"),
    ],
)
def test_an_emitter_makes_no_vortons_of_tracers(given: dict[str, Any], told: str) -> None:
    """They got the default core and volume, without a word, and heat was shared among them."""
    gas = {"kind": "emitter", "name": "burner", "into": "gas", "population": "vortons", "temperature": 700}
    light = {"kind": "emitter", "name": "light", "into": "gas", **given}
    with pytest.raises(RecipeError) as caught:
        WorldRecipe.from_tables({"entity": [gas, light]}).build()
    assert str(caught.value) == (
        f"[[entity]] 'light': entity 'gas' holds vortons, but {told}; emit vortons, or emit into another "
        "entity"
    )


def test_fuel_of_a_block_that_nothing_burns_is_told() -> None:
    block = {"kind": "fluid_block", "name": "gas", "sphere": {"radius": 0.3}, "fuel": "0.1*exp(-r)"}
    assert WorldRecipe.from_tables({"entity": [block]}).build().lint() == [
        "'gas' holds fuel, but nothing burns it; add a CombustionSystem ([[system]] kind = 'combustion'), or "
        "leave fuel out"
    ]
    for fine in (
        {"entity": [block | {"fuel": 0.0, "smoke": 0.1}]},
        {"entity": [block | {"temperature": 300.0}], "system": [{"kind": "combustion"}]},
    ):
        assert not any("fuel" in text for text in WorldRecipe.from_tables(fine).build().lint())


def test_fuel_that_nothing_burns_is_told() -> None:
    burner = {"kind": "emitter", "name": "burner", "into": "gas", "population": "vortons", "fuel": 0.1}
    assert WorldRecipe.from_tables({"entity": [burner]}).build().lint() == [
        "EmissionSystem: emitter 'burner' emits fuel, but nothing burns it; add a CombustionSystem "
        "([[system]] kind = 'combustion'), or leave fuel out"
    ]
    weightless = {"gravity": [0, 0, 0]}
    tables = {"fluid": weightless, "entity": [burner], "system": [{"kind": "combustion"}]}
    assert not WorldRecipe.from_tables(tables).build().lint()


def test_an_emitter_stands_after_the_entity_that_it_fills() -> None:
    """It was the entity that was told that the world "already has" one of its name."""
    smoke = {"kind": "tracers", "name": "smoke", "points": [[0, 0, 0]]}
    tap = {"kind": "emitter", "name": "tap", "into": "smoke"}
    with pytest.raises(RecipeError) as told:
        WorldRecipe.from_tables({"entity": [tap, smoke]}).build()
    assert str(told.value) == (
        "[[entity]] 'tap': its particles go to 'smoke', which stands after it; put it after that entity"
    )
    assert len(WorldRecipe.from_tables({"entity": [smoke, tap]}).build()["smoke"]) == 1
