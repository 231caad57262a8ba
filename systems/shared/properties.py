"""Density, temperature and species of particles, as all systems read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ecs_fluid.component import Array, Component, Tables
from ecs_fluid.components import AmbientDensity, Density, Position, Species, Strength, Temperature, Volume
from ecs_fluid.components.bodies import BoundVorticity
from ecs_fluid.entity import Entity
from ecs_fluid.errors import ComponentError
from ecs_fluid.fluid import LAWS, Fluid
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.shared.fluid_at_rest import (
    FluidAtRest,
    density_at,
    density_of,
    fluid_at_rest,
    temperature_at,
    temperature_of,
)
from ecs_fluid.world import World

CARRIED = (Density, Temperature, Species)

if TYPE_CHECKING:
    SpeciesName = str
else:
    SpeciesName = Literal[tuple(Species.columns)]


def column(tables: Tables, kind: type[Component], name: str) -> Array:
    """Column `name` of the table of that kind."""
    return np.asarray(tables[kind].__dict__[name])


def carrying_matter(world: World) -> list[Tables]:
    """Tables of the entities whose particles contribute to the fields: with a Volume and a property."""
    found = []
    for entity, (_, volume) in world.entities_with(Position, Volume):
        tables = entity.tables
        if len(volume.volume) and any(kind in tables for kind in CARRIED):
            found.append(tables)
    return found


def particle_density(tables: Tables, fluid: FluidAtRest) -> Array:
    """Density (n,) kg/m^3 of the particles of an entity.

    It follows from the temperature by the equation of state, if the world has one and the entity has a
    temperature; else it is the entity's own, or the ambient density at each particle's height.
    """
    if Temperature in tables and fluid.law != LAWS["none"]:
        return density_of(fluid, column(tables, Temperature, "T"))
    if Density in tables:
        return column(tables, Density, "rho")
    return density_at(fluid, column(tables, Position, "x")[:, 2])


def particle_temperature(tables: Tables, fluid: FluidAtRest) -> Array:
    """Temperature (n,) K of the particles of an entity: their own, or the ambient one at their height."""
    if Temperature in tables:
        return column(tables, Temperature, "T")
    return temperature_at(fluid, column(tables, Position, "x")[:, 2])


def volume_lint(system: System, world: World) -> list[str]:
    """Warn of vortons without a Volume, which the system does not change."""
    return [
        f"entity {entity.name!r} has no Volume, so {type(system).__name__} leaves it as it is; give it a "
        "Volume"
        for entity in world.entities
        if Strength in entity and Volume not in entity and BoundVorticity not in entity
    ]


def temperature_lint(system: System, world: World) -> list[str]:
    """Warn of particles with temperatures that have no density of their own, in a world without an equation
    of state that would make one."""
    found = [entity for entity, _ in world.entities_with(Position, Volume)]
    warm = [entity.name for entity in found if Temperature in entity]
    dense = any(Density in entity and AmbientDensity not in entity for entity in found)
    if not warm or dense or world.fluid[Fluid].law != LAWS["none"]:
        return []
    return [
        f"{type(system).__name__}: {warm[0]!r} has temperatures but no density, and with the fluid's law = "
        "'none' temperature causes no buoyancy; use law = 'ideal_gas' or 'liquid', or give it a density"
    ]


def unburnt_lint(world: World, kind: str, name: str, does: str) -> list[str]:
    """Warn of fuel that no system burns, which the `name` of this `kind` "holds" or "emits"."""
    if named(world.systems, "CombustionSystem"):
        return []
    return [
        f"{kind}{name!r} {does} fuel, but nothing burns it; add a CombustionSystem ([[system]] kind = "
        "'combustion'), or leave fuel out"
    ]


def shed(world: World) -> set[str]:
    """Names of entities whose vortons are shed by surfaces and carry no heat of their own."""
    return {name for system in world.systems for name in getattr(system, "sheds", ())}


def attach_to_vortons(world: World, kind: type) -> None:
    """Give every population of vortons that represent fluid a component, by `attach_ambient`."""
    without = shed(world)
    for entity in world.entities:
        if Strength in entity and Volume in entity and entity.name not in without:
            attach_ambient(entity, kind)


def attach_ambient(entity: Entity, kind: type) -> None:
    """Give an entity that lacks it a Density, Temperature or Species, with the values of the fluid at rest.

    With an equation of state, an entity that has a density gets the temperature that belongs to it.
    """
    if kind in entity:
        return
    fluid, z = fluid_at_rest(entity.world), entity[Position].x[:, 2]
    if kind is Density:
        entity.world.attach(entity.name, Density(particle_density(entity.tables, fluid)))
    elif kind is Temperature:
        entity.world.attach(entity.name, Temperature(_temperature_to(entity, fluid, z)))
        if AmbientDensity in entity and fluid.law != LAWS["none"]:
            entity.world._remove_table(entity, Density)
            entity.world._remove_table(entity, AmbientDensity)
    else:
        entity.world.attach(entity.name, kind)


def _temperature_to(entity: Entity, fluid: FluidAtRest, z: Array) -> Array:
    """Temperature (n,) K of an entity at the start: the ambient one, or the one that fits its density."""
    around = temperature_at(fluid, z)
    if Density not in entity or fluid.law == LAWS["none"]:
        return around
    rho = entity[Density].rho
    warm = np.where(rho == density_at(fluid, z), around, temperature_of(fluid, rho))
    if len(warm) and not (warm > 0).all():
        row = int(warm.argmin())
        raise ComponentError(
            f"entity {entity.name!r}: row {row} has a density of {rho[row]:g} kg/m^3, which the ambient's "
            f"equation of state gives at no temperature above 0 K; give it a temperature"
        )
    return warm
