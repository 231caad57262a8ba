"""Ageing and removal of particles."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Age, BirthCells, Position, Species
from ecs_fluid.components.bodies import BoundVorticity
from ecs_fluid.errors import RecipeError
from ecs_fluid.keyframes import Keyed
from ecs_fluid.periodic import nearest_to
from ecs_fluid.recipe import Name, Vector
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.shared.emitters import Emitter
from ecs_fluid.systems.shared.properties import SpeciesName
from ecs_fluid.world import World


class LifetimeSystem(System):
    """Age of every particle that has one: at the end of a tick the time since the particle appeared."""

    writes = (Age,)
    phase = "spawn"
    distribution = "rows"
    dimensions = (2, 3)

    def process(self, dt: float) -> None:
        """Age all particles by one tick."""
        for (age,) in self.query(Age):
            age.t += self.world.dtype(dt)


class AgeLimitSystem(System):
    """Removal of particles whose age reaches a limit.

    Those that reach it in the first half of a tick are gone when it begins, the others when it ends. So an
    emitter of the rate r that has run for long has r times `seconds` particles, for any step of at most twice
    `seconds`: what an emitter gives off is there for half a tick at least.
    """

    reads = (Age,)
    phase = "spawn"
    symmetric = True
    distribution = "rows"
    dimensions = (2, 3)
    after = (LifetimeSystem,)

    seconds: float = Field(gt=0)
    """age at which a particle is removed, s"""
    on: tuple[Name, ...] = ()
    """entities it works on, to which it gives an Age; default all that have one"""

    def added(self, world: World) -> None:
        """Give the named entities an Age, and add the LifetimeSystem, which makes ages grow."""
        for name in self.on:
            world._attach_missing(name, Age)
        world.require(LifetimeSystem)

    def process(self, dt: float) -> None:
        """Remove particles that get too old in this half of the tick."""
        world = self.world
        # Ages are sums of dt in the world's precision: this bounds the rounding of so many terms.
        rounding = 0.5 * float(np.finfo(world.dtype).eps) * self.seconds**2 / world.dt
        limit = self.seconds - dt * (1 - world.stage.c) - min(rounding, 0.5 * dt)
        for entity, (age,) in self.chosen(Age):
            entity.kill(age.t >= limit)

    def lint(self, world: World) -> list[str]:
        """Warn of a limit below half a tick, the least time for which particles exist."""
        if self.seconds >= 0.5 * world.dt:
            return []
        return [
            f"AgeLimitSystem: seconds = {self.seconds:g} s is less than half a tick of {world.dt:g} s, the "
            "shortest life of an emitted particle; use a smaller dt"
        ]


class KillBoxSystem(System):
    """Removal of particles outside (keep = "inside") or inside (keep = "outside") an axis-parallel box.

    In a world that repeats the box does too.

    Vortons that stand for the spin of bodies, on their surfaces, are removed with these bodies only.
    """

    reads = (Position,)
    may_read = (BoundVorticity,)
    phase = "spawn"
    distribution = "rows"
    dimensions = (2, 3)

    low: Vector
    """least corner of the box, m"""
    high: Vector
    """greatest corner of the box, m"""
    keep: Literal["inside", "outside"] = "inside"
    """which side of the box survives"""
    on: tuple[Name, ...] = ()
    """entities it works on; default all"""

    def added(self, world: World) -> None:
        """Refuse a box whose least corner is not below its greatest."""
        if any(a >= b for a, b in zip(self.low, self.high, strict=True)):
            raise RecipeError(
                f"KillBoxSystem: low = {self.low} must be below high = {self.high} on every axis"
            )

    def process(self, dt: float) -> None:
        """Queue the removal of all particles on the wrong side."""
        for entity, (position,) in self.chosen(Position):
            if BoundVorticity not in entity:
                entity.kill(self._gone(position.x))

    def lint(self, world: World) -> list[str]:
        """Warn of a box that leaves nothing of what is there at the start, or given off by an emitter."""
        if world.tick:
            return []
        told = [
            f"emitter {emitter.name!r}"
            for system in named(world.systems, "EmissionSystem")
            for emitter in system.emitters
            if (not self.on or emitter.into in self.on) and self._gives_off_nothing_else(emitter)
        ]
        told += [
            repr(entity.name)
            for entity, (position,) in self.chosen(Position)
            if len(entity) and BoundVorticity not in entity and self._gone(position.x).all()
        ]
        if not told:
            return []
        return [
            f"KillBoxSystem: all particles of {' and '.join(told)} are removed in the first tick; check "
            f"low, high and keep = {self.keep!r}, or name other entities in 'on'"
        ]

    def _gives_off_nothing_else(self, emitter: Emitter) -> bool:
        """Whether all of an emitter's region, which rests, is on the wrong side."""
        if emitter.attached is not None or emitter.puff is not None or isinstance(emitter.center, Keyed):
            return False
        state = self.world[emitter.name]
        if BirthCells in state:
            return bool(self._gone(state[BirthCells].x + np.array(emitter.center)).all())
        low, high = (emitter.center + side * np.array(emitter.spread) for side in (-0.5, 0.5))
        # The place of the region nearest to the middle of the box is in the box if any of the region is.
        ends = (
            [low, high] if self.keep == "outside" else [np.clip(0.5 * np.add(self.low, self.high), low, high)]
        )
        return bool(self._gone(np.array(ends)).all())

    def _gone(self, x: Array) -> Array:
        """Mask (n,) of the places (n, 3) m on the wrong side."""
        from ecs_fluid.kernels.compiled.columns import inside

        box = np.array(self.low), np.array(self.high)
        near = nearest_to(0.5 * (box[0] + box[1]), x, self.world.periods)
        gone = inside(np.ascontiguousarray(near), *box)
        if self.keep == "inside":
            gone = ~gone
            # What is not finite is nowhere: it stays, and the guard says which system made it so.
            gone[gone] = np.isfinite(x[gone]).all(axis=1)
        return gone


class SpeciesLimitSystem(System):
    """Removal of particles whose mass fraction of one species or several is below or above a limit.

    For example `species` = ["fuel", "flame"], `below` = 0.01 removes what has burnt out.
    """

    reads = (Species,)
    phase = "move"
    distribution = "rows"
    dimensions = (2, 3)

    species: tuple[SpeciesName, ...] = Field(min_length=1)
    """species whose fractions are added up"""
    below: float | None = Field(default=None, gt=0, le=1)
    """remove where the sum is below this, 1"""
    above: float | None = Field(default=None, ge=0, lt=1)
    """remove where the sum is above this, 1"""
    on: tuple[Name, ...] = ()
    """entities it works on; default all that have species"""

    def added(self, world: World) -> None:
        """Refuse limits that remove nothing or everything."""
        if (self.below is None) == (self.above is None):
            raise RecipeError(
                "SpeciesLimitSystem: exactly one of below and above is needed; "
                "system.put(below=..., above=...) sets both at once"
            )

    def process(self, dt: float) -> None:
        """Queue the removal of all particles past the limit."""
        for entity, (species,) in self.chosen(Species):
            total = sum(getattr(species, name) for name in dict.fromkeys(self.species))
            entity.kill(total < self.below if self.below is not None else total > self.above)
