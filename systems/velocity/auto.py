"""The solver that should be fastest on this machine, with a tolerance that is checked on a sample."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeVar

import numpy as np

from ecs_fluid.components import Grid, SolverMeshes, SolverTimes, Sources
from ecs_fluid.components.sources import Flow
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.flow_numbers import WORKED, FlowNumbers, alike, measurement_due, stored_table
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.opening_angle import (
    NO_WIDER,
    SAMPLE_BLOCKS,
    SAMPLE_TARGETS,
    TRIALS,
    WALKED,
    WIDER,
    WIDER_LATER,
    OpeningAngle,
)
from ecs_fluid.systems.velocity.pppm import PppmSolver
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_times import NEVER, expected, keep_times, stored
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.targets import Targets
from ecs_fluid.world import World

PLACES = {"vortons": 0, "grid": 1}
"""Rows in `SolverTimes` for the kinds of targets (`Targets.place`) whose opening angles are kept."""

SURELY_DIRECT = 2**20
"""Up to this many pairs of target and vorton the direct sum is taken without a comparison."""

PERHAPS_MESH = 2**23
"""From this many pairs on a mesh (pppm) may be fastest; finding out costs direct sums at some targets."""

Other = TypeVar("Other", bound=Solver)

COUNTED = ("tree", "fmm", "pppm")
"""Solvers whose work is counted, in the columns of `SolverTimes`."""

DOUBT = 6.0
"""A solver is tried once if it would be the fastest, were the table of times wrong by this factor."""


class AutoSolver(Solver):
    """Direct, tree, fmm or pppm, whichever is expected to be fastest; a sample checks the `tolerance`.

    It compares the counted work of the solvers (`solver_work`), or times from a table for one that was not
    tried yet. Both, and the opening angles of the tree that keep the tolerance, are in `SolverTimes`. They
    are state, so a resumed run chooses as before.
    """

    sums_pairs = True
    dimensions = (2, 3)
    tolerance: float

    def added(self, world: World) -> None:
        """Make the tables by which it chooses part of the state."""
        keep_times(world)
        world._attach_missing("fluid", SolverMeshes)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons for the solvers that it chooses from."""
        self._sources, self._grid = sources, grid
        self._direct.prepare(sources, grid)
        self._times = stored_table(self.world, SolverTimes)
        self._ready = set[Solver]()
        self._search: OpeningAngle | None = None
        self._numbers = FlowNumbers(self, sources)
        self._flow: Flow | None = None  # numbers of the flow at the present targets, if their work is kept

    @cached_property
    def _direct(self) -> DirectSolver:
        return DirectSolver(self.system)

    @cached_property
    def _fast_solvers(self) -> tuple[TreeSolver, FmmSolver, PppmSolver]:
        tree = TreeSolver(self.system, opening="angle", leaf="vortons", multipole="dipole")
        return tree, FmmSolver(self.system), PppmSolver(self.system)

    def _prepared(self, solver: Other) -> Other:
        """The solver, prepared for the vortons on first use."""
        if solver not in self._ready:
            solver.prepare(self._sources, self._grid)
            self._ready.add(solver)
        return solver

    @property
    def _angles(self) -> OpeningAngle:
        """The search for opening angles of the tree of these vortons."""
        if self._search is None:
            tree = self._prepared(self._fast_solvers[0])
            self._search = OpeningAngle(tree, self._direct, self._sources, self.tolerance)
        return self._search

    @property
    def _fmm(self) -> FmmSolver:
        return self._prepared(self._fast_solvers[1])

    @property
    def _pppm(self) -> PppmSolver:
        return self._prepared(self._fast_solvers[2])

    def fill(self, targets: Targets) -> None:
        """Fill the targets by the solver that should be fastest among those that keep the tolerance."""
        n, m = len(self._sources.sigma), len(targets.x)
        if n * m > SURELY_DIRECT:
            self._flow = None
            times = self._expected(n, m, targets)
            for solver in sorted(times, key=times.__getitem__):
                if solver == "direct":
                    break
                if solver == "pppm":
                    self._pppm.fill(targets)
                    self._record_work(solver, self._pppm.work, targets)
                    return
                if (work := self._by_fmm(targets) if solver == "fmm" else self._by_tree(targets)) < np.inf:
                    self._record_work(solver, work, targets)
                    return
                self._record_work(solver, np.inf, targets)
        self._direct.fill(targets)

    def _expected(self, n: int, m: int, targets: Targets) -> dict[str, float]:
        """Expected times of the solvers for n vortons and m targets, by their last counted work or the table.

        Where opening angles are kept, one measurement serves many ticks, so its cost does not count.
        """
        state, given = self._times, (self.tolerance, targets.du is not None)
        kept = state is not None and targets.place in PLACES
        several = n * m >= PERHAPS_MESH and self.world.dimension == 3
        if state is None or not kept or self.world.dimension != 3:
            seconds = stored(self.world.options.precision) if state is None else state.seconds
            sample = 2 * min(m, SAMPLE_BLOCKS * SAMPLE_TARGETS), TRIALS * min(m, WALKED)
            mesh = self._pppm.mesh_work_for(targets) if several else None
            return expected(seconds, n, m, *given, *((0, 0) if kept else sample), mesh)
        times = expected(state.seconds, n, m, *given)
        if "direct" not in times:  # a table with one solver to choose from
            return times
        self._flow = flow = self._numbers.at(m, targets.du is not None)
        pair, place = times["direct"] / (n * m), PLACES[targets.place]
        for k, solver in enumerate(COUNTED):
            known = alike(flow, state.work_for[place, k].tolist(), WORKED)
            if solver == "pppm" and several and not known:
                worth = self._pppm.mesh_work_for(targets)
                self._record_work(solver, np.inf if worth is None else worth, targets)
                known = True
            work = float(state.work[place, k])
            if known and work < 0.5 * NEVER:
                times[solver] = pair * work * math.sqrt(float(n) * m)
            elif known:
                times.pop(solver, None)
            elif solver in times:
                times[solver] /= DOUBT
        return times

    def _record_work(self, solver: str, work: float, targets: Targets) -> None:
        """Record the work that a solver took for these targets, in pairs of the direct sum."""
        state = self._times
        if state is not None and targets.place in PLACES and self._flow is not None:
            row = PLACES[targets.place], COUNTED.index(solver)
            pairs = float(len(self._sources.sigma)) * len(targets.x)
            state.work[row] = work / math.sqrt(pairs) if work < math.inf else NEVER
            state.work_for[row] = self._flow

    def _by_fmm(self, targets: Targets) -> float:
        """Fill by fmm; returns the work in pairs of the direct sum, infinite if it misses the tolerance."""
        error, work = self._fmm.counted(targets)
        return np.inf if error > self.tolerance else work

    def _by_tree(self, targets: Targets) -> float:
        """Fill by the tree with an angle that keeps the tolerance; returns the work, infinite if none does.

        It reuses the angle of the last measurement as long as the flow is alike.
        """
        state, search = self._times if targets.place in PLACES else None, self._angles
        if targets.blocks is None:
            targets.blocks = self.world.processes.blocks(targets)
        if state is None:
            found = search.measured(targets, search.predicted(targets), NO_WIDER, reserve=1.0)
        else:
            place, flow = PLACES[targets.place], self._numbers.at(len(targets.x), targets.du is not None)
            angle, (last, new) = float(state.angle[place]), state.found_for[place].tolist()
            if angle > 0.0 and alike(flow, last):
                # An angle that was too wide in the last search is still too wide.
                again = measurement_due(self.world)
                found = search.measured(targets, angle, NO_WIDER) if again else search.walk(targets, angle)
            elif angle > 0.0 and alike(flow, new, WORKED):
                found = search.measured(targets, angle, WIDER_LATER, reserve=1.0)
                state.found_for[place, 0] = flow
            else:
                found = search.measured(targets, search.predicted(targets), WIDER, new=True)
                state.found_for[place] = flow
            state.angle[place] = found.angle
        return found.work

    def lint(self) -> list[str]:
        """Warn of a tolerance that the world's precision cannot reach."""
        return FmmSolver(self.system).lint()
