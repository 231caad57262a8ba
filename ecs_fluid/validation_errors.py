"""Turns pydantic's validation errors into one sentence: place, value, what is allowed, nearest name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ecs_fluid.errors import FluidError, RecipeError

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
"""Pattern of the names of entities, which become names of files."""

LONGEST_NAME = 100
"""Most characters of a name. World files allow fewer, as systems derive longer names from theirs."""

COLOR = r"^(red|blue|yellow|green|orange|purple|cyan|pink|brown|white|grey|black|#[0-9a-fA-F]{6})$"
COLORS = f"a colour: {', '.join(COLOR[2:].split('|')[:-1])}, or #rrggbb"

_PATTERNS = {COLOR: COLORS, NAME: "a name of letters a to z, digits, _ and - that begins with a letter"}


DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.IGNORECASE)
"""Names that no file can have on Windows, whatever its ending."""

OTHER_WORDS = {
    "sphere": ("ball",),
    "ball": ("sphere",),
    "disk": ("ball",),
    "circle": ("ball",),
    "block": ("box",),
    "cuboid": ("box",),
    "rectangle": ("box",),
    "polytope": ("points",),
    "polygon": ("points",),
    "smoke": ("tracers",),
    "particles": ("tracers",),
    "water": ("liquid",),
    "obstacle": ("body",),
    "collider": ("body",),
    "solid": ("body",),
    "source": ("emitter",),
    "position": ("center",),
    "location": ("center",),
    "length": ("duration", "scale"),
    "rms": ("speed",),
    "level": ("inside",),
    "threshold": ("inside",),
    "size": ("spread", "radius", "shape"),
    "radius": ("size", "spread", "shape"),
    "alembic": ("usd",),
    "abc": ("usd",),
    "glb": ("gltf",),
}
"""Words of other programs, and what the things may be called here, the best first."""

MANY = 24
"""Most names that a sentence lists; it counts the rest."""


def unfit_for_files(name: str, taken: Iterable[str]) -> str:
    """Why files of an entity cannot have this name on every system, "" if they can.

    Files of an entity have its name. On macOS and Windows small and capital letters are the same in those.
    """
    if DEVICES.fullmatch(name):
        return "is a device on Windows, where no file can have that name; choose another name"
    twin = next((other for other in taken if other.casefold() == name.casefold()), None)
    alone = "in small and capital letters alone, so on macOS and Windows their files would be the same"
    return f"differs from {twin!r} {alone}; choose another name" if twin is not None else ""


def closest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that was probably meant; None if none is close.

    Close is another word for it, the same letters in another order, or a likeness (0 to 1) of at least that.
    """
    known = sorted(known)
    for other in OTHER_WORDS.get(name.lower(), ()):
        if other in known:
            return other
    # Two swapped letters of a short word share little in order, so the same letters count as close too.
    swapped = [word for word in known if sorted(word) == sorted(name)]
    return next(iter(swapped or difflib.get_close_matches(name, known, n=1, cutoff=likeness)), None)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint ``did you mean 'x'?`` when `name` is close to a known name, else the list of names."""
    known = sorted(known)
    if (close := closest(name, known)) is not None:
        return f"did you mean {close!r}?"
    listed = ", ".join(known[:MANY])
    more = f" and {len(known) - MANY} more" if len(known) > MANY else ""
    return f"known: {listed}{more}" if known else "there are none"


def shown(value: Any) -> str:
    """A value as a sentence shows it, in at most 60 characters; tables as in a world file."""
    return shortened(_written(value))


def _written(value: Any) -> str:
    """A value as Python writes it, but models, and tables whose keys are names, as inline tables of TOML."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_unset=True)
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(key, str) and key.isidentifier() for key in value)
    ):
        return f"{{ {', '.join(f'{key} = {_written(item)}' for key, item in value.items())} }}"
    return f"[{', '.join(map(_written, value))}]" if isinstance(value, list) else repr(value)


def shortened(text: str, most: int = 60) -> str:
    """A text, cut off with "..." if it has more than `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Models that a value of an annotated type may be: itself, members of a union, items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def _tagged(model: type[BaseModel], tag: Any) -> bool:
    """Whether a union finds the model by this tag, a value of one of its Literal fields."""
    return any(tag in get_args(field.annotation) for field in model.model_fields.values())


def _has_name(model: type[BaseModel], word: str) -> bool:
    """Whether a word is the name of a model, with or without the last part of it."""
    name = model.__name__
    return bool(word) and word.lower() in (name.lower(), re.sub("[A-Z][a-z]*$", "", name).lower())


def _models_at(
    model: type[BaseModel] | None, path: tuple[Any, ...]
) -> tuple[list[type[BaseModel]], tuple[Any, ...]]:
    """The models that `path` may lead to, and the path without tags of unions."""
    models, shown = [model] if model is not None else [], []
    for part in path:
        fields = [m.model_fields[part] for m in models if part in m.model_fields]
        tagged = [m for m in models if _tagged(m, part)]
        if fields or not tagged:
            shown.append(part)
        if not isinstance(part, int):
            models = [m for field in fields for m in models_in(field.annotation)] if fields else tagged
    return models, tuple(shown)


def _parts(annotation: Any) -> list[Any]:
    """What a value of an annotated type may be: the members of unions, or the type itself."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return [part for member in get_args(annotation) for part in _parts(member)]
    return [annotation]


def _expected(model: type[BaseModel] | None, path: tuple[Any, ...]) -> str | None:
    """What is allowed, as text, for a parameter that is a list of fixed length or may be keyed; else None."""
    if model is None or not path or isinstance(path[-1], int):
        return None
    holders, _ = _models_at(model, path[:-1])
    fields = [holder.model_fields[path[-1]] for holder in holders if path[-1] in holder.model_fields]
    parts = [part for field in fields for part in _parts(field.annotation)]
    counts = {
        len(get_args(part)) for part in parts if get_origin(part) is tuple and ... not in get_args(part)
    }
    keyed = any("keys" in model.model_fields for part in parts for model in models_in(part))
    if len(counts) > 1 or not (counts or keyed):
        return None
    one = f"a list of {counts.pop()} numbers" if counts else "a number"
    return f"{one}, or {{ keys = [[time, value], ...] }}," if keyed else one


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


def _deepest(details: list[Any]) -> list[Any]:
    """Of the alternatives of a union, the details of the one that got furthest, to a key inside."""
    first = details[0]["loc"]
    inner = [d for d in details if d["loc"][: len(first) - 1] == first[:-1] and len(d["loc"]) > len(first)]
    return _deepest(inner) if inner and _alternative(first[-1]) else details


def _unknown_key(key: str, word: str, model: type[BaseModel] | None, holders: list[type[BaseModel]]) -> str:
    """What is wrong with a key whose last part, `word`, none of the models `holders` has."""
    if key in getattr(model, "untyped", ()):
        return (
            f"{key!r} has no type annotation, so it is not a parameter; write for example {key}: float = 1.0"
        )
    known = [name for holder in holders for name in holder.model_fields]
    return f"unknown key {shown(key)}; {nearest(word, known)}"


def _short_list(details: list[Any], first: Any, path: tuple[Any, ...], model: type[BaseModel] | None) -> str:
    """What is wrong with a list that is too short: pydantic names each place that is empty."""
    value, where = first["input"], first["loc"]
    lack = sum(each["loc"][:-1] == where[:-1] and each["type"] == "missing" for each in details)
    needed = _expected(model, path[:-1]) or f"a list of {len(value) + lack}"
    return f"{'.'.join(map(str, path[:-1]))} = {shown(value)}; {needed} is needed"


def _unknown_tag(key: str, context: dict[str, Any], models: list[type[BaseModel]]) -> str:
    """What is wrong with the tag by which a union chooses among models."""
    field, tag = context["discriminator"].strip("'"), str(context.get("tag", ""))
    problem = f"= {context['tag']!r} is not known" if "tag" in context else "is missing"
    tags = {model: get_args(model.model_fields[field].annotation) for model in models}
    meant = [own for model, own in tags.items() if _has_name(model, tag)]
    known = [name for own in tags.values() for name in own]
    hint = f"did you mean {' or '.join(map(repr, meant[0]))}?" if meant else nearest(tag, known)
    return f"{key}.{field} {problem}; {hint}"


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
    kinds = ("extra_forbidden", "value_error", "wrong_kind")
    telling = [item for kind in kinds for item in details if item["type"] == kind]
    first = (telling or _deepest(details))[0]
    where = first["loc"]
    # An unknown key may be called as an alternative or a tag is, and is shown all the same.
    unknown = where[-1:] if first["type"] == "extra_forbidden" else ()
    path = tuple(part for part in where[: len(where) - len(unknown)] if not _alternative(part))
    models, path = _models_at(model, path)
    key = ".".join(str(part) for part in (*path, *unknown))
    value, context = first.get("input"), first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden":
            return f"{place}: {_unknown_key(key, str(unknown[0]), model, models)}"
        case "missing" if path and isinstance(path[-1], int):
            return f"{place}: {_short_list(details, first, path, model)}"
        case "missing":
            return f"{place}: {shown(key)} is missing"
        case "union_tag_not_found" | "union_tag_invalid":
            return f"{place}: {_unknown_tag(key, context, models)}"
        case "model_attributes_type" | "model_type":
            return f"{place}: {f'{key} = ' if key else ''}{shown(value)}; a table is needed"
        case "literal_error" | "enum":
            allowed = context.get("expected", "")
            return f"{place}: {key} = {shown(value)}; allowed: {allowed}"
        case "value_error" | "assertion_error" | "wrong_kind":
            reason = str(context.get("error", first["msg"]))
            return f"{place}: {key} = {shown(value)}: {reason}" if key else f"{place}: {reason}"
        case "invalid_key":
            return f"{place}: {shown(value)} is not a key; text is needed"
        case "finite_number":
            return f"{place}: {key} = {shown(value)}; a finite number is needed"
        case "string_pattern_mismatch":
            pattern = str(context.get("pattern"))
            allowed = _PATTERNS.get(pattern, f"text of the form {pattern}")
            return f"{place}: {key} = {shown(value)}; {allowed} is needed"
        case "tuple_type" | "list_type" if isinstance(value, str) and "," in value:
            return f"{place}: {key} = {shown(value)}; a list is needed, written [{value}]"
        case "tuple_type" | "float_type" | "too_long" if (wanted := _expected(model, path)) is not None:
            return f"{place}: {key} = {shown(value)}; {wanted} is needed"
        case kind if limit := _limits(context):
            what = "a number" if "than" in kind else "a value"
            return f"{place}: {key} = {shown(value)}; {what} {limit} is needed"
        case _:
            reason = first["msg"].removeprefix("Input should be ")
            reason = re.sub(", (got|unable) .*", "", reason).replace("valid integer", "whole number")
            reason = re.sub("valid (tuple|list)", "list", reason).replace("valid dictionary", "table")
            return f"{place}: {key} = {shown(value)}; {reason} is needed"


def validated(model: type[BaseModel], values: Any, place: str, kind: type[FluidError] = RecipeError) -> Any:
    """Validate `values` with `model`, or raise an error of that kind with one sentence."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise kind(sentence(error, place, model)) from None
