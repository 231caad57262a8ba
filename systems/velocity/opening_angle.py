"""The opening angle with which the tree keeps a tolerance, found by trials beside direct sums."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Sources
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.drawn_sample import DrawnSample, Reference, at_even_distances
from ecs_fluid.systems.velocity.pppm import relative_error
from ecs_fluid.systems.velocity.solver_work import tree_work
from ecs_fluid.systems.velocity.tree import TreeSolver
from ecs_fluid.targets import Targets

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

SAMPLE_BLOCKS, SAMPLE_TARGETS = 12, 16
"""Blocks of neighbouring targets in which the tree is measured, and targets in each that are compared with
the direct sum."""

WALKED = 384
"""Targets at which a measurement evaluates the tree, about, in each of its trials."""


class Walk(NamedTuple):
    """What filled the targets."""

    angle: float
    """opening angle, 0 if none keeps the tolerance"""
    work: float
    """in pairs of the direct sum, infinite if none does"""


NONE = Walk(0.0, np.inf)


class OpeningAngle:
    """Fills targets by the tree of some vortons, with about the widest angle that keeps a tolerance."""

    def __init__(self, tree: TreeSolver, direct: DirectSolver, sources: Sources, tolerance: float) -> None:
        self._tree, self._direct = tree, direct
        self._sources, self._tolerance = sources, tolerance
        self._compared: tuple[DrawnSample, list[Array]] | None = None

    def walk(self, targets: Targets, angle: float, measured: bool = False) -> Walk:
        """Fill by the tree; where errors are ``measured``, on every process all that was found."""
        self._tree.angle = angle
        # What is found at vortons goes to the ranks that hold their rows, of other points to all.
        asked = replace(targets, place="points") if measured else targets
        pairs, gradient = self._tree.counted(asked), targets.du is not None
        return Walk(angle, tree_work(pairs, len(self._sources.sigma), gradient))

    def measured(
        self, targets: Targets, angle: float, wider: float, *, reserve: float = 0.0, new: bool = False
    ) -> Walk:
        """Fill u and du by the tree with about the widest angle that keeps the tolerance.

        It begins with ``angle``, and narrows it, or widens it where that is by the factor ``wider``, by what
        a sample of the targets tells of the whole, with ``reserve`` standard errors; of a ``new`` flow by
        what the tree with a narrower angle tells at all of them.
        """
        trials, kept, failed = list[tuple[float, float]](), NONE, np.inf
        goal, least, reference = self._tolerance / (RESERVE if new else 1.0), np.inf, None
        while angle >= max(NARROWEST, wider * kept.angle) and len(trials) < TRIALS:
            if new and angle < least:
                self.walk(targets, REFERENCE * angle, measured=True)
                reference, least = self._reference(targets), FAR_BELOW * REFERENCE * angle
            last = self.walk(targets, angle, measured=True)
            own = self._errors(targets, reserve) if reference is None else reference.error(targets.results)
            trials.append((angle, float(np.max(own))))
            if trials[-1][1] <= goal:
                kept = last
            else:
                failed = angle
            angle = min(_next_angle(trials, goal), NARROWER * failed)
        return self.walk(targets, kept.angle) if kept.angle and last.angle != kept.angle else kept

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

    def foretold(self, targets: Targets) -> float:
        """Opening angle that should keep the tolerance, by a sample of the targets, 0 if none does.

        The sample is whole blocks of neighbours, since a block walks the tree as one.
        """
        assert targets.blocks is not None
        order, starts = targets.blocks
        chosen = at_even_distances(len(starts) - 1, SAMPLE_BLOCKS)
        parts = [order[starts[b] : starts[b + 1]] for b in chosen]
        ends = np.cumsum([0, *(len(part) for part in parts)])
        near = Targets.at(np.ascontiguousarray(targets.x[np.concatenate(parts)]), targets.du is not None)
        near.blocks = np.arange(len(near.x), dtype=np.int64), ends.astype(np.int64)
        compared = np.concatenate(
            [
                first + at_even_distances(len(part), SAMPLE_TARGETS)
                for first, part in zip(ends[:-1], parts, strict=True)
            ]
        )
        exact = self._exact(np.ascontiguousarray(near.x[compared]), targets.du is not None).results
        trials, angle = list[tuple[float, float]](), FIRST
        for _ in range(TRIALS):
            self.walk(near, angle)
            pairs = zip(near.results, exact, strict=True)
            trials.append((angle, max(relative_error(found[compared], value) for found, value in pairs)))
            following = _next_angle(trials, self._tolerance / RESERVE)
            if not following >= NARROWEST:
                return 0.0
            if max(following / angle, angle / following) < WIDER:
                break
            angle = following
        return angle


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
