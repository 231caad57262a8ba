"""Systems that the tables of a world choose and that its entities need, merged into one list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_origin

from ecs_fluid.errors import RecipeError
from ecs_fluid.plugins import users_code
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System
from ecs_fluid.validation_errors import shown

Request = tuple[str, System]
"""Who requests a system, for example ``[[entity]] 'ball'``, and the system with the parameters set there."""


def needed_by(recipe: Recipe) -> list[Request]:
    """The systems that a recipe needs; checked, since the method may be a user's own."""
    place, what = f"[[entity]] {recipe.name!r}", f"systems of {recipe.kind}"
    with users_code(f"{place}: {what}"):
        given: Any = recipe.systems()
        systems = list(given) if isinstance(given, Iterable) else [given]
    for system in systems:
        if not isinstance(system, System):
            raise RecipeError(f"{place}: {what} gives {shown(system)}; a list of systems is needed")
    return [(place, system) for system in systems]


def merged(fluid: Iterable[Request], needed: Iterable[Request], chosen: Iterable[Request]) -> list[System]:
    """Systems of [fluid], those that entities need, and those of [[system]], in this order.

    A needed system is merged with another of its class, or of a class derived from it: lists are joined, and
    a parameter that one leaves open is taken from the other. Of two [[system]] of that class the first is
    used.

    Raises:
        RecipeError: two of them set a parameter, other than a list, to different values.
    """
    first, last = [[request] for request in fluid], [[request] for request in chosen]
    for request in needed:
        kind = type(request[1])
        groups = (group for group in [*first, *last] if _related(kind, type(group[0][1])))
        group = next(groups, None)
        if group is None:
            first.append([request])
        else:
            group.append(request)
    return [_merged_system(group) for group in [*first, *last]]


def _related(kind: type[System], other: type[System]) -> bool:
    return issubclass(kind, other) or issubclass(other, kind)


def _merged_system(group: list[Request]) -> System:
    """The system into which all requests of a group are merged."""
    if len(group) == 1:
        return group[0][1]
    kind = max((type(system) for _, system in group), key=lambda kind: len(kind.__mro__))
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, system in group:
        for name, value in system.parameters:
            field = type(system.parameters).model_fields[name]
            # A value None that equals the default leaves the parameter open too.
            if name not in system.parameters.model_fields_set or value is None is field.default:
                continue
            if name in values and _is_list(field.annotation):
                value = [*values[name], *(item for item in value if item not in values[name])]
            elif values.setdefault(name, value) != value:
                raise RecipeError(
                    f"{kind.__name__}: {name} = {shown(values[name])} by {places[name]}, "
                    f"but {shown(value)} by {place}; only one value is allowed"
                )
            values[name] = value
            places.setdefault(name, place)
    return kind(**values)


def _is_list(annotation: Any) -> bool:
    """Whether a parameter holds any number of items, not a vector of fixed length."""
    return get_origin(annotation) is list or get_args(annotation)[1:] == (Ellipsis,)
