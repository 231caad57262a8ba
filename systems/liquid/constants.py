"""What all liquids of a world have in common: viscosity, particle volume, and the largest density."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.components import Position
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.inflow import inflows
from ecs_fluid.world import World

SAME_SIZE = 0.25
"""Largest relative difference of a particle's volume from the mean volume."""

ALIKE = "use spacings that differ by less than 7 %"
"""Advice where it is larger: a spacing 7 % larger makes a volume 23 % larger."""


TAIT = 7
"""Exponent of Tait's law, p = B (nu^7 - 1), by which B = rho c^2 / 7."""


def stiffness_for(world: World, c: float) -> float:
    """B of Tait's law, Pa, with which sound is `c` m/s fast in the densest liquid."""
    return densest(world) * c**2 / TAIT


def sound_speed(world: World, stiffness: float) -> float:
    """Speed of sound, m/s, in the densest liquid, for B of Tait's law, Pa."""
    return math.sqrt(TAIT * stiffness / densest(world))


def common_viscosity(world: World) -> float:
    """Kinematic viscosity of all liquids, m^2/s; raises an error if they have different ones."""
    found = [
        (float(nu), entity.name)
        for entity, (liquid,) in world.entities_with(Liquid)
        if len(entity)
        for nu in (liquid.viscosity.min(), liquid.viscosity.max())
    ]
    told = (inflow for inflow in inflows(world) if inflow.viscosity is not None)
    found += [(float(world.dtype(inflow.nu)), inflow.name) for inflow in told]
    (least, thin), (most, thick) = min(found, default=(0.0, "")), max(found, default=(0.0, ""))
    if least < most:
        raise FluidError(
            f"SphSystem: {thin!r} has a viscosity of {least:g} m^2/s and {thick!r} of {most:g} m^2/s; "
            "all liquids need the same viscosity"
        )
    return least


def densest(world: World) -> float:
    """The largest density of a particle, now in the world or to come from an inflow, kg/m^3."""
    there = (float((liquid.mass / liquid.volume).max(initial=0)) for (liquid,) in world.query(Liquid))
    return max([*there, *(inflow.rho for inflow in inflows(world))])


def mean_volume(world: World) -> float:
    """Mean volume of a particle of liquid, m^3; raises an error if one differs too much."""
    liquids = [
        (entity, liquid) for entity, (_, liquid) in world.entities_with(Position, Liquid) if len(entity)
    ]
    mean = float(np.concatenate([liquid.volume for _, liquid in liquids]).astype(np.float64).mean())
    for entity, liquid in liquids:
        odd = int(np.abs(liquid.volume - mean).argmax())
        if abs(liquid.volume[odd] - mean) > SAME_SIZE * mean:
            raise FluidError(
                f"entity {entity.name!r}: a particle of liquid has the volume {liquid.volume[odd]:.3g} "
                f"m^3, but the mean of all is {mean:.3g} m^3; {ALIKE}"
            )
    return mean
