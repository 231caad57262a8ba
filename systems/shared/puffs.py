"""Puffs: many particles that an emitter releases at one moment, all rows that a recipe makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Component, RowId, Tables
from ecs_fluid.components import Density, Position, Species, Temperature
from ecs_fluid.components.bodies import Pose
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import LAWS, Fluid, options_of
from ecs_fluid.recipe import Recipe, entity_recipe
from ecs_fluid.systems.shared.properties import column
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.shared.emitters import Emitter


def recipe_of_puff(emitter: Emitter, **more: Any) -> Recipe:
    """The recipe of the emitter's puff, with further parameters."""
    return entity_recipe({**(emitter.puff or {}), "name": emitter.name, **more}, "puff of emitter")


class _PuffWorld(World):
    """A world in which a puff is made, which records whether random numbers were drawn."""

    _drawn = False

    @property
    def seed(self) -> int:
        """Seed of its random numbers; reading it counts as drawing some."""
        self._drawn = True
        return super().seed


def rows_of_puff(emitter: Emitter, world: World, number: int = 0) -> tuple[Tables, bool]:
    """Tables of puff `number`, made in a world of its own, and whether it has random parts."""
    recipe, velocity = recipe_of_puff(emitter), world.system(VelocitySystem)
    if velocity is not None and getattr(recipe, "blobs", "") is None:  # a core is laid out for its blobs
        recipe = recipe_of_puff(emitter, blobs=velocity.kernel)
    like = world.options
    seed = (world.seed + number) % 2**63
    alone = _PuffWorld(dimension=like.dimension, plane=like.plane, precision="double", seed=seed)
    alone.set_fluid(**options_of(world.fluid[Fluid]).model_dump(warnings=False))
    if getattr(recipe, "fills", None) is not None:
        raise RecipeError(
            f"puff of emitter {emitter.name!r}: fills is not for puffs, which are made apart from other "
            "entities; give a box, a sphere or a solid"
        )
    recipe.build(alone)
    tables = {kind: rows for kind, rows in alone[recipe.holder].tables.items() if kind is not RowId}
    what = f"puff of emitter {emitter.name!r}: kind = {recipe.kind!r}"
    if Position not in tables or Pose in tables or not len(alone[recipe.holder]):
        raise RecipeError(f"{what} makes no particles to emit; use a kind of vortons or tracers")
    whole = [kind.__name__ for kind in tables if not kind.per_row]
    if whole:
        raise RecipeError(
            f"{what} makes {' and '.join(whole)}, one table for all particles of an entity, which a puff "
            "cannot bring; give it to the population by 'component' of the emitter"
        )
    return tables, alone._drawn


class Puffs:
    """Cache of emitters' puffs: one is made anew if its recipe or the fluid has changed, or if it is
    random."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[dict[str, Any], bytes, int, bool, Tables]] = {}

    def of(self, emitter: Emitter, world: World, number: int = 0) -> Tables:
        """Tables of the emitter's puff `number`; none for an emitter of single particles."""
        if emitter.puff is None:
            return {}
        fluid = b"".join(numbers.tobytes() for numbers in vars(world.fluid[Fluid]).values())
        told, of, made, drawn, tables = self._made.get(emitter.name, ({}, b"", 0, False, {}))
        if told != emitter.puff or of != fluid or (drawn and made != number):
            tables, drawn = rows_of_puff(emitter, world, number)
            self._made[emitter.name] = emitter.puff, fluid, number, drawn, tables
        return tables


def puff_rows(single: list[Component], sizes: Any, puffs: list[Tables], has: Tables) -> list[Component]:
    """Rows of `puffs`, of `sizes` rows each, around the places of as many single particles.

    All rows of a puff get the other columns of its single particle.
    """
    tables = {
        type(table): type(table).unchecked(
            **{name: np.repeat(rows, sizes, axis=0) for name, rows in vars(table).items()}
        )
        for table in single
    }
    centers = column(tables, Position, "x")
    for kind in puffs[0]:
        if kind in has:
            columns = zip(*(vars(puff[kind]).items() for puff in puffs), strict=True)
            whole = {same[0][0]: np.concatenate([rows for _, rows in same]) for same in columns}
            tables[kind] = kind.unchecked(**whole)
    tables[Position] = Position.unchecked(x=column(tables, Position, "x") + centers)
    return list(tables.values())


def refuse_twice(emitter: Emitter, puff: Tables, world: World) -> None:
    """Raise RecipeError if the emitter sets what its puff already has, or what follows from that."""
    law = world.fluid[Fluid].law != LAWS["none"]
    for kind, is_set, name in (
        (Temperature, emitter.temperature is not None, "temperature"),
        (Density, emitter.density is not None, "density"),
        (Species, any(emitter.fractions.values()), "a mass fraction"),
    ):
        follows = law and kind is not Species and bool({Temperature, Density} & puff.keys())
        if is_set and (kind in puff or follows):
            raise RecipeError(
                f"emitter {emitter.name!r} sets {name}, which its puff already determines; leave it out in "
                "one of them"
            )
