"""Particle-particle particle-mesh: near pairs in full, the smooth rest on a mesh, with a tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Position, Sources, Velocity
from ecs_fluid.one_process import Targets
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.drawn_sample import DrawnSample
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_work import mesh_work

if TYPE_CHECKING:
    from ecs_fluid.kernels.particle_mesh.sums import Goal, Mesh, Plan, Smooth

FEW_PAIRS = 2**21
"""Up to this many pairs of target and vorton the direct sum takes less time than a mesh."""

COMPARED = 128
"""Targets summed directly before and after each sum: they average errors to some 7 %."""

DRAWN_FROM = 2**14
"""About so many targets, at even distances, are those from which the ones that are compared are drawn."""

TRIALS = 3
"""Meshes that are tried, each finer by as much as the last one missed the tolerance."""

STRICT = 1e-3
"""Below this tolerance errors of strengths that point the same way are larger than those of strengths of
random directions, by which meshes are chosen: about like (STRICT/tolerance)^(1/6), 2.1 at 1e-5 on a ring."""

GOAL, SURE = 0.9, 0.95
"""Parts of the tolerance: what a mesh is chosen for, since errors are foretold to some 7 %; and how large the
error of the sample may be."""

WIDER = 8.0
"""Largest volume of the mesh, in boxes around the vortons: targets farther off get the multipole sum."""


class PppmSolver(Solver):
    """Pairs nearer than a few cells of a mesh in full, and what is smooth of all velocities by the mesh.

    The RMS error of velocity and gradient, each relative to its own RMS, stays below `tolerance`, which a
    sample confirms after every sum. The mesh is the solver's own, as fine as takes the least time; where none
    does (few vortons, cores of many different radii, clouds of mostly nothing) `fmm` takes its place.
    Source: Hockney and Eastwood, Computer Simulation Using Particles, chapter 8.
    """

    sums_pairs = True
    tolerance: float

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons; the mesh is made when it is first needed."""
        self._sources = sources
        self._box = self._around(sources.x, grid)
        self._direct, self._fmm = DirectSolver(self.system), FmmSolver(self.system)
        for solver in (self._direct, self._fmm):
            solver.prepare(sources, grid)
        self._plan: Plan | None = None
        self._smooth: list[Smooth] = []
        self._seen: tuple[Targets, Targets, Mesh | None] | None = None
        self._goal = GOAL * self.tolerance * min(1.0, (self.tolerance / STRICT) ** (1.0 / 6.0))
        # Of the last sum, in pairs of the direct sum; infinite if no mesh kept the tolerance.
        self.work = np.inf

    def fill(self, targets: Targets) -> None:
        """By the mesh, and by the multipole method beyond it and where no mesh keeps the tolerance."""
        from ecs_fluid.kernels.compiled.columns import bounds

        if len(targets.x) * len(self._sources.sigma) <= FEW_PAIRS:
            self._direct.fill(targets)
            return
        low, high = bounds(targets.x)
        if (low >= self._box[0]).all() and (high <= self._box[1]).all():
            self._fill_inside(targets)
            return
        beyond = np.flatnonzero(((targets.x < self._box[0]) | (targets.x > self._box[1])).any(axis=1))
        inside = np.ones(len(targets.x), np.bool_)
        inside[beyond] = False
        for rows, fill in ((np.flatnonzero(inside), self.fill), (beyond, self._fmm.fill)):
            some = Targets.at(np.ascontiguousarray(targets.x[rows]), targets.du is not None)
            fill(some)
            targets.u[rows] = some.u
            if targets.du is not None:
                targets.du[rows] = some.du

    def _fill_inside(self, targets: Targets) -> None:
        from ecs_fluid.kernels.particle_mesh.sums import velocity

        seen = self._seen if self._seen is not None and self._seen[0] is targets else None
        exact = self._sample(targets) if seen is None else seen[1]
        self.work = 0.0
        for _ in range(TRIALS):
            if self._plan is None:
                mesh = self._mesh(targets, exact) if seen is None else seen[2]
                self._plan, self._smooth, seen = self._planned(mesh, exact), [], None
            smooth = self._smooth_for(len(targets.x), exact)
            if self._plan is None or smooth is None:
                break
            cost = self._plan.mesh.cost(self.code, [(len(targets.x), self._goal_of(exact))])
            self.work += mesh_work(cost, targets.du is not None)
            velocity(self._plan, smooth, targets.x, targets.u, targets.du)
            error = self._error(targets)
            if error <= SURE * self.tolerance:
                return
            self._plan, self._goal = None, 0.7 * self._goal * self.tolerance / error
        self.work = np.inf
        self._fmm.fill(targets)

    def worth(self, targets: Targets) -> float | None:
        """As long as so many pairs of a direct sum a mesh takes for these targets; None: there is none."""
        exact = self._sample(targets)
        mesh = self._mesh(targets, exact)
        self._seen = targets, exact, mesh
        if mesh is None:
            return None
        return mesh_work(
            mesh.cost(self.code, [(len(targets.x), self._goal_of(exact))]), targets.du is not None
        )

    def lint(self) -> list[str]:
        """A tolerance that the precision does not reach."""
        return FmmSolver(self.system).lint()

    def _sample(self, targets: Targets) -> Targets:
        """The direct sum at some targets, spread evenly over all."""
        return self._exact(targets, np.unique(np.linspace(0, len(targets.x) - 1, COMPARED).astype(np.int64)))

    def _exact(self, targets: Targets, rows: Array) -> Targets:
        """The direct sum at these rows of the targets."""
        exact = Targets.at(np.ascontiguousarray(targets.x[rows]), targets.du is not None)
        self._direct.fill(exact, few=True)
        return exact

    def _error(self, targets: Targets) -> float:
        """RMS error of the velocity or of the gradient, relative to its RMS, the larger one."""
        some = slice(None, None, 1 + len(targets.x) // DRAWN_FROM)
        given = Targets(targets.x[some], targets.u[some], None if targets.du is None else targets.du[some])
        sample = DrawnSample.of(given.results, COMPARED)
        if sample is None:
            return np.nan
        return sample.error(given.results, self._exact(given, sample.rows).results)

    def _goal_of(self, exact: Targets) -> Goal:
        from ecs_fluid.kernels.particle_mesh.sums import Goal

        gradient = np.inf if exact.du is None else self._goal * size(exact.du)
        return Goal(self._goal * size(exact.u), gradient)

    def _mesh(self, targets: Targets, exact: Targets) -> Mesh | None:
        """The mesh for targets of such velocities, None if there is none."""
        from ecs_fluid.kernels.particle_mesh import sums

        s, x, goal = self._sources, self._sources.x, self._goal_of(exact)
        asked = [(len(targets.x), goal)]
        # What comes next is as fast as these targets, as far as one knows.
        others = self._others() if targets.place != "points" else 0
        asked += [(others, sums.Goal(goal.velocity))] if others else []
        wanted = sums.Wanted(
            low=self._box[0],
            high=self._box[1],
            first=x.min(axis=1).astype(np.float64),
            last=x.max(axis=1).astype(np.float64),
            thinnest=float(s.sigma.min()),
            widest=float(s.sigma.max()),
            sums=asked,
        )
        return sums.choose(self.code, x, s.alpha, wanted)

    def _planned(self, mesh: Mesh | None, exact: Targets) -> Plan | None:
        """The mesh with the vortons on it, for targets of such velocities."""
        from ecs_fluid.kernels.particle_mesh import sums

        s = self._sources
        reach = None if mesh is None else mesh.reach(self.code, sums.Goal(self._goal_of(exact).velocity))
        if mesh is None or reach is None:
            return None
        parts = sums.parts_of(self.code, s.sigma, reach, self._goal)
        return None if parts is None else sums.plan(self.code, mesh, s.x, s.alpha, s.sigma, parts, reach)

    def _smooth_for(self, count: int, exact: Targets) -> Smooth | None:
        """The smooth velocity for targets of such velocities, None if no reach keeps the tolerance there."""
        from ecs_fluid.kernels.particle_mesh import sums

        made, goal = self._plan, self._goal_of(exact)
        needed = None if made is None else made.mesh.reach(self.code, goal)
        if made is None or needed is None:
            return None
        there = {smooth.reach: smooth for smooth in self._smooth}
        reach = made.mesh.best_reach(count, goal, max(needed, made.least), list(there))
        if reach not in there:
            self._smooth.append(sums.smooth(made, reach, self._goal))
            return self._smooth[-1]
        return there[reach]

    def _others(self) -> int:
        """Rows besides the vortons that will ask for velocities in this tick."""
        if self.system.tracers != "solver":
            return 0
        total = self.world.processes.total
        every = sum(
            total([e], len(position.x)) for e, (position, _) in self.system.entities(Position, Velocity)
        )
        return max(every - len(self._sources.sigma), 0)

    @staticmethod
    def _around(x: Array, grid: Grid) -> tuple[Array, Array]:
        """Corners (3,) m of the mesh's box: of the vortons, and of the field grid as far as that goes."""
        low, high = x.min(axis=1).astype(np.float64), x.max(axis=1).astype(np.float64)
        lowest = np.minimum(low, grid.origin)
        highest = np.maximum(high, grid.origin + grid.spacing * grid.cells)
        if np.prod(highest - lowest) <= WIDER * np.prod(high - low):
            return lowest, highest
        return low, high


def size(values: Array) -> float:
    """RMS length of the rows."""
    return float(np.sqrt(np.mean(np.sum(values.reshape(len(values), -1).astype(np.float64) ** 2, axis=1))))


def relative_error(found: Array, exact: Array) -> float:
    """RMS of the difference over the RMS of `exact`; not a number unless both are finite."""
    scale = size(exact)
    error = size(found.astype(np.float64) - exact)
    return error / scale if scale > 0.0 else error
