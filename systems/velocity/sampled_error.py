"""How far velocities are off what the vortons induce, at a few particles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Sources
from ecs_fluid.entity import Entity
from ecs_fluid.one_process import OneProcess, Targets
from ecs_fluid.plugins import ships
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.pppm import relative_error
from ecs_fluid.systems.velocity.solver import Solver

SAMPLE = 64
"""Vortons, and other particles, that are looked at: rows at even distances, the same in every tick."""

Population = tuple[Entity, Array, Array]
"""With positions (m, 3) m and velocities (m, 3) m/s of the rows that this process holds."""


def sampled_error(
    solver: Solver, sources: Sources, grid: Grid, *groups: Sequence[Population]
) -> float | None:
    """RMS error of the velocity relative to its RMS, the largest of the groups of populations.

    Against the sum over all vortons in unbounded space; None without particles, and for solvers that mean
    something else: walls, images, and those of a user's own.
    """
    world = solver.world
    elsewhere = world.periods.any() or getattr(solver, "boundary", "open") != "open"
    if elsewhere or not ships(type(solver)) or not len(sources.sigma):
        return None
    if world.processes.has_parts(sources):
        sources, _ = world.require(PartitionSystem).present()
    direct, found = DirectSolver(solver.system), []
    direct.prepare(sources, grid)
    for populations in groups:
        x, u = _some(world.processes, populations)
        if len(x):
            exact = Targets.at(x, gradient=False)
            direct.fill(exact)
            found.append(relative_error(u, exact.u))
    return max(found, default=None)


def _some(processes: OneProcess, populations: Sequence[Population]) -> tuple[Array, Array]:
    """Positions and velocities of some rows of populations laid end to end, the same on all processes."""
    totals = [processes.total([entity], len(x)) for entity, x, _ in populations]
    rows, first = np.unique(np.linspace(0, max(sum(totals) - 1, 0), SAMPLE).astype(np.int64)), 0
    parts: list[Sequence[Array]] = []
    for (entity, *columns), total in zip(populations, totals, strict=True):
        own = rows[(rows >= first) & (rows < first + total)] - first
        parts.append(processes.some_rows(entity, columns, own))
        first += total
    if not parts:
        return np.empty((0, 3)), np.empty((0, 3))
    return np.concatenate([x for x, _ in parts]), np.concatenate([u for _, u in parts])
