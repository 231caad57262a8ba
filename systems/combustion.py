"""Fire: fuel that burns to flame, flame that turns to smoke."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.components import Position, Species, Strength, Temperature, Volume
from ecs_fluid.fluid import Fluid
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.shared.properties import attach_ambient, shed
from ecs_fluid.systems.thermal import ExpansionSystem
from ecs_fluid.world import World

BURNING = ("fuel", "flame", "smoke")


class CombustionSystem(System):
    """Combustion: fuel burns to flame at A exp(-T_a/T), flame turns to smoke at A_s exp(-(T/T_s)^2).

    In every particle with a Volume, per mass: d(fuel)/dt = -A exp(-`activation`/T) fuel, and the burnt
    fuel becomes flame and heats the particle, c_p dT = Q d(burnt); `ignition` is a temperature below
    which nothing burns (with the rate law alone, fuel always burns slowly). oxygen = "limited": the rate
    is also proportional to the air in the particle, 1 - fuel - flame - smoke, of which a mass `air_need`
    becomes flame with each mass of fuel; ThermalSystem's species_diffusivity brings new air in.

    Each step is exact where it can be, and implicit otherwise: for any dt, fractions stay in [0, 1], and fuel
    + flame + smoke (+ air used) is kept to the last digit. It is of second order in time
    (`kernels.combustion.burning`). Flame that would not last a step stays visible until its end: of new
    flame, the fraction (z/2) exp(-z) decays within the step, where z is the decay rate times the step. The
    articles' G is a temperature rise per burnt mass fraction, Q/c_p; they multiply by rho c_p where one has
    to divide by c_p. Source: Fluid Simulation for Video Games, part 11.
    """

    reads = (Volume, Fluid)
    writes = (Species, Temperature)
    phase = "move"
    symmetric = True
    distribution = "rows"
    dimensions = (2, 3)
    before = ("SpeciesLimitSystem",)
    warms = True

    rate: float = Field(default=1.0, ge=0, le=1e30)
    """rate constant A of burning, 1/s"""
    activation: float = Field(default=300.0, ge=0, le=1e6)
    """activation temperature T_a, K"""
    ignition: float = Field(default=0.0, ge=0, le=1e6)
    """temperature below which nothing burns, K"""
    heat: float = Field(default=1e6, ge=0, le=1e12)
    """heat of combustion Q of fuel, J/kg"""
    flame_rate: float = Field(default=5.0, ge=0, le=1e30)
    """rate constant A_s of flame to smoke, 1/s"""
    flame_temperature: float = Field(default=350.0, gt=0, le=1e6)
    """temperature T_s above which flame lasts, K"""
    oxygen: Literal["unlimited", "limited"] = "unlimited"
    """whether air can run out"""
    air_need: float = Field(default=15.0, ge=0, le=1e3)
    """limited: mass of air per mass of fuel, 1"""

    def added(self, world: World) -> None:
        """Give particles that burn a temperature."""
        for entity in world.entities:
            burns = Species in entity or (Strength in entity and entity.name not in shed(world))
            if Position in entity and Volume in entity and burns:
                attach_ambient(entity, Species)
                attach_ambient(entity, Temperature)
        world.require(ExpansionSystem)

    def lint(self, world: World) -> list[str]:
        """Warn where nothing has fuel or flame, nor gets any."""
        burning = any(
            Species in entity and (entity[Species].fuel.any() or entity[Species].flame.any())
            for entity in world.entities
        )
        fed = any(
            emitter.fractions.get(name)
            for system in named(world.systems, "EmissionSystem")
            for emitter in system.emitters
            for name in ("fuel", "flame")
        )
        others = any(Species in (*one.writes, *one.adds) and one._user_defined for one in world.systems)
        if burning or fed or others:
            return []
        return ["CombustionSystem does nothing: no particle has fuel, and no emitter gives any"]

    def process(self, dt: float) -> None:
        """Burn in every particle."""
        from ecs_fluid.kernels.combustion.burning import burn, flame_decay

        rise = self.heat / float(self.field(Fluid).heat_capacity)
        need = self.air_need if self.oxygen == "limited" else 0.0
        for species, temperature, _ in self.query(Species, Temperature, Volume):
            fuel, flame, smoke, T = species.fuel, species.flame, species.smoke, temperature.T
            decay = self.flame_rate, self.flame_temperature, 0.5 * dt
            left = flame_decay(np.ones_like(flame), T, *decay)
            air = None
            if self.oxygen == "limited":
                others = sum(y for column, y in species.items() if column.name not in BURNING)
                air = np.maximum(1 - fuel - flame - smoke - others, 0)
            burnt = burn(fuel, air, T, self.rate, self.activation, self.ignition, rise, need, dt)
            fuel -= burnt
            T += T.dtype.type(rise) * burnt
            # The decay rate is the mean of the rates at both ends of the step; `left` is exp(-z).
            left = flame_decay(left, T, *decay)
            new, tiny = burnt * T.dtype.type(1 + need), np.finfo(T.dtype).tiny
            lasting = flame * left + new * (1 + T.dtype.type(0.5) * left * np.log(np.maximum(left, tiny)))
            smoke += flame + new - lasting
            flame[...] = lasting
