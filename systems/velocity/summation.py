"""The Biot-Savart sum over one set of vortons, by interchangeable solvers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, SolverTimes, Sources
from ecs_fluid.errors import FluidWarning
from ecs_fluid.one_process import OneProcess
from ecs_fluid.systems.velocity.solver_times import fastest_first
from ecs_fluid.systems.velocity.vector_potential_grid import PotentialGrid

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.blocks import Blocks
    from ecs_fluid.kernels.biot_savart.tree_build import Tree
    from ecs_fluid.kernels.fmm.fast_multipole import Plan

SOLVERS = ("direct", "tree", "fmm", "poisson", "hybrid", "auto")
"""Ways to get the velocity, in words that `VelocitySystem` takes."""

ON_GRID = ("poisson", "hybrid")
"""Solvers that fill the field grid, any other point interpolating it. In a flat world, where the equation has
another Green's function, ``auto`` takes their place."""

WIDEST, NARROWEST, FIRST = 1.0, 0.2, 0.5
"""Opening angles between which ``auto`` chooses, and the one that it tries first; below the narrowest another
solver is as fast."""

POWER, RESERVE, TRIALS = 3.0, 1.2, 4
"""Errors of the tree grow with about this power of the angle; by this factor the sample must be better than
the tolerance, to cover its scatter; so many angles are tried."""

MEASURED_EVERY = 8
"""Ticks between two measurements of the tree by ``auto``, as long as the flow is alike."""

ALIKE = 0.05
"""Largest relative change of the numbers of a flow for which an angle of the tree goes on serving."""

AT_VORTONS, AT_GRID = 0, 1
"""Places whose angles are kept."""

SURELY_DIRECT = 2**18
"""Up to this many pairs of target and vorton ``auto`` takes the direct sum without further thought."""

FEW_TARGETS = 1024
"""Up to this many targets, other than the vortons, the direct sum takes less time than ``fmm`` needs to sort
any number of vortons and find their moments."""

IN_PLACE_OF_FMM = 2**30
"""Up to this many pairs of target and vorton the direct sum answers where ``fmm`` finds that it misses its
tolerance: as long as some of the sums that have failed by then. Above, it warns."""

SAMPLE_BLOCKS, SAMPLE_TARGETS = 12, 16
"""Blocks of neighbouring targets in which ``auto`` measures the tree, and targets in each that are compared
with the direct sum."""

WALKED = 384
"""Targets at which a measurement evaluates the tree, about, in each of its trials."""


class How(NamedTuple):
    """What steers the sums, apart from the vortons themselves; see `VelocitySystem` for the meaning."""

    code: int
    """number of the regularisation"""
    tolerance: float
    criterion: int
    """how the tree opens clusters: ``tree.BOX`` or ``tree.ANGLE``"""
    opening: float
    """margin in cells, or angle"""
    originals: bool
    """whether the vortons themselves stand at the leaves"""
    open_boundary: bool
    """poisson: unbounded space, or walls at the faces of the grid"""
    transfer: Literal["linear", "m4_prime"]
    """poisson, hybrid: how strengths go to the grid"""
    times: Array
    """auto: what the solvers cost, see `SolverTimes`"""


class Summation:
    """Velocity of one set of vortons at any targets.

    Args:
        sources: the sorted vortons.
        sigma: their core radii (n,) m, in place of those in `sources` (they may be widened).
        grid: the field grid, for the solvers that fill it.
        how: parameters of the solvers.
        processes: who shares out the sums; all of them ask for the same.
        state: where ``auto`` keeps the tree's angles, at the vortons and at the grid points, between the
            ticks in which it measures; None if it is to measure each time.
        due: whether this is such a tick.
    """

    def __init__(
        self,
        sources: Sources,
        sigma: Array,
        grid: Grid,
        how: How,
        processes: OneProcess,
        state: SolverTimes | None = None,
        due: bool = True,
    ) -> None:
        self.processes = processes
        self._vortons: Array | None = None
        self.sources, self.sigma, self.grid, self.how = sources, sigma, grid, how
        self.state, self.due = state, due
        self._tree: Tree | None = None
        self._plan: Plan | None = None
        self._potential_grids: dict[str, PotentialGrid] = {}

    def velocity(
        self,
        solver: str,
        targets: Array,
        u: Array,
        du: Array | None = None,
        points: tuple[int, ...] | None = None,
    ) -> None:
        """Fill u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3).

        `points` is the shape of the grid when the targets are all its points, in C order.
        """
        if solver == "direct" or len(self.sigma) == 0:
            self._direct(targets, u, du)
        elif solver == "tree":
            how, blocks = self.how, self.processes.blocks(targets, points)
            self._by_tree(targets, u, du, blocks, how.criterion, how.opening, how.originals)
        elif solver == "fmm":
            self._by_fmm_or_direct(targets, u, du)
        elif solver in ON_GRID and not self.grid.flat.any():
            self._by_grid(solver, targets, u, du)
        else:
            self._automatically(targets, u, du, points, AT_GRID if points else None)

    def at_sources(self, solver: str, x: Array, u: Array, du: Array | None) -> None:
        """Fill u (n, 3) and, unless None, du (n, 3, 3) at the vortons, x (n, 3) in sorted order."""
        self._vortons = x
        if solver == "auto":
            self._automatically(x, u, du, None, AT_VORTONS)
        else:
            self.velocity(solver, x, u, du)

    # ------------------------------------------------------------------ solvers

    def _direct(self, targets: Array, u: Array, du: Array | None) -> None:
        from ecs_fluid.kernels.biot_savart import direct

        sources = self.sources.x, self.sources.alpha, self.sigma

        def evaluate(targets: Array, u: Array, du: Array | None, blocks: Blocks | None) -> int:
            if du is None:
                direct.velocity(self.how.code, targets, *sources, u)
            else:
                direct.velocity_gradient(self.how.code, targets, *sources, u, du)
            return len(targets) * len(self.sigma)

        self.processes.share("direct", targets, u, du, len(self.sigma), evaluate)

    def _by_tree(
        self,
        targets: Array,
        u: Array,
        du: Array | None,
        blocks: Blocks,
        criterion: int,
        opening: float,
        originals: bool,
    ) -> None:
        from ecs_fluid.kernels.biot_savart import tree

        if self._tree is None:
            self._tree = self.processes.tree(self.sources, self.sigma)
        grown = self._tree
        how: dict[str, Any] = {
            "criterion": criterion,
            "opening": opening,
            "originals": tree.at_leaves(grown, originals),
        }

        def evaluate(targets: Array, u: Array, du: Array | None, blocks: Blocks | None) -> int:
            if du is None:
                return tree.velocity(self.how.code, targets, grown, u, blocks=blocks, **how)
            return tree.velocity_gradient(self.how.code, targets, grown, u, du, blocks=blocks, **how)

        self.processes.share("tree", targets, u, du, len(self.sigma), evaluate, blocks, grown, **how)

    def _by_fmm_or_direct(self, targets: Array, u: Array, du: Array | None) -> None:
        """The multipole method, and the direct sum where that keeps the tolerance or is cheaper."""
        from ecs_fluid.kernels.fmm.error_estimate import COMPARED

        # Of the vortons up to COMPARED would all be compared with the direct sum.
        if len(targets) <= (COMPARED if targets is self._vortons else FEW_TARGETS):
            self._direct(targets, u, du)
            return
        error, goal = self._by_fmm(targets, u, du), self.how.tolerance
        if error > goal and len(targets) * len(self.sigma) <= IN_PLACE_OF_FMM:
            self._direct(targets, u, du)
        elif error > goal:
            text = (
                f"VelocitySystem: solver = 'fmm' has an RMS error of {error:.1e} at {len(targets)} points, "
                f"tolerance = {goal:g}; use precision = 'double', a larger tolerance or solver = 'direct'"
            )
            warnings.warn(text, FluidWarning, stacklevel=2)

    def _by_fmm(self, targets: Array, u: Array, du: Array | None) -> float:
        """The error on the solver's own sample, which may be above the tolerance (float32 has its limits)."""
        from ecs_fluid.kernels.fmm import fast_multipole

        vortons = self.how.code, self.sources.x, self.sources.alpha, self.sigma
        if self._plan is None:
            self._plan = fast_multipole.plan(*vortons, self.how.tolerance)
        code, x, alpha, sigma = vortons
        rest = x, alpha, sigma, self.how.tolerance
        split = self.processes.split("fmm", targets, len(self.sigma))
        if du is None:
            work = fast_multipole.velocity(code, targets, *rest, u, prepared=self._plan, split=split)
        else:
            work = fast_multipole.velocity_gradient(
                code, targets, *rest, u, du, prepared=self._plan, split=split
            )
        return work.error

    def potential_grid(self, solver: str) -> PotentialGrid:
        """The flow on the field grid, by ``poisson`` or ``hybrid``; there must be vortons."""
        if solver not in self._potential_grids:
            self._potential_grids[solver] = PotentialGrid(
                self.sources,
                self.sigma,
                self.grid,
                self.how.code,
                "faces" if solver == "hybrid" else "open" if self.how.open_boundary else "walls",
                self.how.transfer,
            )
        return self._potential_grids[solver]

    def _by_grid(self, solver: str, targets: Array, u: Array, du: Array | None) -> None:
        flow = self.potential_grid(solver)
        beyond = flow.sample(targets, u, du)
        if len(beyond):
            # Nobody moves out there; somebody only asks.
            out_u, out_du = np.empty_like(u[beyond]), None if du is None else np.empty_like(du[beyond])
            self._direct(np.ascontiguousarray(targets[beyond]), out_u, out_du)
            u[beyond] = out_u
            if du is not None:
                du[beyond] = out_du

    # ------------------------------------------------------------------ auto

    def _automatically(
        self,
        targets: Array,
        u: Array,
        du: Array | None,
        points: tuple[int, ...] | None,
        place: int | None,
    ) -> None:
        """The solver that is expected to be fastest, among those that keep the tolerance."""
        from ecs_fluid.kernels.biot_savart import tree

        n, m = len(self.sigma), len(targets)
        if n * m > SURELY_DIRECT:
            # At places whose angle is kept, measuring it is for many ticks.
            each = self.state is None or place is None
            measured = (
                (2 * min(m, SAMPLE_BLOCKS * SAMPLE_TARGETS), TRIALS * min(m, WALKED)) if each else (0, 0)
            )
            choice = self.how.times, n, m, self.how.tolerance, du is not None, *measured
            for solver in fastest_first(*choice):
                if solver == "direct":
                    break
                if solver == "fmm" and not self._by_fmm(targets, u, du) > self.how.tolerance:
                    return
                if solver == "tree":
                    blocks = self.processes.blocks(targets, points)
                    angle, fresh = self._kept_angle(targets, blocks, du is not None, place)
                    if angle and fresh and place != AT_VORTONS:
                        angle = self._checked(targets, u, du, blocks, angle)
                        if self.state is not None and place is not None:
                            self.state.angle[place] = angle
                    elif angle:
                        self._by_tree(targets, u, du, blocks, tree.ANGLE, angle, True)
                    if angle:
                        return
        self._direct(targets, u, du)

    def _checked(self, targets: Array, u: Array, du: Array | None, blocks: Blocks, angle: float) -> float:
        """Fill u and du by the tree; returns the angle that kept the tolerance, this or less; 0 if none did.

        Points may lie anywhere: one block in a hundred may have all of the velocity. What was found tells
        which targets matter, as for the multipole method.
        """
        from ecs_fluid.kernels.biot_savart import tree
        from ecs_fluid.kernels.fmm.error_estimate import drawn_error

        def exact(few: Array) -> list[Array]:
            found = np.empty_like(few), None if du is None else np.empty((len(few), 3, 3), few.dtype)
            self._direct(few, *found)
            return [found[0]] if found[1] is None else [found[0], found[1].reshape(-1, 9)]

        results = [u] if du is None else [u, du.reshape(-1, 9)]
        for _ in range(TRIALS):
            self._by_tree(targets, u, du, blocks, tree.ANGLE, angle, True)
            error = drawn_error(targets, self.sources.x, results, exact)
            if error <= self.how.tolerance:
                return angle
            angle *= min(0.9, 0.95 * (self.how.tolerance / RESERVE / error) ** (1.0 / POWER))
            if not angle >= NARROWEST:
                break
        return 0.0

    def _kept_angle(
        self, targets: Array, blocks: Blocks, gradient: bool, place: int | None
    ) -> tuple[float, bool]:
        """The angle of the last measurement where it may be used, or a new one; 0 if none will do.

        And whether it is a new one.
        """
        state = self.state
        if state is None or place is None:
            return self._angle(targets, blocks, gradient), True
        flow = self._fingerprint(len(targets), gradient)
        alike = (np.abs(flow - state.found_for[place]) <= ALIKE * np.abs(flow)).all()
        fresh = bool(self.due or not alike or state.angle[place] == 0.0)
        if fresh:
            state.angle[place] = self._angle(targets, blocks, gradient)
            state.found_for[place] = flow
        return float(state.angle[place]), fresh

    def _fingerprint(self, targets: int, gradient: bool) -> Array:
        """Numbers (10,) of what the error of the tree depends on; an angle serves as long as they are alike.

        Vortons are sorted by cells: the last number tells strengths that point the same way as those beside
        them from strengths that cancel.
        """
        x, alpha, how = self.sources.x, self.sources.alpha, self.how
        squares = np.einsum("ij,ij->j", alpha, alpha, dtype=np.float64)
        total = float(squares.sum())
        beside = float(np.einsum("ij,ij->", alpha[:, 1:], alpha[:, :-1], dtype=np.float64))
        numbers = (
            how.tolerance, how.code, gradient, len(squares), targets, np.sqrt(squares).sum(), total,
            self.sigma.sum(dtype=np.float64), x.std(axis=1, dtype=np.float64).max(),
            2.0 + (beside / total if total > 0.0 else 0.0),
        )  # fmt: skip
        return np.array(numbers, np.float64)

    def _angle(self, targets: Array, blocks: Blocks, gradient: bool) -> float:
        """Opening angle that keeps the tolerance on a sample of the targets, 0 if none does.

        The sample is whole blocks of neighbours, since a block walks the tree as one.
        """
        from ecs_fluid.kernels.biot_savart import tree

        order, starts = blocks
        chosen = np.unique(np.linspace(0, len(starts) - 2, SAMPLE_BLOCKS).astype(np.int64))
        parts = [order[starts[b] : starts[b + 1]] for b in chosen]
        sample = np.ascontiguousarray(targets[np.concatenate(parts)])
        ends = np.cumsum([0, *(len(part) for part in parts)])
        own = (np.arange(len(sample), dtype=np.int64), ends.astype(np.int64))
        compared = np.concatenate(
            [
                first + np.unique(np.linspace(0, len(part) - 1, SAMPLE_TARGETS).astype(np.int64))
                for first, part in zip(ends[:-1], parts, strict=True)
            ]
        )
        few = np.ascontiguousarray(sample[compared])
        near, exact = np.empty_like(sample), np.empty_like(few)
        near_d = np.empty((len(sample), 3, 3), sample.dtype) if gradient else None
        exact_d = np.empty((len(few), 3, 3), few.dtype) if gradient else None
        self._direct(few, exact, exact_d)
        goal, angle, kept = self.how.tolerance / RESERVE, FIRST, 0.0
        for _ in range(TRIALS):
            self._by_tree(sample, near, near_d, own, tree.ANGLE, angle, True)
            error = relative_error(near[compared], exact)
            if near_d is not None and exact_d is not None:
                error = max(error, relative_error(near_d[compared], exact_d))
            better = min(WIDEST, angle * (0.95 * goal / max(error, 1e-300)) ** (1.0 / POWER))
            if error <= goal:
                kept = max(kept, angle)
                if better < 1.15 * angle:
                    break
            if not better >= NARROWEST:
                break
            angle = better
        return kept


def relative_error(value: Array, exact: Array) -> float:
    """RMS of the difference over the RMS of `exact`; 0 where both are zero."""
    scale = float(np.sqrt(np.mean(exact.astype(np.float64) ** 2)))
    error = float(np.sqrt(np.mean((value.astype(np.float64) - exact) ** 2)))
    return error / scale if scale > 0.0 else error
