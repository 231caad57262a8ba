"""Turns pydantic's validation errors into one sentence: place, value, what is allowed, nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from ecs_fluid.errors import RecipeError


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint ``; did you mean 'x'?`` when `name` is close to a known name, else the list of names."""
    known = sorted(known)
    # Two swapped letters of a short word share little in order, so the same letters count as close too.
    swapped = [word for word in known if sorted(word) == sorted(name)]
    close = swapped or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known)}" if known else "nothing is known here"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _keys(model: type[BaseModel] | None, path: tuple[Any, ...]) -> list[str]:
    """Field names of the model that `path` leads to, as far as plain nesting goes."""
    for part in path:
        field = model.model_fields.get(str(part)) if model is not None else None
        inner = field.annotation if field is not None else None
        model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    return list(model.model_fields) if model is not None else []


def _limits(context: dict[str, Any]) -> str:
    words = {
        "gt": "above",
        "ge": "at least",
        "lt": "below",
        "le": "at most",
        "min_length": "of length at least",
        "max_length": "of length at most",
    }
    return " and ".join(f"{words[key]} {value}" for key, value in context.items() if key in words)


def _alternative(part: Any) -> bool:
    """Whether a part of a location is pydantic's name for one alternative of a union."""
    return isinstance(part, str) and ("[" in part or part in ("float", "int", "str", "bool"))


def _furthest(details: list[Any]) -> list[Any]:
    """The details without an alternative of the wrong type whose neighbour got as far as a key inside."""
    first = details[0]["loc"]
    inner = [d for d in details if d["loc"][: len(first) - 1] == first[:-1] and len(d["loc"]) > len(first)]
    return inner if inner and _alternative(first[-1]) else details


def sentence(error: ValidationError, place: str, model: type[BaseModel] | None = None) -> str:
    """One sentence for the first thing wrong.

    Args:
        error: what pydantic raised.
        place: where the values came from, for example ``[[entity]] 'ring'``.
        model: model that was validated, for the nearest known key.
    """
    details = error.errors(include_url=False)
    # An unknown key usually explains the missing one next to it, so it goes first; a broken rule of one
    # alternative says more than that the value is not of the other alternative's type.
    telling = [
        item for kind in ("extra_forbidden", "value_error") for item in details if item["type"] == kind
    ]
    first = (telling or _furthest(details))[0]
    path = tuple(part for part in first["loc"] if not _alternative(part))
    key = ".".join(str(part) for part in path)
    value, context = first.get("input"), first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden":
            known = _keys(model, path[:-1])
            return f"{place}: unknown key {key!r}; {nearest(str(path[-1]), known)}"
        case "missing":
            return f"{place}: {key!r} is missing"
        case "literal_error" | "enum":
            allowed = context.get("expected", "")
            return f"{place}: {key} = {_shown(value)}; allowed: {allowed}"
        case "value_error" | "assertion_error":
            reason = str(context.get("error", first["msg"]))
            return f"{place}: {key} = {_shown(value)}: {reason}" if key else f"{place}: {reason}"
        case "finite_number":
            return f"{place}: {key} = {_shown(value)}; a finite number is needed"
        case kind if limit := _limits(context):
            what = "a number" if "than" in kind else "a value"
            return f"{place}: {key} = {_shown(value)}; {what} {limit} is needed"
        case _:
            reason = first["msg"].removeprefix("Input should be ")
            return f"{place}: {key} = {_shown(value)}; {reason} is needed"


def validated(model: type[BaseModel], values: Any, place: str) -> Any:
    """Validate `values` with `model`, or raise RecipeError with one sentence."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RecipeError(sentence(error, place, model)) from None
