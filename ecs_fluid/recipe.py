"""Recipes: checked descriptions of entities.

A recipe is a frozen pydantic model; its class has a ``kind``, the name by which a world file finds it. For a
user's own class this is its import path, ``kind = "puff:Puff"`` for this one in a file ``puff.py``::

    class Puff(Recipe):
        '''A puff of vortons.'''
        radius: float = Field(default=1.0, gt=0)
        '''radius, m'''

        def spawn(self, world: World) -> None: ...
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ecs_fluid.errors import RecipeError
from ecs_fluid.further_components import attach_component, component_of
from ecs_fluid.own_code import remember_code
from ecs_fluid.plane import check_dimension
from ecs_fluid.plugins import import_path, kind_of, refuse_shipped_name, without_kind
from ecs_fluid.settings import Settings, plain_data
from ecs_fluid.system import System
from ecs_fluid.validation_errors import COLOR, NAME, shown, validated
from ecs_fluid.world import World

Vector = tuple[float, float, float]
Name = Annotated[str, Field(pattern=NAME, max_length=64, description="name of the entity, unique")]


Color = Annotated[str, Field(pattern=COLOR)]


class Recipe(Settings):
    """Describes one entity, or a few that belong together, and makes it in a world."""

    name: Name
    component: tuple[dict[str, Any], ...] = ()
    """further components of its rows, such as { kind = "Temperature", T = 400.0 }, or your own"""
    color: Color | None = None
    """colour in pictures: red, blue, yellow, green, orange, purple, cyan, pink, brown, white, grey, black or
    #rrggbb; default the look's"""
    kind: ClassVar[str] = "recipe"
    dimensions: ClassVar[tuple[int, ...]] = (3,)
    """dimensions of the worlds that it is for; (2, 3): also flow in a plane"""
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
        """Name of the entity that gets the rows and the further components."""
        return self.name

    def table(self) -> dict[str, Any]:
        """Plain data of the ``[[entity]]`` table that `entity_recipe` turns into this recipe again."""
        unused = None if self.component else {"component"}
        place = f"[[entity]] {self.name!r}"
        return {"kind": self.kind, **plain_data(self, place, exclude_none=True, exclude=unused)}

    def build(self, world: World) -> None:
        """Make the entity in `world`: its rows, and then its further components."""
        check_dimension(type(self), world, RecipeError, f"kind = {self.kind!r}")
        self.spawn(world)
        for number, table in enumerate(self.component, start=1):
            attach_component(world, self.holder, table, f"[[entity.component]] {number}")

    @abstractmethod
    def spawn(self, world: World) -> None:
        """Make the rows in `world`; every recipe has this method."""

    def systems(self) -> Iterable[System]:
        """Systems that the entity needs, beside those of [fluid], which every world has.

        The world gets one of each class for all entities that need it, merged with the first [[system]] of
        that class: lists in their parameters are joined (`BodySystem(scripts=[...])`), and a parameter that
        only one of them sets is taken from it.
        """
        return ()

    def lint(self) -> list[str]:
        """Sentences on what looks physically coarse in this recipe."""
        return []


def entity_recipe(table: Any, place: str, allow_code: bool = False) -> Recipe:
    """The recipe of one ``[[entity]]`` table, checked by its class; a Recipe is returned as it is."""
    if isinstance(table, Recipe):
        return table
    import_module("ecs_fluid.worlds")  # it registers the kinds that ship
    kind = kind_of(table, place, Recipe, Recipe.registry, allow_code)
    if ":" not in table["kind"]:
        # The name of an entry point becomes the kind, so that a stored recipe is found by it again.
        kind.kind = table["kind"]
    name = table.get("name")
    if isinstance(name, str):
        place = f"{place} {shown(name)}"
    recipe: Recipe = validated(kind, without_kind(table), place)
    for number, item in enumerate(recipe.component, start=1):
        component_of(item, f"{place}: [[entity.component]] {number}", allow_code)
    return recipe
