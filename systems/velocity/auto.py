"""The solver that should be fastest on this machine, with a tolerance that is checked on a sample."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, SolverTimes, Sources
from ecs_fluid.components.sources import Flow
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.drawn_sample import DrawnSample, Reference
from ecs_fluid.systems.velocity.flow_numbers import WORKED, FlowNumbers, alike, due, kept_table
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.pppm import PppmSolver, keep_meshes, relative_error
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_times import NEVER, expected, keep_times, stored
from ecs_fluid.systems.velocity.solver_work import tree_work
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.targets import Targets
from ecs_fluid.world import World

WIDEST, NARROWEST, FIRST = 1.0, 0.2, 0.5
"""Opening angles of the tree between which ``auto`` chooses, and the one that it tries first; below the
narrowest another solver is as fast."""

POWERS = (1.0, 3.0, 4.0)
"""Errors of the tree grow with a power of the angle: the least, a first guess and the largest."""

RESERVE = 1.05
"""By this factor the angle of a new flow must be better than the tolerance, as its error is not measured
quite."""

AIM = 0.97
"""Part of the error allowed at which the next angle aims."""

TRIALS = 4
"""Most angles that are tried."""

NARROWER = 0.95
"""An angle that fails is followed by one narrower by this factor at least."""

WIDER, WIDER_LATER, NO_WIDER = 1.04, 1.1, 10.0
"""One that is kept is followed by one that is wider by this factor at least: at first; where one was known;
and never, in a flow that is alike or a sum that is done once."""

COMPARED, AGAIN = 384, 192
"""Vortons compared with the direct sum where an angle of the tree is searched for, and where one that was
found is measured again: their errors scatter by some 5 and 7 %."""

REFERENCE, FAR_BELOW = 0.5, 1.5
"""Where a flow is new, the tree with an angle narrower by the first factor tells the error of all targets; it
serves angles that are wider than its own by the second factor at least."""

PLACES = {"vortons": 0, "grid": 1}
"""Rows in `SolverTimes` of the places whose angles are kept."""

SURELY_DIRECT = 2**20
"""Up to this many pairs of target and vorton the direct sum is taken without a comparison."""

PERHAPS_MESH = 2**23
"""From this many pairs on a mesh may be the fastest; finding out takes direct sums at some targets."""

Other = TypeVar("Other", bound=Solver)

COUNTED = ("tree", "fmm", "pppm")
"""Solvers whose work is counted, in the columns of `SolverTimes`."""

DOUBT = 6.0
"""A solver is tried once if it would be the fastest with the table of times wrong by this factor."""

SAMPLE_BLOCKS, SAMPLE_TARGETS = 12, 16
"""Blocks of neighbouring targets in which the tree is measured, and targets in each that are compared with
the direct sum."""

WALKED = 384
"""Targets at which a measurement evaluates the tree, about, in each of its trials."""


class AutoSolver(Solver):
    """Direct, tree, fmm or pppm, whichever is expected to be fastest, with `tolerance` kept on a sample.

    It chooses by counts of their work (`solver_work`), or by a table of times until a solver was tried. Both,
    and the opening angles of the tree that keep the tolerance, are in `SolverTimes`: they are state, so a
    resumed run chooses as before.
    """

    sums_pairs = True
    dimensions = (2, 3)
    tolerance: float

    def added(self, world: World) -> None:
        """Make the tables by which it chooses part of the state."""
        keep_times(world)
        keep_meshes(world)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons for the solvers that it chooses from."""
        self._sources, self._grid = sources, grid
        self._direct.prepare(sources, grid)
        self._ready = set[Solver]()
        self._compared: tuple[DrawnSample, list[Array]] | None = None
        self._numbers = FlowNumbers(self, sources)
        self._flow: Flow | None = None  # of the present targets, where the work that they take is kept

    @cached_property
    def _direct(self) -> DirectSolver:
        return DirectSolver(self.system)

    @cached_property
    def _others(self) -> tuple[TreeSolver, FmmSolver, PppmSolver]:
        tree = TreeSolver(self.system, opening="angle", leaf="vortons", multipole="dipole")
        return tree, FmmSolver(self.system), PppmSolver(self.system)

    def _with_vortons(self, solver: Other) -> Other:
        """The solver, prepared for the vortons when it is first needed."""
        if solver not in self._ready:
            solver.prepare(self._sources, self._grid)
            self._ready.add(solver)
        return solver

    @property
    def _tree(self) -> TreeSolver:
        return self._with_vortons(self._others[0])

    @property
    def _fmm(self) -> FmmSolver:
        return self._with_vortons(self._others[1])

    @property
    def _pppm(self) -> PppmSolver:
        return self._with_vortons(self._others[2])

    def fill(self, targets: Targets) -> None:
        """By the solver that is expected to be fastest, among those that keep the tolerance."""
        n, m = len(self._sources.sigma), len(targets.x)
        if n * m > SURELY_DIRECT:
            self._flow = None
            times = self._expected(n, m, targets)
            for solver in sorted(times, key=times.__getitem__):
                if solver == "direct":
                    break
                if solver == "pppm":
                    self._pppm.fill(targets)
                    self._keep(solver, self._pppm.work, targets)
                    return
                if (work := self._by_fmm(targets) if solver == "fmm" else self._by_tree(targets)) < np.inf:
                    self._keep(solver, work, targets)
                    return
                self._keep(solver, np.inf, targets)
        self._direct.fill(targets)

    def _expected(self, n: int, m: int, targets: Targets) -> dict[str, float]:
        """Times of the solvers: by what they did when they were last asked; by the table until then.

        At places whose angle is kept, measuring it is for many ticks.
        """
        state, given = self._state, (self.tolerance, targets.du is not None)
        kept = state is not None and targets.place in PLACES
        several = n * m >= PERHAPS_MESH and self.world.dimension == 3
        if state is None or not kept or self.world.dimension != 3:
            seconds = stored(self.world.options.precision) if state is None else state.seconds
            sample = 2 * min(m, SAMPLE_BLOCKS * SAMPLE_TARGETS), TRIALS * min(m, WALKED)
            mesh = self._pppm.worth(targets) if several else None
            return expected(seconds, n, m, *given, *((0, 0) if kept else sample), mesh)
        times = expected(state.seconds, n, m, *given)
        if "direct" not in times:  # a table with one solver to choose from
            return times
        self._flow = flow = self._numbers.at(m, targets.du is not None)
        pair, place = times["direct"] / (n * m), PLACES[targets.place]
        for k, solver in enumerate(COUNTED):
            known = alike(flow, state.work_for[place, k].tolist(), WORKED)
            if solver == "pppm" and several and not known:
                worth = self._pppm.worth(targets)
                self._keep(solver, np.inf if worth is None else worth, targets)
                known = True
            work = float(state.work[place, k])
            if known and work < 0.5 * NEVER:
                times[solver] = pair * work * math.sqrt(float(n) * m)
            elif known:
                times.pop(solver, None)
            elif solver in times:
                times[solver] /= DOUBT
        return times

    def _keep(self, solver: str, work: float, targets: Targets) -> None:
        """Keep the work of a solver at a place, in pairs of the direct sum."""
        state = self._state
        if state is not None and targets.place in PLACES and self._flow is not None:
            row = PLACES[targets.place], COUNTED.index(solver)
            pairs = float(len(self._sources.sigma)) * len(targets.x)
            state.work[row] = work / math.sqrt(pairs) if work < math.inf else NEVER
            state.work_for[row] = self._flow

    def _by_fmm(self, targets: Targets) -> float:
        """Fill by multipoles; returns the work, in pairs, infinite if they miss the tolerance."""
        error, work = self._fmm.counted(targets)
        return np.inf if error > self.tolerance else work

    @property
    def _state(self) -> SolverTimes | None:
        return kept_table(self.world, SolverTimes)

    # ------------------------------------------------------------------ the angle of the tree

    def _by_tree(self, targets: Targets) -> float:
        """Fill by the tree with an angle that keeps the tolerance; returns the work, infinite if none does.

        The angle of the last measurement is taken where it may be used.
        """
        state = self._state if targets.place in PLACES else None
        if targets.blocks is None:
            targets.blocks = self.world.processes.blocks(targets)
        if state is None:
            angle = self._measured(targets, self._sampled_angle(targets), NO_WIDER, reserve=1.0)
        else:
            place, flow = PLACES[targets.place], self._numbers.at(len(targets.x), targets.du is not None)
            angle, (last, new) = float(state.angle[place]), state.found_for[place].tolist()
            if angle > 0.0 and alike(flow, last):
                if due(self.world):  # what was too wide when it was searched for is so still
                    state.angle[place] = angle = self._measured(targets, angle, NO_WIDER)
                else:
                    self._walk(targets, angle)
            elif angle > 0.0 and alike(flow, new, WORKED):
                state.angle[place] = angle = self._measured(targets, angle, WIDER_LATER, reserve=1.0)
                state.found_for[place, 0] = flow
            else:
                angle = self._measured(targets, self._sampled_angle(targets), WIDER, new=True)
                state.angle[place], state.found_for[place] = angle, flow
        return self._walked if angle > 0.0 else np.inf

    def _walk(self, targets: Targets, angle: float, measured: bool = False) -> None:
        """Fill by the tree; where errors are ``measured``, on every process all that was found."""
        self._tree.angle = angle
        # What is found at vortons goes to the ranks that hold their rows, of other points to all.
        asked = replace(targets, place="points") if measured else targets
        pairs, gradient = self._tree.counted(asked), targets.du is not None
        self._walked = tree_work(pairs, len(self._sources.sigma), gradient)

    def _measured(
        self, targets: Targets, angle: float, wider: float, *, reserve: float = 0.0, new: bool = False
    ) -> float:
        """Fill u and du by the tree; returns about the widest angle that keeps the tolerance, 0 if none does.

        It begins with ``angle``, and narrows it, or widens it where that is by the factor ``wider``, by what
        a sample of the targets tells of the whole, with ``reserve`` standard errors; of a ``new`` flow by
        what the tree with a narrower angle tells at all of them.
        """
        trials, kept, failed = list[tuple[float, float]](), 0.0, np.inf
        goal, least, reference = self.tolerance / (RESERVE if new else 1.0), np.inf, None
        while angle >= max(NARROWEST, wider * kept) and len(trials) < TRIALS:
            if new and angle < least:
                self._walk(targets, REFERENCE * angle, measured=True)
                reference, least = self._reference(targets), FAR_BELOW * REFERENCE * angle
            self._walk(targets, angle, measured=True)
            own = self._errors(targets, reserve) if reference is None else reference.error(targets.results)
            trials.append((angle, float(np.max(own))))
            if trials[-1][1] <= goal:
                kept = angle
            else:
                failed = angle
            angle = min(_next_angle(trials, goal), NARROWER * failed)
        if kept and trials[-1][0] != kept:
            self._walk(targets, kept)
        return kept

    def _reference(self, targets: Targets) -> Reference:
        """What was found at the targets, with its own error, for what is found with wider angles."""
        own = self._errors(targets, 1.0)
        known = self._compared if targets.place == "vortons" else None
        return Reference([values.copy() for values in targets.results], own, *(known or ()))

    def _errors(self, targets: Targets, reserve: float) -> list[float]:
        """Relative RMS errors of u and du by a sample of the targets, with so many standard errors added.

        The first result of a measurement tells which of them matter. Points that are no vortons may lie
        anywhere, and are drawn as for the multipole method.
        """
        from ecs_fluid.kernels.fmm.error_estimate import drawn_error

        def exact(x: Array) -> list[Array]:
            return self._exact(x, targets.du is not None).results

        if targets.place != "vortons":
            error = drawn_error(targets.x, self._sources.x, targets.results, exact)
            return [error] * len(targets.results)
        if self._compared is None:
            sample = DrawnSample.of(targets.results, COMPARED if reserve else AGAIN)
            if sample is None:
                return [np.nan]
            self._compared = sample, exact(np.ascontiguousarray(targets.x[sample.rows]))
        sample, there = self._compared
        return sample.errors(targets.results, there, reserve)

    def _exact(self, x: Array, gradient: bool) -> Targets:
        few = Targets.at(x, gradient)
        self._direct.fill(few)
        return few

    def _sampled_angle(self, targets: Targets) -> float:
        """Opening angle that should keep the tolerance, by a sample of the targets, 0 if none does.

        The sample is whole blocks of neighbours, since a block walks the tree as one.
        """
        assert targets.blocks is not None
        order, starts = targets.blocks
        chosen = np.unique(np.linspace(0, len(starts) - 2, SAMPLE_BLOCKS).astype(np.int64))
        parts = [order[starts[b] : starts[b + 1]] for b in chosen]
        ends = np.cumsum([0, *(len(part) for part in parts)])
        near = Targets.at(np.ascontiguousarray(targets.x[np.concatenate(parts)]), targets.du is not None)
        near.blocks = np.arange(len(near.x), dtype=np.int64), ends.astype(np.int64)
        compared = np.concatenate(
            [
                first + np.unique(np.linspace(0, len(part) - 1, SAMPLE_TARGETS).astype(np.int64))
                for first, part in zip(ends[:-1], parts, strict=True)
            ]
        )
        exact = self._exact(np.ascontiguousarray(near.x[compared]), targets.du is not None).results
        trials, angle = list[tuple[float, float]](), FIRST
        for _ in range(TRIALS):
            self._walk(near, angle)
            pairs = zip(near.results, exact, strict=True)
            trials.append((angle, max(relative_error(found[compared], value) for found, value in pairs)))
            following = _next_angle(trials, self.tolerance / RESERVE)
            if not following >= NARROWEST:
                return 0.0
            if max(following / angle, angle / following) < WIDER:
                break
            angle = following
        return angle

    def lint(self) -> list[str]:
        """A tolerance that the precision does not reach."""
        return FmmSolver(self.system).lint()


def _next_angle(trials: list[tuple[float, float]], goal: float) -> float:
    """The angle whose error should be a little below the goal, by angles that were tried and their errors."""
    (angle, error), (least, power, most) = trials[-1], POWERS
    if not np.isfinite(error):
        return 0.0
    error = max(error, 1e-300)
    if len(trials) > 1 and trials[-2][0] != angle:
        before, other = trials[-2]
        power = np.log(error / max(other, 1e-300)) / np.log(angle / before)
    power = min(max(power, least), most)
    return float(min(WIDEST, angle * (AIM * goal / error) ** (1.0 / power)))
