"""Clock, arithmetic, space and seed of a world, checked."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypedDict

from pydantic import BeforeValidator, Field, model_validator

from ecs_fluid.periodic import AXES
from ecs_fluid.settings import LARGEST, Settings


def _quotient(value: Any) -> Any:
    """The number that a text such as "1/60" stands for; other values are returned as they are."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(_QUOTIENT, value)
    try:
        over, under = map(float, match.groups()) if match else (0.0, 0.0)
    except ValueError:
        over = under = 0.0
    if not (0 < over <= LARGEST and 1 / LARGEST <= under <= LARGEST):
        raise ValueError('a number, or a quotient of two positive numbers such as "1/60", is needed')
    return over / under


_QUOTIENT = "^([0-9.eE+ -]+)/([0-9.eE+ -]+)$"
_Step = Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=_QUOTIENT)]


Integrator = Literal["euler", "rk2", "rk3", "rk4"]
Precision = Literal["single", "double"]


LONGEST = 1e9
"""Longest period of a world that repeats, m."""


class WorldOptions(Settings):
    """Clock, arithmetic and seed of a world."""

    dt: Annotated[float, BeforeValidator(_quotient, json_schema_input_type=_Step)] = Field(
        default=1 / 30, gt=0
    )
    """time step of a tick, s; a number, or a quotient: '1/60'"""
    integrator: Integrator = "rk2"
    """Runge-Kutta method of order 1 to 4 for every rate"""
    precision: Precision = "single"
    """float32 or float64 tables"""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """seed of all random numbers"""
    dimension: Literal[2, 3] = 3
    """2: flow in a plane through the origin, the same at all places across it; the world is one metre deep"""
    plane: Literal["xy", "xz"] = "xy"
    """the plane of a world of dimension 2; z is up, so flows with gravity or layers need "xz" """
    periodic: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """lengths of a box about the origin that repeats, m; 0 along an axis that does not"""
    debug: bool = False
    """fill derived tables with NaN in each tick, and refuse what systems use without declaring it (slow)"""

    @property
    def across(self) -> int | None:
        """Axis normal to the plane of a two-dimensional world, 1 (y) or 2 (z); None in three dimensions."""
        return None if self.dimension == 3 else 3 - AXES.index(self.plane[1])

    @model_validator(mode="after")
    def _plane_of_two_dimensions(self) -> Self:
        if self._names_plane() and self.dimension == 3:
            raise ValueError(
                f"plane = {self.plane!r} is for worlds of dimension = 2; set dimension = 2, or leave plane "
                "out"
            )
        return self

    def _names_plane(self) -> bool:
        """Whether a plane was chosen: another than the default, which stored worlds name too."""
        return self.plane == "xz"

    @model_validator(mode="after")
    def _space_repeats(self) -> Self:
        if not all(0 <= period <= LONGEST for period in self.periodic):
            raise ValueError(
                f"periodic = {list(self.periodic)} m; three lengths of 0 to {LONGEST:g} m are allowed"
            )
        if self.across is not None and self.periodic[self.across]:
            raise ValueError(
                f"periodic = {list(self.periodic)} m repeats across the plane {self.plane!r} of a world of "
                "dimension = 2, across which nothing changes; make that period 0"
            )
        return self


class WorldKeywords(TypedDict, total=False):
    """The fields of WorldOptions as keywords of World, for editors and type checkers."""

    dt: float | str
    integrator: Integrator
    precision: Precision
    seed: int
    dimension: Literal[2, 3]
    plane: Literal["xy", "xz"]
    periodic: tuple[float, float, float]
    debug: bool
