"""Recipes: checked descriptions of entities, and the reading of world files.

A recipe is a frozen pydantic model; its class has a ``kind``, the name by which a world file finds it. That
of a user's own class is its import path, ``kind = "puff:Puff"`` for this one in a file ``puff.py``::

    class Puff(Recipe):
        '''A puff of vortons.'''
        radius: float = Field(default=1.0, gt=0)
        '''radius, m'''

        def spawn(self, world: World) -> None: ...
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ecs_fluid.errors import LimitError, RecipeError, StorageError
from ecs_fluid.fluid import FluidOptions
from ecs_fluid.further_components import attach, component_of
from ecs_fluid.input_limits import check
from ecs_fluid.own_code import remember_code
from ecs_fluid.plane import check_dimension
from ecs_fluid.plugins import import_path, kind_of, refuse_shipped_name, without_kind
from ecs_fluid.settings import Settings
from ecs_fluid.system import System, short_kind
from ecs_fluid.validation_errors import COLOR, NAME, nearest, shown, validated
from ecs_fluid.world_options import WorldOptions

if TYPE_CHECKING:
    from ecs_fluid.world import World

_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART})++")
"""A key of several parts, wherever in a TOML file it stands; read once, whatever the text."""

Vector = tuple[float, float, float]
Name = Annotated[
    str,
    Field(pattern=NAME, max_length=64, description="name of the entity, unique"),
]


Color = Annotated[str, Field(pattern=COLOR)]


class Recipe(Settings):
    """Describes one entity (or a few that belong together) and makes it in a world."""

    name: Name
    component: tuple[dict[str, Any], ...] = ()
    """further components of its rows, such as { kind = "Temperature", T = 400.0 }, or your own"""
    color: Color | None = None
    """colour in pictures: red, blue, yellow, green, orange, purple, cyan, pink, brown, white, grey, black or
    #rrggbb; default the look's"""
    kind: ClassVar[str] = "recipe"
    dimensions: ClassVar[tuple[int, ...]] = (3,)
    """of the worlds that it is for; (2, 3): in a plane too"""
    registry: ClassVar[dict[str, type[Recipe]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **keywords: Any) -> None:
        super().__pydantic_init_subclass__(**keywords)
        remember_code(cls)
        if "kind" not in vars(cls):
            cls.kind = import_path(cls)
        if not cls.__name__.startswith("_"):
            refuse_shipped_name(cls, cls.kind, Recipe.registry)
            Recipe.registry[cls.kind] = cls

    @property
    def holder(self) -> str:
        """Name of the entity that gets the rows, and the further components."""
        return self.name

    def table(self) -> dict[str, Any]:
        """Plain data of the ``[[entity]]`` table that `entity_recipe` turns into this recipe again."""
        unused = None if self.component else {"component"}
        try:
            plain = self.model_dump(mode="json", exclude_none=True, exclude=unused)
        except ValueError as error:
            raise RecipeError(
                f"[[entity]] {self.name!r}: a parameter is not plain data ({error}); "
                "numbers, text, lists and tables are allowed"
            ) from None
        return {"kind": self.kind, **plain}

    def build(self, world: World) -> None:
        """Make the entity in `world`: its rows, and then its further components."""
        check_dimension(type(self), world, RecipeError, f"kind = {self.kind!r}")
        self.spawn(world)
        for number, table in enumerate(self.component, start=1):
            attach(world, self.holder, table, f"[[entity.component]] {number}")

    @abstractmethod
    def spawn(self, world: World) -> None:
        """Make the rows in `world`; what a recipe of your own has to have."""

    def systems(self) -> Iterable[System]:
        """Systems without which what `build` makes would not live; those of [fluid] are in every world.

        The world has one of each class for all entities that need it, joined with the first [[system]] of it:
        lists in their parameters add up (`BodySystem(scripts=[...])`), what one leaves open is the other's.
        """
        return ()

    def lint(self) -> list[str]:
        """Sentences on what looks physically coarse in this recipe."""
        return []


def colors_in(tables: dict[str, Any]) -> dict[str, str]:
    """Colours that the entities of a world file ask for, by the population that holds their rows."""
    entities = tables.get("entity")
    listed = [item for item in entities if isinstance(item, dict)] if isinstance(entities, list) else []
    found = {item.get("into") or item.get("name"): item.get("color") for item in listed}
    return {
        name: color
        for name, color in found.items()
        if isinstance(name, str) and isinstance(color, str) and re.fullmatch(COLOR, color)
    }


def entity_recipe(table: Any, place: str, allow_code: bool = False) -> Recipe:
    """The recipe of one ``[[entity]]`` table, checked by the class of its kind; a recipe is one already."""
    if isinstance(table, Recipe):
        return table
    kind = kind_of(table, place, Recipe, Recipe.registry, allow_code)
    if ":" not in table["kind"]:
        # The name of an entry point is the kind from now on, so that a stored recipe is found by it again.
        kind.kind = table["kind"]
    name = table.get("name")
    if isinstance(name, str):
        place = f"{place} {shown(name)}"
    recipe: Recipe = validated(kind, without_kind(table), place)
    for number, item in enumerate(recipe.component, start=1):
        component_of(item, f"{place}: [[entity.component]] {number}", allow_code)
    return recipe


def read_tables(path: Path) -> dict[str, Any]:
    """Tables of a world file, TOML or (by its ending) JSON, within the `limits`."""
    from ecs_fluid.io.untrusted import read_bytes

    try:
        text = read_bytes(path, "read world file").decode().removeprefix("\ufeff")
    except StorageError as error:
        raise RecipeError(str(error)) from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path}: cannot be read: it is not UTF-8 text") from None
    return tables_in(text, str(path), "JSON" if path.suffix == ".json" else "TOML")


def tables_in(text: str, place: str, language: Literal["TOML", "JSON"] = "TOML") -> dict[str, Any]:
    """Tables of a text that a stranger may have written, within the `limits`."""
    if language == "TOML":
        # The decoder takes memory and time by the square of the parts.
        parts = max((found[0].count(".") + 1 for found in _DOTTED.finditer(text)), default=1)
        check("nesting", parts, f"{place}: a key has {parts:,} dotted parts")
    try:
        tables = tomllib.loads(text) if language == "TOML" else json.loads(text, object_pairs_hook=_table)
    except RecursionError:
        raise LimitError(f"{place}: its tables or lists are nested too deeply") from None
    except ValueError as error:
        # Also whole numbers of thousands of digits.
        raise RecipeError(f"{place}: not valid {language}: {error}") from None
    if not isinstance(tables, dict):
        raise RecipeError(f"{place}: a table of tables is needed, not {type(tables).__name__}")
    _check_tables(tables, place)
    return tables


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON, where each key may stand once: the last of two would count, without a word."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key {shown(key)} stands twice in a table")
        table[key] = value
    return table


def _check_tables(tables: dict[str, Any], place: str) -> None:
    """Raise LimitError where tables of strangers are nested too deeply, or have too long keys."""
    level: list[Iterable[Any]] = [tables.values()]
    depth = 0
    while level:
        depth += 1
        check("nesting", depth, f"{place}: {depth} tables or lists lie within each other")
        inner = [part for values in level for part in values if isinstance(part, dict | list)]
        for key in (key for part in (tables, *inner) if isinstance(part, dict) for key in part):
            check("key", len(key), f"{place}: the key {shown(key)} has {len(key):,} characters")
        level = [part.values() if isinstance(part, dict) else part for part in inner]


TABLES_OF_KEYS = {
    "world": (*WorldOptions.model_fields, "fps", "steps_per_frame", "duration"),
    "fluid": (*FluidOptions.model_fields, "velocity", "stretch", "diffusion", "diagnostics", "partition"),
    "output": ("every", "look", "checkpoint_seconds"),
}
"""Keys that a setting may name without their table, which is then told."""


def override(tables: dict[str, Any], assignment: str) -> None:
    """Apply one ``path=value`` in place: ``world.dt=0.01``, ``ring.radius=2``, ``entity.0.core=0.1``.

    A path may start with the name of an entity; items of lists go by their number, systems by their kind
    too (the first of it), components of vectors by x, y, z. A kind of system that is not listed, since it
    comes by itself, is listed by that. The value is read as TOML, else as text.
    ``world.dt`` takes the place of ``world.fps``, and the other way round.
    """
    path, sign, text = assignment.partition("=") if isinstance(assignment, str) else ("", "", "")
    parts = path.strip().split(".")
    if not sign or not all(parts):
        raise RecipeError(
            f"setting {shown(assignment)}: path=value is needed, for example 'fluid.viscosity=1e-4', "
            "a text for each value"
        )
    check("nesting", len(parts), f"setting {shown(assignment)}: the path has {len(parts):,} parts")
    target: Any = tables
    sections = {"world", "fluid", "entity", "system", "output"}
    listed = tables.get("entity", [])
    listed = listed if isinstance(listed, list) else []
    entities = {e["name"]: e for e in listed if isinstance(e, dict) and isinstance(e.get("name"), str)}
    if len(parts) == 1 and parts[0] not in (*tables, *sections, "preset"):
        found = [name for name, table in entities.items() if parts[0] in table]
        found += [name for name, keys in TABLES_OF_KEYS.items() if parts[0] in keys]
        places = " or ".join(f"{name}.{parts[0]}=..." for name in found or ["NAME"])
        raise RecipeError(
            f"setting {shown(assignment)}: the entity, system or table that {shown(parts[0])} belongs to is "
            f"missing; write {places}"
        )
    if parts[0] not in sections and len(parts) > 1:
        if parts[0] not in entities:
            known = sections | set(entities)
            raise RecipeError(
                f"setting {shown(assignment)}: {shown(parts[0])} is neither a table nor an entity; "
                f"{nearest(parts[0], known)}"
            )
        target, parts = entities[parts[0]], parts[1:]
    for depth, part in enumerate(parts[:-1]):
        if isinstance(target, list):
            kinds = {kind for item in target for kind in _kinds(item)}
            if depth == 1 and parts[0] == "system" and part.isidentifier() and part not in kinds:
                target.append({"kind": part})
            target = target[_number(target, part, assignment)]
        elif isinstance(target, dict):
            target = target.setdefault(part, {} if depth or part not in ("entity", "system") else [])
        if not isinstance(target, dict | list):
            raise RecipeError(
                f"setting {shown(assignment)}: {'.'.join(parts[: depth + 1])} is a value, not a table"
            )
    if target == {} and len(parts) > 1 and parts[-1] in ("x", "y", "z"):
        raise RecipeError(
            f"setting {shown(assignment)}: {shown(parts[-2])} is not written in the file, so that it has no "
            f"components; set all of it, {'.'.join(path.strip().split('.')[:-1])}=[...]"
        )
    last: Any = _number(target, parts[-1], assignment) if isinstance(target, list) else parts[-1]
    target[last] = value_of(text)
    # Both set the time step, so the one that comes later takes the place of the other.
    if parts[:-1] == ["world"] and (former := {"dt": "fps", "fps": "dt"}.get(parts[-1])):
        target.pop(former, None)


def value_of(text: str) -> Any:
    """The TOML value that a text is, or the text itself."""
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        return text.strip()


def _kinds(item: Any) -> list[str]:
    """The kind of a table as it is written, and what that of ``module:Class`` is in short."""
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        return []
    return [kind, short_kind(kind.rpartition(":")[2])] if ":" in kind else [kind]


def _number(items: list[Any], part: str, assignment: str) -> int:
    """Number of the item that a part of a path means: that number, x, y or z, or the kind of a table."""
    names = [item.get("kind") if isinstance(item, dict) else "xyz"[n : n + 1] for n, item in enumerate(items)]
    numbers = [str(n) for n in range(len(items))]
    short = [kinds[-1] if (kinds := _kinds(item)) else None for item in items]
    for known in (names, short, numbers):
        if part in known:
            return known.index(part)
    listed = ", ".join(f"{n} ({name})" if name else n for n, name in zip(numbers, names, strict=True))
    raise RecipeError(
        f"setting {shown(assignment)}: {shown(part)} is none of the items there; known: {listed or 'none'}"
    )
