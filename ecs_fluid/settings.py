"""The base of all parameter models: values are checked as written, and mistakes get one sentence."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from ecs_fluid.attribute_docs import attribute_docstrings
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.validation_errors import nearest, sentence

LARGEST = 1e30
"""Largest magnitude of a number in settings, in any unit."""


def _check_number(value: Any) -> Any:
    """Refuse what pydantic would turn into a number, and numbers too large to calculate with."""
    if isinstance(value, str | bytes | bool | np.bool_):
        raise PydanticCustomError("wrong_kind", "a number is needed, written in digits without quotes")
    size: Any = abs(value) if isinstance(value, float | int | np.number | Decimal) else 0
    if LARGEST < size < math.inf:  # pydantic refuses what is not finite
        raise ValueError(f"a magnitude of at most {LARGEST:g} is needed")
    return value


def _check_truth(value: Any) -> Any:
    """Refuse numbers and words that pydantic would turn into true or false."""
    if isinstance(value, str | bytes | Number) and not isinstance(value, bool):
        raise ValueError("true or false is needed, without quotes")
    return value


def _check_text(value: Any) -> Any:
    """Refuse bytes, which pydantic would turn into text."""
    if isinstance(value, bytes | bytearray):
        raise ValueError("text is needed, not bytes")
    return value


_CHECKS = {"float": _check_number, "int": _check_number, "bool": _check_truth, "str": _check_text}


def _strict(schema: Any) -> Any:
    """A pydantic schema that converts no text, number or truth value into another type, however deep."""
    if type(schema) in (list, tuple):
        return type(schema)(map(_strict, schema))
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _CHECKS:
        return no_info_before_validator_function(_CHECKS[kind], schema)
    if kind == "function-before" and schema["function"]["function"] in _CHECKS.values():
        return schema
    kept = ("default", "metadata")
    return {key: value if key in kept else _strict(value) for key, value in schema.items()}


class Settings(BaseModel):
    """Base of parameter models: unknown keys refused, values fixed once made, numbers finite and in digits.

    A parameter is described by the docstring under it, "core radius, m": its meaning and, after a comma, its
    unit.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True, defer_build=True
    )
    written_in: ClassVar[type | None] = None
    """Class that declares the parameters, where it is not the model itself."""
    untyped: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that are no parameters because they have no annotation."""

    if not TYPE_CHECKING:  # checkers know the fields as keywords

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise RecipeError(sentence(error, type(self).__name__, type(self))) from None

        # With this, pydantic skips it when it validates plain data, and collects the errors of all parts.
        __init__.__pydantic_base_init__ = True

        def __setattr__(self, name: str, value: Any) -> None:
            """Refuse it with a sentence; only names that begin with an underscore can be set."""
            if name.startswith("_"):
                return super().__setattr__(name, value)
            title, known = type(self).__name__, type(self).model_fields
            if name in known:
                raise RecipeError(f"{title}.{name} cannot be changed; give it when the {title} is made")
            raise RecipeError(f"{title} has no {name!r}; {nearest(name, known)}")

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Description of each parameter, with its unit, by name."""
        described = {name: field.description or "" for name, field in cls.model_fields.items()}
        return described | attribute_docstrings(cls.written_in or cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = _strict(handler(source))
        return schema

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in cls.descriptions().items():
            if text and name in properties:
                properties[name]["description"] = text
        return schema


def plain_data(
    model: Settings, place: str, error: type[FluidError] = RecipeError, **options: Any
) -> dict[str, Any]:
    """Values of a model as plain data, for files; `options` of pydantic's dump say which.

    Raises `error`, which names the `place`, for objects that no file can hold.
    """
    try:
        return model.model_dump(mode="json", **options)
    except ValueError as reason:
        raise error(
            f"{place}: a parameter is not plain data ({reason}); numbers, text, lists and tables are allowed"
        ) from None
