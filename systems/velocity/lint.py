"""Warnings on a world's vortons and fluid, before the first tick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import CoreRadius, Density, Position, Species, Strength, Temperature
from ecs_fluid.components.bodies import HullShape
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.fluid import LAWS, Fluid
from ecs_fluid.keyframes import Keyed
from ecs_fluid.schedule import named
from ecs_fluid.systems.shared.body_tables import body_entities
from ecs_fluid.systems.shared.properties import unburnt_lint
from ecs_fluid.systems.shared.walls import Walls, containers
from ecs_fluid.systems.velocity.auto import SURELY_DIRECT
from ecs_fluid.systems.velocity.solver_times import expected, stored
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.system import VelocitySystem

SLOW = 2.0
"""Direct sums cause a warning if they take this many times as long as the multipole method."""

FELT = 0.01
"""Flow through a wall is told from this part of the speed of vortons in the container on."""

GIVE_LAW = "use law = 'ideal_gas' or 'liquid' and "
"""What heat without a law needs first."""

SOME = 64
"""Number of vortons that stand for all in that."""

DIFFUSES = (("viscosity", Strength, "DiffusionSystem"), ("conductivity", Temperature, "ThermalSystem"))
"""Constants of the fluid, the components that they diffuse, and the systems that do so."""


def _weightless_lint(world: World) -> Iterator[str]:
    """Warn of vortons heavier or lighter than their surroundings if no system lets them rise or sink."""
    fluid = world.fluid[Fluid]
    law = GIVE_LAW if fluid.law == LAWS["none"] else ""
    columns: list[tuple[type[Component], str, str, str]] = [
        (Density, "rho", "density", ""),
        (Temperature, "T", "temperature", law),
    ]
    for kind, column, name, first in columns:
        for entity, (table, _) in world.entities_with(kind, Strength):
            own = getattr(table, column)
            # The entity of an emitter is empty at first.
            if not len(own) or (own != own.dtype.type(getattr(fluid, name))).any():
                yield (
                    f"{entity.name!r} has a {name} of its own, but no BaroclinicSystem makes it rise or "
                    f"sink; {first}add one ([[system]] kind = 'baroclinic'), or set the fluid's gravity to 0"
                )
                return


def slow_sums_lint(system: VelocitySystem, vortons: int) -> list[str]:
    """Warn of direct sums over many vortons, if another solver keeps the tolerance in much less time."""
    if system.solver != "direct" or vortons * vortons <= SURELY_DIRECT or system.world.dimension != 3:
        return []
    seconds = stored(system.world.options.precision)
    times = expected(seconds, vortons, vortons, system.tolerance, system.gradient)
    if "fmm" not in times or SLOW * times["fmm"] >= times["direct"]:
        return []
    return [
        f"VelocitySystem: solver = 'direct' sums all pairs of {vortons:,} vortons; solver = 'auto' keeps "
        f"the error below tolerance = {system.tolerance:g} in less than half of the time"
    ]


def plane_vortices_lint(x: Array, alpha: Array) -> Iterator[str]:
    """Warn of a world in space whose vortons, at x (n, 3) m, lie in a plane, with strengths across it."""
    if len(x) < 3:
        return
    size = np.ptp(x, axis=0)
    for axis in np.flatnonzero(size == 0.0):
        others = np.arange(3) != axis
        if size[others].all() and alpha[:, axis].any() and not alpha[:, others].any():
            yield (
                f"all vortons lie in the plane {'xyz'[axis]} = {x[0, axis]:g} m with their vorticity "
                "perpendicular to it, and each acts as a short piece of a vortex line; for flow in a plane "
                "give the world dimension = 2, where each stands for a whole line"
            )


def _places_on(wall: Walls) -> tuple[Array, Array]:
    """Places (n, 3) m half-way from the middles of faces to their corners, and the normals (n, 3) there."""
    near = 1e-5 * float(np.ptp(wall.corners, axis=0).max())
    at = [wall.corners[d - wall.corners @ n < near] for n, d in zip(wall.normals, wall.offsets, strict=True)]
    places = [0.5 * (corners + corners.mean(axis=0)) for corners in at]
    return np.concatenate(places), wall.normals.repeat([len(found) for found in places], axis=0)


def unfelt_walls_lint(world: World, system: VelocitySystem) -> Iterator[str]:
    """Warn of containers through whose walls vortons inside, or made there by an emitter, drive flow."""
    if (system.image_walls and not system.mirrors) or named(world.systems, "BoundarySystem"):
        return
    mirrored = {face.body for face in system.mirrors}
    found = world.entities_with(Position, Strength, CoreRadius)
    vortons = [places.x for entity, (places, _, _) in found if Liquid not in entity]
    emissions = named(world.systems, "EmissionSystem")
    emitters = [emitter for emission in emissions for emitter in emission.emitters]
    births = [
        np.array([emitter.center], np.float64)
        for emitter in emitters
        if emitter.into in world and Strength in world[emitter.into]
        if emitter.attached is None and not isinstance(emitter.center, Keyed)
    ]
    x = np.concatenate([*vortons, *births, np.empty((0, 3))])
    makes = bool(births) or any(other.makes_vorticity for other in world.systems)
    hulled = [entity for entity in body_entities(world) if HullShape in entity]
    names = [entity.name for entity in hulled for one in entity[HullShape].container if one]
    for name, wall in zip(names, containers(world), strict=True):
        held = x[wall.inside(x)]
        if name in mirrored or not len(held):
            continue
        places, normals = _places_on(wall)
        at_walls, in_it = system.velocity_at_few(places), system.velocity_at_few(held[:SOME])
        through = np.abs(np.einsum("ij,ij->i", at_walls, normals)).max()
        if makes or through > FELT * np.linalg.norm(np.concatenate((in_it, at_walls)), axis=1).max():
            yield (
                f"{name!r} holds vortons, but flow passes through its walls, at which particles only stop; "
                "give [fluid] velocity the solver 'container' (for a box) or mirrors, or add a "
                "BoundarySystem with boundary = 'panels'"
            )


def unfelt_lint(world: World) -> Iterator[str]:
    """Warn of constants of the fluid, and of warm or heavy fluid, that no system uses."""
    fluid, systems = world.fluid[Fluid], world.systems
    if fluid.gravity.any() and not named(systems, "BaroclinicSystem"):
        yield from _weightless_lint(world)
    holders = [entity for entity, (species,) in world.entities_with(Species) if species.fuel.any()]
    if holders:
        yield from unburnt_lint(world, "", holders[0].name, "holds")
    for name, carrier, system in DIFFUSES:
        value = float(getattr(fluid, name))
        if value and not named(systems, system) and any(carrier in entity for entity in world.entities):
            yield (
                f"the fluid has a {name} of {value:g} {Fluid.columns[name].unit}, but no {system} "
                f"spreads {carrier.__name__} by it; add one, or set the {name} to 0"
            )
