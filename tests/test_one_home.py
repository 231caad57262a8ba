"""Facts that stand in several places, or by their names alone, agree; what is added is found everywhere.

What a maintainer who adds or renames something has to change: CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import ecs_fluid as ef
import ecs_fluid.worlds
from docs.generator.code_pages import diagnostics
from docs.generator.packages import ROOT, parts
from ecs_fluid import exports
from ecs_fluid.cli.export import export as export_command
from ecs_fluid.component import Component
from ecs_fluid.joining import NAMING
from ecs_fluid.one_process import OneProcess
from ecs_fluid.recipe import Recipe
from ecs_fluid.settings import Settings
from ecs_fluid.sweeps.plan import DIAGNOSTICS
from ecs_fluid.system import PHASES, System
from ecs_fluid.validation_errors import NAME
from ecs_fluid.worlds import shapes


def classes(part: str, base: type) -> set[str]:
    """Classes of that base, but private ones, in all the modules of a part."""
    found = set()
    for path in parts()[part]:
        steps = path.relative_to(ROOT).with_suffix("").parts
        module = importlib.import_module(".".join(("ecs_fluid", *steps)).removesuffix(".__init__"))
        found |= {
            name
            for name, kind in vars(module).items()
            if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
        }
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize(("part", "base"), [("components", Component), ("systems", System)])
def test_every_component_and_system_is_public(part: str, base: type) -> None:
    found = classes(part, base)
    assert len(found) > 40
    assert found <= set(ef._HOME)


def test_every_recipe_is_registered_with_the_others() -> None:
    found = classes("worlds", Recipe)
    assert len(found) > 15
    assert found <= set(vars(ecs_fluid.worlds))


def test_every_shape_can_be_told() -> None:
    told = get_args(get_args(shapes.AnyShape)[0])
    made = {kind for kind in vars(shapes).values() if isinstance(kind, type) and issubclass(kind, Settings)}
    assert set(told) == {kind for kind in made if get_origin(get_type_hints(kind).get("shape")) is Literal}
    assert set(get_args(get_args(shapes.AnyPolytope)[0])) == set(told) - {shapes.Ball, shapes.CompoundShape}


# ------------------------------------------------------------------ counts


COUNTED = re.compile(
    r"(?:\d[\d,]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|\w+teen|eleven|twelve|\w+ty(?:-\w+)?)) "
    r"(?:shipped worlds|\[?worlds that ship|tutorials|lessons|tests)\b",
    re.I,
)


def test_texts_count_what_is_there() -> None:
    """Worlds, lessons and tests go without a number, which nobody keeps; notes tell what was measured."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "notes" / "reviews.md"]
    paper = ROOT / "paper" / "paper.md"
    texts = {path.name: " ".join(path.read_text(encoding="utf-8").split()) for path in [*paths, paper]}
    assert COUNTED.search("some 5,000 tests") and COUNTED.search("Twelve tutorials")
    assert {name: found[0] for name, text in texts.items() if (found := COUNTED.search(text))} == {}
    cases = tomllib.loads((ROOT / "docs" / "validation.toml").read_text(encoding="utf-8"))["case"]
    assert f"has {len(cases)} cases with closed forms" in texts["paper.md"]


# ------------------------------------------------------------------ names


LABEL = re.compile(r"[A-Z][a-z]\w*\.[A-Za-z]\w*")


def labels(path: Path) -> set[str]:
    """Texts of a file of the form ``Component.column``."""
    source = path.read_text(encoding="utf-8")
    if not re.search(f"[\"']{LABEL.pattern}[\"']", source):
        return set()
    nodes = ast.walk(ast.parse(source))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if LABEL.fullmatch(text)}


def test_columns_that_are_named_by_text_are_there() -> None:
    """Frames, exports and pictures know columns by their labels: a run may lack the classes."""
    known = {column.label for kind in Component.registry.values() for column in kind.columns.values()}
    found = {label: path.name for paths in parts().values() for path in paths for label in labels(path)}
    assert {"BodyHeat.T", "Position.x"} <= set(found)
    assert {label: file for label, file in found.items() if label not in known} == {}


def test_systems_that_are_named_by_text_are_there() -> None:
    """In `before`, `after` and `asks`, and where a module cannot import the class (`named`)."""
    shipped = [kind for kind in System.registry.values() if kind.__module__.startswith("ecs_fluid.")]
    listed = {name for kind in shipped for name in (*kind.before, *kind.after, *kind.asks)}
    names = {kind.__name__ for kind in shipped}
    assert {name for name in listed if isinstance(name, str)} <= {"*", *names}
    texts = [path.read_text(encoding="utf-8") for paths in parts().values() for path in paths]
    found = {name for text in texts for name in re.findall(r'\bnamed\([^"]*"(\w+)"\)', text)}
    assert "BoundarySystem" in found
    assert found <= names
    # By its kind or the name of its class alone, a system of a derived class would not be found.
    other = re.compile(r'system\w*\.kind == "|{type\(\w+\)\.__name__ for|{\w+\.kind for')
    assert not [text for text in texts if other.search(text)]


def named_entities(schema: Any) -> set[str]:
    """Properties of a JSON schema, and of those within it, whose values are names of entities."""
    found = set()
    if isinstance(schema, dict):
        for name, value in schema.get("properties", {}).items():
            if f"'pattern': {NAME!r}" in str(value):
                found.add(name)
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        found |= named_entities(inner)
    return found


def test_parameters_that_name_entities_are_known() -> None:
    """`World.remove` asks them whether a system needs the entity."""
    shipped = [kind for kind in System.registry.values() if kind.__module__.startswith("ecs_fluid.")]
    found = set().union(*(named_entities(kind.Parameters.model_json_schema()) for kind in shipped))
    assert found == set(NAMING)


# ------------------------------------------------------------------ lists


def test_plane_names_what_is_for_space_alone() -> None:
    """Kinds of entities and systems that a world file may name, in the two lines of docs/plane.md."""
    text = (ROOT / "docs" / "plane.md").read_text(encoding="utf-8")
    lines = re.search(r"^\* entities: (.*?);\n\* systems: (.*?); of", text, re.S | re.M)
    assert lines is not None
    ours = [
        kind
        for kind in (*Recipe.registry.values(), *System.registry.values())
        if kind.__module__.startswith("ecs_fluid.") and 2 not in kind.dimensions
    ]
    brought = {"inflow", "liquid_push", "subfilter_average"}  # by an entity or a system that is refused
    assert set(re.findall(r"`(\w+)`", lines[1])) == {kind.kind for kind in ours if issubclass(kind, Recipe)}
    systems = {kind.kind for kind in ours if issubclass(kind, System)}
    assert set(re.findall(r"`(\w+)`", lines[2])) == systems - brought


def test_every_phase_runs() -> None:
    """Once a tick, in their order, and those before the move once for every stage of the integrator."""
    ran: list[str] = []

    def process(system: System, dt: float) -> None:
        ran.append(system.phase)

    world = ef.World(integrator="rk2")
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    kinds = [type(f"In{name.title()}", (System,), {"process": process, "phase": name}) for name in PHASES]
    world.add_systems([ef.AdvectionSystem(), *(kind() for kind in kinds)])
    world.step()
    stage = ["prepare", "rates"]
    assert list(dict.fromkeys(ran)) == list(PHASES)
    assert ran == ["spawn", *stage, *stage, *PHASES[PHASES.index("rates") + 1 :]]


def test_every_export_is_told() -> None:
    page = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == set(exports.FORMATS)
    listed = re.search(r" to: (.+); see", export_command.__doc__ or "")
    assert listed is not None
    assert set(re.split(r", | or ", listed[1])) == set(exports.FORMATS)


def test_calls_among_ranks_are_as_the_manual_writes_them() -> None:
    """With all that they need, in order."""
    page = (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
    table = page.partition("| `world.processes.` | gives |")[2].partition("\n\n")[0]
    calls = re.findall(r"`(\w+)\((.*?)\)`", re.sub("`make\\(\\)`", "", table))
    assert len(calls) > 5
    for name, told in calls:
        kinds = list(inspect.signature(getattr(OneProcess, name)).parameters.values())[1:]
        needed = [one.name for one in kinds if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        assert told.split(", ") == needed, name


def test_sweeps_know_the_units_of_diagnostics() -> None:
    told = {name: unit for name, (_, unit) in diagnostics(ef.DiagnosticsSystem).items()}
    assert {name: unit or "1" for name, unit in DIAGNOSTICS.items()} == told


# ------------------------------------------------------------------ numbers


def texts_with_numbers() -> list[tuple[Any, str, tuple[Any, ...]]]:
    """Texts that repeat constants of the code: (class or page, sentence with places, constants)."""
    from ecs_fluid.systems import drag, partition, thermal, whitewater
    from ecs_fluid.systems.boundary import layer
    from ecs_fluid.systems.liquid import constants, openings, places, steps
    from ecs_fluid.systems.shared.exchange_lint import SPACINGS
    from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
    from ecs_fluid.systems.velocity import cell_reading, flow_numbers, hybrid, poisson, pppm, sampled_error

    closing, speed = whitewater.CLOSING, whitewater.SPEED
    boundary, sph = ef.BoundarySystem(), ef.SphSystem()
    cells, most = (partition.PER_CORE, hybrid.PER_CORE), partition.MOST_FINE_CELLS
    return [
        (ef.SphSystem, "R^2 / ({:g} nu), with nu the viscosity", (steps.STIFFEST,)),
        (ef.SphSystem, "steps are then at most R^2 / ({:g} nu)", (steps.HELD,)),
        (ef.SphSystem, "and {:g} R / c instead", (steps.MOST_SOUND,)),
        (ef.SphSystem, "the fastest particles, one in {}, count", (steps.FEW,)),
        (ef.InflowSystem, "within {:g} spacings of a solid", (places.LEAST_GAP,)),
        (ef.InflowSystem, "a pipe, {} spacings long", ({3.0: "three"}.get(openings.REACH),)),
        (ef.WhitewaterSystem, "v . n > {:g} |v|", (whitewater.FORWARD,)),
        (ef.WhitewaterSystem, "less than {:g} of a full liquid", (whitewater.AIR,)),
        (ef.WhitewaterSystem, "more than {:g} a bubble", (whitewater.WATER,)),
        (ef.WhitewaterSystem, "`closing` {:g} c to {:g} c, `speed` {:g} c to {:g} c", (*closing, *speed)),
        (ef.WhitewaterSystem, "default {:g} c, {:g} c, c the speed of eddies", closing),
        (ef.WhitewaterSystem, "default {:g} c, {:g} c, c as for", speed),
        (ef.DragSystem, "up to Re = 1000, then {:g}", (drag.NEWTON,)),
        (ef.DragSystem, "C_d = {:g} + 6.8/Re^0.89", (drag.CYLINDER,)),
        (ef.ThermalSystem, "turbulent Prandtl number, {:g}", (thermal.TURBULENT_PRANDTL,)),
        (ef.ThermalSystem, "default the eddy viscosity over {:g}", (thermal.TURBULENT_PRANDTL,)),
        (ef.DiffusionSystem, "{:g} spacings by order 4 and {:g} by order 2", (SPACINGS[4], SPACINGS[2])),
        (ef.DiffusionSystem, "overlap below {:g}, as much more as makes {:g} and {:g} spacings",
         (LEAST_OVERLAP, SPACINGS[4], SPACINGS[2])),
        (ef.DiagnosticsSystem, "when the overlap is below {:g}", (LEAST_OVERLAP,)),
        (ef.DiagnosticsSystem, "at {0} vortons or {0} other particles", (sampled_error.SAMPLE,)),
        (ef.BoundarySystem, "smallest body's extent/{}", (layer.FINE,)),
        (ef.PartitionSystem, "up to {:,} cells in all", (most,)),
        (ef.PartitionSystem, "None: {:g}, and {:g} for the solver hybrid", cells),
        (ef.VelocitySystem, "interpolation is off by more than {:g} %", (100 * cell_reading.WELL_READ,)),
        (pppm.PppmSolver, "confirms this every {}th tick", (flow_numbers.MEASURED_EVERY,)),
        ("stability", "{:g} cells (`hybrid`: {:g}) per mean core radius, but at most {:,}", (*cells, most)),
        ("stability", "more than {:g} % of the vortons have fewer than {:g} cells per core radius",
         (100 * poisson.THIN, poisson.LEAST_PER_CORE)),
        ("liquids", "`support`, `courant`, `steps` | {:g}, {:g}, as needed", (sph.support, sph.courant)),
        ("liquids", "| `artificial` | {:g} |", (sph.artificial,)),
        ("liquids", "| `stride` | {:g} |", (sph.stride,)),
        ("liquids", "{}", (constants.ALIKE.removeprefix("use "),)),
        ("bodies", "`offset` a ({:g} by default) off the surface", (boundary.offset,)),
        ("bodies", "core radius `overlap` a ({:g})", (boundary.overlap,)),
    ]  # fmt: skip


def test_numbers_that_texts_repeat_are_those_of_the_code() -> None:
    for place, sentence, numbers in texts_with_numbers():
        if isinstance(place, str):
            told = (ROOT / "docs" / f"{place}.md").read_text(encoding="utf-8")
        else:
            told = " ".join([inspect.getdoc(place) or "", *place.Parameters.descriptions().values()])
        assert sentence.format(*numbers) in " ".join(told.split()), (place, sentence)
