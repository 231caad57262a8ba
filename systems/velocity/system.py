"""Velocity from vorticity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    CoreRadius,
    Grid,
    Position,
    SolverTimes,
    Sources,
    Strength,
    Velocity,
    VelocityField,
    VelocityGradient,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.system import System
from ecs_fluid.systems.partition import PER_CORE, Needs, PartitionSystem
from ecs_fluid.systems.velocity.solver_times import stored
from ecs_fluid.systems.velocity.summation import MEASURED_EVERY, ON_GRID, SOLVERS, How, Summation
from ecs_fluid.systems.velocity.vector_potential_grid import CLEARANCE
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World

HYBRID_PER_CORE = 3.0
"""Field cells per core radius of the hybrid: with 2, vortons jerk half as much again as by direct sums."""

LEAST_PER_CORE, THIN = 1.5, 0.01
"""Cells per core radius below which solvers on the grid warn (docs/stability.md has their errors), and the
part of the vortons, the thinnest, that may have fewer."""

FEW_PAIRS = 2**22
"""Up to this many pairs of point and vorton the direct sum answers `velocity_at_few`: a few milliseconds,
less than it takes to sort the vortons and grow a tree for so few points."""

RANGE = 1 / 32
"""Part of the root of the largest number that a coordinate may be, in m and in core radii of the thinnest."""

Table = tuple[Entity, Array, Array, Array | None]
"""A population of vortons, with its positions, velocities and velocity gradients."""


class VelocitySystem(System):
    """Biot-Savart sum: velocity and its gradient from the regularised vortons.

    u(x) = sum_p q(|x - x_p| / sigma_p) alpha_p cross (x - x_p) / (4 pi |x - x_p|^3), where q is the part of
    a blob's strength inside a radius. Vortons get their velocity at themselves (`at` = "vortons", with the
    gradient from the same sum) or from the grid (`at` = "grid": the sum at grid points, then trilinear
    interpolation of velocity and of its central-difference gradient, as in the articles). Everything else
    that moves interpolates the grid or asks the solver (`tracers`).

    Solvers:

    * direct: all pairs.
    * tree: clusters of vortons that are far enough act as one. `opening` "angle" takes a cluster of radius b
      at distance d when b / d < `angle`; "box" takes it when the target lies outside the cluster's box
      widened by `margin` cells, as in the articles. At the leaves stand the vortons themselves, or their
      cluster (`leaf` = "supervortons", cheaper, with an error near a vorton).
    * fmm: fast multipole method; the RMS error of velocity and gradient, each relative to its own RMS, stays
      below `tolerance`.
    * poisson: vorticity on the field grid, vector potential by a convolution with the blobs' Green's function
      in unbounded space (`boundary` = "open") or by multigrid in a box with walls ("walls", articles, parts 6
      and 12; `expand` of the partition widens the box), velocity by curl. Any other point interpolates.
    * hybrid: the same by multigrid with the potential on the faces of the box summed over all vortons
      (articles, parts 19 and 20), which acts like unbounded space. In a flat world `auto` takes the place of
      both.
    * auto: direct, tree or fmm, whichever is expected to be fastest, with `tolerance` kept on a sample.

    `mollify` > 0 widens cores to at least that many grid spacings when the grid is evaluated, at constant
    circulation, so that a vorton next to a grid point does not kick itself (articles, part 12; 2 is as
    smooth as the direct sum); poisson and hybrid need none. Source: Winckelmans and Leonard, J. Comput.
    Phys. 109 (1993); Fluid Simulation for Video Games, parts 3, 6, 12, 19 and 20.
    """

    reads = (Position, Strength, CoreRadius, Sources, Grid)
    writes = (Velocity, VelocityGradient, VelocityField, SolverTimes)
    asks = (PartitionSystem,)
    phase = "rates"
    distribution = "ranks"

    solver: Literal["direct", "tree", "fmm", "poisson", "hybrid", "auto"] = "direct"
    """how the sum is taken"""
    tolerance: float = Field(default=1e-3, ge=1e-9, le=1)
    """fmm, auto: largest RMS error relative to the RMS velocity, 1"""
    boundary: Literal["open", "walls"] = "open"
    """poisson: unbounded space, or walls at the faces of the field grid"""
    at: Literal["vortons", "grid"] = "vortons"
    """where vortons get their velocity"""
    tracers: Literal["grid", "solver"] = "grid"
    """where everything but vortons gets its velocity"""
    interpolation: Literal["linear", "cubic"] = "linear"
    """how particles read the field grid; vortons of poisson and hybrid always cubic"""
    transfer: Literal["linear", "m4_prime"] = "m4_prime"
    """poisson, hybrid: how vortons share their strength among grid points"""
    kernel: Literal["winckelmans", "gaussian", "rankine", "rosenhead_moore"] = "winckelmans"
    """regularisation of the vortons' cores"""
    opening: Literal["angle", "box"] = "angle"
    """when the tree takes a cluster whole"""
    angle: float = Field(default=0.5, gt=0, le=1.0)
    """largest radius over distance of a cluster, 1"""
    margin: float = Field(default=1e-4, ge=0, le=1e6)
    """widening of a cluster's box, cells"""
    leaf: Literal["vortons", "supervortons"] = "vortons"
    """what stands at the leaves"""
    gradient: bool = True
    """fill the vortons' velocity gradient; without stretching it can be left out"""
    mollify: float = Field(default=0.0, ge=0, le=100)
    """least core radius on the grid, spacings"""

    def __post_init__(self) -> None:
        if not self.gradient:
            self.writes = (Velocity, VelocityField, SolverTimes)  # type: ignore[assignment]
        self._coarse: set[str] = set()

    def __setattr__(self, name: str, value: Any) -> None:
        """A solver set later on has its state with it, as if it had been there from the start."""
        super().__setattr__(name, value)
        if name == "solver" and self.__dict__.get("_world") is not None:
            self._keep_times(self.world)

    def _keep_times(self, world: World) -> None:
        """What a choice of solvers goes by belongs to the state."""
        if self.solver in ("auto", *ON_GRID) and SolverTimes not in world.fluid:
            world.attach(world.fluid.name, SolverTimes(seconds=stored(world.options.precision)))

    def added(self, world: World) -> None:
        """The sums run over sorted vortons, and records measure them."""
        from ecs_fluid.systems.diagnostics import DiagnosticsSystem

        world.require(PartitionSystem)
        self._keep_times(world)
        if world.system(DiagnosticsSystem) is None:
            world.add_system(DiagnosticsSystem(every=0))

    @property
    def grid_padding(self) -> float:
        """Core radii that the field grid must leave around the vortons, whose vorticity is spread on it."""
        return self._needs(self.solver).padding

    @property
    def grid_fineness(self) -> float:
        """Cells of the field grid per core radius, where the partition leaves it open."""
        return self._needs(self.solver).per_core

    def _needs(self, solver: str) -> Needs:
        """What a solver needs of the field grid."""
        spread = solver == "hybrid" or (solver == "poisson" and self.boundary == "open")
        return Needs(CLEARANCE if spread else 0.0, HYBRID_PER_CORE if solver == "hybrid" else PER_CORE)

    @property
    def needs_all_sources(self) -> bool:
        """Whether sums look at more of the Sources than trees of parts hold."""
        return self.solver != "tree" or self.mollify > 0.0

    @property
    def _on_grid(self) -> bool:
        """Whether Poisson's equation is solved on the field grid."""
        return self.solver in ON_GRID and not self.field(Grid).flat.any()

    # ------------------------------------------------------------------ the tick

    def process(self, dt: float) -> None:
        """Fill velocities, gradients and, when something interpolates it, the velocity field."""
        if self.gradient != (VelocityGradient in self.writes):
            raise FluidError("VelocitySystem: gradient cannot be changed once the system is made")
        sources = self.field(Sources)
        summation = self._summation(sources, self.field(Grid), within_tick=True)
        vortons, others = [], []
        for entity, (position, velocity) in self.entities(Position, Velocity):
            if Strength in entity and CoreRadius in entity:
                gradient = entity[VelocityGradient].du if self.gradient else None
                vortons.append((entity, position.x, velocity.u, gradient))
            elif self.placed(entity)[2]:
                others.append((entity, position.x, velocity.u))
        if self.at == "grid" or self._on_grid or (others and self.tracers == "grid"):
            self._evaluate_grid(sources, summation)
        if self.at == "vortons" and not self._on_grid:
            self._at_vortons(sources, summation, vortons)
        else:
            self._vortons_from_grid(sources, vortons)
        for entity, x, u in others:
            if self.tracers == "grid":
                self._from_grid(x, u, self.interpolation == "cubic")
            else:
                fill = partial(summation.velocity, self.solver)
                self.world.processes.at_rows(entity, x, u, fill)

    def _at_vortons(self, sources: Sources, summation: Summation, tables: list[Table]) -> None:
        processes, populations = self.world.processes, [(entity, u, du) for entity, _, u, du in tables]
        x = processes.vorton_targets(sources, populations)
        u = np.empty_like(x)
        du = np.empty((len(x), 3, 3), x.dtype) if self.gradient else None
        summation.at_sources(self.solver, x, u, du)
        processes.to_rows(sources.order, populations, u, du)

    def _evaluate_grid(self, sources: Sources, summation: Summation) -> None:
        from ecs_fluid.kernels.grids.grid import grid_points

        grid, field = self.field(Grid), self.field(VelocityField)
        if self._on_grid and len(sources.sigma):
            self._warn_once(self.solver, sources, grid, f"t = {self.world.time:.4g} s: ")
            field.u = summation.potential_grid(self.solver).velocity
            return
        shape = (*(int(n) + 1 for n in grid.cells), 3)
        mesh, number = (grid.origin, grid.spacing, grid.cells), self.world.dtype
        processes, shared = self.world.processes, self.solver in ("direct", "tree")
        (points,) = processes.once("grid points", lambda: [grid_points(mesh, number)])
        points = points.reshape(-1, 3)
        field.u = processes.result("velocity field", field.u, shape, number, shared)
        if self.mollify:
            floor = self.mollify * float(np.prod(grid.spacing) ** (1 / 3))
            widened = np.maximum(sources.sigma, sources.sigma.dtype.type(floor))
            summation = self._summation(sources, grid, widened, within_tick=True)
        summation.velocity(self.solver, points, field.u.reshape(-1, 3), points=shape[:3])

    def _from_grid(self, x: Array, u: Array, cubic: bool) -> None:
        read = reader(cubic)
        grid = self.field(Grid)
        read(x, grid.origin, grid.spacing, self.field(VelocityField).u, u)

    def _vortons_from_grid(self, sources: Sources, tables: list[Table]) -> None:
        grid, field = self.field(Grid), self.field(VelocityField)
        if self._on_grid and self.gradient:
            self._both_from_grid(sources, tables)
            return
        cubic = self._on_grid or self.interpolation == "cubic"
        for _, x, u, _ in tables:
            self._from_grid(x, u, cubic)
        if self.gradient:
            from ecs_fluid.kernels.grids.differences import jacobian

            # A derivative across a flat world would only see the far side of its one layer of cells.
            steps = np.where(grid.flat == 1, 0.0, grid.spacing)
            gradient = jacobian(field.u, steps, order=4 if cubic else 2)
            for _, x, _, du in tables:
                reader(cubic)(x, grid.origin, grid.spacing, gradient, du)

    def _both_from_grid(self, sources: Sources, tables: list[Table]) -> None:
        """Velocity and gradient at the vortons, which are read in the order of their cells."""
        from ecs_fluid.kernels.grids import cubic_gradient
        from ecs_fluid.kernels.grids.differences import jacobian_and_field

        grid, first = self.field(Grid), 0
        both = jacobian_and_field(self.field(VelocityField).u, grid.spacing, order=4)
        for entity, x, u, du in tables:
            assert du is not None
            start, stop, total = self.placed(entity)
            rows = sources.order
            if len(x) < len(rows):
                rows = rows[(rows >= first + start) & (rows < first + stop)] - (first + start)
            cubic_gradient.interpolate(x, rows, grid.origin, grid.spacing, both, u, du)
            first += total

    # ------------------------------------------------------------------ sums

    def _summation(
        self, sources: Sources, grid: Grid, sigma: Array | None = None, within_tick: bool = False
    ) -> Summation:
        """The sum over the sources, with other core radii if given."""
        from ecs_fluid.kernels.biot_savart import regularisation, tree

        by_angle = self.opening == "angle"
        how = How(
            code=regularisation.CODES[self.kernel],
            tolerance=self.tolerance,
            criterion=tree.ANGLE if by_angle else tree.BOX,
            opening=self.angle if by_angle else self.margin,
            originals=self.leaf == "vortons",
            open_boundary=self.boundary == "open",
            transfer=self.transfer,
            times=self._times(),
        )
        fluid = self.world.fluid
        state = fluid[SolverTimes] if within_tick and SolverTimes in fluid else None
        due = self.world.tick % MEASURED_EVERY == 0
        cores = sources.sigma if sigma is None else sigma
        return Summation(sources, cores, grid, how, self.world.processes, state, due)

    def _times(self) -> Array:
        fluid = self.world.fluid
        return fluid[SolverTimes].seconds if SolverTimes in fluid else stored(self.world.options.precision)

    def velocity_at(self, points: Array, solver: str | None = None) -> Array:
        """Velocity (m, 3) m/s at any points (m, 3) m from the present vortons; `solver` overrides.

        Another solver than the world's has a grid of its own, made as in a world of that solver.
        """
        if solver is not None and solver not in SOLVERS:
            raise FluidError(f"solver = {solver!r}; {nearest(solver, SOLVERS)}")
        chosen = solver or self.solver
        needs = None if chosen == self.solver else self._needs(chosen)
        sources, grid = self.world.require(PartitionSystem).present(needs)
        x = self._in_range(points, sources.sigma)
        u = np.empty_like(x)
        self._warn_once(chosen, sources, grid)
        summation = self._summation(sources, grid)
        summation.velocity(chosen, x, u)
        return u

    def _in_range(self, points: Array, sigma: Array) -> Array:
        """The points in the world's precision, none so far off that a squared distance would overflow."""
        most = float(RANGE * np.sqrt(np.finfo(self.world.dtype).max) * min(1.0, sigma.min(initial=1.0)))
        beyond = np.argwhere(np.abs(points) > most)
        if len(beyond):
            row, axis = beyond[0]
            raise FluidError(
                f"points row {row} holds {points[row, axis]:g} m; in {self.world.options.precision} "
                f"precision up to {most:.2g} m are allowed"
            )
        return points.astype(self.world.dtype)

    def velocity_at_few(self, points: Array) -> Array:
        """Like `velocity_at`; up to FEW_PAIRS pairs by the direct sum, done before a tree would be grown."""
        from ecs_fluid.kernels.biot_savart import direct, regularisation

        most = FEW_PAIRS // max(len(points), 1)
        vortons = None if self.solver in ON_GRID else self.world.require(PartitionSystem).unsorted(most)
        if vortons is None:
            return self.velocity_at(points)
        x = self._in_range(points, vortons[2])
        u = np.empty_like(x)
        direct.velocity(regularisation.CODES[self.kernel], x, *vortons, u)
        return u

    def pair_fields(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Vector potential, blob vorticity, velocity and gradient at (m, 3) points by the direct sum."""
        from ecs_fluid.kernels.biot_savart import direct, regularisation

        code = regularisation.CODES[self.kernel]
        sources, _ = self.world.require(PartitionSystem).present()
        x = np.ascontiguousarray(x)
        psi, omega, u = np.empty_like(x), np.empty_like(x), np.empty_like(x)
        du = np.empty((len(x), 3, 3), x.dtype)
        direct.potential_vorticity(code, x, sources.x, sources.alpha, sources.sigma, psi, omega)
        direct.velocity_gradient(code, x, sources.x, sources.alpha, sources.sigma, u, du)
        return psi, omega, u, du

    def _grid_lint(self, solver: str, sources: Sources, grid: Grid) -> list[str]:
        """What to say of a grid whose cells are too wide for the cores of more vortons than the part THIN."""
        sigma, h = sources.sigma, float(grid.spacing.max())
        some = int(THIN * len(sigma))
        if (
            solver not in ON_GRID
            or grid.flat.any()
            or not np.count_nonzero(sigma < LEAST_PER_CORE * h) > some
        ):
            return []
        radius = float(np.partition(sigma, some)[some])
        return [
            f"VelocitySystem: {radius / h:.2g} cells of the field grid ({h:.3g} m) per core radius "
            f"({radius:.3g} m) are too few for solver = {solver!r}, {LEAST_PER_CORE} the least; "
            f"{self._finer_grid(solver, sources, grid, radius)}"
        ]

    def _finer_grid(self, solver: str, sources: Sources, grid: Grid, radius: float) -> str:
        """How large the grid is, what makes it so, and what to change."""
        partition = self.world.require(PartitionSystem)
        far = partition.farthest(sources, grid)
        wider = f", as far as {far} lies" if far else ""
        ways = [f"keep {far} nearer"] if far else []
        value = partition.finer(sources, grid, radius, self._needs(solver).per_core)
        ways.append(f"use {value} of PartitionSystem" if value else "use solver = 'fmm'")
        sides = " x ".join(f"{side:.3g}" for side in grid.spacing * grid.cells)
        return f"the grid spans {sides} m{wider}; {' or '.join(ways)}"

    def _warn_once(self, solver: str, sources: Sources, grid: Grid, when: str = "") -> None:
        """Warn of cells too wide for the cores, once for each solver."""
        if solver in self._coarse:
            return
        for text in self._grid_lint(solver, sources, grid):
            self._coarse.add(solver)
            warnings.warn(f"{when}{text}", FluidWarning, stacklevel=2)

    def lint(self, world: World) -> list[str]:
        """Combinations that are known to give poor paths, and a field grid too coarse for its solver."""
        found = []
        if self.solver in ON_GRID:
            found = self._grid_lint(self.solver, *world.require(PartitionSystem).present())
            self._coarse.update([self.solver] if found else [])
        least = 1e-9 if world.options.precision == "double" else 1e-5
        if self.solver in ("fmm", "auto") and self.tolerance < least:
            found.append(
                f"VelocitySystem: tolerance = {self.tolerance:g} is below what single precision can keep; "
                f"use tolerance >= {least:g} or precision = 'double'"
            )
        if self.solver == "tree" and self.opening == "box" and self.margin < 1e-4:
            found.append(
                f"VelocitySystem: margin = {self.margin:g} lets a target sit on a cluster's box, with large "
                "errors; use margin >= 1e-4"
            )
        if self.at == "vortons" and self.solver == "tree" and self.leaf == "supervortons":
            found.append(
                "VelocitySystem: with leaf = 'supervortons' a vorton is pushed by its own cluster; use "
                "leaf = 'vortons' when at = 'vortons'"
            )
        return found


def reader(cubic: bool) -> Callable[..., Array]:
    """The interpolation between grid points, of third or of second order."""
    from ecs_fluid.kernels.grids import cubic as third, interpolation as second

    return third.interpolate if cubic else second.interpolate
