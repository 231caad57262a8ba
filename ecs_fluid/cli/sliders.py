"""Parameters of a world under a slider: found by the paths of ``--set``, changed while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid, FluidOptions, options_of
from ecs_fluid.keyframes import Keyed, value_at
from ecs_fluid.system import System
from ecs_fluid.systems import DiffusionSystem, EmissionSystem
from ecs_fluid.validation_errors import nearest
from ecs_fluid.viz.live import Slider
from ecs_fluid.world import World
from ecs_fluid.worlds.world_recipe import FLUID

AXES = ("x", "y", "z")


class Parameter:
    """One parameter of a system, of an emitter or of the world's fluid; `axis` picks a component of a vector.

    Args:
        system: whose parameter it is; a world for a constant of its fluid.
        name: of the parameter.
        emitter: name of the emitter, of an EmissionSystem.
        axis: 0 to 2, or None for a number.
    """

    def __init__(
        self, system: System | World, name: str, emitter: str | None = None, axis: int | None = None
    ) -> None:
        self.system: Any = system
        self.name, self.emitter, self.axis = name, emitter, axis

    def given(self) -> Any:
        """The parameter as it stands: a number, a vector or Keyed."""
        if isinstance(self.system, World):
            return getattr(options_of(self.system.fluid[Fluid]), self.name)
        if self.emitter is None:
            return getattr(self.system, self.name)
        return getattr(self._emitters()[self.emitter], self.name)

    def read(self, time: float) -> float:
        """Its value at `time` s."""
        value = value_at(self.given(), time)
        return float(value if self.axis is None else value[self.axis])

    def put(self, given: Any) -> None:
        """Give the parameter a new value, checked as in a world file."""
        if isinstance(self.system, World):
            self.system.set_fluid(**{self.name: given})
            return
        if self.emitter is None:
            setattr(self.system, self.name, given)
            return
        emitters = self._emitters()
        old = emitters[self.emitter]
        emitters[self.emitter] = type(old).model_validate(dict(old) | {self.name: given})
        self.system.emitters = list(emitters.values())

    def turn(self, value: float, time: float) -> None:
        """Give the parameter, or its component, a constant number."""
        if self.axis is None:
            self.put(value)
            return
        vector = [float(part) for part in value_at(self.given(), time)]
        vector[self.axis] = value
        self.put(tuple(vector))

    def _emitters(self) -> dict[str, Any]:
        return {emitter.name: emitter for emitter in self.system.emitters}


def sliders_of(world: World, asked: tuple[str, ...]) -> list[Slider]:
    """Sliders that ``path=low:high`` texts ask for; without any, those of the world's keyed numbers.

    Raises RecipeError for a path that leads nowhere, a parameter that is no number, and ends it cannot have.
    """
    if asked:
        return [_asked(world, text) for text in asked]
    return [_slider(world, path, parameter, ends) for path, parameter, ends in _keyed(world)]


def _asked(world: World, text: str) -> Slider:
    path, sign, ends = text.partition("=")
    low, colon, high = ends.partition(":")
    try:
        between = (float(low), float(high))
    except ValueError:
        between = (math.nan, math.nan)
    if not (sign and colon and all(map(math.isfinite, between)) and between[0] < between[1]):
        raise RecipeError(
            f"--slide {text!r}: path=low:high with low < high is needed, for example "
            "fluid.viscosity=1e-5:1e-3"
        )
    parameter = _found(world, path.strip(), text)
    for end in between:
        _try(world, parameter, end, text)
    return _slider(world, path.strip(), parameter, between)


def _slider(world: World, path: str, parameter: Parameter, ends: tuple[float, float]) -> Slider:
    put: Callable[[float], None] = lambda value: parameter.turn(value, world.time)  # noqa: E731
    return Slider(path, *ends, parameter.read(world.time), put)


def _try(world: World, parameter: Parameter, end: float, text: str) -> None:
    """Refuse an end that the parameter cannot have; it is left as it was."""
    before = parameter.given()
    try:
        parameter.turn(end, world.time)
    except (FluidError, ValueError) as error:
        raise RecipeError(f"--slide {text!r}: {' '.join(str(error).split())}") from None
    finally:
        parameter.put(before)


def _found(world: World, path: str, text: str) -> Parameter:
    """The parameter that a path means: fluid.viscosity, fluid.stretch.rate, system.0.rate, wick.rate."""
    parts = path.split(".")
    axis = AXES.index(parts[-1]) if parts[-1] in AXES and len(parts) > 2 else None
    parts = parts if axis is None else parts[:-1]
    place = f"--slide {text!r}"
    if parts == ["fluid", "viscosity"] and world.system(DiffusionSystem) is None:
        raise RecipeError(f"{place}: the world has no DiffusionSystem; set fluid.viscosity above 0")
    if len(parts) == 2 and parts[0] == "fluid" and parts[1] in FluidOptions.model_fields:
        return _numeric(Parameter(world, parts[1], axis=axis), [parts[1]], place)
    if len(parts) == 3 and parts[0] == "fluid":
        if parts[1] not in FLUID:
            raise RecipeError(f"{place}: [fluid] has no table {parts[1]!r}; {nearest(parts[1], FLUID)}")
        system = world.system(FLUID[parts[1]])
        if system is None:
            raise RecipeError(f"{place}: the world has no {FLUID[parts[1]].__name__}")
        return _checked(Parameter(system, parts[2], axis=axis), type(system), place)
    if len(parts) == 3 and parts[0] == "system":
        return _checked(
            Parameter(found := _listed(world, parts[1], place), parts[2], axis=axis), type(found), place
        )
    emitters = {e.name: s for s in world.systems if isinstance(s, EmissionSystem) for e in s.emitters}
    if len(parts) == 2 and parts[0] in emitters:
        emission = emitters[parts[0]]
        kind = type(next(e for e in emission.emitters if e.name == parts[0]))
        return _numeric(Parameter(emission, parts[1], parts[0], axis), list(kind.model_fields), place)
    known = [
        *(f"fluid.{name}" for name in FluidOptions.model_fields),
        *(f"fluid.{key}.PARAMETER" for key in FLUID),
    ]
    known += [f"system.{kind}.PARAMETER" for kind in _kinds(world)] + [f"{name}.rate" for name in emitters]
    raise RecipeError(f"{place}: {path!r} is no parameter that can be turned; {nearest(path, known)}")


def _kinds(world: World) -> dict[str, System]:
    """Systems by kind, the first of each, without those of [fluid]."""
    found: dict[str, System] = {}
    for system in world.systems:
        if type(system) not in FLUID.values():
            found.setdefault(type(system).kind, system)
    return found


def _listed(world: World, name: str, place: str) -> System:
    """A system by its kind, or by its number in the world file as `--set` counts them."""
    kinds = _kinds(world)
    listed = [item["kind"] for item in (world.recipe or {}).get("system", [])]
    if name.isdigit() and int(name) < len(listed):
        name = listed[int(name)]
    if name not in kinds:
        raise RecipeError(f"{place}: the world has no system {name!r}; {nearest(name, kinds)}")
    return kinds[name]


def _checked(parameter: Parameter, kind: type[System], place: str) -> Parameter:
    return _numeric(parameter, list(kind.Parameters.model_fields), place)


def _numeric(parameter: Parameter, names: list[str], place: str) -> Parameter:
    if parameter.name not in names:
        raise RecipeError(
            f"{place}: there is no parameter {parameter.name!r}; {nearest(parameter.name, names)}"
        )
    try:
        parameter.read(0.0)
    except (TypeError, ValueError, IndexError):
        shown = repr(parameter.given())
        raise RecipeError(
            f"{place}: {parameter.name} = {shown[:60]} is no number (of a vector, add .x, .y or .z)"
        ) from None
    return parameter


def _keyed(world: World) -> Iterator[tuple[str, Parameter, tuple[float, float]]]:
    """Keyed numbers of the world with the least and the largest of their keys."""
    yield from _ends("fluid.gravity", Parameter(world, "gravity"))
    for system in world.systems:
        if isinstance(system, EmissionSystem):
            for emitter in system.emitters:
                for name in type(emitter).model_fields:
                    yield from _ends(f"{emitter.name}.{name}", Parameter(system, name, emitter.name))
            continue
        key = next((key for key, kind in FLUID.items() if type(system) is kind), None)
        place = f"fluid.{key}" if key else f"system.{type(system).kind}"
        for name in type(system).Parameters.model_fields:
            yield from _ends(f"{place}.{name}", Parameter(system, name))


def _ends(path: str, parameter: Parameter) -> Iterator[tuple[str, Parameter, tuple[float, float]]]:
    given = parameter.given()
    if not isinstance(given, Keyed):
        return
    values = [value for _, value in given.keys]
    for axis in range(3) if isinstance(values[0], list) else (None,):
        numbers = [float(value if axis is None else value[axis]) for value in values]  # type: ignore[index,arg-type]
        if max(numbers) > min(numbers):
            at = Parameter(parameter.system, parameter.name, parameter.emitter, axis)
            yield (path if axis is None else f"{path}.{AXES[axis]}"), at, (min(numbers), max(numbers))
