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
"""Those numbers of a flow in which a relative error is at most linear: targets, and sums of strengths."""

SQUARES = slice(_SQUARES, _BEHIND)
"""Those of these that are sums of squares of strengths."""

MEASURED_EVERY = 16
"""Ticks between two measurements of an error, as long as the flow is alike."""

ALIKE = 0.05
"""Largest relative change of these numbers up to which a measured angle is reused."""

WORKED = 0.25
"""The same for the counted work of a solver, and for an angle as a first guess; beyond it a flow is new."""


def due(world: World) -> bool:
    """Whether errors are measured in this stage even if the flow is alike: in the first one of some ticks."""
    return world.tick % MEASURED_EVERY == 0 and world.stage.c == 0.0


def kept_table(world: World, kind: type[Kept]) -> Kept | None:
    """The table of the fluid entity in which a solver keeps its measurements; None without one."""
    return cast("Kept | None", world.fluid.tables.get(kind))


class FlowNumbers:
    """Of vortons x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m, as a solver with a tolerance sums them."""

    def __init__(self, solver: Solver, sources: Sources) -> None:
        self._solver, self._sources = solver, sources

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        from ecs_fluid.kernels.compiled.columns import flow_sums

        return flow_sums(self._sources.x, self._sources.alpha, self._sources.sigma)

    def at(self, count: int, gradient: bool) -> Flow:
        """Numbers of what the error at so many targets, with gradients or not, depends on.

        Vortons are sorted by cells: the last number tells strengths that point the same way as those beside
        them from strengths that cancel. Sums of |alpha|^2 have each axis' own part added, so that they tell
        where strengths point: not alike are flows in which that part is another by a tenth of the whole.
        """
        strength, *along, beside, sigma, spread = self._sums
        total = sum(along)
        return Flow._make((
            self._solver.system.tolerance, len(self._solver.code) - 1.0, float(gradient),
            float(len(self._sources.sigma)), float(count), strength, *(2.0 * total + own for own in along),
            sigma, spread, 2.0 + (beside / total if total > 0.0 else 0.0),
        ))  # fmt: skip


def alike(found: Iterable[float], before: Iterable[float], change: float = ALIKE) -> bool:
    """Whether no number differs from its former value by more than this part."""
    return all(abs(a - b) <= change * abs(a) for a, b in zip(found, before, strict=True))
