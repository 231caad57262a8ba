"""Subfilter model of vortex stretching, for flows that break down below the cores."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    CoreRadius,
    Position,
    Sources,
    Strength,
    StrengthRate,
    SubfilterAverage,
    SubfilterTerms,
    VelocityGradient,
)
from ecs_fluid.errors import FluidError
from ecs_fluid.system import System
from ecs_fluid.systems.baroclinic import BaroclinicSystem
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.neighbourhoods import Neighbourhood, neighbourhoods, together
from ecs_fluid.systems.shared.populations import add_spread, joined, spread
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.regularisation import Code


HANDED_OVER = 1.5
"""Distance, in core radii, within which neighbours get the strength that is taken from a vorton."""

TWICE_AS_FAR = 2.0001 * HANDED_OVER
"""Distance, in core radii, up to which images count there: what a neighbour hands over depends on its own."""


class SubfilterSystem(System):
    """Subfilter-scale stretching, which takes enstrophy out of the resolved scales.

        d(alpha_p)/dt = -C sigma_p^3/zeta(0) E(x_p),
        E(x) = sum_q zeta_sigma(x - x_q) (alpha_q . grad)(u(x) - u(x_q)),

    The model is anisotropic: where neighbours are stretched alike, as in a smooth core, it does nothing.

    The coefficient C of a vorton is `constant`, or `dynamic`: the ratio of two terms that compare the
    stretching at the cores with that at a narrower test filter, `test_filter` core radii wide. Each term is
    averaged over about `average` ticks along the path (SubfilterAverage), and C is kept within -1 to 1. This
    is the paper's pseudo three-level procedure with finite differences between the filters. Where C alpha . E
    is negative, enstrophy would return from below the cores; there the term is left out. No strength decays
    faster than at the rate 1/dt.

    Total strength and impulse, sum alpha and sum x cross alpha, are not kept: the model takes two thirds and
    more of the impulse that buoyancy gives to a flame. With `keeps_impulse` the strength taken from a vorton
    is given to its neighbours, weighted such that sum and first moments stay
    (`kernels.vorticity.share_with_neighbours`), because stresses below the cores change neither. Then only
    structures finer than the distances between neighbours are damped, and a vorton's enstrophy may grow by
    what it gets.

    Sums run over neighbours within the `reach` of the regularisation, so the cost is that of a viscous
    exchange. Behind the `mirrors` of the VelocitySystem they have images, behind walls of containers none.
    Derivation: docs/notes/vorticity.md. Source: Alvarez and Ning, Phys. Fluids 35 (2023),
    arXiv 2206.03658; Alvarez, dissertation, Brigham Young University (2022), chapter 3.
    """

    reads = (Position, Strength, CoreRadius, VelocityGradient, Sources)
    may_read = (SubfilterAverage, *BODIES)
    writes = (SubfilterTerms,)
    adds = (StrengthRate,)
    phase = "rates"
    periodic = False

    coefficient: Literal["dynamic", "constant"] = "dynamic"
    """where C comes from"""
    constant: float = Field(default=1.0, ge=0, le=10)
    """constant: C, 1"""
    keeps_impulse: bool = False
    """hand over to neighbours what is taken, so that total strength and impulse stay"""
    test_filter: float = Field(default=0.9, gt=2 / 3, lt=1)
    """dynamic: width of the test filter over the core radius, 1"""
    average: float = Field(default=200.0, ge=1)
    """dynamic: length of the average of its terms, ticks"""

    def added(self, world: World) -> None:
        """Attach the averages to vortons, and add the PartitionSystem that sorts them."""
        world.require(PartitionSystem)
        world.require(VelocitySystem)
        if self.coefficient == "dynamic":
            for entity in world.entities:
                if all(kind in entity for kind in (Position, Strength, CoreRadius)):
                    world._attach_missing(entity.name, SubfilterAverage)
            averages = world.require(SubfilterAverageSystem, average=self.average)
            if averages._implied:
                averages.average = self.average

    def lint(self, world: World) -> list[str]:
        """Warn of buoyancy, whose impulse the model would take."""
        if self.keeps_impulse or world.system(BaroclinicSystem) is None:
            return []
        return [
            "SubfilterSystem removes most of the impulse that BaroclinicSystem adds, so light fluid hardly "
            "rises; use keeps_impulse = true"
        ]

    def process(self, dt: float) -> None:
        """Add the model's rate; in the first stage of a tick also fill the terms of its coefficient."""
        sources = self.field(Sources)
        tables = list(self.query(Position, Strength, CoreRadius, VelocityGradient, StrengthRate))
        if sources.x.shape[1] == 0:
            return
        from ecs_fluid.kernels.grids.partition import gather_sorted, scatter_sorted
        from ecs_fluid.kernels.vorticity import subfilter

        velocity = self.world.require(VelocitySystem)
        number = self.world.dtype
        du = gather_sorted(joined([table.du for *_, table, _ in tables], (3, 3), number), sources.order)
        scale = sources.sigma**3 * number(1.0 / velocity.regularisation.centre)
        plain = _stretched(sources.alpha, du)
        around = Neighbours.of(velocity, sources)
        model = around.model(1.0, du, plain)
        if self.coefficient == "constant":
            factor = np.full_like(sources.sigma, self.constant)
        else:
            factor = self._dynamic(sources.order)
            if self.world.stage.c == 0.0:
                self._terms(around, du, plain, model)
        rate = np.empty_like(sources.alpha)
        subfilter.add_model(sources.alpha, scale, model, factor, number(1.0 / dt), rate)
        if self.keeps_impulse:
            rate -= around.shared(rate)
        rows = scatter_sorted(rate, sources.order, np.empty((rate.shape[1], 3), number))
        add_spread(rows, [table.dalpha for *_, table in tables])

    def _dynamic(self, order: Array) -> Array:
        """C of every sorted vorton from the averages; 0 where there are none yet."""
        averages = []
        for entity, _ in self.entities(Position, Strength, CoreRadius):
            if SubfilterAverage not in entity:
                raise FluidError(
                    f"SubfilterSystem: entity {entity.name!r} was made after the system and has no averages; "
                    f"call world.attach({entity.name!r}, ecs_fluid.SubfilterAverage)"
                )
            averages.append(entity[SubfilterAverage])
        number = self.world.dtype
        production = joined([table.production for table in averages], (), number)[order]
        model = joined([table.model for table in averages], (), number)[order]
        ratio = np.divide(production, model, out=np.zeros_like(model), where=model != 0)
        return np.asarray(np.clip(ratio, -1, 1))

    def _terms(self, around: Neighbours, du: Array, plain: Array, model: Array) -> None:
        """Write alpha . L and alpha . m of every vorton, up to a common factor, into SubfilterTerms."""
        number, sources = self.world.dtype, around.sources
        ratio = number(self.test_filter)
        narrow = du + around.gradient_change(float(ratio))
        stretched = _stretched(sources.alpha, narrow)
        test = around.model(ratio, narrow, stretched)
        scale = sources.sigma**3 * number(1.0 / self.world.require(VelocitySystem).regularisation.centre)
        rows = np.empty((2, len(scale)), number)
        rows[0, sources.order] = (3 * ratio - 2) * (sources.alpha * (stretched - plain)).sum(axis=0)
        rows[1, sources.order] = scale * (sources.alpha * (test - model)).sum(axis=0)
        terms = [table for (table,) in self.query(SubfilterTerms)]
        spread(rows[0], [table.production for table in terms])
        spread(rows[1], [table.model for table in terms])


def _stretched(alpha: Array, du: Array) -> Array:
    """J alpha of every vorton, (3, n)."""
    from ecs_fluid.kernels.vorticity import subfilter

    out = np.empty_like(alpha)
    subfilter.model(du, alpha, np.zeros_like(alpha), out)
    return out


class Neighbours(NamedTuple):
    """The sorted vortons, and what sums over neighbours run through: they, and their images behind mirrors.

    Walls of a container have none: blobs reach five core radii, often as far as it is wide.
    """

    code: Code
    """regularisation of the cores"""
    sources: Sources
    """the n vortons"""
    hood: Neighbourhood
    """their m images"""
    every: Sources
    """vortons and images, sorted by the cells of a grid; `order` numbers them as vortons, then images"""

    @classmethod
    def of(cls, velocity: VelocitySystem, sources: Sources) -> Self:
        """Those of the vortons, with the images within the reach of all sums."""
        from ecs_fluid.kernels.grids.neighbours import search_grid
        from ecs_fluid.kernels.grids.partition import gather_sorted, partition

        world, code = velocity.world, velocity.code
        reach = max(velocity.regularisation.reach, TWICE_AS_FAR) * float(sources.sigma.max())
        x, n = np.ascontiguousarray(sources.x.T), len(sources.sigma)
        hood = together(neighbourhoods(world, x, sources.sigma, reach, velocity.mirror_walls), n)
        every = copy(sources)
        if len(hood.shown):
            x = hood.all_places(x)
            grid = search_grid(x, 0.5 * reach, max(len(x), 64))
            start, order = partition(x, *grid)
            every.x, every.sigma = gather_sorted(x, order), hood.all_of(sources.sigma)[order]
            every.start, every.order = start, order
            every.origin, every.spacing, every.cells = grid
        return cls(code, sources, hood, every)

    def model(self, ratio: Any, du: Array, stretched: Array) -> Array:
        """E of every vorton, (3, n), with core radii times `ratio`, and the gradient `du` that belongs to
        them."""
        from ecs_fluid.kernels.vorticity import subfilter

        every, out = self.every, np.empty_like(stretched)
        values = np.concatenate([self._sorted(self.sources.alpha), self._sorted(stretched)])
        sums = subfilter.blob_sums(
            self.code, every.x, every.sigma * ratio, values, every.start, self._grid, self.sources.x
        )
        subfilter.model(du, sums[:3], sums[3:], out)
        return out

    def gradient_change(self, ratio: float) -> Array:
        """Change (9, n), 1/s, of the velocity gradient if core radii are multiplied by `ratio`."""
        from ecs_fluid.kernels.vorticity import subfilter

        every, alpha = self.every, self._sorted(self.sources.alpha)
        return subfilter.gradient_change(
            self.code, every.x, every.sigma, alpha, ratio, every.start, self._grid, self.sources.x
        )

    def shared(self, rate: Array) -> Array:
        """What the vortons get (3, n) if each, and each image, hands its `rate` (3, n) over to neighbours."""
        from ecs_fluid.kernels.vorticity.share_with_neighbours import shared_with_neighbours

        x, sigma = np.ascontiguousarray(self.sources.x.T), self.sources.sigma
        hood = self.hood.near(x, TWICE_AS_FAR * float(sigma.max()))
        values = hood.all_strengths(np.ascontiguousarray(rate.T))
        reach = sigma.dtype.type(HANDED_OVER) * hood.all_of(sigma)
        return shared_with_neighbours(hood.all_places(x), values, reach)[: len(sigma)].T

    def _sorted(self, strengths: Array) -> Array:
        """Pseudovectors (3, n) of the sorted vortons as those of `every` (3, n + m)."""
        if not len(self.hood.shown):
            return strengths
        rows = self.hood.all_strengths(np.ascontiguousarray(strengths.T))
        return np.ascontiguousarray(rows[self.every.order].T)

    @property
    def _grid(self) -> tuple[Array, Array, Array]:
        return self.every.origin, self.every.spacing, self.every.cells


class SubfilterAverageSystem(System):
    """Path averages of the dynamic coefficient's terms, once per tick: a <- a + (now - a) / average."""

    reads = (SubfilterTerms,)
    writes = (SubfilterAverage,)
    phase = "move"
    periodic = False

    average: float = Field(default=200.0, ge=1)
    """length of the average, ticks"""

    def process(self, dt: float) -> None:
        """Fold this tick's terms into the averages."""
        weight = self.world.dtype(1.0 / self.average)
        for terms, average in self.query(SubfilterTerms, SubfilterAverage):
            average.production += weight * (terms.production - average.production)
            average.model += weight * (terms.model - average.model)
