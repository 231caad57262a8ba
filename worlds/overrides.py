"""Settings ``path=value`` that override values of a world file, as `--set` gives them."""

from __future__ import annotations

import tomllib
from typing import Any

from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import check_limit
from ecs_fluid.system import short_kind
from ecs_fluid.validation_errors import nearest, shown
from ecs_fluid.worlds.world_tables import SECTIONS, TABLES


def override(tables: dict[str, Any], assignment: str) -> None:
    """Apply one ``path=value`` in place: ``world.dt=0.01``, ``ring.radius=2``, ``entity.0.core=0.1``.

    A path may start with the name of an entity. Items of lists are addressed by their number, systems also by
    their kind (the first of that kind), components of vectors by x, y, z. A kind of system that is not in the
    list is added to it. The value is read as TOML, or else as text. ``world.dt`` replaces ``world.fps``, and
    vice versa.
    """
    place = f"setting {shown(assignment)}"
    path, sign, text = assignment.partition("=") if isinstance(assignment, str) else ("", "", "")
    parts = path.strip().split(".")
    if not sign or not all(parts):
        raise RecipeError(
            f"{place}: path=value is needed, one string per value, for example 'fluid.viscosity=1e-4'"
        )
    check_limit("nesting", len(parts), f"{place}: the path has {len(parts):,} parts")
    target, parts = _starting_table(tables, parts, place)
    for depth, part in enumerate(parts[:-1]):
        if isinstance(target, list):
            kinds = {kind for item in target for kind in _kinds(item)}
            if depth == 1 and parts[0] == "system" and part.isidentifier() and part not in kinds:
                target.append({"kind": part})
            target = target[_number(target, part, place)]
        elif isinstance(target, dict):
            target = target.setdefault(part, {} if depth or part not in ("entity", "system") else [])
        if not isinstance(target, dict | list):
            raise RecipeError(f"{place}: {'.'.join(parts[: depth + 1])} is a value, not a table")
    if target == {} and len(parts) > 1 and parts[-1] in ("x", "y", "z"):
        raise RecipeError(
            f"{place}: {shown(parts[-2])} is not written in the file, so that it has no components; set all "
            f"of it, {'.'.join(path.strip().split('.')[:-1])}=[...]"
        )
    last: Any = _number(target, parts[-1], place) if isinstance(target, list) else parts[-1]
    target[last] = value_of(text)
    # Both set the time step, so the later one replaces the other.
    if parts[:-1] == ["world"] and (former := {"dt": "fps", "fps": "dt"}.get(parts[-1])):
        target.pop(former, None)


def _starting_table(tables: dict[str, Any], parts: list[str], place: str) -> tuple[Any, list[str]]:
    """Where a path starts, the tables or an entity, and the parts of the path from there."""
    listed = tables.get("entity", [])
    listed = listed if isinstance(listed, list) else []
    entities = {e["name"]: e for e in listed if isinstance(e, dict) and isinstance(e.get("name"), str)}
    first = parts[0]
    if len(parts) == 1 and first not in (*tables, *SECTIONS, "preset"):
        found = [name for name, table in entities.items() if first in table]
        found += [name for name, table in TABLES.items() if first in table.model_fields]
        places = " or ".join(f"{name}.{first}=..." for name in found or ["NAME"])
        raise RecipeError(
            f"{place}: the entity, system or table that {shown(first)} belongs to is missing; write {places}"
        )
    if first in SECTIONS or len(parts) == 1:
        return tables, parts
    if first not in entities:
        hint = nearest(first, {*SECTIONS, *entities})
        raise RecipeError(f"{place}: {shown(first)} is neither a table nor an entity; {hint}")
    return entities[first], parts[1:]


def value_of(text: str) -> Any:
    """The TOML value that a text is, or the text itself."""
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        return text.strip()


def _kinds(item: Any) -> list[str]:
    """The kind of a table as written, and the short form of a ``module:Class``."""
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        return []
    return [kind, short_kind(kind.rpartition(":")[2])] if ":" in kind else [kind]


def _number(items: list[Any], part: str, place: str) -> int:
    """Index of the item that a part of a path denotes: a number, x, y or z, or the kind of a table."""
    names = [item.get("kind") if isinstance(item, dict) else "xyz"[n : n + 1] for n, item in enumerate(items)]
    numbers = [str(n) for n in range(len(items))]
    short = [kinds[-1] if (kinds := _kinds(item)) else None for item in items]
    for known in (names, short, numbers):
        if part in known:
            return known.index(part)
    listed = ", ".join(f"{n} ({name})" if name else n for n, name in zip(numbers, names, strict=True))
    raise RecipeError(f"{place}: {shown(part)} is none of the items there; known: {listed or 'none'}")
