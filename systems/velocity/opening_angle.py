"""The opening angle with which the tree keeps a tolerance, found by trials compared with direct sums."""

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
"""Range of opening angles from which ``auto`` chooses, and the one that it tries first; with an angle below
the narrowest, another solver is as fast."""

POWERS = (1.0, 3.0, 4.0)
"""The tree's error grows as a power of the angle: least exponent, first guess, and largest exponent."""

RESERVE = 1.05
"""The measured error of a new flow must be below the tolerance by this factor, since it is an estimate."""

AIM = 0.97
"""The next angle aims at this fraction of the allowed error."""

TRIALS = 4
"""Largest number of angles tried in one measurement."""

NARROWER = 0.95
"""After an angle fails, the next is at most this factor times it."""

WIDER, WIDER_LATER, NO_WIDER = 1.04, 1.1, 10.0
"""After an angle that keeps the tolerance, a wider one is tried only if it is wider by at least this factor:
in a first search; where an angle was known; and (so never) in an alike flow or a sum done only once."""

COMPARED, AGAIN = 384, 192
"""Number of vortons compared with the direct sum, in a search for an angle, and when the angle found is
measured again: these error estimates scatter by about 5 % and 7 %."""

REFERENCE, FAR_BELOW = 0.5, 1.5
"""In a new flow, the errors at all targets are estimated against the tree with a narrower angle, REFERENCE
times the one tried. It serves as the reference for angles at least FAR_BELOW times as wide as its own."""

SAMPLE_BLOCKS, SAMPLE_TARGETS = 12, 16
"""Number of blocks of neighbouring targets in which the tree is measured, and targets per block that are
compared with the direct sum."""

WALKED = 384
"""Approximate number of targets at which a measurement evaluates the tree in each trial."""


class Walk(NamedTuple):
    """How the tree filled the targets."""

    angle: float
    """opening angle, 0 if none keeps the tolerance"""
    work: float
    """work in pairs of the direct sum, infinite if no angle keeps the tolerance"""


NONE = Walk(0.0, np.inf)


class OpeningAngle:
    """Fills targets by a tree, with about the widest opening angle that keeps a tolerance."""

    def __init__(self, tree: TreeSolver, direct: DirectSolver, sources: Sources, tolerance: float) -> None:
        self._tree, self._direct = tree, direct
        self._sources, self._tolerance = sources, tolerance
        self._compared: tuple[DrawnSample, list[Array]] | None = None

    def walk(self, targets: Targets, angle: float, measured: bool = False) -> Walk:
        """Fill by the tree; if errors are to be ``measured``, every process gets all results."""
        self._tree.angle = angle
        # Results at vortons go only to the ranks that hold their rows; results at "points" go to all.
        asked = replace(targets, place="points") if measured else targets
        pairs, gradient = self._tree.counted(asked), targets.du is not None
        return Walk(angle, tree_work(pairs, len(self._sources.sigma), gradient))

    def measured(
        self, targets: Targets, angle: float, wider: float, *, reserve: float = 0.0, new: bool = False
    ) -> Walk:
        """Fill u and du by the tree with about the widest angle that keeps the tolerance.

        The search begins with ``angle``, and narrows it, or widens it if that is by at least the factor
        ``wider``. Errors are estimated on a sample of the targets, plus ``reserve`` standard errors; in a
        ``new`` flow at all targets, against the tree with a narrower angle.
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
        """The present results at the targets, with their error, as a reference for wider angles."""
        own = self._errors(targets, 1.0)
        known = self._compared if targets.place == "vortons" else None
        return Reference([values.copy() for values in targets.results], own, *(known or ()))

    def _errors(self, targets: Targets, reserve: float) -> list[float]:
        """Relative RMS errors of u and du on a sample of the targets, plus `reserve` standard errors.

        The first result of a measurement decides which vortons are in the sample. Other points may lie
        anywhere; their sample is drawn as for the multipole method.
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

    def predicted(self, targets: Targets) -> float:
        """Opening angle that should keep the tolerance, by a sample of the targets; 0 if none does.

        The sample consists of whole blocks of neighbours, since a block walks the tree together.
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
    """The angle whose error should be a little below the goal, from `trials`, pairs of angle and error."""
    (angle, error), (least, power, most) = trials[-1], POWERS
    if not np.isfinite(error):
        return 0.0
    error = max(error, 1e-300)
    if len(trials) > 1 and trials[-2][0] != angle:
        before, other = trials[-2]
        power = np.log(error / max(other, 1e-300)) / np.log(angle / before)
    power = min(max(power, least), most)
    return float(min(WIDEST, angle * (AIM * goal / error) ** (1.0 / power)))
