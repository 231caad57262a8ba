"""One list of the systems that the tables of a world choose and that its entities need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_origin

from ecs_fluid.errors import RecipeError
from ecs_fluid.plugins import users_code
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.validation_errors import shown

Asked = tuple[str, System]
"""Who asks for a system, for example ``[[entity]] 'ball'``, and the system with the parameters set there."""


def needed_by(recipe: Recipe) -> list[Asked]:
    """What a recipe's `systems` gives, which may be a method of a user's."""
    place, what = f"[[entity]] {recipe.name!r}", f"systems of {recipe.kind}"
    with users_code(f"{place}: {what}"):
        given: Any = recipe.systems()
        systems = list(given) if isinstance(given, Iterable) else [given]
    for system in systems:
        if not isinstance(system, System):
            raise RecipeError(f"{place}: {what} gives {shown(system)}; a list of systems is needed")
    return [(place, system) for system in systems]


def joined(fluid: Iterable[Asked], needed: Iterable[Asked], chosen: Iterable[Asked]) -> list[System]:
    """Systems of [fluid], those that entities need, and those of [[system]], in this order.

    A needed system makes one with another of its class, or of a class derived from it: its lists hold the
    items of all, a parameter that one leaves open is the other's. Of two [[system]] of that class it joins
    the first.

    Raises:
        RecipeError: two of them set a parameter that is no list to different values.
    """
    first, last = [[asked] for asked in fluid], [[asked] for asked in chosen]
    for asked in needed:
        kind = type(asked[1])
        groups = (group for group in [*first, *last] if _alike(kind, type(group[0][1])))
        group = next(groups, None)
        if group is None:
            first.append([asked])
        else:
            group.append(asked)
    return [_one(group) for group in [*first, *last]]


def _alike(kind: type[System], other: type[System]) -> bool:
    return issubclass(kind, other) or issubclass(other, kind)


def _one(group: list[Asked]) -> System:
    """The system that stands for all of a group."""
    if len(group) == 1:
        return group[0][1]
    kind = max((type(system) for _, system in group), key=lambda kind: len(kind.__mro__))
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, system in group:
        for name, value in system.parameters:
            field = type(system.parameters).model_fields[name]
            # None in place of None is no more than left open.
            if name not in system.parameters.model_fields_set or value is None is field.default:
                continue
            if name in values and _is_list(field.annotation):
                value = [*values[name], *(item for item in value if item not in values[name])]
            elif values.setdefault(name, value) != value:
                raise RecipeError(
                    f"{kind.__name__}: {name} = {shown(values[name])} by {places[name]}, "
                    f"but {shown(value)} by {place}; one value is allowed"
                )
            values[name] = value
            places.setdefault(name, place)
    return kind(**values)


def _is_list(annotation: Any) -> bool:
    """Whether a parameter holds any number of items, not a vector of fixed length."""
    return get_origin(annotation) is list or get_args(annotation)[1:] == (Ellipsis,)
