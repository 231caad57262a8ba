"""The command that prints the parameters of kinds of entities, systems, tables and components."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel
from rich.table import Column, Table

from ecs_fluid.api.parameters import inner_models, parameters
from ecs_fluid.cli import app, out, register
from ecs_fluid.cli.worlds import AllowCode
from ecs_fluid.component import Component
from ecs_fluid.errors import FluidError
from ecs_fluid.plugins import class_named, group_of, imported, refuse_code, searching
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.validation_errors import nearest
from ecs_fluid.worlds.world_recipe import shipped
from ecs_fluid.worlds.world_tables import FLUID, TABLES

BASES = (System, Recipe, Component, Solver)
"""Base classes of what a user may write."""


@app.command(name="help")
def reference(name: str | None = None, /, *, allow_code: AllowCode = False) -> None:
    """Print the parameters of a kind of entity or system, with units, ranges and defaults.

    Args:
        name: vortex_ring, wind, [fluid], BoxShape, Temperature, ..., or a class of yours, swirl:Swirl;
            without it all names are listed
        allow_code: let the class be imported, which runs the code of its module
    """
    known = _known()
    if name is None:
        _print_names(known)
        return
    wanted = name if ":" in name else name.strip("[]").removeprefix("fluid.")
    meant = (key for key, kind in known.items() if wanted.lower() in (key.lower(), kind.__name__.lower()))
    wanted = wanted if wanted in known else next(meant, wanted)
    found = known.get(wanted) or _user_class(wanted, allow_code)
    if found is None:
        if wanted in shipped():
            raise FluidError(f"{wanted} is a shipped world; ecs-fluid worlds {wanted} prints it")
        register()
        if wanted in app:
            raise FluidError(f"{wanted} is a command; ecs-fluid {wanted} --help explains it")
        *before, key = name.strip("[]").split(".")
        chosen = [kind for kind in known if not before or kind == before[-1]]
        if holders := [kind for kind in chosen if key in _names(known[kind])]:
            which = ", ".join(holders)
            raise FluidError(f"{key} belongs to {which}; ecs-fluid help {holders[0]} explains it")
        names = {*known, *(point for offered in _offered().values() for point in offered)}
        raise FluidError(f"there is no kind, table, part or component {name!r}; {nearest(wanted, names)}")
    about = inspect.cleandoc(found.__dict__.get("__doc__") or "").replace("`", "")
    _print_lines(f"{wanted}: {_usage(wanted, found)}\n\n{about}\n ")
    rows = _columns(found) if _is_component(found) else _parameters(found)
    if rows.row_count:
        out.print(rows, width=max(out.width, 80))
    inner = sorted({part.__name__ for part in _inside(found)})
    fields = getattr(found, "model_fields", {})
    inner += [
        name for name, field in fields.items() if name in known and get_origin(field.annotation) is dict
    ]
    if inner:
        out.print(f"tables inside: {', '.join(inner)}; ecs-fluid help NAME explains each")


def _known() -> dict[str, Any]:
    """Classes by name: kinds of entities, tables, kinds of systems, parts, components."""

    def ours(kinds: Any) -> dict[str, Any]:
        return {
            name: kind for name, kind in sorted(kinds.items()) if kind.__module__.startswith("ecs_fluid.")
        }

    found = ours(Recipe.registry) | TABLES | FLUID
    systems = ours({kind.kind: kind for kind in System.registry.values() if kind.__name__[0] != "_"})
    found |= {name: kind for name, kind in systems.items() if name not in found}
    models = [_model(kind) for kind in found.values()]
    parts = {part.__name__: part for model in models for part in inner_models(model)}
    return found | dict(sorted(parts.items())) | ours(Component.registry)


def _names(kind: Any) -> Iterable[str]:
    """Names of the parameters, or columns, of a class."""
    return kind.columns if _is_component(kind) else (one.name for one in parameters(_model(kind)))


def _user_class(name: str, allow_code: bool) -> Any:
    """The user's class at an import path, or one that an installed package offers; None if there is none."""
    where = "ecs-fluid help"
    if ":" in name:
        with searching(Path.cwd() if allow_code else None):  # its module may import others beside it
            refuse_code(name, where, allow_code, "name")
            return imported(name, where, *BASES)
    offering = (base for base, names in _offered().items() if name in names)
    return next((class_named(name, where, base, {}, allow_code, "name") for base in offering), None)


def _offered() -> dict[type, list[str]]:
    """Names of the classes that installed packages offer, by their base; nothing is imported for it."""
    return {base: sorted(entry_points(group=group_of(base)).names) for base in BASES}


def _print_names(known: dict[str, Any]) -> None:
    """Print all names, grouped by what they are."""
    groups: dict[str, list[str]] = {}
    for name, kind in known.items():
        groups.setdefault(_usage("...", kind), []).append(name)
    for place, names in groups.items():
        _print_group(place, names)
    for base, offered in _offered().items():
        if offered:
            _print_group(f"{base.__name__.lower()}s that installed packages offer", offered)
    _print_lines("ecs-fluid help NAME prints the parameters of one of them.")


def _print_group(title: str, names: Iterable[str]) -> None:
    _print_lines(f"{title}\n{textwrap.indent(textwrap.fill(', '.join(names), out.width - 4), '    ')}")


def _print_lines(text: str) -> None:
    for line in text.splitlines():
        out.print(line)


def _is_component(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Component)


def _usage(name: str, kind: Any) -> str:
    """What a class is, and how a world file refers to it."""
    if issubclass(kind, Recipe):
        return f'kind of entity: [[entity]] kind = "{name}"'
    if kind in TABLES.values():
        return "table of a world file: [world], [fluid], [output]"
    if issubclass(kind, System):
        if kind in FLUID.values():
            return f"key of [fluid]: {name} = {{ ... }}"
        return f'system: [[system]] kind = "{name}"'
    if _is_component(kind):
        return "component: columns of an entity"
    if issubclass(kind, Solver):
        return f'solver: velocity = {{ solver = "{name}" }}'
    return "part: a table inside of others"


def _plain(text: str) -> str:
    """Markdown of the reference as plain text."""
    return re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", text).replace("`", "")


def _model(kind: Any) -> Any:
    """What holds the parameters of a class: of a system all that it may have, of a solver its own."""
    if isinstance(kind, type) and issubclass(kind, System):
        return kind.all_parameters()
    return getattr(kind, "Parameters", kind)


def _parameters(kind: Any) -> Table:
    rows = parameters(_model(kind))
    width = max((len(one.name) for one in rows), default=9)  # names are copied from here, so none is cut
    first = Column("parameter", no_wrap=True, min_width=max(9, width))
    last = Column("meaning", overflow="fold")
    table = Table(first, "unit", "default", "type, allowed", last, box=None, padding=(0, 2, 0, 0))
    for one in rows:
        allowed = ", ".join(part for part in (one.type, one.allowed) if part)
        table.add_row(one.name, one.unit, *map(_plain, (one.default, allowed, one.meaning)))
    return table


def _columns(kind: Any) -> Table:
    table = Table("column", "unit", "numbers", "default", "allowed", box=None, padding=(0, 2, 0, 0))
    for column in kind.columns.values():
        shape = ("n",) * kind.per_row + tuple("any" if part is None else str(part) for part in column.shape)
        default = "" if column.default is None else f"{column.default:g}"
        ends = (("above", column.above), ("at least", column.minimum), ("at most", column.maximum))
        allowed = ", ".join(f"{word} {end:g}" for word, end in ends if end is not None)
        table.add_row(column.name, column.unit, f"({', '.join(shape)})", default, allowed)
    return table


def _inside(kind: Any) -> Iterator[type[BaseModel]]:
    """Models that the parameters of a class hold."""
    model = _model(kind)
    if isinstance(model, type) and issubclass(model, BaseModel):
        yield from inner_models(model)
