"""World files: their tables, checked as a whole, made into a World."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, field_validator

from ecs_fluid.arguments import path_of
from ecs_fluid.components import InertialVelocity, Liquid
from ecs_fluid.errors import FluidError, RecipeError, sentences, warn
from ecs_fluid.input_limits import check_bytes, check_limit
from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import kind_of, offered_name, searching, users_code, without_kind
from ecs_fluid.recipe import Recipe, entity_recipe
from ecs_fluid.settings import Settings, plain_data
from ecs_fluid.shipped_worlds import SHIPPED as SHIPPED, shipped as shipped
from ecs_fluid.system import System
from ecs_fluid.systems.advection import AdvectionSystem
from ecs_fluid.systems.emission import EmissionSystem
from ecs_fluid.systems.operations import InertiaSystem
from ecs_fluid.systems.shared.populations import particles_take
from ecs_fluid.unit_lint import degrees_lint, grams_lint, late_lint
from ecs_fluid.validation_errors import nearest, shown, unfit_for_files, validated
from ecs_fluid.world import World
from ecs_fluid.world_files import read_tables
from ecs_fluid.world_options import WorldOptions
from ecs_fluid.worlds.bodies import BodyRecipe, Spheres
from ecs_fluid.worlds.files import files_from
from ecs_fluid.worlds.liquid import LiquidRecipe
from ecs_fluid.worlds.overrides import override
from ecs_fluid.worlds.section import KERNEL, CoredVortex
from ecs_fluid.worlds.system_requests import Request, merged, needed_by
from ecs_fluid.worlds.world_tables import FLUID, PRESETS, SECTIONS, FluidTable, OutputTable, WorldTable

MOST_TICKS = 10_000_000


class WorldRecipe(Settings):
    """A whole world, as a file or as Python objects; `build` makes it.

    Every part may be given as a model or as plain data.
    """

    preset: Literal["physical", "article"] = "physical"
    """set of default values"""
    world: WorldTable = Field(default_factory=WorldTable)
    fluid: FluidTable = Field(default_factory=FluidTable)
    entity: tuple[Any, ...] = ()
    """entity recipes, in the order in which they are made"""
    system: tuple[Any, ...] = ()
    """further systems: {kind = ..., parameters}; or systems, as which each world gets one of its own"""
    output: OutputTable = Field(default_factory=OutputTable)
    _folder: Path | None = PrivateAttr(None)
    _allow_code: bool = PrivateAttr(False)

    @field_validator("entity")
    @classmethod
    def _recipes(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            entity_recipe(item, f"[[entity]] {number}") for number, item in enumerate(value, start=1)
        )

    @classmethod
    @sentences()
    def from_tables(
        cls,
        tables: dict[str, Any],
        place: str = "world",
        allow_code: bool = False,
        folder: Path | None = None,
    ) -> WorldRecipe:
        """Check the tables of a world file.

        Args:
            tables: plain data, as read from TOML or JSON.
            place: name of the source for messages.
            allow_code: whether classes may be named by their import path, which runs the user's code.
            folder: where modules and data files of the world are looked for.

        Raises:
            RecipeError: one sentence naming place, key, value and what is allowed.
        """
        for key in tables:
            if key not in (known := ("preset", *SECTIONS)):
                raise RecipeError(f"{place}: unknown table {key!r}; {nearest(key, known)}")
        preset = tables.get("preset", "physical")
        if preset not in list(PRESETS):
            raise RecipeError(f"{place}: preset = {preset!r}; allowed: {', '.join(map(repr, PRESETS))}")
        full = _merged(PRESETS[preset], tables, place)
        with searching(folder if allow_code else None):
            recipes: list[Recipe] = [
                entity_recipe(item, f"{place}: [[entity]] {number}", allow_code)
                for number, item in enumerate(_list(full, "entity", place), start=1)
            ]
            if allow_code:
                _load_code(full, place)
            for number, item in enumerate(_list(full, "system", place), start=1):
                _system_of(item, f"{place}: [[system]] {number}", allow_code)
        _refuse_same_names(recipes, place)
        recipe = cls.model_construct(
            preset=preset,
            world=validated(WorldTable, full.get("world", {}), f"{place}: [world]"),
            fluid=validated(FluidTable, full.get("fluid", {}), f"{place}: [fluid]"),
            entity=tuple(recipes),
            system=tuple(full.get("system", ())),
            output=validated(OutputTable, full.get("output", {}), f"{place}: [output]"),
        )
        recipe._folder, recipe._allow_code = folder, allow_code
        for one in recipes:
            if isinstance(one, CoredVortex):
                one._kernel = recipe.fluid.velocity.get("kernel", KERNEL)
                one._dimension = recipe.world.dimension
        _refuse_many_ticks(recipe.world, place)
        return recipe

    @property
    def ticks(self) -> int:
        """Number of ticks of the whole run."""
        return max(1, math.ceil(self.world.duration / self.world.dt - 1e-9))

    @property
    def every(self) -> int:
        """Ticks from one stored frame to the next."""
        return self.output.every or self.world.steps_per_frame

    def tables(self) -> dict[str, Any]:
        """Plain data that `from_tables` turns into this recipe again."""
        plain = {
            "preset": self.preset,
            "world": self.world.given(mode="json"),
            "fluid": self.fluid.model_dump(mode="json", exclude_unset=True),
            "entity": [item.table() for item in self.entity],
            "system": [table_of(item, f"[[system]] {k}") for k, item in enumerate(self.system, start=1)],
            "output": self.output.model_dump(mode="json", exclude_unset=True),
        }
        return {key: value for key, value in plain.items() if value or key == "preset"}

    @sentences()
    def build(self) -> World:
        """Make the world: entities in order, then the systems they need."""
        files = nullcontext() if self._folder is None else files_from(self._folder)
        with files, searching(self._folder if self._allow_code else None):
            return self._built()

    def _built(self) -> World:
        # A recipe made in Python has not yet been checked as a whole.
        checked = WorldRecipe.from_tables(self._as_given(), allow_code=self._allow_code)
        world = World(**checked.world.model_dump(include=set(WorldOptions.model_fields)))
        world.set_fluid(**checked.fluid.constants())
        world._set_fixed(recipe=checked.tables())
        for number, recipe in enumerate(checked.entity, start=1):
            if recipe.holder != recipe.name and recipe.holder in (it.name for it in checked.entity[number:]):
                raise RecipeError(
                    f"[[entity]] {recipe.name!r}: its particles go to {recipe.holder!r}, which stands after "
                    "it; put it after that entity"
                )
            try:
                with users_code(f"spawn of {recipe.kind}"):
                    recipe.build(world)
            except FluidError as error:
                raise type(error)(f"[[entity]] {recipe.name!r}: {error}") from error.__cause__
            what = f"the particles up to those of [[entity]] {recipe.name!r} would take"
            check_bytes(particles_take(world), what)
        # All at once: a system that another one requires is found in the list, in any order.
        systems, named = checked.systems_of(world)
        world.add_systems(systems)
        for system in systems:
            # Systems of [fluid], of entities, and those that other systems add come by themselves.
            system._implied = not any(system is one for one in named)
        return world

    def systems_of(self, world: World) -> tuple[list[System], list[System]]:
        """The systems of a world whose entities are those of this recipe, and those that [[system]] made.

        They belong to no world yet.
        """
        needed = [request for recipe in self.entity for request in needed_by(recipe)]
        if any(InertialVelocity in entity and Liquid not in entity for entity in world.entities):
            needed.append(("an own velocity", InertiaSystem()))
        chosen = self._chosen()
        return merged(self._fluid_systems(), needed, chosen), [system for _, system in chosen]

    def _chosen(self) -> list[Request]:
        """The systems that [[system]] makes, and where each is told."""
        chosen: list[Request] = []
        for number, item in enumerate(self.system, start=1):
            place = f"[[system]] {number}"
            chosen.append((place, _system_of(item, place, self._allow_code)(**_parameters_of(item))))
        return chosen

    def _as_given(self) -> dict[str, Any]:
        given = {key: getattr(self, key) for key in ("preset", "entity", "system")}
        for key in ("fluid", "output"):
            given[key] = getattr(self, key).model_dump(exclude_unset=True)
        return {**given, "world": self.world.given()}

    def _fluid_systems(self) -> Iterator[Request]:
        for key, kind in FLUID.items():
            parameters = dict(getattr(self.fluid, key))
            if key == "diffusion" and not (
                self.fluid.viscosity or parameters.get("eddy_viscosity") or parameters.get("rate")
            ):
                continue
            without = not self.fluid.velocity.get("gradient", True)
            if key == "stretch" and without and parameters.get("scheme") == "none":
                continue
            if key == "stretch" and self.world.dimension == 2 and not parameters:
                continue
            yield f"[fluid] {key}", kind(**parameters)
        yield "[fluid]", AdvectionSystem()

    def lint(self) -> list[str]:
        """Warn, before building, of coarse recipes and numbers in other units."""
        texts = []
        for place, part in self._parts():
            texts += [f"{place}: {text}" for text in self._other_units(part)]
        for item in self.entity:
            with users_code(f"{item.name!r}: lint of {item.kind}"):
                texts += [f"{item.name!r}: {text}" for text in item.lint()]
        return texts

    def _parts(self) -> list[tuple[str, Settings]]:
        """Entities and chosen systems, and what each is called."""
        with searching(self._folder if self._allow_code else None):
            chosen = [(f"{place} {one.kind!r}", one.parameters) for place, one in self._chosen()]
        return [*((repr(item.name), item) for item in self.entity), *chosen]

    def _other_units(self, part: Settings) -> Iterator[str]:
        """Sentences on angles in degrees, densities in g/cm^3, and times in frames."""
        yield from degrees_lint(part)
        liquids = [item.density for item in self.entity if isinstance(item, LiquidRecipe)]
        inside = liquids if isinstance(part, BodyRecipe | Spheres) else []
        yield from grams_lint(part, max([self.fluid.density, *inside]))
        # Who steps a world in Python may not have said how long it runs.
        if "duration" in self.world.model_fields_set:
            yield from late_lint(part, self.world.duration)


def _list(tables: dict[str, Any], key: str, place: str) -> list[Any]:
    items = tables.get(key, [])
    if not isinstance(items, list | tuple):
        raise RecipeError(f"{place}: [{key}] is one table; write [[{key}]], a list of tables")
    check_limit("tables", len(items), f"{place}: there are {len(items):,} tables [[{key}]]")
    return list(items)


def _refuse_same_names(recipes: list[Recipe], place: str) -> None:
    """RecipeError for two entities of one name, or of the fluid's."""
    names = {"fluid"}
    for one in recipes:
        if one.name in names:
            raise RecipeError(f"{place}: [[entity]] name = {one.name!r} is taken; every entity needs its own")
        if reason := unfit_for_files(one.name, names):
            raise RecipeError(f"{place}: [[entity]] name = {one.name!r} {reason}")
        names.add(one.name)


def _refuse_many_ticks(world: WorldTable, place: str) -> None:
    """RecipeError for a run of more than `MOST_TICKS` ticks."""
    ticks = world.duration / world.dt
    if not ticks <= MOST_TICKS:
        raise RecipeError(
            f"{place}: [world] duration = {world.duration:g} s at dt = {world.dt:g} s makes {ticks:.6g} "
            f"ticks; at most {MOST_TICKS // 10**6} million are allowed"
        )


def _merged(under: dict[str, Any], over: dict[str, Any], place: str) -> dict[str, Any]:
    """`over` laid on top of `under`, table by table."""
    result = copy.deepcopy(under)
    for key, value in over.items():
        if isinstance(result.get(key), dict):
            if not isinstance(value, dict):
                raise RecipeError(f"{place}: {key} = {value!r}; a table is needed")
            result[key] = _merged(result[key], value, f"{place}: {key}")
        else:
            result[key] = value
    return result


def _load_code(tables: dict[str, Any], place: str) -> None:
    """Import what parameters in [fluid] name by ``module:Class``."""
    fluid = tables.get("fluid")
    for key, kind in FLUID.items():
        if isinstance(fluid, dict) and key in fluid:
            kind.load_code(fluid[key], f"{place}: [fluid] {key}")


def named_systems() -> dict[str, type[System]]:
    """Systems that a [[system]] table can name, by kind: not those of [fluid] and of emitters."""
    found: dict[str, type[System]] = {}
    others = (*FLUID, AdvectionSystem.kind, EmissionSystem.kind)
    for kind in System.registry.values():
        free = kind.kind not in others and not kind.__name__.startswith("_")
        # The name of a shipped system keeps its meaning, whatever else is loaded.
        if free and not (kind.kind in found and is_shipped(found[kind.kind])):
            found[kind.kind] = kind
    return found


def _system_of(item: Any, place: str, allow_code: bool) -> type[System]:
    """The class of a [[system]] table, whose parameters are checked, or of a system made in Python."""
    made = isinstance(item, System)
    name = item.kind if made else item.get("kind") if isinstance(item, dict) else None
    if isinstance(name, str) and name in FLUID and not (made and type(item) is not FLUID[name]):
        raise RecipeError(
            f"{place}: kind = {name!r} belongs in the [fluid] table; write {name} = {{ ... }} under [fluid], "
            f"or set fluid.{name}.NAME=VALUE"
        )
    if isinstance(name, str) and name in FluidTable.model_fields and name not in named_systems():
        raise RecipeError(
            f"{place}: kind = {name!r} is no system, but a number of the fluid; give it under [fluid]"
        )
    if made:
        return type(item)
    kind = kind_of(item, place, System, named_systems(), allow_code)
    place, parameters = f"{place} {shown(item['kind'])}", without_kind(item)
    if allow_code:
        kind.load_code(parameters, place)
    validated(kind.parameters_for(parameters, place), parameters, place)
    return kind


def _parameters_of(item: dict[str, Any] | System) -> dict[str, Any]:
    """The parameters that a [[system]] table, or a system made in Python, was given."""
    return item._given() if isinstance(item, System) else without_kind(item)


def table_of(item: dict[str, Any] | System, place: str) -> dict[str, Any]:
    """Plain data of a [[system]] table, or of a system made in Python."""
    if not isinstance(item, System):
        return dict(item)
    kind = type(item)
    # A class that a function makes has no import path.
    own = not is_shipped(kind) and "<locals>" not in kind.__qualname__
    known = named_systems().get(kind.kind) is kind and not own
    name = kind.kind if known else offered_name(kind, System) or kind.path()
    return {"kind": name, **plain_data(item.parameters, f"{place} {name!r}", exclude_unset=True)}


def read(source: str | Path, settings: tuple[str, ...] = (), allow_code: bool = False) -> WorldRecipe:
    """The recipe of a shipped world (by name) or of a world file (by path).

    Args:
        source: name or path.
        settings: ``path=value`` overrides, for example ``"fluid.viscosity=1e-4"``.
        allow_code: whether the file may name classes by import path.
    """
    worlds = shipped()
    path = worlds.get(str(source)) or path_of(source, "world")
    if not path.exists():
        whole = [
            str(file) for end in (".toml", ".json") if (file := path.with_name(path.name + end)).exists()
        ]
        beside = [str(file) for file in path.parent.glob("*.toml")]
        hint = f"did you mean {whole[0]!r}?" if whole else nearest(str(source), [*worlds, *beside])
        raise RecipeError(f"there is no world {str(source)!r}, and no such file; {hint}")
    if path.is_dir():
        raise RecipeError(f"{path} is a folder; a world file (.toml or .json) or a shipped name is needed")
    return _overridden(read_tables(path), settings, path.name, allow_code, path.resolve().parent)


def _overridden(
    tables: dict[str, Any], settings: tuple[str, ...], place: str, allow_code: bool, folder: Path | None
) -> WorldRecipe:
    """The recipe of tables with these settings; RecipeError where it has no entity."""
    for setting in settings:
        override(tables, setting)
    recipe = WorldRecipe.from_tables(tables, place, allow_code, folder)
    if not recipe.entity:
        where = place if folder else "the world"
        raise RecipeError(
            f"{where} holds no entity; add one, for example a table [[entity]] with kind = 'vortex_ring'"
        )
    return recipe


def recipe_of(
    source: str | Path | Mapping[str, Any] | WorldRecipe,
    settings: tuple[str, ...] = (),
    allow_code: bool = False,
) -> WorldRecipe:
    """The recipe that `load` builds a world from."""
    if isinstance(source, WorldRecipe):
        if settings:
            raise RecipeError(
                f"{settings[0]!r} overrides a file or its tables; give a WorldRecipe its values itself"
            )
        return source
    if isinstance(source, str | Path):
        return read(source, settings, allow_code)
    if not isinstance(source, Mapping) or not all(isinstance(key, str) for key in source):
        raise RecipeError(
            f"world = {shown(source)}; a path is needed, as text or a Path, the name of a shipped world, "
            "tables as a dict, or a WorldRecipe"
        )
    return _overridden(copy.deepcopy(dict(source)), settings, "world", allow_code, None)


@sentences()
def load(
    source: str | Path | Mapping[str, Any] | WorldRecipe, *settings: str, allow_code: bool = False
) -> World:
    """The world of a shipped name, a file, the tables of a file, or a WorldRecipe, ready to step.

    Problems of the recipe that show before anything is built are FluidWarnings, as with `run`.

    Args:
        source: what to load; tables are those of a world file as a dict: ``{"entity": [{"kind": ...}]}``.
        settings: ``path=value`` overrides (not with a WorldRecipe).
        allow_code: whether the file may name classes by import path, which runs their code.

    Raises:
        RecipeError: the file is missing or wrong; the message names place, value and what is allowed.
    """
    recipe = recipe_of(source, settings, allow_code)
    for text in recipe.lint():
        warn(text, 3)
    return recipe.build()
