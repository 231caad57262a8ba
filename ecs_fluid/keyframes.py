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

Between = Literal["linear", "smooth", "step"]


class Keyed(Settings):
    """Keys in time: ``{ keys = [[0.0, 1.0], [2.0, 5.0]], between = "smooth" }``.

    Each key is [time in s, value]; the value is a number, or a list for vectors. Before the first and
    after the last key the value stays. Between two keys it changes linearly (`linear`), by a cubic whose rate
    of change has no jumps (`smooth`, see `smooth_slopes`), or stays until the next key (`step`).
    """

    keys: list[tuple[float, float | list[float]]] = Field(min_length=1)
    """[time s, value] pairs"""
    between: Between = "linear"
    """law between two keys: linear, smooth or step"""

    @field_validator("keys", mode="before")
    @classmethod
    def _pairs(cls, keys: Any) -> Any:
        """Refuse keys written as one flat list, [time, x, y, z], with a hint."""
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

    @cached_property
    def slopes(self) -> Array:
        """Rates of change (n,) or (n, k), per s, at the keys, for `smooth`."""
        return smooth_slopes(self.times, self.values)

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
    if parameter.between == "smooth":
        return smooth_values(times, values, parameter.slopes, time)
    if values.ndim == 1:
        return np.asarray(np.interp(time, times, values))
    return np.stack([np.interp(time, times, column) for column in values.T], axis=-1)


def varies(parameter: Any) -> bool:
    """Whether a constant or keyed parameter takes more than one value."""
    return isinstance(parameter, Keyed) and bool(np.ptp(parameter.values, axis=0).any())


def integral(parameter: float | Keyed, begin: float, end: float) -> float:
    """Integral of a constant or keyed number from `begin` to `end` s, exact between the keys."""
    if not isinstance(parameter, Keyed):
        return float(parameter) * (end - begin)
    edges = parameter.edges(begin, end)
    mean = value_at(parameter, 0.5 * (edges[:-1] + edges[1:]))
    if parameter.between == "smooth":  # Simpson's rule is exact for cubics
        ends = value_at(parameter, edges)
        mean = (ends[:-1] + 4 * mean + ends[1:]) / 6
    return math.fsum(np.diff(edges) * mean)


def smooth_slopes(times: Array, values: Array) -> Array:
    """Rates of change (n, ...), per s, at keys of a smooth curve through `values` (n, ...) at `times` (n,) s.

    They are 0 at the first and the last key. At other keys, the rate is that of the parabola through the
    value and its two neighbours (Catmull and Rom's spline, for uneven times). Its size is at most
    3 (1 + cos) / 2 times the smaller of the mean rates to the two neighbours, with the angle between these
    rates. So a value that is the same at two keys in succession stays constant between them, and the
    rate is 0 at a key where the direction reverses. Numbers, and vectors along a line, rise or fall all the
    way from key to key and stay between the two values (de Boor and Swartz, J. Approx. Theory 21, 1977). For
    paths of even pace, the limit has no effect at keys where they turn by less than 141 degrees, since it
    would flatten their bends.
    """
    step = np.diff(times).reshape(-1, *(1,) * (values.ndim - 1))
    rise = np.diff(values, axis=0) / step
    before, after = rise[:-1], rise[1:]
    free = (step[1:] * before + step[:-1] * after) / (step[:-1] + step[1:])
    pace, next_pace, size = _lengths(before), _lengths(after), _lengths(free)
    product = before * after if values.ndim == 1 else (before * after).sum(axis=-1, keepdims=True)
    cosine = np.divide(product, pace * next_pace, out=-np.ones_like(product), where=pace * next_pace > 0)
    most = 1.5 * np.minimum(pace, next_pace) * (1 + cosine)
    slopes = np.zeros_like(values)
    slopes[1:-1] = np.where(size > most, free / np.where(size > 0, size, 1.0) * most, free)
    return slopes


def _lengths(rates: Array) -> Array:
    """Sizes of numbers (n,), or lengths of vectors (..., k) as (..., 1)."""
    return np.abs(rates) if rates.ndim == 1 else np.linalg.norm(rates, axis=-1, keepdims=True)


def smooth_values(times: Array, values: Array, slopes: Array, time: float | Array) -> Array:
    """Values at `time` s, () or (m,), of cubics with those `values` and `slopes` (n, ...) at `times` (n,)."""
    # Hermite's cubic from key k to the next one, at the fraction `share` of the step between them.
    k = np.clip(np.searchsorted(times, time, side="right") - 1, 0, len(times) - 2)
    more = np.shape(time) + (1,) * (values.ndim - 1)
    step = np.reshape(times[k + 1] - times[k], more)
    share = np.clip((np.reshape(time, more) - np.reshape(times[k], more)) / step, 0.0, 1.0)
    rest, blend = 1 - share, share * share * (3 - 2 * share)
    bend = share * rest * step * (rest * slopes[k] - share * slopes[k + 1])
    result = (1 - blend) * values[k] + blend * values[k + 1] + bend
    if values.ndim == 1:  # rounding must not take it beyond the two keys
        result = np.clip(result, np.minimum(values[k], values[k + 1]), np.maximum(values[k], values[k + 1]))
    return np.asarray(result)
