"""Sliders for parameters of a running world, which are named by the paths of ``--set``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid, options_of
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.systems import DiffusionSystem, EmissionSystem, InflowSystem
from ecs_fluid.validation_errors import nearest, validated
from ecs_fluid.viz.live import Slider
from ecs_fluid.world import World
from ecs_fluid.worlds.world_tables import FLUID

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Parameter:
    """One parameter of the world's fluid, of a system or of an emitter, or one component of a vector.

    Args:
        get: returns its present value: a number, a vector or Keyed.
        put: sets it, checked as in a world file.
        axis: 0 to 2, or None for a number.
    """

    get: Callable[[], Any]
    put: Callable[[Any], None]
    axis: int | None = None

    def read(self, time: float) -> float:
        """Its value at `time` s."""
        value = value_at(self.get(), time)
        return float(value if self.axis is None else value[self.axis])

    def turn(self, value: float, time: float) -> None:
        """Set the parameter, or its component, to a constant number."""
        if self.axis is None:
            self.put(value)
            return
        vector = [float(part) for part in value_at(self.get(), time)]
        vector[self.axis] = value
        self.put(tuple(vector))


def sliders_of(world: World, texts: tuple[str, ...]) -> list[Slider]:
    """Sliders of texts ``path=low:high``; without any, of all numbers of the world that are keyed in time.

    Raises RecipeError for a path that leads nowhere, a parameter that is no number, and ends it cannot have.
    """
    if texts:
        return [_slider_of_text(world, text) for text in texts]
    return [_slider(world, *found) for found in _keyed(world)]


def _slider_of_text(world: World, text: str) -> Slider:
    path, _, ends = text.partition("=")
    try:
        low, high = map(float, ends.split(":"))
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise RecipeError(
            f"--slide {text!r}: path=low:high with low < high is needed, for example "
            "fluid.viscosity=1e-5:1e-3"
        )
    parameter = _parameter_at(world, path.strip(), f"--slide {text!r}")
    before = parameter.get()
    try:
        for end in (low, high):
            parameter.turn(end, world.time)
    except FluidError as error:
        raise RecipeError(f"--slide {text!r}: {error}") from None
    finally:
        parameter.put(before)
    return _slider(world, path.strip(), parameter, low, high)


def _slider(world: World, path: str, parameter: Parameter, low: float, high: float) -> Slider:
    put: Callable[[float], None] = lambda value: parameter.turn(value, world.time)  # noqa: E731
    whole = isinstance(parameter.get(), int)
    return Slider(path, low, high, parameter.read(world.time), put, whole)


def _parameter_at(world: World, path: str, place: str) -> Parameter:
    """The parameter at a path: fluid.viscosity, fluid.stretch.rate, system.0.rate, wick.rate."""
    parts = path.split(".")
    axis = AXES.index(parts.pop()) if parts[-1] in AXES and len(parts) > 2 else None
    if parts == ["fluid", "viscosity"] and world.system(DiffusionSystem) is None:
        raise RecipeError(f"{place}: the world has no DiffusionSystem; set fluid.viscosity above 0")
    listed = [item["kind"] for item in (world.recipe or {}).get("system", [])]
    if parts[0] == "system" and parts[1:]:
        parts[1] = dict(zip(map(str, range(len(listed))), listed, strict=True)).get(parts[1], parts[1])
    tables, table, name = _tables(world), ".".join(parts[:-1]), parts[-1]
    if table not in tables:
        raise RecipeError(
            f"{place}: {path!r} is not a parameter that can be changed; {nearest(table, tables)}"
        )
    if name not in tables[table]:
        raise RecipeError(f"{place}: {table} has no parameter {name!r}; {nearest(name, tables[table])}")
    parameter = replace(tables[table][name], axis=axis)
    try:
        parameter.read(0.0)
    except (TypeError, ValueError, IndexError):
        raise RecipeError(
            f"{place}: {name} = {parameter.get()!r:.60} is not a number (for a component of a vector, add "
            ".x, .y or .z)"
        ) from None
    return parameter


def _tables(world: World) -> dict[str, dict[str, Parameter]]:
    """All parameters by the tables that hold them: fluid, fluid.stretch, system.wind, wick."""
    fluid = _parameters(
        lambda: options_of(world.fluid[Fluid]), lambda name, value: world.set_fluid(**{name: value})
    )
    tables = {"fluid": fluid}
    keys = {kind: key for key, kind in FLUID.items()}
    for system in world.systems:
        key = keys.get(type(system))
        held = _parameters(partial(getattr, system, "parameters"), partial(setattr, system))
        tables.setdefault(f"fluid.{key}" if key else f"system.{type(system).kind}", held)
        for kind, listed in ((EmissionSystem, "emitters"), (InflowSystem, "inflows")):
            for number, source in enumerate(getattr(system, listed) if isinstance(system, kind) else ()):
                tables[source.name] = _of_source(system, listed, number)
    return tables


def _parameters(holder: Callable[[], Any], put: Callable[[str, Any], None]) -> dict[str, Parameter]:
    """Parameters by name, read from the model that `holder` returns and set by `put`."""

    def one(name: str) -> Parameter:
        return Parameter(lambda: getattr(holder(), name), partial(put, name))

    return {name: one(name) for name in type(holder()).model_fields}


def _of_source(system: Any, listed: str, number: int) -> dict[str, Parameter]:
    """Parameters of one of a system's emitters or inflows."""

    def put(name: str, value: Any) -> None:
        sources = list(getattr(system, listed))
        old = sources[number]
        sources[number] = validated(type(old), dict(old) | {name: value}, repr(old.name))
        setattr(system, listed, sources)

    return _parameters(lambda: getattr(system, listed)[number], put)


def _keyed(world: World) -> Iterator[tuple[str, Parameter, float, float]]:
    """Numbers of the world that are keyed in time: path, parameter, least and largest value."""
    for table, parameters in _tables(world).items():
        for name, parameter in parameters.items():
            given = parameter.get()
            values = [value for _, value in given.keys] if isinstance(given, Keyed) else [0.0]
            for axis in range(3) if isinstance(values[0], list) else (None,):
                numbers = [float(value if axis is None else value[axis]) for value in values]  # type: ignore[index,arg-type]
                if max(numbers) > min(numbers):
                    path = f"{table}.{name}" if axis is None else f"{table}.{name}.{AXES[axis]}"
                    yield path, replace(parameter, axis=axis), min(numbers), max(numbers)
