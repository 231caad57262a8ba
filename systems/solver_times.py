"""What the solvers cost on this machine, so that ``auto`` can choose.

Times come with the package (measured on two cores of a 2.6 GHz server) until `ecs-fluid bench velocity`
has measured this machine. A world takes them over when it is made (`SolverTimes`).
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from ecs_fluid.component import Array

SOLVERS = ("direct", "tree", "fmm")
SIZES = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6)
SHAPE = (2, len(TOLERANCES), len(SOLVERS), len(SIZES))

NEVER = 1e30
"""Stands for a solver that does not keep the tolerance, s."""

SHIPPED = Path(__file__).with_name("solver_times.json")


def stored_path() -> Path:
    """File with the times of this machine."""
    from ecs_fluid.kernels import cache_folder

    return cache_folder() / "solver_times.json"


@lru_cache
def stored(precision: str) -> Array:
    """Times (2, tolerances, solvers, sizes) s of this machine, or those that come with the package."""
    for path in (stored_path(), SHIPPED):
        try:
            table = np.array(json.loads(path.read_text(encoding="utf-8"))[precision], np.float64)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if table.shape == SHAPE and (table > 0.0).all():
            return table
    raise FileNotFoundError(SHIPPED)


def fastest_first(seconds: Array, n: int, m: int, tolerance: float, gradient: bool) -> list[str]:
    """Solvers that may keep the tolerance for n vortons and m targets, the one expected fastest first.

    Times are interpolated between the measured numbers of vortons, and between tolerances, as powers. With
    m targets the direct sum takes m/n of its time for n, the tree too, the multipole method (n + m)/2n.
    """
    times = {}
    for s, solver in enumerate(SOLVERS):
        alike = _at(seconds[int(gradient), :, s, :], n, tolerance)
        if alike < NEVER:
            times[solver] = alike * ((n + m) / (2 * n) if solver == "fmm" else m / n)
    return sorted(times, key=times.__getitem__)


def _at(table: Array, n: int, tolerance: float) -> float:
    """Time for n vortons and a tolerance, from a table (tolerances, sizes)."""
    goals = -np.log10(TOLERANCES)
    goal = min(max(-math.log10(tolerance), goals[0]), goals[-1])
    low = int(np.clip(np.searchsorted(goals, goal) - 1, 0, len(goals) - 2))
    part = (goal - goals[low]) / (goals[low + 1] - goals[low])
    first, second = _power(table[low], n), _power(table[low + 1], n)
    if max(first, second) >= NEVER:
        # A tolerance that is not kept says nothing about the times between.
        return second if part > 0.0 else first
    return float(first ** (1.0 - part) * second**part)


def _power(row: Array, n: int) -> float:
    """Time for n vortons: a power between two sizes, and beyond the last."""
    i = int(np.clip(np.searchsorted(SIZES, n) - 1, 0, len(SIZES) - 2))
    a, b = float(row[i]), float(row[i + 1])
    if max(a, b) >= NEVER:
        return NEVER
    slope = math.log(b / a) / math.log(SIZES[i + 1] / SIZES[i])
    return float(a * (n / SIZES[i]) ** slope)
