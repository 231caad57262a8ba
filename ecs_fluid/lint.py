"""Warnings about systems of a world that do nothing, or whose results nobody uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ecs_fluid.component import Component
from ecs_fluid.errors import RecipeError
from ecs_fluid.plugins import import_path, users_method
from ecs_fluid.schedule import misnamed, named
from ecs_fluid.system import System
from ecs_fluid.validation_errors import shown

if TYPE_CHECKING:
    from ecs_fluid.world import World


def said_by(system: System, world: World) -> list[str]:
    """The system's own sentences; RecipeError where a user's `lint` fails or returns others."""
    with users_method(type(system), "lint"):
        said: object = system.lint(world)
    if not isinstance(said, list | tuple) or not all(isinstance(text, str) for text in said):
        where = import_path(type(system))
        raise RecipeError(f"lint of {where} returns {shown(said)}; a list of sentences is needed")
    return list(said)


def said_of_schedule(world: World, systems: list[System]) -> Iterator[str]:
    """Sentences on systems that name others wrongly, find nothing, or fill rates that nobody integrates."""
    yield from misnamed(systems)
    yield from unmatched(world, systems)
    yield from _unintegrated(world, systems)


def unmatched(world: World, systems: list[System]) -> Iterator[str]:
    """Sentences on systems that were asked for and find nothing of what they need."""
    there = {kind for tables in world._tables_of.values() for kind in tables}
    for system in systems:
        missing = [kind.__name__ for kind in system.reads if kind not in there]
        if missing and not system._implied:
            yield (
                f"{type(system).__name__} reads {' and '.join(missing)}, which no entity has, so it does "
                "nothing; give an entity one, or leave the system out"
            )


def _unintegrated(world: World, systems: list[System]) -> Iterator[str]:
    """A sentence on rates of this world that nobody integrates or reads."""
    read = {kind for s in systems if not s._implied for kind in (*s.reads, *s.may_read)}
    written = {kind for system in systems for kind in system.writes}
    there = {kind for tables in world._tables_of.values() for kind in tables if kind.rate_of in tables}
    names = sorted(kind.__name__ for kind in there - read if kind.rate_of not in written)
    if names and not any(system.integrates for system in systems):
        yield (
            f"no system integrates rates, which leaves {' and '.join(names)} without effect; add an "
            "AdvectionSystem"
        )


def unanswered(world: World) -> Iterator[str]:
    """Sentences on systems that found no entity with what they asked for in their first tick.

    Those that another one brought along or asks have their use all the same.
    """
    useful = [name for system in world._systems for name in system.asks]
    for system in world._systems:
        asked, system._asked = system._asked, None
        for where, asks in (asked or {}).items():
            if any(asks.values()) or system._implied or any(unmatched(world, [system])):
                continue
            if any(named(system, name) for name in useful):
                continue
            wanted = [kind for kind in next(iter(asks)) if not where or kind not in world[where]]
            needed = " and ".join(map(_described, wanted))
            place, lack = (f" with {where!r}", "it does not have") if where else ("", "no entity has")
            yield (
                f"{type(system).__name__} does nothing{place}: {lack} {needed}"
                f"{' together' if len(wanted) > 1 else ''}; add what is missing, or leave it out"
            )


def _described(kind: type[Component]) -> str:
    given = " and ".join(other.__name__ for other in kind.given)
    return f"{kind.__name__} (comes with {given})" if given else kind.__name__
