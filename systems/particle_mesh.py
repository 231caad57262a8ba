"""Transfer between particles and fields: density, temperature and species to a grid, and on to tracers."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Tables
from ecs_fluid.components import (
    Density,
    DensityField,
    FireField,
    Liquid,
    Position,
    Species,
    SpeciesField,
    Strength,
    Temperature,
    TemperatureField,
    TransferGrid,
    Volume,
    Whitewater,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.recipe import Name
from ecs_fluid.strays import FEW_CELLS, box_around_most, sample_rows
from ecs_fluid.system import System
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.fluid_at_rest import FluidAtRest, density_at, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.fluid_walls import fluid_walls
from ecs_fluid.systems.shared.populations import joined, of_liquid, with_images
from ecs_fluid.systems.shared.properties import (
    CARRIED,
    attach_ambient,
    carrying_matter,
    column,
    particle_density,
    particle_temperature,
)
from ecs_fluid.systems.shared.walls import Walls, fillers, mirrored, mirrors
from ecs_fluid.world import World

MOST_CELLS, CELLS_PER_PARTICLE = 2**21, 32
"""Cells grow beyond the particles' size where there would be more than MOST_CELLS, or more than FEW_CELLS and
than CELLS_PER_PARTICLE per particle."""
CELLS_REACHED = {"linear": 1, "m4": 2}
"""How many cells away a particle still has a share, by kernel."""
SPARE = 2
"""Spare cells of the TransferGrid around the particles, or around the box of a periodic world."""
STEFAN_BOLTZMANN = 5.670374419e-8
"""W/(m^2 K^4)"""


FIELDS = frozenset({TransferGrid, DensityField, TemperatureField, SpeciesField, FireField})


class CarriedAmounts(NamedTuple):
    """The amounts that particles bring to the grid."""

    x: Array
    """(n, 3) positions, m"""
    volume: Array
    """(n,) m^3"""
    amounts: Array
    """(5 + species, n) amounts to share: volume, mass, excess mass, m T, the volume of those that fill a
    container, and m Y of each species"""


class TransferSystem(System):
    """Particle-mesh transfer: fields of density, temperature, species, flame light and smoke opacity.

    Every particle with a Volume and a Density, Temperature or Species shares its volume V, mass m = rho V,
    excess mass (rho - rho_a(z)) V, m T and m Y among the grid points around it (`kernel` linear: 8 points,
    m4: 64). Volume that no particle fills is ambient fluid at that height. So, with weights w and cells V_c,

        excess = sum w (rho - rho_a) V / V_c, whose integral is their excess mass exactly,
        rho, T, Y = mass-weighted means of the particles and of the ambient that fills max(V_c - sum w V, 0).

    With the linear kernel means lie between the values that enter; with m4 they are clipped to that range.
    The TransferGrid encloses the particles with two cells to spare. Its cells have the edge `cell`, or by
    default that of a particle's mean volume, and are larger where there would be too many. Strays of a
    population that would cause too many cells are left out of the fields.

    Fluid continues behind the walls of containers, as in mirrors, behind faces that mirror the vortons
    (`mirrors` of the VelocitySystem), and beyond a periodic box: points there hold images, so that no ambient
    fluid is mixed in at a wall. The integral over all points includes the images. If other particles are
    behind a wall, images get only the room that these leave. Where particles fill nine tenths of a container
    or more, no ambient fluid is mixed in at all.

    Between the stages of the integrator the fields are refilled only if a system reads them there
    (`filled_now`); after a finished tick they are always those of its last stage.

    Light and smoke: luminosity 4 `absorption` flame sigma_SB (T^4 - T_a^4), opacity `extinction` rho smoke.
    Source: Fluid Simulation for Video Games, parts 8, 11 and 17 (which divide fractions by weights alone).
    """

    reads = (Fluid,)
    may_read = (Position, Volume, Density, Temperature, Species, Strength, *BODIES)
    writes = (TransferGrid, DensityField, TemperatureField, SpeciesField, FireField)
    asks = ("BodySystem",)
    phase = "prepare"
    dimensions = (2, 3)

    kernel: Literal["linear", "m4"] = "linear"
    """shape of a particle on the grid"""
    cell: float | None = Field(default=None, gt=0, le=1e6)
    """edge of the cells, m; default from the mean particle volume"""
    absorption: float = Field(default=0.5, ge=0, le=1e6)
    """absorption coefficient of pure flame, 1/m"""
    extinction: float = Field(default=10.0, ge=0, le=1e6)
    """extinction of smoke per its mass, m^2/kg"""

    def process(self, dt: float) -> None:
        """Refill the fields."""
        if not self.filled_now():
            return
        fluid = fluid_at_rest(self.world)
        clouds = carrying_matter(self.world)
        with np.errstate(over="ignore", invalid="ignore"):  # the guard reports what is not finite
            load = self._enclose(self._load(fluid, clouds), clouds)
            self._fill(fluid, self._between_walls(load), clouds)

    def present_amounts(self) -> tuple[CarriedAmounts, float, Array]:
        """Amounts of the particles where they are now, with their images, as far as the present grid reaches.

        Also the edge of its cells, m, and which axes it does not have, bool (3,).
        """
        from ecs_fluid.kernels.compiled.columns import inside

        grid = self.field(TransferGrid)
        load = self._load(fluid_at_rest(self.world), carrying_matter(self.world))
        if len(load.x):
            seen = inside(load.x, grid.origin, grid.origin + grid.spacing * grid.cells)
            load = CarriedAmounts(load.x[seen], load.volume[seen], load.amounts[:, seen])
            load = self._between_walls(load)
        return load, float(grid.spacing.max()), grid.flat != 0

    def mixed(self, shared: Array, z: Array) -> Array:
        """Fields (5 + species, rows, points): density, excess, temperature, species, luminosity and opacity.

        They are made of amounts per volume `shared` (rows, points, 5 + species) and of ambient fluid at the
        heights `z` (points,) m.
        """
        from ecs_fluid.kernels.grids.mixture import mix

        around, light, dark = self._around(fluid_at_rest(self.world), z, carrying_matter(self.world))
        out = np.empty((shared.shape[2] + 2, *shared.shape[:2]), shared.dtype)
        number = self.world.dtype
        mix(shared, *around, number(0.0), number(np.inf), light, dark, False, out)
        return out

    def filled_now(self) -> bool:
        """Whether the fields are refilled in this stage: the last of a tick, or one in which they are read.

        A system that reads them in the phases prepare or rates may set `needs_fields = False` while it does
        not.
        """
        return self.world.stage.last or any(
            system.phase in ("prepare", "rates")
            and not FIELDS.isdisjoint((*system.reads, *system.may_read))
            and getattr(system, "needs_fields", True)
            for system in self.world.systems
        )

    def _load(self, fluid: FluidAtRest, clouds: list[Tables]) -> CarriedAmounts:
        number = self.world.dtype
        x = joined([column(tables, Position, "x") for tables in clouds], (3,), number)
        volume = joined([column(tables, Volume, "volume") for tables in clouds], (), number)
        amounts = np.zeros((5 + len(Species.columns), len(x)), number)
        if len(x):
            mass = joined([particle_density(tables, fluid) for tables in clouds], (), number) * volume
            amounts[0], amounts[1] = volume, mass
            np.subtract(mass, density_at(fluid, x[:, 2]) * volume, out=amounts[2])
            first = 0
            for tables in clouds:
                own = slice(first, first + len(column(tables, Volume, "volume")))
                first = own.stop
                np.multiply(mass[own], particle_temperature(tables, fluid), out=amounts[3, own])
                for k, name in enumerate(Species.columns if Species in tables else ()):
                    np.multiply(mass[own], column(tables, Species, name), out=amounts[5 + k, own])
        return CarriedAmounts(x, volume, amounts)

    def _enclose(self, load: CarriedAmounts, clouds: list[Tables]) -> CarriedAmounts:
        """Make the grid; returns the amounts without those of strays, which it leaves out.

        Strays are determined for each population: a flame far from a large room is no stray of the room's.
        """
        from ecs_fluid.kernels.compiled.columns import bounds, inside

        grid = self.field(TransferGrid)
        if not len(load.x):
            grid.origin, grid.spacing = np.zeros(3), np.ones(3)
            grid.cells, grid.flat = np.ones(3, np.int64), np.zeros(3, np.int64)
            return load
        lo, hi = bounds(load.x)
        mean = float(load.volume.mean(dtype=np.float64))
        if not (np.isfinite(hi - lo).all() and 0.0 < mean < math.inf):
            # Any grid will do: the guard ends this tick and reports what is not finite.
            lo, hi, mean = np.zeros(3), np.zeros(3), 1.0
        periods = self.world.periods
        lo, hi = np.where(periods, -0.5 * periods, lo), np.where(periods, 0.5 * periods, hi)
        flat = np.arange(3) == self.world.across
        edge = self.cell or mean ** (1 / (3 - np.count_nonzero(flat)))
        limit = MOST_CELLS if self.cell else min(max(CELLS_PER_PARTICLE * len(load.x), FEW_CELLS), MOST_CELLS)

        def some() -> list[Array]:
            each = [column(tables, Position, "x") for tables in clouds]
            return [x[sample_rows(len(x))] for x in each if len(x)]

        if not periods.any() and (most := box_around_most(lo, hi, edge, edge, some, limit)):
            lo, hi = most
            chosen = inside(load.x, lo, hi)
            load = CarriedAmounts(load.x[chosen], load.volume[chosen], load.amounts[:, chosen])
        extent = [0.0 if f else float(e) for f, e in zip(flat, hi - lo, strict=True)]
        while True:
            wanted = [math.ceil(e / edge - 1e-6) + 2 * SPARE for e in extent]
            cells = [1 if f else n for f, n in zip(flat, wanted, strict=True)]
            if math.prod(cells) <= limit:
                break
            edge *= 1.05
        grid.cells, grid.flat = np.array(cells), flat.astype(np.int64)
        grid.spacing = np.full(3, edge)
        grid.origin = np.where(flat, lo, (lo + hi - grid.cells * edge) / 2)
        return load

    def _between_walls(self, load: CarriedAmounts) -> CarriedAmounts:
        """The amounts, those that fill a container told, with those of images behind walls."""
        walls = fluid_walls(self.world)
        alone = fillers(walls, load.x, load.volume, float(self.field(TransferGrid).spacing.max()))
        load.amounts[4, alone] = load.volume[alone]
        return self._with_images(load, mirrors(walls))

    def _with_images(self, load: CarriedAmounts, walls: list[Walls]) -> CarriedAmounts:
        """The amounts, with those of periodic images and of images behind containers' walls in the grid."""
        from ecs_fluid.kernels.compiled.columns import inside

        grid = self.field(TransferGrid)
        edge, diagonal = float(grid.spacing.max()), float(np.linalg.norm(grid.spacing))
        columns = load.volume, load.amounts.T
        x, volume, amounts = with_images(self.world, load.x, 2 * SPARE * edge, *columns)
        if not walls:
            return CarriedAmounts(x, volume, np.ascontiguousarray(amounts.T))
        groups = [(x, amounts)]
        for wall in walls:
            images = mirrored([wall], x, (1 + CELLS_REACHED[self.kernel]) * diagonal)
            seen = inside(images.places, grid.origin, grid.origin + grid.spacing * grid.cells)
            rows, places = images.shown[seen], images.places[seen]
            there, others = amounts[rows], ~wall.inside(x)
            if others.any():
                there *= self._room(x[others], volume[others], places)[:, None]
            groups.append((places.astype(x.dtype), there))
        x, amounts = (np.concatenate(parts) for parts in zip(*groups, strict=True))
        return CarriedAmounts(x, amounts[:, 0], np.ascontiguousarray(amounts.T))

    def _room(self, x: Array, volume: Array, places: Array) -> Array:
        """Fraction (m,) of space at `places` (m, 3) m that particles x (n, 3) m of volumes (n,) m^3 leave."""
        from ecs_fluid.kernels.grids.interpolation import interpolate, scatter
        from ecs_fluid.kernels.grids.partition import gather_sorted, partition

        grid, exact = self.field(TransferGrid), x.astype(np.float64)
        mesh = grid.origin, grid.spacing, grid.cells
        start, order = partition(exact, *mesh)
        parts = volume[order].astype(np.float64) / float(np.prod(grid.spacing[grid.flat == 0]))
        filled = scatter(gather_sorted(exact, order), parts, start, *mesh)
        room: Array = np.maximum(1.0 - interpolate(places, grid.origin, grid.spacing, filled), 0.0)
        return room.astype(volume.dtype)

    def _fill(self, fluid: FluidAtRest, load: CarriedAmounts, clouds: list[Tables]) -> None:
        """Fill the fields from the particles' amounts, and from the ambient fluid that fills the rest."""
        from ecs_fluid.kernels.grids.mixture import MEANS, mix, share
        from ecs_fluid.kernels.grids.partition import partition

        grid, number = self.field(TransferGrid), self.world.dtype
        shape = tuple(int(n) + 1 for n in grid.cells)
        around, light, dark = self._around(
            fluid, grid.origin[2] + grid.spacing[2] * np.arange(shape[2]), clouds
        )
        mesh = grid.origin, grid.spacing, grid.cells
        start, order = partition(load.x, *mesh)
        inverse = 1.0 / float(np.prod(grid.spacing[grid.flat == 0]))
        names = list(Species.columns)
        fields = np.empty((MEANS + len(names) + 2, *shape), number)
        out = fields.reshape(len(fields), -1, shape[2])
        if self.kernel == "linear":
            share(load.x, load.amounts, start, order, *mesh, inverse, *around, light, dark, out)
        else:
            shared = self._smoothly(load.x, load.amounts, start, order, inverse)
            thin, thick = extremes([around[0], *(particle_density(tables, fluid) for tables in clouds)])
            mix(shared, *around, number(thin), number(thick), light, dark, True, out)
        density, fire = self.field(DensityField), self.field(FireField)
        density.rho, density.excess, self.field(TemperatureField).T = fields[:MEANS]
        self.field(SpeciesField).__dict__.update(zip(names, fields[MEANS:], strict=False))
        fire.luminosity, fire.opacity = fields[-2:]

    def _around(self, fluid: FluidAtRest, z: Array, clouds: list[Tables]) -> tuple[Any, Any, Any]:
        """Ambient density and temperature at the heights `z` (n,) m, with the least and the largest
        temperature that there is; and for each species what it emits and what it absorbs."""
        number = self.world.dtype
        z = z.astype(number)
        warm = temperature_at(fluid, z)
        own = [column(tables, Temperature, "T") for tables in clouds if Temperature in tables]
        names = list(Species.columns)
        light = tuple(number(4 * self.absorption * STEFAN_BOLTZMANN * (name == "flame")) for name in names)
        dark = tuple(number(self.extinction * (name == "smoke")) for name in names)
        return (density_at(fluid, z), warm, *extremes([warm, *own])), light, dark

    def _smoothly(self, x: Array, amounts: Array, start: Array, order: Array, inverse: float) -> Array:
        """Amounts per cell volume by M4', (rows of points, nz+1, amounts)."""
        from ecs_fluid.kernels.grids.partition import gather_sorted
        from ecs_fluid.kernels.grids.scatter import m4_prime

        grid, number = self.field(TransferGrid), self.world.dtype
        amounts = np.take(amounts, order, axis=1) * number(inverse)
        out = np.empty((*(int(n) + 1 for n in grid.cells), len(amounts)), number)
        x = gather_sorted(x, order)
        m4_prime(x, amounts, start, grid.origin, grid.spacing, grid.cells, out)
        return out.reshape(-1, *out.shape[2:])


def extremes(columns: list[Array]) -> tuple[float, float]:
    """The least and the largest number in the columns, not all of which may be empty."""
    columns = [values for values in columns if len(values)]
    return min(values.min() for values in columns), max(values.max() for values in columns)


class SamplingSystem(System):
    """Interpolation of the fields of density, temperature and species to the tracers.

    The entities `on` (default: all with a Position that have neither Strength nor Volume, and are no liquid)
    are given the components named in `take`; linear interpolation of the TransferGrid's fields; outside of
    it, the ambient.
    Source: Fluid Simulation for Video Games, part 8.
    """

    reads = (Position, Fluid, TransferGrid, DensityField, TemperatureField, SpeciesField)
    may_read = (Strength, Volume, Liquid, Whitewater)
    asks = (TransferSystem,)
    writes = (Density, Temperature, Species)
    phase = "rates"
    distribution = "rows"
    dimensions = (2, 3)
    # Systems that read these components of vortons run before tracers are given theirs.
    after = ("*",)
    needs_fields = False

    take: tuple[Literal["density", "temperature", "species"], ...] = Field(
        default=("density", "temperature", "species"), min_length=1
    )
    """what the tracers take"""
    on: tuple[Name, ...] = ()
    """entities that take it; default all tracers"""

    def added(self, world: World) -> None:
        """Give the tracers the components, with ambient values."""
        world.require(TransferSystem)
        for entity in self._tracers(world):
            for kind in CARRIED:
                if kind.__name__.lower() in self.take:
                    attach_ambient(entity, kind)

    def must_hold(self, world: World) -> None:
        """Check that only tracers take values."""
        for name in self.on:
            if Strength in world[name] or Volume in world[name]:
                raise RecipeError(
                    f"SamplingSystem: entity {name!r} has a Volume or a Strength, so it contributes to the "
                    "fields itself; name entities of tracers"
                )

    def _tracers(self, world: World) -> list[Entity]:
        if self.on:
            return [world[name] for name in self.on]
        moved = [e for e in world.entities if Position in e and Strength not in e and Volume not in e]
        return [entity for entity in moved if not of_liquid(entity)]

    def process(self, dt: float) -> None:
        """Interpolate the fields at the tracers."""
        tracers = [e for e in self._tracers(self.world) if len(e)]
        if not tracers or not self.world.require(TransferSystem).filled_now():
            return
        from ecs_fluid.kernels.grids.interpolation import interpolate

        grid = self.field(TransferGrid)
        fields, names = self._fields()
        for entity in tracers:
            x, tables = entity[Position].x, entity.tables
            found = np.empty((len(x), len(names)), self.world.dtype)
            interpolate(x, grid.origin, grid.spacing, fields, found)
            for (kind, name), values in zip(names, found.T, strict=True):
                if kind in tables:
                    tables[kind].__dict__[name][...] = values
            self._outside(entity, x)

    def _fields(self) -> tuple[Array, list[tuple[type, str]]]:
        """The chosen fields side by side (nx+1, ny+1, nz+1, m), and the columns they belong to."""
        columns: list[tuple[type, str, Array]] = []
        if "density" in self.take:
            columns.append((Density, "rho", self.field(DensityField).rho))
        if "temperature" in self.take:
            columns.append((Temperature, "T", self.field(TemperatureField).T))
        if "species" in self.take:
            table = self.field(SpeciesField)
            columns += [(Species, name, table.__dict__[name]) for name in Species.columns]
        fields = np.empty((*columns[0][2].shape, len(columns)), self.world.dtype)
        np.stack([array for *_, array in columns], axis=-1, out=fields)
        return fields, [(kind, name) for kind, name, _ in columns]

    def _outside(self, entity: Entity, x: Array) -> None:
        """Set tracers outside the grid to the ambient, which, if stratified, is not the nearest point's."""
        from ecs_fluid.kernels.compiled.columns import inside

        fluid, grid = fluid_at_rest(self.world), self.field(TransferGrid)
        if not fluid.layered:
            return
        out = ~inside(x, grid.origin, grid.origin + grid.spacing * grid.cells)
        if "density" in self.take and Density in entity:
            entity[Density].rho[out] = density_at(fluid, x[out, 2])
        if "temperature" in self.take and Temperature in entity:
            entity[Temperature].T[out] = temperature_at(fluid, x[out, 2])
