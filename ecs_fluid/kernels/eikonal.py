"""The eikonal equation |grad u| = 1 by fast sweeping: distance to a surface from values pinned beside it.

Every point takes the Godunov upwind solution of

    sum_a max((u - m_a) / h_a, 0)^2 = 1,    m_a = the smaller of both neighbours along the axis a,

in Gauss-Seidel sweeps along the eight combinations of axis directions until a sweep changes nothing. First
order: the error is O(h log h) where distances start at a point or a corner, O(h) elsewhere. Second order
replaces the one-sided difference by (3 u - 4 u_1 + u_2) / 2 h where u_2 is upwind of u_1; it starts from the
first-order solution and goes on until no value changes by more than `SETTLED` cells. Source: Zhao, Math.
Comp. 74 (2005) 603; Zhang, Zhao and Qian, J. Sci. Comput. 29 (2006) 25; Fluid Simulation for Video Games,
part 17 (whose code has a city-block update in its place, in two sweeps).

A sweep visits blocks of columns along k, each as soon as the block before it along i and along j is done, so
that all blocks of a diagonal run in parallel: the wavefront of part 17. Every point reads the same values as
in a plain triple loop and rounds as there, so the bits are those of that loop for any size of block and any
number of threads.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.sweeps import PAD, sweep

SETTLED = 1e-3
"""The second order ends when no value changes by more than this part of a cell."""
MOST_SWEEPS = 96
"""Sweeps of either order after which it ends in any case; distances need 8 to 16, mazes more."""

DIRECTIONS = ((False, True, True), (False, False, False), (False, True, False), (False, False, True),
              (True, True, True), (True, False, False), (True, True, False), (True, False, True))  # fmt: skip
"""(k reversed, forward along i, forward along j + k): all signs of the axes, k turned once in between."""


class Distances(NamedTuple):
    """``phi`` (px, py, pz) m, negative inside, and what it took.

    ``surface`` is False when nothing was pinned: all points then hold the bound, with their sign. ``settled``
    is False when `MOST_SWEEPS` did not suffice.
    """

    phi: np.ndarray
    sweeps: int
    surface: bool
    settled: bool


@njit(parallel=True, cache=True)
def _load(
    phi: np.ndarray,
    pinned: np.ndarray,
    scale: float,
    width: int,
    v: np.ndarray,
    fixed: np.ndarray,
    known: np.ndarray,
) -> None:
    """Skew pinned distances times ``scale``; infinity with its sign for all other points.

    ``known`` tells which parts (i, block of ``width`` along j) hold a pinned point.
    """
    _, ny, nz = phi.shape
    kind = v.dtype.type
    factor, far = kind(scale), kind(np.inf)
    for i in prange(v.shape[0]):
        v[i] = far
        if PAD <= i < v.shape[0] - PAD:
            for j in range(ny):
                some = False
                for k in range(nz):
                    value = phi[i - PAD, j, k]
                    held = pinned[i - PAD, j, k]
                    some = some or held
                    fixed[i - PAD, j + k, j] = 1 if held else 0
                    v[i, j + k + PAD, j + PAD] = (
                        value * factor if held else (-far if value < kind(0) else far)
                    )
                if some:
                    known[i - PAD, j // width] = 1


@njit(parallel=True, cache=True)
def _turn(v: np.ndarray, fixed: np.ndarray, nz: int) -> None:
    """Reverse k in place."""
    for i in prange(fixed.shape[0]):
        for k in range(nz // 2):
            for j in range(fixed.shape[2]):
                s, t = j + k, j + nz - 1 - k
                a, b = v[i + PAD, s + PAD, j + PAD], v[i + PAD, t + PAD, j + PAD]
                v[i + PAD, s + PAD, j + PAD], v[i + PAD, t + PAD, j + PAD] = b, a
                fixed[i, s, j], fixed[i, t, j] = fixed[i, t, j], fixed[i, s, j]


@njit(parallel=True, cache=True)
def _store(
    v: np.ndarray, fixed: np.ndarray, turned: bool, inverse: float, bound: float, phi: np.ndarray
) -> None:
    """Put what is not pinned back into ``phi``; what was not reached becomes the bound with its sign."""
    nx, ny, nz = phi.shape
    kind = v.dtype.type
    factor, most = kind(inverse), kind(bound)
    for i in prange(nx):
        for j in range(ny):
            for k in range(nz):
                t = j + (nz - 1 - k if turned else k)
                if fixed[i, t, j] == 0:
                    value = v[i + PAD, t + PAD, j + PAD]
                    size = abs(value) * factor if abs(value) < kind(np.inf) else most
                    phi[i, j, k] = -size if value < kind(0) else size


@njit(parallel=True, cache=True)
def _known(v: np.ndarray, width: int, known: np.ndarray) -> None:
    """Which parts (i, block of ``width`` along j) hold a finite value."""
    ny = v.shape[2] - 2 * PAD
    for i in prange(known.shape[0]):
        for q in range(known.shape[1]):
            count = 0
            for t in range(v.shape[1]):
                row = v[i + PAD, t, q * width + PAD : min(q * width + width, ny) + PAD]
                for s in range(row.size):
                    count += 1 if abs(row[s]) < np.inf else 0
            known[i, q] = 1 if count > 0 else 0


def _around(known: np.ndarray) -> np.ndarray:
    """Parts that hold a known point or lie beside one, padded, uint8."""
    padded = np.pad(known, PAD)
    return np.asarray(
        padded
        | np.roll(padded, 1, 0)
        | np.roll(padded, -1, 0)
        | np.roll(padded, 1, 1)
        | np.roll(padded, -1, 1)
    )


def distances(
    phi: np.ndarray,
    pinned: np.ndarray,
    spacing: np.ndarray,
    order: Literal[1, 2] = 1,
    limit: float | None = None,
    block: tuple[int, int] | None = None,
) -> Distances:
    """Signed distances (px, py, pz) m from those of the pinned points, which stay as they are bit for bit.

    ``phi`` (px, py, pz) float32 or float64: signed distances where ``pinned`` (px, py, pz) bool, elsewhere
    only its sign counts (negative inside, 0 outside). ``spacing`` (3,) m; an axis with one layer of points (a
    flat domain) takes no part, whatever its spacing. Points on the two sides of the surface must not be
    neighbours unless both are pinned.

    With ``limit`` (m) only distances up to it are found, and all others are +-limit (a narrow band). Where
    nothing is pinned at all, every point is +-limit, or +- the diagonal of the grid, which no distance to a
    point of the grid can exceed: finite either way. ``block``, columns along i and j, changes the time only.
    """
    nx, ny, nz = phi.shape
    # Long along j, which is the direction of the vectors, yet four blocks wide where there is room.
    block_i, block_j = (8, max(32, -(-ny // 4))) if block is None else block
    wide = np.array(phi.shape) > 1
    spacing = np.asarray(spacing, dtype=np.float64)
    diagonal = float(np.linalg.norm((spacing * (np.array(phi.shape) - 1))[wide])) or float(spacing.max())
    bound = diagonal if limit is None else float(limit)
    # In units near one cell, so that squares of small or large spacings stay within single precision. A
    # power of two changes no bit of the mantissa.
    unit = 2.0 ** round(math.log2(float(spacing[wide].max()) if wide.any() else 1.0))
    h = np.where(wide, spacing / unit, spacing[wide].max() / unit if wide.any() else 1.0)
    v = np.empty((nx + 2 * PAD, ny + nz - 1 + 2 * PAD, ny + 2 * PAD), phi.dtype)
    fixed = np.zeros((nx, ny + nz - 1, ny), np.uint8)
    known = np.zeros((nx, -(-ny // block_j)), np.uint8)
    _load(phi, pinned, 1.0 / unit, block_j, v, fixed, known)
    result = phi.copy()
    reach = math.inf if limit is None else bound / unit
    surface = bool(pinned.any())
    number, turned, settled = 0, False, True
    for stage in range(1, order + 1 if surface else 1):
        if stage == 2:
            _known(v, block_j, known)
        active = _around(known)
        count, settled = 0, False
        while not settled and count < MOST_SWEEPS:
            # The second stage goes on where the first one ended, which saves a turn of k.
            reverse, forward_i, forward_t = DIRECTIONS[number % 8]
            if reverse != turned:
                _turn(v, fixed, nz)
                turned = reverse
            least = SETTLED * float(h[wide].min()) if stage == 2 else -1.0
            changed = sweep(
                v, fixed, active, nz, forward_i, forward_t, block_i, block_j, h, stage, reach, least
            )
            number, count = number + 1, count + 1
            settled = changed == 0
    _store(v, fixed, turned, unit, bound, result)
    return Distances(result, number, surface, settled)
