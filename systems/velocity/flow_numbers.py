"""Numbers that characterise a flow: measurements are reused as long as these stay alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from ecs_fluid.component import Component
from ecs_fluid.components import Sources
from ecs_fluid.components.sources import Flow
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.solver import Solver

Kept = TypeVar("Kept", bound=Component)

_TARGETS, _SQUARES, _BEHIND = map(Flow._fields.index, ("targets", "square_x", "radius"))

LINEAR = slice(_TARGETS, _BEHIND)
"""Entries of a `Flow` on which a relative error depends at most linearly: targets, and sums of strengths."""

SQUARES = slice(_SQUARES, _BEHIND)
"""Those of the LINEAR entries that are sums of squares of strengths."""

MEASURED_EVERY = 16
"""Ticks between two measurements of an error, as long as the flow is alike."""

ALIKE = 0.05
"""Flows are alike if no number changes by more than this fraction: then a measured angle is reused."""

WORKED = 0.25
"""Up to this relative change, a solver's counted work is reused, and an angle is a first guess; a flow that
changes by more is new."""


def measurement_due(world: World) -> bool:
    """Whether errors are due in this stage even if the flow is alike: the first of MEASURED_EVERY ticks."""
    return world.tick % MEASURED_EVERY == 0 and world.stage.c == 0.0


def stored_table(world: World, kind: type[Kept]) -> Kept | None:
    """The fluid entity's table of this kind, where a solver keeps its measurements; None if there is none.

    A look between ticks gets a copy, so that what it measures is not remembered.
    """
    table = cast("Kept | None", world.fluid.tables.get(kind))
    return table.copy() if table is not None and world.evaluating else table


class FlowNumbers:
    """Numbers of the flow of vortons x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m, for one solver."""

    def __init__(self, solver: Solver, sources: Sources) -> None:
        self._solver, self._sources = solver, sources

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        from ecs_fluid.kernels.compiled.columns import flow_sums

        return flow_sums(self._sources.x, self._sources.alpha, self._sources.sigma)

    def at(self, count: int, gradient: bool) -> Flow:
        """The numbers on which the error at `count` targets, with or without gradients, depends.

        The last number distinguishes strengths that point the same way as their neighbours (vortons are
        sorted by cells) from strengths that cancel. The entry of each axis is twice the sum of |alpha|^2 plus
        that axis's own part, so that it depends on where strengths point: a change of that part by a tenth
        of the whole makes flows unlike.
        """
        strength, *along, beside, sigma, spread = self._sums
        total = sum(along)
        return Flow._make((
            self._solver.system.tolerance, len(self._solver.code) - 1.0, float(gradient),
            float(len(self._sources.sigma)), float(count), strength, *(2.0 * total + own for own in along),
            sigma, spread, 2.0 + (beside / total if total > 0.0 else 0.0),
        ))  # fmt: skip


def alike(found: Iterable[float], before: Iterable[float], change: float = ALIKE) -> bool:
    """Whether no number differs from its former value by more than this fraction."""
    return all(abs(a - b) <= change * abs(a) for a, b in zip(found, before, strict=True))
