"""Warnings about a liquid: about its constants and steps, and where it lies."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.components import InertialVelocity, Position, Strength, Velocity
from ecs_fluid.components.bodies import FREE, Body
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.fluid import Fluid
from ecs_fluid.schedule import named
from ecs_fluid.systems.drag import DragSystem
from ecs_fluid.systems.inflow import inflows
from ecs_fluid.systems.liquid.constants import common_viscosity
from ecs_fluid.systems.liquid.steps import capillary_step
from ecs_fluid.systems.operations import WindSystem
from ecs_fluid.systems.shared.body_tables import body_entities
from ecs_fluid.systems.shared.populations import joined, of_bodies, of_liquid, rows_of_each
from ecs_fluid.systems.shared.walls import Walls, containers, outside_all, skewness
from ecs_fluid.systems.turbulence import TurbulenceSystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.sph import SphSystem

HEAVY_AROUND = 0.1
"""The weight of the surroundings matters from this ratio of their density to the liquid's."""

ASKEW = 0.02
"""Planes of a container are meant to be at right angles if the cosine between them is at most this."""

CLOSEST = 2.0
"""Least distance of two containers, in reaches of the kernel: each mirrors its liquid up to one reach beyond
its walls."""


def liquid_lint(sph: SphSystem, world: World) -> list[str]:
    """Warn of constants of the Fluid that look like the liquid's, of walls and steps, and of misplaced
    liquid."""
    texts = _surroundings_lint(world, sph.density_around > 0)
    if sph.walls == "no_slip" and sph.artificial == 0 and common_viscosity(world) == 0:
        texts.append(
            "walls = 'no_slip' acts by the viscosity of the liquid, which has none; give the liquid a "
            "viscosity, or set SphSystem.artificial"
        )
    if sph.contact_angle is not None and sph.surface_tension == 0:
        texts.append(
            f"contact_angle = {sph.contact_angle:g} acts by the surface tension of the liquid, which has "
            "none; set SphSystem.surface_tension, or leave contact_angle out"
        )
    if sph.surface_tension and sph.steps:
        texts += _capillary_lint(world, sph.surface_tension, sph.steps)
    return texts + _misplaced_lint(world, sph.support) + _not_carried_lint(world) + _unfelt_panels_lint(world)


def _surroundings_lint(world: World, lifted: bool) -> list[str]:
    """Warn of constants of the Fluid that look like the liquid's; `lifted`: its weight is taken off the
    liquid."""
    around, texts = world.fluid[Fluid], list[str]()
    unfelt = not any(Strength in entity for entity in world.entities) and world.system(DragSystem) is None
    for name, rho, nu in _liquids(world):
        if around.density > HEAVY_AROUND * rho and not lifted:
            texts.append(
                f"{name} has a density of {rho:g} kg/m^3 and the fluid around it "
                f"{around.density:g} kg/m^3; [fluid] is what surrounds a liquid, so give it the density "
                "of the surroundings, or set SphSystem.surrounded = true"
            )
        if around.viscosity > 0 and unfelt and not nu:
            texts.append(
                f"{name} has no viscosity, and nothing uses that of the fluid around it, "
                f"{around.viscosity:g} m^2/s; give the liquid a viscosity of its own"
            )
    return texts


def _capillary_lint(world: World, tension: float, steps: int) -> list[str]:
    """Warn if a tick of that many `steps` is too long for the surface tension `tension`, N/m."""
    liquids = [liquid for _, (liquid,) in world.entities_with(Liquid) if len(liquid.mass)]
    masses = [float(liquid.mass.min()) for liquid in liquids]
    masses += [inflow.rho * inflow.particle for inflow in inflows(world)]
    longest = capillary_step(min(masses, default=math.inf), tension)
    if world.dt <= steps * longest * (1 + 1e-9):
        return []
    return [
        f"capillary waves need dt <= {steps * longest:.2g} s with steps = {steps}, so "
        f"dt = {world.dt:.4g} s will be refused; leave steps out, or use that dt"
    ]


def _liquids(world: World) -> list[tuple[str, float, float]]:
    """Names, densities (kg/m^3) and largest viscosities (m^2/s) of a world's liquids; or, if it has none yet,
    of those that inflows will bring."""
    there = [(entity, liquid) for entity, (liquid,) in world.entities_with(Liquid) if len(entity)]
    found = [
        (repr(entity.name), float(liquid.mass.sum() / liquid.volume.sum()), float(liquid.viscosity.max()))
        for entity, liquid in there
    ]
    names = {entity.name for entity, _ in there}
    yet = [inflow for inflow in inflows(world) if inflow.into not in names]
    return found + [(f"the liquid of {inflow.name!r}", inflow.rho, inflow.nu) for inflow in yet]


def _misplaced_lint(world: World, support: float) -> list[str]:
    """Warn of liquid outside containers, in two that are too close, or in one that is almost a box.

    `support` is the reach of the kernel over the spacing.
    """
    entities = [entity for entity, _ in world.entities_with(Position, Liquid) if len(entity)]
    if not entities:
        return []
    x = joined([entity[Position].x for entity in entities], (3,), np.float64)
    volume = np.concatenate([entity[Liquid].volume for entity in entities])
    walls, texts = containers(world), list[str]()
    for entity, rows in rows_of_each(entities):
        outside = outside_all(walls, x[rows])
        if outside:
            texts.append(
                f"{outside} of {len(entity)} particles of {entity.name!r} lie outside every container, "
                "and walls hold only what is inside; move the liquid, or the container"
            )
    reach = support * float(np.cbrt(volume.mean()))
    filled = [wall for wall in walls if wall.inside(x).any()]
    for wall in filled:
        texts += _askew_lint(wall)
    gap = min((one.gap(other) for one, other in combinations(filled, 2)), default=math.inf)
    if 0.0 <= gap < CLOSEST * reach:
        texts.append(
            f"two containers with liquid are {gap:.3g} m apart, so their liquids act on each other through "
            f"the walls; put them at least {CLOSEST * reach:.2g} m apart, or use smaller spacings"
        )
    return texts


def _not_carried_lint(world: World) -> list[str]:
    """Warn of vortons and particles with an own velocity in liquid, and of tracers beside it, which it does
    not carry."""
    from scipy.spatial import cKDTree

    kinds = {Strength: "vortons", InertialVelocity: "inertial particles", Position: "tracers"}
    moved = any(Strength in entity for entity in world.entities) or any(
        isinstance(system, WindSystem | TurbulenceSystem) for system in world.systems
    )
    others = [
        (entity, position.x, next(name for kind, name in kinds.items() if kind in entity))
        for entity, (position,) in world.entities_with(Position)
        if any(kind in entity for kind in kinds)
        and not (of_bodies(entity) or of_liquid(entity))
        and len(entity)
    ]
    liquids = [tables for _, tables in world.entities_with(Position, Liquid) if len(tables[0].x)]
    if not others or not liquids:
        return []
    spacing = float(np.cbrt(max(liquid.volume.max() for _, liquid in liquids)))
    search, texts = cKDTree(np.concatenate([position.x for position, _ in liquids])), []
    for entity, x, name in others:
        inside = int(np.isfinite(search.query(x, distance_upper_bound=spacing)[0]).sum())
        if name == "tracers" and not (inside or moved):
            texts.append(
                f"none of the {len(entity)} tracers of {entity.name!r} lie in liquid, and nothing else moves "
                "them, so they stay where they are until liquid comes there; move them"
            )
        if inside and name != "tracers":
            texts.append(
                f"{inside} of {len(entity)} {name} of {entity.name!r} lie in liquid, which neither carries "
                "nor feels them; move them, or use tracers, which go with the liquid"
            )
    return texts


def _unfelt_panels_lint(world: World) -> list[str]:
    """Warn of a BoundarySystem where nothing but liquid, which does not feel it, is around fixed or scripted
    bodies."""
    others = any(
        len(entity) and not (of_liquid(entity) or of_bodies(entity))
        for entity, _ in world.entities_with(Velocity)
    )
    fed = any(getattr(system, "emitters", ()) for system in world.systems)
    free = any((entity[Body].motion == FREE).any() for entity in body_entities(world))
    if others or fed or free or not named(world.systems, "BoundarySystem"):
        return []
    return [
        "BoundarySystem makes the fluid of vortons flow around bodies, but only liquid is there, which "
        "bodies push by themselves; leave it out"
    ]


def _askew_lint(wall: Walls) -> list[str]:
    """Warn of planes that do not mirror liquid because they are slightly off right angles."""
    from ecs_fluid.kernels.sph.mirror_images import RIGHT_ANGLE

    off = skewness(wall.normals)
    askew = off[(off >= RIGHT_ANGLE) & (off < ASKEW)]
    if not len(askew):
        return []
    return [
        f"{len(askew)} planes of a container with liquid are off right angles by up to {askew.max():.2g}, "
        f"and mirror the liquid only below {RIGHT_ANGLE:g}, so the pressure at its walls is less even; make "
        "its corners right angles"
    ]
