"""Direct summation at the vortons themselves, each pair met once: N (N - 1)/2 pairs give N (N - 1) interactions.

Where the targets are the sources and all have one core radius, both partners of a pair share the factor f of
u_i += alpha_j x (f r), u_j -= alpha_i x (f r), r = x_i - x_j, most of the work of ``direct`` (same equations).

Vortons lie in blocks of LANES around a circle: block c meets itself and the half circle after it. A task owns
a run of blocks and adds up in arrays of its own what it gives to all it meets; then each vorton collects its
parts, in the order of the tasks. The number of tasks depends on N alone, so the bits do not depend on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import FAST
from ecs_fluid.kernels.pairwise import SCALE, VELOCITY_SCALE
from ecs_fluid.kernels.regularisation import (
    GAUSSIAN,
    RANKINE,
    ROSENHEAD_MOORE,
    WINCKELMANS,
    core_constant,
    core_shift,
    gradient_factors,
    velocity_factor,
)
from ecs_fluid.kernels.vectors import LANES, wide_vectors

MAX_VORTONS = 131_072
"""Above it the tasks' arrays (17 times the result: 27 MB for float32 velocities) are no longer a trifle, and
other solvers are faster than any sum over all pairs."""

MAX_TASKS, MIN_BLOCKS = 32, 4
"""Tasks at most, and blocks of a task at least."""

WIDTH = 512
"""Vortons of a list that is kept in the first-level cache."""

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_TILE: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
# Loops are inlined by numba, not by LLVM: see ``pairwise``.
_LOOP: dict[str, Any] = {**_TILE, "inline": "always"}

# Rows of a list, each WIDTH long in one flat array: with distances known to the compiler, it sees that the
# sums it writes are not the sources it reads.
_X, _Y, _Z, _AX, _AY, _AZ, _SUMS = (row * WIDTH for row in range(7))
_VELOCITY_SUMS, _GRADIENT_SUMS = 3, 14


@njit(**_TILE)
def _flat(like: Any, rows: int) -> Any:
    # Rows start on cache lines, or every vector load would touch two.
    raw = np.empty(rows * WIDTH + 64 // like.itemsize, like.dtype)
    skip = (-(raw.ctypes.data // like.itemsize)) % (64 // like.itemsize)
    return raw[skip : skip + rows * WIDTH]


@njit(**_TILE)
def _tasks(blocks: int) -> int:
    return min(MAX_TASKS, (blocks + MIN_BLOCKS - 1) // MIN_BLOCKS)


@njit(**_TILE)
def _partners(block: int, blocks: int) -> int:
    """How many blocks after it a block meets: half the circle; two opposite blocks meet once."""
    half = (blocks - 1) // 2
    if blocks % 2 == 0 and block < blocks // 2:
        half += 1
    return half


@njit(**_TILE)
def _fill(flat: Any, rows: int, sx: Any, sa: Any, first: int, count: int, blocks: int) -> None:
    """``count`` blocks from block ``first`` on, around the circle, and their sums at zero; vortons beyond the
    last one have no strength."""
    n = sx.shape[1]
    for b in range(count):
        row = ((first + b) % blocks) * LANES
        for c in range(3):
            for e in range(LANES):
                at = c * WIDTH + b * LANES + e
                real = row + e < n
                flat[at] = sx[c, row + e] if real else 0.0
                flat[3 * WIDTH + at] = sa[c, row + e] if real else 0.0
    for c in range(rows):
        for e in range(count * LANES):
            flat[(6 + c) * WIDTH + e] = 0.0


@njit(**_LOOP)
def _velocity_loop(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    k, shift = core_constant(code, s2), core_shift(code, s2)
    for i in range(0, LANES, 2):
        x0, y0, z0, ax0, ay0, az0 = own[0, i], own[1, i], own[2, i], own[3, i], own[4, i], own[5, i]
        i1 = i + 1
        x1, y1, z1, ax1, ay1, az1 = own[0, i1], own[1, i1], own[2, i1], own[3, i1], own[4, i1], own[5, i1]
        u0 = v0 = w0 = u1 = v1 = w1 = type(s2)(0.0)
        for j in range(LANES * count):
            x, y, z = flat[_X + j], flat[_Y + j], flat[_Z + j]
            ax, ay, az = flat[_AX + j], flat[_AY + j], flat[_AZ + j]
            u, v, w = flat[_SUMS + j], flat[_SUMS + WIDTH + j], flat[_SUMS + 2 * WIDTH + j]
            dx = x0 - x
            dy = y0 - y
            dz = z0 - z
            f = velocity_factor(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
            dx *= f
            dy *= f
            dz *= f
            u0 += ay * dz - az * dy
            v0 += az * dx - ax * dz
            w0 += ax * dy - ay * dx
            u += az0 * dy - ay0 * dz
            v += ax0 * dz - az0 * dx
            w += ay0 * dx - ax0 * dy
            dx = x1 - x
            dy = y1 - y
            dz = z1 - z
            f = velocity_factor(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
            dx *= f
            dy *= f
            dz *= f
            u1 += ay * dz - az * dy
            v1 += az * dx - ax * dz
            w1 += ax * dy - ay * dx
            u += az1 * dy - ay1 * dz
            v += ax1 * dz - az1 * dx
            w += ay1 * dx - ax1 * dy
            flat[_SUMS + j] = u
            flat[_SUMS + WIDTH + j] = v
            flat[_SUMS + 2 * WIDTH + j] = w
        for row, a, b in ((0, u0, u1), (1, v0, v1), (2, w0, w1)):
            sums[row, i] += a
            sums[row, i1] += b


@njit(**_TILE)
def add_velocity(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    wide_vectors()
    if code == WINCKELMANS:
        _velocity_loop(WINCKELMANS, flat, count, own, sums, s2)
