"""The solvers that ship, and which of them a world gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecs_fluid.components import Grid, Sources
from ecs_fluid.errors import RecipeError
from ecs_fluid.periodic import axes_of
from ecs_fluid.plane import check_dimension
from ecs_fluid.systems.velocity.auto import AutoSolver
from ecs_fluid.systems.velocity.container import ContainerSolver
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.hybrid import HybridSolver
from ecs_fluid.systems.velocity.poisson import PoissonSolver
from ecs_fluid.systems.velocity.pppm import PppmSolver
from ecs_fluid.systems.velocity.solver import Solver, solver_class
from ecs_fluid.systems.velocity.tree import TreeSolver

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.system import VelocitySystem

SOLVERS = (
    DirectSolver, TreeSolver, FmmSolver, PppmSolver, PoissonSolver, HybridSolver, ContainerSolver, AutoSolver,
)  # fmt: skip
"""Solvers that ship."""


def solver_named(name: str, system: VelocitySystem) -> Solver:
    """A new solver of that name for the system's world; in a periodic world ``auto`` means the PoissonSolver.

    Raises:
        RecipeError: the solver does not work in such a world, or not with the system's `mirrors`.
    """
    kind, world = solver_class(name), system.world
    periods = world.periods
    check_dimension(kind, world, RecipeError, f"solver = {kind.name!r}")
    if system.mirrors and (kind.on_grid or kind.own_field):
        raise RecipeError(
            f"VelocitySystem: mirrors is for solvers of unbounded space, and solver = {name!r} is none; "
            "use 'direct', 'tree', 'fmm', 'pppm' or 'auto'"
        )
    if system.mirrors and periods.any():
        raise RecipeError(
            f"VelocitySystem: mirrors is not for a world that repeats, and this one does along "
            f"{axes_of(periods)}"
        )
    if periods.any() and kind is AutoSolver:
        return PoissonSolver(system)
    if periods.any() and not kind.periodic:
        able = " or ".join(repr(own.name) for own in SOLVERS if own.periodic or own is AutoSolver)
        raise RecipeError(
            f"VelocitySystem: solver = {name!r} is not for a world that repeats, and this one does "
            f"along {axes_of(periods)}; use solver = {able}"
        )
    return kind(system)


def fitting(solver: Solver, sources: Sources, grid: Grid) -> Solver:
    """The solver, or the one that replaces it for these vortons.

    Without vortons that is the direct sum (which gives zeros), unless the solver has a field of its own. A
    flat population in three dimensions has a grid of one layer, on which Poisson's equation would have
    another Green's function, so ``auto`` replaces a solver on the grid there.
    """
    if not (len(sources.sigma) or solver.own_field):
        return DirectSolver(solver.system)
    flat = solver.on_grid and solver.world.dimension == 3 and grid.flat.any()
    return AutoSolver(solver.system) if flat and not solver.has_images else solver
