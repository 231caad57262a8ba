"""The start of a liquid: what is removed, the speed of sound, excess at surfaces, compressed columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position
from ecs_fluid.components.liquid import Liquid, LiquidModel
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.systems.inflow import inflows
from ecs_fluid.systems.liquid.all_liquid import AllLiquid
from ecs_fluid.systems.liquid.constants import TAIT, densest, mean_volume, stiffness_for
from ecs_fluid.systems.liquid.heads import head_of_push, largest_head
from ecs_fluid.systems.liquid.places import LEAST_GAP, near_solids
from ecs_fluid.systems.liquid.tick_warnings import warn_of_crowds
from ecs_fluid.systems.shared.populations import rows_of_each
from ecs_fluid.systems.shared.walls import EVEN, along, containers
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.sph import SphSystem


def remove_in_solids(world: World) -> None:
    """Remove liquid in solid bodies, or too near to them; the recipe minds the walls of containers."""
    for entity, (position, liquid) in world.entities_with(Position, Liquid):
        if len(entity):
            lost = near_solids(world, position.x, LEAST_GAP * float(liquid.volume.mean()) ** (1 / 3))
            if lost.any():
                entity.kill(lost)


def fill_model(sph: SphSystem) -> None:
    """Fill the LiquidModel before the first tick, and update the stiffness if gravity has changed."""
    world, model, gravity = sph.world, sph.field(LiquidModel), sph.field(Fluid).gravity
    first = not model.reach[0]
    if not first and (np.array_equal(model.gravity, gravity) or not gravity.any()):
        return
    c = sph.sound_speed or _default_sound(AllLiquid(sph))
    if first:
        mean = mean_volume(world)
        model.volume[0], model.reach[0] = mean, sph.support * mean ** (1 / 3)
    model.stiffness[0], model.gravity = stiffness_for(world, c), gravity.copy()
    if first:
        _compress(AllLiquid(sph))
        nu = AllLiquid(sph).compression_and_surface()[0]
        warn_of_crowds(sph, nu)
        # A crowded start needs short steps from the first one on.
        model.peak[0] = nu.max()


def _default_sound(liquid: AllLiquid) -> float:
    """10 sqrt(g H), the largest by all keys of gravity and the strongest push; without these, 10 times the
    largest velocity."""
    sph, world = liquid.sph, liquid.world
    weight = max(liquid.largest_weight(own.mass / own.volume) for (own,) in sph.query(Liquid))
    pulls = [weight * gravity for gravity in sph.field(Fluid).gravity]
    most = largest_head(world, pulls, liquid.particles.x, liquid.spacing)
    if liquid.push is not None:
        most = max(most, head_of_push(liquid, liquid.push))
    if most == 0.0:
        own = (velocity.v for _, velocity in sph.query(Liquid, InertialVelocity))
        fastest = [float((v.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)) for v in own]
        most = max([*fastest, *(inflow.fastest**2 for inflow in inflows(world))])
    # Capillary pressure over density of the smallest drops that are resolved, 4 sigma / (rho 4 a).
    most = max(most, sph.surface_tension / (densest(world) * liquid.spacing))
    if most == 0.0:
        raise RecipeError(
            "SphSystem: sound_speed has no default without gravity and velocities; set it to 10 times "
            "the largest velocity that you expect"
        )
    return 10 * math.sqrt(most)


def _compress(liquid: AllLiquid) -> None:
    """Compress the `hydrostatic` entities, and set the excess that their surfaces, bodies and walls need.

    A column that sinks comes nearer to walls that lean. Liquid beside such walls stays where it is, and the
    excess of all its particles carries the weight.
    """
    sph, world = liquid.sph, liquid.world
    if not sph.hydrostatic:
        return
    stiffness = float(sph.field(LiquidModel).stiffness[0])
    nu, carried, beside = _sums(liquid), np.zeros(liquid.count), np.zeros(liquid.count, bool)
    reach = sph.support * liquid.spacing
    for entity, rows in rows_of_each(entity for entity, _ in sph.entities(Position, Liquid)):
        if entity.name not in sph.hydrostatic or not len(entity):
            continue
        x, own, down = entity[Position].x, entity[Liquid], world.gravity + liquid.mean_push
        own.excess = surface_deficit(x, nu[rows], down, liquid.spacing, sph.support)
        leaning = near_leaning_walls(world, x, down, reach)
        beside[rows] = near_solids(world, x, reach) | leaning
        weight = sph.weight_left(float((own.mass.astype(np.float64) / own.volume).mean()))
        sunk, carried[rows] = compressed_column(x, own, weight * world.gravity + liquid.mean_push, stiffness)
        if leaning.any():
            own.excess += carried[rows] - 1
        else:
            x -= sunk
    if not beside.any():
        return
    # The column sinks towards some faces of a body and away from others; bodies and walls cut the lattice.
    lacks = carried - _sums(AllLiquid(sph))
    for entity, rows in rows_of_each(entity for entity, _ in sph.entities(Position, Liquid)):
        entity[Liquid].excess[beside[rows]] += lacks[rows][beside[rows]]


def _sums(liquid: AllLiquid) -> Array:
    """Compression (n,) of particles of their own volumes."""
    return liquid.compression_and_surface()[0].astype(np.float64) / liquid.particles.size


def surface_deficit(x: Array, nu: Array, down: Array, spacing: float, support: float) -> Array:
    """What the compression `nu` (n,), a sum over neighbours at places x (n, 3) m, lacks at the upper surface.

    `down` (3,) m/s^2 is the acceleration. At most the deficit of a lattice that ends at the surface counts.
    Free sides keep their deficit, since liquid at rest has no free sides.
    """
    from ecs_fluid.kernels.sph.wall_pressure import lattice_deficit

    pull = float(np.linalg.norm(down))
    lacks = np.zeros(len(x))
    if not len(x) or pull == 0.0:
        return lacks
    height = x.astype(np.float64) @ (-down / pull)
    depth = (height.max() - height) / spacing + 0.5
    top = depth < support
    lacks[top] = np.minimum(np.maximum(1 - nu[top], 0.0), lattice_deficit(depth[top], support)[0])
    return lacks


def compressed_column(x: Array, liquid: Liquid, pull: Array, stiffness: float) -> tuple[Array, Array]:
    """Ways (n, 3) m, upwards, by which a column at `x` (n, 3) m sinks under its weight, and its nu (n,) then.

    dz/dz_0 = 1/nu and p(nu) = rho g (H - z_0), where g is the size of the acceleration `pull` (3,) m/s^2, and
    z points against it; `stiffness` is in Pa.
    """
    g = float(np.linalg.norm(pull))
    if not len(x) or g == 0.0:
        return np.zeros_like(x), np.ones(len(x))
    rho = liquid.mass.astype(np.float64) / liquid.volume
    up = -pull / g
    z = x @ up
    half = 0.5 * float(liquid.volume[0]) ** (1 / 3)
    low, high = float(z.min()) - half, float(z.max()) + half
    place = np.linspace(low, high, 2001)
    # The mean density is used at every height: an entity is one liquid.
    pressure = float(rho.mean()) * g * (high - place)
    strain = 1 - (1 + pressure / stiffness) ** (-1 / TAIT)
    sunk = np.concatenate([[0.0], np.cumsum(0.5 * (strain[1:] + strain[:-1]) * np.diff(place))])
    carried: Array = 1 / (1 - np.interp(z, place, strain))
    return (np.interp(z, place, sunk)[:, None] * up).astype(x.dtype), carried


def near_leaning_walls(world: World, x: Array, down: Array, reach: float) -> Array:
    """Mask (n,) of places x (n, 3) m in a container, nearer than `reach` m to one of its walls that leans.

    It leans if it is neither level nor upright to the acceleration `down` (3,) m/s^2.
    """
    near, pull = np.zeros(len(x), bool), float(np.linalg.norm(down))
    if pull == 0.0:
        return near
    for wall in containers(world):
        slope = np.abs(along(wall.normals, down / pull))
        leans = np.minimum(slope, 1 - slope) > EVEN
        for n, d in zip(wall.normals[leans], wall.offsets[leans], strict=True):
            near |= wall.inside(x) & (along(x, n) > d - reach)
    return near
