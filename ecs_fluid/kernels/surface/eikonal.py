"""The eikonal equation |grad u| = 1 by fast sweeping: distance to a surface from values pinned beside it.

Every point takes the Godunov upwind solution of sum_a max((u - m_a) / h_a, 0)^2 = 1, with m_a the smaller
value of both neighbours along the axis a. Gauss-Seidel sweeps run along the eight combinations of axis
directions until a sweep changes nothing. The result has the bits of a plain triple loop for any block size
and number of threads. Orders, errors and blocks: docs/notes/surfaces.md. Source: Zhao, Math. Comp. 74 (2005)
603; Zhang, Zhao and Qian, J. Sci. Comput. 29 (2006) 25; Bak, McLaughlin and Renzi, SIAM J. Sci. Comput. 32
(2010) 2853; Fluid Simulation for Video Games, part 17.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.surface.fast_sweeping import sweep
from ecs_fluid.kernels.surface.sweep_tiles import PAD, load, mark_known, no_marks, store, turn

SETTLED = 1e-3
"""Sweeps of second order end when no value changes by more than this fraction of a cell."""
MOST_SWEEPS = 96
"""Largest number of sweeps of either order; distances need 8 to 16, mazes more."""

DEPTH, WIDTH = 2, 32
"""Columns of a block along i and j: a block and what is beside it fit into the second-level cache."""

DIRECTIONS = ((False, True, True), (False, False, False), (False, True, False), (False, False, True),
              (True, True, True), (True, False, False), (True, True, False), (True, False, True))  # fmt: skip
"""Directions of sweeps as (k reversed, forward along i, forward along j + k): all combinations of signs,
ordered such that k turns only once in between."""


class Distances(NamedTuple):
    """Result of `distances`: ``phi`` (px, py, pz) m, negative inside, and the number of sweeps that it took.

    ``surface`` is False if nothing was pinned: all points then hold the bound, with their sign. ``settled``
    is False if `MOST_SWEEPS` did not suffice.
    """

    phi: Array
    sweeps: int
    surface: bool
    settled: bool


def distances(
    phi: Array,
    pinned: Array,
    spacing: Array,
    order: Literal[1, 2] = 1,
    limit: float | None = None,
    block: tuple[int, int] | None = None,
) -> Distances:
    """Signed distances (px, py, pz) m, from those of the pinned points, which keep their bits.

    ``phi`` (px, py, pz) float32 or float64 holds signed distances where ``pinned`` (px, py, pz) is True;
    elsewhere only its sign counts (negative inside; 0 counts as outside). ``spacing`` (3,) m; an axis with
    one layer of points (a flat domain) takes no part, whatever its spacing. Two neighbours on different sides
    of the surface must both be pinned.

    With ``limit`` (m) only distances up to it are found, and all others are +-limit (a narrow band). If
    nothing is pinned at all, every point is +-limit or, without a limit, +- the diagonal of the grid, which
    no distance between its points can exceed. ``block``, the columns of a block along i and j, changes only
    the time that it takes.
    """
    nx, ny, nz = phi.shape
    depth, width = (DEPTH, WIDTH) if block is None else (block[0], max(block[1], PAD))
    tiles, rows = -(-ny // width), nz + width - 1
    wide = np.array(phi.shape) > 1
    spacing = np.asarray(spacing, dtype=np.float64)
    diagonal = float(np.linalg.norm((spacing * (np.array(phi.shape) - 1))[wide])) or float(spacing.max())
    bound = diagonal if limit is None else float(limit)
    # Lengths are in units near one cell, so that squares of small or large spacings stay within the range of
    # single precision. The unit is a power of two, which changes no bit of the mantissa.
    unit = 2.0 ** round(math.log2(float(spacing[wide].max()) if wide.any() else 1.0))
    h = np.where(wide, spacing / unit, spacing[wide].max() / unit if wide.any() else 1.0)
    v = np.empty((nx + 2 * PAD, tiles, rows + 2 * PAD, width + 2 * PAD), phi.dtype)
    fixed = np.empty((nx, tiles, rows, width), np.uint8)
    active, height, shift = no_marks(nx, tiles, rows, width)
    load(phi, pinned, 1.0 / unit, v, fixed, active, height, shift)
    reach = math.inf if limit is None else bound / unit
    surface = bool(pinned.any())
    number, turned, settled = 0, False, True
    for stage in range(1, order + 1 if surface else 1):
        if stage == 2:
            mark_known(v, active, height, shift)
        count, settled = 0, False
        while not settled and count < MOST_SWEEPS:
            # The second stage goes on with the direction after the first's last one: this saves a turn of k.
            reverse, forward_i, forward_t = DIRECTIONS[number % 8]
            if reverse != turned:
                turn(v, fixed, nz, active, height, shift)
                turned = reverse
            least = SETTLED * float(h[wide].min()) if stage == 2 else -1.0
            changed = sweep(
                v, fixed, active, nz, height, shift, forward_i, forward_t, depth, h, stage, reach, least
            )
            number, count = number + 1, count + 1
            settled = changed == 0
    result = np.empty_like(phi)
    store(v, fixed, turned, unit, bound, phi, result)
    return Distances(result, number, surface, settled)
