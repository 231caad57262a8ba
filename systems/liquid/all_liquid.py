"""All liquid of a world as it is now: its particles, the accelerations on them, and their constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Position
from ecs_fluid.components.liquid import Liquid, LiquidBudget, LiquidModel, LiquidPush
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.inflow import in_pipes, inflows
from ecs_fluid.systems.liquid.constants import ALIKE, SAME_SIZE, common_viscosity, mean_volume, sound_speed
from ecs_fluid.systems.liquid.places import bodies_at
from ecs_fluid.systems.shared.populations import joined

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.step import LiquidLaw
    from ecs_fluid.systems.sph import SphSystem


class Particles(NamedTuple):
    """All particles of liquid, concatenated: positions (n, 3) m, velocities (n, 3) m/s, masses (n,) kg, V /
    V_0 (n,) and excess (n,)."""

    x: Array
    v: Array
    mass: Array
    size: Array
    excess: Array


class AllLiquid:
    """All liquid of the world of an SphSystem, `sph`, as it is now.

    particles: copies of the columns of all particles. count: number of those that entities have; rows behind
    are in the pipes of inflows. push (count, 3) m/s^2: accelerations other than gravity; None if there are
    none. volume: V_0, m^3. spacing: distance of neighbours at rest, m.
    """

    def __init__(self, sph: SphSystem) -> None:
        self.sph, self.world = sph, sph.world
        model, number = sph.field(LiquidModel), self.world.dtype
        self.volume = float(model.volume[0]) or float(number(mean_volume(self.world)))
        self.spacing = self.volume ** (1 / 3)
        columns = [
            (position.x, inertial.v, liquid.mass, liquid.volume, liquid.excess)
            for position, inertial, liquid in sph.query(Position, InertialVelocity, Liquid)
        ]
        x, v, mass, volume, excess = (np.concatenate(column) for column in zip(*columns, strict=True))
        self.particles = Particles(x, v, mass, (volume / self.volume).astype(number), excess)
        self.count = len(x)
        push = joined([push.a for _, _, push in sph.query(Position, Liquid, LiquidPush)], (3,), number)
        self.push = push if push.any() else None

    def add_pipes(self) -> None:
        """Append the particles in the pipes of inflows; FluidError if their size is another one."""
        mean = self.volume
        for inflow in inflows(self.world):  # one may be added to a running world
            if abs(inflow.particle - mean) > SAME_SIZE * mean:
                raise FluidError(
                    f"inflow {inflow.name!r}: spacing = {inflow.edge:g} m, but the liquid it flows into has "
                    f"{mean ** (1 / 3):.3g} m; {ALIKE}"
                )
        x, v, mass, volume = in_pipes(self.world)
        columns = (column.astype(self.world.dtype) for column in (x, v, mass, volume / mean, 0 * mass))
        self.particles = Particles(*map(np.concatenate, zip(self.particles, columns, strict=True)))

    @property
    def density(self) -> Array:
        """Densities (n,) kg/m^3 at rest."""
        return self.particles.mass / (self.particles.size * self.volume)

    @property
    def weight_left(self) -> Array:
        """Fraction (n,) of their weight that the surroundings do not carry."""
        return np.asarray(self.sph.weight_left(self.density).astype(self.world.dtype))

    def largest_weight(self, rho: Array) -> float:
        """Largest force on liquid of densities `rho`, kg/m^3, over its weight: 1, or more if its surroundings
        drive it up."""
        return max(1.0, -float(self.sph.weight_left(rho).min())) if rho.size else 1.0

    @property
    def sound(self) -> float:
        """Speed of sound in the densest liquid, m/s."""
        return sound_speed(self.world, float(self.sph.field(LiquidModel).stiffness[0]))

    @property
    def mean_push(self) -> Array:
        """Mean (3,) m/s^2 of the push: at rest, pressure grows along it."""
        return np.zeros(3) if self.push is None else self.push.mean(axis=0, dtype=np.float64)

    def accelerations(self, push: Array | None) -> Array:
        """Accelerations (n, 3) m/s^2 by the remaining gravity and a push; 0 in the pipes of inflows."""
        pull = self.weight_left[:, None] * self.world.gravity.astype(self.world.dtype)
        if push is not None:
            pull[: self.count] += push
        pull[self.count :] = 0
        return np.asarray(pull)

    def law(self, push: Array | float = 0.0) -> LiquidLaw:
        """Constants of the liquid; its gravity includes a mean push (3,) m/s^2."""
        from ecs_fluid.kernels.sph.step import LiquidLaw

        sph, model = self.sph, self.sph.field(LiquidModel)
        reach, stiffness = float(model.reach[0]), float(model.stiffness[0])
        viscosity = common_viscosity(self.world) + sph.artificial * self.sound * reach / 20
        return LiquidLaw(
            reach, sph.support, self.volume, stiffness, viscosity,
            tuple((self.world.gravity + push).tolist()), sph.density_around, sph.walls == "no_slip",
            sph.surface_tension, sph.wetting,
        )  # fmt: skip

    def compression_and_surface(self) -> tuple[Array, float]:
        """Compression nu (n,) of the particles as they are, and the energy of surface tension, J."""
        from ecs_fluid.kernels.sph.step import compression_and_surface

        law = self.law()
        return compression_and_surface(law, *self.particles, *bodies_at(self.world, 0.0, law.reach))

    def measured(self) -> dict[str, Any]:
        """What `SphSystem.measure` returns."""
        from ecs_fluid.kernels.sph.forces import compression_energy

        x, v, mass, size, _ = self.particles
        law, budget = self.law(), self.sph.field(LiquidBudget)
        nu, surface = self.compression_and_surface()
        place, speed, m = x.astype(np.float64), v.astype(np.float64), mass.astype(np.float64)
        weight = self.sph.weight_left(m / (size * law.volume))
        record: dict[str, Any] = {
            "mass": float(m.sum()),
            "momentum": (m[:, None] * speed).sum(axis=0),
            "angular_momentum": (m[:, None] * np.cross(place, speed)).sum(axis=0),
            "center": (m[:, None] * place).sum(axis=0) / m.sum(),
            "kinetic": 0.5 * float((m * (speed**2).sum(axis=1)).sum()),
            "potential": -float((m * weight * (place @ self.world.gravity)).sum()),
            "compression": compression_energy(nu, size, law.stiffness, law.volume),
            "dissipated": float(budget.dissipated[0]),
            "work": float(budget.work[0]),
            "least": float(nu.min()),
            "largest": float(nu.max()),
            "speed": float(np.sqrt((speed**2).sum(axis=1).max())),
        }
        record["surface"] = surface
        record["energy"] = record["kinetic"] + record["potential"] + record["compression"] + surface
        return record
