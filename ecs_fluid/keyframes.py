"""Parameters that change over time: a constant, or keys (time, value) with a law between them."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from ecs_fluid.component import Array
from ecs_fluid.settings import Settings


class Keyed(Settings):
    """Keys in time: ``{ keys = [[0.0, 1.0], [2.0, 5.0]], between = "linear" }``.

    Each key is [time in s, value]; the value is a number, or a list for vectors. Before the first and
    after the last key the value stays.
    """

    keys: list[tuple[float, float | list[float]]] = Field(min_length=1)
    """[time s, value] pairs"""
    between: Literal["linear", "step"] = "linear"
    """law between two keys"""

    @field_validator("keys", mode="before")
    @classmethod
    def _pairs(cls, keys: Any) -> Any:
        """What people write as one flat list, [time, x, y, z]."""
        for key in keys if isinstance(keys, list | tuple) else ():
            if isinstance(key, list | tuple) and len(key) != 2:
                raise ValueError(
                    "each key is a pair: [time, value] for a number, [time, [x, y, z]] for a vector"
                )
        return keys

    @model_validator(mode="after")
    def _ordered(self) -> Keyed:
        times = [time for time, _ in self.keys]
        if any(b <= a for a, b in pairwise(times)):
            raise ValueError("the times of keys must increase")
        sizes = {len(v) if isinstance(v, list) else 0 for _, v in self.keys}
        if len(sizes) > 1:
            raise ValueError("all keys need values of the same length")
        return self

    @cached_property
    def times(self) -> Array:
        """Times (n,) of the keys, s."""
        return np.array([time for time, _ in self.keys])

    @cached_property
    def values(self) -> Array:
        """Values (n,) or (n, k) of the keys, each of the k columns side by side in memory."""
        return np.array([value for _, value in self.keys], dtype=np.float64, order="F")

    def edges(self, begin: float, end: float) -> Array:
        """`begin`, the times of the keys between, and `end`, s."""
        first, last = np.searchsorted(self.times, begin, "right"), np.searchsorted(self.times, end)
        return np.concatenate([[begin], self.times[first:last], [end]])


def _of_numbers(keyed: Keyed) -> Keyed:
    if any(isinstance(value, list) for _, value in keyed.keys):
        raise ValueError("keys of a number need one number each, [time, value]")
    return keyed


def _of_vectors(keyed: Keyed) -> Keyed:
    if any(not isinstance(value, list) or len(value) != 3 for _, value in keyed.keys):
        raise ValueError("keys of a vector need 3 numbers each, [time, [x, y, z]]")
    return keyed


KeyedNumber = Annotated[
    float | Annotated[Keyed, AfterValidator(_of_numbers)], Field(union_mode="left_to_right")
]
KeyedVector = Annotated[
    tuple[float, float, float] | Annotated[Keyed, AfterValidator(_of_vectors)],
    Field(union_mode="left_to_right"),
]


def value_at(parameter: Any, time: float | Array) -> Array:
    """Value of a constant or keyed parameter at `time` s; shape () or (k,).

    For a keyed parameter `time` may be an array (n,); the result is then (n,) or (n, k).
    """
    if not isinstance(parameter, Keyed):
        return np.asarray(parameter, dtype=np.float64)
    times, values = parameter.times, parameter.values
    if parameter.between == "step" or len(times) == 1:
        return np.array(values[np.maximum(np.searchsorted(times, time, side="right") - 1, 0)], order="C")
    if values.ndim == 1:
        return np.asarray(np.interp(time, times, values))
    return np.stack([np.interp(time, times, column) for column in values.T], axis=-1)


def integral(parameter: float | Keyed, begin: float, end: float) -> float:
    """Integral of a constant or keyed number from `begin` to `end` s, exact between the keys."""
    if not isinstance(parameter, Keyed):
        return float(parameter) * (end - begin)
    edges = parameter.edges(begin, end)
    # Between two edges the parameter is constant or linear, so its middle value is its mean.
    return math.fsum(np.diff(edges) * value_at(parameter, 0.5 * (edges[:-1] + edges[1:])))
