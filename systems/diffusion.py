"""Viscous diffusion of vorticity."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ecs_fluid.components import CoreRadius, CoreRadiusRate, Position, Sources, Strength, StrengthRate, Volume
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.system import System
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.exchange_lint import SPACINGS, Words, crowded_lint, exchange_lint
from ecs_fluid.systems.shared.neighbourhoods import exchanged, longest_step
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.populations import add_spread
from ecs_fluid.systems.shared.properties import volume_lint
from ecs_fluid.systems.surface_tension import SurfaceTensionSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

TAKES = {
    "pse": ("eddy_viscosity", "order", "radius"),
    "core_spreading": ("eddy_viscosity",),
    "index_space": ("rate", "dissipation"),
}
"""Parameters by method."""

WORDS = Words("DiffusionSystem", "vorticity", "viscosity", "use method = 'core_spreading', or ")


class DiffusionSystem(System):
    """Viscous diffusion of vorticity: d(omega)/dt = nu laplacian(omega).

    * pse: particle strength exchange, d(alpha_p)/dt = nu/eps^2 sum_q (V_p alpha_q - V_q alpha_p)
      eta_eps(x_p - x_q), antisymmetric, so the total strength stays. Needs particles that fill the
      region into which vorticity spreads. A wave of wave number k decays as if the viscosity were
      nu (1 - (k eps)^2/8 + ...) by order 2 and nu (1 - (k eps)^4/96 + ...) by order 4. With eps as wide as
      the blobs, order 2 takes 3/4 of the energy that nu should take from a core two spacings wide; order 4
      takes a third too much where the vortons end before the vorticity does. eps = `radius` core radii should
      be at least 1.25 spacings by order 4 and 1.5 by order 2: with 0.8 spacings order 4 acts as 4/5 of nu,
      with less than 0.6 as a negative viscosity. Where the flow has mirror images behind walls, exchange has
      them too: strengths along the wall turn round, so that vorticity is 0 there, and those across it stay.
    * core_spreading: the variance v sigma^2 of a blob's vorticity along each axis grows by 2 nu a second, so
      d(sigma^2)/dt = 2 nu/v, where v is 1 for gaussian blobs (for a lone one this is exact), 1/2 for
      winckelmans and 1/5 for rankine ones; rosenhead_moore ones have none. Works for filaments too.
    * index_space: the articles' exchange with all vortons of the 27 cells around, with the falloff
      exp(-d^2 / (4 size^2)) and a `rate` in 1/s in place of a viscosity. A look, not physics.

    nu is the fluid's viscosity plus `eddy_viscosity`, that of eddies which the vortons do not resolve.

    Raises FluidError when an explicit step of `dt` is unstable (nu dt / eps^2 > 0.55 on a full lattice, 0.25
    by order 4; in index space 2 rate dt times the sum of the falloff over all neighbours > 1.5).
    Source: Degond and Mas-Gallic, Math. Comput. 53 (1989); Leonard, J. Comput. Phys. 37 (1980); Fluid
    Simulation for Video Games, parts 3 and 12.
    """

    reads = (Position, Strength, CoreRadius, Sources, Fluid)
    may_read = (Volume, *BODIES)
    adds = (StrengthRate, CoreRadiusRate)
    asks = ("BodySystem",)
    phase = "rates"
    several = False
    distribution = "ranks"
    dimensions = (2, 3)

    eddy_viscosity: float = Field(default=0.0, ge=0, le=1e6)
    """kinematic viscosity of unresolved eddies, m^2/s"""
    method: Literal["pse", "core_spreading", "index_space"] = "pse"
    """how to diffuse"""
    order: Literal[2, 4] | None = None
    """order of the exchange kernel in eps; default 4 where a RemeshSystem or a SurfaceTensionSystem keeps
    vortons around the vorticity, which the negative part of that kernel needs, and 2 elsewhere"""
    radius: float | None = Field(default=None, gt=0, le=10)
    """exchange radius eps, core radii; default 5/6 by order 4 and 1 by order 2; where such a system has an
    overlap below 1.5, as much more as makes 1.25 and 1.5 spacings"""
    rate: float = Field(default=0.0, ge=0, le=1e6)
    """index_space: rate of exchange, 1/s"""
    dissipation: bool = False
    """index_space: also lose rate * alpha per second, as the articles do"""

    def added(self, world: World) -> None:
        """Add the PartitionSystem for index-space exchange, which works on sorted vortons."""
        indexed = self.method == "index_space"
        unused = sorted({name for names in TAKES.values() for name in names} - {*TAKES[self.method]})
        for name in unused:
            if value := getattr(self, name):
                told = f"{value:g}" if isinstance(value, float) else str(value).lower()
                raise RecipeError(
                    f"DiffusionSystem: {name} = {told} has no effect with method = {self.method!r}, which "
                    f"uses {'its rate' if indexed else 'the viscosity of the fluid'}; leave {name} out"
                )
        if indexed and world.periods.any():
            raise RecipeError(
                "DiffusionSystem: method = 'index_space' cannot find neighbours across the faces of a world "
                "that repeats; use method = 'pse' or 'core_spreading'"
            )
        world.require(PartitionSystem)
        if self.method == "core_spreading":
            world.require(VelocitySystem)

    @property
    def viscosity(self) -> float:
        """nu, of the fluid and of eddies, m^2/s; 0 where exchange goes by a rate instead."""
        if self.method == "index_space":
            return 0.0
        return float(self.field(Fluid).viscosity) + self.eddy_viscosity

    @property
    def needs_all_sources(self) -> bool:
        """Whether the sorted vortons themselves are read: by index-space exchange."""
        return self.method == "index_space"

    def process(self, dt: float) -> None:
        """Add the diffusion rate of every vorton."""
        if self.rate:
            self._exchange_in_index_space(dt)
        elif nu := self.viscosity:
            if self.method == "pse":
                self._exchange(dt, nu)
            else:
                self._spread_cores(nu)

    def _spread_cores(self, nu: float) -> None:
        velocity = self.world.require(VelocitySystem)
        variance = velocity.regularisation.variance
        if not 0 < variance < np.inf:
            raise FluidError(
                "DiffusionSystem: method = 'core_spreading' needs blobs with a positive, finite variance, "
                f"but that of kernel = {velocity.kernel!r} is {variance:g}; use another kernel, or another "
                "method"
            )
        growth = self.world.dtype(2.0 * nu / variance)
        for (rate,) in self.query(CoreRadiusRate):
            rate.dsigma2[:] += growth

    def _exchange(self, dt: float, nu: float) -> None:
        wanted = Position, Strength, CoreRadius, Volume
        entities, (x, alpha, sigma, volume) = self.joined(*wanted)
        order, radius = self._order_and_radius(self.world)
        eps = sigma if radius == 1.0 else sigma * self.world.dtype(radius)
        how = nu, order, self.world.dimension
        rate, loss = exchanged(self.world, entities, x, alpha, eps, volume, *how, strengths=True)
        if dt > (limit := longest_step(self.world, loss)):
            raise FluidError(
                f"DiffusionSystem: dt = {dt:g} s is unstable with viscosity = {nu:g} m^2/s; "
                f"use dt <= {limit:.3g} s, a larger radius, or method = 'core_spreading'"
            )
        add_spread(rate, [table.dalpha for *_, table in self.query(*wanted, StrengthRate)])

    def _order_and_radius(self, world: World) -> tuple[int, float]:
        """Order of the exchange kernel and its radius, core radii: as set, or the defaults for this world."""
        keepers = [s for s in world.systems if isinstance(s, (RemeshSystem, SurfaceTensionSystem))]
        order = self.order or (4 if keepers else 2)
        # LEAST_OVERLAP is taken for granted, unless one of these systems keeps a smaller overlap.
        overlap = min([LEAST_OVERLAP, *(keeper.overlap for keeper in keepers)])
        return order, self.radius or SPACINGS[order] / overlap

    def _exchange_in_index_space(self, dt: float) -> None:
        from ecs_fluid.kernels.grids.partition import scatter_sorted
        from ecs_fluid.kernels.vorticity.strength_exchange import (
            SHORT_WAVES_OF_CELLS,
            index_exchange,
            stable_step,
        )

        sources = self.field(Sources)
        size, mesh = 2 * sources.sigma, (sources.start, sources.cells)
        rate, loss = np.zeros_like(sources.alpha), np.empty_like(sources.sigma)
        index_exchange(
            sources.x, sources.alpha, size, *mesh, self.rate, rate, loss, dissipation=self.dissipation
        )
        if dt > (limit := stable_step(loss, SHORT_WAVES_OF_CELLS)):
            raise FluidError(
                f"DiffusionSystem: rate = {self.rate:g} 1/s is unstable with method = 'index_space' at "
                f"dt = {dt:g} s for the present vortons; at most {self.rate * limit / dt:.3g} 1/s is allowed"
            )
        rows, first = scatter_sorted(rate, sources.order, np.empty((rate.shape[1], 3), rate.dtype)), 0
        for entity, (*_, table) in self.entities(Position, Strength, CoreRadius, StrengthRate):
            start, stop, total = self.world.processes.placed(entity, len(table.dalpha))
            table.dalpha += rows[first + start : first + stop]
            first += total

    def lint(self, world: World) -> list[str]:
        """Warn of populations that exchange leaves out, or in which vorticity has nowhere to spread to."""
        nu = float(world.fluid[Fluid].viscosity)
        if self.method == "index_space" and self.rate == 0.0 and nu > 0.0:
            return [
                f"DiffusionSystem: method = 'index_space' exchanges by its rate, which is 0, and ignores the "
                f"fluid's viscosity of {nu:g} m^2/s; give it a rate in 1/s, or use another method"
            ]
        if self.method != "pse" or self.viscosity == 0.0:
            return []
        entities, columns = self.joined(Position, Strength, CoreRadius, Volume)
        texts = volume_lint(self, world)
        if world.system(RemeshSystem) is None:
            texts += crowded_lint(WORDS, world, entities, columns)
        how = self._order_and_radius(world)
        return texts + exchange_lint(WORDS, world, entities, columns, *how, strengths=True)
