"""Puffs: many particles that an emitter gives off at one moment, all rows that a recipe makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Component, RowId, Tables
from ecs_fluid.components import Position
from ecs_fluid.components.bodies import Pose
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid, options_of
from ecs_fluid.recipe import Recipe, entity_recipe
from ecs_fluid.systems.shared.properties import column
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.emission import Emitter


def recipe_of_puff(emitter: Emitter, **more: Any) -> Recipe:
    """Recipe of what the emitter gives off at once, with further parameters."""
    return entity_recipe({**(emitter.puff or {}), "name": emitter.name, **more}, "puff of emitter")


class _Alone(World):
    """A world of a puff's own, which knows whether random numbers were drawn."""

    _drawn = False

    @property
    def seed(self) -> int:
        """Seed of its random numbers."""
        self._drawn = True
        return super().seed


def rows_of_puff(emitter: Emitter, world: World, number: int = 0) -> tuple[Tables, bool]:
    """Tables of the puff of that number, as a world of its own has them, and whether it has random parts."""
    recipe, velocity = recipe_of_puff(emitter), world.system(VelocitySystem)
    if velocity is not None and getattr(recipe, "blobs", "") is None:  # a core is laid out for its blobs
        recipe = recipe_of_puff(emitter, blobs=velocity.kernel)
    like = world.options
    seed = (world.seed + number) % 2**63
    alone = _Alone(dimension=like.dimension, plane=like.plane, precision="double", seed=seed)
    alone.set_fluid(**options_of(world.fluid[Fluid]).model_dump(warnings=False))
    recipe.build(alone)
    tables = {kind: rows for kind, rows in alone[recipe.holder].tables.items() if kind is not RowId}
    single = Position in tables and Pose not in tables and all(kind.per_row for kind in tables)
    if not single or not len(alone[recipe.holder]):
        raise RecipeError(
            f"puff of emitter {emitter.name!r}: kind = {recipe.kind!r} makes no rows to give off; take one "
            "of vortons or tracers"
        )
    return tables, alone._drawn


def about(single: list[Component], sizes: Any, puffs: list[Tables], has: Tables) -> list[Component]:
    """Rows of puffs of so many rows about the places of as many single particles, whose other columns all
    get."""
    told = {
        type(table): type(table).unchecked(
            **{name: np.repeat(rows, sizes, axis=0) for name, rows in vars(table).items()}
        )
        for table in single
    }
    centers = column(told, Position, "x")
    for kind in puffs[0]:
        if kind in has:
            columns = zip(*(vars(puff[kind]).items() for puff in puffs), strict=True)
            whole = {same[0][0]: np.concatenate([rows for _, rows in same]) for same in columns}
            told[kind] = kind.unchecked(**whole)
    told[Position] = Position.unchecked(x=column(told, Position, "x") + centers)
    return list(told.values())
