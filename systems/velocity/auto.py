"""The solver that is expected to be fastest on this machine, with a tolerance that is kept on a sample."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, SolverTimes, Sources
from ecs_fluid.one_process import Targets
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.fmm import FmmSolver
from ecs_fluid.systems.velocity.pppm import PppmSolver, relative_error
from ecs_fluid.systems.velocity.solver import Solver
from ecs_fluid.systems.velocity.solver_times import NEVER, expected, keep_times, stored
from ecs_fluid.systems.velocity.solver_work import tree_work
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.world import World

WIDEST, NARROWEST, FIRST = 1.0, 0.2, 0.5
"""Opening angles of the tree between which ``auto`` chooses, and the one that it tries first; below the
narrowest another solver is as fast."""

POWER, RESERVE, AIM, TRIALS = 3.0, 1.2, 0.85, 4
"""Errors of the tree grow with about this power of the angle; by this factor the sample must be better than
the tolerance, to cover its scatter; at this part of that the next angle aims; so many angles are tried."""

MEASURED_EVERY = 8
"""Ticks between two measurements of the tree, as long as the flow is alike."""

ALIKE = 0.05
"""Largest relative change of the numbers of a flow for which an angle of the tree goes on serving."""

PLACES = {"vortons": 0, "grid": 1}
"""Places whose angles are kept, and their rows in `SolverTimes`."""

SURELY_DIRECT = 2**20
"""Up to this many pairs of target and vorton the direct sum is taken without further thought."""

PERHAPS_MESH = 2**23
"""From this many pairs on a mesh may be fastest; to find out takes the direct sum at some targets."""

COUNTED = ("tree", "fmm", "pppm")
"""Solvers whose work is counted, in the columns of `SolverTimes`."""

WORKED = 0.25
"""Largest relative change of the numbers of a flow for which what a solver did tells what it would do."""

DOUBT = 6.0
"""A solver is asked once if it would be the fastest were the table of times wrong by so much."""

SAMPLE_BLOCKS, SAMPLE_TARGETS = 12, 16
"""Blocks of neighbouring targets in which the tree is measured, and targets in each that are compared with
the direct sum."""

WALKED = 384
"""Targets at which a measurement evaluates the tree, about, in each of its trials."""


class AutoSolver(Solver):
    """Direct, tree, fmm or pppm, whichever is expected to be fastest, with `tolerance` kept on a sample.

    It goes by what they were found to do (`solver_work`), by a table of times until they were asked. Both,
    and the opening angles of the tree that were found to keep the tolerance, stand in `SolverTimes`: they are
    state, and a resumed run chooses as before.
    """

    sums_pairs = True
    dimensions = (2, 3)
    tolerance: float

    def added(self, world: World) -> None:
        """What it chooses by belongs to the state."""
        keep_times(world)

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Keep the vortons, for those that it chooses from."""
        self._sources, self._grid = sources, grid
        self._direct = DirectSolver(self.system)
        self._direct.prepare(sources, grid)
        self._others_ready = False

    def _prepare_others(self) -> None:
        """Those that few vortons do not need."""
        if not self._others_ready:
            self._fmm, self._pppm = FmmSolver(self.system), PppmSolver(self.system)
            self._tree = TreeSolver(self.system, opening="angle", leaf="vortons", multipole="dipole")
            for solver in (self._fmm, self._tree, self._pppm):
                solver.prepare(self._sources, self._grid)
            self._others_ready = True

    def fill(self, targets: Targets) -> None:
        """By the solver that is expected to be fastest, among those that keep the tolerance."""
        n, m = len(self._sources.sigma), len(targets.x)
        if n * m > SURELY_DIRECT:
            self._prepare_others()
            self._flow: Array | None = None
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
        state, given = self._state(), (self.tolerance, targets.du is not None)
        several = n * m >= PERHAPS_MESH and self.world.dimension == 3
        if state is None or targets.place not in PLACES or self.world.dimension != 3:
            seconds = stored(self.world.options.precision) if state is None else state.seconds
            once = state is None or targets.place not in PLACES
            each = 2 * min(m, SAMPLE_BLOCKS * SAMPLE_TARGETS), TRIALS * min(m, WALKED)
            mesh = self._pppm.worth(targets) if several else None
            return expected(seconds, n, m, *given, *(each if once else (0, 0)), mesh)
        times = expected(state.seconds, n, m, *given)
        if "direct" not in times:  # a table with one solver to choose from
            return times
        self._flow = flow = self._fingerprint(targets)
        pair, place = times["direct"] / (n * m), PLACES[targets.place]
        for column, solver in enumerate(COUNTED):
            alike = (np.abs(flow - state.work_for[place, column]) <= WORKED * np.abs(flow)).all()
            if solver == "pppm" and several and not alike:
                worth = self._pppm.worth(targets)
                self._keep(solver, np.inf if worth is None else worth, targets)
                alike = True
            work = float(state.work[place, column])
            if alike and work < 0.5 * NEVER:
                times[solver] = pair * work * np.sqrt(float(n) * m)
            elif alike:
                times.pop(solver, None)
            elif solver in times:
                times[solver] /= DOUBT
        return times

    def _keep(self, solver: str, work: float, targets: Targets) -> None:
        """What the solver did at a place whose numbers are kept, in pairs of the direct sum."""
        state = self._state()
        if state is not None and targets.place in PLACES and self._flow is not None:
            row = PLACES[targets.place], COUNTED.index(solver)
            pairs = float(len(self._sources.sigma)) * len(targets.x)
            state.work[row] = work / np.sqrt(pairs) if work < np.inf else NEVER
            state.work_for[row] = self._flow

    def _by_fmm(self, targets: Targets) -> float:
        """Fill by multipoles; what they did, in pairs, infinite if they miss the tolerance."""
        error, work = self._fmm.counted(targets)
        return np.inf if error > self.tolerance else work

    def _state(self) -> SolverTimes | None:
        found = self.world.fluid.tables.get(SolverTimes)
        assert found is None or isinstance(found, SolverTimes)
        return found

    # ------------------------------------------------------------------ the angle of the tree

    def _by_tree(self, targets: Targets) -> float:
        """Fill by the tree with an angle that keeps the tolerance; what it did, infinite if none does.

        The angle of the last measurement is taken where it may be used.
        """
        state = self._state() if targets.place in PLACES else None
        if targets.blocks is None:
            targets.blocks = self.world.processes.blocks(targets)
        if state is None:
            angle, fresh = self._sampled_angle(targets), True
        else:
            place = PLACES[targets.place]
            flow = self._fingerprint(targets)
            alike = (np.abs(flow - state.found_for[place]) <= ALIKE * np.abs(flow)).all()
            due = self.world.tick % MEASURED_EVERY == 0
            fresh = bool(due or not alike or state.angle[place] == 0.0)
            if fresh:
                known = float(state.angle[place])
                state.angle[place] = self._sampled_angle(targets, known if alike and known else FIRST)
                state.found_for[place] = flow
            angle = float(state.angle[place])
        if angle and fresh and targets.place != "vortons":
            angle = self._checked(targets, angle)
            if state is not None:
                state.angle[PLACES[targets.place]] = angle
        elif angle:
            self._walk(targets, angle)
        return self._walked if angle > 0.0 else np.inf

    def _walk(self, targets: Targets, angle: float) -> None:
        self._tree.angle = angle
        pairs, gradient = self._tree.counted(targets), targets.du is not None
        self._walked = tree_work(pairs, len(self._sources.sigma), gradient)

    def _checked(self, targets: Targets, angle: float) -> float:
        """Fill u and du by the tree; returns the angle that kept the tolerance, this or less; 0 if none did.

        Points may lie anywhere: one block in a hundred may have all of the velocity. What was found tells
        which targets matter, as for the multipole method.
        """
        from ecs_fluid.kernels.fmm.error_estimate import drawn_error

        def exact(x: Array) -> list[Array]:
            return _results(self._exact(x, targets.du is not None))

        for _ in range(TRIALS):
            self._walk(targets, angle)
            error = drawn_error(targets.x, self._sources.x, _results(targets), exact)
            if error <= self.tolerance:
                return angle
            angle *= min(0.9, 0.95 * (self.tolerance / RESERVE / error) ** (1.0 / POWER))
            if not angle >= NARROWEST:
                break
        return 0.0

    def _exact(self, x: Array, gradient: bool) -> Targets:
        few = Targets.at(x, gradient)
        self._direct.fill(few)
        return few

    def _fingerprint(self, targets: Targets) -> Array:
        """Numbers (10,) of what the error of the tree depends on; an angle serves as long as they are alike.

        Vortons are sorted by cells: the last number tells strengths that point the same way as those beside
        them from strengths that cancel.
        """
        x, alpha, sigma = self._sources.x, self._sources.alpha, self._sources.sigma
        squares = np.einsum("ij,ij->j", alpha, alpha, dtype=np.float64)
        total = float(squares.sum())
        beside = float(np.einsum("ij,ij->", alpha[:, 1:], alpha[:, :-1], dtype=np.float64))
        numbers = (
            self.tolerance, len(self.code) - 1, targets.du is not None, len(squares), len(targets.x),
            np.sqrt(squares).sum(), total, sigma.sum(dtype=np.float64), x.std(axis=1, dtype=np.float64).max(),
            2.0 + (beside / total if total > 0.0 else 0.0),
        )  # fmt: skip
        return np.array(numbers, np.float64)

    def _sampled_angle(self, targets: Targets, first: float = FIRST) -> float:
        """Opening angle that keeps the tolerance on a sample of the targets, 0 if none does; tries ``first``.

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
        exact = _results(self._exact(np.ascontiguousarray(near.x[compared]), targets.du is not None))
        goal, angle, kept = self.tolerance / RESERVE, first, 0.0
        for _ in range(TRIALS):
            self._walk(near, angle)
            pairs = zip(_results(near), exact, strict=True)
            error = max(relative_error(found[compared], value) for found, value in pairs)
            better = min(WIDEST, angle * (AIM * goal / max(error, 1e-300)) ** (1.0 / POWER))
            if error <= goal:
                kept = max(kept, angle)
                if better < 1.15 * angle:
                    break
            if not better >= NARROWEST:
                break
            angle = better
        return kept

    def lint(self) -> list[str]:
        """A tolerance that the precision does not reach."""
        return FmmSolver(self.system).lint()


def _results(targets: Targets) -> list[Array]:
    """u (m, 3), and du (m, 9) where it is asked for."""
    return [targets.u] if targets.du is None else [targets.u, targets.du.reshape(-1, 9)]
