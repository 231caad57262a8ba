"""Where the particles are: bounds, the field grid, and vortons merged and sorted by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Grid, Position, Sources, Strength
from ecs_fluid.entity import Entity
from ecs_fluid.input_limits import GRID_POINT, TREE_CELL, check_memory
from ecs_fluid.strays import box_around_most, sample_rows
from ecs_fluid.system import System
from ecs_fluid.systems.shared.populations import some_rows

MANY = 2**20
"""From this number of cells on, memory is checked."""
PER_CORE = 2.0
"""Default number of field cells per core radius."""
MOST_FINE_CELLS = 2**17
"""Most cells that `cells_per_core` leads to; beyond, a thin core in a wide world stays unresolved."""
MOST_ADVISED_CELLS = 2**24
"""Most cells that a warning advises."""


VORTONS = Position, Strength, CoreRadius

GHOSTS = 4
"""Points of the field grid beyond a periodic box, on both sides: so third-order interpolation and sharing,
and fourth-order differences, need no special rule at its faces."""


Rows = list[tuple[Entity, Array]]
"""Populations, and the positions (n, 3) m of their rows."""


class GridNeeds(NamedTuple):
    """What a velocity solver needs of the field grid."""

    padding: float = 0.0
    """room around the vortons, core radii"""
    per_core: float = PER_CORE
    """cells per core radius, if the partition does not set it"""
    all_inside: bool = False
    """whether all particles, also strays, must lie in the grid"""


class Cloud(NamedTuple):
    """The facts about the vortons by which the field grid is chosen."""

    low: Array
    """(3,) m"""
    high: Array
    """(3,) m"""
    across: Array
    """(3,) whether no vorticity points along the other two axes"""
    widest: float
    """largest core radius, m"""
    mean: float
    """mean core radius, m"""
    vortons: int


class PartitionSystem(System):
    """Uniform grid around the particles, and all vortons sorted by the cells of a second one.

    The Grid encloses vortons and tracers, and the velocity field lies on it. It has about `cells` cells, or
    `cells_per_vorton` per vorton, as in the articles, and more where few vortons with small cores would leave
    it coarser than `cells_per_core` cells per core radius. Strays that would make it coarse for all others
    are left out, unless a solver needs all particles inside. The Sources are all vortons as a structure of
    arrays, sorted by the cells of a second grid that encloses only the vortons; the tree is built on it.
    Both are remade in each stage.

    Source: Fluid Simulation for Video Games, part 3.
    """

    reads = (Position, Strength, CoreRadius)
    writes = (Grid, Sources)
    phase = "prepare"
    distribution = "ranks"
    dimensions = (2, 3)

    cells: int | None = Field(default=None, ge=1, le=10**9)
    """cells of the field grid; None: by cells_per_vorton and cells_per_core"""
    cells_per_vorton: float = Field(default=1.0, gt=0, le=1000)
    """least cells of the field grid per vorton, 1"""
    cells_per_core: float | None = Field(default=None, ge=0, le=16)
    """least field cells per mean core radius, 1; up to 131,072 cells in all; 0: by the number of vortons
    alone; None: 2, and 3 for the solver hybrid"""
    vortons_per_cell: float = Field(default=1.0, ge=1e-3, le=1000)
    """vortons per leaf cell of the influence tree, 1"""
    padding: float = Field(default=1.0, ge=0)
    """margin of the field grid around the vortons, core radii, so that it covers their cores; at least 3 for
    solvers that spread vorticity on it"""
    expand: float = Field(default=0.0, ge=0, le=10)
    """part of the extent added on each side of the grid, 1 (articles: 0)"""

    def __post_init__(self) -> None:
        self.leaves_out = False
        """Whether strays lie outside the Grid of this stage"""

    def process(self, dt: float) -> None:
        """Refill Grid and Sources."""
        fields = self.field(Sources), self.field(Grid)
        self.leaves_out = self._fill(*fields, "sources", divisible=self._divisible)

    def _divisible(self) -> bool:
        """Whether every system that reads the Sources needs only a part of them on each rank."""
        return not any(
            Sources in system.reads and getattr(system, "needs_all_sources", True)
            for system in self.world.systems
        )

    def present(self, needs: GridNeeds | None = None, around: Array | None = None) -> tuple[Sources, Grid]:
        """New Sources and Grid of the present vortons, for use between ticks.

        The world's own Sources and Grid stay those of the last stage, to which its fields belong. The grid is
        made for `needs`, by default those of the world's systems, and extended by whole cells to enclose the
        points `around` (m, 3) m.
        """
        sources, grid = Sources.blank(0, self.world.dtype), Grid.blank(0, self.world.dtype)
        self._fill(sources, grid, "present sources", needs)
        if around is not None and len(around):
            self._widen(grid, around)
        return sources, grid

    def farthest(self, sources: Sources, grid: Grid) -> str | None:
        """What makes the grid much larger than most vortons need: "entity 'name'", "a few vortons" or
        None."""
        from ecs_fluid.kernels.compiled.columns import bounds

        (lo, hi), found, reach = bounds(sources.x.T), None, 0.25 * float((grid.spacing * grid.cells).max())
        inner = np.percentile(sources.x, (0.5, 99.5), axis=1)
        if max((inner[0] - lo).max(), (hi - inner[1]).max()) > reach:
            found = "a few vortons"
        for entity, (position,) in self.entities(Position):
            if Strength in entity and CoreRadius in entity:
                continue
            low, high = self.world.processes.enclosing(*bounds(position.x))
            beyond = float(np.maximum(lo - low, high - hi).max())
            if beyond > reach:
                found, reach = f"entity {entity.name!r}", beyond
        return found

    def finer(self, sources: Sources, grid: Grid, radius: float, per_core: float) -> str | None:
        """The parameter, with a value, that gives `per_core` cells per core radius; None if there is none."""
        count = float(np.prod(np.maximum(grid.spacing * grid.cells * (per_core / radius), 1.0)))
        ratio = per_core * float(sources.sigma.mean(dtype=np.float64)) / radius
        if self.cells is None and count <= MOST_FINE_CELLS and ratio <= 16:
            return f"cells_per_core = {ratio:.2g}"
        return f"cells = {math.ceil(count):,}".replace(",", "_") if count <= MOST_ADVISED_CELLS else None

    def unsorted(self, most: int) -> Sequence[Array] | None:
        """x (3, n), alpha (3, n) and sigma (n,) of the present vortons, unsorted; None if n is above
        `most`."""
        processes, (entities, own) = self.world.processes, self.joined(*VORTONS)
        if processes.total(entities, len(own[0])) > most:
            return None
        x, alpha, sigma = processes.gathered(entities, own)

        def columns() -> list[Array]:
            return [np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma]

        return processes.once("unsorted vortons", columns)

    def _fill(
        self,
        sources: Sources,
        grid: Grid,
        name: str,
        needs: GridNeeds | None = None,
        divisible: Callable[[], bool] | None = None,
    ) -> bool:
        """Fill Sources and Grid; returns whether the grid leaves particles out."""
        from ecs_fluid.kernels.compiled.columns import bounds
        from ecs_fluid.kernels.grids.grid import uniform_grid

        world, (entities, (x, alpha, sigma)) = self.world, self.joined(*VORTONS)
        processes = world.processes
        vortons = [(entity, entity[Position].x) for entity in entities]
        count = processes.total(entities, len(x))
        box = processes.enclosing(*bounds(x))
        wanted = max(1, round(count / self.vortons_per_cell))
        if wanted > MANY:
            check_memory(TREE_CELL, wanted, "cells of the tree", "use more vortons_per_cell")
        cloud = self._cloud(*box, alpha, sigma, count)
        mesh = uniform_grid(*(self._around_most(*box, cloud, vortons) or box), wanted)
        found = processes.sorted_vortons(name, entities, (x, alpha, sigma), mesh, divisible)
        names = "origin", "spacing", "cells", "start", "order", "x", "alpha", "sigma"
        sources.put(**dict(zip(names, (*mesh, *found), strict=True)))
        if needs is None:  # the largest needs of the systems; parameters may change between ticks
            every = [getattr(system, "grid_needs", GridNeeds()) for system in world.systems]
            needs = GridNeeds(*map(max, zip(*every, strict=True)))
        return self._enclose(grid, needs, cloud, vortons)

    def _cloud(self, low: Array, high: Array, alpha: Array, sigma: Array, count: int) -> Cloud:
        """The Cloud of all vortons, `count` in a box, from the rows that this process holds."""
        world, own = self.world, [bool(alpha[:, a].any()) for a in range(3)]
        extremes = float(sigma.max(initial=0.0)), -float(sigma.min(initial=np.inf))
        *along, widest, least = world.processes.largest((*own, *extremes))
        across = np.array([not (along[(a + 1) % 3] or along[(a + 2) % 3]) for a in range(3)])
        if world.across is not None:
            across = np.arange(3) == world.across
        mean = widest
        if 0.0 < widest < np.inf and -least != widest:
            # Sums of whole numbers do not depend on which process holds which rows.
            some = (sigma[k : k + 2**15].astype(np.float64) for k in range(0, len(sigma), 2**15))
            units = sum(int(np.rint(part / widest * 2.0**32).sum(dtype=np.int64)) for part in some)
            mean *= int(world.processes.summed(np.array(units))) / 2.0**32 / count
        return Cloud(low, high, across, widest, mean, count)

    def _enclose(self, grid: Grid, needs: GridNeeds, cloud: Cloud, vortons: Rows) -> bool:
        """Fill the grid; returns whether it leaves particles out."""
        from ecs_fluid.kernels.compiled.columns import bounds
        from ecs_fluid.kernels.grids.grid import flat_axes, uniform_grid

        world, pad = self.world, max(self.padding, needs.padding) * cloud.widest
        lo, hi = cloud.low, cloud.high
        # A plane population counts as flat only if its vorticity points across the plane: a plane ring does
        # not. Gradients across a plane, line or point of other vortons need grid points on both sides.
        room = np.where(flat_axes(lo, hi), np.where(cloud.across, 0.0, max(pad, cloud.widest)), pad)
        lo, hi = lo - room, hi + room
        summed = [entity for entity, _ in vortons]
        others = [(entity, at.x) for entity, (at,) in self.entities(Position) if entity not in summed]
        for _, x in others:
            low, high = bounds(x)
            lo, hi = np.minimum(lo, low), np.maximum(hi, high)
        lo, hi = world.processes.enclosing(lo, hi)
        most = None if needs.all_inside else self._around_most(lo, hi, cloud, vortons, others)
        lo, hi = most or (lo, hi)
        if np.isfinite(lo).all() and self.expand:
            extent = hi - lo
            lo, hi = lo - self.expand * extent, hi + self.expand * extent
        periods = world.periods
        lo, hi = np.where(periods, -0.5 * periods, lo), np.where(periods, 0.5 * periods, hi)
        cells = self._count(hi - lo, cloud.mean, cloud.vortons, needs.per_core)
        origin, spacing, number = uniform_grid(lo, hi, cells)
        flat = (flat_axes(lo, hi) & cloud.across).astype(np.int64)
        for a in np.flatnonzero(periods):
            from scipy.fft import next_fast_len

            number[a] = next_fast_len(int(number[a]), real=True)
            spacing[a] = periods[a] / number[a]
            origin[a], number[a], flat[a] = lo[a] - GHOSTS * spacing[a], number[a] + 2 * GHOSTS, 0
        grid.put(origin=origin, spacing=spacing, cells=number, flat=flat)
        return most is not None

    def _around_most(
        self, low: Array, high: Array, cloud: Cloud, *groups: Rows
    ) -> tuple[Array, Array] | None:
        """The part of the box that holds most vortons and most others; None if it saves little."""
        world = self.world
        if world.periods.any():
            return None

        def samples() -> list[Array]:
            return [some_rows(world.processes, group, sample_rows)[0] for group in groups if group]

        return box_around_most(low, high, cloud.mean / PER_CORE, 2.0 * cloud.widest, samples)

    def _widen(self, grid: Grid, around: Array) -> None:
        """Add cells along open axes, so that all the points `around` lie in the grid."""
        open_axes = self.world.periods == 0
        low = np.maximum(np.ceil((grid.origin - around.min(axis=0)) / grid.spacing), 0) * open_axes
        high = (
            np.maximum(np.ceil((around.max(axis=0) - grid.origin) / grid.spacing) - grid.cells, 0) * open_axes
        )
        check_memory(
            GRID_POINT, float(np.prod(grid.cells + low + high)), "grid points", "ask nearer to the vortons"
        )
        grid.origin = grid.origin - low * grid.spacing
        grid.cells = grid.cells + (low + high).astype(np.int64)

    def _count(self, extent: Array, core: float, vortons: int, needed: float) -> int:
        """Number of cells wanted for a field grid of that extent (3,) m, for vortons of the mean radius
        `core`.

        `needed` are the cells per core radius if the partition does not set them.
        """
        wanted = self.cells or round(vortons * self.cells_per_vorton)
        if wanted > MANY:
            check_memory(GRID_POINT, wanted, "grid points", "use less cells or cells_per_vorton")
        if self.cells is not None:
            return wanted
        per_core = needed if self.cells_per_core is None else self.cells_per_core
        if per_core and vortons and np.isfinite(extent).all():
            edge = core / per_core
            fine = float(np.prod(np.maximum(extent / edge, 1.0)))
            wanted = max(wanted, round(min(fine, MOST_FINE_CELLS)))
        return max(1, wanted)
