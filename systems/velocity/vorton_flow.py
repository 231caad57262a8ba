"""The flow of all vortons at any points: a solver's sum, flow of vortons that swell, and mirror images."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Dilatation, Grid, Position, Sources, VelocityField, Volume
from ecs_fluid.entity import Entity
from ecs_fluid.systems.partition import VORTONS
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.mirrors import Mirror
from ecs_fluid.systems.velocity.solver import PairFields, Solver
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.system import VelocitySystem

FEW_OTHERS = 1000
"""Up to this many vortons other strengths than their own are summed over all pairs."""


@dataclass
class VortonFlow:
    """The flow of vortons sorted in `sources`, for which the `solver` is prepared."""

    solver: Solver
    sources: Sources
    grid: Grid
    potential: PotentialFlow | None
    """potential flow; None where no vorton swells"""
    mirrors: list[Mirror]
    """mirror images of the vortons behind walls"""

    @classmethod
    def by(cls, solver: Solver, sources: Sources, grid: Grid) -> Self:
        """The flow of these vortons; prepares the solver for them."""
        solver.prepare(sources, grid)
        potential = PotentialFlow.by(solver, sources, grid)
        return cls(solver, sources, grid, potential, solver.system.mirror_planes)

    def fill(self, targets: Targets) -> None:
        """Fill the velocity, and its gradient if it is wanted, at the targets."""
        self.solver.fill(targets)
        self.complete(targets)

    def complete(self, targets: Targets) -> None:
        """Add to the solver's result at the targets the flow of vortons that swell, and that of images."""
        if self.potential:
            self.potential.add(targets)
        for mirror in self.mirrors:
            mirror.add(targets, self._unmirrored.fill)

    @property
    def _unmirrored(self) -> VortonFlow:
        """The flow of the vortons without that of their images."""
        return replace(self, mirrors=[])

    def fill_mollified(self, targets: Targets) -> None:
        """Like `fill`, with cores widened as `mollify` says: for grid points, and points summed instead."""
        mollify = self.solver.system.mollify
        if not mollify:
            self.fill(targets)
            return
        floor = self.sources.sigma.dtype.type(mollify * float(np.prod(self.grid.spacing) ** (1 / 3)))
        widened = copy(self.sources)
        widened.sigma = np.maximum(self.sources.sigma, floor)
        type(self).by(self.solver, widened, self.grid).fill(targets)
        self.solver.prepare(self.sources, self.grid)

    def fill_grid(self, field: VelocityField) -> None:
        """Fill the velocity field, at all points of the grid."""
        from ecs_fluid.kernels.grids.grid import grid_points

        solver, grid, world = self.solver, self.grid, self.solver.world
        if solver.on_grid and self.potential is None:
            field.u = solver.grid_velocity
            return
        mesh = grid.origin, grid.spacing, grid.cells
        (points,) = world.processes.once("grid points", lambda: [grid_points(mesh, world.dtype)])
        field.u = world.processes.result_array(
            "velocity field", field.u, points.shape, world.dtype, solver.divides_targets
        )
        targets = Targets(
            points.reshape(-1, 3), field.u.reshape(-1, 3), place="grid", points=points.shape[:3]
        )
        if solver.on_grid:
            field.u[...] = solver.grid_velocity
            self.complete(targets)
        else:
            self.fill_mollified(targets)

    def pair_fields(self, x: Array) -> PairFields:
        """The fields at x (m, 3) m by sums over all pairs, whatever the solver; images included."""
        from ecs_fluid.kernels.biot_savart import direct

        code, vortons = self.solver.code, (self.sources.x, self.sources.alpha, self.sources.sigma)
        psi, omega, targets = np.empty_like(x), np.empty_like(x), Targets.at(x, gradient=True)
        assert targets.du is not None
        direct.potential_vorticity(code, x, *vortons, psi, omega)
        direct.velocity_gradient(code, x, *vortons, targets.u, targets.du)
        if self.potential:
            self.potential.add(targets)
        fields = PairFields(psi, omega, targets.u, targets.du)
        for mirror in self.mirrors:
            image = self._unmirrored.pair_fields(np.ascontiguousarray(mirror.point(x)))
            fields.psi[...] += mirror.pseudovector(image.psi)
            fields.omega[...] += mirror.pseudovector(image.omega)
            fields.u[...] += mirror.vector(image.u)
            fields.du[...] += mirror.gradient(image.du)
        return fields


def summing(solver: Solver, vortons: int) -> type[Solver]:
    """The class of solver that sums over so many vortons with other strengths than theirs, beside `solver`.

    `direct` and `tree` do it themselves; for other solvers `fmm` does, with the same tolerance. Few vortons
    are summed directly.
    """
    if vortons <= FEW_OTHERS:
        return DirectSolver
    return type(solver) if type(solver) in (DirectSolver, TreeSolver) else FmmSolver


class PotentialFlow:
    """The irrotational flow of vortons that swell or shrink, which adds to the flow of their strengths.

    u(x) = sum_p q(|x - x_p| / sigma_p) Q_p (x - x_p) / (4 pi |x - x_p|^3), Q = div u V in m^3/s.

    In a plane each term is q Q_p (x - x_p) / (2 pi r^2). A Biot-Savart sum with strengths Q along an axis
    gives these terms with (x - x_p) turned by a right angle about the axis, so any solver that sums pairs
    can evaluate it.
    """

    def __init__(
        self, kind: type[Solver], system: VelocitySystem, sources: Sources, grid: Grid, rates: Array
    ) -> None:
        """Prepare solvers of that kind; `rates` (n,) m^3/s are the Q of the sorted vortons."""
        axes = (2, 0) if system.world.across is None else (system.world.across,)
        self._sums = [(axis, kind(system)) for axis in axes]
        for axis, solver in self._sums:
            turned = copy(sources)
            turned.alpha = np.zeros_like(sources.alpha)
            turned.alpha[axis] = rates
            solver.prepare(turned, grid)

    @classmethod
    def by(cls, solver: Solver, sources: Sources, grid: Grid) -> PotentialFlow | None:
        """The potential flow of the vortons sorted in `sources`; None if none of them swells.

        `summing` says which solver sums it.
        """
        system = solver.system
        if not (vortons := cls.vortons(system)):
            return None
        rates = [
            entity[Dilatation].divergence * entity[Volume].volume
            if Dilatation in entity
            else np.zeros(len(entity[Position].x), system.world.dtype)
            for entity in vortons
        ]
        every = np.concatenate(rates)
        if not every.any():
            return None
        return cls(summing(solver, len(every)), system, sources, grid, every[sources.order])

    @staticmethod
    def vortons(system: VelocitySystem) -> list[Entity]:
        """Populations of vortons, in the order of the Sources; an empty list if none of them can swell."""
        vortons = [entity for entity, _ in system.entities(*VORTONS)]
        return vortons if any(Dilatation in entity for entity in vortons) else []

    def add(self, targets: Targets) -> None:
        """Add the velocity, and its gradient if it is wanted, at the targets."""
        for axis, solver in self._sums:
            turned = copy(targets)
            turned.u = np.empty_like(targets.u)
            turned.du = None if targets.du is None else np.empty_like(targets.du)
            solver.fill(turned)
            targets.blocks = turned.blocks
            one, two = (axis + 1) % 3, (axis + 2) % 3
            # In space, strengths along x are needed only for the velocity along z.
            axes = [(two, one, -1)]
            if axis != 0 or len(self._sums) == 1:
                axes.insert(0, (one, two, 1))
            for to, source, sign in axes:
                targets.u[:, to] += sign * turned.u[:, source]
                if targets.du is not None and turned.du is not None:
                    targets.du[:, to] += sign * turned.du[:, source]
