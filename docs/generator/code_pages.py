"""Reference pages of components, commands, diagnostics and errors, read from the code."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import cyclopts

import ecs_fluid.cli
import ecs_fluid.components
from docs.generator.markdown import WRITTEN, docstring, table
from ecs_fluid import errors
from ecs_fluid.component import Column, Component
from ecs_fluid.systems.diagnostics import DiagnosticsSystem
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.systems.surface.system import SurfaceSystem

# ------------------------------------------------------------------ components


def components() -> list[type[Component]]:
    """Components of the package: by module, in the order of their declaration."""
    found = (c for c in Component.registry.values() if c.__module__.startswith("ecs_fluid."))
    return sorted(found, key=lambda c: (c.__module__ != "ecs_fluid.components.particles", c.__module__))


def components_page() -> str:
    """Every component with its columns."""
    out = [
        WRITTEN,
        "# Components\n",
        "Tables of numbers that entities carry. *State* is saved; *derived* tables are filled anew in each "
        "tick and never saved. n is the number of rows (particles). Real numbers are float32 or float64, as "
        "the world's `precision` says; whole numbers are int64.\n",
    ]
    module = ""
    for kind in components():
        home = kind.__module__.rpartition(".")[2]
        if home != module:
            module = home
            out.append(f"## In {'ecs_fluid' if home == 'component' else f'components/{home}.py'}\n")
        rows = (
            (f"`{c.name}`", c.unit, _shape(kind, c), "whole" if c.kind == "int" else "real", _range(c))
            for c in kind.columns.values()
        )
        out += [f"### {kind.__name__}\n", f"*{_nature(kind)}*\n", docstring(kind.__doc__ or "")]
        out.append(table(("column", "unit", "shape", "numbers", "allowed, default"), rows))
    return "\n".join(out)


def _nature(kind: type[Component]) -> str:
    said = ["Derived" if kind.derived else "State"]
    said.append("one row per particle" if kind.per_row else "one for the entity")
    if kind.rate_of is not None:
        what = f"the square of {kind.rate_of.__name__}" if kind.squared else kind.rate_of.__name__
        said.append(f"rate of {what}")
    elif kind.given:
        said.append("attached to entities with " + ", ".join(given.__name__ for given in kind.given))
    return "; ".join(said)


def _shape(kind: type[Component], field: Column) -> str:
    sizes = ["n"] if kind.per_row else []
    sizes += ["any" if part is None else str(part) for part in field.shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _range(field: Column) -> str:
    said = []
    if field.above is not None:
        said.append(f"above {field.above:g}")
    if field.minimum is not None:
        said.append(f"at least {field.minimum:g}")
    if field.maximum is not None:
        said.append(f"at most {field.maximum:g}")
    if field.default is not None:
        said.append(f"default {field.default:g}")
    return ", ".join(said)


# ------------------------------------------------------------------ commands


def commands() -> Iterator[tuple[str, cyclopts.App]]:
    """Name ("bench velocity") and application of every command."""
    for module in pkgutil.iter_modules(ecs_fluid.cli.__path__):
        importlib.import_module(f"ecs_fluid.cli.{module.name}")
    yield from _below(ecs_fluid.cli.app, "")


def _below(app: cyclopts.App, path: str) -> Iterator[tuple[str, cyclopts.App]]:
    for name in app:
        if name.startswith("-"):
            continue
        inner = app[name]
        if inner.default_command is not None:
            yield f"{path}{name}", inner
        yield from _below(inner, f"{path}{name} ")


def commands_page() -> str:
    """Every command with its options."""
    out = [
        WRITTEN,
        "# Commands\n",
        "`ecs-fluid COMMAND --help` prints the same. A mistake ends with one sentence and exit code 2; "
        "Ctrl-C, after the tick under way, with 130.\n",
    ]
    for name, app in commands():
        arguments = list(app.assemble_argument_collection(parse_docstring=True))
        usage = [a.names[0] if a.required else f"[{a.names[0]}]" for a in arguments if not _option(a)]
        must = [f"{a.names[0]} {_value(a)}" for a in arguments if _option(a) and a.required]
        rest = ["[options]"] if any(_option(a) and not a.required for a in arguments) else []
        out += [f"## {name}\n", docstring((app.help or "").partition("Args:")[0])]
        out.append(f"```sh\necs-fluid {' '.join([name, *usage, *must, *rest])}\n```\n")
        rows = (
            (f"`{' '.join(filter(None, (a.names[0], _value(a))))}`", _standard(a), a.parameter.help or "")
            for a in arguments
            if _option(a)
        )
        out.append(table(("option", "default", "meaning"), rows))
    return "\n".join(out)


def _option(argument: Any) -> bool:
    return bool(argument.names[0].startswith("--"))


def _value(argument: Any) -> str:
    """What stands behind an option: nothing for a flag."""
    hint = argument.hint
    if get_origin(hint) not in (None, Literal, tuple, list) and type(None) in get_args(hint):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if hint is bool:
        return ""
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        inside = get_args(hint)
        one = getattr(inside[0], "__name__", "value").replace("str", "text").upper()
        return f"{one} ..." if inside[-1] is Ellipsis else " ".join([one] * len(inside))
    return getattr(hint, "__name__", "value").replace("str", "text").upper()


def _standard(argument: Any) -> str:
    value = argument.field_info.default
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return f"on; off with `{argument.negatives[0]}`" if value else "off"
    return "`" + (" ".join(map(str, value)) if isinstance(value, tuple) else str(value)) + "`"


# ------------------------------------------------------------------ diagnostics

ENTRY = re.compile(r"^\* ([\w, ]+): (.+?), ([^,]+?)(?:; (.+))?$", re.M)
"""One diagnostic in a docstring: "* energy: formula, unit; more"."""


RECORDERS: tuple[tuple[object, str, str], ...] = (
    (DiagnosticsSystem, "DiagnosticsSystem", "Vortons"),
    (SurfaceSystem.surface_measure, "SurfaceSystem", "Surfaces, in the record of the same tick"),
    (SphSystem.measure, "SphSystem", "Liquids: `world.system(ef.SphSystem).measure()`"),
)
"""Whose docstring lists what is recorded, the system, and the title of the section."""


def diagnostics(recorder: object) -> dict[str, tuple[str, str]]:
    """Name of every number that a system or method records: (meaning, unit), as its docstring lists them."""
    found = {}
    text = re.sub(r"\n(?: {2,})(?=\S)", " ", inspect.cleandoc(recorder.__doc__ or ""))
    for names, meaning, unit, more in ENTRY.findall(text):
        for name in names.split(", "):
            found[name] = (f"{meaning}; {more}" if more else meaning, unit)
    return found


def diagnostics_page() -> str:
    """Every number that a run records or a system measures."""
    out = [
        WRITTEN,
        "# Diagnostics\n",
        "`world.diagnostics()` returns these for the present state; a run writes them every so many ticks to "
        "`diagnostics.jsonl`, with `tick` and `time` (s); `ecs-fluid info RUN` shows them. With more "
        "vortons than `pair_limit`, a run leaves energy, enstrophy and helicity out (null).\n",
    ]
    for recorder, name, title in RECORDERS:
        out.append(f"## {title}\n")
        rows = ((f"`{key}`", unit, text) for key, (text, unit) in diagnostics(recorder).items())
        out.append(table(("name", "unit", "meaning"), rows))
        out.append(f"By [{name}](systems.md#{name.lower()}).\n")
    out.append("## Books\n")
    out.append(
        "Some systems keep account in components. Of the whole run: "
        "[LiquidBudget](components.md#liquidbudget) (what the liquid lost and was given), "
        "[CollisionCount](components.md#collisioncount) (particles met, moved out, trapped), "
        "[Emission](components.md#emission). Of the last tick: "
        "[FluidReaction](components.md#fluidreaction) and "
        "[BoundaryExchange](components.md#boundaryexchange) (what bodies and fluid gave each other).\n"
    )
    return "\n".join(out)


# ------------------------------------------------------------------ errors


def exceptions() -> list[type]:
    """All errors and warnings of the package, bases first."""
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and value.__module__ == "ecs_fluid.errors"
    ]
    return sorted(found, key=lambda kind: issubclass(kind, Warning))


def errors_page() -> str:
    """Every exception and warning."""
    out = [
        WRITTEN,
        "# Errors and warnings\n",
        "All of them are in `ecs_fluid`. The text of an error is one sentence: what is wrong, where, which "
        "value, what is allowed. What each warning means is in the [stability guide](../stability.md).\n",
    ]
    for kind in exceptions():
        base = kind.__bases__[0].__name__
        out += [f"## {kind.__name__}\n", f"Derived from `{base}`.\n", docstring(kind.__doc__ or "")]
    return "\n".join(out)
