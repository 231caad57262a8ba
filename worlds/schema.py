"""JSON Schema of world files, of the package's kinds and the user's."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, get_args

from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import group_of
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.systems.velocity.solver import SHIPPED
from ecs_fluid.worlds.world_recipe import named_systems
from ecs_fluid.worlds.world_tables import FLUID, PRESETS, TABLES


def schema() -> dict[str, Any]:
    """JSON Schema of world files, so that editors complete and check them.

    A user's own kind appears only by its name: its parameters are in the user's code.
    """
    tables: dict[str, Any] = {name: table.model_json_schema() for name, table in TABLES.items()}
    for key, kind in FLUID.items():
        tables["fluid"]["properties"][key] = kind.all_parameters().model_json_schema()
    velocity = tables["fluid"]["properties"]["velocity"]
    del velocity["additionalProperties"]  # a solver of the user's has parameters of its own
    velocity["if"] = {"properties": {"solver": {"enum": list(get_args(SHIPPED))}}}
    velocity["then"] = {"propertyNames": {"enum": list(velocity["properties"])}}
    definitions: dict[str, Any] = {}
    tables |= {
        "entity": _listed(Recipe, Recipe.registry),
        "system": _listed(System, named_systems()),
        "preset": {"enum": list(PRESETS)},
    }
    _lift_definitions(tables, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ecs_fluid world",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": definitions,
    }


def _listed(base: type, kinds: Mapping[str, type[Recipe] | type[System]]) -> dict[str, Any]:
    """Schema of [[entity]] or [[system]]: a class of the package by its kind, or one of the user's."""
    shipped = {name: kind for name, kind in kinds.items() if is_shipped(kind)}
    offered = [point.name for point in entry_points(group=group_of(base)) if point.name not in shipped]
    named = [{"type": "string", "pattern": "^[^:]+:[^:]+$"}, *({"const": name} for name in offered)]
    items = [{"type": "object", "properties": {"kind": kind}, "required": ["kind"]} for kind in named]
    for name, kind in shipped.items():
        item = (kind.all_parameters() if issubclass(kind, System) else kind).model_json_schema()
        item["properties"] = {"kind": {"const": name}, **item.get("properties", {})}
        item["required"] = ["kind", *item.get("required", [])]
        items.append(item)
    return {"type": "array", "items": {"oneOf": items}}


def _lift_definitions(node: Any, definitions: dict[str, Any]) -> None:
    """Move nested $defs to the top, where their references point."""
    if isinstance(node, dict):
        definitions.update(node.pop("$defs", {}))
        for value in node.values():
            _lift_definitions(value, definitions)
    elif isinstance(node, list):
        for value in node:
            _lift_definitions(value, definitions)
