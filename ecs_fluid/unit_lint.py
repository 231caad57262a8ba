"""Numbers probably meant in another unit: degrees Celsius or of arc, centimetres, feet, g/cm^3, frames."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Tables
from ecs_fluid.fluid import EARTH, Fluid
from ecs_fluid.keyframes import Keyed, integral
from ecs_fluid.settings import Settings
from ecs_fluid.system import System

if TYPE_CHECKING:
    from ecs_fluid.world import World

NITROGEN = 77.0
"""Boiling point of nitrogen, K: a lower temperature was probably meant in degrees Celsius."""

LENGTHS = {"millimetres": 1000.0, "centimetres": 100.0, "inches": 39.3701, "feet": 3.28084}
"""Units of length that other programs count in; how many there are in a metre."""

PROTRACTOR = 15.0
"""Keys of rotations that are all whole multiples of so many degrees were meant in degrees."""

LIQUID = 500.0
"""Density of fluids, kg/m^3, from which on they are liquids."""

GRAMS = (0.3, 25.0)
"""Densities of solids and liquids in g/cm^3, from cork to metals. In kg/m^3 they are those of gases."""

GASES = (1.1, 2.0)
"""Densities of gases that bubbles are likely to hold, from air to carbon dioxide, kg/m^3."""

ONE = 1.0 - 1e-6
"""Births up to the end of a run below which there is none, with some digits to spare."""


def of_unit(model: Settings, unit: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """Places and values of the parameters whose descriptions name that unit, those of inner models too."""
    for where, value, meaning in _parameters(model, place):
        if re.search(rf", {re.escape(unit)}(?=$|[;:,() ])", meaning):
            yield where, value


def _parameters(model: Settings, place: str) -> Iterator[tuple[str, Any, str]]:
    """Places, values and descriptions of the parameters that are given, those of inner models too."""
    told = model.descriptions()
    for name, value in model:
        parts = value if isinstance(value, list | tuple) else [value]
        if isinstance(value, Keyed) or not any(isinstance(part, Settings) for part in parts):
            if value is not None:
                yield place + name, value, told.get(name, "")
            continue
        for number, part in enumerate(parts):
            if isinstance(part, Settings):
                which = "" if part is value else f"[{getattr(part, 'name', number)!r}]"
                yield from _parameters(part, f"{place}{name}{which}.")


def celsius_lint(world: World, systems: list[System]) -> Iterator[str]:
    """Sentences on temperatures below that of liquid nitrogen: of the fluid, of rows and of systems.

    A temperature of 0 stands for none.
    """
    for entity in world.entities:
        yield from cold_rows_lint(entity.tables, "" if entity.name == "fluid" else f" of {entity.name!r}")
    for system in systems:
        units = ["K", *(["unit of the field"] if getattr(system, "of", "") == "temperature" else [])]
        named = (of_unit(system.parameters, unit, f"{type(system).__name__}.") for unit in units)
        for place, value in chain.from_iterable(named):
            yield from _cold_lint(place, value.values if isinstance(value, Keyed) else np.array(value))


def cold_rows_lint(tables: Tables, of: str) -> Iterator[str]:
    """Sentences on temperatures below that of liquid nitrogen in tables; `of` says whose they are."""
    for kind, table in tables.items():
        if not kind.derived:
            columns = [column for column in kind.columns.values() if column.unit.split(", ")[-1] == "K"]
            places = [(f"{kind.__name__}.{column.name}{of}", column) for column in columns]
            told = (_cold_lint(place, vars(table)[column.name], column.unit) for place, column in places)
            # One is enough: others often follow from it.
            yield from islice(chain.from_iterable(told), 1)


def _cold_lint(place: str, values: Array, unit: str = "K") -> Iterator[str]:
    """A sentence on the lowest of temperatures (...,) K; the last column of `values` with several units."""
    if values.dtype.kind not in "fiu":
        return
    last = values[..., -1] if "," in unit else values
    cold = last[(last > 0) & (last < NITROGEN)]
    if cold.size:
        value = float(cold.min())
        yield (
            f"{place} = {value:.6g} K is colder than liquid nitrogen; temperatures are in kelvin, so "
            f"{value:.6g} degrees Celsius are {value + 273.15:.6g}"
        )


def lengths_lint(world: World) -> Iterator[str]:
    """A sentence where gravity is that of the earth in another unit of length, to 1 %."""
    strongest = float(np.linalg.norm(world.fluid[Fluid].gravity, axis=-1).max())
    for name, in_metre in LENGTHS.items():
        if abs(strongest / in_metre / EARTH - 1.0) < 0.01:
            yield (
                f"gravity = {strongest:g} m/s^2 is that of the earth in {name}; lengths are in metres, so "
                f"divide all of them by {in_metre:g}, areas, circulations and viscosities by its square"
            )


def degrees_lint(model: Settings) -> Iterator[str]:
    """Sentences on rotation vectors in a model, rad, that turn by more than a whole turn.

    Those that are keyed in time may do so, unless all keys are multiples of `PROTRACTOR`.
    """
    for place, value in of_unit(model, "rad"):
        turns = np.atleast_2d(value.values if isinstance(value, Keyed) else np.array(value, np.float64))
        angle = float(np.linalg.norm(turns, axis=-1).max())
        if angle > 2 * math.pi and not (isinstance(value, Keyed) and (turns % PROTRACTOR).any()):
            shown = "a key" if isinstance(value, Keyed) else list(value)
            yield (
                f"{place} = {shown} turns by {angle:g} rad; rotations are in radians, so {angle:g} degrees "
                f"are {math.radians(angle):.4g}"
            )


def grams_lint(model: Settings, fluid: float) -> Iterator[str]:
    """Sentences on densities in a model that are as low as those of gases, in a liquid of that density."""
    for place, value in of_unit(model, "kg/m^3") if fluid >= LIQUID else ():
        if not isinstance(value, float) or not GRAMS[0] <= value <= GRAMS[1]:
            continue
        if not GASES[0] <= value <= GASES[1]:
            yield (
                f"{place} = {value:g} kg/m^3 is that of a gas, in a liquid of {fluid:g} kg/m^3; densities "
                f"are in kg/m^3, so {value:g} g/cm^3 are {1000 * value:g}"
            )


def late_lint(model: Settings, end: float) -> Iterator[str]:
    """Sentences on what has its second key after the `end` of the run, s, and on emitters that give off
    nothing by then."""
    for place, value, _ in _parameters(model, ""):
        if isinstance(value, Keyed) and len(value.times) > 1 and value.times[1] > end:
            yield (
                f"{place} has its second key at {value.times[1]:g} s, but the run ends at {end:g} s; times "
                "are in seconds, not in frames"
            )
    begin, rate = getattr(model, "start", None), getattr(model, "rate", None)
    if isinstance(begin, float) and begin >= end:
        yield (
            f"start = {begin:g} s, but the run ends at {end:g} s, before it begins; times are in seconds, "
            "not in frames"
        )
    elif isinstance(begin, float) and rate is not None and 0.0 < (born := integral(rate, begin, end)) < ONE:
        yield (
            f"rate adds up to {born:.3g} by the end of the run at {end:g} s, so nothing is given off; the "
            "first comes at 1"
        )
