"""What the solvers cost on this machine, so that ``auto`` can choose.

The package comes with times (measured on two cores of a 2.6 GHz server), which are used until
`ecs-fluid bench velocity` has measured this machine. A world copies them when it is made (`SolverTimes`).
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import SolverTimes

if TYPE_CHECKING:
    from ecs_fluid.world import World

TIMED = ("direct", "tree", "fmm")
"""Solvers whose times the table holds; that of pppm follows from the work of its mesh."""
SIZES = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6)
SHAPE = (2, len(TOLERANCES), len(TIMED), len(SIZES))

NEVER = 1e30
"""Time, s, that marks a solver which does not keep the tolerance."""

GROWTH = 0.05
"""Fraction of the tree's time, with as many targets as vortons, that goes into building the tree."""

SHIPPED = Path(__file__).with_name("solver_times.json")


def stored_path() -> Path:
    """Path of the file with the times of this machine."""
    from ecs_fluid.kernels.compiled import cache_folder

    return cache_folder() / "solver_times.json"


@lru_cache
def stored(precision: str) -> Array:
    """Times (2, tolerances, solvers, sizes) s of this machine, or else those that come with the package."""
    for path in (stored_path(), SHIPPED):
        try:
            table = np.array(json.loads(path.read_text(encoding="utf-8"))[precision], np.float64)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if table.shape == SHAPE and (table > 0.0).all():
            return table
    raise FileNotFoundError(SHIPPED)


def keep_times(world: World) -> None:
    """Make the times by which ``auto`` chooses part of the world's state, unless they are already."""
    if SolverTimes not in world.fluid:
        world.attach(world.fluid.name, SolverTimes(seconds=stored(world.options.precision)))


def expected(
    seconds: Array,
    n: int,
    m: int,
    tolerance: float,
    gradient: bool,
    compared: int = 0,
    walked: int = 0,
    mesh: float | None = None,
) -> dict[str, float]:
    """Times s, by solver, for n vortons and m targets, from the table; only solvers that keep the tolerance.

    Times are interpolated as powers between the measured numbers of vortons, and between tolerances. With
    m targets the direct sum takes m/n of its time for n targets, and the multipole method (n + m)/2n. The
    tree must be built first; and fewer targets are farther apart, so that their blocks are wider and have
    longer lists: the rest of its time goes as (m/n)^(2/3). Before the tree is used its error may have to be
    measured, by direct sums at ``compared`` targets and by the tree at ``walked`` targets. ``mesh`` is the
    work of pppm, as the number of pairs of a direct sum that takes as long.
    """
    table = seconds[int(gradient)].astype(np.float64)
    return dict(_expected(table.tobytes(), n, m, tolerance, compared, walked, mesh))


@lru_cache
def _expected(
    seconds: bytes, n: int, m: int, tolerance: float, compared: int, walked: int, mesh: float | None
) -> dict[str, float]:
    times, tables = dict[str, float](), np.frombuffer(seconds).reshape(SHAPE[1:]).tolist()
    walks = max(m / n, (m / n) ** (2 / 3)) * (1.0 + walked / m)
    parts = {"direct": m / n, "tree": GROWTH + (1.0 - GROWTH) * walks, "fmm": (n + m) / (2 * n)}
    for s, solver in enumerate(TIMED):
        alike = _at([row[s] for row in tables], n, tolerance)
        if alike < NEVER:
            times[solver] = alike * parts[solver]
    if "tree" in times and "direct" in times:
        times["tree"] += times["direct"] * compared / m
    if mesh is not None and {"direct", "fmm"} <= times.keys():
        times["pppm"] = times["direct"] * mesh / (n * m)
    return times


def _at(table: list[list[float]], n: int, tolerance: float) -> float:
    """Time for n vortons and a tolerance, from a table (tolerances, sizes)."""
    goals = [-math.log10(kept) for kept in TOLERANCES]
    goal = min(max(-math.log10(tolerance), goals[0]), goals[-1])
    low = _below(goals, goal)
    part = (goal - goals[low]) / (goals[low + 1] - goals[low])
    first, second = _power(table[low], n), _power(table[low + 1], n)
    if max(first, second) >= NEVER:
        # The mark of a tolerance that is not kept cannot be interpolated.
        return second if part > 0.0 else first
    return float(first ** (1.0 - part) * second**part)


def _power(row: list[float], n: int) -> float:
    """Time for n vortons, interpolated as a power between two sizes, or extrapolated beyond the last."""
    i = _below(SIZES, n)
    a, b = row[i], row[i + 1]
    if max(a, b) >= NEVER:
        return NEVER
    slope = math.log(b / a) / math.log(SIZES[i + 1] / SIZES[i])
    return float(a * (n / SIZES[i]) ** slope)


def _below(marks: Sequence[float], value: float) -> int:
    """Index i of the interval marks[i] to marks[i + 1] that holds the value, or of the nearest one."""
    return min(max(bisect_left(marks, value) - 1, 0), len(marks) - 2)
