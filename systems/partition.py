"""Where the particles are: bounds, the field grid, and vortons merged and sorted by cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Grid, Position, Sources, Strength
from ecs_fluid.errors import FluidError
from ecs_fluid.system import System
from ecs_fluid.systems.shared.populations import joined

if TYPE_CHECKING:
    from ecs_fluid.ranks.ranks import Ranks

MAX_CELLS = 2**27
PER_CORE = 2.0
"""Field cells per core radius unless something else is asked for."""
MOST_FINE_CELLS = 2**17
"""Cells that `cells_per_core` may ask for; a thin core in a wide world stays unresolved beyond."""
MOST_ADVISED_CELLS = 2**24
"""Cells that a warning tells anybody to ask for."""


Box = tuple[Array, Array]
"""Least and largest coordinates (3,) m."""


class Needs(NamedTuple):
    """What a solver needs of the field grid."""

    padding: float
    """core radii around the vortons"""
    per_core: float
    """cells per core radius, where the partition leaves it open"""


class PartitionSystem(System):
    """Two uniform grids and one sorted table of vortons.

    The Grid encloses vortons and tracers and carries the velocity field. It has about `cells` cells, or
    `cells_per_vorton` per vorton, as in the articles, and more where few vortons with small cores would leave
    it coarser than `cells_per_core` cells per core radius. The Sources are all vortons in one structure of
    arrays, sorted by the cells of a second grid that encloses the vortons alone; the tree is built on it.
    Both are remade in each stage, so no particle ever leaves the domain.

    Source: Fluid Simulation for Video Games, part 3.
    """

    reads = (Position, Strength, CoreRadius)
    writes = (Grid, Sources)
    phase = "prepare"
    distribution = "ranks"

    cells: int | None = Field(
        default=None, ge=1, le=MAX_CELLS, description="cells of the field grid; None: by the next two"
    )
    cells_per_vorton: float = Field(
        default=1.0, gt=0, le=1000, description="least cells of the field grid per vorton, 1"
    )
    cells_per_core: float | None = Field(
        default=None,
        ge=0,
        le=16,
        description="field cells per mean core radius, 1; up to 131,072 cells in all; 0 counts vortons "
        "alone; None: 2, and 3 for the solver hybrid",
    )
    vortons_per_cell: float = Field(
        default=1.0, gt=0, le=1000, description="vortons per leaf cell of the influence tree, 1"
    )
    padding: float = Field(
        default=1.0,
        ge=0,
        description="added so that the field grid covers the vortons' cores, core radii; at least 3 for "
        "solvers that spread vorticity on it",
    )
    expand: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="part of the extent added on each side of the grid, 1 (articles: 0)",
    )

    def process(self, dt: float) -> None:
        """Refill Grid and Sources."""
        sources, grid, ranks = self.world.fluid[Sources], self.world.fluid[Grid], self.world.ranks
        if ranks is None:
            self._fill(sources, grid, "")
            return
        ranks.parts = None
        if ranks.machine.count == 1 or self._all_are_needed(ranks):
            self._fill(sources, grid, "")
        else:
            self._fill_parts(sources, grid, ranks)

    def _all_are_needed(self, ranks: Ranks) -> bool:
        """Whether a system looks at more of the Sources than the part of a machine; few are no trouble."""
        return self._total(ranks) == 0 or any(
            Sources in system.reads and getattr(system, "needs_all_sources", True)
            for system in self.world.systems
        )

    def _total(self, ranks: Ranks) -> int:
        """Vortons on all ranks."""
        return sum(ranks.total(entity.name) for entity, _ in self.entities(Position, Strength, CoreRadius))

    def _fill_parts(self, sources: Sources, grid: Grid, ranks: Ranks) -> None:
        """Sources of which each machine holds its part; see `ecs_fluid.ranks.parts`."""
        from ecs_fluid.kernels.compiled.reduce import bounds

        rows = ranks.own_vortons(self.world)
        total = self._total(ranks)
        box = bounds(rows.x)
        mesh = self._mesh(*ranks.enclosing(*box), total)
        parts = ranks.take_parts(rows, total, mesh)
        sources.origin, sources.spacing, sources.cells = mesh
        sources.start, sources.order = parts.start, parts.order
        sources.x, sources.alpha, sources.sigma = parts.x, parts.alpha, parts.sigma
        self._enclose(grid, self._needs(), *self._cloud(*rows[:3], box, ranks))

    def present(self, needs: Needs | None = None) -> tuple[Sources, Grid]:
        """Tables of their own of the vortons and the field grid as they are now, for questions between ticks.

        The world's own Sources and Grid stay those of the last stage, to which its fields belong. With
        `needs` the grid is made for them, otherwise for what the world's systems need.
        """
        sources, grid = Sources.blank(0, self.world.dtype), Grid.blank(0, self.world.dtype)
        assert isinstance(sources, Sources) and isinstance(grid, Grid)
        self._fill(sources, grid, "present ", needs)
        return sources, grid

    def farthest(self, sources: Sources, grid: Grid) -> str | None:
        """Who makes the grid much larger than most vortons do: "entity 'name'" or "a few vortons", if any.

        For sentences; on many ranks no entity is named, as a rank knows its own rows alone.
        """
        from ecs_fluid.kernels.compiled.reduce import bounds

        (lo, hi), found, reach = bounds(sources.x.T), None, 0.25 * float((grid.spacing * grid.cells).max())
        inner = np.percentile(sources.x, (0.5, 99.5), axis=1)
        if max((inner[0] - lo).max(), (hi - inner[1]).max()) > reach:
            found = "a few vortons"
        for entity, (position,) in self.entities(Position):
            vortons = Strength in entity and CoreRadius in entity
            if self.world.ranks is not None or vortons or not len(entity):
                continue
            low, high = bounds(position.x)
            beyond = float(np.maximum(lo - low, high - hi).max())
            if beyond > reach:
                found, reach = f"entity {entity.name!r}", beyond
        return found

    def finer(self, sources: Sources, grid: Grid, radius: float, per_core: float) -> str | None:
        """The parameter, with its value, that gives that many cells per radius; None if none does."""
        count = float(np.prod(np.maximum(grid.spacing * grid.cells * (per_core / radius), 1.0)))
        ratio = per_core * float(sources.sigma.mean(dtype=np.float64)) / radius
        if self.cells is None and count <= MOST_FINE_CELLS and ratio <= 16:
            return f"cells_per_core = {ratio:.2g}"
        return f"cells = {math.ceil(count):,}".replace(",", "_") if count <= MOST_ADVISED_CELLS else None

    def unsorted(self, most: int) -> list[Array] | None:
        """x (3, n), alpha (3, n) and sigma (n,) of the vortons as they are now; None if n is above `most`."""
        ranks = self.world.ranks
        if ranks is None:
            total = sum(len(core.sigma) for _, _, core in self.query(Position, Strength, CoreRadius))
        else:
            total = self._total(ranks)
        if total > most:
            return None

        def columns(x: Array, alpha: Array, sigma: Array) -> list[Array]:
            return [np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma]

        if ranks is None:
            return columns(*self._vortons())
        vortons = ranks.gathered_vortons(self.world)
        return ranks.machine.once("unsorted vortons", lambda: columns(*vortons))

    def _fill(self, sources: Sources, grid: Grid, purpose: str, needs: Needs | None = None) -> None:
        from ecs_fluid.kernels.compiled.reduce import bounds

        ranks = self.world.ranks
        if ranks is None:
            vortons = self._vortons()
            box = bounds(vortons[0])
            found, cloud = self._sorted(*vortons, box), self._cloud(*vortons, box)
        else:
            # One rank of each machine gathers and sorts; the others read what it made.
            vortons = ranks.gathered_vortons(self.world)
            x = vortons[0]
            found = ranks.machine.once(f"{purpose}sources", lambda: self._sorted(*vortons, bounds(x)))
            cloud = ranks.machine.once(f"{purpose}cloud", lambda: self._cloud(*vortons, bounds(x)))
        sources.origin, sources.spacing, sources.cells, sources.start, sources.order = found[:5]
        sources.x, sources.alpha, sources.sigma = found[5:]
        self._enclose(grid, needs or self._needs(), *cloud)

    def _vortons(self) -> tuple[Array, Array, Array]:
        """Positions, strengths and core radii of all vortons, population after population."""
        vortons = list(self.query(Position, Strength, CoreRadius))
        number = self.world.dtype
        return (
            joined([position.x for position, _, _ in vortons], (3,), number),
            joined([strength.alpha for _, strength, _ in vortons], (3,), number),
            joined([core.sigma for _, _, core in vortons], (), number),
        )

    def _mesh(self, lo: Array, hi: Array, vortons: int) -> tuple[Array, Array, Array]:
        """The grid by whose cells that many vortons in a box are sorted."""
        from ecs_fluid.kernels.grids.grid import uniform_grid

        wanted = max(1, round(vortons / self.vortons_per_cell))
        return uniform_grid(lo, hi, min(wanted, MAX_CELLS))

    def _sorted(self, x: Array, alpha: Array, sigma: Array, box: Box) -> list[Array]:
        """Columns of Sources, in their order."""
        from ecs_fluid.kernels.grids.partition import gather_sorted, partition

        origin, spacing, cells = self._mesh(*box, len(x))
        start, order = partition(x, origin, spacing, cells)
        return [
            *(origin, spacing, cells, start, order),
            *(gather_sorted(x, order), gather_sorted(alpha, order), gather_sorted(sigma, order)),
        ]

    def _cloud(
        self, x: Array, alpha: Array, sigma: Array, box: Box, ranks: Ranks | None = None
    ) -> list[Array]:
        """What the field grid depends on: bounds, axes without vorticity across, core radii, count.

        The rows are all vortons, or those of this rank, and `box` their bounds.
        """
        along = [bool(alpha[:, a].any()) for a in range(3)]
        across = np.array([not (along[(a + 1) % 3] or along[(a + 2) % 3]) for a in range(3)])
        (lo, hi), widest, count = box, float(sigma.max(initial=0.0)), len(sigma)
        if ranks is not None:
            lo, hi = ranks.enclosing(lo, hi)
            every = ranks.comm.numbers(np.array([*across, widest, count], np.float64))
            across = every[:, :3].min(axis=0) > 0.0
            widest, count = float(every[:, 3].max()), int(every[:, 4].sum())
        mean = widest
        equal = ranks is None and count and sigma.min() == widest  # then the sum gives this mean too
        if 0.0 < widest < np.inf and not equal:
            # Whole numbers have one sum, whoever holds which rows.
            some = (sigma[k : k + 2**15].astype(np.float64) for k in range(0, len(sigma), 2**15))
            units = sum(int(np.rint(part / widest * 2.0**32).sum(dtype=np.int64)) for part in some)
            mean *= (units if ranks is None else int(ranks.comm.sum(np.array(units)))) / 2.0**32 / count
        return [lo, hi, across, np.array([widest, mean]), np.array([count])]

    def _needs(self) -> Needs:
        """The most that the systems need; asked each time, for parameters may change between two ticks."""
        systems = self.world.systems
        return Needs(
            max((getattr(system, "grid_padding", 0.0) for system in systems), default=0.0),
            max((getattr(system, "grid_fineness", PER_CORE) for system in systems), default=PER_CORE),
        )

    def _enclose(
        self, grid: Grid, needs: Needs, lo: Array, hi: Array, across: Array, cores: Array, count: Array
    ) -> None:
        from ecs_fluid.kernels.compiled.reduce import bounds
        from ecs_fluid.kernels.grids.grid import flat_axes, uniform_grid

        pad = max(self.padding, needs.padding) * cores[0]
        # Two-dimensional means in one plane with vorticity across it; a plane ring's flow is not.
        room = np.where(flat_axes(lo, hi) & across, 0.0, pad)
        lo, hi = lo - room, hi + room
        for entity, (position,) in self.entities(Position):
            if Strength in entity and CoreRadius in entity:
                continue  # they are inside already
            low, high = bounds(position.x)
            lo, hi = np.minimum(lo, low), np.maximum(hi, high)
        if self.world.ranks is not None:
            lo, hi = self.world.ranks.enclosing(lo, hi)
        if np.isfinite(lo).all() and self.expand:
            extent = hi - lo
            lo, hi = lo - self.expand * extent, hi + self.expand * extent
        grid.origin, grid.spacing, grid.cells = uniform_grid(
            lo, hi, self._count(hi - lo, cores[1], int(count[0]), needs.per_core)
        )
        grid.flat = (flat_axes(lo, hi) & across).astype(np.int64)

    def _count(self, extent: Array, core: float, vortons: int, needed: float) -> int:
        """Cells wanted for a field grid of that extent (3,) m around vortons of that mean core radius.

        `needed` are the cells per core radius where the partition leaves them open.
        """
        if self.cells is not None:
            return self.cells
        wanted = round(vortons * self.cells_per_vorton)
        if wanted > MAX_CELLS:
            raise FluidError(
                f"PartitionSystem: cells_per_vorton = {self.cells_per_vorton:g} with {vortons} vortons "
                f"asks for {wanted} grid cells; at most {MAX_CELLS} are allowed"
            )
        per_core = needed if self.cells_per_core is None else self.cells_per_core
        if per_core and vortons and np.isfinite(extent).all():
            edge = core / per_core
            fine = float(np.prod(np.maximum(extent / edge, 1.0)))
            wanted = max(wanted, round(min(fine, MOST_FINE_CELLS)))
        return max(1, wanted)
