"""Particle-particle particle-mesh: near pairs in full, the smooth rest on a mesh, with a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Position, SolverMeshes, Sources, Velocity
from ecs_fluid.systems.partition import VORTONS
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.drawn_sample import DrawnSample, at_even_distances
from ecs_fluid.systems.velocity.flow_numbers import (
    ALIKE,
    LINEAR,
    SQUARES,
    WORKED,
    FlowNumbers,
    alike,
    measurement_due,
    stored_table,
)
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_work import mesh_work
from ecs_fluid.targets import Targets
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.particle_mesh.pppm import Goal, Mesh, MeshRequest, Plan, SmoothField

FEW_PAIRS = 2**21
"""Up to this many pairs of target and vorton the direct sum takes less time than a mesh."""

COMPARED, OF_NEW = 128, 384
"""Number of targets summed directly to choose a mesh and to confirm it: this estimates errors to about 7 %.
In a new flow more of them confirm it, and a standard error is added."""

DRAWN_FROM = 2**14
"""The sample to compare is drawn from about this many targets at even distances."""

TRIALS = 3
"""Largest number of meshes tried, each finer by as much as the one before missed the tolerance."""

STRICT = 1e-3
"""Meshes are chosen by the errors of strengths of random directions. Below this tolerance, errors of
strengths that point the same way are larger, by about (STRICT/tolerance)^(1/6): 2.1 at 1e-5 on a ring."""

GOAL, SURE = 0.9, 0.95
"""Fractions of the tolerance: the error that a mesh is chosen for, since predictions scatter by about 7 %;
and the largest error allowed on the sample."""

WIDER = 8.0
"""Largest volume of the mesh, over that of the vortons' bounding box; targets outside the mesh get the
multipole sum."""

PLACES = {"vortons": 0, "grid": 1, "others": 2}
"""Kinds of targets (`Targets.place`) whose meshes are kept, and their rows in `SolverMeshes`; for "others",
the row of the first population."""

TINY = np.finfo(np.float64).tiny
"""Stands for 0 as a divisor, where strengths were 0 before."""


class PlannedMesh(NamedTuple):
    """A mesh that should keep the tolerance for some targets."""

    goal: Goal
    error: float
    """relative RMS error that it was chosen for"""
    mesh: Mesh | None


class PppmSolver(Solver):
    """Pairs nearer than a few cells of a mesh are summed in full; the smooth rest comes from the mesh.

    The RMS error of velocity and gradient, each relative to its own RMS, stays below `tolerance`. A sample
    confirms this every 16th tick, and whenever the flow has changed. The findings are state
    (`SolverMeshes`). The mesh is the solver's own, with the cells that take the least time. Where no mesh
    keeps the tolerance (few vortons, cores of many different radii, mostly empty clouds) `fmm` replaces it.
    Source: Hockney and Eastwood, Computer Simulation Using Particles, chapter 8.
    """

    sums_pairs = True
    tolerance: float

    def added(self, world: World) -> None:
        """Make the meshes that it finds part of the state."""
        world._attach_missing("fluid", SolverMeshes)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons; the mesh is made when it is first needed."""
        self._sources = sources
        x, sigma = sources.x, sources.sigma
        self._extent = x.min(axis=1).astype(np.float64), x.max(axis=1).astype(np.float64)
        self._cores = float(sigma.min()), float(sigma.max())
        self._box = self._box_around(*self._extent, grid)
        self._direct, self._fmm = DirectSolver(self.system), FmmSolver(self.system)
        for solver in (self._direct, self._fmm):
            solver.prepare(sources, grid)
        self._numbers = FlowNumbers(self, sources)
        self._meshes = stored_table(self.world, SolverMeshes)
        self._plan: Plan | None = None
        self._smooth: list[SmoothField] = []
        self._last: tuple[Targets, PlannedMesh] | None = None
        """Targets that were measured, and the mesh found for them."""
        self._aim = GOAL * self.tolerance * min(1.0, (self.tolerance / STRICT) ** (1.0 / 6.0))
        # Work of the last sum, in pairs of the direct sum; infinite if no mesh kept the tolerance.
        self.work = np.inf

    def fill(self, targets: Targets) -> None:
        """Fill by the mesh; by multipoles outside of it, and where no mesh keeps the tolerance."""
        from ecs_fluid.kernels.compiled.columns import bounds, inside

        if len(targets.x) * len(self._sources.sigma) <= FEW_PAIRS:
            self._direct.fill(targets)
            return
        # Points of the field grid lie on the faces of the box, but for rounding.
        rounding = np.finfo(targets.x.dtype).eps * np.abs(self._box).max()
        lowest, highest = self._box[0] - rounding, self._box[1] + rounding
        low, high = bounds(targets.x)
        if (low >= lowest).all() and (high <= highest).all():
            self._fill_inside(targets)
            return
        within = inside(targets.x, lowest, highest)
        targets.fill_rows(within, self.fill)
        targets.fill_rows(~within, self._fmm.fill)

    def _fill_inside(self, targets: Targets) -> None:
        """Fill by the mesh found before, or by a new one for these targets.

        After a mesh that misses the tolerance a finer one is tried; if none keeps it, fill by multipoles.
        """
        stored, new = self._stored_mesh(_row(targets), len(targets.x), targets.du is not None)
        planned = self._measured(targets) if stored is None else stored
        self.work = 0.0
        for _ in range(TRIALS):
            smooth = self._summed(targets, planned)
            if smooth is None:
                if stored is None:
                    break
                self._plan = stored = None  # the mesh found before no longer serves
                planned = self._measured(targets)
                continue
            if stored is not None and not measurement_due(self.world) and self._flows_as_before(targets):
                return
            error, surely = self._errors(targets, smooth.reach, OF_NEW if new else COMPARED)
            self._store_mesh(targets, planned, stored is not None, surely)
            if (surely if new else error) <= SURE * self.tolerance:
                return
            self._plan, self._aim, stored = None, 0.7 * planned.error * self.tolerance / error, None
            planned = self._measured(targets)
        self.work = np.inf
        self._fmm.fill(targets)

    def _summed(self, targets: Targets, planned: PlannedMesh) -> SmoothField | None:
        """Fill by the mesh, which is made if there is none; returns the smooth part of the velocity.

        Returns None, with nothing filled, if no mesh and reach keep the tolerance.
        """
        from ecs_fluid.kernels.particle_mesh.pppm import velocity

        if self._plan is None:
            self._plan, self._smooth = self._planned(planned), []
        smooth = self._smooth_for(targets, planned)
        if self._plan is None or smooth is None:
            return None
        self.work += self._work_of(self._plan.mesh, targets, planned)
        velocity(self._plan, smooth, targets.x, targets.u, targets.du)
        return smooth

    def mesh_work_for(self, targets: Targets) -> float | None:
        """Work of a mesh for these targets, in pairs of the direct sum; None if no mesh serves."""
        planned, _ = self._stored_mesh(_row(targets), len(targets.x), targets.du is not None)
        if planned is None:
            planned = self._measured(targets, anew=True)
            self._last = targets, planned
        return None if planned.mesh is None else self._work_of(planned.mesh, targets, planned)

    def _work_of(self, mesh: Mesh, targets: Targets, planned: PlannedMesh) -> float:
        return mesh_work(mesh.cost(self.code, [(len(targets.x), planned.goal)]), targets.du is not None)

    def lint(self) -> list[str]:
        """A tolerance that the precision does not reach."""
        return FmmSolver(self.system).lint()

    # ------------------------------------------------------------------ what was found before

    def _flow(self, count: int, gradient: bool) -> Array:
        """The numbers (of the fields `MESHED`) on which the error at `count` targets depends."""
        low, high = self._box
        return np.concatenate([self._numbers.at(count, gradient), self._cores, high - low])

    def _stored_mesh(self, row: int | None, count: int, gradient: bool) -> tuple[PlannedMesh | None, bool]:
        """The mesh found for such targets in a flow that was alike, or None; and whether the flow is new."""
        from ecs_fluid.kernels.particle_mesh import pppm

        state = self._meshes
        if state is None or row is None or row >= len(state.found_for):
            return None, True
        flow, before = self._flow(count, gradient), state.found_for[row]
        change = self._allowed_change(state.measured[row])
        if not (alike(flow[LINEAR], before[LINEAR], change) and alike(_nonlinear(flow), _nonlinear(before))):
            return None, not alike(flow, before, WORKED)
        (*how, error), (velocity, of_gradient) = state.mesh[row].tolist(), state.goal[row].tolist()
        if self._plan is not None and self._plan.mesh.spacing != how[0]:
            return None, False
        goal = pppm.Goal(velocity, of_gradient if gradient else np.inf)
        mesh = pppm.mesh_for(self._wanted([]), len(self._sources.sigma), *how)
        return PlannedMesh(goal, error, mesh), False

    def _store_mesh(self, targets: Targets, planned: PlannedMesh, again: bool, error: float) -> None:
        """Store the mesh found now, or the one found before (``again``), with its measured error.

        One that misses the allowed error is stored such that no later flow is like its own.
        """
        state, row = self._meshes, _row(targets)
        if state is None or row is None or planned.mesh is None:
            return
        if row >= len(state.found_for):
            columns = {name: getattr(state, name) for name in type(state).columns}
            state.put(**{name: _padded(rows, row + 1) for name, rows in columns.items()})
        if not again:
            state.found_for[row] = self._flow(len(targets.x), targets.du is not None)
            goal, mesh = planned.goal, planned.mesh
            state.mesh[row] = mesh.spacing, mesh.density, mesh.strength, planned.error
            state.goal[row] = goal.velocity, 0.0 if goal.velocity_only else goal.gradient
        state.found_for[row] *= error <= SURE * self.tolerance  # no flow is like one whose numbers are 0
        state.size[row], state.measured[row] = self._sizes(targets), error

    def _allowed_change(self, error: float) -> float:
        """Relative change of strengths and velocities up to which a mesh of this relative error still serves.

        The error grows at most in proportion to them, so a mesh far below the tolerance serves for a flow
        that differs by more than ALIKE, but not for a new one. (Thinner cores may raise the error much more.)
        """
        return min(max(ALIKE, SURE * self.tolerance / error - 1.0), WORKED) if error > 0.0 else ALIKE

    def _flows_as_before(self, targets: Targets) -> bool:
        """Whether velocities and gradients are as large as they were when the error was last measured.

        Where strengths have grown since then, the error has grown with their RMS, so velocities must have
        grown as much.
        """
        state, row = self._meshes, _row(targets)
        assert state is not None and row is not None
        flow = self._flow(len(targets.x), targets.du is not None)[SQUARES]
        grown = np.sqrt(max(1.0, np.max(flow / np.maximum(state.found_for[row, SQUARES], TINY))))
        return alike(self._sizes(targets), grown * state.size[row], self._allowed_change(state.measured[row]))

    def _sizes(self, targets: Targets) -> Array:
        """RMS velocity and RMS gradient (0 without gradient) at some of the targets."""
        given = some_targets(targets)
        return np.array([size(given.u), 0.0 if given.du is None else size(given.du)])

    # ------------------------------------------------------------------ measurements

    def _exact(self, targets: Targets, rows: Array) -> Targets:
        """The direct sum at these rows of the targets."""
        exact = Targets.at(np.ascontiguousarray(targets.x[rows]), targets.du is not None)
        self._direct.fill(exact, few=True)
        return exact

    def _errors(self, targets: Targets, reach: float, count: int) -> tuple[float, float]:
        """RMS error of velocity or gradient relative to its RMS, the larger; and that plus a standard error.

        `count` targets are compared. Weak vortons within reach of a few strong ones may have most of the
        error, so the sample is drawn by the strength around each target too.
        """
        from ecs_fluid.kernels.particle_mesh.mesh_errors import strength_around

        given, s = some_targets(targets), self._sources
        around = strength_around(s.x, s.alpha, given.x, *self._box, reach)
        sample = DrawnSample.of(given.results, count, around)
        if sample is None:
            return np.nan, np.nan
        exact = self._exact(given, sample.rows).results
        return sample.error(given.results, exact), sample.error(given.results, exact, reserve=1.0)

    def _measured(self, targets: Targets, anew: bool = False) -> PlannedMesh:
        """The errors allowed, from direct sums at some targets at even distances, and a mesh that keeps them.

        That is the present mesh, if there is one, unless it must be chosen ``anew``.
        """
        from ecs_fluid.kernels.particle_mesh import pppm

        present = None if self._plan is None or anew else self._plan.mesh
        if self._last is not None and self._last[0] is targets and self._last[1].error == self._aim:
            planned = self._last[1]
            return planned if present is None else planned._replace(mesh=present)
        rows = at_even_distances(len(targets.x), COMPARED)
        exact = self._exact(targets, rows)
        gradient = np.inf if exact.du is None else self._aim * size(exact.du)
        goal = pppm.Goal(self._aim * size(exact.u), gradient)
        if present is not None:
            return PlannedMesh(goal, self._aim, present)
        asked = [(len(targets.x), goal)]
        # The velocity at the next populations is not known yet: assume that of these targets.
        others = sum(self._counts_of_others()) if targets.place in ("vortons", "grid") else 0
        asked += [(others, pppm.Goal(goal.velocity))] if others else []
        s = self._sources
        return PlannedMesh(goal, self._aim, pppm.choose(self.code, s.x, s.alpha, self._wanted(asked)))

    def _wanted(self, asked: Sequence[tuple[int, Goal]]) -> MeshRequest:
        """What a mesh must provide; `asked` holds numbers of targets and the errors allowed there."""
        from ecs_fluid.kernels.particle_mesh import pppm

        (low, high), (first, last), (thinnest, widest) = self._box, self._extent, self._cores
        return pppm.MeshRequest(low, high, first, last, thinnest, widest, asked)

    def _planned(self, planned: PlannedMesh) -> Plan | None:
        """The mesh with the vortons' strengths spread on it; None if no reach keeps the tolerance."""
        from ecs_fluid.kernels.particle_mesh import pppm

        s, mesh = self._sources, planned.mesh
        reach = None if mesh is None else mesh.reach(self.code, pppm.Goal(planned.goal.velocity))
        if mesh is None or reach is None:
            return None
        parts = pppm.parts_of(self.code, s.sigma, reach, planned.error)
        return None if parts is None else pppm.plan(self.code, mesh, s.x, s.alpha, s.sigma, parts, reach)

    def _smooth_for(self, targets: Targets, planned: PlannedMesh) -> SmoothField | None:
        """The smooth velocity for these targets; None if no reach keeps the tolerance there."""
        from ecs_fluid.kernels.particle_mesh import pppm

        there = {smooth.reach: smooth for smooth in self._smooth}
        reach = self._reach(len(targets.x), planned, list(there))
        if self._plan is None or reach is None:
            return None
        if reach in there:
            return there[reach]
        plan = self._plan if self._plan.waves else self._planned(planned)
        if plan is None:
            return None
        wanted, known = [(reach, planned.error)], [*there, reach]
        others = self._counts_of_others() if targets.place == "vortons" else []
        every = [
            self._stored_mesh(PLACES["others"] + k, count, gradient=False)[0]
            for k, count in enumerate(others)
        ]
        for count, after in zip(others, every, strict=True):  # all fields by one transform along x
            following = None if after is None else self._reach(count, after, known)
            if after is not None and following is not None and following not in known:
                wanted.append((following, after.error))
                known.append(following)
        made = pppm.smooth_fields(plan, wanted, last=bool(every) and None not in every)
        self._smooth += made
        return made[0]

    def _reach(self, count: int, planned: PlannedMesh, known: list[float]) -> float | None:
        """Reach of near pairs for `count` targets, m: one of those that are ``known``, where that is best."""
        needed = None if planned.mesh is None else planned.mesh.reach(self.code, planned.goal)
        if self._plan is None or planned.mesh is None or needed is None:
            return None
        return planned.mesh.best_reach(count, planned.goal, max(needed, self._plan.least), known)

    def _counts_of_others(self) -> list[int]:
        """Numbers of rows of the populations other than vortons that will need velocities in this tick."""
        if self.system.tracers != "solver":
            return []
        total = self.world.processes.total
        every = [
            total([entity], len(position.x))
            for entity, (position, _) in self.system.entities(Position, Velocity)
            if not all(kind in entity for kind in VORTONS)
        ]
        return [count for count in every if count]

    @staticmethod
    def _box_around(low: Array, high: Array, grid: Grid) -> tuple[Array, Array]:
        """Corners (3,) m of the mesh's box: around vortons and grid, or vortons alone if that saves much."""
        lowest = np.minimum(low, grid.origin)
        highest = np.maximum(high, grid.origin + grid.spacing * grid.cells)
        if np.prod(highest - lowest) <= WIDER * np.prod(high - low):
            return lowest, highest
        return low, high


def _row(targets: Targets) -> int | None:
    """Row of `SolverMeshes` where the mesh for these targets is kept; None if it is not kept."""
    row = PLACES.get(targets.place)
    return None if row is None else row + targets.number


def _nonlinear(flow: Array) -> Array:
    """The entries of a flow on which an error may depend in any way: all but the LINEAR ones."""
    return np.delete(flow, LINEAR)


def _padded(rows: Array, count: int) -> Array:
    """The rows (m, ...), followed by rows of zeros, `count` in all."""
    more = np.zeros((count, *rows.shape[1:]), rows.dtype)
    more[: len(rows)] = rows
    return more


def some_targets(targets: Targets) -> Targets:
    """About DRAWN_FROM of the targets, at even distances, with their results: views, no copies."""
    some = slice(None, None, 1 + len(targets.x) // DRAWN_FROM)
    return Targets(targets.x[some], targets.u[some], None if targets.du is None else targets.du[some])


def size(values: Array) -> float:
    """RMS Euclidean norm of the rows."""
    rows = values.reshape(len(values), -1)
    return float(np.sqrt(np.einsum("ij,ij->", rows, rows, dtype=np.float64) / max(len(rows), 1)))


def relative_error(found: Array, exact: Array) -> float:
    """RMS of the difference over the RMS of `exact`; NaN or infinite unless both are finite."""
    scale = size(exact)
    error = size(found.astype(np.float64) - exact)
    return error / scale if scale > 0.0 else error
