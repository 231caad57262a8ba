"""Poisson's equation for the vector potential on the field grid: lap A = -omega, u = curl A."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Sources
from ecs_fluid.errors import RecipeError
from ecs_fluid.periodic import axes_of, wrapped
from ecs_fluid.systems.partition import GHOSTS, GridNeeds, PartitionSystem
from ecs_fluid.systems.remesh import RemeshSystem, narrow_lattice
from ecs_fluid.systems.shared.populations import total_strength
from ecs_fluid.systems.velocity.core_levels import Level, levels
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.solver import PairFields, Solver
from ecs_fluid.systems.velocity.solver_times import keep_times
from ecs_fluid.targets import Targets
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.poisson.periodic import Fourier
    from ecs_fluid.kernels.poisson.poisson import Transfer

CLEARANCE = 3.0
"""Room that a grid should leave around the vortons, in core radii: their vorticity is spread that far."""

LEAST_PER_CORE, THIN = 1.5, 0.01
"""Cells per core radius below which solvers on the grid warn (docs/stability.md has their errors), and the
fraction of the vortons, the thinnest, that may have fewer."""

MEAN = 1e-3
"""In a world that repeats along all axes, lint warns if |sum alpha| is above this fraction of sum |alpha|."""


class PoissonSolver(Solver):
    """Vorticity on the field grid, its vector potential there, and the potential's curl.

    The weights of `transfer` spread the strengths on the grid and keep their total. In unbounded space
    (`boundary` = "open") the potential is a convolution with the Green's function of a blob; between "walls"
    it is found by multigrid with A = 0 on the faces of the grid (Fluid Simulation for Video Games, part 6).
    In a periodic world, potential and velocity are Fourier sums (`kernels.poisson.periodic`).
    The grid's difference of the velocity has no divergence, to round-off. The cost depends on the number of
    grid points and only weakly on the number of vortons. Points off the grid get the direct sum.
    """

    on_grid = periodic = True
    dimensions = (2, 3)
    boundary: Literal["open", "walls"]
    transfer: Literal["linear", "m4_prime"]

    def added(self, world: World) -> None:
        """Add the tables of `auto`, which replaces this solver for a flat population in three dimensions."""
        keep_times(world)
        if self.boundary == "walls" and world.periods.any():
            raise RecipeError(
                f"VelocitySystem: boundary = 'walls' puts walls on all sides, but the world repeats along "
                f"{axes_of(world.periods)}; use boundary = 'open' or make the periods 0"
            )

    def grid_needs(self) -> GridNeeds:
        """Room for the blobs around the vortons, in unbounded space."""
        return GridNeeds(padding=CLEARANCE if self.boundary == "open" else 0.0)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Solve for the velocity at all grid points."""
        from ecs_fluid.kernels.grids.differences import curl

        self.sources, self.grid = sources, grid
        self._jacobian: Array | None = None
        across = self.world.across
        # In a world of two dimensions one layer of points stands for a metre across the plane.
        self.steps = np.where(np.arange(3) == across, 0.0, grid.spacing)
        if self.world.periods.any():
            self.grid_velocity = self._unfolded(self._fourier().velocity())
            return
        u = curl(self.potential(), self.steps, order=4)
        self.grid_velocity = u if across is None else np.repeat(u, 2, axis=across)

    def fill(self, targets: Targets) -> None:
        """Interpolate between grid points with third order."""
        from ecs_fluid.kernels.compiled.columns import inside
        from ecs_fluid.kernels.grids.cubic import interpolate
        from ecs_fluid.kernels.grids.differences import jacobian

        grid, (x, u, du) = self.grid, (wrapped(targets.x, self.world.periods), targets.u, targets.du)
        interpolate(x, grid.origin, grid.spacing, self.grid_velocity, u)
        if du is not None:
            if self._jacobian is None:
                self._jacobian = jacobian(self.grid_velocity, grid.spacing, order=4)
            interpolate(x, grid.origin, grid.spacing, self._jacobian, du)
        slack = 1e-5 * grid.spacing
        lo, hi = grid.origin - slack, grid.origin + grid.spacing * grid.cells + slack
        beyond = ~inside(x, lo, hi)
        if beyond.any() and not self.world.periods.any():
            # No particle of the world is out there; these are points of `velocity_at` and the like.
            direct = DirectSolver(self.system)
            direct.prepare(self.sources, grid)
            Targets(x, u, du).fill_rows(beyond, direct.fill)

    # ------------------------------------------------------------------ potential

    def potential(self) -> Array:
        """Vector potential (px, py, pz, 3) m^2/s at the grid points."""
        from ecs_fluid.kernels.poisson.freespace import hockney
        from ecs_fluid.kernels.poisson.poisson import dirichlet

        if self.boundary == "walls":
            return dirichlet(self.spread(self.scattered()), self.steps)
        # One convolution for each level of core radii.
        parts = (hockney(omega, self.steps, self.code, r) for r, omega in self.scattered())
        return reduce(np.add, parts)

    def scattered(self) -> list[tuple[float, Array]]:
        """For each level its core radius, m, and the vorticity (px, py, pz, 3) 1/s that it gives the grid."""
        mesh, across = (self.grid.origin, self.grid.spacing, self.grid.cells), self.world.across
        transfer: Transfer = "spline" if self.by_spline else self.transfer
        shared = [
            (level.radius, scattered(self.sources, level, mesh, transfer))
            for level in levels(self.sources.sigma, self.code)
        ]
        if across is None:
            return shared
        width = shared[0][1].dtype.type(self.grid.spacing[across])
        return [(sigma, omega.take([0], axis=across) * width) for sigma, omega in shared]

    def spread(self, scattered: list[tuple[float, Array]]) -> Array:
        """Vorticity (px, py, pz, 3) 1/s of all blobs, each level smoothed with its core radius."""
        from ecs_fluid.kernels.poisson.blob_filter import M4_PRIME, TRILINEAR, widen

        weights = M4_PRIME if self.transfer == "m4_prime" else TRILINEAR
        steps, code = self.steps, self.code
        return reduce(np.add, (widen(part, steps, sigma, code, weights) for sigma, part in scattered))

    # ------------------------------------------------------------------ periodic worlds

    def _fourier(self) -> Fourier:
        """The vortons' fields on one period of the grid."""
        from ecs_fluid.kernels.poisson.periodic import Fourier, folded

        grid, repeats = self.grid, self.world.periods > 0
        cells = grid.cells - 2 * GHOSTS
        parts = [(sigma, folded(part, (-GHOSTS,) * 3, cells, repeats)) for sigma, part in self.scattered()]
        return Fourier(parts, grid.spacing, self._repeats, self.code, self.by_spline)

    @property
    def by_spline(self) -> bool:
        """Whether strengths are spread, and velocities read at vortons, by a cubic spline.

        For strengths to stay along their vortex line, stretching needs the exact gradient of the velocity
        that moves the line. A spline has one. Convolution uses differences at the points, which are too small
        for structures a few cells wide, but with transposed stretching they keep the total strength. Where a
        RemeshSystem fills cores with vortons there are no single lines, so it does not matter.
        """
        from ecs_fluid.systems.stretch import StretchSystem

        stretch, remesh = self.world.system(StretchSystem), self.world.system(RemeshSystem)
        lines = stretch is not None and stretch.follows_lines and remesh is None
        in_space = self.world.dimension == 3 and self.world.periods.any()
        return bool(lines and in_space and self.transfer == "m4_prime")

    @property
    def _repeats(self) -> Array:
        """Mask (3,) of the periodic axes, and of the axis across a plane, along which nothing varies."""
        return np.asarray((self.world.periods > 0) | (np.arange(3) == self.world.across))

    def _unfolded(self, field: Array) -> Array:
        from ecs_fluid.kernels.poisson.periodic import unfolded

        field, across = unfolded(field, GHOSTS, self.world.periods > 0), self.world.across
        return field if across is None else np.repeat(field, 2, axis=across)

    def pair_fields(self, x: Array) -> PairFields | None:
        """The fields at x (m, 3) m of one period, with all images; None in unbounded space."""
        from ecs_fluid.kernels.grids.cubic import interpolate

        if not self.has_images:
            return None
        fourier, mesh = self._fourier(), (self.grid.origin, self.grid.spacing)
        targets = Targets.at(x, gradient=True)
        self.fill(targets)
        assert targets.du is not None
        fields = (self._unfolded(field) for field in (fourier.potential(), fourier.vorticity()))
        psi, omega = (interpolate(x, *mesh, field) for field in fields)
        return PairFields(psi, omega, targets.u, targets.du)

    def lint(self) -> list[str]:
        """Warn of vorticity with a mean, which a world that repeats along all its axes cannot have."""
        if not self._repeats.all():
            return []
        total, size = total_strength(self.world)
        if np.linalg.norm(total) <= MEAN * size:
            return []
        text = ", ".join(f"{part:.3g}" for part in total)
        return [
            f"VelocitySystem: the strengths sum to ({text}) m^3/s, but in a world that repeats along "
            f"{axes_of(self.world.periods)} they must sum to 0, so a uniform vorticity that cancels the sum "
            "is added; make the strengths sum to 0"
        ]

    # ------------------------------------------------------------------ too coarse a grid

    def grid_lint(self, sources: Sources, grid: Grid) -> list[str]:
        """Warn of a grid whose cells are too wide for the cores of more than the fraction THIN of vortons."""
        sigma, h = sources.sigma, float(grid.spacing.max())
        some = int(THIN * len(sigma))
        if self.world.dimension == 3 and grid.flat.any():
            return []
        lattice = narrow_lattice(self.world) * (1 + 1e-6)  # a grid's spacing follows from its count of cells
        if h <= lattice or not np.count_nonzero(sigma < LEAST_PER_CORE * h) > some:
            return []
        radius = float(np.partition(sigma, some)[some])
        return [
            f"VelocitySystem: {radius / h:.3g} cells of the field grid ({h:.3g} m) per core radius "
            f"({radius:.3g} m) are too few for solver = {self.name!r}, at least {LEAST_PER_CORE} are needed; "
            f"{self._finer_grid(sources, grid, radius)}"
        ]

    def _finer_grid(self, sources: Sources, grid: Grid, radius: float) -> str:
        """Sentences: how large the grid is, what makes it so large, and what to change."""
        partition = self.world.require(PartitionSystem)
        far = partition.farthest(sources, grid)
        wider = f", as far as {far} lies" if far else ""
        ways = [f"keep {far} nearer"] if far else []
        value = partition.finer(sources, grid, radius, self.grid_needs().per_core)
        ways.append(f"use {value} of PartitionSystem" if value else "use solver = 'fmm'")
        sides = " x ".join(f"{side:.3g}" for side in grid.spacing * grid.cells)
        return f"the grid spans {sides} m{wider}; {' or '.join(ways)}"


def scattered(vortons: Any, level: Level, mesh: tuple[Array, Array, Array], transfer: Transfer) -> Array:
    """Vorticity (px, py, pz, 3) 1/s on a grid of the vortons' shares in one level of core radii.

    `vortons` has x (3, n) m and alpha (3, n) m^3/s; `mesh` is origin m, spacing m and cells.
    """
    from ecs_fluid.kernels.grids.partition import partition
    from ecs_fluid.kernels.poisson.poisson import vorticity_grid

    x = np.ascontiguousarray(vortons.x[:, level.rows])
    alpha = (vortons.alpha[:, level.rows] * level.parts).astype(x.dtype, copy=False)
    start, order = partition(np.ascontiguousarray(x.T), *mesh)
    return vorticity_grid(
        np.ascontiguousarray(x[:, order]), np.ascontiguousarray(alpha[:, order]), start, mesh, transfer
    )
