"""Heat: conduction between particles, loss to the surroundings, heaters, and the density that follows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    CoreRadius,
    Density,
    Dilatation,
    Position,
    Species,
    SpeciesRate,
    Temperature,
    TemperatureRate,
    Volume,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import LAWS, Fluid, key_values
from ecs_fluid.keyframes import Keyed, KeyedNumber, KeyedVector, value_at
from ecs_fluid.periodic import nearest_to
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.baroclinic import BaroclinicSystem
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.particle_mesh import STEFAN_BOLTZMANN
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.exchange_lint import Words, crowded_lint, exchange_lint
from ecs_fluid.systems.shared.fluid_at_rest import density_of, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.neighbourhoods import exchanged, longest_step
from ecs_fluid.systems.shared.populations import add_spread, joined
from ecs_fluid.systems.shared.properties import attach_to_vortons, particle_density
from ecs_fluid.systems.shared.ranges import Length
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

TURBULENT_PRANDTL = 0.85
"""Eddy viscosity over the diffusivity of heat and species by the same eddies."""

MOST_GROWN = 2
"""Ratio of volumes after and before a tick, or its inverse, above which a warning is given."""

STEPS = 4
"""Number of steps in a tick in which radiation is integrated."""

WORDS = Words("ThermalSystem", "heat", "diffusivity")

EXCHANGING: tuple[type[Component], ...] = (Position, CoreRadius, Volume)
"""Components that an entity needs, beside the exchanged one, to take part in the exchange."""


SWELLS: tuple[type[Component], ...] = (Volume, CoreRadius, Dilatation)
"""Components that change as vortons swell."""


class ThermalSystem(System):
    """Conduction of heat and mixing of species: dT/dt = kappa laplacian(T), dY/dt = D laplacian(Y).

    kappa is the fluid's conductivity over rho_0 c_p, and D is `species_diffusivity`. To each the mixing by
    unresolved eddies is added: `eddy_diffusivity`, or by default the eddy viscosity of the world's
    DiffusionSystem over the turbulent Prandtl number, 0.85 (Kays, J. Heat Transfer 116 (1994)), since the
    same eddies carry momentum, heat and species.

    The method is particle strength exchange of V T between particles within a few core radii, like the
    viscosity of DiffusionSystem. The sum of V T is kept exactly (temperature is exchanged, not density, whose
    sum the articles keep), and nothing leaves a cloud at its edge. Heat is counted per volume, rho_0 c_p V T,
    with the reference density. With `flow` of the ExpansionSystem it is counted by mass, rho c_p V T: rates
    are then rho_0 / rho times as large, and mixing does not change the total volume of an ideal gas. Another
    system that changes temperatures at a rate adds to TemperatureRate too.

    Nothing goes through walls of containers and planes of the VelocitySystem's `mirrors`. Behind them
    particles exchange with mirror images, unless a wall is neither parallel nor at right angles to another
    one of its container: there the fluid ends as it does at the edge of a cloud.

    Vortons without a Temperature get the ambient one, and if species mix, those without get species of 0.
    Raises FluidError when a step of dt is unstable (kappa dt / eps^2 > 0.55 on a full lattice).
    Source: Degond and Mas-Gallic, Math. Comput. 53 (1989); Fluid Simulation for Video Games, part 10.
    """

    reads = (Position, CoreRadius, Volume, Fluid)
    may_read = (Temperature, Species, Density, Dilatation, *BODIES)
    adds = (TemperatureRate, SpeciesRate)
    asks = ("BodySystem",)
    phase = "rates"
    several = False
    distribution = "ranks"
    dimensions = (2, 3)
    warms = True

    eddy_diffusivity: float | None = Field(default=None, ge=0, le=1e6)
    """diffusivity of heat and species by unresolved eddies, m^2/s; default the eddy viscosity over 0.85"""
    species_diffusivity: float = Field(default=0.0, ge=0, le=1e6)
    """diffusivity of the species by molecules, m^2/s"""
    order: Literal[2, 4] = 2
    """order of the exchange kernel; 4 may overshoot"""
    radius: float = Field(default=1.0, gt=0, le=10)
    """exchange radius eps, core radii"""

    def added(self, world: World) -> None:
        """Give every vorton a temperature, and species if these mix and occur; add the equation of state."""
        attach_to_vortons(world, Temperature)
        if self.diffusivities[1] and any(Species in entity for entity in world.entities):
            attach_to_vortons(world, Species)
        world.require(ExpansionSystem)

    @property
    def by_eddies(self) -> float:
        """Diffusivity that unresolved eddies add to kappa and D, m^2/s."""
        if self.eddy_diffusivity is not None:
            return self.eddy_diffusivity
        diffusion = self.world.system(DiffusionSystem)
        return diffusion.eddy_viscosity / TURBULENT_PRANDTL if diffusion else 0.0

    @property
    def diffusivities(self) -> tuple[float, float]:
        """kappa and D, m^2/s."""
        fluid, eddies = self.field(Fluid), self.by_eddies
        molecular = float(fluid.conductivity / (fluid.density * fluid.heat_capacity))
        return molecular + eddies, self.species_diffusivity + eddies

    def process(self, dt: float) -> None:
        """Add the rates of temperature and of the mass fractions."""
        heat, species = self.diffusivities
        for kind, of, kappa, name in (
            (Temperature, TemperatureRate, heat, "diffusivity"),
            (Species, SpeciesRate, species, "diffusivity of species"),
        ):
            if kappa:
                rate = self._exchanged(dt, kind, of, kappa, name)
                tables = [vars(rates) for *_, rates in self.query(*EXCHANGING, kind, of)]
                for k, column in enumerate(of.columns if tables else ()):
                    add_spread(rate[:, k], [table[column] for table in tables])

    def lint(self, world: World) -> list[str]:
        """Warn of populations in which exchange has another diffusivity than was set."""
        if not any(self.diffusivities):
            return [
                "ThermalSystem does nothing: the fluid has no conductivity, and its own diffusivities are 0; "
                "give one of them, or leave it out"
            ]
        entities, (x, sigma, volume, warmth) = self.joined(*EXCHANGING, Temperature)
        warmth = (warmth - np.average(warmth, weights=volume)) if len(warmth) else warmth
        columns = x, (warmth * volume)[:, None], sigma, volume
        texts = [] if world.system(RemeshSystem) else crowded_lint(WORDS, world, entities, columns)
        return texts + exchange_lint(WORDS, world, entities, columns, self.order, self.radius)

    def _exchanged(
        self, dt: float, kind: type[Component], of: type[Component], kappa: float, name: str
    ) -> Array:
        """Rates (n, k) of intensive values by exchange with the diffusivity `kappa`, m^2/s."""
        number = self.world.dtype
        entities, (x, sigma, volume, *_) = self.joined(*EXCHANGING, kind, of)
        eps = sigma * number(self.radius)
        values = [np.stack([y for _, y in entity[kind].items()], axis=1) for entity in entities]
        value = joined(values, (len(kind.columns),), number)
        low, high = value.min(axis=0, initial=np.inf), value.max(axis=0, initial=-np.inf)
        low, high = self.world.processes.enclosing(low, high)
        if (low > high).all():  # no rows
            return value
        # Only differences matter; relative to a middle value they lose fewer digits.
        value = value - (low + number(0.5) * (high - low))
        amounts = np.ascontiguousarray(value * volume[:, None])
        how = kappa, self.order, self.world.dimension
        rate, loss = exchanged(self.world, entities, x, amounts, eps, volume, *how)
        if any(Dilatation in entity for entity in entities):
            thin = joined([self._thinness(entity) for entity in entities], (), number)
            rate, loss = rate * thin[:, None], loss * thin
        if dt > (limit := longest_step(self.world, loss)):
            eddies = self.by_eddies if self.eddy_diffusivity is None else 0.0
            told = f", {eddies:.3g} of it by eddy_viscosity / {TURBULENT_PRANDTL}" if eddies else ""
            less = ", or an eddy_diffusivity of less" if eddies else ""
            raise FluidError(
                f"ThermalSystem: dt = {dt:g} s is unstable with {name} = {kappa:g} m^2/s{told}; "
                f"use dt <= {limit:.3g} s or a larger radius{less}"
            )
        return np.asarray(rate / volume[:, None])

    def _thinness(self, entity: Entity) -> Array:
        """Ratio rho_0 / rho (n,) for vortons that swell, with which rates are multiplied."""
        fluid = fluid_at_rest(self.world)
        if Dilatation not in entity:
            return np.asarray(fluid.density / particle_density(entity.tables, fluid))
        now, T = entity[Dilatation].temperature, entity[Temperature].T
        return np.asarray(fluid.density / density_of(fluid, np.where(now > 0, now, T)))


class CoolingSystem(System):
    """Loss of heat to the surroundings: relaxation, and radiation of an optically thin gas.

    dT/dt = -`rate` (T - T_a) - 4 a sigma_SB (T^4 - T_a^4) / (rho_0 c_p), with T_a the ambient
    temperature at a particle's height and a = `absorption` the absorption coefficient. Written as
    -k(T) (T - T_a) it is stepped by exponentials, so T never passes T_a whatever dt is; relaxation alone is
    exact.
    """

    reads = (Position, Volume, Fluid)
    writes = (Temperature,)
    phase = "move"
    dimensions = (2, 3)
    symmetric = True
    after = ("CombustionSystem", "HeaterSystem")

    rate: float = Field(default=0.0, ge=0, le=1e9)
    """rate of relaxation to the ambient temperature, 1/s"""
    absorption: float = Field(default=0.0, ge=0, le=1e6)
    """absorption coefficient, 1/m; 0: no radiation"""

    def added(self, world: World) -> None:
        """The density follows the temperature."""
        world.require(ExpansionSystem)

    def lint(self, world: World) -> list[str]:
        """Warn of rates of 0."""
        if self.rate or self.absorption:
            return []
        return ["CoolingSystem does nothing: its rate and absorption are 0; give one, or leave it out"]

    def process(self, dt: float) -> None:
        """Cool every particle that has a volume (tracers take theirs from the fields)."""
        fluid = fluid_at_rest(self.world)
        factor = 4 * self.absorption * STEFAN_BOLTZMANN / float(self.field(Fluid).heat_capacity)
        factor /= float(fluid.density)
        for position, temperature, _ in self.query(Position, Temperature, Volume):
            around = temperature_at(fluid, position.x[:, 2])
            temperature.T = cooled(temperature.T, around, self.rate, factor, dt)


def cooled(T: Array, around: Array, rate: float, factor: float, dt: float) -> Array:
    """Temperature (n,) K after dt of dT/dt = -rate (T - T_a) - factor (T^4 - T_a^4), factor in 1/(K^3 s).

    Exact without radiation; with it in `STEPS` exponential steps of second order.
    """
    number = T.dtype.type

    if not factor:
        return np.asarray(around + (T - around) * number(np.exp(-rate * dt)))
    square = around * around

    def coefficient(warm: Array) -> Array:
        return np.asarray((warm * warm + square) * (warm + around) * number(factor) + number(rate))

    step = number(dt / STEPS)
    for _ in range(STEPS):
        away, first = T - around, coefficient(T)
        # In a long step the coefficient at its start is too large; implicit Euler predicts the end of the
        # step.
        ahead = around + away / (1 + step * first)
        mean = number(0.5) * (first + coefficient(ahead))
        T = around + away * np.exp(-step * mean)
    return T


class HeaterSystem(System):
    """Heating or cooling of the fluid inside a ball or a box: a hot plate, a glowing wire.

    dT/dt = (`temperature` - T) / `time`, exact in time. The box is centred at `center` with the full widths
    `size`; the ball (`shape` = "sphere") is the ellipsoid in that box. In a world that repeats it does too.
    A world may have several heaters. Where they overlap, they act one after the other in half of a tick, and
    the other way round in the other.
    """

    reads = (Position, Volume)
    writes = (Temperature,)
    phase = "move"
    dimensions = (2, 3)
    symmetric = True
    several = True
    after = ("CombustionSystem",)

    center: KeyedVector = (0.0, 0.0, 0.0)
    """middle of the region, m; may be keyed in time"""
    size: tuple[Length, Length, Length] = (1.0, 1.0, 1.0)
    """full widths of the region, m"""
    shape: Literal["box", "sphere"] = "box"
    """box or ellipsoid"""
    temperature: KeyedNumber
    """temperature of the heater, K; may be keyed in time"""
    time: float = Field(default=0.1, gt=0, le=1e9)
    """time in which a difference falls to 1/e, s"""
    on: tuple[Name, ...] = ()
    """entities it heats; default all with a volume"""

    def added(self, world: World) -> None:
        """Refuse temperatures below absolute zero; add the equation of state."""
        for value in key_values(self.temperature):
            if not value > 0:
                raise RecipeError(f"HeaterSystem: temperature = {value} K; numbers above 0 are needed")
        world.require(ExpansionSystem)

    def lint(self, world: World) -> list[str]:
        """Warn of a region beside the boxes around all containers."""
        rooms = containers(world)
        if isinstance(self.center, Keyed) or not rooms:
            return []
        low, high = (self.center + side * np.array(self.size) for side in (-0.5, 0.5))
        if any((low < r.corners.max(axis=0)).all() and (high > r.corners.min(axis=0)).all() for r in rooms):
            return []
        return [
            f"HeaterSystem: its region, of {list(self.size)} m around {list(self.center)}, is outside all "
            "containers; check center, which is in world coordinates, and size"
        ]

    def process(self, dt: float) -> None:
        """Heat the particles inside the region."""
        number = self.world.dtype
        middle = value_at(self.center, self.world.time).astype(number)
        goal = number(value_at(self.temperature, self.world.time))
        keep = number(np.exp(-dt / self.time))
        half = np.array(self.size, number) / 2
        for _, (position, temperature, _) in self.chosen(Position, Temperature, Volume):
            away = np.abs(nearest_to(middle, position.x, self.world.periods) - middle)
            if self.shape == "box":
                inside = (away <= half).all(axis=1)
            else:
                inside = ((away / np.maximum(half, 1e-30)) ** 2).sum(axis=1) <= 1
            temperature.T[inside] = goal + (temperature.T[inside] - goal) * keep


class ExpansionSystem(System):
    """Equation of state: density from temperature, and with `flow` volume too.

    rho T = rho_0 T_0 for an ideal gas at constant pressure; see FluidOptions for liquids. The system runs
    last in the phase move, so that a finished tick is consistent; within the tick, systems derive the density
    from the temperature themselves.

    With `flow` vortons keep their mass. Where the density falls from rho to rho', a vorton's volume becomes
    V rho / rho', its core radius grows by the cube root of the ratio (in a plane by the square root), and in
    the next tick the vorton is a source, with div u = (1 - rho' / rho) / dt inside it:

    u(x) = sum_p q(|x - x_p| / sigma_p) div u_p V_p (x - x_p) / (4 pi |x - x_p|^3)

    is part of every velocity. Strengths grow as that flow stretches their vortex lines (StretchSystem), so
    that circulations (in a plane, strengths) stay. Without `flow` the fluid moves as if differences of
    density were small.
    Source: Fluid Simulation for Video Games, part 10 (the density).
    """

    reads = (Temperature, Volume, Fluid)
    writes = (Density, *SWELLS)
    phase = "move"
    distribution = "rows"
    dimensions = (2, 3)
    after = ("*",)
    unchanging = ("flow",)  # volumes of vortons that have swelled would fit neither setting

    flow: bool = False
    """vortons take up more room as they get warm, and push away what is around them"""

    def __post_init__(self) -> None:
        if not self.flow:
            self.writes = (Density,)

    def added(self, world: World) -> None:
        """Set the densities to those of the temperatures."""
        if self.flow and world.periods.any():
            raise RecipeError(
                "ExpansionSystem: flow = true, but a world that repeats has no room for gas that expands; "
                "make the world's periods 0"
            )
        for density, rho in self._density_tables(world):
            vars(density)["rho"] = rho.astype(world.dtype)  # not in place: the system may still be refused

    def must_hold(self, world: World) -> None:
        """Check that with `flow` the fluid has a law of expansion."""
        if self.flow and world.fluid[Fluid].law == LAWS["none"]:
            raise RecipeError(
                "ExpansionSystem: flow = true, but with the fluid's law = 'none' nothing expands; "
                "use law = 'ideal_gas' or 'liquid'"
            )

    def process(self, dt: float) -> None:
        """Update the densities, and with `flow` the volumes."""
        if self.flow:
            self._expand(dt)
        for density, rho in self._density_tables(self.world):
            density.rho = rho

    def lint(self, world: World) -> list[str]:
        """Warn of gas that swells between walls, or with buoyancy for small differences of density."""
        baroclinic, texts = world.system(BaroclinicSystem), list[str]()
        if self.flow and baroclinic is not None and baroclinic.model != "full":
            texts.append(
                "ExpansionSystem: with flow = true densities may differ by much, but BaroclinicSystem has "
                "model = 'boussinesq', which is for small differences; use model = 'full'"
            )
        if self.flow and containers(world):
            texts.append(
                "ExpansionSystem: gas that expands (flow = true) in a container has nowhere to go, so what "
                "it displaces flows through the walls, which only stop particles; set flow = false, or "
                "build walls of bodies that leave an opening"
            )
        return texts

    def _expand(self, dt: float) -> None:
        """Update volumes and core radii by the temperatures, and set the divergence for the next tick."""
        fluid, number = fluid_at_rest(self.world), self.world.dtype
        root = number(1 / self.world.dimension)
        for entity, tables in self.entities(*SWELLS, Temperature):
            volume, core, now, temperature = tables
            T = temperature.T
            former = np.where(now.temperature > 0, now.temperature, T)
            grown = density_of(fluid, former) / density_of(fluid, T)
            now.divergence = (number(1) - number(1) / grown) / number(dt)
            now.temperature = T
            self._warn_of_growth(entity.name, grown, dt)
            volume.volume *= grown
            core.sigma *= grown**root

    def _warn_of_growth(self, name: str, grown: Array, dt: float) -> None:
        """Warn, once per population, of volumes that change too much in a tick for their flow."""
        if not len(grown):
            return
        largest, least = float(grown.max()), float(grown.min())
        if (most := max(largest, 1 / least)) > MOST_GROWN:
            longest = dt * math.log(MOST_GROWN) / math.log(most)
            self.warn(
                f"ExpansionSystem: vortons of {name!r} "
                f"{'grew' if most == largest else 'shrank'} {most:.3g} times in volume in one tick, but "
                f"the flow that this causes is resolved up to {MOST_GROWN} times; use dt <= "
                f"{longest:.2g} s, or heat them more slowly",
                name,
            )

    def _density_tables(self, world: World) -> Iterator[tuple[Density, Array]]:
        """Tables of densities, and the densities (n,) kg/m^3 that belong to their temperatures."""
        fluid = fluid_at_rest(world)
        if fluid.law != LAWS["none"]:
            for temperature, density, _ in world.query(Temperature, Density, Volume):
                yield density, density_of(fluid, temperature.T)
