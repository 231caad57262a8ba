"""Vorticity from gradients of density."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Tables
from ecs_fluid.components import (
    AmbientDensity,
    CoreRadius,
    Density,
    DensityField,
    Position,
    Strength,
    StrengthRate,
    Temperature,
    TransferGrid,
    Velocity,
    VelocityMemory,
    Volume,
)
from ecs_fluid.entity import Entity
from ecs_fluid.fluid import LAWS, Fluid
from ecs_fluid.system import System
from ecs_fluid.systems.particle_mesh import TransferSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.fluid_at_rest import density_at, density_slope, fluid_at_rest
from ecs_fluid.systems.shared.fluid_walls import fluid_walls
from ecs_fluid.systems.shared.layering import layered_part
from ecs_fluid.systems.shared.populations import add_spread, joined, with_images
from ecs_fluid.systems.shared.properties import (
    attach_ambient,
    column,
    particle_density,
    shed,
    temperature_lint,
    volume_lint,
)
from ecs_fluid.systems.shared.walls import Walls, mirrored, mirrors, poison, shaken_containers
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

AS_FAR = 2.01
"""Distance from a wall, in reaches, up to which particles get mirror images: what a neighbour contributes
depends on its own neighbours."""

NEAR = 1.01
"""The same where the contribution of an image follows from that of its particle."""

LEANS = 0.05
"""Sine times cosine of a wall's angle to gravity above which a lint warns: three degrees."""


class BaroclinicSystem(System):
    """Baroclinic generation of vorticity: d(omega)/dt = grad(rho) cross grad(p) / rho^2.

    model = "boussinesq" (small differences of density; the pressure is that of fluid at rest):
    d(omega)/dt = grad(rho - rho_a) cross g / rho_0, rho_a the ambient density at that height and rho_0 the
    reference density. model = "full": the local density and the acceleration a of the fluid,
    d(omega)/dt = grad(ln rho) cross (g - a). a is the change of a vorton's velocity per second from tick to
    tick, averaged with `smoothing` as the weight of the newest value: a depends on the rate that it
    determines, and converges over some ticks.

    gradient = "neighbours": from the vortons within `reach` core radii, with exact moments, so that the total
    strength stays zero and the impulse grows by exactly the weight of the cloud
    (`kernels.vorticity.baroclinic`).
    gradient = "grid": central differences of the TransferGrid's excess mass, as in the articles; exact where
    particles fill the space around.

    Walls of containers, and faces of other bodies behind which vortons have images (`mirrors` of the
    VelocitySystem). The density does not end at a wall, though its particles do, and a cloud's edge at an
    upright wall would stir fluid that is at rest. walls = "mirror": neighbours have mirror images behind flat
    walls, so that the fluid goes on evenly; the fluid and its density slide along the wall, which lets no
    heat or mass through. In containers that particles fill, the part of the density that is layered along
    gravity, f(z), is subtracted before. It makes no vorticity, since grad(f) cross g = 0, but mirrors would
    bend it at walls that lean, and so stir the fluid. "poison": the gradient near a wall (`reach` core radii
    on the grid, twice that among neighbours) loses its part along the normal (the articles' way, and what
    "mirror" does to gradients of the grid). "none": walls are edges.

    The sign, grad(rho) cross g, makes heavy fluid sink; the fluid's angular velocity omega/2 grows by half of
    that. The vortons need a Volume; those without a Density or Temperature are given the ambient density.

    Source: Fluid Simulation for Video Games, part 8.
    """

    reads = (Position, Strength, CoreRadius, Volume, Fluid)
    may_read = (Density, Temperature, Velocity, DensityField, TransferGrid, *BODIES)
    writes = (VelocityMemory,)
    adds = (StrengthRate,)
    asks = ("BodySystem",)
    phase = "rates"
    dimensions = (2, 3)
    makes_vorticity = True

    model: Literal["boussinesq", "full"] = "boussinesq"
    """for small density differences, or for any"""
    gradient: Literal["neighbours", "grid"] = "neighbours"
    """where gradients come from"""
    reach: float = Field(default=1.5, gt=0, le=10)
    """distance up to which neighbours count, core radii"""
    walls: Literal["mirror", "poison", "none"] = "mirror"
    """how gradients treat the walls of containers, and faces that mirror the vortons"""
    smoothing: float = Field(default=0.2, gt=0, le=1)
    """full: weight of the newest acceleration, 1"""

    def added(self, world: World) -> None:
        """Require the transfer for gradients on the grid; attach the ambient density and, for accelerations,
        a memory of velocities."""
        world.require(TransferSystem)
        if self.model == "full":
            world.require(VelocitySystem)
        warm = any(system.warms for system in world.systems)  # whichever is added first
        for entity in self._carriers(world):
            if not (warm or Temperature in entity) or world.fluid[Fluid].law == LAWS["none"]:
                if Density not in entity:
                    world.attach(entity.name, AmbientDensity)
                attach_ambient(entity, Density)
            if self.model == "full":
                world._attach_missing(entity.name, VelocityMemory)

    def process(self, dt: float) -> None:
        """Add the baroclinic rate of every vorton."""
        fluid, number = fluid_at_rest(self.world), self.world.dtype
        clouds = [entity.tables for entity in self._carriers(self.world) if len(entity)]
        across = self.world.across
        along = fluid.gravity if across is None else np.delete(fluid.gravity, across)
        if not clouds or (self.model == "boussinesq" and not along.any()):
            return
        x = joined([column(tables, Position, "x") for tables in clouds], (3,), number)
        volume = joined([column(tables, Volume, "volume") for tables in clouds], (), number)
        rho = joined([particle_density(tables, fluid) for tables in clouds], (), number)
        slope, layers = self._gradient(clouds, x, rho, volume)
        gravity, over = fluid.gravity.copy(), fluid.density
        push = gravity
        if self.model == "full":
            over = 1.0
            push = gravity - joined([self._acceleration(tables, dt) for tables in clouds], (3,), number)
        if across is not None:
            gravity[across] = push[..., across] = 0.0
        rate = np.cross(number(1.0 / over) * slope, push)
        if layers is not None:
            rate += np.cross(layers, push - gravity)
        add_spread(rate, [column(tables, StrengthRate, "dalpha") for tables in clouds])

    @property
    def by_weight(self) -> bool:
        """Whether gravity alone acts on the density, from which the pressure follows."""
        return self.model == "boussinesq"

    @property
    def needs_fields(self) -> bool:
        """Whether every stage needs fields of its own: for gradients on the grid."""
        return self.gradient == "grid"

    def _carriers(self, world: World) -> list[Entity]:
        found, without = world.entities_with(Position, Strength, CoreRadius, Volume), shed(world)
        return [entity for entity, _ in found if entity.name not in without]

    def _gradient(
        self, clouds: list[Tables], x: Array, rho: Array, volume: Array
    ) -> tuple[Array, Array | None]:
        """Volume times gradient (n, 3) of the excess density, in the full model of its logarithm.

        The second result is the same for the part layered along gravity, if that was subtracted and matters,
        else None: gravity makes no vorticity of it, but an acceleration does.
        """
        fluid = fluid_at_rest(self.world)
        at_rest = density_at(fluid, x[:, 2])
        full = self.model == "full"
        reach = joined([column(tables, CoreRadius, "sigma") for tables in clouds], (), self.world.dtype)
        reach = reach * x.dtype.type(self.reach)
        walls = fluid_walls(self.world) if self.walls != "none" else []
        layers = None
        if self.gradient == "grid":
            slope = self._from_grid(x) * volume[:, None]
            if full:
                slope /= rho[:, None]
        else:
            excess = np.log(rho / at_rest) if full else rho - at_rest
            seen = walls if self.walls == "mirror" else []
            if seen and fluid.gravity.any():
                up = -fluid.gravity.astype(np.float64)
                part = layered_part(seen, x, excess, volume, up / np.linalg.norm(up)).astype(x.dtype)
                if part.any():
                    excess = excess - part
                    if full:
                        layers = self._among_neighbours(x, part * volume, reach, volume, seen)
            slope = self._among_neighbours(x, excess * volume, reach, volume, seen)
        if walls and (self.walls == "poison" or self.gradient == "grid"):
            # What a neighbour contributes depends on its own neighbours: walls are felt at twice the reach.
            poison(mirrors(walls), x, reach if self.gradient == "grid" else 2 * reach, slope)
        if full and fluid.layered:
            # With g alone the ambient's own gradient generates nothing; with an acceleration it does.
            over = rho if self.gradient == "grid" else at_rest
            slope[:, 2] += volume * density_slope(fluid, x[:, 2]) / over
        return slope, layers

    def _among_neighbours(
        self, x: Array, values: Array, reach: Array, volume: Array, walls: list[Walls]
    ) -> Array:
        """Volume times gradient (n, 3) of values per volume, from neighbours, their mirror images behind the
        walls, and their images in a world that repeats."""
        from ecs_fluid.kernels.vorticity.baroclinic import weighted_gradient

        n, reaches = len(x), float(reach.max(initial=0.0))
        across = -1 if self.world.across is None else self.world.across
        seen, repeats = mirrors(walls), bool(self.world.periods.any())
        even = len(seen) == 1 and not repeats and across < 0 and seen[0].continues_evenly(x, NEAR * reaches)
        far, turned = (NEAR if even else AS_FAR) * reaches, None
        x, values, reach, volume = with_images(self.world, x, far, values, reach, volume)
        if walls:
            rows, places, turns, _ = mirrored(seen, x, far)
            turned = (rows, turns) if even else None
            x = np.concatenate([x, places.astype(x.dtype)])
            values, reach, volume = (np.concatenate([a, a[rows]]) for a in (values, reach, volume))
        return weighted_gradient(x, values, reach, volume, across, n, turned)

    def _from_grid(self, x: Array) -> Array:
        from ecs_fluid.kernels.grids import cubic, interpolation
        from ecs_fluid.kernels.grids.differences import gradient

        grid, field = self.field(TransferGrid), self.field(DensityField)
        slope = gradient(field.excess, np.where(grid.flat == 1, 0.0, grid.spacing))
        smooth = self.world.require(TransferSystem).kernel == "m4"
        read = cubic.interpolate if smooth else interpolation.interpolate
        return read(x, grid.origin, grid.spacing, slope)

    def _acceleration(self, tables: Tables, dt: float) -> Array:
        """Acceleration (n, 3) m/s^2 of the vortons, taken once a tick and smoothed over ticks."""
        memory, u, tick = tables[VelocityMemory], column(tables, Velocity, "u"), self.world.tick
        assert isinstance(memory, VelocityMemory)
        if self.world.evaluating:
            return memory.a
        due = (memory.tick >= 0) & (memory.tick != tick)
        weight = u.dtype.type(self.smoothing)
        newest = (u[due] - memory.u[due]) / u.dtype.type(dt)
        memory.a[due] += weight * (newest - memory.a[due])
        fresh = memory.tick != tick
        memory.u[fresh] = u[fresh]
        memory.tick[...] = tick
        return memory.a

    def lint(self, world: World) -> list[str]:
        """Warn of vortons that buoyancy does not see, and of gravity, layers and walls that it treats ill."""
        texts = [*volume_lint(self, world)]
        if world.fluid[Fluid].law == LAWS["none"]:
            texts += temperature_lint(self, world)
        gravity, across = world.fluid[Fluid].gravity, world.across
        across_only = across is not None and gravity.any() and not np.delete(gravity, across, axis=1).any()
        if across_only and self.model == "boussinesq":
            texts.append(
                f"gravity {gravity[0].tolist()} m/s^2 is perpendicular to the plane {world.options.plane}, "
                "so BaroclinicSystem generates no vorticity; give the fluid a gravity in the plane"
            )
        if self.model == "boussinesq" and (shaken := shaken_containers(world)):
            texts.append(
                "BaroclinicSystem: model = 'boussinesq' knows gravity, not the acceleration of the container "
                f"{shaken[0]!r}, which moves by keys; use model = 'full'"
            )
        texts += self._heavy_lint(world) if self.model == "boussinesq" else []
        if world.periods[2] and fluid_at_rest(world).layered:
            texts.append(
                "BaroclinicSystem: the fluid at rest is layered along z, but the world repeats along z, so "
                "fluid that leaves through the top comes back at the bottom with its old density; make the "
                "period along z 0, or keep all motion small compared with the box"
            )
        drops = self.gradient == "grid" or self.walls == "poison"
        if drops and self.walls != "none" and gravity.any():
            down = gravity[0] / np.linalg.norm(gravity[0])
            for wall in mirrors(fluid_walls(world)):
                part = wall.normals @ down
                if (np.abs(part) * np.sqrt(np.maximum(0.0, 1.0 - part**2)) > LEANS).any():
                    texts.append(
                        "a container has inclined walls, where BaroclinicSystem drops gradients along the "
                        "wall's normal, so layered fluid at rest starts to move; use gradient = "
                        "'neighbours' and walls = 'mirror'"
                    )
                    break
        return texts

    def _heavy_lint(self, world: World) -> list[str]:
        """Warn of fluid that this model pulls down faster than a stone falls: its excess is above rho_0."""
        fluid, worst, text = fluid_at_rest(world), 1.0, []
        for entity, _ in world.entities_with(Position, Strength):
            rho = particle_density(entity.tables, fluid)
            excess = rho - density_at(fluid, column(entity.tables, Position, "x")[:, 2])
            if excess.max(initial=0.0) > worst * fluid.density:
                worst = float(excess.max() / fluid.density)
                text = [
                    f"BaroclinicSystem: by model = 'boussinesq' {entity.name!r}, of {rho[excess.argmax()]:g} "
                    f"kg/m^3, is pulled down by {worst:.4g} times gravity, as the fluid has density = "
                    f"{fluid.density:g} kg/m^3; correct one of them, or use model = 'full'"
                ]
        return text
