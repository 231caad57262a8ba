"""Poisson's equation lap A = rhs in a box with given values on its faces, by multigrid.

``solve`` is correction-scheme multigrid: relax, restrict the residual, solve for the correction on a coarser
grid (the same way), interpolate it back, relax. The error falls by about the same factor in every V-cycle
whatever the grid, so the cost is proportional to the number of points. A first cycle that starts from the
coarsest grid (full multigrid) brings the error near that of the discretisation at once.
Any numbers of points work (see ``grid_transfer``). Axes whose spacing is more than sqrt(2) times the smallest
are not coarsened until the others have caught up (semi-coarsening): relaxation does not smooth along them.
Source: Trottenberg, Oosterlee, Schueller, Multigrid (2001), chapters 2 and 5.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.poisson.grid_transfer import (
    Prolongation,
    Restriction,
    prolong,
    prolongation,
    restrict,
    restriction,
)
from ecs_fluid.kernels.poisson.smoothers import Stencil, as_rows, relax, residual_rows, stencil

PRE, POST = 1, 1
"""Sweeps before and after the coarse correction."""

OMEGA = 1.2
"""Relaxation factor inside a V-cycle. Measured on 5 to 64 cells per edge, cubes, boxes and stretched cells: a
cycle leaves at most 0.11 of the error on cubes and 0.13 elsewhere with 1.2, but 0.21 and 0.33 with 1. (1500
random boxes of 2 to 25 cells, spacings of 1 : 400: 0.132 at worst.)"""

_STALLED = 0.7
"""A cycle that leaves more than this part of the residual has reached round-off."""


class Level(NamedTuple):
    """One grid: its Laplacian, the tables from the next finer one (None on the finest) and work arrays."""

    laplacian: Stencil
    down: Restriction | None
    up: Prolongation | None
    field: Array
    rhs: Array
    residual: Array


def coarser(shape: tuple[int, ...], spacing: NDArray[np.float64]) -> tuple[int, ...] | None:
    """Shape of the next coarser grid, None if there is none: half the cells, rounded up, at least two.

    Axes of two cells or fewer, flat ones and those with wide cells are kept.
    """
    cells = np.array(shape[:3]) - 1
    able = (cells > 2) & (spacing > 0)
    if not able.any() or not (cells[spacing > 0] > 1).all():
        return None
    able &= spacing <= math.sqrt(2.0) * spacing[able].min() * (1.0 + 1e-9)
    points = np.where(able, (cells + 1) // 2, cells) + 1
    return (*(int(n) for n in points), *shape[3:])


def levels(field: Array, rhs: Array, spacing: Any) -> list[Level]:
    """All grids, finest first. ``field`` and ``rhs`` are those of the finest level, not copies."""
    dtype, shape = field.dtype, field.shape
    h = np.where(np.array(shape[:3]) > 1, np.asarray(spacing, np.float64), 0.0)
    rows = as_rows(field)
    found = [Level(stencil(shape, h, dtype), None, None, rows, as_rows(rhs), np.zeros_like(rows))]
    while (small := coarser(shape, h)) is not None:
        h = h * [(a - 1) / max(b - 1, 1) for a, b in zip(shape[:3], small[:3], strict=True)]
        zeros = [np.zeros((small[0], small[1], math.prod(small[2:])), dtype) for _ in range(3)]
        tables = restriction(small, shape, dtype), prolongation(shape, small, dtype)
        found.append(Level(stencil(small, h, dtype), *tables, *zeros))
        shape = small
    return found


def _correct(grids: list[Level], at: int) -> None:
    """Solve level ``at`` + 1 for the error of level ``at`` by one V-cycle and add it."""
    fine, coarse = grids[at], grids[at + 1]
    assert coarse.down is not None and coarse.up is not None
    restrict(fine.residual, coarse.rhs, coarse.down, coarse.laplacian.span)
    coarse.field[...] = 0
    _cycle(grids, at + 1)
    prolong(coarse.field, fine.field, coarse.up, fine.laplacian.span)


def _cycle(grids: list[Level], at: int) -> float:
    """One V-cycle from level ``at`` down; returns the residual (RMS) found after the first relaxation."""
    level = grids[at]
    if at == len(grids) - 1:
        # No two inner points are neighbours here, so one sweep is the solution.
        relax(level.field, level.rhs, level.laplacian, 1.0, 1)
        return 0.0
    relax(level.field, level.rhs, level.laplacian, OMEGA, PRE)
    left, _ = residual_rows(level.field, level.rhs, level.laplacian, level.residual)
    _correct(grids, at)
    relax(level.field, level.rhs, level.laplacian, OMEGA, POST)
    return left


def _start_from_coarsest(grids: list[Level]) -> None:
    """Full multigrid for the error of the guess; the finest level holds the guess's residual."""
    for at in range(1, len(grids)):
        coarse = grids[at]
        assert coarse.down is not None
        source = grids[0].residual if at == 1 else grids[at - 1].rhs
        restrict(source, coarse.rhs, coarse.down, coarse.laplacian.span)
        coarse.field[...] = 0
    for at in range(len(grids) - 1, 0, -1):
        _cycle(grids, at)
        fine, up = grids[at - 1], grids[at].up
        assert up is not None
        # The finest level gets a correction of its guess; the others, still zero, get their guess.
        prolong(grids[at].field, fine.field, up, fine.laplacian.span)


def solve(
    field: Array, rhs: Array, spacing: Any, tolerance: float = 1e-4, cycles: int = 30, full: bool = True
) -> list[float]:
    """Solve lap A = rhs in place by V-cycles until the residual is ``tolerance`` times what it was.

    ``field`` (px, py, pz) or (px, py, pz, m) holds the given values on its faces and a guess inside (the
    components are solved side by side); ``rhs`` has its shape and dtype, float32 or float64, C-contiguous;
    ``spacing`` (3,) m, 0 for a flat axis, along which nothing is coupled. ``full`` begins from the coarsest
    grid; switch it off when the guess is already near, as the solution of a moment ago.

    Returns the RMS of rhs - lap A, in the unit of ``rhs``: of the guess, then of every cycle after its first
    relaxation (so the final solution is better than the last number says). ``tolerance`` is relative to the
    RMS of the guess's residual or of ``rhs``, whichever is larger. Stops early where round-off ends
    convergence: in float32 the residual cannot fall below about 1e-7 |A| / h^2.
    """
    grids = levels(field, rhs, spacing)
    finest = grids[0]
    if finest.laplacian.inner == 0:
        return [0.0]
    left, source = residual_rows(finest.field, finest.rhs, finest.laplacian, finest.residual)
    history, reference = [left], max(left, source)
    if history[0] <= tolerance * reference:
        return history
    if full:
        _start_from_coarsest(grids)
    for _ in range(cycles):
        history.append(_cycle(grids, 0))
        stalled = len(history) > 2 and history[-1] > _STALLED * history[-2]
        if stalled or not history[-1] > tolerance * reference:
            break
    return history
