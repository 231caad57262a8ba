"""What a run may do in another way from a checkpoint on: parameters of its systems, its fluid, its length."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import tomli_w

from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.stored_recipe import tables_of
from ecs_fluid.system import System
from ecs_fluid.world import World
from ecs_fluid.worlds.overrides import override
from ecs_fluid.worlds.world_recipe import WorldRecipe, recipe_of

FREE = {"world": ("duration",), "output": ("checkpoint_seconds", "look")}
"""Keys of these tables that may change: frames that are stored do not depend on them."""


def change(
    world: World, settings: Sequence[str], allow_code: bool = False
) -> tuple[WorldRecipe, WorldRecipe]:
    """Apply settings ``path=value`` to a resumed world between two ticks; what it was, and what it is now.

    They are those of the world file. Parameters of systems, and constants of the fluid, are set as they can
    be in Python at any time; the state stays as it is, to the bit.

    Raises:
        RecipeError: a setting is wrong, or changes what cannot change while a world goes on.
    """
    if world.recipe is None:
        raise RecipeError(
            "the world was made in Python, without a file whose values could be set; set them in Python, on "
            "the world that ecs_fluid.resume gives of a checkpoint"
        )
    before = recipe_of(world.recipe, (), allow_code)
    after = recipe_of(copy.deepcopy(world.recipe), tuple(settings), allow_code)
    _refuse_new_beginning(before, after)
    systems = _pairs(before, after, world)
    given = after.fluid.constants().items()
    constants = {key: value for key, value in given if value != getattr(before.fluid, key)}
    try:
        for system, parameters in systems:
            system.put(**parameters)
        if constants:
            world.set_fluid(**constants)
    except FluidError as error:
        raise RecipeError(f"it cannot go on like this: {error}") from error
    world._set_fixed(recipe=after.tables())
    return before, after


def with_settings(folder: RunFolder, settings: Sequence[str]) -> str:
    """The world file of a run with these settings; colours and a look that were edited stay."""
    tables = tables_of(folder)
    for setting in settings:
        override(tables, setting)
    return tomli_w.dumps(tables)


def _refuse_new_beginning(before: WorldRecipe, after: WorldRecipe) -> None:
    """RecipeError for values that only a world that begins anew can have."""
    for place, free in FREE.items():
        old, new = (getattr(recipe, place) for recipe in (before, after))
        for key in type(new).model_fields:
            if key not in free and getattr(old, key) != getattr(new, key):
                why = "times are ticks times dt" if key in ("dt", "fps", "steps_per_frame") else ""
                raise _only_anew(f"[{place}] {key}", why)
    if before.preset != after.preset:
        raise _only_anew("preset")
    for was, now in zip(before.entity, after.entity, strict=True):
        if {**was.table(), "color": None} != {**now.table(), "color": None}:
            raise _only_anew(f"[[entity]] {now.name!r}", "its state goes on")


def _only_anew(what: str, why: str = "") -> RecipeError:
    because = f", since {why}" if why else ""
    return RecipeError(
        f"{what} cannot change while a run goes on{because}; parameters of systems, constants of the fluid, "
        "world.duration and output.checkpoint_seconds can: begin anew with this one"
    )


def _pairs(before: WorldRecipe, after: WorldRecipe, world: World) -> list[tuple[System, dict[str, Any]]]:
    """The systems of the world whose parameters differ between two recipes, and these parameters."""
    (old, _), (new, _) = before.systems_of(world), after.systems_of(world)
    kinds = [[type(system) for system in systems] for systems in (old, new)]
    if kinds[0] != kinds[1]:
        odd = [kind for kind in [*kinds[0], *kinds[1]] if kinds[0].count(kind) != kinds[1].count(kind)]
        raise _only_anew(f"whether there is a system {odd[0].kind!r}")
    found = []
    free = list(world.systems)
    for was, now in zip(old, new, strict=True):
        values = {name: value for name, value in now.parameters if value != getattr(was, name, None)}
        alike = [system for system in free if type(system) is type(was)]
        same = next((system for system in alike if system.parameters == was.parameters), None)
        chosen = same or next(iter(alike), None)
        if chosen is not None:
            free.remove(chosen)
        if not values:
            continue
        if chosen is None:
            raise _only_anew(f"system {was.kind!r}", "it was taken out in Python")
        found.append((chosen, values))
    return found
