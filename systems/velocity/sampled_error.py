"""How far velocities are off what the vortons induce, at a few particles."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Sources
from ecs_fluid.one_process import Targets
from ecs_fluid.plugins import ships
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.pppm import relative_error
from ecs_fluid.systems.velocity.solver import Solver

SAMPLE = 64
"""Vortons, and other particles, that are looked at: rows at even distances, the same in every tick."""

Tables = list[tuple[Array, Array]]
"""Positions (m, 3) m and velocities (m, 3) m/s of some populations."""


def sampled_error(solver: Solver, sources: Sources, grid: Grid, *groups: Tables) -> float | None:
    """RMS error of the velocity relative to its RMS, the largest of the groups of populations.

    Against the sum over all vortons in unbounded space; None without particles, and for solvers that mean
    something else: walls, images, and those of a user's own.
    """
    elsewhere = solver.world.periods.any() or getattr(solver, "boundary", "open") != "open"
    if elsewhere or not ships(type(solver)) or not len(sources.sigma):
        return None
    direct, found = DirectSolver(solver.system), []
    direct.prepare(sources, grid)
    for tables in groups:
        x, u = _some(tables)
        if len(x):
            exact = Targets.at(x, gradient=False)
            direct.fill(exact)
            found.append(relative_error(u, exact.u))
    return max(found, default=None)


def _some(tables: Tables) -> tuple[Array, Array]:
    """Rows of populations laid end to end."""
    total = sum(len(x) for x, _ in tables)
    rows, first = np.unique(np.linspace(0, max(total - 1, 0), SAMPLE).astype(np.int64)), 0
    parts: list[tuple[Array, Array]] = []
    for x, u in tables:
        own = rows[(rows >= first) & (rows < first + len(x))] - first
        parts.append((x[own], u[own]))
        first += len(x)
    if not parts:
        return np.empty((0, 3)), np.empty((0, 3))
    return np.concatenate([x for x, _ in parts]), np.concatenate([u for _, u in parts])
