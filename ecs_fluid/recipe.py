"""Recipes: checked descriptions of entities, and the reading of world files.

A recipe is a frozen pydantic model with a ``kind``. A subclass registers itself under that kind, so a
user's own recipe loads from a world file like the shipped ones::

    class Puff(Recipe):
        '''A puff of vortons.'''
        kind: Literal["puff"] = "puff"
        radius: float = Field(1.0, gt=0, description="radius, m")

        def build(self, world: World) -> None: ...
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ecs_fluid.errors import RecipeError, StorageError
from ecs_fluid.system import Settings
from ecs_fluid.validation_errors import NAME, nearest, shown, validated

if TYPE_CHECKING:
    from ecs_fluid.world import World

MOST_BYTES = 16 * 2**20
"""Bytes that a world file may have; numbers by the million belong into data files."""

Vector = tuple[float, float, float]
Name = Annotated[
    str,
    Field(pattern=NAME, max_length=64, description="name of the entity, unique"),
]


class Recipe(Settings):
    """Describes one entity (or a few that belong together) and makes it in a world."""

    kind: str
    name: Name
    registry: ClassVar[dict[str, type[Recipe]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **keywords: Any) -> None:
        super().__pydantic_init_subclass__(**keywords)
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            Recipe.registry[kind] = cls

    def build(self, world: World) -> None:
        """Make the entity in `world`."""
        raise RecipeError(f"the recipe kind {self.kind!r} has no build(self, world) method")

    def lint(self) -> list[str]:
        """Sentences on what looks physically coarse in this recipe."""
        return []


def entity_recipe(table: Any, place: str) -> Recipe:
    """The recipe of one ``[[entity]]`` table, checked by the model of its kind."""
    if not isinstance(table, dict):
        raise RecipeError(f"{place}: {shown(table)}; a table with a 'kind' is needed")
    if "kind" not in table:
        raise RecipeError(f"{place}: 'kind' is missing; known: {', '.join(sorted(Recipe.registry))}")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in Recipe.registry:
        raise RecipeError(
            f"{place}: kind = {shown(kind)} is not known; {nearest(str(kind)[:60], Recipe.registry)}"
        )
    name = table.get("name")
    if isinstance(name, str):
        place = f"{place} {shown(name)}"
    recipe: Recipe = validated(Recipe.registry[kind], table, place)
    return recipe


def read_tables(path: Path) -> dict[str, Any]:
    """Tables of a world file, TOML or (by its ending) JSON, of at most `MOST_BYTES`."""
    from ecs_fluid.io.untrusted import read_bytes

    try:
        text = read_bytes(path, "read world file", MOST_BYTES).decode().removeprefix("\ufeff")
    except StorageError as error:
        raise RecipeError(str(error)) from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path}: cannot be read: it is not UTF-8 text") from None
    try:
        tables = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError covers both decoders' errors and whole numbers of thousands of digits.
        language = "JSON" if path.suffix == ".json" else "TOML"
        raise RecipeError(f"{path}: not valid {language}: {error}") from None
    if not isinstance(tables, dict):
        raise RecipeError(f"{path}: a table of tables is needed, not {type(tables).__name__}")
    return tables


def override(tables: dict[str, Any], assignment: str) -> None:
    """Apply one ``path=value`` in place: ``world.dt=0.01``, ``ring.radius=2``, ``entity.0.core=0.1``.

    A path may start with the name of an entity. The value is read as TOML, else as text. ``world.dt``
    takes the place of ``world.fps``, and the other way round.
    """
    path, sign, text = assignment.partition("=")
    parts = path.strip().split(".")
    if not sign or not all(parts):
        raise RecipeError(f"--set {assignment!r}: path=value is needed, for example fluid.viscosity=1e-4")
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    target: Any = tables
    sections = {"world", "fluid", "entity", "system", "output"}
    listed = tables.get("entity", [])
    listed = listed if isinstance(listed, list) else []
    entities = {e["name"]: e for e in listed if isinstance(e, dict) and isinstance(e.get("name"), str)}
    if parts[0] not in sections and len(parts) > 1:
        if parts[0] not in entities:
            known = sections | set(entities)
            raise RecipeError(
                f"--set {assignment!r}: {parts[0]!r} is no section and no entity; {nearest(parts[0], known)}"
            )
        target, parts = entities[parts[0]], parts[1:]
    for depth, part in enumerate(parts[:-1]):
        if isinstance(target, list):
            target = _item(target, part, assignment)
        elif isinstance(target, dict):
            target = target.setdefault(part, {})
        if not isinstance(target, dict | list):
            raise RecipeError(f"--set {assignment!r}: {'.'.join(parts[: depth + 1])} is a value, not a table")
    if isinstance(target, list):
        _item(target, parts[-1], assignment)
        target[int(parts[-1])] = value
    else:
        target[parts[-1]] = value
    # Both set the time step, so the one that comes later takes the place of the other.
    if parts[:-1] == ["world"] and (former := {"dt": "fps", "fps": "dt"}.get(parts[-1])):
        target.pop(former, None)


def _item(items: list[Any], part: str, assignment: str) -> Any:
    if not part.isdigit() or int(part) >= len(items):
        raise RecipeError(f"--set {assignment!r}: {part!r}; a number from 0 to {len(items) - 1} is needed")
    return items[int(part)]
