"""Warnings about systems of a world that do nothing, or whose results nobody uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from ecs_fluid.component import Component
from ecs_fluid.errors import RecipeError
from ecs_fluid.plugins import import_path, users_method
from ecs_fluid.schedule import matches
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.unit_lint import celsius_lint, lengths_lint
from ecs_fluid.validation_errors import closest, shown

if TYPE_CHECKING:
    from ecs_fluid.world import World

CHOICES = re.compile(r"(\w+(?:, \w+)*): ")
"""How the description of a parameter begins that counts with some choices of another alone."""


def sentences_of(system: System, world: World) -> list[str]:
    """The system's own sentences; RecipeError where a user's `lint` fails or returns something else."""
    with users_method(type(system), "lint"):
        sentences: object = system.lint(world)
    if not isinstance(sentences, list | tuple) or not all(isinstance(text, str) for text in sentences):
        where = import_path(type(system))
        raise RecipeError(f"lint of {where} returns {shown(sentences)}; a list of sentences is needed")
    return list(sentences)


def schedule_lint(world: World, systems: list[System]) -> Iterator[str]:
    """Sentences on systems that name others wrongly, find nothing, or fill rates that nobody integrates, and
    on numbers in other units."""
    yield from _unknown_names_lint(systems)
    yield from unmatched_lint(world, systems)
    yield from _unintegrated_lint(world, systems)
    yield from idle_parameters_lint(systems)
    yield from celsius_lint(world, systems)
    yield from lengths_lint(world)


def _unknown_names_lint(systems: list[System]) -> Iterator[str]:
    """Sentences on names in `before`, `after` and `asks` that no system has."""
    import ecs_fluid

    bases = (base.__name__ for kind in System.registry.values() for base in kind.__mro__)
    known = {*dir(ecs_fluid), *bases, "*"}
    for system in systems:
        for listed in ("before", "after", "asks"):
            for name in getattr(system, listed):
                if isinstance(name, str) and name not in known:
                    meant = closest(name, known)
                    yield (
                        f"{type(system).__name__}.{listed} names {name!r}, but no loaded system has that "
                        "name; "
                        f"{f'did you mean {meant!r}?' if meant else 'give its name, or leave it out'}"
                    )


def unmatched_lint(world: World, systems: list[System]) -> Iterator[str]:
    """Sentences on systems that the user chose and that read a component no entity has."""
    present = {kind for entity in world.entities for kind in entity.tables}
    for system in systems:
        missing = [kind.__name__ for kind in system.reads if kind not in present]
        if missing and not system._implied:
            yield (
                f"{type(system).__name__} reads {' and '.join(missing)}, which no entity has, so it does "
                "nothing; give an entity one, or leave the system out"
            )


def choices_of(model: type[Settings], name: str) -> tuple[str, tuple[str, ...]] | None:
    """The parameter on whose choice `name` depends, and the choices with which it counts; None without one.

    The description tells it by beginning with them: "panels, layer: edge of the triangles, m".
    """
    if not (told := CHOICES.match(model.descriptions()[name])):
        return None
    named = tuple(told[1].split(", "))
    for other, field in model.model_fields.items():
        if other != name and set(named) <= set(_literals(field.annotation)):
            return other, named
    return None


def _literals(annotation: Any) -> tuple[Any, ...]:
    """The values of a Literal, or of one in a union."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for part in get_args(annotation) for value in _literals(part))


def idle_lint(title: str, name: str, value: Any, choice: str, made: Any, named: Sequence[str]) -> str:
    """Warn of a parameter that counts with the choices `named`, and not with that which was `made`."""
    return (
        f"{title}: {name} = {shown(value)} has no effect with {choice} = {shown(made)}, but with "
        f"{' or '.join(map(shown, named))}; leave it out, or change {choice}"
    )


def idle_parameters_lint(systems: list[System]) -> Iterator[str]:
    """Sentences on parameters that were set, but count with another choice than the one made."""
    for system in systems:
        model = type(system).Parameters
        for name, field in model.model_fields.items():
            value = getattr(system, name)
            changed = value != field.get_default(call_default_factory=True)
            if not changed or not (found := choices_of(model, name)):
                continue
            choice, named = found
            made = getattr(system, choice)
            if made not in named and made in (None, *_literals(model.model_fields[choice].annotation)):
                yield idle_lint(type(system).__name__, name, value, choice, made, named)


def _unintegrated_lint(world: World, systems: list[System]) -> Iterator[str]:
    """A sentence on rates of this world that nobody integrates or reads."""
    read = {kind for s in systems if not s._implied for kind in (*s.reads, *s.may_read)}
    written = {kind for system in systems for kind in system.writes}
    present = {kind for entity in world.entities for kind in entity.tables if kind.rate_of in entity.tables}
    names = sorted(kind.__name__ for kind in present - read if kind.rate_of not in written)
    if names and not any(system.integrates for system in systems):
        yield (
            f"no system integrates rates, which leaves {' and '.join(names)} without effect; add an "
            "AdvectionSystem"
        )


def empty_queries_lint(world: World) -> Iterator[str]:
    """Sentences on systems whose queries in their first tick matched no entity.

    Systems that another one added, or whose methods another one calls, are useful without a match.
    """
    called = [name for system in world._systems for name in system.asks]
    for system in world._systems:
        queried, system._queried = system._queried, None
        if system._implied or any(matches(system, name) for name in called):
            continue
        for where, matched in (queried or {}).items():
            if any(matched.values()) or any(unmatched_lint(world, [system])):
                continue
            wanted = [kind for kind in next(iter(matched)) if not where or kind not in world[where]]
            needed = " and ".join(map(_described, wanted))
            place, lack = (f" with {where!r}", "it does not have") if where else ("", "no entity has")
            yield (
                f"{type(system).__name__} does nothing{place}: {lack} {needed}"
                f"{' together' if len(wanted) > 1 else ''}; add what is missing, or leave it out"
            )


def _described(kind: type[Component]) -> str:
    given = " and ".join(other.__name__ for other in kind.given)
    return f"{kind.__name__} (comes with {given})" if given else kind.__name__
