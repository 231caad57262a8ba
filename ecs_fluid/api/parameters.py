"""Parameters of recipes and systems as rows of a table, read from the models that check them.

A description says what a parameter is and, after a comma, its unit: "core radius, m; at most the radius". A
pure number has the unit 1. Whole numbers are counts, whose unit is 1 without saying so.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import NAME, models_in

ATOM = r"(?:kg|Pa|rad|m|s|K|J|W|N)(?:\^\d+)?"
PRODUCT = rf"(?:{ATOM}(?: {ATOM})*)"
SI = rf"(?:(?:1|{PRODUCT})(?:/(?:{ATOM}|\({PRODUCT}\)))?)"
NAMED = r"(?:core radii|degrees|cells|spacings|ticks|unit of the field|\[\[[^\]]*\], \.\.\.\])"
UNIT = re.compile(rf", (?:in )?({SI}|{NAMED})(?=$|[;:,() ])")


UNITS_OF_PARTS = {"[time s, value] pairs": "s, and the parameter's own"}
"""Units of parameters whose parts have different ones, by the description."""


@dataclass(frozen=True)
class Parameter:
    """One row: all texts, ready to be shown."""

    name: str
    type: str
    default: str
    allowed: str
    unit: str
    meaning: str
    number: bool
    """Whether it holds numbers, which need a unit."""


def parameters(model: type[BaseModel]) -> list[Parameter]:
    """Rows of a model, in the order of its fields, without `kind`."""
    described = model.descriptions() if issubclass(model, Settings) else {}
    return [
        parameter(name, field, described.get(name, ""))
        for name, field in model.model_fields.items()
        if name not in ("kind", "shape") or not _is_tag(field.annotation)
    ]


def parameter(name: str, field: FieldInfo, description: str) -> Parameter:
    """The row of one field."""
    facts = _Facts()
    facts.read(field.metadata)
    text = type_in_words(field.annotation, facts)
    unit, meaning = split_unit(description)
    if not unit:
        unit = "1" if facts.whole else "-"
    return Parameter(name, text, _default(field), facts.allowed(), unit, meaning, facts.number)


def split_unit(description: str) -> tuple[str, str]:
    """Unit ("" if there is none) and meaning of a description."""
    if description in UNITS_OF_PARTS:
        return UNITS_OF_PARTS[description], description
    for found in UNIT.finditer(description):
        before = description[: found.start()]
        if before.count("[") == before.count("]"):  # not the 1 of an example, [0, 0, 1]
            return found[1], before + description[found.end() :]
    return "", description


def inner_models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Models that the fields of a model hold, and those that these hold; `Keyed` too."""
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            yield inner
            yield from inner_models(inner)


def type_in_words(annotation: Any, facts: _Facts) -> str:
    """Type of a value in words; `facts` reads its range."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        facts.read(inside[1:])
        return type_in_words(inside[0], facts)
    if origin is Literal:
        return " or ".join(f"`{_toml(value)}`" for value in inside)
    if origin in (Union, types.UnionType):
        said = [type_in_words(item, facts) for item in inside if item is not type(None)]
        return " or ".join(dict.fromkeys(said))
    if origin is tuple:
        return _tuple(inside, facts)
    if origin is list:
        return f"list of {_plural(type_in_words(inside[0], facts))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    if annotation is bool:
        return "`true` or `false`"
    if annotation is float:
        facts.number = True
        return "number"
    if annotation is int:
        facts.number = facts.whole = True
        return "whole number"
    if annotation is str:
        return "name" if facts.named else "text"
    return "table"


def _tuple(inside: tuple[Any, ...], facts: _Facts) -> str:
    if len(inside) == 2 and inside[1] is Ellipsis:
        return f"list of {_plural(type_in_words(inside[0], facts))}"
    kinds = dict.fromkeys(type_in_words(item, facts) for item in inside)
    return f"{len(inside)} {_plural(next(iter(kinds)))}" if len(kinds) == 1 else f"[{', '.join(kinds)}]"


def _plural(text: str) -> str:
    if text in ("number", "whole number", "name"):
        return text + "s"
    return f"[{text}]" if text[0].isdigit() else text


@dataclass
class _Facts:
    """Range and kind of the values of a field, from its metadata."""

    number: bool = False
    whole: bool = False
    low: str = ""
    high: str = ""
    items: str = ""
    named: bool = False

    def read(self, metadata: Any) -> None:
        """Read annotated-types' limits, also those inside a FieldInfo."""
        for item in metadata:
            if isinstance(item, FieldInfo):
                self.read(item.metadata)
            for key, word in (("ge", "at least"), ("gt", "above")):
                if getattr(item, key, None) is not None:
                    self.low = f"{word} {_number(getattr(item, key))}"
            for key, word in (("le", "at most"), ("lt", "below")):
                if getattr(item, key, None) is not None:
                    self.high = f"{word} {_number(getattr(item, key))}"
            # Names of entities have a pattern of their own, said where names are explained.
            self.named = self.named or getattr(item, "pattern", None) == NAME
            least, most = getattr(item, "min_length", None), getattr(item, "max_length", None)
            if least is not None:
                self.items = f"at least {least:,} items"
            if most is not None and not isinstance(item, FieldInfo):
                self.items = f"{self.items}, at most {most:,}" if self.items else f"at most {most:,} long"

    def allowed(self) -> str:
        """The range in words."""
        low, high = self.low, self.high
        if low.startswith("at least ") and high.startswith("at most "):
            low, high = low.removeprefix("at least ") + " to " + high.removeprefix("at most "), ""
        return ", ".join(part for part in (low, high, "" if self.named else self.items) if part)


def _number(value: float) -> str:
    if isinstance(value, int) and abs(value) < 10**8:
        return f"{value:,}"
    return re.sub(r"e([+-]?)0*(\d)", lambda found: f"e{found[1].strip('+')}{found[2]}", f"{value:.5g}")


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined and field.default_factory is None:
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_toml(item).removesuffix('.0') for item in value)}]"
    if isinstance(value, BaseModel):
        given = value.model_dump(exclude_defaults=True)
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in given.items()) + "}"
    if isinstance(value, float):
        return repr(value) if len(repr(value)) < 9 else f"{value:.6g}"
    return "{}" if isinstance(value, dict) and not value else repr(value)


def _is_tag(annotation: Any) -> bool:
    """Whether a field tags its model: a Literal of a single value."""
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1
