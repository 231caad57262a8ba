"""The start of a liquid: its depth along gravity, the excess at its surface, and compressed columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.fluid import key_values
from ecs_fluid.systems.inflow import inflows
from ecs_fluid.systems.shared.liquid_places import near_solids
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World


def largest_head(world: World, pulls: Iterable[Array], x: Array, spacing: float) -> float:
    """Largest g H, m^2/s^2, of the accelerations `pulls` (3,) m/s^2 on liquid at `x` (n, 3) m.

    H is measured from the top of the liquid, or of what inflows will bring, to the bottom of the lowest
    container, or of the liquid.
    """
    walls, most = containers(world), 0.0
    for down in pulls:
        pull = float(np.linalg.norm(down))
        if pull == 0.0:
            continue
        up = -down / pull
        heights = x @ up
        floors = [float((wall.corners @ up).min()) + 0.5 * spacing for wall in walls]
        low = min([float(heights.min()), *floors])
        most = max(most, pull * (float(heights.max()) - low + spacing))
        for inflow in inflows(world):
            above = float(np.max(np.array(key_values(inflow.center)) @ up)) - low
            # The liquid of an inflow of speed v may fall from v^2 / (2 g) above the opening.
            most = max(most, pull * (max(above, 0.0) + spacing) + 0.5 * inflow.fastest**2)
    return most


def surface_deficit(world: World, x: Array, nu: Array, down: Array, spacing: float, support: float) -> Array:
    """What the compression `nu` (n,), a sum over neighbours at places x (n, 3) m, lacks at the upper surface.

    `down` (3,) m/s^2 is the acceleration. At most the deficit of a lattice that ends at the surface counts;
    next to bodies, which cut the lattice anywhere, all of it. Free sides keep their deficit, since liquid at
    rest has no free sides.
    """
    from ecs_fluid.kernels.sph.wall_pressure import lattice_deficit, wall_law

    pull = float(np.linalg.norm(down))
    if not len(x) or pull == 0.0:
        return np.zeros(len(x))
    height = x.astype(np.float64) @ (-down / pull)
    depth = (height.max() - height) / spacing + 0.5
    lacks = np.where(near_solids(world, x, wall_law(support).reach * spacing), 1 - nu, 0.0)
    top = (lacks == 0.0) & (depth < support)
    lacks[top] = np.minimum(np.maximum(1 - nu[top], 0.0), lattice_deficit(depth[top], support)[0])
    return lacks


def compress_column(x: Array, liquid: Liquid, pull: Array, stiffness: float) -> None:
    """Compress a column at `x` (n, 3) m, in place, so that its pressure carries its weight.

    dz/dz_0 = 1/nu and p(nu) = rho g (H - z_0), where g is the size of the acceleration `pull` (3,) m/s^2, and
    z points against it; `stiffness` is in Pa.
    """
    g = float(np.linalg.norm(pull))
    if not len(x) or g == 0.0:
        return
    rho = liquid.mass.astype(np.float64) / liquid.volume
    up = -pull / g
    z = x @ up
    half = 0.5 * float(liquid.volume[0]) ** (1 / 3)
    low, high = float(z.min()) - half, float(z.max()) + half
    place = np.linspace(low, high, 2001)
    # The mean density is used at every height: an entity is one liquid.
    pressure = float(rho.mean()) * g * (high - place)
    strain = 1 - (1 + pressure / stiffness) ** (-1 / 7)
    sunk = np.concatenate([[0.0], np.cumsum(0.5 * (strain[1:] + strain[:-1]) * np.diff(place))])
    x -= (np.interp(z, place, sunk)[:, None] * up).astype(x.dtype)
