"""Velocity from vorticity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    CoreRadius,
    Grid,
    Position,
    Sources,
    Strength,
    Velocity,
    VelocityField,
    VelocityGradient,
)
from ecs_fluid.errors import FluidError
from ecs_fluid.explain import nearest
from ecs_fluid.system import System, Types
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.summation import Summation
from ecs_fluid.world import World

SOLVERS = ("direct", "tree", "auto")

Table = tuple[Array, Array, Array | None]
"""Positions, velocities and velocity gradients of one population of vortons."""


class VelocitySystem(System):
    """Velocity and its gradient from vortons, by the regularised Biot-Savart sum.

    u(x) = sum_p q(|x - x_p| / sigma_p) alpha_p cross (x - x_p) / (4 pi |x - x_p|^3), where q is the part of
    a blob's strength inside a radius. Vortons get their velocity at themselves (`at` = "vortons", with the
    gradient from the same sum) or from the grid (`at` = "grid": the sum at grid points, then trilinear
    interpolation of velocity and of its central-difference gradient, as in the articles). Everything else
    that moves interpolates the grid or asks the solver (`tracers`).

    Solvers: direct sums all pairs. tree sums clusters of vortons that are far enough: opening "angle" takes a
    cluster of radius b at distance d when b / d < `angle`; "box" takes it when the target lies outside the
    cluster's box widened by `margin` cells, as in the articles. At the leaves stand the vortons themselves,
    or their cluster (`leaf` = "supervortons", cheaper, with an error near a vorton).

    `mollify` > 0 widens cores to at least that many grid spacings when the grid is evaluated, at constant
    circulation, so that a vorton next to a grid point does not kick itself (articles, part 12; 2 is as
    smooth as the direct sum). Source: Winckelmans and Leonard, J. Comput. Phys. 109 (1993); Fluid
    Simulation for Video Games, parts 3 and 12.
    """

    reads = (Position, Strength, CoreRadius, Sources, Grid)
    writes: Types = (Velocity, VelocityGradient, VelocityField)
    phase = "rates"

    solver: Literal["direct", "tree", "auto"] = Field(
        "direct", description="direct sum, tree of clusters, or what keeps the tolerance"
    )
    tolerance: float = Field(
        1e-3, gt=0, le=1, description="auto: largest RMS error relative to the RMS velocity"
    )
    at: Literal["vortons", "grid"] = Field("vortons", description="where vortons get their velocity")
    tracers: Literal["grid", "solver"] = Field(
        "grid", description="where everything but vortons gets its velocity"
    )
    kernel: Literal["winckelmans", "gaussian", "rankine", "rosenhead_moore"] = Field(
        "winckelmans", description="regularisation of the vortons' cores"
    )
    opening: Literal["angle", "box"] = Field("angle", description="when the tree takes a cluster whole")
    angle: float = Field(0.5, gt=0, le=1.0, description="largest radius over distance of a cluster")
    margin: float = Field(1e-4, ge=0, le=1e6, description="widening of a cluster's box, in its cells")
    leaf: Literal["vortons", "supervortons"] = Field("vortons", description="what stands at the leaves")
    gradient: bool = Field(
        True, description="fill the vortons' velocity gradient; without stretching it can be left out"
    )
    mollify: float = Field(0.0, ge=0, le=100, description="least core radius on the grid, in grid spacings")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if not self.gradient:
            self.writes = (Velocity, VelocityField)

    def added(self, world: World) -> None:
        """The sums run over sorted vortons, and records measure them."""
        from ecs_fluid.systems.diagnostics import DiagnosticsSystem

        world.require(PartitionSystem)
        if world.system(DiagnosticsSystem) is None:
            world.add_system(DiagnosticsSystem(every=0))

    # ------------------------------------------------------------------ the tick

    def process(self, dt: float) -> None:
        """Fill velocities, gradients and, when something interpolates it, the velocity field."""
        if self.gradient != (VelocityGradient in self.writes):
            raise FluidError("VelocitySystem: gradient cannot be changed once the system is made")
        sources = self.field(Sources)
        summation = self._summation(sources)
        vortons, others = [], []
        for entity, (position, velocity) in self.entities(Position, Velocity):
            if Strength in entity and CoreRadius in entity:
                gradient = entity[VelocityGradient].du if self.gradient else None
                vortons.append((position.x, velocity.u, gradient))
            elif len(entity):
                others.append((position.x, velocity.u))
        if self.at == "grid" or (others and self.tracers == "grid"):
            self._evaluate_grid(sources, summation)
        if self.at == "vortons":
            self._at_vortons(sources, summation, vortons)
        else:
            self._vortons_from_grid(vortons)
        for x, u in others:
            if self.tracers == "grid":
                self._from_grid(x, u)
            else:
                summation.velocity(self.solver, x, u)

    def _at_vortons(self, sources: Sources, summation: Summation, tables: list[Table]) -> None:
        order = sources.order
        x = np.ascontiguousarray(sources.x.T)
        u = np.empty_like(x)
        du = np.empty((len(x), 3, 3), x.dtype) if self.gradient else None
        summation.at_sources(self.solver, x, u, du)
        first = 0
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        for _, velocity, gradient in tables:
            rows = place[first : first + len(velocity)]
            np.take(u, rows, axis=0, out=velocity)
            if du is not None:
                np.take(du, rows, axis=0, out=gradient)
            first += len(velocity)

    def _evaluate_grid(self, sources: Sources, summation: Summation) -> None:
        from ecs_fluid.kernels.grid import grid_points

        grid, field = self.field(Grid), self.field(VelocityField)
        shape = (*(int(n) + 1 for n in grid.cells), 3)
        if field.u.shape != shape:
            field.u = np.empty(shape, self.world.dtype)
        points = grid_points((grid.origin, grid.spacing, grid.cells), self.world.dtype).reshape(-1, 3)
        if self.mollify:
            floor = self.mollify * float(np.prod(grid.spacing) ** (1 / 3))
            widened = np.maximum(sources.sigma, sources.sigma.dtype.type(floor))
            summation = self._summation(sources, widened)
        summation.velocity(self.solver, points, field.u.reshape(-1, 3), points=shape[:3])

    def _from_grid(self, x: Array, u: Array) -> None:
        from ecs_fluid.kernels.interpolation import interpolate

        grid = self.field(Grid)
        interpolate(x, grid.origin, grid.spacing, self.field(VelocityField).u, u)

    def _vortons_from_grid(self, tables: list[Table]) -> None:
        from ecs_fluid.kernels.differences import jacobian
        from ecs_fluid.kernels.interpolation import interpolate

        grid = self.field(Grid)
        for x, u, _ in tables:
            self._from_grid(x, u)
        if self.gradient:
            # A derivative across a flat world would only see the far side of its one layer of cells.
            steps = np.where(grid.flat == 1, 0.0, grid.spacing)
            gradient = jacobian(self.field(VelocityField).u, steps)
            for x, _, du in tables:
                interpolate(x, grid.origin, grid.spacing, gradient, du)

    # ------------------------------------------------------------------ sums

    def _summation(self, sources: Sources, sigma: Array | None = None) -> Summation:
        """The sum over the sources, with other core radii if given."""
        from ecs_fluid.kernels import regularisation, tree

        by_angle = self.opening == "angle"
        return Summation(
            sources,
            sources.sigma if sigma is None else sigma,
            regularisation.CODES[self.kernel],
            tree.ANGLE if by_angle else tree.BOX,
            self.angle if by_angle else self.margin,
            self.leaf == "vortons",
            self.tolerance,
        )

    def velocity_at(self, points: Array, solver: str | None = None) -> Array:
        """Velocity (m, 3) m/s at any points (m, 3) m from the present vortons; `solver` overrides."""
        if solver is not None and solver not in SOLVERS:
            raise FluidError(f"solver = {solver!r}; {nearest(solver, SOLVERS)}")
        x = points.astype(self.world.dtype)
        u = np.empty_like(x)
        summation = self._summation(self.world.require(PartitionSystem).present_sources())
        summation.velocity(solver or self.solver, x, u)
        return u

    def pair_fields(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Vector potential, blob vorticity, velocity and gradient at (m, 3) points by the direct sum."""
        from ecs_fluid.kernels import direct, regularisation

        code = regularisation.CODES[self.kernel]
        sources = self.world.require(PartitionSystem).present_sources()
        x = np.ascontiguousarray(x)
        psi, omega, u = np.empty_like(x), np.empty_like(x), np.empty_like(x)
        du = np.empty((len(x), 3, 3), x.dtype)
        direct.potential_vorticity(code, x, sources.x, sources.alpha, sources.sigma, psi, omega)
        direct.velocity_gradient(code, x, sources.x, sources.alpha, sources.sigma, u, du)
        return psi, omega, u, du

    def lint(self, world: World) -> list[str]:
        """Combinations that are known to give poor paths."""
        found = []
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
