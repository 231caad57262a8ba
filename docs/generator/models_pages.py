"""Reference pages of what a world file may hold: entities, tables, systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pydantic import BaseModel

import ecs_fluid.worlds  # noqa: F401  (registers the recipes and, with them, the systems)
from docs.generator.markdown import WRITTEN, docstring, table
from ecs_fluid.api.parameters import inner_models, parameters
from ecs_fluid.component import Component
from ecs_fluid.fluid import FluidOptions
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import PHASES, System
from ecs_fluid.worlds.world_tables import FLUID, PRESETS, TABLES

HEADS = ("parameter", "type", "default", "allowed", "unit", "meaning")
VERBS = {"may_read": "may read", "adds": "adds to"}
"""How the lists of what a system touches are put where they are not called by a verb."""
ALONE = ("advection", "emission")
"""Kinds that a world file cannot name: it gets them by itself."""


def recipes() -> dict[str, type[Recipe]]:
    """Recipes of the package by kind."""
    found = Recipe.registry.items()
    return {kind: recipe for kind, recipe in sorted(found) if recipe.__module__.startswith("ecs_fluid.")}


def systems() -> list[type[System]]:
    """Systems of the package in the order of the phases, then by name."""
    found = (s for s in System.registry.values() if s.__module__.startswith("ecs_fluid."))
    return sorted(found, key=lambda system: (PHASES.index(system.phase), system.__name__))


def parts(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    """Models inside these models, each once, by name."""
    inside = {inner.__name__: inner for model in models for inner in inner_models(model)}
    return [inside[name] for name in sorted(inside)]


def documented() -> list[type[BaseModel]]:
    """Every model whose parameters the reference lists."""
    outer = [*recipes().values(), *(system.all_parameters() for system in systems())]
    outer += TABLES.values()
    return [*outer, *parts(outer)]


def rows(model: type[BaseModel]) -> str:
    """Table of a model's parameters."""
    return table(
        HEADS,
        ((f"`{p.name}`", p.type, p.default, p.allowed, p.unit, p.meaning) for p in parameters(model)),
    )


def text_of(model: type) -> str:
    """Docstring of a class as Markdown; "" if it has none of its own."""
    return docstring(model.__dict__.get("__doc__") or "")


def _parts(models: list[type[BaseModel]]) -> str:
    if not models:
        return ""
    out = ["## Parts\n", "Tables inside the parameters above.\n"]
    for model in models:
        tag = model.model_fields.get("shape")
        said = f'Chosen by `shape = "{tag.default}"`.\n' if tag and isinstance(tag.default, str) else ""
        out += [f"### {model.__name__}\n", text_of(model), said, rows(model)]
    return "\n".join(out)


def entities_page() -> str:
    """Every kind of entity."""
    found = recipes()
    out = [
        WRITTEN,
        "# Entities\n",
        "An `[[entity]]` of a world file has a `kind`, a `name` of its own and the parameters of its kind. "
        "In Python the same models are classes of `ecs_fluid.worlds`. A name begins with a letter and "
        "goes on with letters, digits, _ and -, at most 64 in all.\n",
        ", ".join(f"[{kind}](#{kind})" for kind in found) + "\n",
    ]
    for kind, recipe in found.items():
        out += [f"## {kind}\n", f"`ecs_fluid.worlds.{_public(recipe)}`\n", text_of(recipe), rows(recipe)]
    out.append(_parts(parts(found.values())))
    return "\n".join(out)


def _public(recipe: type[Recipe]) -> str:
    home = sys.modules["ecs_fluid.worlds"]
    return next((name for name, value in vars(home).items() if value is recipe), recipe.__name__)


def world_page() -> str:
    """The tables [world], [fluid] and [output], and the presets."""
    out = [
        WRITTEN,
        "# World tables\n",
        "A world file has the key `preset` and the tables `[world]`, `[fluid]` and `[output]`, any number of "
        "[`[[entity]]`](entities.md) and of [`[[system]]`](systems.md).\n",
    ]
    for name, model in TABLES.items():
        out += [f"## [{name}]\n", text_of(model)]
        if name == "fluid":
            out.append(text_of(FluidOptions))
        out.append(rows(model))
        if name == "fluid":
            listed = ", ".join(f"[{key}](systems.md#{kind.__name__.lower()})" for key, kind in FLUID.items())
            out.append(f"Parameters of the sub-tables: {listed}.\n")
    out.append("## Presets\n")
    out.append("What a preset puts under the values of the file:\n")
    for name, values in PRESETS.items():
        lines = [f'preset = "{name}"', *_toml(values)]
        out.append("```\n" + "\n".join(lines) + "\n```\n")
    out.append(_parts(parts([*TABLES.values()])))
    return "\n".join(out)


def _toml(values: dict[str, object], path: str = "") -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        where = f"{path}.{key}" if path else key
        inner = _toml(value, where) if isinstance(value, dict) else []
        lines += inner or [f"{where} = {value!r}".replace("'", '"')]
    return lines


def systems_page() -> str:
    """Every system by phase, with its equation, what it touches and its parameters."""
    found = systems()
    out = [
        WRITTEN,
        "# Systems\n",
        "In the order of a tick. In Python `world.add_system(ef.WindSystem(velocity=(1, 0, 0)))`, in a world "
        "file the line that stands with each. A system that another one needs comes by itself.\n",
    ]
    for phase in PHASES:
        of_phase = [system for system in found if system.phase == phase]
        if not of_phase:
            continue
        out.append(f"## Phase {phase}\n")
        for system in of_phase:
            out += [f"### {system.__name__}\n", _line(system), text_of(system), _touches(system)]
            out.append(rows(system.all_parameters()) or "No parameters.\n")
    out.append(_parts(parts(system.all_parameters() for system in found)))
    return "\n".join(out)


def _line(system: type[System]) -> str:
    key = next((key for key, kind in FLUID.items() if kind is system), None)
    if key is not None:
        return f"`[fluid]` key `{key}`\n"
    if system.kind in ALONE or system.__name__.startswith("_"):
        return "Comes by itself.\n"
    return f'`[[system]] kind = "{system.kind}"`\n'


def _touches(system: type[System]) -> str:
    said = []
    for verb in ("reads", "may_read", "writes", "adds"):
        types = getattr(system, verb)
        if isinstance(types, tuple) and types:
            names = ", ".join(
                "every component"
                if kind is Component
                else f"[{kind.__name__}](components.md#{kind.__name__.lower()})"
                for kind in types
            )
            said.append(f"{VERBS.get(verb, verb)} {names}")
    return ("; ".join(said)[:1].upper() + "; ".join(said)[1:] + ".\n") if said else ""
